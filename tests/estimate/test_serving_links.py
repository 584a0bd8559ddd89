"""Collectives of a replica: over nodes every device uses its own link; no group of one waits; no cluster gives nan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.equations.communication import hierarchical_all_reduce_s, ring_all_reduce_s
from planner.estimate.machine import Machine
from planner.estimate.serving_constants import TEXTBOOK
from planner.estimate.serving_formats import ServingPeaks, serving_peaks
from planner.estimate.serving_step import Replica, ReplicaLayout, ServingWork

MACHINE = Machine(
    peak_flop_per_s=1.0, mfu=1.0, memory_bytes=80e9, memory_bandwidth_bytes_per_s=3e12, pair_bytes_per_s=450e9,
    all_bytes_per_s=450e9, scale_up_devices=8, node_devices=8, host_bytes_per_s=63e9, inter_node_bytes_per_s=50e9,
)  # fmt: skip
PEAKS = ServingPeaks(linear=1e15, expert=1e15, attention=1e15)


def replica(model: str = "llama-3.1-70b", machine: Machine = MACHINE, **layout: float) -> Replica:
    return Replica(
        work=ServingWork.of(load_model(model), "bf16", "bf16"),
        layout=ReplicaLayout(**layout),
        machine=machine,
        peaks=PEAKS,
        constants=TEXTBOOK,
    )


@pytest.mark.parametrize("nodes", [2, 4])
def test_an_all_reduce_over_nodes_uses_every_link_of_a_node(nodes: int) -> None:
    """As reduce-scatter inside, all-reduce of the parts across, all-gather inside: the training side's equation."""
    tokens, arch = 4096.0, load_model("llama-3.1-70b")
    ranks = 8 * nodes
    found = float(replica(devices=ranks, tp=ranks).prefill(tokens)["collectives"])
    rates = (450e9 * TEXTBOOK.link, 50e9 * TEXTBOOK.link)
    one = hierarchical_all_reduce_s(tokens * arch.hidden_size * 2, 8, nodes, *rates)
    assert found == pytest.approx(2 * arch.layer_count * float(one), rel=1e-9)
    alone = replica(machine=replace(MACHINE, inter_node_bytes_per_s=50e9 / 8), devices=ranks, tp=ranks)
    assert float(alone.prefill(tokens)["collectives"]) > 3 * found  # as over one link for all eight


def test_experts_over_nodes_exchange_over_each_devices_own_link() -> None:
    inside = replica("deepseek-v3", devices=8, tp=1, ep=8).decode_step(256.0, 1000.0)["collectives"]
    across = replica("deepseek-v3", devices=16, tp=1, ep=16).decode_step(512.0, 1000.0)["collectives"]
    payload = 512 / 16 * 7168 * 2 * 8  # bytes that a device sends in one exchange, eight copies of its tokens
    least = 58 * 2 * payload * 8 / 16 / (50e9 * TEXTBOOK.link)
    assert float(across) > float(inside)
    assert least < float(across) < least + 2 * float(inside) + 61 * 1e-4


@pytest.mark.parametrize(("tp", "dp"), [(1, 8), (2, 4), (4, 2)])
def test_experts_cut_over_attention_ranks_take_the_tokens_of_all(tp: int, dp: int) -> None:
    """vLLM's experts form one tensor-parallel group of all ranks by default: tokens of all are gathered there, and the
    sums scattered. Each rank's own tokens alone were counted, an eighth of what goes over the links of eight ranks."""
    tokens, rate = 4096.0, 450e9 * TEXTBOOK.link
    found = replica("deepseek-v3", devices=8, tp=tp).prefill(tokens)["collectives"]
    whole = tokens * 7168 * 2
    own = float(ring_all_reduce_s(whole / dp, tp, rate))  # after attention, and after the three dense layers
    assert float(found) == pytest.approx((61 + 3) * own + 58 * float(ring_all_reduce_s(whole, 8, rate)), rel=1e-9)
    slow = replace(replica("deepseek-v3", devices=8, tp=tp), constants=replace(TEXTBOOK, collective_s=1.0))
    waits = (61 + 3) * (tp > 1) + 58 * 2  # gathering and scattering wait apart
    assert float(slow.decode_step(8.0, 1000.0)["collectives"]) == pytest.approx(waits, rel=1e-4)
    tensors = replica("deepseek-v3", devices=8, tp=8).prefill(tokens)["collectives"]
    assert float(found) < float(tensors)  # attention of other tokens on each rank still saves its all-reduce


