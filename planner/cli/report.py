"""`plan report`: a plan as a page, a workbook, a comment or data, with its budget and its sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import flags
from planner.cli.flags import deadline_of, share_of
from planner.cli.frame import Frame, command, usage
from planner.cli.interrupts import answered, on_time
from planner.cli.stale import AllowStale, fresh, told
from planner.deadline import Deadline, is_up
from planner.errors import StoppedError

if TYPE_CHECKING:
    from planner.candidates.search import Candidates
    from planner.catalog.model import Catalog
    from planner.plan.model.frontier_document import FrontierDocument
    from planner.plan.model.plan import PlanDocument
    from planner.report.model import ReportDocument
    from planner.scenario.schema import Scenario


class ReportForm(StrEnum):
    """Output formats of a report."""

    table = "table"
    html = "html"
    xlsx = "xlsx"
    md = "md"
    csv = "csv"
    json = "json"


def report(
    frame: Frame,
    plan: flags.PlanOrScenario = None,
    output: Annotated[ReportForm, typer.Option("--output", "-o", help="Output format.")] = ReportForm.table,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="Write there; html and xlsx: .plan/NAME.report.html or .xlsx; - is stdout."
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option("--over", metavar="LIMIT=LOW..HIGH", help="Also sweep a frontier, as deadline=7d..60d."),
    ] = None,
    frontier: Annotated[
        str | None, typer.Option("--frontier", metavar="FILE", help="Show the frontier that plan frontier wrote.")
    ] = None,
    margins: Annotated[
        bool, typer.Option("--margins", help="Also solve without each margin, of calendars too: what each alone costs.")
    ] = False,
    contingency: Annotated[
        str | None, typer.Option("--contingency", metavar="SHARE", help="Of the budget, told beside it, as 10%.")
    ] = None,
    fiscal_year_start: Annotated[
        str | None, typer.Option("--fiscal-year-start", metavar="MONTH", help="First month of a fiscal year, as april.")
    ] = None,
    allow_stale: AllowStale = False,
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
    """Show a plan with its budget and sources: a page for people, a workbook for finance, a comment for a change."""
    from planner.cli.find import is_scenario, plan_or_scenario

    if over and frontier:
        raise usage("not-together", "--over sweeps a frontier and --frontier reads one", "give one of them")
    threads = flags.within_cores(frame, threads)
    deadline = deadline_of(time_limit)
    asked: dict[str, Any] = {"solver": solver.value, "gap": share_of(gap), "time_limit_s": deadline}
    asked |= {"threads": threads, "seed": seed, "allow_suspect": allow_suspect}
    given: dict[str, Any] = {"hardware": hardware, "prices": prices, "price": price}
    path = plan_or_scenario(plan, anew=bool(settings or case))
    solved = is_scenario(path)
    code = 0
    scenario: Scenario | None
    known: Candidates | None
    with on_time(deadline):
        if solved:
            document, scenario, catalog, known, code = _solved(frame, path, settings, case, given, asked)
        else:
            _demand_scenario(settings, case)
            document, scenario, catalog, known = _read(frame, path, given, allow_stale)
        swept = _frontier(frame, over, frontier, document, scenario, catalog, asked, allow_stale)
    from planner import api

    def report_of(weighed: bool) -> ReportDocument:
        return api.report(
            api.Plan(document=document),
            catalog,
            scenario=scenario,
            frontier=swept,
            margins=weighed,
            each=margins and weighed,
            savings=True,
            contingency=None if contingency is None else share_of(contingency, "--contingency", "10%"),
            fiscal_year_start=fiscal_year_start,
            known=known,
            **asked,
        )

    with frame.progress(f"reporting {document['name']}"):
        made = _in_time(frame, deadline, report_of, margins or solved)
        _write(frame, made, output, out)
    raise typer.Exit(code)


def _in_time(
    frame: Frame, deadline: Deadline | None, report_of: Callable[[bool], ReportDocument], weighed: bool
) -> ReportDocument:
    """The report with what the margins cost and each job alone, or without where there is no time for that."""
    try:
        if not is_up(deadline):
            with on_time(deadline):
                return report_of(weighed)
    except StoppedError:
        if not is_up(deadline):
            raise
    frame.say("left out for lack of time: what each job alone could do" + ", what the margins cost" * weighed)
    return report_of(False)


def _solved(
    frame: Frame,
    path: str,
    settings: Sequence[str] | None,
    case: str | None,
    given: dict[str, Any],
    asked: dict[str, Any],
) -> tuple[PlanDocument, Scenario, Catalog, Candidates, int]:
    """The plan of a scenario that is solved first, the ways that were listed for it, and the code of its status."""
    from planner.cli.find import load

    question, catalog = load(path, settings=settings, case=case, **given, frame=frame)
    from planner import api

    with answered(quiet=frame.quiet), frame.progress(f"solving {question.name}"):
        session = api.session(question, catalog, **asked)
        plan = session.solve()
    return plan.document, question, catalog, session.candidates, plan.exit_code


def _demand_scenario(settings: Sequence[str] | None, case: str | None) -> None:
    """What changes the question makes no sense for an answer."""
    if settings or case:
        raise usage("not-a-scenario", "--set and --case want a scenario file", "plan report SCENARIO.yaml --set ...")


def _read(
    frame: Frame, path: str, given: dict[str, Any], allow_stale: bool
) -> tuple[PlanDocument, Scenario | None, Catalog, Candidates | None]:
    """A plan file that still answers its scenario and its catalog, and the ways that its check listed."""
    from planner.api.checking import looked_at
    from planner.plan.plan_files import read_plan

    document = read_plan(path)
    scenario, catalog = fresh(frame, document, allow_stale=allow_stale, **given)
    checked = looked_at(document, catalog)
    return told(frame, checked), scenario, catalog, checked.listed


def _frontier(
    frame: Frame,
    over: str | None,
    path: str | None,
    document: PlanDocument,
    scenario: Scenario | None,
    catalog: Catalog,
    asked: dict[str, Any],
    allow_stale: bool,
) -> FrontierDocument | None:
    """The frontier that is asked for: swept, with the journal of `plan frontier`, or read."""
    if path:
        return _read_frontier(frame, path, document, allow_stale)
    if not over:
        return None
    from planner import api
    from planner.cli.frontier import journal_of, range_of
    from planner.plan.plan_files import question_of

    question = question_of(document, scenario)
    if question is None:
        raise usage(
            "no-scenario", f"{document['scenario_file']} is not here, so nothing can be swept", "leave --over out"
        )
    limit, low, high = range_of(over)
    journal = journal_of(question.name, question.case)
    with frame.progress(f"sweeping {question.name}"):
        return api.frontier(question, catalog, over=limit, low=low, high=high, journal=journal, **asked).document


def _read_frontier(frame: Frame, path: str, document: PlanDocument, allow_stale: bool) -> FrontierDocument:
    from planner.errors import InputError, Place, Problem
    from planner.plan.plan_files import changed_keys, read_frontier

    found = read_frontier(path)
    if others := [key for key in changed_keys(found["scenario"], document["scenario"]) if not _is_swept(key)]:
        message = f"the frontier is of another scenario than the plan: {', '.join(others)}"
        hint = "plan frontier again, or go on with it as it is: --allow-stale"
        problem = Problem(reference="stale-frontier", message=message, places=(Place(file=path),), hint=hint)
        if not allow_stale:
            raise InputError(problem)
        frame.warn(Problem(reference="stale-frontier", message=message, places=(Place(file=path),), severity="warning"))
    return found


def _is_swept(key: str) -> bool:
    """Whether a sweep sets this key itself: the limit that it moves, and what it makes least under it."""
    return key == "objective" or key.endswith(".deadline") or key.startswith("limits")


def _write(frame: Frame, report: ReportDocument, form: ReportForm, out: str | None) -> None:
    """The report in its form: files for pages and workbooks, else the terminal."""
    if form is ReportForm.html:
        _write_page(frame, report, out or _path_of(report, "html"))
    elif form is ReportForm.xlsx:
        _write_workbook(frame, report, out or _path_of(report, "xlsx"))
    else:
        from planner.report.report_view import render_report

        frame.emit(render_report(report, form.value, **frame.view(out)), out)


def _path_of(report: ReportDocument, suffix: str) -> str:
    from planner.report.escape import file_stem

    plan = report["plan"]
    stem = ".".join(file_stem(part) for part in (plan["name"], plan["case"]) if part)
    return f".plan/{stem}.report.{suffix}"


def _write_page(frame: Frame, report: ReportDocument, path: str) -> None:
    from planner import files
    from planner.report.html.pages import render_page

    page = render_page(report)
    if path == "-":
        frame.emit(page.text)
        return
    files.write_text(path, page.text)
    size = len(page.text.encode()) / 1e3
    frame.emit(
        f"wrote {path} ({size:.0f} kB, self-contained, works offline)   "
        f"sections: {page.sections}   warnings: {page.warnings}\n"
    )


def _write_workbook(frame: Frame, report: ReportDocument, path: str) -> None:
    from planner import files
    from planner.report.workbook import workbook

    if path == "-":
        raise usage("binary-output", "a workbook is no text", "--out FILE.xlsx")
    data = workbook(report)
    files.write_bytes(path, data)
    frame.emit(f"wrote {path} ({len(data) / 1e3:.0f} kB, change a price and all totals follow)\n")


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan report scenarios/llama.yaml -o html",
        "plan report .plan/llama.plan.json -o md",
    )
    command(app, "report", examples=examples)(report)
