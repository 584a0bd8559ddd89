"""From words and facts to numbers: defaults, shares of devices, measured speeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner.api import load_model
from planner.architecture.load import coarse_model
from planner.candidates.training_question import asked_batches
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.estimate import resolve
from planner.estimate.resolve_serving import row_limits
from planner.scenario.schema import ServingFleet, TrainingJob
from tests.worlds import GIB, PEAK_FLOP_PER_S, catalog, device, fleet, job, scenario, shape

NO_FABRICS = catalog([device()], [shape()], [])


def a_job(**changes: Any) -> TrainingJob:
    return scenario([{key: value for key, value in job(**changes).items() if value is not None}]).training[0]


def a_fleet(**changes: Any) -> ServingFleet:
    return scenario([], [fleet(**changes)]).serving[0]


def test_sequence_length_defaults_to_what_the_model_holds() -> None:
    silent = a_job(sequence_length=None)
    assert resolve.sequence_length_of(silent, load_model("llama-3.1-8b")) == 4096  # holds 131,072
    assert resolve.sequence_length_of(silent, load_model("gpt2")) == 1024
    assert resolve.sequence_length_of(silent, coarse_model(1e9)) == 4096  # unknown
    assert resolve.sequence_length_of(a_job(sequence_length=8192), load_model("gpt2")) == 8192


BILLION = coarse_model(1e9)


@pytest.mark.parametrize(
    ("engine", "sequences", "tokens"), [("vllm", 512, 65536), ("trt-llm", 512, 65536), ("sglang", 64, 8192)]
)
def test_limits_count_each_attention_rank_where_the_option_does(engine: str, sequences: int, tokens: int) -> None:
    """A flag of vLLM or TensorRT-LLM holds for each rank; SGLang divides what it is told by the ranks."""
    asked = a_fleet(engine=engine, limits={"max_num_seqs": 64, "max_num_batched_tokens": 8192})
    found = row_limits(asked, [(device(), shape())], [2], np.array([1.0, 8.0]))
    assert found.max_num_seqs.tolist() == [64, sequences]
    assert found.max_batched_tokens.tolist() == [8192, tokens]


def test_batch_bounds_are_in_sequences() -> None:
    assert resolve.batch_bounds(a_job(global_batch="64 sequences"), BILLION, 4096) == (64, 64)
    assert resolve.batch_bounds(a_job(global_batch="4M tokens"), BILLION, 8192) == (4e6 / 8192, 4e6 / 8192)
    both = {"min": "1M tokens", "max": "4M tokens"}
    assert resolve.batch_bounds(a_job(global_batch=both), BILLION, 1000) == (1000, 4000)
    assert resolve.batch_bounds(a_job(global_batch=None), BILLION, 10**7) == (1, 1)
    assert resolve.batch_bounds(a_job(global_batch="100 tokens"), BILLION, 4096) == (1, 1)


def test_a_batch_of_few_sequences_is_of_whole_ones() -> None:
    """A tenth more or less than 1.3 or 2.5 sequences is no number of sequences: nothing could be planned."""
    assert resolve.batch_bounds(a_job(global_batch=None), BILLION, 320_000) == (1, 1)  # 410,000 tokens
    assert resolve.batch_bounds(a_job(global_batch="4M tokens"), BILLION, 1_100_000) == (4, 4)
    assert resolve.batch_bounds(a_job(global_batch="4M tokens"), BILLION, 799_999) == (4e6 / 799_999,) * 2  # above 5
    both = {"min": "1.4M tokens", "max": "2.6M tokens"}
    assert resolve.batch_bounds(a_job(global_batch=both), BILLION, 1_000_000) == (1.4, 2.6)


def test_a_batch_that_nobody_chose_suits_the_compute() -> None:
    """By the law 6e18 FLOP learn best at 0.41 million tokens a step, 4.8e22 at 7.7, which is more than is assumed."""
    small, large = a_job(global_batch=None), a_job(global_batch=None, tokens="1000B")
    assert resolve.batch_bounds(small, BILLION, 4096) == (4.1e5 / 4096, 4.1e5 / 4096)
    assert resolve.batch_bounds(large, coarse_model(8e9), 4096) == (4e6 / 4096, 4e6 / 4096)
    assert resolve.batch_tokens_advised(large, coarse_model(8e9)) == 7.7e6
    assert resolve.batch_bounds(a_job(global_batch=None, epochs=8), BILLION, 4096)[0] > 4.1e5 / 4096


def test_a_step_of_adapters_takes_128_sequences_and_none_more_than_there_are() -> None:
    adapters = a_job(global_batch=None, model="llama-3.1-8b", lora={"rank": 8})
    assert resolve.batch_bounds(adapters, BILLION, 4096) == resolve.batch_bounds(adapters, BILLION, 512) == (128, 128)
    few = {"tokens": "1M", "epochs": 2}  # 2,000 sequences of 1,000
    few_adapters = a_job(global_batch=None, model="llama-3.1-8b", lora={"rank": 8}, **few)
    assert resolve.batch_bounds(few_adapters, BILLION, 20_000) == (100, 100)
    both = {"min": "1M tokens", "max": "4M tokens"}
    assert resolve.batch_bounds(a_job(global_batch=both, **few), BILLION, 1000) == (1000, 2000)
    assert asked_batches(a_job(global_batch="2000 sequences", **few), BILLION, 1000)[1] == (1800, 2000)
    assert asked_batches(a_job(global_batch="1000 sequences", **few), BILLION, 1000)[1] == (900, pytest.approx(1100))


def test_the_most_exact_measurement_wins() -> None:
    card = device("h100-sxm-80gb", aliases=("H100",))
    assert resolve.measured_mfu(card, {}) is None
    assert resolve.measured_mfu(card, {"a100-*": 0.5}) is None
    assert resolve.measured_mfu(card, {"*": 0.1, "h100-*": 0.3}) == 0.3
    assert resolve.measured_mfu(card, {"h100-*": 0.3, "h100-sxm-80gb": 0.45, "h100-sxm-80g*": 0.4}) == 0.45
    assert resolve.measured_mfu(card, {"H100": 0.2}) == 0.2


def test_a_measured_speed_replaces_the_rule() -> None:
    card, world = device(), catalog()
    measured, silent = a_job(mfu={"plain": 0.25}), a_job()
    assert resolve.training_machine(card, shape(), silent, coarse_model(1e9), world, None).mfu == 0.5
    assert resolve.training_machine(card, shape(), measured, coarse_model(1e9), world, None).mfu == 0.25
    arch = coarse_model(1e9)
    assert not resolve.training_spec(silent, arch, card).measured_mfu
    assert resolve.training_spec(measured, arch, card).measured_mfu
    assert not resolve.training_spec(measured, arch, device("other")).measured_mfu
    assert not resolve.training_spec(measured, arch).measured_mfu


def test_a_slice_has_its_share_of_speed_and_its_own_memory() -> None:
    piece = shape(
        "mig/seventh", kind="mig", compute_share=1 / 7, bandwidth_share=1 / 8, memory_bytes_per_device=10 * GIB
    )
    machine = resolve.machine_of(device(), piece, PEAK_FLOP_PER_S, 0.5, None)
    assert machine.peak_flop_per_s == pytest.approx(PEAK_FLOP_PER_S / 7)
    assert machine.memory_bandwidth_bytes_per_s == pytest.approx(1e12 / 8)
    assert machine.memory_bytes == 10 * GIB
    assert math.isnan(machine.inter_node_bytes_per_s)
    peaks = resolve.peaks_of(coarse_model(1e9), "bf16", device(), piece)
    assert peaks.linear == pytest.approx(PEAK_FLOP_PER_S / 7)


def test_without_a_fast_link_the_host_carries_it() -> None:
    machine = resolve.machine_of(device(scale_up=None), shape(devices=2), PEAK_FLOP_PER_S, 0.5, 1e9)
    assert machine.pair_bytes_per_s == machine.all_bytes_per_s == 3e10
    assert machine.inter_node_bytes_per_s == 1e9
    assert (machine.node_devices, machine.scale_up_devices) == (2, 2)


def test_what_is_reserved_cannot_be_filled() -> None:
    assert resolve.usable_bytes(device(), shape()) == 60 * GIB
    unknown = device(reserved_memory_bytes=None)
    assert resolve.usable_bytes(unknown, shape()) == 64 * GIB - 1.5e9
    small = shape(kind="mig", memory_bytes_per_device=10 * GIB)
    assert resolve.usable_bytes(unknown, small) == pytest.approx(0.93 * 10 * GIB)


def test_an_assumed_network_is_of_a_shape_and_never_replaces_a_fact() -> None:
    unknown = shape(devices=4, inter_node_bytes_per_s_per_device=None)
    assert resolve.inter_node_rate(unknown, NO_FABRICS, None) is None
    assert resolve.inter_node_rate(unknown, NO_FABRICS, 12e9) == 3e9
    assert resolve.inter_node_rate(shape(devices=4), NO_FABRICS, 12e9) == 1e11
    for kind in ("mig", "share"):  # slices of one card do not reach each other
        part = shape(kind=kind, inter_node_bytes_per_s_per_device=None)
        assert resolve.inter_node_rate(part, NO_FABRICS, 12e9) is None


def test_a_network_that_no_step_was_measured_on_carries_the_share_that_it_sustains() -> None:
    shipped = load_catalog(None)
    assert {name for name, fabric in shipped.fabrics.items() if fabric.sustained_share < 1} == {"ethernet"}
    plain = shape(devices=4, network_kind="ethernet")
    assert resolve.inter_node_rate(plain, shipped, None) == 5e10
    for measured in ("infiniband", "roce", "efa", "gpudirect-tcpx", "dcn"):
        assert resolve.inter_node_rate(shape(devices=4, network_kind=measured), shipped, None) == 1e11
    unknown = shape(devices=4, network_kind="ethernet", inter_node_bytes_per_s_per_device=None)
    assert resolve.inter_node_rate(unknown, shipped, 12e9) == 3e9  # what the scenario says counts as said


@pytest.fixture(scope="module")
def world() -> Catalog:
    return load_catalog()


@pytest.mark.parametrize("name", sorted(load_catalog().devices))
def test_every_device_of_the_catalog_can_be_resolved(name: str, world: Catalog) -> None:
    """Whatever is unknown of a device, the numbers are numbers, or the device is refused by its uses."""
    card = world.devices[name]
    for one in [piece for piece in world.shapes.values() if piece.device == name]:
        assert 0 < resolve.usable_bytes(card, one) <= resolve.memory_bytes(card, one)
        if "training" in card.uses:
            machine = resolve.training_machine(card, one, a_job(), coarse_model(1e9), world, None)
            assert 0 < machine.mfu < 1
        if "serving" in card.uses:
            assert card.memory_bandwidth_bytes_per_s
            assert max(card.peak_flop_per_s.values()) > 0


def test_a_step_was_timed_as_the_job_runs_only_where_all_of_it_is_fixed() -> None:
    layout = {"dp": 8, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": "zero-3",
              "recompute": "none"}  # fmt: skip

    def held(**parts: Any) -> TrainingJob:
        return a_job(layout=parts or None, sharding=None, recompute=None)

    run = {"device": "plain", "shape": "north/one", "layout": layout}
    assert resolve.step_measured(held(**layout), shape(), run) == "same"
    for part, other in ({"micro_batch": 2}, "north/one"), ({"recompute": "full"}, "north/one"), ({}, "north/two"):
        assert resolve.step_measured(held(**{**layout, **part}), shape(other), run) == "another"
    for left_open in layout:  # what is open may be chosen otherwise
        rest = {name: size for name, size in layout.items() if name != left_open}
        assert resolve.step_measured(held(**rest), shape(), run) == "another"
    assert resolve.step_measured(held(), shape(), run) == "another"
    assert resolve.step_measured(held(**layout), shape(device="slow"), run) == ""
    assert resolve.step_measured(held(**layout), shape(), None) == ""
