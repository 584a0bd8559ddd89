"""The cells of a row that follow from others, computed again: what people read but no limit asks.

The rules of thumb beside a plan are worked again with the plan's own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.architecture.model import Architecture, training_flop_per_token
from planner.catalog.model import Catalog, Offer, Shape
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding, cell_findings
from planner.checks.fleet_load import mean_requests_per_s
from planner.equations import rules
from planner.equations.activations import founding_activation_values, full_recompute_bytes
from planner.equations.memory import adam_mixed_precision_state_bytes
from planner.estimate.binding import bound_by
from planner.estimate.layout import Layout
from planner.estimate.resolve import sequence_length_of, tier_on, training_spec
from planner.estimate.training import training_memory
from planner.scenario.schema import ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.estimate.demand import TrainingDemand
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Workload
    from planner.plan.model.rows import Energy, Memory, Speed, TrainingAllocation


NO_ENERGY: Energy = {"power_w": None, "carbon_kg": None}  # of what nobody knows the power of


def place_cells(offer: Offer, shape: Shape) -> Mapping[str, object]:
    """Where a row stands, and where its price comes from."""
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "country": offer.country,
        "device": shape.device,
        "shape": shape.id,
        "devices_per_shape": shape.devices,
        "price_model": offer.price_model,
        "price_as_of": offer.provenance.as_of,
        "price_status": offer.provenance.status,
        "price_source": offer.provenance.source,
    }


def memory_cells(terms: dict[str, float], usable_bytes: float) -> Memory:
    """Memory of one device: its terms, their sum, and what they leave of what is usable.  [B]"""
    needed = float(sum(terms.values()))
    return {
        "needed_bytes": needed,
        "usable_bytes": usable_bytes,
        "free_bytes": usable_bytes - needed,
        "terms_bytes": terms,
    }


def training_cells(
    job: TrainingJob, row: TrainingAllocation, terms: Mapping[str, float], hours: float
) -> Mapping[str, object]:
    """When a job is done, and of what its time is made.

    Parameters
    ----------
    job
        When it may start, and its deadline.
    row
        Its devices, its end and the names of its terms count; terms that are not worked out again must be 0.
    terms
        Seconds of the row by term, worked out again.  [s]
    hours
        Predicted time of the row.  [h]
    """
    others = dict.fromkeys(row["time_terms_s"], 0.0)  # terms of another tier, in a plan that mixes tiers
    return {
        "time_terms_s": {**others, **terms},
        "binds": bound_by(terms),
        "finish_hours": row["end_hours"],  # checked with the start of the row
        "deadline_hours": (job.start_s + job.deadline_s) / 3600.0,
        "device_hours": row["devices"] * hours,
    }


def speed_cells(
    job: TrainingJob,
    arch: Architecture,
    catalog: Catalog,
    facts: OfferFacts,
    machine_mfu: float,
    busy_s: float,
    devices: int,
) -> Speed:
    """The work of a run, the speed of one device in it, and the rule of thumb on the same devices.

    Parameters
    ----------
    job, arch
        What is trained; progress that was made before is left out of the work.
    catalog
        The share of the peak that the rule of thumb takes, and where such shares are from.
    facts
        The offer looked up again.
    machine_mfu
        Share of the peak that the prediction took; told as it is where the tier is not analytic.
    busy_s
        Time of the run without the terms named in `planner.checks.run.RUN_TERMS`.  [s]
    devices
        Of one job; of a mix those of the one group.
    """
    peak = facts.device.peak_flop_per_s[job.precision] * facts.shape.compute_share
    per_token = float(training_flop_per_token(arch, sequence_length_of(job, arch)))
    tokens = job.tokens * job.epochs - (job.progress_tokens or 0.0)
    rate = per_token * tokens / busy_s / devices
    analytic = tier_on(job, arch, facts.device) == "analytic"
    rule = catalog.efficiencies[facts.device.family].mfu
    return {
        "mfu": rate / peak if analytic else machine_mfu,
        "mfu_source": mfu_source(tier_on(job, arch, facts.device), facts.device.family, catalog),
        "peak_flop_per_s": peak,
        "work": {
            "flop_per_token": per_token,
            "tokens": tokens,
            "flop_count": per_token * tokens,
            "flop_per_s_per_device": rate,
        },
        "rule_hours": 6.0 * arch.active_parameters * tokens / (devices * peak * rule) / 3600.0,
    }


def mfu_source(tier: str, family: str, catalog: Catalog) -> str:
    """Where the share of the peak is from, in the words of a plan.

    Parameters
    ----------
    tier
        Of the prediction on the device: rule, analytic or measured.
    family
        Of the device.
    catalog
        The efficiency of each family, and the constants that were fitted to it.
    """
    if tier == "measured":
        return "scenario (measured)"
    if tier == "analytic":
        known = catalog.training_families.get(family)
        heir = f", inherited from {known.inherited_from}" if known and known.inherited_from else ""
        return f"analytic tier, constants {family} {known.constants_id if known else ''}{heir}"
    rule = catalog.efficiencies[family]
    of = f"inherited from {rule.inherited_from}" if rule.inherited_from else rule.family
    return f"rule tier, {of}: {rule.provenance.source}"


def energy_cells(catalog: Catalog, facts: OfferFacts, shapes: float, hours: float) -> Energy:
    """Power drawn, rated where the owner says nothing, and carbon over the hours; None where a fact is missing.

    Parameters
    ----------
    catalog
        The power grid of each region.
    facts
        The offer looked up again: its device, shape and region.
    shapes
        How many; a fraction where nodes are shared with others.
    hours
        How long they draw that power.  [h]
    """
    if facts.power_w is None:
        return NO_ENERGY
    power_w = facts.power_w * shapes
    rented = facts.owned is None
    grid = catalog.grids.get((facts.offer.provider, facts.offer.region)) if rented else facts.grid
    grams_per_hour = power_w / 1000.0 * grid.gco2_per_kwh * grid.pue if grid else None
    return {"power_w": power_w, "carbon_kg": None if grams_per_hour is None else grams_per_hour * hours / 1000.0}


def training_demand(job: TrainingJob, sequence_length: int) -> TrainingDemand:
    """What a job asks for."""
    return {
        "tokens": job.tokens,
        "epochs": job.epochs,
        "progress_tokens": job.progress_tokens or 0.0,
        "sequence_length": sequence_length,
        "deadline_hours": job.deadline_s / 3600.0,
        "start_hours": job.start_s / 3600.0,
    }


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
