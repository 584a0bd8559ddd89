"""Prices of models by the token (LiteLLM), of devices (llm-d, RunPod's form), and of one's own nodes (OpenCost)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from planner.catalog.load import load_catalog
from planner.reading.bills import cost_of
from planner.reading.inventory import device_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import csv_text, places_of, printable, rows_of
from planner.yamlfile.writing import flow_text

_MILLION = 10**6
_MOST_ROWS = 200_000
_MOST_DEVICES = 1_000
_SHOWN = 30
_DEAREST = Decimal(10) ** 6  # US dollars of a million tokens
_COLUMNS = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
            "input_cost_per_token_batches", "output_cost_per_token_batches")  # fmt: skip
_ROUTED = {"input_cost_per_token": "prompt", "output_cost_per_token": "completion",
           "cache_read_input_token_cost": "input_cache_read"}  # fmt: skip
_Model = tuple[str, str, str, list[Decimal | None]]  # its name, provider, mode, prices as _COLUMNS  [USD/Mtok]


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
    rows: list[_Model] = []
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
    return _models_told(source, reading, rows, modes, free)


def _models_told(source: Source, reading: Reading, rows: list[_Model], modes: Counter[str], free: int) -> Reading:
    """What tokens of models cost, and the whole as a table."""
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
        reading.note(f"{free:,} models cost nothing by this list: what is not sold by the token stands at 0, too")
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


def recognise_router(source: Source) -> Match:
    """Models with a pricing of prompt and completion."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("id", "pricing", "prompt", "completion", "context_length")}
    return fit(marks, tool="OpenRouter", ceiling=0.97)


def read_router(source: Source, asked: Asked) -> Reading:
    """As `read_models`, of a list of models with their pricing."""
    reading = Reading(kind="router-prices", title="prices of models by the token", source=source.name, of="models")
    document = document_of(source)
    entries = document.get("data") if isinstance(document, dict) else document
    rows: list[_Model] = []
    for number, entry in enumerate(entries if isinstance(entries, list) else (), start=1):
        pricing = entry.get("pricing") if isinstance(entry, dict) else None
        if not isinstance(pricing, dict) or not any(
            pricing.get(_ROUTED[column]) is not None for column in _COLUMNS[:2]
        ):
            reading.skipped.add("no price by the token", number)
        elif number_of(pricing.get("prompt")) == -1:
            reading.skipped.add("a price that depends on the model that is chosen", number)
        elif isinstance(found := _per_million({own: pricing.get(name) for own, name in _ROUTED.items()}), str):
            reading.skipped.add(found, number)
        elif len(rows) >= _MOST_ROWS:
            reading.skipped.add(f"more than {_MOST_ROWS:,} models", number)
        else:
            reading.taken += 1
            name = str(entry.get("id") or "")[:300]
            rows.append((name, printable(name.split("/")[0]), "chat", found))
    return _models_told(source, reading, rows, Counter(chat=len(rows)), sum(not any(row[3]) for row in rows))


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


# devices with a price an hour by cloud: a catalog.yaml that extends the packaged catalog

_CLOUD = re.compile(r"cost_per_hour_([a-z][a-z0-9]{1,30})")
_LARGEST_USD = Decimal(100_000)  # an hour of a device


