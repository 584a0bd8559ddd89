"""`plan explain`: the evaluated terms behind the chosen rows of a plan, as they were computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.flags import deadline_of
from planner.cli.frame import Form, Frame, command, usage
from planner.cli.interrupts import on_time
from planner.deadline import Deadline, TimeIsUp, is_up

if TYPE_CHECKING:
    from planner.api import Session
    from planner.plan.model.plan import PlanDocument


def explain(
    frame: Frame,
    plan: flags.PlanOrScenario = None,
    workload: flags.Workload = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Why the other ways were dropped.")] = False,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="What one step more of each limit saves; each is solved again.")
    ] = False,
    break_even: Annotated[
        bool, typer.Option("--break-even", help="The price at which each other device would be chosen.")
    ] = False,
    why_not: Annotated[
        list[str] | None,
        typer.Option(
            "--why-not",
            metavar="DEVICE",
            help="Why not this device, or machines that are owned, by shape or place: hardware.owned[0]; repeatable.",
            autocompletion=complete.devices,
        ),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option("--layout", metavar="LAYOUT", help='What this layout would cost, "tp2 pp1"; repeatable.'),
    ] = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
    time_limit: flags.TimeLimit = None,
) -> None:
    """Show what stands behind a plan: terms of time and memory, what binds, errors, prices, sources, equations."""
    from planner.cli.find import is_scenario, plan_or_scenario
    from planner.report.explanation_view import render_explanation

    deadline = deadline_of(time_limit)
    own_prices: dict[str, Any] = {"prices": prices, "price": price}
    asked: dict[str, Any] = {"settings": settings, "case": case, "hardware": hardware, **own_prices}
    further = {"marginals": marginals, "break_even": break_even, "why_not": tuple(why_not or ())}
    further["layouts"] = tuple(layout or ())
    answers: dict[str, Any] = {}
    anew = any((*asked.values(), allow_suspect))
    anew = anew or (plan is None and any(further.values()))
    plan = plan_or_scenario(plan, anew=anew)
    with on_time(deadline):
        if not is_scenario(plan) and any(further.values()) and not any((settings, case, allow_suspect)):
            given = {"hardware": hardware, **own_prices}
            document, code, answers = _asked_again(frame, plan, given, further, workload, deadline)
        elif is_scenario(plan):
            asked |= {"allow_suspect": allow_suspect, "deadline": deadline}
            document, code, answers = _solved(frame, plan, further, workload, **asked)
        else:
            document, code = _read(frame, plan, hardware, own_prices, settings, case, allow_suspect, **further), 0
    names = [entry["name"] for entry in document["workloads"]]
    if workload is not None and workload not in names:
        raise usage("unknown-workload", f"the plan has no workload '{workload}'", f"it has {', '.join(names)}")
    view = frame.view(out)
    shown: dict[str, Any] = {"workload": workload, "rejected": rejected, "answers": answers}
    frame.emit(render_explanation(document, output.value, **shown, **view), out)
    raise typer.Exit(code)


def _read(
    frame: Frame, plan: str, hardware: str | None, own_prices: dict[str, Any], *anew: Any, **further: Any
) -> PlanDocument:
    """A plan file and the catalog it was made with; what changes the question makes no sense for an answer."""
    from planner.cli.stale import as_proven
    from planner.plan.plan_files import catalog_of_plan, read_plan

    if any((*anew, *further.values())):
        hint = "plan explain SCENARIO.yaml --set ..."
        message = "--set, --case and --allow-suspect ask another question: they want a scenario file"
        raise usage("not-a-scenario", message, hint)
    document = read_plan(plan)
    given = hardware is not None or any(own_prices.values())
    return as_proven(frame, document, catalog_of_plan(document, hardware, **own_prices) if given else None)


def _solved(
    frame: Frame,
    scenario: str,
    further: dict[str, Any],
    workload: str | None,
    *,
    allow_suspect: bool,
    deadline: Deadline | None,
    **asked: Any,
) -> tuple[PlanDocument, int, dict[str, Any]]:
    """The plan of a scenario, the exit code of its status, and the answers to what else is asked."""
    from planner.cli.find import load

    question, catalog = load(scenario, frame=frame, **asked)
    from planner import api

    with frame.progress(f"solving {question.name}"):
        session = api.session(question, catalog, allow_suspect=allow_suspect, time_limit_s=deadline)
        plan = session.solve()
    return plan.document, plan.exit_code, _answered(frame, session, workload, further, deadline)


def _asked_again(
    frame: Frame,
    plan: str,
    given: dict[str, Any],
    further: dict[str, Any],
    workload: str | None,
    deadline: Deadline | None,
) -> tuple[PlanDocument, int, dict[str, Any]]:
    """A plan file, whose question is listed again but not solved again, and the answers to what else is asked."""
    from planner.api.checking import allows_suspect, looked_at, scenario_in
    from planner.api.sessions import Session
    from planner.cli.stale import fresh, told
    from planner.plan.plan_files import read_plan

    document = read_plan(plan)
    _, catalog = fresh(frame, document, **given, allow_stale=False)
    with frame.progress(f"listing the ways of {document['name']}"):
        checked = looked_at(document, catalog)
        document = told(frame, checked)
        asked: dict[str, Any] = {"allow_suspect": allows_suspect(document), "known": checked.listed}
        session = Session(scenario_in(document), catalog, time_limit_s=deadline, **asked)
    return document, 0, _answered(frame, session, workload, further, deadline)


def _answered(
    frame: Frame, session: Session, workload: str | None, further: dict[str, Any], deadline: Deadline | None
) -> dict[str, Any]:
    """The answers to what else is asked, each a stage of its own; those for which time runs out are named."""
    answers: dict[str, Any] = {}
    stages = list(_answers(session, workload, **further))
    try:
        for number, (name, answer) in enumerate(stages, 1):
            with frame.progress(f"{name.replace('_', ' ')}, {number} of {len(stages)}"):
                if is_up(deadline):
                    raise TimeIsUp
                answers[name] = answer()
    except TimeIsUp:
        frame.say("left out for lack of time: answers that want further plans to be solved")
    return answers


def _answers(
    asked: Session,
    workload: str | None,
    *,
    marginals: bool,
    break_even: bool,
    why_not: tuple[str, ...],
    layouts: tuple[str, ...],
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What else is asked, by name, and what answers it."""
    if marginals:
        yield "marginal_values", asked.marginal_values
    if break_even:
        yield "break_even", asked.break_even
    if why_not:
        yield "why_not", lambda: [row for device in why_not for row in asked.why_not(device, workload=workload)]
    if layouts:
        yield "layouts", lambda: [row for one in layouts for row in asked.layout_price(one, workload=workload)]


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan explain .plan/llama.plan.json",
        "plan explain scenarios/llama.yaml --workload pretrain-8b",
    )
    command(app, "explain", examples=examples)(explain)
