"""`plan frontier`: what a deadline, a budget or a limit on carbon trades for."""

from __future__ import annotations

import re
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.flags import deadline_of, share_of
from planner.cli.frame import Frame, PageForm, command, usage
from planner.cli.interrupts import on_time


class Against(StrEnum):
    """What is made least."""

    cost = "cost"
    time = "time"
    carbon = "carbon"


def frontier(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    over: Annotated[
        str, typer.Option("--over", metavar="LIMIT=LOW..HIGH", help="deadline=7d..60d, budget=$10k..$60k or carbon.")
    ] = "",
    against: Annotated[
        Against | None, typer.Option("--against", help="Made least under the limit; default cost, of a budget time.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="Only this job's deadline; default every job's.",
            autocompletion=complete.workloads,
        ),
    ] = None,
    output: flags.PageOutput = PageForm.table,
    out: flags.OutFile = None,
    most: Annotated[
        int, typer.Option("--most", min=1, max=flags.MOST_COUNT, help="Points to look for in this run.")
    ] = 1000,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=1024, help="Processes of this machine that look for points.")
    ] = 1,
    fresh: Annotated[bool, typer.Option("--no-journal", help="Neither read nor keep points.")] = False,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
    solver: flags.SolverName = flags.Solver.highs,
    gap: flags.Gap = "0",
    time_limit: flags.TimeLimit = None,
    threads: flags.Threads = 1,
    seed: flags.Seed = 0,
) -> None:
    """Find every plan that is best for some deadline, budget or amount of carbon; each is proven."""
    from planner.cli.find import load

    deadline = deadline_of(time_limit)
    limit, low, high = range_of(over)
    threads = flags.within_cores(frame, threads)
    asked: dict[str, Any] = {"solver": solver.value, "gap": share_of(gap), "time_limit_s": deadline}
    with on_time(deadline):
        question, catalog = load(
            scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
        )
        from planner import api
    from planner.analysis.frontier.document import flat_rows
    from planner.report.frontier_view import render_frontier

    journal = None if fresh else journal_of(question.name, question.case)
    asked |= {"threads": threads, "seed": seed, "workload": workload, "most": most, "allow_suspect": allow_suspect}
    asked["workers"] = workers
    started = time.monotonic()
    with on_time(deadline), frame.progress(f"sweeping {question.name}"):
        found = api.frontier(
            question,
            catalog,
            over=limit,
            low=low,
            high=high,
            against=against.value if against else None,
            journal=journal,
            **asked,
        )
    shown: dict[str, Any] = {"elapsed_s": time.monotonic() - started, "journal": journal or "", **frame.view(out)}
    frame.emit(render_frontier(found.document, output.value, flat_rows(found.document), **shown), out)
    raise typer.Exit(found.exit_code)


def range_of(over: str) -> tuple[str, str | None, str | None]:
    """ "deadline=7d..60d" as limit, low and high; an end that is left out is None."""
    if not over:
        raise usage("missing-option", "what is traded?", "--over deadline=7d..60d, --over budget or --over carbon")
    limit, equals, ends = over.partition("=")
    match = re.fullmatch(r"\s*(.*?)\s*\.\.\s*(.*?)\s*", ends)
    if equals and match is None:
        raise usage("missing-range", f"'{ends[:40]}' is no range", f"write --over {limit}=LOW..HIGH")
    low, high = match.groups() if match else ("", "")
    return limit.strip(), low or None, high or None


def journal_of(name: str, case: str | None) -> str:
    """Where the points of a scenario are kept."""
    from planner.report.escape import file_stem

    stem = ".".join(file_stem(part) for part in (name, case) if part)
    return f".plan/{stem}.frontier.jsonl"


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan frontier scenarios/llama.yaml --over deadline=7d..60d",
        "plan frontier scenarios/gpt2-xl.yaml --over budget --workers 2 -o csv",
    )
    command(app, "frontier", examples=examples)(frontier)
