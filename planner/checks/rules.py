"""The rules of thumb beside a plan, worked again with the plan's own numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.architecture.model import Architecture
from planner.checks.findings import Finding, cell_findings
from planner.checks.fleet import mean_requests_per_s
from planner.equations import rules
from planner.equations.activations import founding_activation_values, full_recompute_bytes
from planner.equations.memory import adam_mixed_precision_state_bytes
from planner.estimate.layout import Layout
from planner.estimate.resolve import sequence_length_of, training_spec
from planner.estimate.training import training_memory
from planner.scenario.schema import ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Workload
    from planner.plan.model.rows import TrainingAllocation


def rule_findings(asked: TrainingJob | ServingFleet, arch: Architecture, stated: Workload) -> Iterator[Finding]:
    """Everything wrong with the cross-checks of a workload; their sentences are told.

    Parameters
    ----------
    asked
        The workload of the scenario.
    arch
        Its model.
    stated
        The same workload in the plan, whose first row gives the layout or the speeds that rules are worked with.
    """
    rows = stated["allocations"]
    wanted = list(
        _training(asked, arch, cast("list[TrainingAllocation]", rows))
        if isinstance(asked, TrainingJob)
        else _serving(asked, cast("list[ServingAllocation]", rows))
    )
    told = stated["cross_check"]
    if len(told) != len(wanted):
        yield Finding("wrong-rule", f"{asked.name}: {len(told)} rules of thumb are told, {len(wanted)} apply")
        return
    for cells, entry in zip(wanted, told):
        yield from cell_findings("wrong-rule", asked.name, entry, cells)
        if not isinstance(entry.get("text"), str):
            yield Finding("wrong-rule", f"{asked.name}: {cells['rule']} is not put into words")


def _rule(equation: Callable[..., Any], rule: str, value: float, unit: str) -> Mapping[str, object]:
    identifier = str(getattr(equation, "equation_id", ""))
    return {"rule": rule, "equation": identifier, "value": float(value), "unit": unit}


def _training(
    job: TrainingJob, arch: Architecture, rows: Sequence[TrainingAllocation]
) -> Iterator[Mapping[str, object]]:
    spec = training_spec(job, arch)
    tokens, size = job.tokens * spec.remaining_share, float(arch.active_parameters)
    devices = float(rules.devices_for_deadline(tokens, size, job.epochs, job.deadline_s / 3600.0))
    yield _rule(rules.devices_for_deadline, "13.3 · tokens · epochs · size / hours", devices, "A100")
    states = float(adam_mixed_precision_state_bytes(float(arch.parameters)))
    yield _rule(adam_mixed_precision_state_bytes, "16 · parameters", states, "B")
    if not arch.layers or not rows:
        return
    split, length = rows[0]["layout"], sequence_length_of(job, arch)
    share = math.ceil(split["global_batch_sequences"] / split["dp"])
    values = float(founding_activation_values(arch.hidden_size, share, length, arch.layer_count))
    yield _rule(founding_activation_values, "12 · h · b · s · L values", values, "values")
    whole = dict.fromkeys(("devices", "dp", "tp", "pp", "vpp", "cp", "ep"), 1)
    alone = Layout(**whole, micro_batch=share, global_batch=share, sharding=0, recompute=2)
    kept = float(training_memory(arch, spec, alone)["activations"])
    yield _rule(full_recompute_bytes, "checkpointing", kept, "B")


def _serving(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> Iterator[Mapping[str, object]]:
    if fleet.profile is not None:
        return
    first = rows[0] if rows else None
    rate, speed = fleet.throughput_tokens_per_s_per_device or 0.0, fleet.speed_tokens_per_s_per_user or 0.0
    if first is not None:
        rate = rate or cast("float", first["output_tokens_per_s_per_replica"]) / first["devices_per_replica"]
        speed = speed or (1.0 / first["tpot_s"] if first["tpot_s"] else 0.0)
    qpm = 60.0 * mean_requests_per_s(fleet, rows) if fleet.users else fleet.qpm
    if rate:
        devices = float(rules.serving_devices(fleet.output_tokens, rate, qpm))
        yield _rule(rules.serving_devices, "output_tokens / throughput · QPM / 60", devices, "devices")
    if speed and (rows or not fleet.users):
        count = float(rules.serving_concurrency(fleet.output_tokens, speed, qpm))
        yield _rule(rules.serving_concurrency, "the same with the speed of one user", count, "sequences")
