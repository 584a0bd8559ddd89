"""Rows of a switch: one for each part of a job that begins on spot and ends on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from planner.candidates.switching import part_terms
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Switch, TrainingTable
from planner.equations.preemption import switched_rest_s
from planner.estimate.bill import billed_hours
from planner.estimate.binding import bound_by
from planner.estimate.software import able, asked_on
from planner.plan.rows.bands import row_band
from planner.plan.rows.place import memory_document, place_document, usd
from planner.plan.rows.run import run_document, split_document
from planner.plan.rows.work import busy_s_of
from planner.units import format_duration, format_money

if TYPE_CHECKING:
    from planner.candidates.offers import Site
    from planner.catalog.model import Band
    from planner.plan.model.rows import RowBand, RunFigures, Speed, Spread, SwitchedRow, TrainingAllocation

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
