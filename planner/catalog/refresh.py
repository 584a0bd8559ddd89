"""Price lists that the user has downloaded, against the catalog: what is new, gone, dearer, cheaper, as before.

Nothing is fetched. The form of each file is told by what is in it; what a file leaves open (whose prices, of which day,
in which currency, with tax or without) is asked.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import PurePath

from planner.carriers import dataclass
from planner.catalog.importers import cloud_lists, tool_lists
from planner.catalog.importers.cloud_lists import ListTerms, is_pairs, read_pairs
from planner.catalog.importers.imported import STEP, Imported, unread_in
from planner.catalog.model import Catalog, Offer
from planner.catalog.offers import PRICE
from planner.errors import InputError, Place, PlanError
from planner.files import StrPath, read_text

MOST_BYTES = 64_000_000
FORMS = (
    "SkyPilot's vms.csv, gpuhunt's PROVIDER.csv, items of Azure's Retail Prices API, AWS prices by TYPE/REGION, SKUs "
    "of Google's Billing Catalog API or of its pricing export"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """An offer before and after; None where there is none."""

    offer: str
    device: str
    old_microusd: int | None
    new_microusd: int | None
    old_as_of: str = ""
    quality: str = ""

    @property
    def change(self) -> float | None:
        """Fraction by which it is dearer."""
        if self.old_microusd is None or self.new_microusd is None:
            return None
        return self.new_microusd / self.old_microusd - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What lists say that the catalog does not, offer by offer."""

    new: tuple[Repriced, ...]
    gone: tuple[Repriced, ...]  # of the providers and price models of the lists, and in none of them, readable or not
    dearer: tuple[Repriced, ...]
    cheaper: tuple[Repriced, ...]
    same: tuple[Repriced, ...]


def read_list(
    path: StrPath, catalog: Catalog, terms: ListTerms, *, provider: str = "", price_model: str = "", source: str = "",
    as_of: str = "", copied: str = "",
) -> Imported:  # fmt: skip
    """One downloaded price list, whatever its form.

    Parameters
    ----------
    provider
        Whose prices it holds, where neither the file nor its folder says it.
    price_model
        On which terms, where the file does not say it.
    source, as_of, copied
        As for the readers of each form.

    Raises
    ------
    InputError
        The form is none that is known, or the file leaves something open that nobody said.
    """
    text = read_text(str(path), limit_bytes=MOST_BYTES)
    return list_of(text, str(path), catalog, terms, provider=provider, price_model=price_model, source=source,
                   as_of=as_of, copied=copied)  # fmt: skip


def list_of(
    text: str, name: str, catalog: Catalog, terms: ListTerms, *, provider: str = "", price_model: str = "",
    source: str = "", as_of: str = "", copied: str = "",
) -> Imported:  # fmt: skip
    """As `read_list`, of the text of a file of that name.

    Parameters
    ----------
    text
        What the file holds; its beginning or the names of its columns tell the form.
    name
        Path of the file, for messages; a table's folder or file name may tell whose prices it holds.
    catalog
        Whose shapes tell what a row sells.
    terms
        Rate and tax, which only the user can say.
    provider
        Whose prices a table holds; empty: as its folder or file is called. JSON is of Azure, AWS or Google.
    price_model
        On which terms prices of AWS are, which has to be said; the other forms say it themselves.
    source
        Where the list is from; empty: the path.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.

    Raises
    ------
    InputError, UsageError
        The form is none that is known, or the file leaves something open that nobody said, or there are no such terms.
    """
    dated = {"source": source, "as_of": as_of, "copied": copied}
    if text.lstrip()[:1] in ("[", "{"):
        data = _json(text, name)
        if cloud_lists.is_azure(data):
            return cloud_lists.read_azure(data, name, catalog, terms, **dated)
        if cloud_lists.is_google(data):
            return cloud_lists.read_google(data, name, catalog, terms, **dated)
        if is_pairs(data):
            return read_pairs(data, name, catalog, terms, price_model=price_model, **dated)
        raise _unknown_form(name)
    header = {cell.strip() for cell in next(csv.reader(io.StringIO(text, newline="")), [])}
    if set(tool_lists.SKYPILOT_COLUMNS) <= header:
        whose = provider or _sold_by(PurePath(name).parent.name, tool_lists.SKYPILOT_FOLDERS, catalog, name)
        return _without_tax(tool_lists.read_skypilot(name, catalog, provider=whose, text=text, **dated), terms)
    if set(tool_lists.GPUHUNT_COLUMNS) <= header:
        whose = provider or _sold_by(PurePath(name).stem, tool_lists.GPUHUNT_PROVIDERS, catalog, name)
        return _without_tax(tool_lists.read_gpuhunt(name, catalog, provider=whose, text=text, **dated), terms)
    raise _unknown_form(name)


