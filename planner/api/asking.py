"""Questions to a solved scenario or its plan: what stands behind it, what margins cost, what limits are worth.

And its launch files, in the words of the programs that run it.

Which prices would change it, why not another, ways out; terms of time and memory, what binds, errors, prices, sources.
Margins are told by solving again without them. Each is a session of one question; who asks several holds a
`planner.session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from planner.answers import Explanation
from planner.api.checking import to_show
from planner.api.sessions import Session
from planner.api.taking import PlanLike, ScenarioLike, document_of, scenario_of
from planner.catalog.model import Catalog
from planner.deadline import Deadline
from planner.errors import InfeasibleError, InputError, StoppedError, UsageError
from planner.plan.parts import currency_of
from planner.plan.plan_files import catalog_of_plan
from planner.scenario.load import with_settings
from planner.spelling import choice_meant
from planner.units import format_money

if TYPE_CHECKING:
    from planner.analysis.why.model import BreakEvenRow, MarginalValue, WhyNot
    from planner.budget.model import MarginsCost
    from planner.export import Export
    from planner.plan.model.others import Infeasible


def explain(plan: PlanLike, workload: str | None = None, *, rejected: bool = False) -> Explanation:
    """What stands behind a plan, term by term, to print or to show in a notebook.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    workload
        Only this one.
    rejected
        Why the other ways were dropped, in place of the terms.

    Raises
    ------
    UsageError
        The plan has no such workload.
    """
    document = to_show(plan)
    names = [entry["name"] for entry in document["workloads"]]
    if workload is not None and workload not in names:
        message = f"the plan has no workload '{workload}'"
        raise UsageError.of("unknown-workload", message, hint=f"it has {', '.join(names)}")
    return Explanation(document=document, workload=workload, rejected=rejected)


def margins(
    scenario: ScenarioLike | Session,
    catalog: Catalog | None = None,
    *,
    plan: PlanLike,
    each: bool = False,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
) -> MarginsCost:
    """What confidence, peak factor, target load and spares cost together, over a plan that takes none of them.

    Parameters
    ----------
    scenario
        The question, with its margins; or a session of it, whose catalog and options are taken.
    plan
        That answers it: a plan, its document or the path of its file.
    each
        Also solve without each margin alone; a calendar, whose solves take long, is solved again for this only.
    solver, gap, time_limit_s, threads, seed, allow_suspect
        As for `solve`; a time limit is that of listing and of each solving.

    Raises
    ------
    InputError, StoppedError
        As `solve`.
    """
    from planner.budget.margins import margins_document, margins_taken, why_not_solved

    session = scenario if isinstance(scenario, Session) else None
    scenario = scenario_of(scenario) if not isinstance(scenario, Session) else scenario.scenario
    taken, why_not = margins_taken(scenario), why_not_solved(scenario, each)
    document = document_of(plan)
    cost = document["summary"]["cost_microusd"]
    if why_not or cost is None or not taken:
        return margins_document(taken, cost, None if taken else cost, None, why_not)
    options: dict[str, Any] = {"solver": solver, "gap": gap, "time_limit_s": time_limit_s}
    options |= {"allow_suspect": allow_suspect, "threads": threads, "seed": seed}
    asked = session or Session(scenario, catalog, **options)

    def least_microusd(settings: Iterable[str]) -> int | None:
        solution = asked.on(with_settings(scenario, list(settings))).answer()[1]
        return solution.cost_microusd if solution.has_plan else None

    together = least_microusd(text for one in taken for text in one.settings)
    alone = {one.name: least_microusd(one.settings) for one in taken} if each else None
    plain = document.get("plain")
    if plain is None or plain["cheapest_microusd"] == cost:
        return margins_document(taken, cost, together, alone)
    found = margins_document(taken, plain["cheapest_microusd"], together, alone)  # the cheapest beside the cheapest
    money = format_money(plain["cheapest_microusd"], currency=currency_of(document))
    return {**found, "notes": [*found["notes"], f"held against the cheapest plan, {money}, not the plainer one"]}


def marginal_values(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> list[MarginalValue]:
    """What one step more of every limit saves, each by solving again.  [micro-USD]"""
    return Session(scenario, catalog, **options).marginal_values()


def break_even(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> list[BreakEvenRow]:
    """What forcing each device that is not chosen costs, and the price at which it would be chosen."""
    return Session(scenario, catalog, **options).break_even()


def why_not(
    scenario: ScenarioLike, device: str, catalog: Catalog | None = None, *, workload: str | None = None, **options: Any
) -> list[WhyNot]:
    """Why a device is not in the plan: dearer by how much, or impossible and what came nearest.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    device
        Id of a device of the catalog, or a name or pattern that means just one.
    catalog
        Default: the scenario's own, else the packaged one.
    workload
        Only this one; None: each.
    **options
        As for `planner.session`.

    Raises
    ------
    InputError
        The catalog has no such device, or several go by that name; the scenario names what is not there.
    """
    return Session(scenario, catalog, **options).why_not(device, workload=workload)


def repairs(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> Infeasible | None:
    """Conflict set and ways out of a scenario that nothing meets; None when there is a plan."""
    return Session(scenario, catalog, **options).repairs()


_STATUS_WITH_PLAN = ("optimal", "feasible")


def export_plan(
    plan: PlanLike,
    form: str,
    catalog: Catalog | None = None,
    *,
    workload: str | None = None,
    command: str = "planner.export_plan",
) -> Export:
    """Files that launch a plan, and what could not be written with the reason.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    form
        A name of `planner.export.FORMATS`, such as torchrun, vllm or kubernetes.
    catalog
        That the plan was made with; default as the plan says.
    workload
        Only this one.
    command
        That makes the files again, for their heads.

    Raises
    ------
    UsageError
        There is no such format or workload.
    InfeasibleError, StoppedError
        There is no plan in it.
    InputError
        It is not a whole plan.
    """
    from planner.export import FORMATS, export, launches_of

    if form not in FORMATS:
        near = choice_meant(str(form), FORMATS)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(FORMATS)}"
        raise UsageError.of("unknown-format", f"no format '{form}'", hint=hint)
    _demand_plan(document_of(plan))
    catalog = catalog or catalog_of_plan(document_of(plan))
    launches = launches_of(to_show(plan, catalog), catalog, command=command)
    chosen = [launch for launch in launches if workload in (None, launch.workload)]
    if not chosen:
        names = ", ".join(dict.fromkeys(launch.workload for launch in launches))
        message = f"the plan runs no workload '{workload}'" if workload else "the plan rents nothing"
        raise UsageError.of("unknown-workload", message, hint=f"it runs {names}" if names else "")
    return export(form, chosen)


def launching_format(plan: PlanLike, catalog: Catalog | None = None) -> str | None:
    """The format of `export_plan` that launches a plan, or most of it; None where none does, or there is no plan.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    catalog
        That the plan was made with; default as the plan says.
    """
    from planner.export import launches_of, suggested

    document = document_of(plan)
    if document["status"] not in _STATUS_WITH_PLAN:
        return None
    try:
        catalog = catalog or catalog_of_plan(document)
        return suggested(launches_of(to_show(plan, catalog), catalog, command=""))
    except InputError:  # which the command itself will say
        return None


def _demand_plan(plan: Mapping[str, Any]) -> None:
    """Without a plan there is nothing to launch."""
    if plan["status"] in _STATUS_WITH_PLAN:
        return
    kind = InfeasibleError if plan["status"] == "infeasible" else StoppedError
    message = f"'{plan['name']}' is {plan['status']}: there is nothing to launch"
    raise kind.of("no-plan", message, hint="plan explain says what is in the way")
