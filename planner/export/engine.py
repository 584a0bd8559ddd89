"""What a serving engine is told of one allocation, whatever its own options are called.

The memory share is that of the plan, so that an engine finds the cache that the plan counted on; the step and the
sequences at once are those that the latencies were predicted for.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from types import MappingProxyType

from planner.architecture.load import holds_layers_ahead, preset_card
from planner.architecture.model import is_text_part
from planner.estimate.engines import as_stored, cut_block, engine_rules, not_in_code
from planner.estimate.kernels import (
    FP8_CAPABILITY,
    LEAST_CAPABILITY,
    MXFP4_CAPABILITY,
    OLD_CAPABILITY,
    is_older,
    left_behind,
)
from planner.estimate.resolve_serving import LONGEST_SPREADS
from planner.estimate.serving import sends_tokens
from planner.estimate.serving_tiers import no_drafts, unmoved
from planner.export.file_text import Target
from planner.export.launch import NotExpressible, ServingLaunch
from planner.scenario.workload_parts import Lengths
from planner.traffic.request_trace import LONGEST

UNKNOWN_SPREAD = 4  # a request may be so many times as long as a mean that is given without a spread
# Libraries that send tokens to their experts, by the vendor of the devices
# (vllm-project/vllm pull request 28664; docs.sglang.io, Expert Parallelism; read on 2026-12-01)
EXCHANGES = MappingProxyType({"nvidia": "DeepEP", "amd": "MoRI"})
BLOCK = 16  # tokens of a page of the cache: limits are whole pages
_SCORE_P99 = NormalDist().inv_cdf(0.99)
SIXTEEN_BITS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# Families whose repositories hold their tokenizer or config as code, without which engines stop (kimi_k2:
# vllm-project/recipes pull request 116, NVIDIA-NeMo/Megatron-Bridge pull request 2881; read on 2026-11-30; others:
# vllm-project/vllm:tests/models/registry.py@0008d35, of families that transformers has no class of; read on 2026-12-01)
CODE_OF_ITS_OWN = frozenset(
    {"baichuan", "internlm", "internlm2", "internlm3", "kimi_k2", "minicpm", "minicpm3", "nemotron-nas", "orion"}
    | {"qwen", "xverse"}
)


def refuse_old(launch: ServingLaunch, target: Target, name: str) -> None:
    """NotExpressible where a version refuses floats of few bits on a device.

    Parameters
    ----------
    launch
        The fleet's allocation.
    target
        The engine.
    name
        The engine, of `ENGINES`.

    Raises
    ------
    NotExpressible
        The fleet's weights are such floats; the device is older than what serves them, or one of AMD without fp8.
    """
    machine, weights = launch.machine, launch.fleet.weights
    form = "fp8" if weights.startswith("fp8") else weights
    least = {"fp8": FP8_CAPABILITY, "mxfp4": MXFP4_CAPABILITY}.get(form, {}).get(name, 0.0)
    older = is_older(machine.family, least)
    lacks = form == "fp8" and machine.vendor == "amd" and bool(machine.formats) and "fp8" not in machine.formats
    if older or lacks:
        has = f"compute capability {OLD_CAPABILITY[machine.family]}, and that begins at {least}" if older else "no fp8"
        raise NotExpressible(
            f"{target.name} {target.version} does not serve {form} weights on {machine.device}: it has {has}",
            f"plan again without it (hardware: deny: [{machine.device}]) or with weights: fp16",
        )


def refuse_cut_blocks(launch: ServingLaunch, name: str) -> None:
    """NotExpressible where an engine does not load the checkpoint's weights in blocks or groups over these ranks.

    Parameters
    ----------
    launch
        The fleet's allocation.
    name
        The engine, of `ENGINES`.

    Raises
    ------
    NotExpressible
        A rank would hold a part of a block or group.
    """
    weights, held = launch.fleet.weights, launch.model.checkpoint
    if launch.model.arch is None:
        return
    split = {size: getattr(launch.layout, size) for size in ("tp", "dp", "ep")}
    reason = cut_block(name, launch.model.arch, as_stored(weights, held), split)
    if not reason:
        return
    if not weights.startswith("fp8"):
        raise NotExpressible(reason, "plan again with fewer tensor ranks (layout: {tp: …}), or in another format")
    way = "fp8-block, the format of that checkpoint" if weights == "fp8" else "fp8, whose scales are no blocks"
    raise NotExpressible(reason, f"plan again with weights: {way}, or with layout: {{ep: …}}")


def refuse_splits(launch: ServingLaunch, name: str) -> None:
    """NotExpressible where an engine does not run a split of the model, beside what drafts tokens, or in a pool.

    Raises
    ------
    NotExpressible
        The replicas are split so that the engine mixes requests up, drafts no tokens, or moves no cache.
    """
    arch, layout = launch.model.arch, launch.layout
    alone, way = not_in_code(name, arch.family if arch else "", dp=layout.dp, pp=layout.pp)
    if alone:
        raise NotExpressible(alone, f"plan again, and {way}")
    reason = no_drafts(name, launch.fleet, arch.family if arch else "", layout.pp)
    if reason:
        raise NotExpressible(reason, "plan again with layout: {pp: 1}, or without speculative")
    lost = unmoved(name, launch.role, arch, tp=layout.tp, pp=layout.pp, cp=layout.cp) if arch else ""
    if lost:
        raise NotExpressible(lost, "plan again with layout: {pp: 1, cp: 1}")


def dtype(launch: ServingLaunch) -> str:
    """Number format of what is not quantised: 16-bit floats without bf16 where the device has none."""
    asked = SIXTEEN_BITS.get(launch.fleet.weights, "auto")
    known = launch.machine.formats
    no_bf16 = bool(known) and "bf16" not in known
    return "float16" if no_bf16 and asked != "float32" else asked


def memory_share(launch: ServingLaunch, engine: str) -> float | None:
    """Share of a device's memory that the plan let the engine fill; None where the plan knows no memory.

    An engine that the plan is not of gets no more than it takes by itself: what another one fills may be all there is.
    """
    planned, held = launch.memory, launch.machine.memory_bytes
    return _of_own(launch, engine, planned.usable_bytes / held) if planned and held else None


def static_share(launch: ServingLaunch, engine: str) -> float | None:
    """Share of a device's memory for weights and cache alone, without workspace and overhead; as `memory_share`."""
    planned, held = launch.memory, launch.machine.memory_bytes
    if not planned or not held:
        return None
    return _of_own(launch, engine, (planned.usable_bytes - planned.workspace_bytes) / held)


