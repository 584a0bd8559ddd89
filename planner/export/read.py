"""From a plan document to launches: what was chosen, with what the scenario says of the workload and its model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from planner.architecture.card import ModelCard, config_card, preset_card
from planner.candidates.layouts import SHARDING
from planner.catalog.model import Catalog
from planner.equations.rules import critical_batch_token_factor
from planner.errors import InputError
from planner.estimate.frameworks import planned_framework
from planner.export.cells import above_zero, date, if_any, real, text, whole
from planner.export.launch import (
    Group,
    Launch,
    Machine,
    Model,
    Origin,
    ServingLaunch,
    Timing,
    TrainingLaunch,
    TrainingLayout,
)
from planner.export.levels import joined_levels
from planner.export.read_fleet import serving_fields
from planner.plan.references import load_model
from planner.report.escape import file_stem
from planner.scenario.schema import ModelRef, ServingFleet, TrainingJob
from planner.scenario.shipped import folder_of

Document = Mapping[str, Any]
_FRAMES: dict[str, type[TrainingJob] | type[ServingFleet]] = {"training": TrainingJob, "serving": ServingFleet}


def launches_of(document: Document, catalog: Catalog, *, command: str) -> list[Launch]:
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
        rows = [(workload, row) for workload in document["workloads"] for row in joined_levels(workload["allocations"])]
        stems = _stems([workload["name"] for workload, _ in rows])
        return [_launch(document, catalog, origin, *pair, stem, stems, rows) for pair, stem in zip(rows, stems)]
    except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError, OverflowError) as error:
        message = f"the plan lacks what an export needs, or has it in another form ({type(error).__name__}: {error})"
        raise InputError.of("bad-plan", message, hint="plan solve SCENARIO writes a whole plan") from None


def _origin(document: Document, command: str) -> Origin:
    made = document["provenance"]
    catalog = made["catalog"]
    return Origin(
        command=command,
        plan_sha256=str(document["sha256"]),
        plan_name=str(document["name"]),
        status=str(document["status"]),
        scenario_file=str(document["scenario_file"]),
        case=document["case"],
        planner=str(made["planner"]),
        catalog=f"{catalog['name']}, {catalog['as_of']}, sha256 {str(catalog['sha256'])[:16]}",
        prices_as_of=str(made["prices_as_of"]),
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


def _launch(
    document: Document,
    catalog: Catalog,
    origin: Origin,
    workload: Document,
    row: Document,
    stem: str,
    stems: Sequence[str],
    rows: Sequence[tuple[Document, Document]],
) -> Launch:
    kind = workload["kind"]
    asked = _asked(document, kind, workload["name"])
    shared: dict[str, Any] = {
        "origin": origin,
        "workload": str(workload["name"]),
        "stem": stem,
        "model": _model(asked.model, workload),
        "machine": _machine(row, catalog),
        "timing": _timing(document, row),
        "row": row,
    }
    if isinstance(asked, TrainingJob):
        machine, stage = shared["machine"], SHARDING.index(row["layout"]["sharding"])
        software = planned_framework(asked.framework, machine.device_kind, machine.family, stage).name
        told = _training(workload, row)
        factor = _token_factor(asked, told["layout"].global_batch_sequences * told["sequence_length"])
        return TrainingLaunch(job=asked, software=software, token_factor=factor, **told, **shared)
    others = tuple(
        other for other, (theirs, _) in zip(stems, rows) if theirs["name"] == workload["name"] and other != stem
    )
    return ServingLaunch(fleet=asked, pools=others, **serving_fields(asked, workload, row, catalog), **shared)


def _asked(document: Document, kind: str, name: str) -> TrainingJob | ServingFleet:
    """What the scenario in the plan says of a workload, defaults filled in."""
    entries = document["scenario"].get(kind) or []
    found = next((entry for entry in _listed(entries) if entry.get("name") == name), None)
    if found is None:
        raise InputError.of("bad-plan", f"the scenario in the plan has no {kind} named '{name}'")
    folder = folder_of(document["scenario_file"] or "")
    try:
        return _FRAMES[kind].model_validate(found, context={"folder": folder, "currency": "USD"})
    except ValidationError as error:
        told = json.dumps([".".join(map(str, one["loc"])) for one in error.errors(include_url=False)][:3])
        raise InputError.of("bad-plan", f"the scenario in the plan is wrong about '{name}': {told}") from None


def _listed(entries: Any) -> Iterator[Mapping[str, Any]]:
    """One entry or a list of them, as scenarios may write it."""
    yield from [entries] if isinstance(entries, Mapping) else entries


def _model(ref: ModelRef | None, workload: Document) -> Model:
    if ref is None:  # a fleet whose rates are given names no model
        return Model(name=workload["model"], hf_id="", config_path="", config=None, arch=None, parameters=0)
    card = preset_card(ref.preset) if ref.preset else _own_card(ref)
    return Model(
        name=str(workload["model"]),
        hf_id=card.hf_id if card else "",
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


def _machine(row: Document, catalog: Catalog) -> Machine:
    device, shape = catalog.devices.get(row["device"]), catalog.shapes.get(row["shape"])
    sliced = shape.memory_bytes_per_device if shape else None
    return Machine(
        provider=text(row, "provider"),
        region=text(row, "region"),
        zone=text(row, "zone"),
        shape_name=shape.name if shape else text(row, "shape").partition("/")[2] or text(row, "shape"),
        shape_kind=shape.kind if shape else "",
        price_model=text(row, "price_model"),
        funding=text(row, "funding"),
        usd_per_node_hour=real(row["price_microusd_per_hour"]) / 1e6,
        device=text(row, "device"),
        device_kind=device.kind if device else ("tpu" if str(row["device"]).startswith("tpu-") else "gpu"),
        vendor=device.vendor.lower() if device else "",
        family=device.family if device else "",
        memory_bytes=int(sliced or (device.memory_bytes if device else 0)),
        formats=frozenset(device.peak_flop_per_s) if device else frozenset(),
        devices_per_node=whole(row["devices_per_shape"]),
        nodes=whole(row["count"]),
        devices=whole(row["devices"]),
        vcpus=shape.vcpus if shape else None,
        host_memory_bytes=shape.host_memory_bytes if shape else None,
        network_kind=shape.network_kind if shape else "",
        torus=shape.torus if shape else (),
    )


def _timing(document: Document, row: Document) -> Timing:
    band = row.get("error_band") or {}
    upper = (band.get("hours") or {}).get("at_confidence") or row["hours"]
    schedule = document.get("schedule") or {}
    return Timing(
        hours=above_zero(row["hours"]),
        at_confidence_hours=above_zero(upper),
        confidence=real(band.get("confidence") or 0.0),
        start_hours=real(row["start_hours"]),
        begin=date(schedule.get("begin")),
        windows_hours=tuple((real(one["start_hours"]), real(one["end_hours"])) for one in row.get("runs") or ()),
    )


def _training(workload: Document, row: Document) -> dict[str, Any]:
    split, demand, mix = row["layout"], workload["demand"], row.get("mix")
    counts = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "global_batch_sequences", "micro_batches")
    every = (row.get("run") or {}).get("checkpoint_every_s")
    group = Group(
        sequences=whole(mix["sequences"]),
        batch_sequences=whole(mix["batch_sequences"]),
        groups=whole(mix["groups"]),
    ) if mix else None  # fmt: skip
    return {
        "jobs": whole(row["jobs"]),
        "layout": TrainingLayout(
            **{name: whole(split[name]) for name in counts},
            sharding=str(split["sharding"]),
            recompute=str(split["recompute"]),
        ),
        "sequence_length": whole(demand["sequence_length"]),
        "tokens": above_zero(demand["tokens"]),
        "epochs": above_zero(demand["epochs"]),
        "progress_tokens": real(demand["progress_tokens"]),
        "checkpoint_every_s": if_any(every),
        "group": group,
    }


def _token_factor(job: TrainingJob, tokens_per_step: int) -> float:
    """Tokens that a batch above the critical one costs, as the plan's hours count them."""
    if job.critical_batch_tokens is None:
        return 1.0
    return float(critical_batch_token_factor(tokens_per_step, job.critical_batch_tokens))
