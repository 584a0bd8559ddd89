"""Other currencies: which are known, what one unit of them costs in dollars, and how amounts name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from fractions import Fraction

from planner.carriers import dataclass

KNOWN = ("EUR", "GBP", "CHF", "JPY", "CNY", "INR", "KRW", "CAD", "AUD", "SGD", "BRL", "SEK", "NOK", "DKK", "PLN")
_SIGNS = {"€": "EUR", "£": "GBP"}
_NAMED = re.compile(rf"[{''.join(_SIGNS)}]|(?<![A-Za-z])(?:{'|'.join(KNOWN)})(?![A-Za-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Dollars for one unit of other currencies, on a day."""

    dollars: Mapping[str, float] = field(default_factory=dict)  # by ISO 4217 code
    as_of: str = ""  # ISO date

    def exact(self, code: str) -> Fraction:
        """Dollars for one unit, as the decimal number that was written."""
        return Fraction(Decimal(repr(self.dollars[code])))


NO_RATES = Rates()


def currency_named(text: str) -> str | None:
    """Code of another currency than the dollar that an amount names.

    >>> currency_named("€2.50/h"), currency_named("2.50 EUR/h"), currency_named("$2.50/h")
    ('EUR', 'EUR', None)
    """
    found = _NAMED.search(text)
    return None if found is None else _SIGNS.get(found[0], found[0])


def as_if_dollars(text: str) -> str:
    """The same amount with the dollar in the place of the currency.

    >>> as_if_dollars("€2.50/h"), as_if_dollars("2.50 EUR/h")
    ('$2.50/h', '2.50 USD/h')
    """
    return _NAMED.sub(lambda found: "$" if found[0] in _SIGNS else "USD", text, count=1)
