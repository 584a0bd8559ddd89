"""Launch files of a plan, in the words of the programs that run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.api.checking import to_show
from planner.api.taking import PlanLike, document_of
from planner.catalog.model import Catalog
from planner.errors import InfeasibleError, InputError, StoppedError, UsageError
from planner.plan.plan_files import catalog_of_plan
from planner.spelling import choice_meant

if TYPE_CHECKING:
    from planner.export import Export

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
