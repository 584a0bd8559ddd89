"""From a plan document to launches: what was chosen, with what the scenario says of the workload and its model.

A launch of a fleet is told its split, what comes to it, the memory it was promised. Replicas that an autoscaled fleet
adds level by level are launched as one set that grows and shrinks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from planner.architecture.load import ModelCard, config_card, preset_card
from planner.candidates.layouts import SHARDING
from planner.catalog.model import Catalog
from planner.equations.rules import critical_batch_token_factor
from planner.errors import InputError
from planner.estimate.engines import Limits, engine_limits
from planner.estimate.frameworks import planned_framework, software_stage
from planner.estimate.resolve import framework_of
from planner.export.launch import (
    Bucket,
    Launch,
    Machine,
    Model,
    OnNode,
    Origin,
    Place,
    PlannedMemory,
    ServingLaunch,
    ServingLayout,
    Timing,
    TrainingLaunch,
    TrainingLayout,
    Turn,
    above_zero,
    by_job,
    by_node,
    date,
    devices_on_nodes,
    if_any,
    real,
    whole,
)
from planner.plan.parts import rows_of, workloads_asked
from planner.plan.proof import is_proven
from planner.plan.references import load_model
from planner.report.escape import file_stem
from planner.scenario.fields import FIELD
from planner.scenario.money_fields import rates_of
from planner.scenario.schema import ModelRef, ServingFleet, TrainingJob
from planner.scenario.shipped import folder_of

if TYPE_CHECKING:
    from planner.plan.model.fleet import Bucket as BucketTold
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Allocation, PlanDocument, ServingWorkload, TrainingWorkload, Workload
    from planner.plan.model.rows import Memory, TrainingAllocation


class ServingFields(TypedDict):
    """Fields of a `ServingLaunch` beyond those of every launch."""

    layout: ServingLayout
    replicas: int
    replicas_needed: int
    replicas_always: int
    devices_per_replica: int
    role: str
    engine: str
    requests_per_s: float
    batch: float | None
    mean_input_tokens: float
    mean_output_tokens: float
    buckets: tuple[Bucket, ...]
    memory: PlannedMemory | None
    limits: Limits | None


def serving_fields(
    fleet: ServingFleet, workload: ServingWorkload, row: ServingAllocation, always: int, catalog: Catalog
) -> ServingFields:
    """What a launch of a fleet is told of its allocation, of which `always` replicas run whatever the load.

    Parameters
    ----------
    fleet
        As the scenario in the plan says, defaults filled in.
    workload
        The fleet's part of the plan.
    row
        Its allocation, the part of one on a shared node, or the sum of several that are alike in all but their level.
    always
        Replicas that run whatever the load.
    catalog
        For the engine's limits on the row's device; they are None where the catalog lacks it.

    Raises
    ------
    ValueError, ZeroDivisionError
        A figure of the allocation is none that can be launched.
    """
    split, demand, point, engine = row["layout"], workload["demand"], row["point"], row["tier"]["engine"]
    rate = point["requests_per_s"] if point else 0.0
    return {
        "layout": ServingLayout(
            tp=whole(split["tp"]), pp=whole(split["pp"]), dp=whole(split["dp"]), ep=whole(split["ep"]),
            cp=whole(split["cp"]),
        ),
        "replicas": whole(row["replicas"]),
        "replicas_needed": int(real(row["replicas_needed"])),  # none where a shared node has but spares of the fleet
        "replicas_always": int(real(always)),
        "devices_per_replica": whole(row["devices_per_replica"]),
        "role": row["role"],
        "engine": engine,
        "requests_per_s": real(rate or row["planned_requests_per_s"] / row["replicas"]),
        "batch": if_any(row["batch"]),
        "mean_input_tokens": real(demand["input_tokens"] or 0.0),
        "mean_output_tokens": real(demand["output_tokens"] or 0.0),
        "buckets": _buckets(workload["fleet"]["buckets"], row["routed_requests_per_s"]),
        "memory": _memory(row["memory"]),
        "limits": _limits(fleet, engine, row, catalog),
    }  # fmt: skip


def _buckets(buckets: list[BucketTold], routed: list[float]) -> tuple[Bucket, ...]:
    """Kinds of requests, with what comes of each; without a routing all of them come."""
    rates = routed or [bucket["peak_requests_per_s"] or 0.0 for bucket in buckets]
    return tuple(
        Bucket(
            name=bucket["name"],
            input_tokens=if_any(bucket["input_tokens"]),
            output_tokens=if_any(bucket["output_tokens"]),
            peak_requests_per_s=real(bucket["peak_requests_per_s"] or 0.0),
            routed_requests_per_s=real(rate),
        )
        for bucket, rate in zip(buckets, rates, strict=True)
    )


def _memory(memory: Memory) -> PlannedMemory | None:
    """What the engine may fill; None where only rates were given."""
    terms = memory["terms_bytes"]
    if not terms:
        return None
    return PlannedMemory(
        usable_bytes=above_zero(memory["usable_bytes"]),
        workspace_bytes=real(terms.get("workspace", 0.0)) + real(terms.get("overhead", 0.0)),
        weights_bytes=real(terms.get("weights", 0.0)),
    )


def _limits(fleet: ServingFleet, engine: str, row: ServingAllocation, catalog: Catalog) -> Limits | None:
    """Sequences and tokens of a step of the engine on the row's device: given, or its own defaults there."""
    device = catalog.devices.get(row["device"])
    if device is None:
        return None
    return engine_limits(
        engine or fleet.engine,
        device,
        catalog.shapes.get(row["shape"]),
        max_num_seqs=fleet.limits.max_num_seqs,
        max_batched_tokens=fleet.limits.max_num_batched_tokens,
        memory_fraction=fleet.limits.memory_fraction,
    )


