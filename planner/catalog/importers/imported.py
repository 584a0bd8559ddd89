"""What an import comes to: offers as rows of our own price files, and what was left out."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from decimal import Decimal, InvalidOperation

from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.catalog.offers import MOST_USD_PER_HOUR, OPTIONAL, PRICE, REQUIRED

COLUMNS = tuple(dict.fromkeys((*REQUIRED, *OPTIONAL)))
STEP = Decimal("0.000001")  # a micro-dollar
NOT_OFFERED = "no price: not offered"
UNREADABLE = "no number for a price"
_NONE = ("", "null", "none", "n/a", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A row that became no offer."""

    line: int
    what: str  # how the file names it
    reason: str


@dataclass(slots=True, kw_only=True)
class Imported:
    """Offers by id, rows that were skipped, and what looked odd, of one file."""

    file: str
    provider: str
    copied: str = ""  # ISO date of the import: stands where the prices have no date of their own
    countries: Mapping[str, str] = field(default_factory=dict)  # by region, as far as they are known
    rows: int = 0  # of the file
    taken: int = 0  # rows that became offers, or part of one
    offers: dict[str, dict[str, str]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)  # ids of offers whose price is written, and is no number: not gone
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skip(self, line: int, what: str, reason: str) -> None:
        """List a row.

        Parameters
        ----------
        line
            Of the row, or the number of an item, from 1.
        what
            How the file names it.
        reason
            Why it became no offer; rows are counted by it.
        """
        self.skipped.append(Skipped(line=line, what=what, reason=reason))

    def no_price(self, line: int, what: str, reason: str, *offers: tuple[str, str, str]) -> None:
        """List a row for want of a price.

        Parameters
        ----------
        line, what
            As for `skip`.
        reason
            As `price_of` gives it.
        offers
            Shape, zone or region, and price model of each offer that the row is about.
        """
        self.skip(line, what, reason)
        if reason == UNREADABLE:
            self.unread |= {self.name_of(*offer) for offer in offers}

    def name_of(self, shape: str, place: str, price_model: str) -> str:
        """Id of an offer: shape, zone or region, price model."""
        return f"{self.provider}:{' '.join(place.split())}:{shape}:{price_model}"

    def offer(
        self, *, shape: str, region: str, zone: str, price_model: str, price: Decimal, source: str, as_of: str,
        quality: str = "", note: str = "",
    ) -> bool:  # fmt: skip
        """Keep an offer; False when the same one is there already at the same price.

        Parameters
        ----------
        shape
            Its name, without the provider.
        region, zone
            Where it is sold; an empty zone: the price holds for the region.
        price_model
            On which terms; a part of the offer's id.
        price
            Of one shape; kept to the micro-dollar.  [USD/h]
        source
            Where the price is from.
        as_of
            ISO date of the price; empty: not known, and `copied` stands in its place.
        quality
            What is doubtful about the price, in the words of offers; empty: nothing.
        note
            Why, in a sentence.
        """
        model = price_model
        region, zone = " ".join(region.split()), " ".join(zone.split())  # an end of a line would break the file
        name = self.name_of(shape, zone or region, model)
        cells = {
            "offer": name,
            "provider": self.provider,
            "shape": shape,
            "region": region,
            "zone": zone,
            "country": self.countries.get(region, ""),
            "price_model": model,
            PRICE: format(price.quantize(STEP).normalize(), "f"),
            "as_of": as_of or self.copied,
            "status": "seen" if as_of else "date-unknown",
            "quality": quality,
            "source": source,
            "note": note,
        }
        known = self.offers.get(name)
        if known is not None and known[PRICE] == cells[PRICE]:
            return False
        if known is not None:
            number = 2
            while f"{name}:{number}" in self.offers:
                number += 1
            cells["offer"] = f"{name}:{number}"
        self.offers[cells["offer"]] = cells
        return True

    def text(self) -> str:
        """The offers as a price file of ours, in order of their ids."""
        out = io.StringIO(newline="")
        used = [name for name in COLUMNS if any(row.get(name) for row in self.offers.values()) or name in REQUIRED]
        writer = csv.DictWriter(out, fieldnames=used, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(self.offers[name] for name in sorted(self.offers))
        return out.getvalue()


def merged(imported: Iterable[Imported]) -> dict[str, str]:
    """One price file a provider, from all files that hold its prices; the first of two equal ids stays."""
    together: dict[str, Imported] = {}
    for one in imported:
        whole = together.setdefault(one.provider, Imported(file="", provider=one.provider))
        whole.offers = {**one.offers, **whole.offers}
    return {provider: whole.text() for provider, whole in sorted(together.items()) if whole.offers}


def countries_of(catalog: Catalog, provider: str) -> dict[str, str]:
    """Country by region of a provider, as other offers of a catalog have it; ISO 3166 alpha-2."""
    return {offer.region: offer.country for offer in catalog.offers if offer.provider == provider and offer.country}


def extending_text(imported: Iterable[Imported], catalog: Catalog, name: str) -> str:
    """A catalog.yaml that extends the packaged catalog, with the imported prices in place of its own.

    Whoever is imported is imported whole: what the old list had and the new one has not is sold no more, but for what
    the new one has at a price that cannot be read: that stays as it was.

    Parameters
    ----------
    imported
        Files that were read; one without offers changes nothing.
    catalog
        The packaged one: an entry that takes out offers of a provider is written where it has some.
    name
        Of the new catalog.
    """
    imported = list(imported)
    entries = []
    for provider in sorted({one.provider for one in imported if one.offers}):
        unread = unread_in([one for one in imported if one.provider == provider])
        names = [offer.id for offer in catalog.offers if offer.provider == provider]
        gone = [name for name in names if not unread(name)]
        if len(gone) < len(names):
            entries += [f"offer: {json.dumps(name)}" for name in gone]
        elif names:
            entries.append(f"provider: {json.dumps(provider)}")
    lines = ["# The packaged catalog, with the prices under offers/ in place of its own of the same providers.",
             "schema: catalog/v1", f"name: {json.dumps(name)}", "extends: default"]  # fmt: skip
    if entries:
        lines += ["offers:", *(f"  - {{{entry}, remove: true}}" for entry in entries)]
    return "\n".join(lines) + "\n"


def unread_in(imported: Iterable[Imported]) -> Callable[[str], bool]:
    """Whether a price of an offer stands in files and is no number, and no other row of them has it."""
    imported = list(imported)
    unread = {name for one in imported for name in one.unread} - {name for one in imported for name in one.offers}
    return lambda name: ":".join(name.split(":")[:4]) in unread  # the fifth part counts offers of one name


def price_of(text: str) -> Decimal | str:
    """A price above 0, or why it is none: an empty cell, a zero and NaN are not offered, other words no number.

    Examples
    --------
    >>> price_of("1.50"), price_of(""), price_of("0.0"), price_of("nan")
    (Decimal('1.50'), 'no price: not offered', 'no price: not offered', 'no price: not offered')
    >>> price_of("23,92"), price_of("-1")
    ('no number for a price', 'no number for a price')
    """
    text = text.strip()
    if text.lower() in _NONE:
        return NOT_OFFERED
    try:
        price = Decimal(text)
    except InvalidOperation:
        return UNREADABLE
    if price.is_nan() or 0 <= price < STEP:
        return NOT_OFFERED
    return price if STEP <= price <= MOST_USD_PER_HOUR else UNREADABLE


def reasons(imported: Iterable[Imported]) -> dict[str, int]:
    """How many rows were left out for each reason, the commonest first."""
    counts = Counter(skip.reason for one in imported for skip in one.skipped)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
