"""One load in three notations, with the same burst and peak: mean and p95, a histogram, a trace."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from planner import api
from planner.equations.lengths import lognormal_sigma
from planner.plan.references import load_model
from planner.plan.rows.serving_point import ReplicaSite
from planner.scenario.schema import ServingFleet
from tests import frozen
from tests.tiers import LONG, sampled

REQUESTS = 20_000
CELLS = (24, 8) if LONG else (10, 6)  # of the histogram: prompts, answers
FLEET = """\
schema: plan/v1
name: notation
serving:
  - name: fleet
    model: llama-3.1-8b
    weights: fp8
    peak_factor: 2
    arrival_variability: 1
    slo: {{ttft_p95: {ttft} s, tpot_p95: 60 ms}}
{said}
hardware: {{allow: ["h100-*"]}}
"""


class Load(NamedTuple):
    """Log-normal lengths, mean and p95."""

    prompts: tuple[int, int]
    answers: tuple[int, int]
    rate: float
    ttft_s: float


CHAT = Load((300, 900), (250, 700), 8, 1.5)
LOOKED_UP = Load((1500, 4000), (200, 500), 8, 5)
DOCUMENTS = Load((6000, 16000), (400, 1000), 4, 10)
EVEN = Load((1000, 1300), (200, 260), 8, 1.5)


def drawn(rng: np.random.Generator, mean: float, p95: float) -> np.ndarray:
    sigma = float(lognormal_sigma(mean, p95))
    return np.maximum(np.round(rng.lognormal(math.log(mean) - sigma**2 / 2, sigma, REQUESTS)), 1)


def cells(lengths: np.ndarray, count: int) -> np.ndarray:
    """Each length as the mean of its cell; cells are closer at the upper end."""
    edges = np.unique(np.quantile(lengths, 1 - np.geomspace(1, 1 / (4 * count), count + 1)[:-1]))
    place = np.searchsorted(edges, lengths, side="right") - 1
    return np.round(np.array([lengths[place == one].mean() for one in range(len(edges))]))[place]


def notations(load: Load, folder: Path) -> dict[str, ServingFleet]:
    rng = np.random.default_rng(1)
    prompts, answers = drawn(rng, *load.prompts), drawn(rng, *load.answers)
    times = np.cumsum(rng.exponential(1 / load.rate, REQUESTS))
    rows = "".join(f"{at:.4f},{given:.0f},{made:.0f}\n" for at, given, made in zip(times, prompts, answers))
    (folder / "trace.csv").write_text(f"timestamp,input_tokens,output_tokens\n{rows}", encoding="utf-8")
    pairs, counts = np.unique(
        np.stack([cells(lengths, cut) for lengths, cut in zip((prompts, answers), CELLS)]), axis=1, return_counts=True
    )
    rows = "".join(f"{given:.0f},{made:.0f},{count / REQUESTS}\n" for (given, made), count in zip(pairs.T, counts))
    (folder / "shares.csv").write_text(f"input_bucket,output_bucket,fraction\n{rows}", encoding="utf-8")
    lengths = [f"{{mean: {mean}, p95: {p95}}}" for mean, p95 in (load.prompts, load.answers)]
    said = {
        "numbers": f"    requests: {load.rate} /s\n    input_tokens: {lengths[0]}\n    output_tokens: {lengths[1]}",
        "histogram": f"    requests: {load.rate} /s\n    histogram: shares.csv",
        "trace": "    trace: trace.csv",
    }
    found = {}
    for name, lines in said.items():
        file = folder / f"{name}.yaml"
        file.write_text(FLEET.format(ttft=load.ttft_s, said=lines), encoding="utf-8")
        found[name] = api.load_scenario(file).serving[0]
    return found


def rate_per_s(fleet: ServingFleet, device: str) -> float:
    """That one replica on one device carries of the whole mix within its targets.  [1/s]"""
    catalog = frozen.catalog()
    shape = next(catalog.shapes[one.shape] for one in catalog.offers if catalog.shapes[one.shape].device == device)
    site = ReplicaSite(
        fleet=fleet,
        arch=load_model(fleet.model),
        catalog=catalog,
        device=catalog.devices[device],
        shape=shape,
        inter_node_bytes_per_s=None,
        split={"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1},
    )
    return site.point(np.asarray(fleet.traffic.share) * 1e-9).capacity_per_s()


@pytest.mark.parametrize(
    ("load", "device"),
    sampled(
        [
            (LOOKED_UP, "a100-sxm-80gb"),
            (DOCUMENTS, "h100-sxm-80gb"),
            (CHAT, "h100-sxm-80gb"),
            (CHAT, "a100-sxm-80gb"),
            (LOOKED_UP, "h100-sxm-80gb"),
            (EVEN, "h100-sxm-80gb"),
            (EVEN, "a100-sxm-80gb"),
        ],
        2,
    ),
)
def test_one_load_in_three_notations_is_one_load(load: Load, device: str, tmp_path: Path) -> None:
    """A rate within 10 %, or replicas for the peak at most one apart; mean and p95 are a trace within sampling error.

    A histogram forgets how lengths differ within a cell, and holds each class to three times the target.
    """
    fleets = notations(load, tmp_path)
    found = {name: rate_per_s(fleet, device) for name, fleet in fleets.items()}
    assert found["numbers"] == pytest.approx(found["trace"], rel=0.03)
    replicas = [math.ceil(2 * load.rate / rate) for rate in found.values()]
    assert max(found.values()) <= 1.1 * min(found.values()) or max(replicas) - min(replicas) <= 1
    peaks = [fleet.traffic.peak_requests_per_s for fleet in fleets.values()]
    assert peaks == pytest.approx([2 * load.rate] * 3, rel=0.03)
