"""Cost against finish of each training job by itself: the Pareto front of its candidates, without any solve.

What workloads share (a budget, devices, contracts, the link that carries their data) is left out: `frontier` answers
that, with a proof a point. Ways a while past the deadline are shown too, since what a later deadline would save is
half of the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.candidates.trained import Trained
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.plan.model.frontier_document import JobChosen, JobPoint, Tradeoff
from planner.plan.model.plan import Allocation, PlanDocument
from planner.plan.parts import rows_of
from planner.plan.rows.row_cells import usd

PATIENCE = 2.0  # ways are looked at up to so many times the job's deadline


def tradeoffs_of(trained: Mapping[str, Trained], plan: PlanDocument | None = None) -> list[Tradeoff]:
    """One entry a training job: the ways that nothing is both cheaper and sooner than, soonest first.

    Parameters
    ----------
    trained
        Ways to run each job, of a search with patience past the deadlines.
    plan
        A plan document, whose own choice is marked.
    """
    chosen = {workload["name"]: rows_of(workload) for workload in plan["workloads"]} if plan else {}
    return [_tradeoff(job.question, job.table, chosen.get(name, ())) for name, job in trained.items()]


def _tradeoff(question: TrainingQuestion, table: TrainingTable, rows: Sequence[Allocation]) -> Tradeoff:
    job = question.job
    late_s = _late_s(question, table)
    points = [_point(question, table, row, late_s[row] / 3600.0) for row in _front(table, late_s)]
    for point in points:
        point["here"] = len(rows) == 1 and _same(point, rows[0])
    return {
        "workload": job.name,
        "jobs": job.count,
        "start_hours": job.start_s / 3600.0,
        "deadline_hours": (job.start_s + job.deadline_s) / 3600.0,
        "confidence": question.spec.confidence,
        "points": points,
        "chosen": _chosen(rows),
    }


def _late_s(question: TrainingQuestion, table: TrainingTable) -> list[float]:
    """When each row is over at the confidence that is asked for, after its start.  [s]"""
    confidence, powers = question.spec.confidence, question.row_powers(table.sites, table.nodes, table.layout)
    margins = [
        table.mixes[row].time_margin
        if row in table.mixes
        else float(question.band(site).time_margins(confidence, power))
        for row, (site, power) in enumerate(zip(table.sites, powers, strict=True))
    ]
    return [margin * float(finish_s) for margin, finish_s in zip(margins, table.finish_s, strict=True)]


def _front(table: TrainingTable, late_s: Sequence[float]) -> list[int]:
    """Rows that no other row beats in both: soonest first, each cheaper than those before."""
    order = sorted(range(len(table)), key=lambda row: (late_s[row], table.cost_microusd[row]))
    kept: list[int] = []
    for row in order:
        if not kept or table.cost_microusd[row] < table.cost_microusd[kept[-1]]:
            kept.append(row)
    return kept


def _point(question: TrainingQuestion, table: TrainingTable, row: int, late: float) -> JobPoint:
    job, site, hours = question.job, table.sites[row], float(table.finish_s[row]) / 3600.0
    mixed = table.mixes.get(row)
    nodes = sum(group.nodes for group in mixed.groups) if mixed else int(table.nodes[row])
    devices = sum(g.nodes * g.site.shape.devices for g in mixed.groups) if mixed else nodes * site.shape.devices
    groups = [group.site for group in mixed.groups] if mixed else [site]
    start, cost = job.start_s / 3600.0, table.cost_microusd[row] * job.count
    return {
        "device": " + ".join(dict.fromkeys(one.device.id for one in groups)),
        "offer": " + ".join(one.offer.id for one in groups),
        "count": nodes * job.count,
        "devices": devices * job.count,
        "finish_hours": start + hours,
        "finish_at_confidence_hours": start + late,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "on_time": late <= job.deadline_s / 3600.0 * (1 + 1e-9),
        "here": False,
    }


def _same(point: JobPoint, row: Allocation) -> bool:
    return (
        "finish_hours" in row
        and point["offer"] == row["offer"]
        and point["count"] == row["count"]
        and abs(point["finish_hours"] - row["finish_hours"]) <= 1e-6 * point["finish_hours"]
    )


def _chosen(rows: Sequence[Allocation]) -> JobChosen | None:
    """What the plan does, where its cost is its own and not a contract's."""
    trained = [row for row in rows if "finish_hours" in row and row["funding"] != "reserved"]
    if not rows or len(trained) < len(rows):
        return None
    cost = sum(row["cost_microusd"] for row in rows)
    return {
        "device": " + ".join(dict.fromkeys(row["device"] for row in rows)),
        "count": sum(row["count"] for row in rows),
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(row["finish_hours"] for row in trained),
        "cost_microusd": cost,
        "cost_usd": usd(cost),
    }