def recognise_devices(source: Source) -> Match:
    """gpu_types with a cost an hour."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    marks = {"gpu_type": "gpu_type" in keys, "cost_per_hour_usd": any(_CLOUD.fullmatch(key) for key in keys),
             "memory_gb": "memory_gb" in keys}  # fmt: skip
    return fit(marks, tool="llm-d planner", ceiling=0.96)


def read_devices(source: Source, asked: Asked) -> Reading:
    """What an hour of each device costs, by cloud; those that the catalog sells become an overlay of it."""
    reading = Reading(kind="device-prices", title="prices of devices by cloud", source=source.name, of="devices",
                      tool="llm-d planner")  # fmt: skip
    catalog = load_catalog()
    sold = {(offer.provider, catalog.shapes[offer.shape].device) for offer in catalog.offers
            if offer.price_model == "on_demand"}  # fmt: skip
    document = document_of(source)
    rows = document.get("gpu_types", document) if isinstance(document, dict) else document
    entries: list[tuple[str, str, Decimal]] = []
    for number, row in enumerate(rows if isinstance(rows, list) else (), start=1):
        named = _named(row) if isinstance(row, dict) else None
        prices = _by_cloud(row) if isinstance(row, dict) else {}
        if named is None:
            reading.skipped.add("no name of a device", number)
        elif not prices:
            reading.skipped.add("no price of an hour", number)
        elif reading.taken >= _MOST_DEVICES:
            reading.skipped.add(f"more than {_MOST_DEVICES:,} devices", number)
        else:
            reading.taken += 1
            name, device = named
            for cloud, price in sorted(prices.items()):
                reading.show(f"{name} ({device or 'not in the catalog'}), {cloud}", float(price), "USD/h a device")
                if (cloud, device) in sold:
                    entries.append((cloud, device, price))
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", "see what was skipped")
    reading.understood["prices"] = "US dollars an hour of one device, on demand, assumed"
    reading.understood["date"] = "not told: the day on which the list was read"
    if entries:
        text = _overlay(entries, asked.today, source.name)
        says = f"{len(entries)} prices for --out my-hardware/catalog.yaml, then plan solve --hardware my-hardware"
        reading.pieces.append(Piece(what="overlay", name="catalog.yaml", text=text, says=says))
    return reading


def _named(row: dict[str, Any]) -> tuple[str, str] | None:
    """A device as the list names it, and its id in the catalog; None for no name."""
    name = printable(str(row.get("gpu_type") or ""), 60)
    memory = number_of(row.get("memory_gb"))
    aliases = row.get("aliases")
    names = [row.get("node_selector_label"), *(aliases if isinstance(aliases, list) else []), name]
    size = memory * 2.0**30 if memory and memory > 0 else None
    found = (device for each in names if isinstance(each, str) and (device := device_of(each, size)))
    return (name, next(found, "")) if name else None


def _by_cloud(row: dict[str, Any]) -> dict[str, Decimal]:
    """Prices by cloud; "usd" stands for no cloud."""
    prices = {}
    for key, value in row.items():
        cloud = _CLOUD.fullmatch(str(key)[:60])
        price = cost_of(str(value)) if cloud and number_of(value) is not None else None
        if cloud and price is not None and 0 < price <= _LARGEST_USD:
            prices[cloud.group(1) if cloud.group(1) != "usd" else "any cloud"] = price
    return prices


def _overlay(entries: list[tuple[str, str, Decimal]], day: str, file: str) -> str:
    """A catalog.yaml that gives offers other prices."""
    lines = ["# The packaged catalog at the prices of a list.", "schema: catalog/v1", "name: read", "extends: default",
             f"as_of: {day}", "offers:"]  # fmt: skip
    source = flow_text(f"file {printable(PurePath(file).name)}")
    for cloud, device, price in sorted(set(entries)):
        lines.append(f"  - {{provider: {cloud}, device: {device}, price_model: on_demand,")
        lines.append(f"     price_per_device: ${price:f}/h, source: {source}}}")
    return "\n".join(lines) + "\n"


# devices by the name that a shop shows: RunPod's form, and Google's list in that form

_SHOP = re.compile(r"^(?:Commitment v1: |Reserved )?(?:Nvidia |NVIDIA )?(?:Tesla )?(.{1,60}?)(?: GPU\b.*)?$")
_TERMS = (
    (re.compile(r"^Licensing Fee"), ""),
    (re.compile(r"DWS |Calendar Mode|^Reserved "), "other terms"),
    (re.compile(r"Commitment.* 1 Years?$"), "for 1 year"),
    (re.compile(r"Commitment.* 3 Years?$"), "for 3 years"),
    (re.compile(r"Spot Preemptible"), "spot"),
)  # fmt: skip
_SIZED = re.compile(r"\b(\d{2,3}) ?GB\b")


def recognise_shop(source: Source) -> Match:
    """displayName and securePrice."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("displayName", "securePrice")}
    return fit(marks, tool="RunPod's form", ceiling=0.95)


def read_shop(source: Source, asked: Asked) -> Reading:
    """What an hour of a device costs by name and terms."""
    reading = Reading(kind="shop-prices", title="prices of devices by their names", source=source.name, of="prices",
                      tool="RunPod's form")  # fmt: skip
    rows = _shop_rows(document_of(source))
    names = (_SHOP.match(str(row.get("displayName", ""))[:300]) for row in rows if isinstance(row, dict))
    sized = {name.group(1) for name in names if name and _SIZED.search(name.group(1))}
    found: defaultdict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for number, row in enumerate(rows, start=1):
        taken = _shop_prices(row, sized) if isinstance(row, dict) else "JSON, but no price"
        if isinstance(taken, str):
            reading.skipped.add(taken, number)
        elif reading.taken >= _MOST_ROWS:
            reading.skipped.add(f"more than {_MOST_ROWS:,} prices", number)
        else:
            reading.taken += 1
            for device, terms, price in taken:
                found[device, terms].append(price)
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", "see what was skipped")
    for (device, terms), prices in sorted(found.items())[:_SHOWN]:
        reading.show(f"{device} {terms}, cheapest of {len(prices)}", float(min(prices)), "USD/h a device")
        if max(prices) > min(prices):
            reading.show(f"{device} {terms}, dearest", float(max(prices)), "USD/h a device")
    reading.understood["prices"] = "US dollars an hour of one device, assumed; Google bills the machine around it apart"
    reading.note("devices without their machines: no offers follow; plan solve --price DEVICE=PRICE takes one of them")
    columns = ["device", "terms", "cheapest_usd_per_hour", "dearest_usd_per_hour", "prices"]
    text = csv_text(columns, ([device, terms, min(prices), max(prices), len(prices)]
                              for (device, terms), prices in sorted(found.items())))  # fmt: skip
    reading.pieces.append(Piece(what="history", name="device-prices.csv", text=text, says="prices by device and terms"))
    return reading


