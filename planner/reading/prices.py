"""Lists of prices: of models by the token (LiteLLM), of nodes (OpenCost), and the devices that SkyPilot offers."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import Any

from planner.reading.bills import cost_of
from planner.reading.inventory import device_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.points import number_of
from planner.reading.reading import Piece, Reading
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import csv_text, places_of, printable, rows_of

_MILLION = 10**6
_MOST_ROWS = 200_000
_DEAREST = Decimal(10) ** 6  # US dollars of a million tokens
_COLUMNS = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "input_cost_per_token_batches",
            "output_cost_per_token_batches")  # fmt: skip


def recognise_models(source: Source) -> Match:
    """Models with costs per token and their provider."""
    if source.head_text.lstrip()[:1] != "{":
        return NOTHING
    keys = head_keys(source)
    return fit({each: each in keys for each in ("input_cost_per_token", "output_cost_per_token", "litellm_provider",
                                                 "mode")}, tool="LiteLLM", ceiling=0.98)  # fmt: skip


def read_models(source: Source, asked: Asked) -> Reading:
    """US dollars of a million tokens by model; what is sold by other units is counted, not taken."""
    reading = Reading(kind="model-prices", title="prices of models by the token", source=source.name, of="models")
    document = document_of(source)
    if not isinstance(document, dict):
        raise refused(source, "bad-json", f"{source.name} is no map of models to prices")
    rows: list[tuple[str, str, str, list[Decimal | None]]] = []
    modes: Counter[str] = Counter()
    free = 0
    for number, (model, entry) in enumerate(document.items(), start=1):
        if model == "sample_spec":
            reading.skipped.add("the list's own explanation", number)
        elif not isinstance(entry, dict):
            reading.skipped.add("JSON, but no entry of a model", number)
        elif not any(entry.get(column) is not None for column in _COLUMNS[:2]):
            reading.skipped.add("no price by the token", number)
        elif isinstance(found := _per_million(entry), str):
            reading.skipped.add(found, number)
        elif len(rows) >= _MOST_ROWS:
            reading.skipped.add(f"more than {_MOST_ROWS:,} models", number)
        else:
            reading.taken += 1
            free += not any(found)
            mode = printable(str(entry.get("mode") or "no mode"), 30)
            modes[mode if mode in modes or len(modes) < 20 else "other"] += 1
            rows.append((str(model)[:300], printable(str(entry.get("litellm_provider", ""))), mode, found))
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", "see what was skipped")
    for mode, count in modes.most_common(10):
        reading.show(f"models for {mode}", count)
    for place, what in ((0, "prompt"), (1, "answer")):
        paid = [cost for _, _, mode, costs in rows if mode == "chat" and (cost := costs[place])]
        if paid:
            reading.show(f"{what}, cheapest of chat", float(min(paid)), "USD/Mtok")
            reading.show(f"{what}, dearest of chat", float(max(paid)), "USD/Mtok")
    if free:
        reading.note(f"{free:,} models cost nothing by this list: it keeps what is not sold by the token at 0, too")
    reading.understood["prices"] = "US dollars a million tokens; tiers by length are left out"
    columns = ["model", "provider", "mode", "input", "output", "cached", "batch_input", "batch_output"]
    text = csv_text(columns, ([model, provider, mode, *("" if each is None else each for each in costs)]
                              for model, provider, mode, costs in sorted(rows, key=lambda row: row[0])))  # fmt: skip
    reading.pieces.append(
        Piece(what="prices", name="model-prices.csv", text=text, says="USD a million tokens by model")
    )
    return reading


def _per_million(entry: dict[str, Any]) -> list[Decimal | None] | str:
    found: list[Decimal | None] = []
    for column in _COLUMNS:
        value = entry.get(column)
        cost = None if value is None or number_of(value) is None else cost_of(str(value).strip())
        if value is not None and cost is None:
            return "no number for a price"
        if cost is not None and not 0 <= cost * _MILLION <= _DEAREST:
            return "a negative price, or one above a dollar a token"
        found.append(None if cost is None else cost * _MILLION)
    return found


_ASSETS = {"id": ("instanceid",), "class": ("assetclass",), "price": ("marketpricehourly",), "region": ("region",),
           "until": ("endtimestamp",)}  # fmt: skip


def recognise_assets(source: Source) -> Match:
    """AssetClass, InstanceID and MarketPriceHourly."""
    places = places_of(header_of(source)[0], _ASSETS)
    return fit({role: role in places for role in ("id", "class", "price", "until")}, tool="OpenCost", ceiling=0.98)


def read_assets(source: Source, asked: Asked) -> Reading:
    """Prices of an hour of a node or device, as somebody set them."""
    reading = Reading(kind="asset-prices", title="prices of nodes and devices", source=source.name, of="rows")
    classes: Counter[str] = Counter()
    for line, row in rows_of(source, _ASSETS, ("id", "class", "price"), reading.skipped):
        price = cost_of(row["price"])
        if price is None or price < 0:
            reading.skipped.add("no price", line)
        elif not row["id"] or not row["class"]:
            reading.skipped.add("no name or class", line)
        else:
            reading.taken += 1
            kind = printable(row["class"], 20)
            classes[kind if kind in classes or len(classes) < 20 else "other"] += 1
            if reading.taken <= 40:
                reading.show(f"{kind} {printable(row['id'])}", float(price), "USD/h")
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", "see what was skipped")
    for kind, count in classes.most_common():
        reading.show(f"prices of a {kind}", count)
    reading.understood["currency"] = "US dollars, as OpenCost takes them"
    reading.note("these are prices of one's own: plan solve --price DEVICE=PRICE takes one of them")
    return reading


_HEAD = re.compile(r"^\s*(?:COMMON|OTHER)?_?(?:GPU|ACCELERATOR|TPU|[A-Z]+_GPU|[A-Z]+_TPU)\s+AVAILABLE_QUANTITIES\s*$")
_ROW = re.compile(r"^\s*(\S{1,80})\s+(\d{1,5}(?:\s*,\s*\d{1,5})*)\s*$")


def recognise_sky(source: Source) -> Match:
    """The two columns of sky show-gpus."""
    heads = sum(bool(_HEAD.match(line[:300])) for line in source.first_lines)
    return Match(score=0.97, found=("AVAILABLE_QUANTITIES",), tool="sky show-gpus") if heads else Match(
        score=0.0, missing=("a GPU column with AVAILABLE_QUANTITIES",))  # fmt: skip


def read_sky(source: Source, asked: Asked) -> Reading:
    """Devices and how many of them one machine has."""
    reading = Reading(kind="sky-gpus", title="accelerators that SkyPilot offers", source=source.name, of="rows")
    unknown: list[str] = []
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip() or _HEAD.match(line[:300]):
            continue
        found = _ROW.match(line[:2000])
        if not found:
            reading.skipped.add("no device with quantities", number)
            continue
        reading.taken += 1
        name = printable(found.group(1))
        device = device_of(name)
        if not device:
            unknown.append(name)
        if reading.taken <= 60:
            reading.show(
                f"{name} ({device or 'not in the catalog'})", ", ".join(re.findall(r"\d+", found.group(2))), "a node"
            )
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no device of {source.name} could be taken", "sky show-gpus > FILE")
    if unknown:
        reading.note(f"not in the catalog: {', '.join(unknown[:20])}")
    reading.note("it says what can be asked for, without prices: plan catalog list shows what the catalog sells")
    return reading


KINDS = (
    Kind(name="model-prices", title="prices of models by the token",
         looks_for="JSON of models with input_cost_per_token and litellm_provider (LiteLLM)",
         recognise=recognise_models, read=read_models),
    Kind(name="asset-prices", title="prices of nodes and devices",
         looks_for="a first line of InstanceID, AssetClass and MarketPriceHourly (OpenCost)",
         recognise=recognise_assets, read=read_assets),
    Kind(name="sky-gpus", title="accelerators that SkyPilot offers",
         looks_for="a first line of GPU and AVAILABLE_QUANTITIES (sky show-gpus)",
         recognise=recognise_sky, read=read_sky),
)  # fmt: skip
