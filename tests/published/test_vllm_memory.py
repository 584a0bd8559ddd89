"""What vLLM logged of an H100's memory, against what a replica is said to hold; tables read on 2026-11-21.

The older engine (llm-d-benchmark) is the one whose workspace the equations take: its pools are met within 1 GiB.
Weights of gpt-oss are left out: the engine pads their experts, by 0.7 GiB of 12.8 for the small one.
vLLM 0.19 (llm-d-planner) needs 3 GiB less workspace: a plan promises up to 4 GiB less cache than it has, never more.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.estimate.machine import Machine
from planner.estimate.serving import ReplicaLayout, ServingMemory, ServingSpec, serving_memory
from tests.published.comparer import DATA

GIB = 2.0**30
WEIGHTS_WITHIN = 0.01  # share
POOL_WITHIN = {"llm-d/llm-d-benchmark": (-1.0, 1.0), "llm-d-incubation/llm-d-planner": (-4.0, 0.0)}  # [GiB]


def table() -> list[dict[str, str]]:
    with (DATA / "vllm_kv_pools.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def said(row: dict[str, str]) -> ServingMemory:
    machine: dict[str, Any] = dict.fromkeys(
        ("pair_bytes_per_s", "all_bytes_per_s", "host_bytes_per_s", "inter_node_bytes_per_s"), 50e9
    )
    longest = float(row["max_model_len"])
    spec = ServingSpec(
        weights=row["weights"], kv_cache="bf16", input_tokens=longest - 1, output_tokens=1,
        memory_fraction=float(row["memory_fraction"]),
    )  # fmt: skip
    tp, pp = int(row["tp"]), int(row["pp"])
    held = Machine(
        peak_flop_per_s=989e12, mfu=0.4, memory_bytes=float(row["device_gib"]) * GIB,
        memory_bandwidth_bytes_per_s=3.35e12, scale_up_devices=8, node_devices=8, **machine,
    )  # fmt: skip
    return serving_memory(load_model(row["model"]), spec, ReplicaLayout(devices=tp * pp, tp=tp, pp=pp), held)


ROWS = table()
NAMES = [f"{r['model']}-{r['weights']}-tp{r['tp']}-{r['max_model_len']}-{r['source'][:12]}" for r in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_pool_weights_and_whether_it_runs(row: dict[str, str]) -> None:
    memory = said(row)
    if row["weight_gib"]:
        assert float(memory.terms["weights"]) / GIB == pytest.approx(float(row["weight_gib"]), rel=WEIGHTS_WITHIN)
    if row["pool_gib"]:
        low, high = POOL_WITHIN[row["source"].split(":")[0]]
        assert low <= float(memory.kv_pool_bytes) / GIB - float(row["pool_gib"]) <= high
    assert bool(np.all(memory.feasible)) == bool(int(row["runs"]))


def test_both_engines_are_there() -> None:
    assert {row["source"].split(":")[0] for row in ROWS} == set(POOL_WITHIN)
    assert sum(bool(row["pool_gib"]) for row in ROWS) >= 12