class Launched(NamedTuple):
    """An allocation, or several that are launched as one, with their sums."""

    row: Allocation
    replicas_always: int  # those of level 0; 0 of a training job
    on: OnNode | None = None  # a shared node; None: nodes of its own


def joined_levels(rows: Sequence[Allocation]) -> list[Launched]:
    """Allocations of one workload in the plan's order; those of a fleet alike in all but their level as one."""
    levelled = any("replicas" in row and row.get("level") for row in rows)
    kinds: dict[str, list[Allocation]] = {}
    for number, row in enumerate(rows):
        alike = (row["offer"], "replicas" in row and row["role"], row["layout"], row["funding"])
        kinds.setdefault(json.dumps(alike, sort_keys=True) if levelled else str(number), []).append(row)
    return [_launched(alike) for alike in kinds.values()]


def launched_of(workload: Workload, places: Mapping[Place, tuple[OnNode, ...]]) -> list[Launched]:
    """What is launched for a workload, in the plan's order: on shared nodes node by node, what comes and goes as one.

    Parameters
    ----------
    places
        Where rows on shared nodes stand.
    """
    found = joined_levels([row for row in rows_of(workload) if "shared" not in row])
    for number, row in enumerate(rows_of(workload)):
        if "replicas" in row and "shared" in row:
            nodes = places[workload["name"], number]
            found += [Launched(part, part["replicas"], on) for part, on in zip(by_node(row), nodes, strict=True)]
        elif "shared" in row and "jobs" in row:
            found += [Launched(part, 0, on) for part, on in by_job(row, places[workload["name"], number])]
    return found


def _launched(rows: Sequence[Allocation]) -> Launched:
    replicas = [row for row in rows if "replicas" in row]
    if not replicas:  # a training job
        return Launched(rows[0], 0)
    always = sum(row["replicas"] for row in replicas if not row.get("level"))
    return Launched(replicas[0] if len(replicas) == 1 else _sum(replicas), always)


def _sum(rows: Sequence[ServingAllocation]) -> ServingAllocation:
    routed = zip(*(row["routed_requests_per_s"] for row in rows))
    return {
        **min(rows, key=lambda row: row.get("level", 0)),
        "count": sum(row["count"] for row in rows),
        "devices": sum(row["devices"] for row in rows),
        "replicas": sum(row["replicas"] for row in rows),
        "replicas_needed": sum(row["replicas_needed"] for row in rows),
        "planned_requests_per_s": sum(row["planned_requests_per_s"] for row in rows),
        "routed_requests_per_s": [sum(each) for each in routed],
    }


_FRAMES: dict[str, type[TrainingJob] | type[ServingFleet]] = {"training": TrainingJob, "serving": ServingFleet}


def launches_of(document: PlanDocument, catalog: Catalog, *, command: str) -> list[Launch]:
    """One launch for each allocation of a plan, in the plan's order; levels of one kind of replica are one launch.

    Parameters
    ----------
    document
        A plan document.
    catalog
        The hardware that the plan was made with: what a device is, and what stands in a shape.
    command
        That is run, for the header of each file.

    Raises
    ------
    InputError
        The document is not a whole plan, or names what is not there.
    """
    try:
        origin = _origin(document, command)
        places = devices_on_nodes(document)
        rows = [(workload, row) for workload in document["workloads"] for row in launched_of(workload, places)]
        stems = _stems([workload["name"] for workload, _ in rows])
        return [_launch(document, catalog, origin, *pair, stem, stems, rows) for pair, stem in zip(rows, stems)]
    except (ValueError, ZeroDivisionError, OverflowError, LookupError) as error:
        message = f"the plan says what cannot be launched ({type(error).__name__}: {error})"
        raise InputError.of("bad-plan", message, hint="plan solve SCENARIO writes a whole plan") from None


