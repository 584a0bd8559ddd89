"""Flags that several commands share, written once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli.frame import Form


class Solver(StrEnum):
    """Solvers of the integer program."""

    highs = "highs"
    cbc = "cbc"


ScenarioFile = Annotated[
    str | None, typer.Argument(metavar="[SCENARIO]", help="Scenario file; default: scenario.yaml here.")
]  # fmt: skip
Output = Annotated[Form, typer.Option("--output", "-o", help="Output format.")]
OutFile = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write there; - is stdout.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a scenario key; repeatable.")
]  # fmt: skip
Case = Annotated[str | None, typer.Option("--case", metavar="NAME", help="A named case of the scenario file.")]
HardwareFolder = Annotated[
    str | None, typer.Option("--hardware", metavar="DIR", help="A catalog folder in place of the packaged one.")
]  # fmt: skip
AllowSuspect = Annotated[bool, typer.Option("--allow-suspect", help="Use prices that look wrong, too.")]
SolverName = Annotated[Solver, typer.Option("--solver", help="Solver of the integer program.")]
Gap = Annotated[str, typer.Option("--gap", metavar="SHARE", help="Accept what is proven this close.")]
TimeLimit = Annotated[str | None, typer.Option("--time-limit", metavar="TIME", help="Stop the solver then, as 60s.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Threads of the solver.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the solver.")]
