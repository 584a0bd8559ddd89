"""What was chosen, workload by workload: the rows of the candidates' own arrays, never recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.candidates.offers import Site
from planner.candidates.program import Task
from planner.candidates.rates import RatesTable
from planner.candidates.search import Candidates
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Group
from planner.estimate.bill import billed_hours
from planner.estimate.binding import bound_by
from planner.estimate.software import able, asked_on
from planner.estimate.utilisation import achieved_mfu
from planner.optimize.solve import Solution
from planner.plan.rows.bands import row_band, spread
from planner.plan.rows.calendar import held_hours, timing_of
from planner.plan.rows.parted import Part, mixed_rows, part_speed, shared_speed, switched_rows
from planner.plan.rows.pools import stands_of
from planner.plan.rows.row_cells import (
    busy_s_of,
    energy_document,
    memory_document,
    place_document,
    rule_hours,
    run_document,
    split_document,
    usd,
    work_document,
)
from planner.plan.rows.serving import given_rows, serving_rows

if TYPE_CHECKING:
    from planner.plan.model.plan import Allocation
    from planner.plan.model.rows import MixedRow, Speed, TrainingAllocation


def allocations_of(candidates: Candidates, solution: Solution, task: Task) -> list[Allocation]:
    """The chosen columns of one workload, dearest first, as rows of the plan document.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    solution
        Units and flows of each column of their program.
    task
        The workload in that program.
    """
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    table = candidates.tables[task.name]
    rows: list[Allocation] = []
    if isinstance(table, TrainingTable):
        rows += (row for c in chosen for row in _training_rows(candidates, solution, task, table, c))
    elif isinstance(table, RatesTable):
        rows += given_rows(candidates, solution, task, table)
    else:
        rows += serving_rows(candidates, solution, task, table)
    whole: dict[str, int] = {}  # parts of a switch stand together, the first one first
    for row in rows:
        if "switch" in row:
            whole[row["switch"]["name"]] = whole.get(row["switch"]["name"], 0) + row["cost_microusd"]

    def order(row: Allocation) -> tuple[int, str, float]:
        name = row["switch"]["name"] if "switch" in row else ""
        return -whole.get(name, row["cost_microusd"]), name or row["offer"], row["start_hours"]

    return sorted(rows, key=order)


def _training_rows(
    candidates: Candidates, solution: Solution, task: Task, table: TrainingTable, column: int
) -> list[TrainingAllocation]:
    """One row of a job on one offer, one for each group of a mix or part of a switch."""
    row, question = int(candidates.rows[column]), candidates.questions[task.name]
    if row in table.switches:
        assert isinstance(question, TrainingQuestion)
        switch, start_s, site = table.switches[row], question.job.start_s, table.sites[row]
        timing = timing_of(candidates, solution, task, column, site, start_s, sum(switch.hours)).cells
        parts = switched_rows(question, table, switch, int(solution.units[column]), timing["start_hours"])
        return [_switched_row(candidates, question, part) for part in parts]
    mixed = table.mixes.get(row)
    if mixed is None:
        return [_training(candidates, solution, task, table, column)]
    assert isinstance(question, TrainingQuestion)
    jobs = int(solution.units[column])
    hours = float(table.finish_s[row]) / 3600.0
    timing = timing_of(candidates, solution, task, column, table.sites[row], question.job.start_s, hours).cells
    return [
        _mixed_row(candidates, question, one, group)
        for one, group in zip(mixed_rows(question, mixed, jobs, hours, timing), mixed.groups)
    ]


def _mixed_row(candidates: Candidates, question: TrainingQuestion, row: MixedRow, group: Group) -> TrainingAllocation:
    """A row of a mix with its speed and its energy."""
    alone = _speed(candidates, question, group.site, row["time_terms_s"], row["devices"] // row["jobs"])
    energy = energy_document(candidates.catalog, group.site, row["count"], row["hours"])
    held = row["hours"] * (row["error_band"]["time"]["margin"] if row["error_band"]["time"] else 1.0)
    billed, speed = billed_hours(group.site.bill, row["hours"]), shared_speed(alone, row["mix"]["share"])
    return {**row, "held_hours": held, "billed_hours": billed, "software": [], **speed, **energy}


def _switched_row(candidates: Candidates, question: TrainingQuestion, part: Part) -> TrainingAllocation:
    """A row of a switch with its speed and its energy."""
    whole = _speed(candidates, question, part.site, part.whole_terms_s, part.nodes * part.site.shape.devices)
    energy = energy_document(candidates.catalog, part.site, part.row["count"], part.row["hours"])
    return {**part.row, **part_speed(whole, part.share), **energy}


def _training(
    candidates: Candidates, solution: Solution, task: Task, table: TrainingTable, column: int
) -> TrainingAllocation:
    row, jobs = int(candidates.rows[column]), int(solution.units[column])
    site, question = table.sites[row], candidates.questions[task.name]
    assert isinstance(question, TrainingQuestion)
    hours = float(table.finish_s[row]) / 3600.0
    shapes, devices = int(table.nodes[row]) * jobs, int(table.nodes[row]) * site.shape.devices
    timing = timing_of(candidates, solution, task, column, site, question.job.start_s, hours)
    stand = stands_of(candidates, solution).get(column) if site.whole_devices is not None else None
    cost, terms = stand.cost_microusd if stand else timing.cost_microusd, table.time.row(row)
    memory, split = memory_document(table.memory.row(row), site.usable_bytes), split_document(table.layout, row)
    asked = asked_on(question.job, question.arch, {**split}, site.device, site.shape, int(table.nodes[row]))
    figures = {"hours": hours, "cost_usd": usd(cost), "needed_bytes": memory["needed_bytes"]}
    band = row_band(
        question.row_band(site, int(table.nodes[row]), table.layout, row), question.spec.confidence, figures
    )
    energy = energy_document(candidates.catalog, site, shapes, hours)
    if stand is not None:  # it bears its part of nodes that are there all the time, however long it runs
        assert candidates.shared is not None
        node, horizon = candidates.shared.node_at(column), candidates.scenario.horizon_s / 3600.0
        assert node is not None
        band["cost_usd"] = spread(None, usd(cost), 1.0)
        energy = energy_document(candidates.catalog, node, float(stand.shapes), horizon)
    found: TrainingAllocation = {
        **place_document(site, shapes),
        "jobs": jobs,
        "layout": split,
        "hours": hours,
        "held_hours": held_hours(candidates, task, column, site, hours),
        "billed_hours": billed_hours(site.bill, hours),
        "software": able(asked),
        **timing.cells,
        "finish_hours": timing.cells["end_hours"],
        "deadline_hours": (question.job.start_s + question.job.deadline_s) / 3600.0,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory,
        "time_terms_s": terms,
        "binds": bound_by(terms),
        "run": run_document(question, site, terms, devices, jobs),
        "step_time_ratio": question.step_time_ratio(site),
        **_speed(candidates, question, site, terms, devices),
        "error_band": band,
        "device_hours": shapes * site.shape.devices * hours,
        **energy,  # type: ignore[typeddict-item]  # no mix
    }
    if stand is not None:
        found["shared"] = list(stand.nodes)
    return found


def _speed(
    candidates: Candidates, question: TrainingQuestion, site: Site, terms: Mapping[str, float], devices: int
) -> Speed:
    """The share of the peak that is sustained: asked of the rule, measured, or what the predicted time amounts to."""
    spec, machine = question.spec_on(site), question.machine(site)
    peak = site.device.peak_flop_per_s[question.job.precision] * site.shape.compute_share
    band, tier = question.band(site), question.tier(site)
    busy = busy_s_of(terms)
    mfu = float(machine.mfu)
    source = "scenario (measured)" if tier == "measured" else _rule_source(candidates, site)
    if tier == "analytic":
        mfu = achieved_mfu(question.arch, spec, busy, devices, peak)
        heir = f", inherited from {band.inherited_from}" if band.inherited_from else ""
        source = f"analytic tier, constants {band.family} {band.constants_id}{heir}"
    return {
        "mfu": mfu,
        "mfu_source": source,
        "peak_flop_per_s": peak,
        "work": work_document(question.arch, spec, busy, devices),
        "rule_hours": rule_hours(question.arch, spec, candidates.catalog, site.device.family, devices * peak),
    }


def _rule_source(candidates: Candidates, site: Site) -> str:
    rule = candidates.catalog.efficiencies[site.device.family]
    if rule.inherited_from:
        return f"rule tier, inherited from {rule.inherited_from}: {rule.provenance.source}"
    return f"rule tier, {rule.family}: {rule.provenance.source}"
