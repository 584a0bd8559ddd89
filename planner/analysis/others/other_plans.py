"""What else could be done: other decisions, how much of each device is nearly as good, staying with the plan before.

All of these look at plans that a search for the best one may leave out, so the columns are chosen anew from all that
were listed: those not dominated by a column *of the same label*, a label being what the question tells apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.analysis.others.decisions import (
    NONE,
    Decision,
    Held,
    changed_nodes,
    decision_of,
    fewest_changes,
    most_microusd,
    range_of,
    trimmed,
    unlike,
    with_move_cost,
)
from planner.analysis.tighten import solve_within_targets
from planner.candidates.offers import Site
from planner.candidates.program import IntArray, Program
from planner.candidates.prune import prune
from planner.candidates.search import Candidates, select
from planner.candidates.shared_nodes import NODES
from planner.candidates.training import TrainingTable
from planner.carriers import dataclass
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import uninterrupted
from planner.plan.document import build_document
from planner.plan.parts import workload_row
from planner.plan.rows.row_cells import usd

if TYPE_CHECKING:
    from planner.plan.model import others
    from planner.plan.model.others import DecisionPlan, Decisions, DeviceRange, NearOptimal, NodesChanged
    from planner.plan.model.plan import PlanDocument

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Numbers for what columns are, the same whatever columns are left."""

    key: Callable[[Candidates, str, int], Key]  # of a row of a workload's table
    numbers: dict[Key, int] = field(default_factory=dict)
    nodes: bool = False  # whether nodes that fleets share have numbers too

    def of(self, candidates: Candidates) -> IntArray:
        """(columns of `candidates.program`,) the number of each; -1 of what is bought ahead."""
        labels = np.full(candidates.program.column_count, NONE, dtype=np.int64)
        for task in candidates.program.tasks:
            if task.kind != "optional":
                for column in range(task.first, task.stop):
                    key = self.key(candidates, task.name, int(candidates.rows[column]))
                    labels[column] = self.numbers.setdefault(key, len(self.numbers))
            elif task.name == NODES and candidates.shared is not None and self.nodes:
                for column in range(task.first, task.stop):
                    site = candidates.shared.sites[int(candidates.shared.site[column])]
                    labels[column] = self.numbers.setdefault((NODES, site.offer.id), len(self.numbers))
        return labels


def parts_of(candidates: Candidates, workload: str, row: int) -> list[tuple[Site, int]]:
    """Where one unit of a row runs, and on how many nodes there; several places for a mix within a job.

    Parameters
    ----------
    candidates
        Whose tables have the row.
    workload
        Its name.
    row
        Of its table.
    """
    table = candidates.tables[workload]
    mixed = table.mixes.get(row) if isinstance(table, TrainingTable) else None
    if mixed is not None:
        return [(group.site, group.nodes) for group in mixed.groups]
    switch = table.switches.get(row) if isinstance(table, TrainingTable) else None
    if switch is not None:
        assert isinstance(table, TrainingTable)
        return list(switch.rented(table))
    return [(table.sites[row], int(table.nodes[row]))]


def choice_key(candidates: Candidates, workload: str, row: int) -> Key:
    """Device, price model and place; those of every group of a mix.

    Parameters
    ----------
    candidates
        Whose tables have the row.
    workload
        Its name.
    row
        Of its table.
    """
    sites = [site for site, _ in parts_of(candidates, workload, row)]
    places = sorted((site.device.id, site.offer.price_model, site.offer.provider, site.offer.region) for site in sites)
    return tuple(word for place in places for word in place)


def device_key(candidates: Candidates, workload: str, row: int) -> Key:
    """Devices, each with how many there are of it.

    Parameters
    ----------
    candidates
        Whose tables have the row.
    workload
        Its name.
    row
        Of its table.
    """
    counts: dict[str, int] = {}
    for site, nodes in parts_of(candidates, workload, row):
        counts[site.device.id] = counts.get(site.device.id, 0) + nodes * site.shape.devices
    return tuple(f"{count} {device}" for device, count in sorted(counts.items()))


def offer_key(candidates: Candidates, workload: str, row: int) -> Key:
    """Workload and offer; of a mix each of its offers, with its nodes.

    Parameters
    ----------
    candidates
        Whose tables have the row.
    workload
        Its name.
    row
        Of its table.
    """
    parts = parts_of(candidates, workload, row)
    if len(parts) == 1:
        return workload, parts[0][0].offer.id
    return workload, *(f"{nodes} {site.offer.id}" for site, nodes in parts)


def told_apart(candidates: Candidates, labels: Labels, *, nodes: bool) -> Candidates:
    """With the columns that are not dominated by one of the same label.

    Parameters
    ----------
    nodes
        Also tell different numbers of nodes apart, and units of fleets always: for questions that count them.
    """
    whole = select(candidates, np.arange(candidates.whole.column_count))
    within = labels.of(whole)
    if nodes:
        serving = np.zeros(len(within), dtype=np.int64)
        for task in whole.program.tasks:
            if task.kind == "serving":
                serving[task.first : task.stop] = np.arange(1, task.stop - task.first + 1)
        stacked = np.stack([within, whole.program.nodes, serving])
        within = np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return select(candidates, prune(whole.program, within=within))


