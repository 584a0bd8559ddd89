"""Decode context parallelism: tensor ranks share out the tokens of heads that they would hold in copies."""

from __future__ import annotations

import dataclasses

import pytest

from planner.architecture.load import load_model
from planner.candidates.serving_layouts import cache_splits
from planner.estimate.machine import Machine
from planner.estimate.serving import ReplicaLayout, ServingSpec, serving_memory
from planner.estimate.serving_formats import ServingPeaks
from planner.estimate.serving_step import TEXTBOOK, Replica, ServingWork

H200 = Machine(
    peak_flop_per_s=989e12, mfu=0.4, memory_bytes=141 * 2**30, memory_bandwidth_bytes_per_s=4.8e12,
    pair_bytes_per_s=450e9, all_bytes_per_s=450e9, scale_up_devices=8, node_devices=8, host_bytes_per_s=63e9,
    inter_node_bytes_per_s=50e9,
)  # fmt: skip
SPEC = ServingSpec(weights="fp8", kv_cache="fp8", input_tokens=32_000, output_tokens=1000)


@pytest.mark.parametrize(
    ("model", "tp", "splits"),
    [
        ("llama-3.1-70b", 8, [1]),  # 8 heads on 8 ranks: no copies
        ("qwen3-235b-a22b", 8, [1, 2]),  # 4 heads
        ("deepseek-v3", 8, [1, 2, 4, 8]),  # one latent
        ("deepseek-v3", 1, [1]),
    ],
)
def test_only_copies_are_shared_out(model: str, tp: int, splits: list[int]) -> None:
    assert cache_splits(load_model(model), tp) == splits


def test_a_latent_cache_fits_as_many_times_more_sequences() -> None:
    arch = load_model("deepseek-v3")
    whole, shared = (
        serving_memory(arch, SPEC, ReplicaLayout(devices=8, tp=8, cp=cp), H200).max_sequences for cp in (1, 8)
    )
    assert float(shared) == pytest.approx(8 * float(whole), rel=0.05)


def test_it_reads_less_and_talks_more() -> None:
    arch = load_model("deepseek-v3")
    replica = Replica(
        work=ServingWork.of(arch, "fp8", "fp8"),
        layout=ReplicaLayout(devices=8, tp=8),
        machine=H200,
        peaks=ServingPeaks(linear=1979e12, expert=1979e12, attention=989e12),
        constants=dataclasses.replace(TEXTBOOK, collective_s=9e-6),
    )
    shared = dataclasses.replace(replica, layout=ReplicaLayout(devices=8, tp=8, cp=8))
    one, other = replica.decode_step(64, 60_000), shared.decode_step(64, 60_000)
    assert float(other["attention"]) < float(one["attention"])
    assert float(other["collectives"]) > float(one["collectives"])
    assert float(other.total) < float(one.total)  # long contexts: reading is what takes time
    assert float(shared.decode_step(1, 500).total) > float(replica.decode_step(1, 500).total)
