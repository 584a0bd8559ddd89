"""Flags that several commands share, written once, and quantities of the command line.

Those are read as in scenarios, and refused in the name of their flag.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import clock, complete
from planner.cli.frame import Form, Frame, PageForm, usage

if TYPE_CHECKING:
    from planner.deadline import Deadline

MOST_COUNT = 1_000_000  # of anything that is counted, and of tokens in a row, as in scenarios
MOST_LENGTH = 1_000_000_000


class Solver(StrEnum):
    """Solvers of the integer program."""

    highs = "highs"
    cbc = "cbc"


ScenarioFile = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO",
        help="Scenario file, or name (plan scenarios); default: scenario.yaml here, or the only one in scenarios/.",
        autocompletion=complete.scenarios,
    ),
]
PlanFile = Annotated[
    str | None,
    typer.Argument(metavar="PLAN", help="Plan file; default: the only one in .plan/.", autocompletion=complete.plans),
]
PlanOrScenario = Annotated[
    str | None,
    typer.Argument(
        metavar="PLAN|SCENARIO",
        help="Plan file, or a scenario by file or name, which is solved first; default: the only one here.",
        autocompletion=complete.plans_and_scenarios,
    ),
]
Workload = Annotated[
    str | None, typer.Option("--workload", metavar="NAME", help="Only this one.", autocompletion=complete.workloads)
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Preset name, or a config.json or its folder.", autocompletion=complete.models
    ),
]
Output = Annotated[Form, typer.Option("--output", "-o", help="Output format.")]
PageOutput = Annotated[PageForm, typer.Option("--output", "-o", help="Output format.")]
OutFile = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write there; - is stdout.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a scenario key; repeatable.", autocompletion=complete.settings
    ),
]
Case = Annotated[
    str | None,
    typer.Option("--case", metavar="NAME", help="A named case of the scenario file.", autocompletion=complete.cases),
]
HardwareFolder = Annotated[
    str | None,
    typer.Option("--hardware", metavar="DIR", help="A catalog folder or frozen file in place of the packaged one."),
]  # fmt: skip
Prices = Annotated[
    list[str] | None,
    typer.Option("--prices", metavar="FILE|DATE", help="A file of your own prices, or prices of that day; repeatable."),
]
Price = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="NAME=PRICE",
        help="Of a device-hour, h100-sxm=$2.50/h, or a machine's, aws:p5.48xlarge=$40/h; repeatable.",
    ),
]
AllowSuspect = Annotated[bool, typer.Option("--allow-suspect", help="Use prices that look wrong, too.")]
SolverName = Annotated[Solver, typer.Option("--solver", help="Solver of the integer program.")]
Gap = Annotated[str, typer.Option("--gap", metavar="SHARE", help="Accept what is proven this close.")]
TieTolerance = Annotated[
    str,
    typer.Option("--tie-tolerance", metavar="SHARE", help="Costs so close, or within a cent, are equal; at most 0.1%."),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        help="For the whole command, as 60s: the best by then; an error if no way is listed yet.",
    ),
]
Threads = Annotated[
    int, typer.Option("--threads", min=1, max=MOST_COUNT, help="Threads of the solver, as many as cores at most.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of the solver.")]
Workers = Annotated[int, typer.Option("--workers", min=1, max=1024, help="Processes of this machine that answer.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers answer: tcp://HOST:8786."),
]
Tls = Annotated[
    str | None,
    typer.Option("--tls", metavar="CA,CERT,KEY", help="Files for a scheduler at tls://: Dask's own three."),
]


def within_cores(frame: Frame, threads: int) -> int:
    """As many threads as can run at once, said where that is fewer than were asked for."""
    from planner.optimize.child import most_threads

    most = most_threads()
    if threads > most:
        frame.say(f"{threads:,} threads were asked for, {most} are used: there are no more cores")
    return min(threads, most)


def share_of(text: str, flag: str = "--gap", example: str = "0.1%") -> float:
    """A share of at least 0 and below 1; the example is what to write instead of another.

    Parameters
    ----------
    text
        As it was given.
    flag
        What it was given to.
    example
        Such a share, as one is written for it.
    """
    from planner import units

    share = _quantity(units.parse_fraction, text, flag)
    if not 0 <= share < 1:
        meant = f"{share:g}%" if 1 <= share < 100 and "%" not in text else example
        raise usage("out-of-range", f"{flag} is {text}; it must be at least 0 and below 1", f'write "{meant}"')
    return share


def time_of(text: str | None, flag: str = "--time-limit") -> float | None:
    """A time above 0 in seconds, or None."""
    from planner import units

    if text is None:
        return None
    if text.strip().replace(".", "", 1).isdecimal():
        raise usage("missing-unit", f"{flag} needs a unit of time", f'write "{text.strip()} s"')
    seconds = _quantity(units.parse_duration, text, flag)
    if seconds <= 0:
        raise usage("out-of-range", f"{flag} is {text}; it must be above 0", 'write "60s"')
    return seconds


def deadline_of(text: str | None) -> Deadline | None:
    """--time-limit, running since the command began; None where there is none."""
    from planner.deadline import Deadline

    limit_s = time_of(text)
    return None if limit_s is None else Deadline.after(limit_s, began_s=clock.began_s())


def money_of(text: str, flag: str) -> int:
    """Money of at least 0 in micro-dollars."""
    from planner import units

    amount = int(_quantity(units.parse_money, text, flag))
    if amount < 0:
        raise usage("out-of-range", f"{flag} is {text}; it must be at least 0", 'write "$500"')
    return amount


def _quantity(parse: Callable[..., float], text: str, flag: str) -> float:
    from planner.units import UnitError

    try:
        return parse(text, field=flag)
    except UnitError as error:
        raise usage(error.reference, error.message, error.hint) from None