def _origin(document: PlanDocument, command: str) -> Origin:
    made = document["provenance"]
    catalog = made["catalog"]
    return Origin(
        command=command,
        plan_sha256=document["sha256"],
        plan_name=document["name"],
        status=document["status"],
        proven=is_proven(document),
        scenario_file=document["scenario_file"],
        case=document["case"],
        planner=made["planner"],
        catalog=f"{catalog['name']}, {catalog['as_of']}, sha256 {catalog['sha256'][:16]}",
        prices_as_of=made["prices_as_of"],
    )


def _stems(names: Sequence[str]) -> list[str]:
    """A file stem for each allocation: its workload's name, numbered where that has several; all of them different."""
    stems: list[str] = []
    for name in names:
        base = file_stem(name).lower()
        many = sum(other == name for other in names) > 1
        number = 1 if many else 0
        stem = f"{base}-{number}" if many else base
        while stem in stems:
            number += 1
            stem = f"{base}-{number}"
        stems.append(stem)
    return stems


class Common(TypedDict):
    """Fields of every launch."""

    origin: Origin
    workload: str
    stem: str
    model: Model
    machine: Machine
    timing: Timing


def _launch(
    document: PlanDocument,
    catalog: Catalog,
    origin: Origin,
    workload: Workload,
    launched: Launched,
    stem: str,
    stems: Sequence[str],
    rows: Sequence[tuple[Workload, Launched]],
) -> Launch:
    asked, row = _asked(document, workload["kind"], workload["name"]), launched.row
    common: Common = {
        "origin": origin,
        "workload": workload["name"],
        "stem": stem,
        "model": _model(asked.model, workload),
        "machine": _machine(row, catalog),
        "timing": _timing(document, row),
    }
    if isinstance(asked, TrainingJob):
        assert workload["kind"] == "training"
        assert "jobs" in row
        return _training_launch(asked, workload, row, common, launched.on)
    assert workload["kind"] == "serving"
    assert "replicas" in row
    others = tuple(
        other for other, (theirs, _) in zip(stems, rows) if theirs["name"] == workload["name"] and other != stem
    )
    fields = serving_fields(asked, workload, row, launched.replicas_always, catalog)
    staged = any(one["role"] == "prefill" and one["layout"]["pp"] > 1 for one in workload["allocations"])
    return ServingLaunch(fleet=asked, pools=others, staged_prefill=staged, on=launched.on, **fields, **common)


def _asked(document: PlanDocument, kind: str, name: str) -> TrainingJob | ServingFleet:
    """What the scenario in the plan says of a workload, defaults filled in."""
    found = next((entry for entry in workloads_asked(document, kind) if entry.get("name") == name), None)
    if found is None:
        raise InputError.of("bad-plan", f"the scenario in the plan has no {kind} named '{name}'")
    folder = folder_of(document["scenario_file"] or "")
    try:
        rates = rates_of(document["scenario"].get("currency", "USD"))  # else no amount in euros could be read
        return _FRAMES[kind].model_validate(found, context={"folder": folder, "rates": rates})
    except PydanticCustomError as error:
        told = error.message().replace(FIELD, "currency")
        raise InputError.of("bad-plan", f"the scenario in the plan is wrong: {told}") from None
    except ValidationError as error:
        wrong = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors(include_url=False)][:3]
        told = "; ".join(f"{key}: {message}" for key, message in wrong)
        raise InputError.of("bad-plan", f"the scenario in the plan is wrong about '{name}': {told}") from None


def _model(ref: ModelRef | None, workload: Workload) -> Model:
    if ref is None:  # a fleet whose rates are given names no model
        none = {"hf_id": "", "checkpoint": "", "config_path": ""}
        return Model(name=workload["model"], **none, config=None, arch=None, parameters=0)
    card = preset_card(ref.preset) if ref.preset else _own_card(ref)
    return Model(
        name=workload["model"],
        hf_id=card.hf_id if card else "",
        checkpoint=card.checkpoint if card else "",
        config_path=ref.config or "",
        config=card.config if card else None,
        arch=load_model(ref) if card else None,
        parameters=int(workload["parameters"]),
    )


def _own_card(ref: ModelRef) -> ModelCard | None:
    """The card of the user's own config.json; None where only a size is given, or the file is not here any more."""
    if not ref.config:
        return None
    try:
        return config_card(ref.config)
    except InputError:
        return None