def decisions_document(
    listed: Candidates, count: int, verified: Callable[[PlanDocument], None], options: Mapping[str, Any]
) -> Decisions:
    """The `count` best different decisions, each with its plan in short; what ended the list when it is shorter.

    Parameters
    ----------
    listed
        Every way that was listed.
    count
        Decisions to look for.
    verified
        Called with each plan as a document; raises where that is wrong.
    options
        Of `optimize`, for each plan.
    """
    labels = Labels(key=choice_key)

    def ready(candidates: Candidates) -> Candidates:
        return told_apart(candidates, labels, nodes=False)

    taken: list[Decision] = []
    rows: list[DecisionPlan] = []
    ended = ""

    def next_best(part: Candidates) -> Solution:
        asked = unlike(part.program, labels.of(part), taken)
        return trimmed(uninterrupted(optimize(asked, **options)), part.program.column_count)

    while len(rows) < count:
        part, solution = solve_within_targets(ready(listed), next_best, prepare=ready)
        if not solution.has_plan:
            ended = str(solution.status)
            break
        document = build_document(part, solution)
        verified(document)
        decision = decision_of(part.program, labels.of(part), solution.units)
        rows.append(_decision_row(document, solution, rows))
        if not decision:
            break
        taken.append(decision)
    return {"asked": count, "ended": ended, "plans": rows}


def _decision_row(document: PlanDocument, solution: Solution, before: Sequence[DecisionPlan]) -> DecisionPlan:
    summary = document["summary"]
    cost = summary["cost_microusd"]
    assert cost is not None  # of a plan
    first = before[0]["cost_microusd"] if before else cost
    return {
        "proven": solution.status == "optimal",
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "dearer_usd": usd(cost - first),
        "dearer": cost / first - 1.0 if first else 0.0,
        "devices": sum(row["devices"] for one in document["workloads"] for row in one["allocations"]),
        "workloads": [workload_row(workload) for workload in document["workloads"]],
    }


def near_optimal_document(listed: Candidates, share: float, options: Mapping[str, Any]) -> NearOptimal | None:
    """For each device the fewest and the most of it in plans of at most (1 + share) times the least cost.

    None where no least cost is proven.

    Parameters
    ----------
    listed
        Every way that was listed.
    share
        Of the least cost, by which a plan may be dearer.
    options
        Of `optimize`, for each question.
    """
    cheapest = _cheapest(listed, options)
    if cheapest is None:
        return None
    tightened, best = cheapest
    part = told_apart(tightened, Labels(key=device_key), nodes=True)
    most, amounts = most_microusd(best.cost_microusd, share), device_amounts(part)
    chosen = {name: int(each @ best.units) for name, each in device_amounts(tightened).items()}
    rows: list[DeviceRange] = []
    for name, each in sorted(amounts.items()):
        found = range_of(part.program, each, most, lambda asked, **given: _asked(asked, options, **given))
        if found.most != 0:
            rows.append({"device": name, "fewest": found.fewest, "most": found.most, "best": chosen.get(name, 0)})
    return {
        "share": share,
        "cost_microusd": best.cost_microusd,
        "most_microusd": most,
        "most_usd": usd(most),
        "devices": rows,
    }


def device_amounts(candidates: Candidates) -> dict[str, IntArray]:
    """(columns of `candidates.program`,) devices of each kind that one unit of each column has."""
    found: dict[str, IntArray] = {}
    shared = candidates.shared
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop) if task.name == NODES or task.kind != "optional" else ():
            if shared is not None and shared.site[column] >= 0:  # nodes count, not what stands on them
                parts = [(shared.sites[int(shared.site[column])], int(candidates.program.nodes[column]))]
            else:
                parts = parts_of(candidates, task.name, int(candidates.rows[column]))
            for site, nodes in parts:
                if site.device.id not in found:
                    found[site.device.id] = np.zeros(candidates.program.column_count, dtype=np.int64)
                found[site.device.id][column] += nodes * site.shape.devices
    return found


def _cheapest(listed: Candidates, options: Mapping[str, Any]) -> tuple[Candidates, Solution] | None:
    """The plan of least cost, and the candidates with the rates that it was planned with; None unless proven."""

    def least(part: Candidates) -> Solution:
        return _asked(replace(part.program, objective=("cost",)), options)

    part, solution = solve_within_targets(listed, least)
    return (part, solution) if solution.status == "optimal" else None


