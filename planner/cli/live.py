"""`plan live`: a page on this machine with knobs, each turn of which is solved again."""

from __future__ import annotations

import gc
import importlib.util
import secrets
import sys
import webbrowser
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import flags
from planner.cli.frame import Frame, command, usage
from planner.cli.interrupts import on_time

if TYPE_CHECKING:
    from planner.api import Session

_NEEDS = "uvicorn"


def live(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Where to listen on 127.0.0.1; left out: 8421, or a free one."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page.")] = False,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
    solver: flags.SolverName = flags.Solver.highs,
    tie_tolerance: flags.TieTolerance = "0.0001%",
    threads: flags.Threads = 1,
    seed: flags.Seed = 0,
) -> None:
    """Turn the knobs of a scenario on a page of this machine: each change is solved again and proven."""
    if importlib.util.find_spec(_NEEDS) is None:
        hint = "pip install 'llm-capacity-planner[live]'"
        raise usage("not-installed", f"plan live needs {_NEEDS}, which is not installed", hint)
    from planner.cli.find import load
    from planner.cli.flags import share_of
    from planner.optimize import early

    threads = flags.within_cores(frame, threads)
    early.start_early(threads)
    asked: dict[str, Any] = {"solver": solver.value, "threads": threads, "seed": seed, "allow_suspect": allow_suspect}
    asked["tie_tolerance"] = share_of(tie_tolerance, "--tie-tolerance")
    question, catalog = load(
        scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
    )
    from planner import api
    from planner.live.answer import Views
    from planner.live.desk import Desk
    from planner.live.knobs import default_name
    from planner.live.server import ADDRESS, App, Guard, bound, listening

    with closing(bound(port)) as place:
        with frame.progress(f"listing the ways of {question.name}"):
            session = api.session(question, catalog, **asked)
        gc.freeze()  # the catalog and the first ways stay: whoever looks for cycles need not look at them
        gc.enable()  # this command lives longer than a second
        desk, token = Desk(session, on_time), secrets.token_urlsafe(24)
        views = Views(question, _devices(session), default_name(question))
        number = place.getsockname()[1]
        address = f"http://{ADDRESS}:{number}/{token}/"
        with listening(App(desk, views, Guard(number, token), _tell_bug), place):
            frame.emit(f"{address}\n")
            frame.say("a page for this machine alone; Ctrl-C ends it")
            if browser:
                webbrowser.open(address)
            desk.run()


def _devices(session: Session) -> list[str]:
    """Devices on which anything could run."""
    return sorted({site.device.id for table in session.candidates.tables.values() for site in table.sites})


def _tell_bug(error: Exception) -> None:
    from planner.cli.bugs import report_bug

    sys.stderr.write(report_bug(error))


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan live llama",
        "plan live scenarios/gpt2-xl.yaml --set training.gpt2-xl.deadline='20 days'",
    )
    command(app, "live", examples=examples)(live)
