"""Random fleets of two to six classes: a looser target, or fewer requests, never cost more.

A fleet is told by its seed. With the facts of `tests.frozen`; the default tier tries a few on one kind of device.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from planner import api
from tests import frozen
from tests.tiers import while_time_lasts

TOLERANCE, CENT = 1e-6, 0.01  # within which costs are equal
EASIER: Mapping[str, Mapping[str, float]] = {
    "a looser first token": {"ttft_s": 1.5},
    "a looser time per token": {"tpot_ms": 1.5},
    "fewer requests": {"rate": 0.8},
}
SCENARIO = """\
schema: plan/v1
name: law
serving:
  - name: fleet
    model: {model}
    weights: fp8
    requests: {rate} /s
    histogram: classes.csv
    slo: {{ttft_p95: {ttft_s} s, tpot_p95: {tpot_ms} ms}}
    spare_replicas: {spares}
hardware:
  allow: {allow}
"""


class Fleet(NamedTuple):
    """What is asked of one."""

    classes: tuple[tuple[int, int, float], ...]  # prompt, answer, share
    figures: Mapping[str, Any]

    def changed(self, by: Mapping[str, float]) -> Fleet:
        """With some figures multiplied."""
        return self._replace(figures={name: value * by.get(name, 1) for name, value in self.figures.items()})


def fleet(seed: int, kinds: int = 3) -> Fleet:
    """The fleet of a seed, which may stand on so many kinds of devices."""
    draw = random.Random(seed)
    lengths = [
        (draw.choice([64, 200, 500, 1500, 4000, 12000]), draw.choice([50, 150, 300, 800]))
        for _ in range(draw.randint(2, 6))
    ]
    lengths = list(dict.fromkeys(lengths))
    weights = [draw.random() + 0.05 for _ in lengths]
    shares = [round(weight / sum(weights), 3) for weight in weights]
    shares[-1] = round(1 - sum(shares[:-1]), 3)
    figures = {
        "rate": draw.choice([2, 10, 40, 120]),
        "ttft_s": draw.choice([0.8, 1.5, 3, 6]),
        "tpot_ms": draw.choice([40, 60, 100]),
        "spares": draw.choice([0, 1, 1]),
        "model": draw.choice(["llama-3.1-8b", "llama-3.1-8b", "llama-3.1-70b"]),
        "allow": draw.sample(["h100-*", "a100-*", "l4", "l40s*", "h200-*", "a10g*", "mi300x*"], 3)[:kinds],
    }
    return Fleet(tuple((*pair, share) for pair, share in zip(lengths, shares)), figures)


def cost_usd(one: Fleet, folder: Path) -> float:
    """Of the cheapest plan, which is proven; infinite where there is none."""
    rows = "".join(f"{given},{made},{share}\n" for given, made, share in one.classes)
    (folder / "classes.csv").write_text(f"input_bucket,output_bucket,fraction\n{rows}", encoding="utf-8")
    file = folder / "law.yaml"
    file.write_text(SCENARIO.format(**one.figures), encoding="utf-8")
    plan = api.solve(file, frozen.catalog())
    assert plan.status in ("optimal", "infeasible")
    found = plan.document["summary"]["cost_usd"]
    return float("inf") if found is None else float(found)


def dearer(asked: Fleet, whole: float, folder: Path, easier: Iterable[str] = EASIER) -> list[str]:
    """What asks for less than a fleet, and costs more than it.  [USD]"""
    found = {name: cost_usd(asked.changed(EASIER[name]), folder) for name in easier}
    return [
        f"{name} costs {cost:,.2f}, not at most {whole:,.2f}"
        for name, cost in found.items()
        if cost > whole * (1 + TOLERANCE) + CENT
    ]


@pytest.mark.parametrize(("seed", "easier"), list(zip((8, 16, 21), EASIER)))
def test_what_asks_for_less_costs_no_more(seed: int, easier: str, tmp_path: Path) -> None:
    """On one kind of device."""
    asked = fleet(seed, kinds=1)
    whole = cost_usd(asked, tmp_path)
    assert whole < float("inf")
    assert dearer(asked, whole, tmp_path, [easier]) == []


@pytest.mark.campaign
def test_what_asks_for_less_costs_no_more_on_any_fleet(tmp_path: Path) -> None:
    told: dict[int, list[str]] = {}
    for seed in while_time_lasts(range(500)):
        asked = fleet(seed)
        told[seed] = dearer(asked, cost_usd(asked, tmp_path), tmp_path)
    assert {seed: lines for seed, lines in told.items() if lines} == {}
