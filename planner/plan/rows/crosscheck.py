"""What estimates of a plan can be held against: the source of each term's equation, and the rules of thumb.

The rules are the founding formulas with the scenario's own numbers.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.candidates.rates import RatesQuestion
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion
from planner.candidates.training_question import TrainingQuestion
from planner.equations import rules
from planner.equations.activations import founding_activation_values, full_recompute_bytes
from planner.equations.memory import adam_mixed_precision_state_bytes
from planner.equations.registry import REGISTRY
from planner.estimate.layout import Layout
from planner.estimate.sources import MIXED_TIME, SERVING_MEMORY, SERVING_STEP, TRAINING_MEMORY, time_equations
from planner.estimate.training import training_memory
from planner.plan.rows.fleet_cells import mean_requests_per_s
from planner.scenario.schema import ServingFleet
from planner.units import format_bytes
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Allocation, CrossCheck, TermSource, TermSources
    from planner.plan.model.rows import TrainingAllocation


_FIRST_REFERENCE = re.compile(r"References\n-+\n\[1\] (?P<text>.+?)(?:\n\[|\n\n|\Z)", re.DOTALL)
_AUTHOR = re.compile(r"(?:[A-Z]\.[ -]?)+ ?(?P<name>[A-Z][\w-]+)")
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)")
_PUBLISHER = re.compile(r"(?P<name>[A-Z]{3,})\b")
_ARXIV = re.compile(r"\b(\d\d)\d\d\.\d{4,5}\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?!\.\d)")  # not the month of an arXiv number


def term_sources(question: TrainingQuestion | ServingQuestion) -> TermSources:
    """Equation and source of each term of memory and time, by the names that rows give them."""
    if isinstance(question, RatesQuestion):
        return {"memory": {}, "time": {}}
    if isinstance(question, ServingQuestion):
        step = SERVING_STEP if question.fleet.throughput_tokens_per_s_per_device is None else {}
        return {"memory": _sourced(SERVING_MEMORY), "time": _sourced(step)}
    tiers = dict.fromkeys((question.base_tier, "rule" if question.job.mfu else question.base_tier))
    time = {name: found for tier in reversed(tiers) for name, found in _sourced(time_equations(tier)).items()}
    groups = _sourced(MIXED_TIME) if question.job.mix_within_job else {}
    return {"memory": _sourced(TRAINING_MEMORY), "time": {**time, **groups}}


def _sourced(equations: Mapping[str, str]) -> dict[str, TermSource]:
    return {term: {"equation": name, "source": short_reference(name)} for term, name in equations.items()}


def short_reference(identifier: str) -> str:
    """The first source of an equation as people cite it: "Korthikanti 2022"; empty when there is none.

    Examples
    --------
    >>> short_reference("EQ-MEM-1")
    'Rajbhandari 2020'
    """
    found = _FIRST_REFERENCE.search(inspect.getdoc(REGISTRY[identifier]) or "")
    if not found:
        return ""
    text = " ".join(found["text"].split())
    named = _AUTHOR.match(text) or _REPOSITORY.match(text) or _PUBLISHER.match(text)
    return " ".join(part for part in (named["name"], _year(text)) if part) if named else ""


def _year(text: str) -> str:
    """The year that a reference names, else that of its arXiv number."""
    if year := _YEAR.search(text):
        return year[0]
    number = _ARXIV.search(text)
    return f"20{number[1]}" if number else ""


def cross_checks(candidates: Candidates, name: str, allocations: Sequence[Allocation]) -> list[CrossCheck]:
    """The founding rules of a workload, worked with its own numbers.

    Parameters
    ----------
    candidates
        Hold what is asked of each workload.
    name
        Of the workload.
    allocations
        Rows chosen for it, the dearest first, which rules go by where the scenario gives no number.
    """
    question = candidates.questions[name]
    if isinstance(question, TrainingQuestion):
        checks = [_training_rule(question), _states_rule(question)]
        if question.arch.layers and allocations:
            checks += _activation_rules(question, cast("TrainingAllocation", allocations[0]))  # of a job
        return checks
    if isinstance(question, RatesQuestion):
        return []
    return _serving_rules(question, cast("Sequence[ServingAllocation]", allocations))  # of a fleet


def _check(equation: Callable[..., Any], rule: str, value: float, unit: str, text: str) -> CrossCheck:
    identifier = str(equation.equation_id)  # type: ignore[attr-defined]
    return {"rule": rule, "equation": identifier, "value": float(value), "unit": unit, "text": text}


def _training_rule(question: TrainingQuestion) -> CrossCheck:
    job, size = question.job, float(question.arch.active_parameters)
    hours, tokens = job.deadline_s / 3600.0, job.tokens * question.spec.remaining_share
    devices = float(rules.devices_for_deadline(tokens, size, job.epochs, hours))
    left = " left" if job.progress_tokens else ""
    text = (
        f"13.3 · {number(tokens / 1e9, 6)} B tokens{left} · {job.epochs:g} epochs "
        f"· {number(size / 1e9, 4)} B parameters / {number(hours, 6)} h = {number(devices)} A100-80GB"
    )
    return _check(rules.devices_for_deadline, "13.3 · tokens · epochs · size / hours", devices, "A100", text)


def _states_rule(question: TrainingQuestion) -> CrossCheck:
    size = float(question.arch.parameters)
    states = float(adam_mixed_precision_state_bytes(size))
    text = f"16 B · {number(size / 1e9, 4)} B parameters = {format_bytes(states)} of weights, gradients and Adam state"
    return _check(adam_mixed_precision_state_bytes, "16 · parameters", states, "B", text)


def _activation_rules(question: TrainingQuestion, row: TrainingAllocation) -> Iterator[CrossCheck]:
    """The founding rules for one device's share of the batch, taken at once: without and with checkpointing."""
    arch, split = question.arch, row["layout"]
    share = math.ceil(split["global_batch_sequences"] / split["dp"])
    length = question.spec.sequence_length
    values = float(founding_activation_values(arch.hidden_size, share, length, arch.layer_count))
    sequences = f"the {share} sequences that one replica takes in a step"
    text = f"12 · h·b·s·L = {number(values / 1e9, 4)} B values = {format_bytes(2 * values)} at 16 bits for {sequences}"
    yield _check(founding_activation_values, "12 · h · b · s · L values", values, "values", text)
    kept = _checkpointed_bytes(question, share)
    low, high = (f"{part:.0%}" for part in rules.FULL_RECOMPUTE_TIME_RANGE)
    loose, tight = (f"{part:.0%}" for part in rules.FRAGMENTATION_RANGE)
    text = (
        f"with every layer checkpointed {format_bytes(kept)} of them, for {low} to {high} more time; "
        f"fragmentation adds {loose} to {tight}"
    )
    yield _check(full_recompute_bytes, "checkpointing", kept, "B", text)