def _asked(program: Program, options: Mapping[str, Any], **given: Any) -> Solution:
    return uninterrupted(optimize(program, **given, **options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """A plan to stay with, and what staying may cost: a share of the least cost, or money for every node changed."""

    document: PlanDocument
    share: float = 0.0
    move_microusd: int | None = None
    file: str = ""  # where it was read; empty: nobody says


@dataclass(slots=True, kw_only=True)
class Staying:
    """A way to solve candidates that stays with a plan where that costs little."""

    previous: Previous
    options: Mapping[str, Any]
    labels: Labels = field(default_factory=lambda: Labels(key=offer_key, nodes=True))
    best: Solution | None = None  # the cheapest plan, once known
    proven: bool = False  # that no plan changes fewer nodes, or costs less with what the changes are charged

    def ready(self, candidates: Candidates) -> Candidates:
        """With the columns that a plan that stays may need."""
        return told_apart(candidates, self.labels, nodes=True)

    def solved(self, candidates: Candidates) -> Solution:
        """The plan that stays, of candidates made `ready`; staying is weighed against `best`."""
        assert self.best is not None
        program = candidates.program
        nodes, known, _ = self._counted(candidates)

        def solve(asked: Program, **given: Any) -> Solution:
            return _asked(asked, self.options, **given)

        move = self.previous.move_microusd
        if move is not None:
            return with_move_cost(replace(program, objective=("cost",)), nodes, known, move, solve).solution
        most = most_microusd(self.best.cost_microusd, self.previous.share)
        return fewest_changes(program, nodes, known, most, solve).solution

    def changes(self, candidates: Candidates, solution: Solution) -> int:
        """Nodes that a plan of the candidates' program changes."""
        nodes, known, lost = self._counted(candidates)
        return changed_nodes(nodes, known, solution.units) + lost

    def rank(self, candidates: Candidates, solution: Solution) -> tuple[int, int]:
        """What a plan is worth beside others: the least is the best."""
        changes, move = self.changes(candidates, solution), self.previous.move_microusd
        return (changes, solution.cost_microusd) if move is None else (solution.cost_microusd + move * changes, changes)

    def _counted(self, candidates: Candidates) -> tuple[IntArray, Held, int]:
        """Nodes of a unit of each column; those held of what is still there, with a unit's; and held of what is not."""
        held = held_nodes(self.previous.document)
        nodes, there = nodes_of_units(candidates, held)
        lost = sum(count for key, count in held.items() if key not in there)
        return nodes, [(held[key], each) for key, each in there.items()], lost


def held_nodes(document: PlanDocument) -> dict[Key, int]:
    """Nodes of each workload and offer in a plan document."""
    held: dict[Key, int] = {}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            key = (str(workload["name"]), str(row["offer"]))
            held[key] = held.get(key, 0) + (0 if "shared" in row else int(row["count"]))
    for node in document.get("shared_nodes", []):
        held[NODES, str(node["offer"])] = int(node["count"])
    return held


def nodes_of_units(candidates: Candidates, held: Iterable[Key]) -> tuple[IntArray, dict[Key, IntArray]]:
    """Nodes that a unit of each column has: at all its offers together, and at each offer that a workload held.

    Parameters
    ----------
    candidates
        The columns are those of its program.
    held
        Keys of `held_nodes`; what no column has is left out of the answer.

    Returns
    -------
    (columns,) nodes, 0 of what is bought ahead; and (columns,) nodes by key.
    """
    program, shared = candidates.program, candidates.shared
    nodes, wanted = np.zeros(program.column_count, dtype=np.int64), set(held)
    there: dict[Key, IntArray] = {}
    for task in program.tasks:
        for column in range(task.first, task.stop) if shared or task.kind != "optional" else ():
            if shared is not None and shared.site[column] >= 0:  # nodes count, not what stands on them
                name = NODES if task.kind == "optional" else task.name
                found = [(name, shared.sites[int(shared.site[column])].offer.id, int(program.nodes[column]))]
            elif task.kind != "optional":
                parts = parts_of(candidates, task.name, int(candidates.rows[column]))
                found = [(task.name, site.offer.id, count) for site, count in parts]
            else:
                found = []
            for name, offer, count in found:
                nodes[column] += count
                if (name, offer) in wanted:
                    there.setdefault((name, offer), np.zeros_like(nodes))[column] += count
    return nodes, there


def previous_document(staying: Staying, document: PlanDocument) -> others.Previous:
    """What a plan changes of the one before, and what staying costs beside the cheapest."""
    before, after = held_nodes(staying.previous.document), held_nodes(document)
    cost, known = document["summary"]["cost_microusd"], staying.best
    best = known.cost_microusd if known is not None and known.status == "optimal" else None
    changes: list[NodesChanged] = [
        {"workload": key[0], "offer": key[1], "before": before.get(key, 0), "after": after.get(key, 0)}
        for key in sorted({*before, *after})
        if before.get(key, 0) != after.get(key, 0)
    ]
    move = staying.previous.move_microusd
    told: others.Previous = {
        "sha256": staying.previous.document.get("sha256", ""),
        "share": staying.previous.share if move is None else None,
        "move_usd": None if move is None else usd(move),
        "changed_nodes": sum(abs(row["before"] - row["after"]) for row in changes),
        "proven": staying.proven,
        "changes": changes,
        "cheapest_microusd": best,
        "cheapest_usd": None if best is None else usd(best),
        "staying_usd": None if best is None or cost is None else usd(cost - best),
    }
    if staying.previous.file:
        told["file"] = staying.previous.file
    return told
