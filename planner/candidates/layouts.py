"""Every legal way to split one training job over N devices, as parallel arrays.

A layout is a choice of (tp, pp, vpp, cp, ep, micro-batch, sharding, recompute, global batch)
for a number of devices; data parallelism takes what is left: dp = N / (tp·pp·cp). The rules
of legality are those of Megatron-LM and of ZeRO (training-model section 0):

* tp divides the query heads and the MLP width and stays inside one fast domain;
* pp is at most the number of layers; vpp > 1 needs pp > 1, equal chunks of the layers (or of the
  layers with embedding and loss for one each; nearly equal ones for powers of two without such),
  and micro-batches in multiples of pp;
* ep divides the experts and the ranks that share them;
* a context-parallel rank keeps at least `SMALLEST_CONTEXT_CHUNK` tokens;
* the global batch is a multiple of dp·micro_batch, at most `BATCH_TOLERANCE` from what was asked;
* a sharding stage that changes nothing (one rank to shard over; ZeRO-2 under a pipeline with
  several micro-batches, where gradients stay whole until the last one) is the same layout as the
  stage below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.estimate.layout import ENDS, Layout, cut_chunks, equal_chunks
from planner.estimate.software_layouts import MANY_DEVICES, SHORT_TOKENS, adapters_can, cuts_base, named_can
from planner.scenario.schema import TrainingJob

IntArray = NDArray[np.int64]

SMALLEST_CONTEXT_CHUNK = 4096  # tokens; shorter chunks cannot hide their ring exchange
BATCH_TOLERANCE = 0.10  # of the asked global batch
LARGEST_MICRO_BATCH = 64  # sequences of one pass; of a model of unknown shape 16
_COARSE_MICRO_BATCH = 16
LARGEST_PASS_VALUES = 2**29  # tokens x width of one pass: more neither fits nor fills a device better
LARGEST_PIPELINE = 64
DIGITS = 4  # binary, of the micro-batches that are looked at where a step has many passes
FEW_PASSES = 8  # of a step, up to which the batch that a micro-batch makes up counts
SHARDING: tuple[Literal["none", "zero-1", "zero-2", "zero-3"], ...] = ("none", "zero-1", "zero-2", "zero-3")
RECOMPUTE: tuple[Literal["none", "selective", "full"], ...] = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRules:
    """What a job and a machine allow."""

    sequence_length: int
    batches: tuple[float, ...]  # asked global batches [sequences]
    batch_range: tuple[float, float]  # global batch may lie anywhere in here [sequences]
    sharding: tuple[int, ...]  # allowed stages
    recompute: tuple[int, ...]  # allowed levels
    domain_devices: int  # devices of one fast domain
    domains: tuple[int, ...] = ()  # and of each of those where any degree that divides them may be laid out
    pinned: tuple[tuple[str, tuple[int, ...]], ...] = ()  # sizes that are fixed, by name

    def choices(self, name: str, otherwise: Sequence[int]) -> list[int]:
        """Sizes of a kind to try: those that are fixed, else the usual ones."""
        return sorted(set(dict(self.pinned).get(name, otherwise)))


def enumerate_layouts(arch: Architecture, device_counts: Sequence[int], rules: LayoutRules) -> Layout:
    """All legal layouts for each of the device counts, in a canonical order.

    Parameters
    ----------
    arch
        The model; one without layers is split over data alone.
    device_counts
        In any order; one that is there twice counts once.
    rules
        What the job and the machine allow, the same for all counts.
    """
    splits = _model_splits(arch, rules)
    tp, pp, cp, ep, vpp = splits.T
    counts = np.asarray(sorted(set(device_counts)), dtype=np.int64)
    row, col = np.nonzero(_divides(tp * pp * cp, counts))
    table = _Table(devices=counts[col], tp=tp[row], pp=pp[row], cp=cp[row], ep=ep[row], vpp=vpp[row])
    table = table.select(_experts_fit(table))
    table = table.select(np.isin(table.dp, rules.choices("dp", np.unique(table.dp).tolist())))
    micro = _tried(arch, rules)
    rows = np.repeat(np.arange(len(table.devices)), len(micro))
    sizes = np.tile(micro, len(table.devices))
    return _with_memory_policies(*_with_batches(table.select(rows), sizes, rules), rules)


def finer_layouts(arch: Architecture, near: Layout, rules: LayoutRules) -> Layout:
    """Layouts beside some of `enumerate_layouts` with micro-batches that it leaves out.

    All whole numbers between the tried ones before and after that the batch can be made of. Where a step has many
    passes only those of `DIGITS`: what lies between them is worth less than 0.3 %. A size that is fixed stays.

    Parameters
    ----------
    near
        (n,) the layouts beside which to look.
    """
    if "micro_batch" in dict(rules.pinned):
        return near.select(np.zeros(0, dtype=np.int64))
    sizes = [np.asarray(getattr(near, name), dtype=np.int64) for name in (*_Table.__slots__, "micro_batch")]
    *splits, micro = np.unique(np.stack(sizes), axis=1)
    table = _Table(**dict(zip(_Table.__slots__, splits)))
    before, after = tried_around(table, micro, arch, rules)
    lengths = after - before - 1
    size = np.arange(lengths.sum()) + np.repeat(before + 1 - np.cumsum(lengths) + lengths, lengths)
    table = table.select(np.repeat(np.arange(len(lengths)), lengths))
    rough = size % (1 << np.maximum(np.log2(size).astype(np.int64) - DIGITS + 1, 0)) == 0
    few = table.dp * size * FEW_PASSES >= rules.batch_range[0]
    new = np.flatnonzero((rough | few) & ~np.isin(size, _tried(arch, rules)))
    once = np.unique(np.stack([*(getattr(table, name)[new] for name in _Table.__slots__), size[new]]), axis=1)
    table = _Table(**dict(zip(_Table.__slots__, once[:-1])))
    found = _with_memory_policies(*_with_batches(table, once[-1], rules), rules)
    return found.select(np.flatnonzero(np.isin(split_numbers(found, near), split_numbers(near, near))))


def _tried(arch: Architecture, rules: LayoutRules) -> IntArray:
    """Micro-batches that are tried of every split."""
    return np.array(rules.choices("micro_batch", _powers_of_two(largest_micro_batch(arch, rules.sequence_length))))


def tried_around(
    layout: Layout | _Table, micro: IntArray, arch: Architecture, rules: LayoutRules
) -> tuple[IntArray, IntArray]:
    """The tried micro-batches next below and above others, of those whose whole passes make up a batch asked for.

    Parameters
    ----------
    layout
        (n,) splits.
    micro
        (n,) the others, one of each split.  [sequences]

    Returns
    -------
    Two arrays (n,); 0 and one more than the largest where there is none.  [sequences]
    """
    sizes, largest = _tried(arch, rules), largest_micro_batch(arch, rules.sequence_length)
    rounds = np.where(np.asarray(layout.vpp) > 1, layout.pp, 1)
    step = (np.asarray(layout.dp) * rounds)[:, None] * sizes
    asked = [nearest_multiple(np.full(step.shape, batch), step, rules.batch_range) > 0 for batch in rules.batches]
    able = np.logical_or.reduce(asked)
    before = np.where(able & (sizes < micro[:, None]), sizes, 0).max(axis=1)
    after = np.where(able & (sizes > micro[:, None]), sizes, largest + 1).min(axis=1)
    return before, after


def split_numbers(layout: Layout, among: Layout) -> IntArray:
    """A whole number for each layout, equal where they differ in nothing but micro-batch, recomputation and batch.

    Parameters
    ----------
    among
        Layouts whose numbers of devices, degrees and virtual stages are all that there are.
    """
    number = np.searchsorted(np.unique(among.devices), layout.devices) * len(SHARDING) + np.asarray(layout.sharding)
    for name in ("tp", "pp", "vpp", "cp", "ep"):
        number = number * (int(np.max(getattr(among, name), initial=0)) + 1) + np.asarray(getattr(layout, name))
    return np.asarray(number)


def replica_sizes(arch: Architecture, rules: LayoutRules) -> set[int]:
    """Devices of one data-parallel replica in every legal split."""
    tp, pp, cp, _, _ = _model_splits(arch, rules).T
    return set((tp * pp * cp).tolist())


def largest_micro_batch(arch: Architecture, sequence_length: int) -> int:
    """Most sequences that one pass of a rank is tried with: many of a narrow model, few of a wide one."""
    if not arch.layers:
        return _COARSE_MICRO_BATCH
    return min(max(LARGEST_PASS_VALUES // (sequence_length * arch.hidden_size), 1), LARGEST_MICRO_BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Layouts under construction; `dp` follows from the rest."""

    devices: IntArray
    tp: IntArray
    pp: IntArray
    cp: IntArray
    ep: IntArray
    vpp: IntArray

    @property
    def dp(self) -> IntArray:
        return self.devices // (self.tp * self.pp * self.cp)

    def select(self, which: NDArray[np.bool_] | IntArray) -> _Table:
        return _Table(**{name: getattr(self, name)[which] for name in self.__slots__})