def _checkpointed_bytes(question: TrainingQuestion, share: int) -> float:
    """Stored layer inputs and one live layer, on one device without splits.  [B]"""
    one = Layout(
        devices=1, dp=1, tp=1, pp=1, vpp=1, cp=1, ep=1, micro_batch=share, sharding=0, recompute=2, global_batch=share
    )
    return float(training_memory(question.arch, question.spec, one)["activations"])


def _serving_rules(question: ServingQuestion, allocations: Sequence[ServingAllocation]) -> list[CrossCheck]:
    fleet = question.fleet
    given = fleet.throughput_tokens_per_s_per_device
    rate, source = (given, "given") if given else _best_rate(allocations)
    qpm = mean_requests_per_s(fleet, allocations) * 60.0 if fleet.users else fleet.qpm
    checks = [_devices_rule(fleet, qpm, rate, source)] if rate else []  # without a plan there is no rate to go by
    speed, where = fleet.speed_tokens_per_s_per_user, "given"
    if not speed and allocations and allocations[0]["tpot_s"]:
        speed, where = 1.0 / allocations[0]["tpot_s"], "1/TPOT of the plan"
    if fleet.users and not allocations:  # without a plan nobody knows what users send
        return checks
    return [*checks, *([_sequences_rule(fleet, qpm, speed, where)] if speed else [])]


def _best_rate(allocations: Sequence[ServingAllocation]) -> tuple[float, str]:
    """Output tokens per second and device of the first chosen row."""
    if not allocations:
        return 0.0, ""
    row = allocations[0]
    each = cast(float, row["output_tokens_per_s_per_replica"])  # known but where rates are given
    return each / row["devices_per_replica"], f"of the plan on {row['device']}"


def _devices_rule(fleet: ServingFleet, qpm: float, rate: float, where: str) -> CrossCheck:
    devices = float(rules.serving_devices(fleet.output_tokens, rate, qpm))
    text = (
        f"{number(fleet.output_tokens, 6)} tokens / {number(rate, 4)} tokens/s per device ({where}) "
        f"· {number(qpm, 6)} QPM / 60 = {number(devices)} devices, without peaks, spares or whole replicas"
    )
    return _check(rules.serving_devices, "output_tokens / throughput · QPM / 60", devices, "devices", text)


def _sequences_rule(fleet: ServingFleet, qpm: float, speed: float, where: str) -> CrossCheck:
    count = float(rules.serving_concurrency(fleet.output_tokens, speed, qpm))
    text = (
        f"{number(fleet.output_tokens, 6)} tokens / {number(speed, 4)} tokens/s per user ({where}) "
        f"· {number(qpm, 6)} QPM / 60 = {number(count)} sequences in flight (Little's law), not devices"
    )
    return _check(rules.serving_concurrency, "the same with the speed of one user", count, "sequences", text)
