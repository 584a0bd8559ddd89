"""`plan solve`: the cheapest plan, proven."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from planner.cli import flags
from planner.cli.flags import deadline_of, money_of, share_of
from planner.cli.frame import Form, Frame, command, usage
from planner.cli.interrupts import answered, on_time
from planner.errors import OutputError


def solve(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    output: flags.Output = Form.table,
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="SECTIONS",
            help="Only these: memory,prices,assumed,rejected ...; another name lists all. -v shows all.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Plan file, in place of .plan/NAME.plan.json; for -o csv and md: the view. - is stdout only.",
        ),
    ] = None,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
    solver: flags.SolverName = flags.Solver.highs,
    gap: flags.Gap = "0",
    tie_tolerance: flags.TieTolerance = "0.0001%",
    time_limit: flags.TimeLimit = None,
    threads: flags.Threads = 1,
    seed: flags.Seed = 0,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=1024, help="Processes of this machine that list workloads.")
    ] = 1,
    simulate: Annotated[bool, typer.Option("--simulate", help="Check the replicas of fleets in a simulation.")] = False,
    accept_incumbent: Annotated[
        bool, typer.Option("--accept-incumbent", help="Exit 0 for a plan that is not proven.")
    ] = False,
    best: Annotated[
        int, typer.Option("--best", min=0, max=1000, help="List that many of the best different decisions.")
    ] = 0,
    within: Annotated[
        str | None, typer.Option("--within", metavar="SHARE", help="Fewest and most of each device that close.")
    ] = None,
    previous: Annotated[
        str | None, typer.Option("--previous", metavar="PLAN", help="Stay with this plan where --within allows it.")
    ] = None,
    move_cost: Annotated[
        str | None, typer.Option("--move-cost", metavar="MONEY", help="Of each node changed since --previous.")
    ] = None,
) -> None:
    """Find the cheapest way to run a scenario, and prove it."""
    from planner.cli.find import load
    from planner.optimize import early

    sections = _sections(show, output)
    deadline = deadline_of(time_limit)
    asked: dict[str, Any] = {"solver": solver.value, "gap": share_of(gap), "time_limit_s": deadline}
    asked |= {"tie_tolerance": share_of(tie_tolerance, "--tie-tolerance"), "workers": workers}
    asked |= _others(best, within, previous, move_cost)
    threads = flags.within_cores(frame, threads)
    early.start_early(threads)  # it imports the solvers while the scenario is read
    with on_time(deadline):
        question, catalog = load(
            scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
        )
        from planner import api

        started = time.monotonic()
        with answered(quiet=frame.quiet), frame.progress(f"solving {question.name}"):
            asked |= {"threads": threads, "seed": seed, "simulate": simulate}
            told = {name: asked.pop(name) for name in ("simulate", "best", "within", "previous") if name in asked}
            session = api.session(question, catalog, **asked, allow_suspect=allow_suspect)
            plan = session.solve(**told)
    elapsed_s = time.monotonic() - started
    alone = not (told["simulate"] or len(told) > 1 or deadline or sections or frame.quiet)
    advised = _advice(frame, session, plan) if alone and output in (Form.table, Form.md) else ()
    _show(frame, plan, catalog, output, out, sections, {"elapsed_s": elapsed_s, "advice": advised})
    raise typer.Exit(_exit_code(plan, accept_incumbent))


def _others(best: int, within: str | None, previous: str | None, move_cost: str | None) -> dict[str, Any]:
    """What else is asked for, as `api.solve` takes it."""
    share = None if within is None else share_of(within, "--within")
    asked: dict[str, Any] = {"best": best, "within": share}
    if previous is None:
        if move_cost is not None:
            raise usage(
                "missing-option", "--move-cost is of nodes that change, since which plan?", "add --previous PLAN"
            )
        return {name: value for name, value in asked.items() if value}
    from planner.analysis.others.other_plans import Previous
    from planner.plan.plan_files import read_plan

    money = None if move_cost is None else money_of(move_cost, "--move-cost")
    asked["previous"] = Previous(document=read_plan(previous), share=share or 0.0, move_microusd=money, file=previous)
    return asked


def _advice(frame: Frame, session: Any, plan: Any) -> list[tuple[str, ...]]:
    """What would save money, with the command, and that more was left untried; Ctrl-C leaves it out."""
    from planner.api.advising import advice, command
    from planner.report.blocks import MORE_ADVICE
    from planner.report.next_words import asking

    try:
        with frame.progress("looking for savings"):
            found, untried = advice(session, plan.document, more=frame.verbose > 0)
    except KeyboardInterrupt:
        frame.say("stopped looking for savings")
        return []
    told: list[tuple[str, ...]] = [(sentence, command(asking(plan.document), setting)) for sentence, setting in found]
    return [*told, MORE_ADVICE] if untried and not frame.verbose else told


def _sections(show: str | None, output: Form) -> tuple[str, ...]:
    """The sections that --show names; checked before anything is solved."""
    if show is None:
        return ()
    from planner.report.plan_view import SECTIONS

    if output in (Form.json, Form.csv):
        message = f"--show chooses what table and md show; -o {output.value} has everything"
        raise usage("not-together", message, "leave --show out, or say -o md")
    names = tuple(dict.fromkeys(name.strip() for name in show.split(",") if name.strip()))
    unknown = [name for name in names if name not in SECTIONS]
    if unknown or not names:
        message = f"a plan has no section '{unknown[0]}'" if unknown else "--show names no section"
        raise usage("unknown-section", message, f"sections: {', '.join(SECTIONS)}")
    return names


def _show(
    frame: Frame,
    plan: Any,
    catalog: Any,
    output: Form,
    out: str | None,
    sections: tuple[str, ...],
    beside: dict[str, Any],
) -> None:
    from planner.report.plan_formats import quiet, render_first, render_plan, render_sections

    view_file = out if output in (Form.csv, Form.md) and out not in (None, "-") else None
    lost = None
    try:
        saved = _save(plan, None if view_file else out)
    except OutputError as error:  # of an answer that took minutes its file is the lesser part
        saved, lost = "", error
    document, whole = plan.document, frame.verbose > 0
    view = frame.view(view_file)
    if output is Form.json:
        from planner.report.json import quoted

        text = quoted(plan.to_json()).rstrip("\n") + "\n"
    elif output is Form.csv:
        text = render_plan(document, output.value)
    elif sections:
        text = render_sections(document, sections, output.value, **view, full=whole)
    elif frame.quiet and not whole:
        text = quiet(document)
    else:
        view |= {"saved": saved, **beside}
        if saved and output is Form.table:
            from planner.api.asking import launching_format

            view["launch"] = launching_format(plan, catalog) or ""
        if whole:
            text = render_plan(document, output.value, **view, full=frame.verbose > 1)
        else:
            text = render_first(document, output.value, **view)
    frame.emit(text, view_file)
    if lost is not None:
        raise lost


def _save(plan: Any, out: str | None) -> str:
    """Write the plan file; returns its path, or nothing for `--out -`."""
    if out == "-":
        return ""
    from planner import files
    from planner.report.escape import file_stem

    document = plan.document
    stem = ".".join(file_stem(part) for part in (document["name"], document["case"]) if part)
    path = out or f".plan/{stem}.plan.json"
    files.write_text(path, plan.to_json())
    return path


def _exit_code(plan: Any, accept_incumbent: bool) -> int:
    return 0 if plan.exit_code == 5 and accept_incumbent else int(plan.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan solve scenarios/llama.yaml",
        "plan solve scenarios/llama.yaml -o json --set training.pretrain-8b.deadline='20 days'",
    )
    command(app, "solve", examples=examples)(solve)