def _machine(row: Allocation, catalog: Catalog) -> Machine:
    device, shape = catalog.devices.get(row["device"]), catalog.shapes.get(row["shape"])
    sliced = shape.memory_bytes_per_device if shape else None
    part = Fraction(whole(row["devices_per_shape"]), shape.devices if shape else 1)  # of the host, for a job on a part
    own = part if shape and "jobs" in row and "shared" in row else Fraction(1)
    return Machine(
        provider=row["provider"],
        region=row["region"],
        zone=row["zone"],
        shape_name=shape.name if shape else row["shape"].partition("/")[2] or row["shape"],
        shape_kind=shape.kind if shape else "",
        price_model=row["price_model"],
        funding=row["funding"],
        usd_per_node_hour=real(row["price_microusd_per_hour"]) / 1e6,
        device=row["device"],
        device_kind=device.kind if device else ("tpu" if row["device"].startswith("tpu-") else "gpu"),
        vendor=device.vendor.lower() if device else "",
        family=device.family if device else "",
        memory_bytes=int(sliced or (device.memory_bytes if device else 0)),
        formats=frozenset(device.peak_flop_per_s) if device else frozenset(),
        devices_per_node=whole(row["devices_per_shape"]),
        nodes=whole(row["count"]),
        devices=whole(row["devices"]),
        vcpus=int(shape.vcpus * own) if shape and shape.vcpus else None,
        host_memory_bytes=int(shape.host_memory_bytes * own) if shape and shape.host_memory_bytes else None,
        network_kind=shape.network_kind if shape else "",
        torus=shape.torus if shape else (),
        rack_nodes=shape.domain_shapes if shape else 1,
    )


def _timing(document: PlanDocument, row: Allocation) -> Timing:
    schedule, upper, confidence = document["schedule"], row["hours"], 0.0
    if "error_band" in row:
        upper, confidence = row["error_band"]["hours"]["at_confidence"], row["error_band"]["confidence"]
    return Timing(
        hours=above_zero(row["hours"]),
        at_confidence_hours=above_zero(upper or row["hours"]),
        confidence=real(confidence),
        start_hours=real(row["start_hours"]),
        begin=date(schedule["begin"] if schedule else None),
        windows_hours=tuple((real(one["start_hours"]), real(one["end_hours"])) for one in row["runs"] or ()),
    )


def _training_launch(
    job: TrainingJob, workload: TrainingWorkload, row: TrainingAllocation, common: Common, on: OnNode | None
) -> TrainingLaunch:
    split, demand, machine = row["layout"], workload["demand"], common["machine"]
    layout = TrainingLayout(
        dp=whole(split["dp"]),
        tp=whole(split["tp"]),
        pp=whole(split["pp"]),
        vpp=whole(split["vpp"]),
        cp=whole(split["cp"]),
        ep=whole(split["ep"]),
        micro_batch=whole(split["micro_batch"]),
        global_batch_sequences=whole(split["global_batch_sequences"]),
        micro_batches=whole(split["micro_batches"]),
        sharding=split["sharding"],
        recompute=split["recompute"],
    )
    sequence_length, devices = whole(demand["sequence_length"]), layout.dp * layout.tp * layout.pp * layout.cp
    stage = int(software_stage(SHARDING.index(split["sharding"]), devices))
    return TrainingLaunch(
        job=job,
        software=planned_framework(framework_of(job), machine.family, stage).name,
        token_factor=_token_factor(job, layout.global_batch_sequences * sequence_length),
        jobs=whole(row["jobs"]),
        layout=layout,
        sequence_length=sequence_length,
        tokens=above_zero(demand["tokens"]),
        epochs=above_zero(demand["epochs"]),
        progress_tokens=real(demand["progress_tokens"]),
        checkpoint_every_s=if_any(row["run"]["checkpoint_every_s"]) if row["run"]["modelled"] else None,
        mixed="mix" in row,
        turn=_turn(workload, row),
        on=on,
        **common,
    )


def _turn(workload: TrainingWorkload, row: TrainingAllocation) -> Turn | None:
    if "switch" not in row:
        return None
    told = row["switch"]
    rows = [one for one in workload["allocations"] if "switch" in one and one["switch"]["name"] == told["name"]]
    splits, other = [_split(one) for one in rows], next((one for one in rows if one is not row), row)
    return Turn(
        first=whole(told["part"]) == 1,
        share=above_zero(told["share"]),
        switch_hours=min(real(one["start_hours"]) for one in rows) + real(told["switch_hours"]),
        resplit=any(split != splits[0] for split in splits),
        other_batch_sequences=whole(other["layout"]["global_batch_sequences"]),
    )


def _split(row: TrainingAllocation) -> tuple[object, ...]:
    """What a checkpoint of a rank depends on."""
    layout = row["layout"]
    return tuple(layout[axis] for axis in ("dp", "tp", "pp", "vpp", "cp", "ep", "sharding"))


def _token_factor(job: TrainingJob, tokens_per_step: int) -> float:
    """Tokens that a batch above the critical one costs, as the plan's hours count them."""
    if job.critical_batch_tokens is None:
        return 1.0
    return float(critical_batch_token_factor(tokens_per_step, job.critical_batch_tokens))
