"""The frontier as a document: points tightest first, what each step saves, and how sure all of it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from planner import __version__, units
from planner.analysis.frontier.points import BROKEN_OFF, Sweep, front
from planner.candidates.search import Candidates
from planner.optimize.options import SolverOptions
from planner.plan.document import digest_of
from planner.plan.model.frontier_document import FrontierDocument, FrontierPoint, Record, SweepTold, Unit
from planner.plan.model.plan import Status
from planner.plan.parts import said_of, unchanging
from planner.plan.plan_files import catalog_used
from planner.scenario.schema import Scenario

# from base units to the units of the document: s to hours, micro-USD to USD, mg to kg
UNITS: dict[str, tuple[Unit, float]] = {
    "deadline": ("hours", 3600.0), "time": ("hours", 3600.0), "budget": ("usd", 1e6), "cost": ("usd", 1e6),
    "carbon": ("kg", 1e6),
}  # fmt: skip
STEPS = {"deadline": ("day", 24.0), "budget": ("1,000 USD", 1000.0), "carbon": ("t", 1000.0)}  # what a saving is per


def frontier_document(
    candidates: Candidates,
    sweep: Sweep,
    records: Sequence[Record],
    options: SolverOptions,
    own: float | None,
    loose: list[str],
) -> FrontierDocument:
    """The document of a sweep; nothing in it tells which points came from a journal.

    Parameters
    ----------
    own
        The limit that the scenario itself sets: s, micro-USD or mg; None = none.
    loose
        Settings of the question at the loosest limit, those that it was asked with among them.
    """
    scenario, kept = candidates.scenario, front(records)
    points = [_point(record, sweep) for record in kept]
    for before, point in itertools.pairwise(points):
        point["saved"] = _saved(before, point, sweep)
    here = [number for number, record in enumerate(kept) if own is not None and record["over"] <= own]
    for number, point in enumerate(points):
        point["here"] = bool(here) and number == here[-1]
    document: FrontierDocument = {
        "schema": "plan/frontier/v1",
        "status": _status(records, sweep),
        "complete": _complete(records, sweep),
        "name": scenario.name,
        "title": scenario.title or "",
        "sweep": _sweep(sweep, own) | {"loosest": loose},
        "points": points,
        "unchanging": unchanging(points),
        "infeasible_below": _shown_if(_nothing_below(records), sweep.over),
        "messages": [*_messages(records), *_left_out(scenario, sweep.over), *_warnings(kept, points, sweep)],
        "currency": "USD",
        "provenance": {
            "planner": __version__,
            "catalog": catalog_used(candidates.catalog, scenario),
            "solver": options["solver"],
            "gap": options["gap"],
            "seed": options["seed"],
            "threads": options["threads"],
            "columns": candidates.whole.column_count,
            "solves": sum(record["solves"] for record in records),
        },
        "scenario": scenario.resolved,
        "scenario_file": scenario.file,
        "case": scenario.case,
        "sha256": "",
    }
    document["sha256"] = digest_of(document)
    return document


def flat_rows(document: FrontierDocument) -> list[dict[str, object]]:
    """One flat row a point, for frames and CSV."""
    over = document["sweep"]["over"]
    unit = UNITS[over][0]
    rows = []
    for point in document["points"]:
        row: dict[str, object] = {f"{over}_from_{unit}": point["from"], "proven": point["status"] == "optimal"}
        row |= {name: point[name] for name in ("cost_usd", "finish_hours", "carbon_kg", "devices", "device_hours")}
        row |= {"saved": point["saved"], "saved_unit": document["sweep"]["saved_unit"], "here": point["here"]}
        for workload in point["workloads"]:
            row[f"{workload['name']} cost_usd"] = workload["cost_usd"]
            row[f"{workload['name']} finish_hours"] = workload["finish_hours"]
            row[f"{workload['name']} plan"] = " + ".join(
                f"{cell['count']} × {cell['offer']}" for cell in workload["allocations"]
            )
        rows.append(row)
    return rows


def _left_out(scenario: Scenario, over: str) -> list[str]:
    """What a sweep does not look at."""
    mixed = [job.name for job in scenario.training if job.mix_within_job]
    both = {"spot", "on_demand"} <= set(scenario.hardware.pricing)
    switching = [job.name for job in scenario.training if job.switch_within_job and both and over == "deadline"]
    left = []
    if mixed:
        left.append(f"{', '.join(mixed)}: a frontier trains each job on one offer; mixes within a job are left out")
    if switching:
        left.append(f"{', '.join(switching)}: over deadlines no job changes from spot to on demand as in plan solve")
    return left


def _messages(records: Sequence[Record]) -> list[str]:
    """What was said of points; of a program without a plan only when there is no other."""
    told = [record for record in records if "point" in record] or records
    return list(dict.fromkeys(text for record in told for text in record.get("messages", ())))


def _warnings(kept: Sequence[Record], points: Sequence[FrontierPoint], sweep: Sweep) -> list[str]:
    """What the plans of the points warn of, each once."""
    shown: dict[Unit, Callable[[float], str]] = {
        "hours": lambda hours: units.format_duration(3600.0 * hours),
        "usd": lambda usd: units.format_money(round(1e6 * usd)),
        "kg": lambda kg: f"{kg:,.0f} kg",
    }
    name = shown[UNITS[sweep.over][0]]
    named = [(f"from {name(point['from'])}", record.get("warnings", ())) for point, record in zip(points, kept)]
    return said_of(named)


def _point(record: Record, sweep: Sweep) -> FrontierPoint:
    point = record["point"]
    return {
        "from": _shown(max(record["over"], sweep.low), sweep.over),
        "status": "optimal" if record["status"] == "optimal" else "feasible",
        "over": _shown(record["over"], sweep.over),
        "against": _shown(record["against"], sweep.against),
        "saved": None,
        "cost_microusd": point["cost_microusd"],
        "cost_usd": point["cost_usd"],
        "gap": point["gap"],
        "devices": point["devices"],
        "device_hours": point["device_hours"],
        "finish_hours": point["finish_hours"],
        "carbon_kg": point["carbon_kg"],
        "workloads": point["workloads"],
        "contracts": point["contracts"],
        "here": False,
    }


def _saved(before: FrontierPoint, point: FrontierPoint, sweep: Sweep) -> float | None:
    """What a looser limit saves, from the point before to this one, by the step of its unit."""
    wider = (point["from"] - before["from"]) / STEPS[sweep.over][1]
    return (before["against"] - point["against"]) / wider if wider > 0 else None


def _shown(value: float, name: str) -> float:
    return value / UNITS[name][1]


def _shown_if(value: float | None, name: str) -> float | None:
    return None if value is None else _shown(value, name)


def _sweep(sweep: Sweep, own: float | None) -> SweepTold:
    return {
        "over": sweep.over,
        "unit": UNITS[sweep.over][0],
        "low": _shown(sweep.low, sweep.over),
        "high": _shown_if(sweep.high, sweep.over),
        "against": sweep.against,
        "against_unit": UNITS[sweep.against][0],
        "workload": sweep.workload,
        "saved_unit": f"{UNITS[sweep.against][0]} per {STEPS[sweep.over][0]}",
        "own": _shown_if(own, sweep.over),
    }


def _status(records: Sequence[Record], sweep: Sweep) -> Status:
    if not any("point" in record for record in records):
        return records[-1]["status"] if records else "stopped"
    return "optimal" if _complete(records, sweep) else "feasible"


def _complete(records: Sequence[Record], sweep: Sweep) -> bool:
    """Whether every point of the range is there and proven."""
    if not records or any(record["status"] not in ("optimal", "infeasible") for record in records):
        return False
    last = records[-1]
    if BROKEN_OFF in last.get("messages", ()):
        return False
    return bool(last["status"] == "infeasible" or last["over"] <= sweep.low)


def _nothing_below(records: Sequence[Record]) -> float | None:
    """The held value below which nothing is left, proven; None when the range ended before."""
    points = [record["over"] for record in records if "point" in record]
    return min(points) if points and records[-1]["status"] == "infeasible" else None
