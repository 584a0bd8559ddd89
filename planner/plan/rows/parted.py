"""Rows of a job in parts: a group each of a mix that shares its batch, or spot first and then on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from planner.candidates.mixed_walk import MOST_GROUPS
from planner.candidates.switching import part_terms
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Group, Mixed, Switch, TrainingTable
from planner.equations.mixed import FARTHEST_LATENCY_S
from planner.equations.preemption import switched_rest_s
from planner.estimate.bill import billed_hours
from planner.estimate.binding import bound_by
from planner.estimate.software import able, asked_on
from planner.plan.rows.bands import row_band
from planner.plan.rows.row_cells import (
    busy_s_of,
    memory_document,
    place_document,
    run_cells_of,
    run_document,
    split_document,
    usd,
)
from planner.units import format_duration, format_money

if TYPE_CHECKING:
    from planner.candidates.offers import Site
    from planner.catalog.model import Band
    from planner.plan.model.rows import (
        MixedRow,
        RowBand,
        RunFigures,
        Speed,
        Spread,
        SwitchedRow,
        Timing,
        TrainingAllocation,
    )


def mixed_rows(question: TrainingQuestion, mixed: Mixed, jobs: int, hours: float, timing: Timing) -> list[MixedRow]:
    """The cells of each group, in the order of the groups; speed and energy are added by who knows the catalog.

    Parameters
    ----------
    question
        The job.
    mixed
        Its groups.
    jobs
        Identical jobs that run so.
    hours
        Wall time that the groups share.  [h]
    timing
        When they run, and who pays.
    """
    return [_row(question, mixed, group, jobs, hours, timing) for group in mixed.groups]


def mix_name(mixed: Mixed) -> str:
    """What tells one mix of a job from another: "2 × offer-a + 1 × offer-b"."""
    return " + ".join(f"{group.nodes} × {group.site.offer.id}" for group in mixed.groups)


def _row(question: TrainingQuestion, mixed: Mixed, group: Group, jobs: int, hours: float, timing: Timing) -> MixedRow:
    site, shapes, terms = group.site, group.nodes * jobs, group.time.row(0)
    cost, all_devices = group.cost_microusd * jobs, sum(one.nodes * one.site.shape.devices for one in mixed.groups)
    memory = memory_document(group.memory.row(0), site.usable_bytes)
    figures = {"hours": hours, "cost_usd": usd(cost), "needed_bytes": memory["needed_bytes"]}
    confidence = question.spec.confidence
    bands = [question.mix_band(one.site) for one in mixed.groups]
    slowest = max(bands, key=lambda one: one.time_margin(confidence))
    job = question.job
    return {
        **place_document(site, shapes),
        "jobs": jobs,
        "layout": split_document(group.layout, 0),
        "hours": hours,
        **timing,  # type: ignore[typeddict-item]  # no switch
        "funding": site.offer.price_model,
        "finish_hours": timing["end_hours"],
        "deadline_hours": (job.start_s + job.deadline_s) / 3600.0,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory,
        "time_terms_s": terms,
        "binds": bound_by(terms),
        "run": run_cells_of(question, mixed.run, terms, all_devices, jobs),
        "step_time_ratio": question.step_time_ratio(site),
        "mix": {
            "name": mix_name(mixed),
            "groups": len(mixed.groups),
            "share": group.share / mixed.batch,
            "sequences": group.share,
            "batch_sequences": mixed.batch,
            "group_step_s": group.step_s,
            "compute_s": mixed.compute_s,
            "synchronisation_s": mixed.synchronisation_s,
            "traffic_microusd": group.traffic_microusd * jobs,
        },
        "error_band": row_band(replace(question.band(site), time=slowest.time), confidence, figures),
        "device_hours": shapes * site.shape.devices * hours,
    }


def shared_speed(speed: Speed, share: float) -> Speed:
    """Speed and work of a group from those of a job that would do all of it."""
    achieved, work = speed["mfu_source"].startswith("analytic"), speed["work"]
    return {
        **speed,
        "mfu": speed["mfu"] * share if achieved else speed["mfu"],
        "work": {
            "flop_per_token": work["flop_per_token"],
            "tokens": work["tokens"] * share,
            "flop_count": work["flop_count"] * share,
            "flop_per_s_per_device": work["flop_per_s_per_device"] * share,
        },
        "rule_hours": speed["rule_hours"] * share,
    }


def mix_assumptions(question: TrainingQuestion) -> Iterator[str]:
    """What mixes within a job are planned with."""
    name, between = question.job.name, question.scenario.hardware.assume_between_zones
    yield (
        f"{name}: groups of up to {MOST_GROUPS} offers share a batch in whole micro-batches and reduce gradients "
        "after the slowest of them, nothing of it hidden; deadline and memory hold at the widest band of the groups"
    )
    if between is None:
        yield f"{name}: groups of one job stand in one zone (no assume_between_zones)"
        return
    latency_s = FARTHEST_LATENCY_S if between.latency_s is None else between.latency_s
    yield (
        f"{name}: between zones {between.bandwidth_bytes_per_s * 8 / 1e9:g} Gbit/s of each shape, {1e3 * latency_s:g} "
        f"ms and ${between.price_usd_per_gb:g}/GB of what a group sends (assume_between_zones)"
    )


def mixed_reasons(rows: Sequence[TrainingAllocation], alone_microusd: int | None) -> list[str]:
    """Why a job runs on several offers: what each takes of a batch, and what one offer alone would cost."""
    parts = ", ".join(f"{row['count']} × {row['shape']} {row['mix']['share']:.1%}" for row in rows)
    mix, cost = rows[0]["mix"], sum(row["cost_microusd"] for row in rows)
    lines = [
        f"shares each batch of {mix['batch_sequences']} sequences by speed: {parts}; a step takes "
        f"{mix['compute_s']:.4g} s and {mix['synchronisation_s']:.3g} s to reduce gradients among them"
    ]
    if alone_microusd is None:
        return [*lines, "no offer alone meets the deadline within the limits"]
    return [*lines, f"one offer alone would cost {format_money(alone_microusd - cost)} more at least"]


PARTS = (0, 1)
Figure = Literal["p10", "p50", "p90"]


class Part(NamedTuple):
    """One of the two parts, and what the whole run would take on its machines."""

    site: Site
    nodes: int
    share: float  # of the work
    whole_terms_s: Mapping[str, float]
    row: SwitchedRow


def switched_rows(
    question: TrainingQuestion, table: TrainingTable, switch: Switch, jobs: int, start: float
) -> list[Part]:
    """The cells of both parts; speed and energy are added by who knows the catalog.

    Parameters
    ----------
    question
        The job.
    table
        Its ways, those that are late and on spot beside them.
    switch
        A row of it that begins on spot and ends on demand.
    jobs
        Identical ones that run so.
    start
        When they begin.  [h]
    """
    return [_part(question, table, switch, jobs, number, start) for number in PARTS]


def switch_name(table: TrainingTable, switch: Switch, later: float) -> str:
    """What tells one switch of a job from another: "2 × offer-a for 41 h, then 4 × offer-b".

    Parameters
    ----------
    table
        Ways of the job.
    switch
        A row of it.
    later
        Than the job may start.  [h]
    """
    (one, few), (other, more) = switch.rented(table)
    when = f", {later:g} h later" if later else ""
    return f"{few} × {one.offer.id} for {switch.hours[0]:g} h, then {more} × {other.offer.id}{when}"


def _part(
    question: TrainingQuestion, table: TrainingTable, switch: Switch, jobs: int, number: int, begin: float
) -> Part:
    site, nodes = switch.rented(table)[number]
    assert table.late is not None
    of, place = ((table.late, switch.first), (table, switch.second))[number]
    share = (switch.share, 1.0 - switch.share)[number]
    whole, terms = of.time.row(place), part_terms(table, switch)[number]
    hours, start = switch.hours[number], begin + number * switch.hours[0]
    memory, split = memory_document(of.memory.row(place), site.usable_bytes), split_document(of.layout, place)
    cost, devices = switch.cost_microusd[number] * jobs, nodes * site.shape.devices
    row: SwitchedRow = {
        **place_document(site, nodes * jobs),  # type: ignore[typeddict-item]  # no mix
        "jobs": jobs,
        "layout": split,
        "hours": hours,
        "held_hours": switch.held_hours[number],
        "billed_hours": billed_hours(site.bill, hours),
        "software": able(asked_on(question.job, question.arch, {**split}, site.device, site.shape, nodes)),
        "start_hours": start,
        "end_hours": start + hours,
        "funding": site.offer.price_model,
        "reserved_pool": None,
        "runs": None,
        "finish_hours": start + hours,
        "deadline_hours": (question.job.start_s + question.job.deadline_s) / 3600.0,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory,
        "time_terms_s": terms,
        "binds": bound_by(terms),
        "run": _run(run_document(question, site, whole, devices, jobs), whole, share, hours),
        "step_time_ratio": question.step_time_ratio(site),
        "switch": {
            "name": switch_name(table, switch, round(begin - question.job.start_s / 3600.0, 6)),
            "part": number + 1,
            "parts": len(PARTS),
            "share": share,
            "share_at_confidence": (switch.share_at_confidence, 1.0 - switch.share_at_confidence)[number],
            "switch_hours": switch.hours[0],
            "checkpoint_s": switch.saved_s,
            "restart_s": switch.restart_s,
        },
        "error_band": _band(question, table, switch, number, memory["needed_bytes"], usd(cost)),
        "device_hours": devices * jobs * hours,
    }
    return Part(site=site, nodes=nodes, share=share, whole_terms_s=whole, row=row)


def _run(cells: RunFigures, whole_terms_s: dict[str, float], share: float, hours: float) -> RunFigures:
    """Failures and checkpoints of a part, from those of the whole run on its machines."""
    goodput = share * busy_s_of(whole_terms_s) / (3600.0 * hours)
    if not cells["modelled"]:
        return {**cells, "goodput": goodput}
    kept, whole_hours = cells["storage_usd"], sum(whole_terms_s.values()) / 3600.0
    return {
        **cells,
        "goodput": goodput,
        "expected_failures": share * cells["expected_failures"],
        "storage_usd": None if kept is None else kept * hours / whole_hours,
    }


def _band(
    question: TrainingQuestion, table: TrainingTable, switch: Switch, number: int, needed: float, cost_usd: float
) -> RowBand:
    """The band of a part: the first ends by the clock, so that the second bears what both may be off."""
    assert table.late is not None
    hours = switch.hours[number]
    bands = [
        question.row_band(of.sites[row], int(of.nodes[row]), of.layout, row)
        for of, row in ((table.late, switch.first), (table, switch.second))
    ]
    figures = {"hours": hours, "cost_usd": cost_usd, "needed_bytes": needed}
    cells = row_band(bands[number], question.spec.confidence, figures)
    spread = _hours(table, switch, (bands[0].time, bands[1].time), number)
    cells["hours"] = spread
    cells["cost_usd"] = {
        "p10": cost_usd * spread["p10"] / hours,
        "p50": cost_usd * spread["p50"] / hours,
        "p90": cost_usd * spread["p90"] / hours,
        "at_confidence": cost_usd * spread["at_confidence"] / hours,
    }
    return cells


def _hours(table: TrainingTable, switch: Switch, bands: tuple[Band | None, Band | None], number: int) -> Spread:
    assert table.late is not None
    whole_s = float(table.late.finish_s[switch.first]), float(table.finish_s[switch.second])

    def at(quantile: Figure) -> float:
        slow, slower = (1.0 if band is None else float(getattr(band, quantile)) for band in bands)
        share = switch.share / slow
        if number == 0:
            return min(switch.hours[0], whole_s[0] * slow / 3600.0) if share >= 1 else switch.hours[0]
        return float(switched_rest_s(np.float64(share), switch.restart_s, whole_s[1] * slower)) / 3600.0

    confident = switch.held_hours[number]
    return {"p10": at("p10"), "p50": at("p50"), "p90": at("p90"), "at_confidence": confident}


def part_speed(speed: Speed, share: float) -> Speed:
    """Speed and work of a part from those of the whole run on its machines: it does less, as fast."""
    work = speed["work"]
    return {
        **speed,
        "work": {**work, "tokens": work["tokens"] * share, "flop_count": work["flop_count"] * share},
        "rule_hours": speed["rule_hours"] * share,
    }


def switched_reasons(rows: Sequence[TrainingAllocation], alone_microusd: int | None) -> list[str]:
    """Why a job changes machines: what spot does of it, what the change takes, what on demand alone would cost."""
    first, second = sorted(rows, key=lambda row: row["switch"]["part"])
    told, cost = first["switch"], sum(row["cost_microusd"] for row in rows)
    surely = (
        f", {told['share_at_confidence']:.0%} of it surely"
        if round(told["share_at_confidence"], 2) < round(told["share"], 2)
        else ""
    )
    per_job = first["count"] // first["jobs"]
    lines = [
        f"spot for {_hours_text(first)}, then on demand for {_hours_text(second)}: {per_job} × {first['shape']} on "
        f"spot alone would be late; until the switch they do {told['share']:.0%} of the work{surely}",
        f"the switch takes a checkpoint of {format_duration(told['checkpoint_s'])} and a restart of "
        f"{format_duration(told['restart_s'])}, both in time and cost",
    ]
    if alone_microusd is not None:
        lines.append(f"on demand alone it would cost {format_money(alone_microusd - cost)} more at least")
    return lines


def _hours_text(row: TrainingAllocation) -> str:
    return format_duration(3600.0 * row["hours"])