def offered(job: TrainingJob, rules: LayoutRules, layout: Layout) -> Layout:
    """Without the layouts that the framework of a job does not have, and without those that none advises.

    Parameters
    ----------
    job
        Its framework, where it names one, says what there is; else whether it trains adapters counts.
    rules
        Where a number of stages is fixed there, a framework left open takes every layout that its weights allow.
    layout
        (n,) legal layouts.
    """
    named = named_can(job, layout)
    if named is not None:
        return layout.select(np.flatnonzero(named & ~unadvised(job, rules, layout)))
    if "pp" in dict(rules.pinned):
        return layout.select(np.flatnonzero(cuts_base(job, layout) & ~unadvised(job, rules, layout)))
    if job.lora is not None:
        return layout.select(np.flatnonzero(adapters_can(job, layout)))
    return layout.select(np.flatnonzero(~unadvised(job, rules, layout)))


def unadvised(job: TrainingJob, rules: LayoutRules, layout: Layout) -> NDArray[np.bool_]:
    """What nobody advises and nobody asks for.

    Gradients or weights shared out under a pipeline: few trainers have both, and stages that are fixed alone do not ask
    for it, but where the job says how it is sharded, or by what software. A short sequence and experts both split on
    few devices: of mixtures of experts only the largest are pre-trained so, and no measured row is (Megatron Bridge's
    starting points of parallelism, read on 2026-11-28: Qwen3 235B alone).

    Parameters
    ----------
    job
        One that trains adapters is held to what its software has.
    rules
        Where a number of stages or a degree is fixed there, it is asked for.
    layout
        (n,) legal layouts.
    """
    pinned = dict(rules.pinned)
    asked = "pp" in pinned and (job.framework is not None or set(job.sharding) < set(SHARDING))
    if job.lora is not None or asked:
        return np.zeros(np.size(layout.pp), dtype=bool)
    found = (np.asarray(layout.pp) > 1) & (np.asarray(layout.sharding) > 1)
    if "pp" in pinned:
        return np.asarray(found)
    if rules.sequence_length <= SHORT_TOKENS and not {"cp", "ep"} & pinned.keys():
        both = (np.asarray(layout.cp) > 1) & (np.asarray(layout.ep) > 1)
        found = found | both & (np.asarray(layout.devices) < MANY_DEVICES)
    return np.asarray(found)


