"""Other currencies: which are known, what one unit of them costs in dollars, and how amounts name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from fractions import Fraction

from planner.carriers import dataclass

KNOWN = ("EUR", "GBP", "CHF", "JPY", "CNY", "INR", "KRW", "CAD", "AUD", "SGD", "BRL", "SEK", "NOK", "DKK", "PLN")
_SIGNS = {"€": "EUR", "£": "GBP", "₹": "INR", "US$": "USD"}
_NAMED = re.compile(
    rf"{'|'.join(map(re.escape, _SIGNS))}|(?<![A-Za-z])(?:{'|'.join((*KNOWN, 'USD'))})(?=\d|(?![A-Za-z]))"
)
_AMOUNT = re.compile(r"[\d.]")
_IN_DOLLARS = re.compile(r"\$(\d[\d.]*[kM]?)")


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
    code = None if found is None else _SIGNS.get(found[0], found[0])
    return None if code == "USD" else code


def as_if_dollars(text: str) -> str:
    """The same amount in dollars, whose sign stands before it, wherever its currency was named.

    >>> as_if_dollars("€2.50/h"), as_if_dollars("2.50 EUR/h"), as_if_dollars("EUR 400k"), as_if_dollars("400k EUR")
    ('$2.50/h', '$2.50/h', '$400k', '$400k')
    """
    bare, named = _NAMED.subn("", text, count=1)
    bare = " ".join(bare.split()).replace(" /", "/")
    return _AMOUNT.sub(lambda digit: f"${digit[0]}", bare, count=1) if named else text


def in_currency(words: str, code: str) -> str:
    """What is said of amounts in dollars, of the same amounts in the currency that they were written in.

    >>> in_currency('write "$9.50/h"', "EUR")
    'write "9.50 EUR/h"'
    """
    return _IN_DOLLARS.sub(rf"\1 {code}", words)
