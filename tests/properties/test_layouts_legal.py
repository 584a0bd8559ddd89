"""The layouts that the search lists are those that nested loops find with rules written a second time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.api import load_model
from planner.architecture.load import coarse_model
from planner.architecture.model import Architecture
from planner.candidates.layouts import BATCH_TOLERANCE, LayoutRules, enumerate_layouts
from planner.estimate.layout import Layout
from planner.estimate.training import training_memory
from planner.estimate.training_spec import TrainingSpec
from tests.tiers import sampled, settings

# dense with few KV heads, with as many as query heads, with 25 heads; experts without and with dense layers; MLA
MODELS = ["llama-3.1-8b", "qwen2.5-1.5b", "llama-7b", "gpt2-xl", "gpt2", "mixtral-8x7b", "llama-4-scout-text",
          "qwen3-30b-a3b", "deepseek-v2-lite", "coarse"]  # fmt: skip
NAMES = ("devices", "dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "sharding", "recompute", "global_batch")


class Split(NamedTuple):
    """One layout, by hand."""

    devices: int
    dp: int
    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    micro_batch: int
    sharding: int
    recompute: int
    global_batch: int


def model(name: str) -> Architecture:
    return coarse_model(1e9) if name == "coarse" else load_model(name)


def rules(
    sequence: int = 8192,
    batches: Sequence[float] = (64.0,),
    batch_range: tuple[float, float] | None = None,
    sharding: tuple[int, ...] = (0, 1, 2, 3),
    recompute: tuple[int, ...] = (0, 1, 2),
    domain: int = 8,
) -> LayoutRules:
    around = (batches[0] * (1 - BATCH_TOLERANCE), batches[0] * (1 + BATCH_TOLERANCE))
    return LayoutRules(
        sequence_length=sequence,
        batches=tuple(batches),
        batch_range=batch_range or around,
        sharding=sharding,
        recompute=recompute,
        domain_devices=domain,
    )


def by_hand(arch: Architecture, devices: int, rules: LayoutRules) -> Iterator[Split]:
    """Every legal split of a number of devices, stages that change nothing included."""
    powers = [2**k for k in range(20)]
    layers = arch.layer_count
    for tp in [t for t in powers if t <= rules.domain_devices and _tensor(arch, t)]:
        for pp in range(1, (layers or 1) + 1):
            if pp > 64:
                continue
            for cp in [c for c in range(1, 65) if _context(arch, rules.sequence_length, c)]:
                if devices % (tp * pp * cp) != 0:
                    continue
                dp = devices // (tp * pp * cp)
                for ep in [e for e in powers if _experts(arch, dp * cp * tp, e)]:
                    for micro in [m for m in powers if m <= _most_sequences(arch, rules.sequence_length)]:
                        for vpp in range(1, (layers + 2) // pp + 1):
                            if vpp > 1 and (pp == 1 or not _chunked(layers, pp, vpp)):
                                continue
                            # an interleaved schedule takes whole rounds of stages
                            for batch in _batches(rules, dp * micro * (pp if vpp > 1 else 1)):
                                for sharding in rules.sharding:
                                    for level in rules.recompute:
                                        yield Split(devices, dp, tp, pp, vpp, cp, ep, micro, sharding, level, batch)


def _most_sequences(arch: Architecture, sequence: int) -> int:
    return min(64, max(1, 2**29 // (sequence * arch.hidden_size))) if arch.layers else 16


def _chunked(layers: int, pp: int, vpp: int) -> bool:
    """Chunks of one size; stages that are a power of two and have no such chunks: few of them a layer short."""

    def even(chunks: int) -> bool:
        return 0 in (layers % (pp * chunks), (layers + 2) % (pp * chunks))

    if any(even(chunks) for chunks in range(2, (layers + 2) // pp + 1)) or pp not in [2**k for k in range(20)]:
        return even(vpp)
    size = math.ceil(layers / (pp * vpp))
    return pp * vpp <= layers and pp * vpp * size - layers <= 0.1 * pp * vpp * size


def _tensor(arch: Architecture, tp: int) -> bool:
    if not arch.layers:
        return tp == 1
    for group in arch.layers:
        widths = [group.query_heads, group.mlp_width, group.expert_width, group.shared_expert_width]
        if any(width % tp != 0 for width in widths):
            return False
        if max(group.kv_heads, tp) % min(group.kv_heads, tp) != 0:  # whole heads a rank, or whole ranks a head
            return False
    return True


def _context(arch: Architecture, sequence: int, cp: int) -> bool:
    if cp == 1:
        return True
    # two chunks a rank balance the causal mask
    return bool(arch.layers) and sequence / cp >= 4096 and sequence % (2 * cp) == 0


def _experts(arch: Architecture, ranks: int, ep: int) -> bool:
    counts = {group.experts for group in arch.layers if group.experts}
    return ep == 1 or (bool(counts) and ranks % ep == 0 and all(count % ep == 0 for count in counts))


def _batches(rules: LayoutRules, step: int) -> set[int]:
    """For each asked batch the nearest multiple of a step in range; of two as near, either counts."""
    low, high = rules.batch_range
    multiples = [k * step for k in range(1, math.floor(high / step + 1e-9) + 1) if k * step >= low - 1e-9]
    return {min(multiples, key=lambda m: (abs(m - asked), m % (2 * step))) for asked in rules.batches if multiples}


def changes_nothing(one: Split, rules: LayoutRules) -> bool:
    """Whether a smaller allowed stage keeps exactly the same states on every rank."""
    if one.dp * one.cp == 1 and one.ep in (1, one.tp):  # else each whole expert has copies on tp / ep ranks
        return one.sharding > min(rules.sharding)
    passes = one.global_batch // (one.dp * one.micro_batch)
    return one.sharding == 2 and one.pp > 1 and passes > 1 and 1 in rules.sharding


def rows(layout: Layout) -> list[Split]:
    columns = [np.asarray(getattr(layout, name)) for name in NAMES]
    return [Split(*(int(value) for value in row)) for row in zip(*columns)]


CASES = [
    ("one figure", 8192, (64.0,), None),
    ("no divisor", 8192, (61.0,), None),
    ("one sequence", 4096, (1.0,), None),
    ("a range", 8192, (16.0, 32.0, 64.0, 100.0), (16.0, 100.0)),
    ("a narrow range", 16384, (30.0, 34.0), (30.0, 34.0)),
    ("long sequences", 65536, (8.0,), None),
    ("an odd length", 12290, (24.0,), None),
]


@pytest.mark.parametrize("name", sampled(MODELS, 4))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_search_lists_what_nested_loops_find(name: str, case: tuple[str, int, tuple[float, ...], None]) -> None:
    arch, (_, sequence, batches, batch_range) = model(name), case
    asked = rules(sequence, batches, batch_range)
    for devices in (1, 2, 6, 8, 16, 24):
        found = rows(enumerate_layouts(arch, [devices], asked))
        expected = {one for one in by_hand(arch, devices, asked) if not changes_nothing(one, asked)}
        assert len(found) == len(set(found)), "a layout is listed twice"
        assert set(found) - expected == set()
        assert expected - set(found) == set()


@pytest.mark.parametrize("name", ["qwen2.5-1.5b", "mixtral-8x7b"])
@pytest.mark.parametrize("sharding", [(0,), (3,), (0, 2), (1, 2), (2,), (2, 3)])
@pytest.mark.parametrize("recompute", [(0,), (2,), (0, 2)])
def test_restricted_lists_are_kept_to(name: str, sharding: tuple[int, ...], recompute: tuple[int, ...]) -> None:
    arch, asked = model(name), rules(sharding=sharding, recompute=recompute)
    for devices in (1, 8, 12):
        found = rows(enumerate_layouts(arch, [devices], asked))
        assert set(found) == {one for one in by_hand(arch, devices, asked) if not changes_nothing(one, asked)}
        assert {one.sharding for one in found} <= set(sharding)
        assert {one.recompute for one in found} == set(recompute)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "qwen3-30b-a3b"])
def test_stages_left_out_need_as_much_memory_as_one_that_is_listed(name: str) -> None:
    """Nothing is lost with them: the same split with a listed stage holds exactly as much."""
    arch, asked = model(name), rules(batches=(16.0,), recompute=(0,))
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    for devices in (1, 4, 8, 16):
        everything = list(by_hand(arch, devices, asked))
        needed = dict(zip(everything, np.broadcast_to(_memory(arch, spec, everything), len(everything))))
        listed = set(rows(enumerate_layouts(arch, [devices], asked)))
        for one in everything:
            if one not in listed:
                others = [one._replace(sharding=stage) for stage in range(4)]
                assert min(needed[other] for other in others if other in listed) <= needed[one] * (1 + 1e-12), one


def _memory(arch: Architecture, spec: TrainingSpec, splits: list[Split]) -> np.ndarray:
    layout = Layout(**{name: np.array([getattr(one, name) for one in splits]) for name in NAMES})
    return np.asarray(training_memory(arch, spec, layout).total)


@settings(max_examples=40, few=20)
@given(
    name=st.sampled_from(MODELS),
    counts=st.lists(st.integers(min_value=1, max_value=96), min_size=1, max_size=4),
    sequence=st.sampled_from([512, 4096, 8192, 32768, 131072]),
    batch=st.floats(min_value=1.0, max_value=5000.0),
    width=st.floats(min_value=1.0, max_value=8.0),
    domain=st.sampled_from([1, 2, 4, 8, 16, 72]),
)
def test_laws_of_every_layout(
    name: str, counts: list[int], sequence: int, batch: float, width: float, domain: int
) -> None:
    arch = model(name)
    asked = rules(sequence, (batch, batch * width), (batch, batch * width), domain=domain)
    layout = enumerate_layouts(arch, counts, asked)
    dp, tp, pp, cp = (np.asarray(getattr(layout, axis)) for axis in ("dp", "tp", "pp", "cp"))
    size = np.asarray(layout.global_batch)
    step = dp * np.asarray(layout.micro_batch)
    assert set(np.unique(layout.devices)) <= set(counts)
    assert np.array_equal(dp * tp * pp * cp, layout.devices)
    assert (dp >= 1).all()
    assert (tp <= domain).all()
    assert (size % step == 0).all()
    assert np.array_equal(layout.micro_batches, size // step)
    assert (size >= batch * (1 - 1e-9)).all()
    assert (size <= batch * width * (1 + 1e-9)).all()
    assert len(set(rows(layout))) == len(size)


@settings(max_examples=30, few=12)
@given(
    name=st.sampled_from(["llama-3.1-8b", "mixtral-8x7b"]),
    counts=st.lists(st.sampled_from([1, 2, 3, 4, 8, 12]), min_size=2, max_size=4, unique=True),
)
def test_device_counts_do_not_influence_each_other(name: str, counts: list[int]) -> None:
    arch, asked = model(name), rules()
    together = rows(enumerate_layouts(arch, counts, asked))
    apart = [one for count in sorted(counts) for one in rows(enumerate_layouts(arch, [count], asked))]
    assert sorted(together) == sorted(apart)
    assert rows(enumerate_layouts(arch, [*counts[::-1], counts[0]], asked)) == together, "the order is canonical"
