"""What a price list leaves open, and only whoever downloaded it can say: the currency's rate, and tax."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal

from planner.carriers import dataclass
from planner.errors import InputError, UsageError
from planner.units import CURRENCIES

_RATE = re.compile(r"([A-Z]{3})=([0-9]+(?:\.[0-9]+)?)")
_TAX = re.compile(r"(excluded)|included:([0-9]+(?:\.[0-9]+)?) ?%?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTerms:
    """Dollars for one unit of other currencies, and the share of tax in the prices; None where nobody said."""

    dollars: Mapping[str, Decimal] = field(default_factory=dict)
    tax: Decimal | None = None

    @classmethod
    def of(cls, rates: tuple[str, ...], tax: str) -> ListTerms:
        """From what stands after `--rate` and `--tax`.

        Raises
        ------
        UsageError
            A rate or a tax cannot be read.

        Examples
        --------
        >>> ListTerms.of(("EUR=1.08",), "included:19%")
        ListTerms(dollars={'EUR': Decimal('1.08')}, tax=Decimal('0.19'))
        """
        dollars: dict[str, Decimal] = {}
        for text in rates:
            match = _RATE.fullmatch(text.strip())
            rate = Decimal(match[2]) if match else Decimal(0)
            if match is None or match[1] not in CURRENCIES or not Decimal("1e-6") <= rate <= 10**6:
                hint = "write --rate EUR=1.08, dollars for one EUR; known: " + ", ".join(CURRENCIES)
                raise UsageError.of("bad-rate", f"--rate '{text[:40]}' is no rate to the dollar", hint=hint)
            dollars[match[1]] = rate
        if not tax:
            return cls(dollars=dollars)
        said = _TAX.fullmatch(tax.strip())
        if said is None or (said[2] and Decimal(said[2]) > 100):
            hint = "write --tax excluded, or --tax included:19%"
            raise UsageError.of("bad-tax", f"--tax '{tax[:40]}' does not say what tax the prices hold", hint=hint)
        return cls(dollars=dollars, tax=Decimal(0) if said[1] else Decimal(said[2]) / 100)


def in_dollars(price: Decimal, currency: str, terms: ListTerms, file: str) -> Decimal:
    """A price of a list in dollars without tax.

    Parameters
    ----------
    price
        As the list has it.
    currency
        ISO 4217 code, in letters of either size; empty: dollars.
    terms
        Rate and tax, as far as the user said them; dollars without a word of tax are taken to hold none.
    file
        Name of the list, for messages.

    Raises
    ------
    InputError
        It is in another currency, and nobody said its rate, or whether tax is in it: both are asked, not guessed.
    """
    code = currency.upper() or "USD"
    if code != "USD":
        if code not in terms.dollars:
            hint = f"give the day's rate, dollars for one {code[:3]}: --rate {code[:3]}=1.08"
            raise InputError.of("mixed-currency", f"{file}: its prices are in {code[:20]}", hint=hint)
        if terms.tax is None:
            hint = "say it: --tax excluded, or --tax included:19%"
            raise InputError.of("tax-unknown", f"{file}: is tax in its prices in {code[:20]}?", hint=hint)
    return price * terms.dollars.get(code, Decimal(1)) / (1 + (terms.tax or 0))