def test_a_lone_prompt_stays_on_its_attention_rank() -> None:
    """Its experts lie on all devices; what it has for attention is one rank's, as if there were no others."""
    one, ranks, tensors = (
        replica("deepseek-v3", **layout).first_token(8192.0)
        for layout in ({"devices": 1}, {"devices": 8, "tp": 1}, {"devices": 8, "tp": 8})
    )
    for name in ("linear", "attention"):
        assert float(ranks[name]) == pytest.approx(float(one[name]), rel=1e-9)
        assert float(ranks[name]) == pytest.approx(8 * float(tensors[name]), rel=1e-3)
    assert float(ranks["experts"]) == pytest.approx(float(one["experts"]) / 8, rel=1e-9)
    engine = replica("deepseek-v3", devices=8, tp=1)
    assert float(engine.prefill_alone_s(8192.0)) > 2 * float(engine.prefill_s(8192.0))  # of which ranks take eight


@pytest.mark.parametrize("ep", [1, 8])
def test_one_attention_rank_is_no_other_for_a_lone_prompt(ep: int) -> None:
    engine = replica("deepseek-v3", devices=8, tp=8, ep=ep)
    alone, shared = engine.first_token(8192.0), engine.prefill(8192.0)
    assert float(alone["attention"]) == float(shared["attention"])


def test_devices_without_links_talk_over_host_and_network() -> None:
    bare = replace(MACHINE, pair_bytes_per_s=0.0, all_bytes_per_s=0.0, scale_up_devices=1, pcie=1.0)
    for devices in (1, 2, 8, 16):
        step = replica(machine=bare, devices=devices, tp=devices).decode_step(16.0, 1000.0).total
        assert np.isfinite(step)
        assert float(step) > 0


def test_a_bus_has_a_share_of_its_own() -> None:
    bus = replace(MACHINE, pair_bytes_per_s=32e9, all_bytes_per_s=32e9, pcie=1.0)
    own = replace(replica(machine=bus, devices=4, tp=4), constants=replace(TEXTBOOK, pcie=TEXTBOOK.link / 2))
    like = replica(machine=bus, devices=4, tp=4)
    assert float(own.prefill(2048.0)["collectives"]) == pytest.approx(2 * float(like.prefill(2048.0)["collectives"]))
    fast = replace(replica(devices=4, tp=4), constants=replace(TEXTBOOK, pcie=0.1))
    assert float(fast.prefill(2048.0)["collectives"]) == float(replica(devices=4, tp=4).prefill(2048.0)["collectives"])


def test_sparse_attention_reads_what_its_index_chooses() -> None:
    """DeepSeek-V3.2 against V3: at long contexts 2,048 latents and an index in place of all latents."""
    sparse, whole = (replica(name, devices=8, tp=8) for name in ("deepseek-v3.2", "deepseek-v3"))
    short, long = ([float(one.decode_step(8.0, n)["attention"]) for one in (sparse, whole)] for n in (1024.0, 131072.0))
    assert short[0] > short[1]  # the index comes on top
    assert long[0] < 0.5 * long[1]
    read = 61 * 8 * (2048 * 1152 + 131072 * 132) / (3e12 * TEXTBOOK.bandwidth)
    assert long[0] == pytest.approx(read, rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "peaks", "unpacked"),
    [("fp8", {"bf16": 1.0}, 1.0), ("fp8", {"bf16": 1.0, "fp8": 2.0}, 0.0), ("int4", {"bf16": 1.0, "int8": 2.0}, 1.0),
     ("bf16", {"bf16": 1.0}, 0.0), ("nvfp4", {"bf16": 1.0, "fp8": 2.0}, 1.0), ("q4_k_m", {"bf16": 1.0}, 0.0)],
)  # fmt: skip
def test_weights_that_no_hardware_takes_are_unpacked(weights: str, peaks: dict[str, float], unpacked: float) -> None:
    found = serving_peaks(load_model("llama-3.1-8b"), weights, peaks)
    assert (found.linear_unpacked, found.shared(0.5).linear_unpacked) == (unpacked, unpacked)
    own = replica("llama-3.1-8b", devices=1)
    slow = replace(own, constants=replace(TEXTBOOK, unpack=0.5), peaks=replace(PEAKS, linear_unpacked=unpacked))
    ratio = float(slow.decode_step(1.0, 100.0)["linear"]) / float(own.decode_step(1.0, 100.0)["linear"])
    assert ratio == pytest.approx(2.0 if unpacked else 1.0)


def test_consumer_cards_add_up_at_sixteen_bits_twice_as_fast() -> None:
    arch = load_model("llama-3.1-8b")
    card, workstation, fruit = (
        {"fp16": 165.0, "bf16": 165.0, "int8": 660.0}, {"bf16": 364.0, "int8": 728.0}, {"fp16": 10.6}
    )  # fmt: skip
    assert [serving_peaks(arch, "fp16", one, narrow_sums=True).linear for one in (card, workstation, fruit)] == [
        330.0, 364.0, 10.6,
    ]  # fmt: skip
    assert serving_peaks(arch, "fp16", card).linear == 165.0
