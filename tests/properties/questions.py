"""Small random questions, and what may be changed about each: jobs and fleets on what is owned, rented and reserved."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from planner.catalog.model import Catalog
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Data = dict[str, Any]
HORIZONS_H = (240, 720, 8760)


def market(chance: random.Random) -> Catalog:
    """Two providers in two regions, nodes of one, two and eight devices of two kinds, by the hour and ahead."""

    def dollars(devices: int, low: float, high: float) -> float:
        return round(devices * chance.uniform(low, high), 3)

    sizes = {"north/one": 1, "north/eight": 8, "south/two": 2, "south/eight": 8}
    devices = [device("plain"), device("large", memory_bytes=2e11)]
    of = {"north/one": "plain", "north/eight": "plain", "south/two": "large", "south/eight": "plain"}
    shapes = [shape(name, device=of[name], devices=count) for name, count in sizes.items()]
    offers = []
    for name, count in sizes.items():
        for region in ("r1", "r2"):
            if region == "r2" and chance.random() < 0.4:
                continue
            most = chance.choice([None, None, 1, 3])
            offers.append(offer(name, dollars(count, 0.9, 1.6), region=region, max_shapes=most))
            if chance.random() < 0.5:
                offers.append(offer(name, dollars(count, 0.3, 0.8), region=region, price_model="spot"))
            if chance.random() < 0.6:
                offers.append(offer(name, dollars(count, 0.4, 1.2), region=region, price_model="commitment_1y"))
    return catalog(devices, shapes, offers)


def question(chance: random.Random) -> Data:
    """Up to three fleets and two jobs, under some limits."""
    horizon = chance.choice(HORIZONS_H)
    fleets = [_fleet(chance, number) for number in range(chance.choice([0, 1, 2, 2, 3]))]
    jobs = [_job(chance, number, horizon) for number in range(chance.choice([0, 1, 2]) if fleets else 2)]
    hardware: Data = {"pricing": ["on_demand"], "spot": {"interruptions": "0.01 /h"}}
    hardware["pricing"] += [one for one in ("spot", "commitment_1y") if chance.random() < 0.4]
    if chance.random() < 0.5:
        owned: Data = {"shape": chance.choice(["north/one", "north/eight", "south/two"]), "count": chance.randint(1, 3)}
        hardware["owned"] = [{**owned, "price": f"${chance.choice([0.1, 0.5, 2])}/h"}]
    if chance.random() < 0.3:
        hardware["quotas"] = [{"provider": chance.choice(["north", "south"]), "max_devices": chance.choice([4, 8, 16])}]
    if chance.random() < 0.3:
        hardware["share_nodes"] = False
    if chance.random() < 0.2:
        hardware["regions"] = [chance.choice(["r1", "r2"])]
    limits: Data = {}
    if chance.random() < 0.2:
        limits["max_devices"] = chance.choice([8, 16, 32])
    if chance.random() < 0.2:
        limits["max_providers"] = 1
    if chance.random() < 0.2:
        limits["budget"] = f"${chance.choice([500, 3000, 20000, 100000])}"
    asked: Data = {"hardware": hardware, "horizon": f"{horizon} h", "prefer": "cheapest"}
    asked |= {"limits": limits} if limits else {}
    asked |= {"periods": f"{horizon // 4} h"} if chance.random() < 0.15 else {}
    if chance.random() < 0.1 and fleets:
        more = {f"serving.{fleets[0]['name']}.qpm": 2 * fleets[0]["qpm"]}
        asked["uncertainty"] = [{"name": "more", "probability": 0.3, "set": more}]
    return {"training": jobs, "serving": fleets, **asked}


def _fleet(chance: random.Random, number: int) -> Data:
    more: Data = {}
    if chance.random() < 0.3:
        more["spare_replicas"] = 1
    if chance.random() < 0.25:
        more["max_spot_share"] = 0.5
    if chance.random() < 0.3:
        more |= {"model": "llama-3.2-1b", "layout": {"tp": chance.choice([1, 2, 4])}}
    if chance.random() < 0.2:
        more["regions"] = [chance.choice(["r1", "r2"])]
    if chance.random() < 0.15:
        more["min_replicas"] = 3
    if chance.random() < 0.1:
        more["disaggregated"] = True
    return fleet(f"f{number}", qpm=chance.choice([120, 600, 1500, 3000, 6000]), **more)


def _job(chance: random.Random, number: int, horizon: int) -> Data:
    start = chance.choice([0, 0, 0, 24, 50])
    tokens = chance.choice([20, 200, 900])
    found = job(f"j{number}", tokens=f"{tokens}B", deadline=f"{chance.choice([40, 100, 200, 400])} h")
    found |= {"start": f"{start} h"} if start else {}
    found |= {"count": 2} if chance.random() < 0.15 else {}
    return found


def asked(data: Data) -> Any:
    """The question as a scenario."""
    given = copy.deepcopy(data)
    return scenario(given.pop("training"), given.pop("serving"), **given)


def wider(data: Data) -> Iterator[tuple[str, Data]]:
    """Questions that allow all that a question does and more: none of them may cost more."""
    hardware, limits = data["hardware"], data.get("limits", {})
    for model in ("spot", "commitment_1y"):
        if model not in hardware["pricing"]:
            yield f"pricing {model}", _with(data, hardware={**hardware, "pricing": [*hardware["pricing"], model]})
    if "regions" in hardware:
        yield "all regions", _with(data, hardware=_without(hardware, "regions"))
    if hardware.get("share_nodes") is False:
        yield "shared nodes", _with(data, hardware=_without(hardware, "share_nodes"))
    if "quotas" in hardware:
        yield "no quotas", _with(data, hardware=_without(hardware, "quotas"))
    one = {"shape": "south/eight", "count": 1, "price": "$1/h"}
    yield "another owned node", _with(data, hardware={**hardware, "owned": [*hardware.get("owned", []), one]})
    for key in limits:
        yield f"no {key}", _with(data, limits=_without(limits, key))
    for part, key in (("serving", "regions"), ("serving", "spare_replicas"), ("serving", "layout")):
        for place, workload in enumerate(data[part]):
            if key in workload:
                changed = [*data[part][:place], _without(workload, key), *data[part][place + 1 :]]
                yield f"{workload['name']} without {key}", _with(data, **{part: changed})
    for place, workload in enumerate(data["training"]):
        later = {**workload, "deadline": f"{2 * int(workload['deadline'].split()[0])} h"}
        if "periods" not in data:
            yield (
                f"{workload['name']} later",
                _with(data, training=[*data["training"][:place], later, *data["training"][place + 1 :]]),
            )


def same(data: Data) -> Iterator[tuple[str, Data]]:
    """The same question in other words."""
    yield "other order", _with(data, serving=data["serving"][::-1], training=data["training"][::-1])
    if "uncertainty" not in data:
        yield "a case that is the same", _with(data, uncertainty=[alike(data)])
    if "regions" not in data["hardware"] and "owned" not in data["hardware"]:
        yield "regions r1, r2", _with(data, hardware={**data["hardware"], "regions": ["r1", "r2"]})
    if data["serving"] and all("regions" not in one for one in data["serving"]) and "regions" in data["hardware"]:
        places = data["hardware"]["regions"]
        if not data["training"] and "owned" not in data["hardware"]:
            fleets = [{**one, "regions": places} for one in data["serving"]]
            yield "regions of each", _with(data, hardware=_without(data["hardware"], "regions"), serving=fleets)


def alike(data: Data) -> Data:
    """A case in which everything is as written."""
    part, key = ("serving", "qpm") if data["serving"] else ("training", "tokens")
    first = data[part][0]
    return {"name": "same", "probability": 0.4, "set": {f"{part}.{first['name']}.{key}": first[key]}}


def _with(data: Data, **changes: Any) -> Data:
    return {**data, **changes}


def _without(mapping: Data, key: str) -> Data:
    return {name: value for name, value in mapping.items() if name != key}