def _model_splits(arch: Architecture, rules: LayoutRules) -> IntArray:
    """(k, 5) array of tp, pp, cp, ep, vpp that the model itself allows, whatever the device count."""
    layers = max(arch.layer_count, 1)
    deepest = min(layers, LARGEST_PIPELINE) if arch.layers else 1
    chunks = {pp: _chunks(layers, pp, rules) for pp in rules.choices("pp", range(1, deepest + 1))}
    splits = [
        (tp, pp, cp, ep, vpp)
        for tp in rules.choices("tp", tensor_splits(arch, rules.domain_devices, rules.domains))
        if tp <= rules.domain_devices and splits_tensors(arch, tp)
        for pp in rules.choices("pp", range(1, deepest + 1))
        if pp <= (layers if arch.layers else 1)
        for cp in rules.choices("cp", _context_splits(arch, rules.sequence_length))
        if splits_context(arch, rules.sequence_length, cp)
        for ep in rules.choices("ep", _expert_splits(arch))
        if splits_experts(arch, ep)
        for vpp in chunks[pp]
    ]
    return np.array(splits, dtype=np.int64).reshape(-1, 5)


def _chunks(layers: int, stages: int, rules: LayoutRules) -> list[int]:
    """Virtual stages: all that make equal chunks; of stages without such, nearly equal ones, as recipes have them."""
    most = range(2, (layers + ENDS) // stages + 1) if stages > 1 else range(0)
    able = [1, *(v for v in most if equal_chunks(layers, stages, v))]
    if len(able) == 1 and stages & (stages - 1) == 0:
        able += [v for v in most if cut_chunks(layers, stages, v)]
    return [v for v in rules.choices("vpp", able) if v in able or (v in most and cut_chunks(layers, stages, v))]


def tensor_splits(arch: Architecture, largest: int, domains: Sequence[int] = ()) -> list[int]:
    """Tensor-parallel degrees that divide every head count and MLP width: powers of two, and divisors of a domain.

    Parameters
    ----------
    arch
        The model; one without layers is not split.
    largest
        No degree is larger.
    domains
        Devices of fast domains, whose divisors are tried, too; empty: powers of two alone.
    """
    heads = max((group.query_heads for group in arch.layers), default=1)
    others = {tp for tp in range(3, min(largest, heads) + 1) if any(domain % tp == 0 for domain in domains)}
    return [tp for tp in sorted({*_powers_of_two(largest), *others}) if splits_tensors(arch, tp)]


def laid_out(tp: IntArray, domain: int | IntArray) -> NDArray[np.bool_]:
    """Whether tensor-parallel ranks stay inside a fast domain without leaving some of it over."""
    return np.asarray((tp <= domain) & ((tp & (tp - 1) == 0) | (domain % tp == 0)))


def splits_tensors(arch: Architecture, tp: int) -> bool:
    """Whether tensor-parallel ranks divide every head count and MLP width; one rank always does."""
    return tp == 1 or (bool(arch.layers) and all(_splits_layer(group, tp) for group in arch.layers))


def splits_context(arch: Architecture, sequence_length: int, cp: int) -> bool:
    """Whether a sequence makes two chunks for each context-parallel rank.

    Parameters
    ----------
    arch
        The model; the sequence of one without layers is not split.
    sequence_length
        Tokens of the sequence.  [tokens]
    cp
        Context-parallel ranks; 1 always does.
    """
    return cp == 1 or (bool(arch.layers) and sequence_length % (2 * cp) == 0)


def splits_experts(arch: Architecture, ep: int) -> bool:
    """Whether expert-parallel ranks divide the experts of every layer that has some."""
    experts = [group.experts for group in arch.layers if group.experts]
    return ep == 1 or (bool(experts) and all(count % ep == 0 for count in experts))


def _splits_layer(group: object, tp: int) -> bool:
    heads = group.query_heads  # type: ignore[attr-defined]
    widths = (group.mlp_width, group.expert_width, group.shared_expert_width)  # type: ignore[attr-defined]
    kv_heads = group.kv_heads  # type: ignore[attr-defined]
    kv_fits = kv_heads % tp == 0 or tp % kv_heads == 0  # fewer KV heads than ranks: they are replicated
    return heads % tp == 0 and kv_fits and all(width % tp == 0 for width in widths)


def _context_splits(arch: Architecture, sequence_length: int) -> list[int]:
    largest = sequence_length // SMALLEST_CONTEXT_CHUNK if arch.layers else 1
    return [cp for cp in range(1, max(largest, 1) + 1) if sequence_length % (2 * cp) == 0 or cp == 1]


def _expert_splits(arch: Architecture) -> list[int]:
    experts = [group.experts for group in arch.layers if group.experts]
    if not experts:
        return [1]
    return [ep for ep in _powers_of_two(max(experts)) if all(count % ep == 0 for count in experts)]


def _powers_of_two(largest: int) -> list[int]:
    return [2**exponent for exponent in range(int(largest).bit_length()) if 2**exponent <= largest]


def _divides(parts: IntArray, counts: IntArray) -> NDArray[np.bool_]:
    return np.asarray(counts[None, :] % parts[:, None] == 0)


def _experts_fit(table: _Table) -> NDArray[np.bool_]:
    """Expert parallelism is laid over the ranks of one pipeline stage: dp·cp·tp."""
    return np.asarray((table.dp * table.cp * table.tp) % table.ep == 0)


def _with_batches(table: _Table, micro: IntArray, rules: LayoutRules) -> tuple[_Table, IntArray, IntArray]:
    """Cross layouts of some micro-batches with the asked batches; keep those whose batch can be met."""
    asked = np.sort(np.array(rules.batches, dtype=np.float64))
    rows = len(table.devices)
    index = np.repeat(np.arange(rows), len(asked))
    micro_batch = micro[index]
    rounds = np.where(table.vpp > 1, table.pp, 1)[index]  # an interleaved schedule takes whole rounds of stages
    step = table.dp[index] * micro_batch * rounds
    batch = nearest_multiple(np.tile(asked, rows), step, rules.batch_range)
    again = np.zeros(len(batch), dtype=bool)  # two asked batches with one nearest multiple
    again[1:] = (batch[1:] == batch[:-1]) & (np.arange(1, len(batch)) % len(asked) > 0)
    keep = np.flatnonzero((batch > 0) & ~again)
    return table.select(index[keep]), micro_batch[keep], batch[keep]


def nearest_multiple(asked: NDArray[np.float64], step: IntArray, allowed: tuple[float, float]) -> IntArray:
    """The multiple of `step` nearest to what was asked and inside `allowed`; 0 where there is none.

    Parameters
    ----------
    asked
        Batches that are asked for, of any shape.  [sequences]
    step
        What each must be a multiple of, of the same shape.  [sequences]
    allowed
        Least and most, both included.  [sequences]
    """
    low, high = allowed
    first = np.ceil(low / step - 1e-9).astype(np.int64)
    last = np.floor(high / step + 1e-9).astype(np.int64)
    near = np.clip(np.rint(asked / step).astype(np.int64), np.maximum(first, 1), np.maximum(last, 1))
    batch: IntArray = np.where((near >= first) & (near <= last), near * step, 0)
    return batch


def _with_memory_policies(table: _Table, micro_batch: IntArray, batch: IntArray, rules: LayoutRules) -> Layout:
    """Cross with sharding stages and recompute levels, without stages that change nothing."""
    stages = np.array(rules.sharding, dtype=np.int64)
    levels = np.array(rules.recompute, dtype=np.int64)
    rows = len(table.devices)
    index = np.repeat(np.arange(rows), len(stages) * len(levels))
    sharding = np.tile(np.repeat(stages, len(levels)), rows)
    recompute = np.tile(levels, rows * len(stages))
    lowest = stages.min()
    # on one data-parallel rank only whole experts, which tp / ep tensor-parallel ranks copy, are left to shard
    one_rank = (table.dp * table.cp == 1) & ((table.ep == 1) | (table.ep == table.tp))
    accumulates = batch > table.dp * micro_batch
    as_stage_1 = accumulates & (table.pp > 1) if 1 in rules.sharding else np.zeros(rows, dtype=bool)
    keep = np.flatnonzero(~((one_rank[index] & (sharding > lowest)) | (as_stage_1[index] & (sharding == 2))))
    index, table = index[keep], table.select(index[keep])
    return Layout(
        devices=table.devices,
        dp=table.dp,
        tp=table.tp,
        pp=table.pp,
        vpp=table.vpp,
        cp=table.cp,
        ep=table.ep,
        micro_batch=micro_batch[index],
        sharding=sharding[keep],
        recompute=recompute[keep],
        global_batch=batch[index],
    )
