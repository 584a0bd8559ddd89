"""`plan sweep`: one scenario asked many things."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.flags import deadline_of, share_of
from planner.cli.frame import Frame, command, usage

if TYPE_CHECKING:
    from planner.sweeps.answering import Progress

TOLD_EVERY_S = 0.5


class SweepForm(StrEnum):
    """Output formats of a sweep."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"
    parquet = "parquet"


def sweep(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="KEY=a,b,c, KEY=low..high/N, price:h100-*=-30%..+30%, case, catalog, prices, seed, scenario.",
            autocompletion=complete.settings,
        ),
    ] = None,
    borders: Annotated[
        int, typer.Option("--borders", min=0, max=20, help="Halve intervals where the decision turns so many times.")
    ] = 0,
    workers: flags.Workers = 1,
    scheduler: flags.Scheduler = None,
    tls: flags.Tls = None,
    plans: Annotated[
        str | None, typer.Option("--plans", metavar="DIR", help="Keep each plan there, named by its hash.")
    ] = None,
    output: Annotated[SweepForm, typer.Option("--output", "-o", help="Output format.")] = SweepForm.table,
    out: flags.OutFile = None,
    journal: Annotated[
        str | None, typer.Option("--journal", metavar="FILE", help="Default: .plan/NAME.sweep.jsonl.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--no-journal", help="Neither read nor keep answers.")] = False,
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
) -> None:
    """Solve a scenario at many values of anything: prices, demands, deadlines, cases, catalogs; each is proven."""
    from planner.cli.find import load

    if output is SweepForm.parquet and out in (None, "-"):
        raise usage("missing-option", "a parquet file is no text", "add --out FILE")
    if journal is not None and fresh:
        raise usage("not-together", "--journal and --no-journal", "leave one out")
    deadline = deadline_of(time_limit)
    question, catalog = load(
        scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
    )
    from planner import api

    grid = api.grid(*(over or ()))
    asked: dict[str, Any] = {
        "solver": solver.value,
        "gap": share_of(gap),
        "threads": flags.within_cores(frame, threads),
    }
    asked["tie_tolerance"] = share_of(tie_tolerance, "--tie-tolerance")
    held = api.session(question, catalog, allow_suspect=allow_suspect, seed=seed, **asked)
    kept = None if fresh else journal or journal_of(question.name, question.case)
    started = time.monotonic()
    with telling(frame) as tell:
        found = api.sweep(
            held,
            grid,
            scheduler,
            workers=workers,
            journal=kept,
            plans=plans,
            borders=borders,
            security=security_of_files(tls),
            tell=tell,
            hear=lambda link: frame.say(f"dashboard of the scheduler: {link}"),
            over=None if deadline is None else deadline.passed,
        )
    if found.broken:
        frame.say(f"{found.broken:,} lines of {kept} did not hold and were not used: what they held was answered again")
    _show(frame, found, output, out, elapsed_s=time.monotonic() - started, journal=kept or "")
    raise typer.Exit(found.exit_code)


def _show(frame: Frame, found: Any, output: SweepForm, out: str | None, **shown: Any) -> None:
    if output is SweepForm.parquet:
        from planner import files
        from planner.report.sweep_view import parquet_bytes

        assert out is not None
        try:
            data = parquet_bytes(found.document)
        except ImportError:
            hint = "pip install pyarrow; or take -o csv. The answers are in the journal"
            raise usage("missing-library", "no library here writes parquet files", hint) from None
        files.write_bytes(out, data)
        frame.say(f"wrote {out}")
        return
    from planner.report.sweep_view import render_sweep

    full = frame.verbose > 0
    frame.emit(render_sweep(found.document, output.value, full=full, **shown, **frame.view(out)), out)


@contextmanager
def telling(frame: Frame) -> Iterator[Callable[[Progress], None] | None]:
    """How far a sweep is, on one line of stderr: on a terminal only."""
    if frame.quiet or frame.no_progress or not sys.stderr.isatty():
        yield None
        return
    told, width = [0.0], [0]

    def tell(progress: Progress) -> None:
        now = time.monotonic()
        if now - told[0] < TOLD_EVERY_S:
            return
        told[0], text = now, str(progress)
        width[0] = max(width[0], len(text))
        sys.stderr.write("\r" + text.ljust(width[0]))
        sys.stderr.flush()

    try:
        yield tell
    finally:
        if width[0]:
            sys.stderr.write("\r" + " " * width[0] + "\r")
            sys.stderr.flush()


def security_of_files(tls: str | None) -> Any:
    """What Dask wants for an encrypted connection, from the names of three files."""
    if tls is None:
        return None
    parts = [part.strip() for part in tls.split(",")]
    if len(parts) != 3 or not all(parts):
        raise usage("bad-value", f"--tls {tls[:80]}", "write three files: ca.pem,cert.pem,key.pem")
    from planner.sweeps.cluster import security_of

    return security_of(*parts)


def journal_of(name: str, case: str | None) -> str:
    """Where the answers of a scenario are kept."""
    from planner.report.escape import file_stem

    stem = ".".join(file_stem(part) for part in (name, case) if part)
    return f".plan/{stem}.sweep.jsonl"


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan sweep scenarios/gpt2-xl.yaml --over training.gpt2-xl.deadline=20d..80d/4",
        "plan sweep scenarios/llama.yaml --over serving.assistant.qpm=300,600 --over price:h100-*=-10%,+10% -o csv",
    )
    command(app, "sweep", examples=examples)(sweep)
