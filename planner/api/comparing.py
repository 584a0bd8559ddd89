"""Plans beside each other: what changed in the inputs, in the decision, in the money, and which change did it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from planner.analysis.tighten import solve_within_targets
from planner.answers import Comparison
from planner.api.checking import to_show
from planner.api.listing import enumerate_candidates
from planner.api.sessions import Session
from planner.api.solving import solve
from planner.api.taking import PlanLike, ScenarioLike, catalog_of, document_of, scenario_of
from planner.candidates.patience import endless
from planner.candidates.search import Candidates
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.deadline import Deadline, TimeIsUp, is_up
from planner.errors import PlanError
from planner.optimize.solve import Solution
from planner.plan.plan_files import catalog_of_plan
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.analysis.compare.resolve import Engine, Prepare
    from planner.analysis.compare.side import Side
    from planner.optimize.options import SolverOptions

SOLVING = ("solver", "gap", "time_limit_s", "threads", "seed")
DEFAULTS: dict[str, Any] = {"solver": "highs", "gap": 0.0, "time_limit_s": None, "threads": 1, "seed": 0}


def compare(
    *sides: Side | PlanLike | Scenario,
    catalog: Catalog | None = None,
    cause: bool = True,
    allow_suspect: bool = False,
    **options: Any,
) -> Comparison:
    """Two or more plans, scenarios or catalogs: what changed, what it costs, and which change moved the decision.

    Parameters
    ----------
    sides
        Plans, plan documents, scenarios, paths of either (a plan's ends in .json), names of shipped scenarios, or
        sides made by `side_of` and `side_of_plan`; each is held against the first.
    catalog
        To solve scenarios with, and plans again; default: that of each.
    cause
        Look for the price, fact or scenario key that moved the decision, by solving again.
    options
        Of the solver, as for `solve`.

    Raises
    ------
    ValueError
        Fewer than two sides.
    InputError, StoppedError, PlanError
        As `solve`.
    """
    from planner.analysis.compare.document import compare_sides

    if len(sides) < 2:
        raise ValueError("compare takes two sides or more")
    options["time_limit_s"] = Deadline.of(options.get("time_limit_s"))
    made = [_side(one, number, catalog, allow_suspect, options) for number, one in enumerate(sides, 1)]
    told = {**DEFAULTS, **{key: value for key, value in options.items() if key in SOLVING}}
    asked = cast("SolverOptions", told)
    engine = _engine(allow_suspect, asked)
    document = compare_sides(made, engine, cause=cause, allow_suspect=allow_suspect, options=asked)
    return Comparison(document=document)


def side_of(
    name: str,
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    kind: Literal["scenario", "catalog"] = "scenario",
    **options: Any,
) -> Side:
    """A scenario, solved on a catalog, as a side of a comparison.

    Parameters
    ----------
    name
        Of the side, in what is told of the comparison.
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    kind
        What the name is of.
    **options
        As for `solve`.

    Raises
    ------
    InputError, StoppedError, PlanError
        As `solve`.
    """
    from planner.analysis.compare.side import Side

    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    plan = solve(scenario, catalog, **options)
    return Side(name=name, kind=kind, document=plan.document, scenario=scenario, catalog=catalog)


def side_of_plan(name: str, plan: PlanLike, catalog: Catalog | None = None) -> Side:
    """A plan as a side, as far as it is proven; with its scenario and its catalog where these are still at hand.

    Parameters
    ----------
    catalog
        Where to look first; the plan's own is known by its digest.
    """
    from planner.analysis.compare.side import Side

    document = document_of(plan)
    found = _catalog_by_digest(document, catalog)
    document = to_show(plan, found)
    try:
        scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"] or name)
    except PlanError as error:
        missing = f"the scenario of {name} cannot be read again: {error.problems[0].message}"
        return Side(name=name, kind="plan", document=document, missing=missing)
    digest = document["provenance"]["catalog"]["sha256"]
    missing = (
        "" if found else f"the catalog that {name} was made with (sha256 {digest[:8]}…) is not at hand (--hardware DIR)"
    )
    return Side(
        name=name,
        kind="plan",
        document=document,
        scenario=scenario,
        catalog=found,
        missing=missing,
    )


def _catalog_by_digest(document: Mapping[str, Any], given: Catalog | None) -> Catalog | None:
    """The catalog that a plan was made with: the one given, its own at the prices it records, or the packaged one."""
    digest = document["provenance"]["catalog"]["sha256"]
    if given is not None and given.digest == digest:
        return given
    loaders: tuple[Callable[[], Catalog], ...] = (lambda: catalog_of_plan(document), load_catalog)
    for load in loaders:
        try:
            found = load()
        except PlanError:
            continue
        if found.digest == digest:
            return found
    return None


def _side(one: Any, number: int, catalog: Catalog | None, allow_suspect: bool, options: Mapping[str, Any]) -> Side:
    from planner.analysis.compare.side import Side

    name = chr(64 + number) if number <= 26 else str(number)
    if isinstance(one, Side):
        return one
    if isinstance(one, Scenario) or (isinstance(one, str | os.PathLike) and Path(one).suffix != ".json"):
        return side_of(name, one, catalog, allow_suspect=allow_suspect, **options)
    return side_of_plan(name, one, catalog)


def _engine(allow_suspect: bool, options: Mapping[str, Any]) -> Engine:
    """How `solve` lists and solves, for the questions between two sides."""
    from planner.analysis.compare.resolve import Engine

    limit = options["time_limit_s"]

    def listed(scenario: Scenario, catalog: Catalog) -> Candidates:
        spent = endless if limit is None else lambda: float(limit.passed())
        found = enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect, spent=spent)
        if found.cut:
            raise TimeIsUp
        return found

    def solved(candidates: Candidates, prepare: Prepare) -> tuple[Candidates, Solution]:
        if is_up(limit):
            raise TimeIsUp
        way = Session(
            candidates.scenario,
            candidates.catalog,
            allow_suspect=allow_suspect,
            candidates=candidates,
            **{key: options[key] for key in SOLVING},
        )
        return solve_within_targets(way.ways, way.solved, prepare=lambda again: prepare(way.mixed(again)))

    return Engine(enumerate=listed, solve=solved)
