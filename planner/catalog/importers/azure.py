"""Price lists of Azure (items of its Retail Prices API, whole or cut down to a few keys) as offers.

An item is a price of one meter in one region. Machines are told by the shapes of the catalog, their names compared
without "Standard_", underscores and spaces. Windows, dedicated hosts, promotions and low priority are other terms and
left out; so is a machine of which a region has several prices with nothing that says on which terms.

Source of the layout: Microsoft, "Azure Retail Prices REST API overview", read 2026-11; the short form as files on
GitHub have it (Jumbo2020/gpu_prices).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from planner.carriers import dataclass
from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.importers.terms import ListTerms, in_dollars
from planner.catalog.model import Catalog

PROVIDER = "azure"
_OTHER_TERMS = ("Windows", "Dedicated Host", "Low Priority", "Promo", "CloudServices", "Cloud Services")
_TERMS = {"1 Year": ("commitment_1y", 8760), "3 Years": ("commitment_3y", 26280)}  # of a Reservation: price of it whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What is read of one item."""

    number: int
    name: str
    product: str
    region: str
    price: str
    currency: str
    unit: str
    kind: str
    term: str

    @property
    def model(self) -> str:
        """Price model; empty where it is none of ours."""
        if self.kind == "Reservation":
            return _TERMS.get(self.term, ("", 0))[0]
        return "spot" if "Spot" in self.name else "on_demand"


def is_azure(data: object) -> bool:
    """Whether a JSON document is such a list."""
    items = _items(data)
    return bool(items) and all(isinstance(item, Mapping) and "skuName" in item for item in items)


def read_azure(
    data: object, file: str, catalog: Catalog, terms: ListTerms, *, source: str = "", as_of: str = "", copied: str = ""
) -> Imported:
    """The items of a JSON document as offers.

    Parameters
    ----------
    data
        The document: a list of items, or the answer of the API with them under Items.
    terms
        Rate and tax, where the list is not in dollars or says something of tax.

    Raises
    ------
    InputError
        The list is in a currency of which no rate is given, or says something of tax and nobody says what it is.
    """
    found = Imported(file=file, provider=PROVIDER, copied=copied, countries=countries_of(catalog, PROVIDER))
    shapes = {_plain(shape.name): shape for shape in catalog.shapes.values() if shape.provider == PROVIDER}
    groups: dict[tuple[str, str, str], list[_Item]] = defaultdict(list)
    for number, raw in enumerate(_items(data), start=1):
        found.rows += 1
        item = _item(number, raw)
        what = f"{item.name or '(no name)'} in {item.region}"
        reason = _refusal(item, _plain(item.name) in shapes)
        if reason:
            found.skip(number, what, reason)
        else:
            groups[_plain(item.name), item.region, item.model].append(item)
    for (name, region, model), items in groups.items():
        shape, prices = shapes[name], {item.price for item in items}
        for item in items:
            price = price_of(item.price)
            if isinstance(price, str):
                found.no_price(item.number, f"{item.name} in {region}", price, (shape.name, region, model))
            elif len(prices) > 1:
                found.skip(item.number, f"{item.name} in {region}", "several prices, and nothing says on which terms")
            else:
                hours = _TERMS[item.term][1] if item.kind == "Reservation" else 1
                dollars = in_dollars(price / hours, item.currency, terms, file)
                if found.offer(shape=shape.name, region=region, zone="", price_model=model, price=dollars,
                               source=source or file, as_of=as_of):  # fmt: skip
                    found.taken += 1
                else:
                    found.skip(item.number, f"{item.name} in {region}", "the same row again")
    return found


def _items(data: object) -> Sequence[Any]:
    items = data.get("Items") if isinstance(data, Mapping) else data
    return items if isinstance(items, list) else ()


def _item(number: int, raw: Mapping[str, Any]) -> _Item:
    def text(*names: str) -> str:
        return next((str(raw[name]).strip() for name in names if raw.get(name) not in (None, "")), "")

    arm, sku, meter = text("armSkuName"), text("skuName"), text("meterName")
    special = " ".join(word for word in ("Spot", "Low Priority") if word in sku or word in meter)
    return _Item(
        number=number, name=f"{arm} {special}".strip() if arm else sku, product=f"{text('productName')} {sku} {meter}",
        region=text("armRegionName", "region"), price=_number(raw, "retailPrice", "pricePerHour"),
        currency=text("currencyCode", "currency"), unit=text("unitOfMeasure"), kind=text("type"),
        term=text("reservationTerm"),
    )  # fmt: skip


def _number(raw: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = raw.get(name)
        if value is not None:
            return json.dumps(value)  # a text keeps its quotes: it is no number
    return ""


def _plain(name: str) -> str:
    text = name.removeprefix("Standard_").replace("Spot", "").replace("Low Priority", "")
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _refusal(item: _Item, known: bool) -> str:
    """Why an item cannot be an offer; empty when it can."""
    if not known:
        return "no shape of this machine"
    other = next((words for words in _OTHER_TERMS if words in item.product), "")
    if other:
        return f"sold on other terms: {other}"
    if item.unit not in ("", "1 Hour"):
        return f"priced by '{item.unit[:20]}', not by the hour"
    return "" if item.model else f"a term that is none of ours: '{(item.term or item.kind)[:20]}'"