def free_share(launch: ServingLaunch, engine: str) -> float | None:
    """Share of what weights and workspace leave free that the cache was planned to take; as `memory_share`."""
    planned, held = launch.memory, launch.machine.memory_bytes
    free = held - planned.weights_bytes - planned.workspace_bytes if planned else 0.0
    return _of_own(launch, engine, planned.cache_room_bytes / free) if planned and free > 0 else None


def _of_own(launch: ServingLaunch, engine: str, share: float) -> float:
    own = engine_rules(engine)
    return _share(share if own is None or _is_planned(launch, engine) else min(share, own.memory_fraction))


def _is_planned(launch: ServingLaunch, engine: str) -> bool:
    """Whether a plan names no engine, or one that runs as this does."""
    planned = launch.engine or launch.fleet.engine or ""
    return not planned or engine_rules(planned) is engine_rules(engine)


def _share(value: float) -> float:
    return round(min(max(value, 0.01), 1.0), 4)


def sequences(launch: ServingLaunch) -> int | None:
    """Sequences that a replica runs at once, as planned; None where the plan knows none.  [count]"""
    batch = launch.batch
    return None if batch is None or not math.isfinite(batch) or batch < 1 else int(batch)


def step_tokens(launch: ServingLaunch, engine: str) -> int | None:
    """Tokens of one step as an engine counts them, never fewer than its sequences; None: no limit is known.  [tokens]

    As planned: what one engine takes on each attention rank is another's on all of them.
    """
    limits, rules, ranks = launch.limits, engine_rules(engine), launch.layout.dp
    if limits is None or not math.isfinite(limits.max_batched_tokens):
        return None
    whole = int(limits.max_batched_tokens) * (ranks if limits.of_ranks else 1)
    return -(-max(whole, sequences(launch) or 0) // (ranks if rules is not None and rules.of_ranks else 1))


def context_tokens(launch: ServingLaunch) -> int:
    """Longest request that the engine takes, prompt and answer together: whole pages, at most the model's own context.

    Requests by bucket: the upper edge of the largest that is sent here. A histogram: its longest classes. Lengths with
    a spread: the mean and three standard deviations, as the plan's memory holds, or the 99th percentiles where those
    are longer. A mean without one: four times the mean, if the cache holds that.
    """
    wanted, _ = _longest(launch)
    pages = math.ceil(wanted / BLOCK) * BLOCK
    most = launch.model.arch.max_positions if launch.model.arch else 0
    return min(pages, most) if most else pages


def _longest(launch: ServingLaunch) -> tuple[float, str]:
    """Tokens of the longest request, and what of the traffic says so."""
    return max((_from_buckets(launch), "the longest bucket that is sent here"), _from_lengths(launch))


def _from_buckets(launch: ServingLaunch) -> float:
    here = [bucket for bucket in launch.buckets if bucket.routed_requests_per_s > 0] or launch.buckets
    means = [(bucket.input_tokens or 0.0) + (bucket.output_tokens or 0.0) for bucket in here]
    return max([*means, *(_edges(bucket.name) for bucket in here)], default=0.0)


def _edges(name: str) -> float:
    """Upper edges of a bucket, "9770/388" -> 10158; 0 when its name holds none.  [tokens]"""
    try:
        edges = math.fsum(float(part) for part in name.split("/"))
    except (ValueError, OverflowError):
        return 0.0
    return edges if 0 < edges <= LONGEST else 0.0  # nan fails both


def _from_lengths(launch: ServingLaunch) -> tuple[float, str]:
    lengths = [given for given in (launch.fleet.input_length, launch.fleet.output_length) if given is not None]
    if not lengths:
        return 0.0, ""
    moments = [length.moments for length in lengths]
    mean = math.fsum(moment.mean for moment in moments)
    variance = math.fsum(max(moment.second_moment - moment.mean**2, 0.0) for moment in moments)
    if all(_without_spread(length) for length in lengths):
        held = max(mean, min(UNKNOWN_SPREAD * mean, _cache_tokens(launch)))
        return held, f"{held / mean:.3g} times the mean, as the scenario gives no percentile of lengths"
    longest = math.fsum(map(_tail_tokens, lengths))
    spread = mean + LONGEST_SPREADS * math.sqrt(variance)
    if any(length.histogram is not None for length in lengths):
        return longest, "the longest classes of prompts and answers"
    return max((spread, f"the mean and {LONGEST_SPREADS:g} standard deviations"), (longest, "p99 of prompt and answer"))


def _tail_tokens(length: Lengths) -> float:
    """The longest class of a histogram, else the 99th percentile of a log-normal, else the mean.  [tokens]"""
    if length.histogram is not None:
        return max(bucket.tokens for bucket in length.histogram)
    moments = length.moments
    return max(moments.mean, moments.mean * math.exp(_SCORE_P99 * moments.sigma - moments.sigma**2 / 2))


def _without_spread(length: Lengths) -> bool:
    return length.histogram is None and length.p95 is None


def _cache_tokens(launch: ServingLaunch) -> float:
    """Tokens that one rank's cache holds when it runs as many mean requests as planned.  [tokens]"""
    each = launch.mean_input_tokens + launch.mean_output_tokens / 2
    return (sequences(launch) or 0) // launch.layout.dp * each


def text_alone(launch: ServingLaunch) -> bool:
    """Whether the plan counts the text part of a repository that looks at pictures, too."""
    model = launch.model
    return not model.config_path and model.arch is not None and is_text_part(model.arch.family)


def engine_notes(launch: ServingLaunch, engine: str) -> list[str]:
    """What to know where the file cannot do all that was planned."""
    notes = []
    if not _is_planned(launch, engine):
        planned = launch.engine or launch.fleet.engine
        notes.append(f"capacity and latencies were predicted for {planned}, not for {engine}")
    if launch.role != "whole":
        notes.append(f"the {launch.role} pool of a disaggregated fleet: useless without its other pools")
    longest, (_, said) = context_tokens(launch), _longest(launch)
    by = f": {said}" if said else ""
    notes.append(f"a request of more than {longest} tokens, prompt and answer together, is refused by the server{by}")
    most = launch.model.arch.max_positions if launch.model.arch else 0
    if most and longest == most:
        notes.append(f"that is the model's own limit of {most} positions")
    rules, family = engine_rules(engine), launch.machine.family
    if rules is not None and left_behind(rules.name, family):
        notes.append(
            f"{launch.machine.device} has compute capability {OLD_CAPABILITY[family]}, and this version begins at "
            f"{LEAST_CAPABILITY[rules.name]}: take an older release of the engine"
        )
    return notes


def exchange(launch: ServingLaunch) -> str:
    """What sends tokens to whole experts on many ranks, as planned; "" where engines gather all tokens on all ranks."""
    layout, arch = launch.layout, launch.model.arch
    many = arch is not None and bool(sends_tokens(arch, layout.dp, layout.ep))
    return EXCHANGES.get(launch.machine.vendor, "") if many else ""


def answered_tokens(launch: ServingLaunch) -> int | None:
    """Tokens of a step of one attention rank in which it works on answers alone; None where the plan knows no batch."""
    batch, drafts = sequences(launch), launch.fleet.speculative
    return None if batch is None else -(-batch // launch.layout.dp) * (1 + (drafts.length if drafts else 0))


def runs_own_code(launch: ServingLaunch) -> bool:
    """Whether the model's repository holds code that an engine must be told to trust."""
    return launch.model.arch is not None and launch.model.arch.family in CODE_OF_ITS_OWN


def draft_repository(launch: ServingLaunch) -> str:
    """The draft model's repository on the Hugging Face hub; "" where none is named, or it is not known."""
    named = launch.fleet.speculative.model if launch.fleet.speculative else None
    return preset_card(named.preset).hf_id if named is not None and named.preset else ""


def predicts_ahead(launch: ServingLaunch) -> bool:
    """Whether layers of the model draft that predict tokens ahead, as those of DeepSeek-V3: no other one is named."""
    named = launch.fleet.speculative is not None and launch.fleet.speculative.model is not None
    return not named and holds_layers_ahead(launch.model.config or {})
