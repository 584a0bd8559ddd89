"""The comparison as a document: every side, and each later one beside the first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, cast

from planner.analysis.compare.cause import Cause, Effect, find_cause, said_of
from planner.analysis.compare.changes import Between, Change, changes_between
from planner.analysis.compare.decision import bought_rows, money_rows, owned_rows, workload_rows
from planner.analysis.compare.flips import Flip, flip_price, runner_up
from planner.analysis.compare.inputs import inputs_document
from planner.analysis.compare.model import (
    Again,
    Amounts,
    CauseFound,
    CauseNotSought,
    ChangeRow,
    Compared,
    CompareDocument,
    FlipRow,
    RunnerUp,
    WorkloadRow,
)
from planner.analysis.compare.outcome import Outcome
from planner.analysis.compare.resolve import Engine, ExhaustedError, Resolver
from planner.analysis.compare.side import Side
from planner.deadline import TimeIsUp, is_up
from planner.optimize.limited import Asker
from planner.optimize.options import SolverOptions
from planner.plan.parts import currency_of

MOST_FLIPS = 5
SIDES: Final = ("old", "new")


def compare_sides(
    sides: Sequence[Side],
    engine: Engine,
    *,
    cause: bool = True,
    allow_suspect: bool = False,
    options: SolverOptions | None = None,
) -> CompareDocument:
    """Each side beside the first, as a comparison document.

    Parameters
    ----------
    cause
        Look for the change that moved the decision, by solving the questions in between.
    options
        Of the solver, for break-even prices.
    """
    first, asker = sides[0], Asker(options={k: v for k, v in (options or {}).items() if k != "gap"})
    found = [_compared(first, other, engine, cause, allow_suspect, asker) for other in sides[1:]]
    known = [share for row in found if (share := row["money"][-1]["difference"]) is not None]
    return {
        "schema": "plan/compare/v1",
        "summary": {
            "same": all(row["same"] for row in found),
            "largest_increase": max(known) if known and len(known) == len(found) else None,
            "currency": currency_of(first.document),
        },
        "sides": [side.told() for side in sides],
        "comparisons": found,
    }


def _compared(first: Side, other: Side, engine: Engine, cause: bool, allow_suspect: bool, asker: Asker) -> Compared:
    old, new = first.document, other.document
    workloads, money = workload_rows(old, new), money_rows(old, new)
    contracts, copies = bought_rows(old, new, "contracts"), bought_rows(old, new, "copies")
    owned = owned_rows(old, new)
    status = [first.has_plan, other.has_plan]
    same = (
        status[0] == status[1]
        and all(row["changed"] == "nothing" for row in workloads)
        and not contracts
        and not copies
        and not money[-1]["difference_microusd"]  # a total that its workloads do not explain
    )
    horizons = [side.document["summary"].get("horizon_hours") for side in (first, other)]
    return {
        "old": first.name,
        "new": other.name,
        "same": same and not owned,
        "inputs": inputs_document(first, other),
        "workloads": workloads,
        "contracts": contracts,
        "copies": copies,
        "owned": owned,
        "money": money,
        "horizon_hours": {"old": horizons[0], "new": horizons[1]},
        "cause": _cause_in_time(first, other, engine, allow_suspect, asker) if cause else _not_asked("--no-cause"),
    }


def _not_asked(reason: str) -> CauseNotSought:
    return {"looked_for": False, "reason": reason}


def _cause_in_time(
    first: Side, other: Side, engine: Engine, allow_suspect: bool, asker: Asker
) -> CauseFound | CauseNotSought:
    try:
        if not is_up(asker.options.get("time_limit_s")):
            return _cause(first, other, engine, allow_suspect, asker)
    except TimeIsUp:
        pass
    return _not_asked("no time was left for it")


def _cause(first: Side, other: Side, engine: Engine, allow_suspect: bool, asker: Asker) -> CauseFound | CauseNotSought:
    reason = _why_not(first, other)
    if reason:
        return _not_asked(reason)
    assert first.scenario is not None
    assert other.scenario is not None
    assert first.catalog is not None
    assert other.catalog is not None
    changes = changes_between(first.scenario, other.scenario, first.catalog, other.catalog, allow_suspect=allow_suspect)
    between = Between(first.scenario, other.scenario, first.catalog, other.catalog, changes, allow_suspect)
    resolver = Resolver(between=between, engine=engine)
    if not changes:
        return _not_asked("nothing that was asked differs")
    cause = find_cause(resolver)
    base, full = resolver.outcome(()), resolver.outcome(resolver.every)
    listed = [_change_row(resolver, cause, number, base, full) for number in _worth_telling(cause, base, full)]
    return {
        "looked_for": True,
        "reason": "",
        "level": cause.level,
        "verdict": cause.verdict,
        "proven": cause.proven,
        "changes": len(changes),
        "groups": len({change.group for change in changes}),
        "resolved": {
            "solves": resolver.solves,
            "listings": resolver.listings,
            "unusable": len(resolver.skipped["unusable"]),
            "not_dearer": len(resolver.skipped["dearer"] - resolver.skipped["unusable"]),
        },
        "sides": _differing(first, other, base, full),
        "found": [row for row in listed if row["number"] in cause.numbers],
        "others": [row for row in listed if row["number"] not in cause.numbers],
        "runner_up": _runner_up(resolver, asker),
    }


def _why_not(first: Side, other: Side) -> str:
    """Why the questions in between cannot be solved; empty when they can."""
    for side in (first, other):
        if side.scenario is None or side.catalog is None:
            return side.missing
        if side.scenario.uncertainty:
            return f"{side.name} is planned for several futures at once"
        if side.document["status"] not in ("optimal", "feasible", "infeasible"):
            return f"{side.name} has no plan and no proof that there is none"
    asked = [{workload["name"] for workload in side.document["workloads"]} for side in (first, other)]
    return "" if asked[0] & asked[1] else "the two have no workload in common"


def _differing(first: Side, other: Side, base: Outcome, full: Outcome) -> list[Again]:
    """Plans that cost something else than their questions solved again: another planner made them, or they stay."""
    rows: list[Again] = []
    for side, outcome in ((first, base), (other, full)):
        if side.has_plan and outcome.cost_microusd != side.cost_microusd:
            again = None if outcome.cost_microusd is None else outcome.cost_microusd / 1e6
            rows.append({"name": side.name, "plan_usd": (side.cost_microusd or 0) / 1e6, "again_usd": again})
    return rows


def _worth_telling(cause: Cause, base: Outcome, full: Outcome) -> list[int]:
    """The changes found, then those that move the decision or the money at all, largest first."""

    def size(effect: Effect) -> int:
        pairs = ((effect.alone, base), (effect.without, full))
        return max((abs((o.cost_microusd or 0) - (s.cost_microusd or 0)) for o, s in pairs if o is not None), default=0)

    def acts(effect: Effect) -> bool:
        pairs = ((effect.alone, base), (effect.without, full))
        return any(o is not None and (o.how != s.how or o.cost_microusd != s.cost_microusd) for o, s in pairs)

    others = [n for n, effect in cause.effects.items() if n not in cause.numbers and acts(effect)]
    return [*cause.numbers, *sorted(others, key=lambda n: (-size(cause.effects[n]), n))]


def _change_row(resolver: Resolver, cause: Cause, number: int, base: Outcome, full: Outcome) -> ChangeRow:
    change, effect = resolver.between.changes[number], cause.effects.get(number)
    flip = _flip(resolver, cause, number) if number in cause.numbers[:MOST_FLIPS] else None
    row = {
        "number": number,
        "kind": change.kind,
        "group": change.group,
        "name": change.name,
        "id": change.id,
        "field": change.field,
        **_values(change),
        "devices_per_shape": _devices(resolver, change),
        "alone": None if effect is None else said_of(effect.alone, base, base, full, cause.level),
        "without": None if effect is None else said_of(effect.without, full, base, full, cause.level),
        "break_even": None if flip is None else _flip_row(resolver, change, flip),
    }
    return cast("ChangeRow", row)  # which of them is told by its kind


def _values(change: Change) -> dict[str, object]:
    """Old and new; prices in USD an hour of a shape."""
    if change.kind in ("price", "added", "removed"):
        return {"old": _usd(change.old), "new": _usd(change.new), "unit": "USD/h"}
    plain = [v if isinstance(v, int | float | str | bool | None) else json.loads(json.dumps(v, default=str))
             for v in (change.old, change.new)]  # fmt: skip
    return {"old": plain[0], "new": plain[1], "unit": ""}


def _usd(microusd: int | None) -> float | None:
    return None if microusd is None else microusd / 1e6


def _devices(resolver: Resolver, change: Change) -> int | None:
    """Devices of the shape that a price is for."""
    for catalog in (resolver.between.after, resolver.between.before):
        for offer in catalog.offers if change.kind in ("price", "added", "removed") else ():
            if offer.id == change.id:
                return catalog.shapes[offer.shape].devices
    return None


def _flip(resolver: Resolver, cause: Cause, number: int) -> Flip | None:
    try:
        return flip_price(resolver, number, cause.level)
    except ExhaustedError:
        return None


def _flip_row(resolver: Resolver, change: Change, flip: Flip) -> FlipRow:
    devices = _devices(resolver, change) or 1
    return {
        "price_usd_per_hour": flip.price_microusd / 1e6,
        "price_usd_per_device_hour": flip.price_microusd / 1e6 / devices,
        "holds": "below" if flip.below else "above",
        "proven": flip.proven,
    }


def _runner_up(resolver: Resolver, asker: Asker) -> RunnerUp | None:
    """The best plan of B's question with another decision, and what its offers would have to cost."""
    if resolver.between.new.mixes:
        return None  # what a mix of offers decides is not told by one offer
    try:
        solved = resolver.answered(resolver.every)
    except ExhaustedError:
        return None
    found = None if solved is None else runner_up(*solved, asker)
    if found is None or solved is None:
        return None
    share = None if found.share is None else float(found.share)
    return {
        "cost_usd": found.cost_microusd / 1e6,
        "dearer_usd": (found.cost_microusd - solved[1].cost_microusd) / 1e6,
        "decides": [
            {"workload": task, "offer": offer, "device": device, "count": count}
            for task, offer, device, count in found.offers
        ],
        "share": share,
        "prices": [
            {
                "offer": offer,
                "price_usd_per_hour": price / 1e6,
                "break_even_usd_per_hour": None if share is None else share * price / 1e6,
                "devices_per_shape": devices,
            }
            for offer, price, devices in found.prices
        ],
        "proven": found.proven,
    }


def flat_rows(document: CompareDocument) -> list[dict[str, object]]:
    """One flat row a workload and comparison, and one a total: for CSV and data frames."""
    rows: list[dict[str, object]] = []
    for one in document["comparisons"]:
        head = {"old": one["old"], "new": one["new"]}
        rows += [head | _flat(row) for row in one["workloads"]]
        rows += [head | {"workload": row["part"], "kind": "sum", "sign": ""} | _amounts(row) for row in one["money"]]
    return rows


def _flat(row: WorkloadRow) -> dict[str, object]:
    cells: dict[str, object] = {
        "workload": row["name"],
        "kind": row["kind"],
        "sign": row["sign"],
        "changed": row["changed"],
    }
    for name in SIDES:
        side = row[name]
        cells[f"{name}_offers"] = " + ".join(f"{one['count']} × {one['offer']}" for one in side["rows"]) if side else ""
        for figure in ("devices", "finish_hours", "load_at_peak"):
            cells[f"{name}_{figure}"] = side[figure] if side else None
    return cells | _amounts(row)


def _amounts(row: Amounts) -> dict[str, object]:
    return {name: row[name] for name in ("old_usd", "new_usd", "difference_usd", "difference")}
