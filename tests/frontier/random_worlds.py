"""Small random scenarios with catalogs of their own: a cheap slow device that is short, dear fast ones, two jobs."""

from __future__ import annotations

import random
from typing import Any

from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

PEAK = 2e15


def random_world(seed: int, *, fleets: bool = False, apart: bool = False, **top: Any) -> tuple[Scenario, Catalog]:
    """A scenario and its catalog; `apart`: the second job starts when the first may have ended."""
    rng = random.Random(seed)
    speeds = {"slow": 1.0, "middle": rng.choice([1.5, 2.0]), "fast": rng.choice([3.0, 4.0])}
    devices = [
        device(name, peak_flop_per_s=dict.fromkeys(("fp32", "fp16", "bf16"), PEAK * speed), tdp_w=300.0 + 300.0 * speed)
        for name, speed in speeds.items()
    ]
    shapes, offers = [], []
    for name, speed in speeds.items():
        for provider in ("north", "south")[: rng.randint(1, 2)]:
            size = rng.choice([1, 1, 2])
            shapes.append(shape(f"{provider}/{name}", name, size))
            dollars = round(size * speed ** rng.uniform(1.05, 1.6) * rng.uniform(0.9, 1.2), 2)
            offers.append(offer(f"{provider}/{name}", dollars, region=f"{provider}-1"))
    grids = {("north", "north-1"): (rng.choice([40.0, 120.0]), 1.1), ("south", "south-1"): (400.0, 1.2)}
    jobs = [job("one", deadline="6000 s", tokens=rng.choice(["1B", "2B"]))]
    if rng.random() < 0.7:
        later = {"start": f"{rng.choice([2000, 3000])} s"} if apart else {}
        jobs.append(job("two", deadline="5000 s", tokens=rng.choice(["1B", "3B"]), **later))
    given: dict[str, Any] = {
        "estimator": "rule",
        "hardware": {"quotas": [{"device": "slow", "max_devices": rng.randint(1, 4)},
                                {"device": "fast", "max_devices": rng.randint(4, 8)}]},
        "limits": {"max_devices": rng.randint(8, 14)},
    }  # fmt: skip
    served = [fleet("served", qpm=rng.choice([600, 1500]))] if fleets else []
    return scenario(jobs, served, **{**given, **top}), catalog(devices, shapes, offers, grids)


def calendar_world() -> tuple[Scenario, Catalog]:
    """Jobs in periods of an hour, one after another, beside a fleet; few slow nodes for all of them."""
    devices = [device("slow"), device("fast", peak_flop_per_s=dict.fromkeys(("fp32", "fp16", "bf16"), 2 * PEAK))]
    shapes = [shape(f"north/{one.id}", one.id, 1) for one in devices]
    offers = [offer("north/slow", 1.0), offer("north/fast", 2.6)]
    jobs = [
        job("one", deadline="4 h", tokens="4B"),
        job("two", deadline="5 h", tokens="4B", start="1 h"),
        job("three", deadline="8 h", tokens="2B", after=["one"]),
    ]
    given: dict[str, Any] = {"horizon": "12 h", "periods": "1 h", "estimator": "rule", "limits": {"max_devices": 12}}
    given["hardware"] = {"quotas": [{"device": "slow", "max_devices": 4}]}
    return scenario(jobs, [fleet("chat")], **given), catalog(devices, shapes, offers, {("north", "r1"): (100.0, 1.1)})