def _shop_rows(document: Any) -> list[Any]:
    """Rows, whether bare or below data and gpuTypes."""
    for key in ("data", "gpuTypes"):
        document = document.get(key, document) if isinstance(document, dict) else document
    return document if isinstance(document, list) else []


def _shop_prices(row: dict[str, Any], sized: set[str]) -> list[tuple[str, str, Decimal]] | str:
    """Device, terms and price of a row, or why there is none."""
    text = str(row.get("displayName") or "")[:300]
    terms = next((said for pattern, said in _TERMS if pattern.search(text)), "on demand")
    if not text or not terms:
        return "no device: a fee"
    prices = {"": row.get("securePrice"), ", community": row.get("communityPrice")}
    found = {kind: cost_of(str(value)) for kind, value in prices.items() if number_of(value) is not None}
    paid = {kind: price for kind, price in found.items() if price and 0 < price <= _LARGEST_USD}
    if not paid:
        return "no price: not offered"
    match = _SHOP.match(text)
    name = (match.group(1) if match else text).replace(" Mega", "")
    memory = number_of(row.get("memoryInGb"))
    size = _SIZED.search(name)
    gigabytes = float(size.group(1)) if size else memory
    if gigabytes is None and name.strip() == "A100" and any(each.startswith("A100 80") for each in sized):
        gigabytes = 40.0  # where the one with 80 GB stands beside it
    device = device_of(name, gigabytes * 2.0**30 if gigabytes and gigabytes > 0 else None)
    return [(device or printable(name, 60), terms + kind, price) for kind, price in paid.items()]


# what OpenCost takes a core, a gibibyte and a device to cost

_PARTS = {"CPU": "core", "spotCPU": "core, spot", "RAM": "GiB of memory", "spotRAM": "GiB of memory, spot",
          "GPU": "device", "spotGPU": "device, spot", "storage": "GiB of storage",
          "zoneNetworkEgress": "GiB to another zone", "regionNetworkEgress": "GiB to another region",
          "internetNetworkEgress": "GiB to the internet"}  # fmt: skip


def recognise_parts(source: Source) -> Match:
    """CPU, RAM and storage with prices."""
    if source.head_text.lstrip()[:1] != "{":
        return NOTHING
    keys = head_keys(source)
    return fit({each: each in keys for each in ("provider", "CPU", "RAM", "storage")}, tool="OpenCost", ceiling=0.95)


def read_parts(source: Source, asked: Asked) -> Reading:
    """Prices of an hour of parts of a machine."""
    reading = Reading(kind="part-prices", title="prices of parts of a machine", source=source.name, tool="OpenCost",
                      of="prices")  # fmt: skip
    document = document_of(source)
    for number, (key, value) in enumerate(document.items() if isinstance(document, dict) else (), start=1):
        price = cost_of(str(value).strip()) if number_of(value) is not None else None
        if key not in _PARTS:
            reading.skipped.add("not a price that is known", number)
        elif price is None or price < 0:
            reading.skipped.add("no price, or a negative one", number)
        else:
            reading.taken += 1
            reading.show(_PARTS[key], float(price), "USD" if "to" in _PARTS[key].split() else "USD/h")
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", "see what was skipped")
    reading.understood["currency"] = "US dollars, as OpenCost takes them"
    reading.note("it prices parts of machines that are there: a plan takes prices of whole machines or devices")
    return reading


KINDS = (
    Kind(name="model-prices", title="prices of models by the token",
         looks_for="JSON of models with input_cost_per_token and litellm_provider (LiteLLM)",
         recognise=recognise_models, read=read_models),
    Kind(name="router-prices", title="prices of models by the token",
         looks_for="JSON of models with pricing of prompt and completion (OpenRouter)",
         recognise=recognise_router, read=read_router),
    Kind(name="asset-prices", title="prices of nodes and devices",
         looks_for="a first line of InstanceID, AssetClass and MarketPriceHourly (OpenCost)",
         recognise=recognise_assets, read=read_assets),
    Kind(name="device-prices", title="prices of devices by cloud",
         looks_for="JSON of gpu_type with cost_per_hour_usd, cost_per_hour_aws … (llm-d planner)",
         recognise=recognise_devices, read=read_devices),
    Kind(name="shop-prices", title="prices of devices by their names",
         looks_for="JSON of displayName and securePrice (RunPod's form)", recognise=recognise_shop, read=read_shop),
    Kind(name="part-prices", title="prices of parts of a machine",
         looks_for="JSON of CPU, RAM and storage with prices (OpenCost)", recognise=recognise_parts, read=read_parts),
)  # fmt: skip