def refreshed(imported: Sequence[Imported], catalog: Catalog) -> Refreshed:
    """What the lists change, each offer once; the first of two equal ids stays, as in what is written."""
    rows: dict[str, dict[str, str]] = {}
    for one in imported:
        rows = {**one.offers, **rows}
    known = {offer.id: offer for offer in catalog.offers}
    told = [_repriced(name, row, known.get(name), catalog) for name, row in sorted(rows.items())]
    unread = unread_in(imported)
    listed = {(row["provider"], row["price_model"]) for row in rows.values()}
    gone = [
        Repriced(
            offer=offer.id, device=catalog.shapes[offer.shape].device, old_microusd=offer.price_microusd_per_hour,
            new_microusd=None, old_as_of=offer.provenance.as_of,
        )
        for offer in catalog.offers
        if (offer.provider, offer.price_model) in listed and offer.id not in rows and not unread(offer.id)
    ]  # fmt: skip
    both = [one for one in told if one.change is not None]
    return Refreshed(
        new=tuple(one for one in told if one.old_microusd is None),
        gone=tuple(gone),
        dearer=tuple(one for one in both if (one.change or 0) > 0),
        cheaper=tuple(one for one in both if (one.change or 0) < 0),
        same=tuple(one for one in both if one.change == 0),
    )


def overlay_text(changes: Refreshed, name: str, *, whole: bool) -> str:
    """A catalog.yaml that extends the packaged catalog; `whole`: what the lists lack is sold no more.

    Parameters
    ----------
    changes
        What the lists say that the packaged catalog does not.
    name
        Of the new catalog.
    whole
        The lists are complete: offers that are gone from them are removed; else they stay.
    """
    lines = ["# The packaged catalog, with newer prices under offers/.", "schema: catalog/v1",
             f"name: {json.dumps(name)}", "extends: default"]  # fmt: skip
    if whole and changes.gone:
        lines += ["offers:", *(f"  - {{offer: {json.dumps(one.offer)}, remove: true}}" for one in changes.gone)]
    return "\n".join(lines) + "\n"


def _repriced(name: str, row: dict[str, str], old: Offer | None, catalog: Catalog) -> Repriced:
    return Repriced(
        offer=name,
        device=catalog.shapes[f"{row['provider']}/{row['shape']}"].device,
        old_microusd=None if old is None else old.price_microusd_per_hour,
        new_microusd=int(Decimal(row[PRICE]) * 1_000_000),
        old_as_of="" if old is None else old.provenance.as_of,
        quality=row["quality"],
    )


def _without_tax(found: Imported, terms: ListTerms) -> Imported:
    """The same list less the tax that the user says is in its prices, which are in dollars by their form."""
    for row in found.offers.values() if terms.tax else ():
        row[PRICE] = format((Decimal(row[PRICE]) / (1 + (terms.tax or 0))).quantize(STEP).normalize(), "f")
    return found


def _sold_by(name: str, spellings: dict[str, str], catalog: Catalog, file: str) -> str:
    """The provider that a name of a file or folder means.

    Raises
    ------
    InputError
        It means none: whose prices they are is asked.
    """
    whose = spellings.get(name, name)
    if whose not in {shape.provider for shape in catalog.shapes.values()}:
        hint = "say it: --provider lambda"
        raise InputError.of("missing-field", f"{file} does not say whose prices it holds", hint=hint)
    return whose


def _json(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if getattr(error, "msg", "") == "Extra data" and text.startswith("{"):  # a line each, as BigQuery writes them
            return [_json(line, name) for line in text.splitlines() if line.strip()]
        line = getattr(error, "lineno", 1)
        place = Place(file=name, line=line, column=getattr(error, "colno", 1))
        raise InputError.of("bad-json", "not JSON", place=place, hint="download the file again") from None


def _unknown_form(name: str) -> PlanError:
    return InputError.of("unknown-format", f"{name} is no price list that plan can read", hint=f"known: {FORMS}")
