"""`plan compare`: plans, scenarios or catalogs held against the first, and what moved the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage
from planner.cli.interrupts import answered, on_time

if TYPE_CHECKING:
    from planner.answers import CatalogTable, Comparison
    from planner.cli.sides import Given

DIFFERENT = 7  # exit code

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="A B [C…]",
        help="Plans (JSON), scenarios (YAML), or catalogs (a folder, or default).",
        autocompletion=complete.plans_and_scenarios,
    ),
]
ForCatalogs = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help="What catalogs are compared for: solved on each. Several make a table of all.",
        autocompletion=complete.scenarios,
    ),
]
Cases = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        metavar="NAME",
        help="A named case; repeatable where one scenario is held against its own.",
        autocompletion=complete.cases,
    ),
]
NoCause = Annotated[bool, typer.Option("--no-cause", help="Do not look for what moved the decision.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 7 when they differ.")]
Journal = Annotated[
    str | None, typer.Option("--journal", metavar="FILE", help="Keep answers over several scenarios there, and go on.")
]
MaxIncrease = Annotated[
    str | None,
    typer.Option("--max-increase", metavar="SHARE", help="Exit 7 when a total is over the first's by more, as 5%."),
]


def compare(
    frame: Frame,
    sources: Sources,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    scenario: ForCatalogs = None,
    settings: flags.Settings = None,
    case: Cases = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    no_cause: NoCause = False,
    exit_code: ExitCode = False,
    max_increase: MaxIncrease = None,
    workers: flags.Workers = 1,
    scheduler: flags.Scheduler = None,
    tls: flags.Tls = None,
    journal: Journal = None,
    allow_suspect: flags.AllowSuspect = False,
    solver: flags.SolverName = flags.Solver.highs,
    time_limit: flags.TimeLimit = None,
    threads: flags.Threads = 1,
    seed: flags.Seed = 0,
) -> None:
    """Compare plans: what changed in the question, in what is rented, in the money, and which change did it.

    One scenario alone is held against its own cases (--case) or settings (--set). Catalogs are compared for one
    scenario, or in a table for several (--scenario, repeated), which --workers and --scheduler share out.
    """
    from planner.cli.flags import deadline_of
    from planner.cli.sides import Given
    from planner.cli.sweep import security_of_files
    from planner.optimize import early

    most = None if max_increase is None else _increase(max_increase)
    threads = flags.within_cores(frame, threads)
    solving = {"solver": solver.value, "time_limit_s": deadline_of(time_limit), "threads": threads, "seed": seed}
    scenarios = scenario or []
    given = Given(
        frame=frame,
        scenario=scenarios[0] if scenarios else None,
        settings=tuple(settings or ()),
        cases=tuple(case or ()),
        hardware=hardware,
        own_prices={"prices": prices, "price": price},
        solving=solving | {"allow_suspect": allow_suspect},
    )
    if len(scenarios) > 1:
        from planner.report.sweep_view import render_catalog_table

        asked = {"workers": workers, "journal": journal, "security": security_of_files(tls)}
        table = _table(given, scenarios, sources, scheduler, asked)
        frame.emit(render_catalog_table(table.document, output.value, **frame.view(out)), out)
        raise typer.Exit(_code(table, exit_code, most) or table.exit_code)
    if workers > 1 or scheduler or tls or journal:
        hint = "name several with --scenario, or leave it out"
        raise usage("not-together", "--workers, --scheduler, --tls and --journal are for catalogs over scenarios", hint)
    early.start_early(threads)
    found = compared(given, sources, cause=not no_cause)
    _emit(frame, found, output, out)
    if most is not None and not found.of_one_time:
        hint = "plan all over one horizon: --set horizon='1 month'"
        raise usage("not-together", "--max-increase is of totals of one time, and these horizons differ", hint)
    raise typer.Exit(_code(found, exit_code, most))


def _table(
    given: Given, scenarios: list[str], sources: list[str], scheduler: str | None, asked: dict[str, Any]
) -> CatalogTable:
    """Catalogs over several scenarios, as a command line asks for them."""
    from planner import api
    from planner.cli.sides import demand_catalogs
    from planner.cli.sweep import telling

    demand_catalogs(given, sources)
    frame, solving = given.frame, dict(given.solving)
    limit = solving.pop("time_limit_s")
    with telling(frame) as tell:
        return api.compare_catalogs(
            scenarios,
            sources,
            scheduler,
            settings=given.settings,
            case=given.cases[0] if given.cases else None,
            prices=given.own_prices["prices"] or (),
            price=given.own_prices["price"] or (),
            asked=solving,
            tell=tell,
            hear=lambda link: frame.say(f"dashboard of the scheduler: {link}"),
            over=None if limit is None else limit.passed,
            **asked,
        )


def compared(given: Any, sources: list[str], *, cause: bool) -> Comparison:
    """The comparison that a command line asks for.

    Parameters
    ----------
    given
        A `Given`: what the command line says of every side.
    sources
        Paths of plans, scenarios and catalogs, the first of which the others are held against; or one scenario alone.
    cause
        Look for what moved the decision, by solving again.

    Raises
    ------
    UsageError
        There is nothing to compare with, or an option says nothing of any side.
    InputError, StoppedError, PlanError
        As `planner.api.compare`.
    """
    from planner.cli.sides import sides_of

    limit = given.solving.get("time_limit_s")
    with on_time(limit), answered(quiet=given.frame.quiet), given.frame.progress("comparing"):
        sides = sides_of(given, sources)
        from planner import api

        return api.compare(*sides, cause=cause, **given.solving)


def _emit(frame: Frame, found: Comparison, output: Form, out: str | None) -> None:
    from planner.report.compare_view import render_comparison

    view = frame.view(out) | {"full": frame.verbose > 0}
    frame.emit(render_comparison(found.document, output.value, **view), out)


def _increase(text: str) -> float:
    """A share of at least 0; more than the whole is possible."""
    from planner import units

    try:
        share = units.parse_fraction(text, field="--max-increase")
    except units.UnitError as error:
        raise usage(error.reference, error.message, error.hint) from None
    if share < 0:
        raise usage("out-of-range", f"--max-increase is {text}; it must be at least 0", 'write "5%"')
    if share >= 1 and "%" not in text:  # a gate that was meant to hold at 5 % let six times the cost through
        hint = f'write "{text.strip()}%", or "{share:.0%}" where {1 + share:g} times the cost may pass'
        raise usage(
            "ambiguous-number", f"--max-increase {text} leaves open whether it is a share or a percentage", hint
        )
    return share


def _code(found: Comparison | CatalogTable, exit_code: bool, most: float | None) -> int:
    """7 when they differ and that was asked, or when a total is over the limit, or there is none to tell."""
    if exit_code and not found.same:
        return DIFFERENT
    if most is None:
        return 0
    return DIFFERENT if found.exceeds(most) else 0


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan compare hardware/ my-hardware/ --scenario scenarios/llama.yaml",
        "plan compare scenarios/llama.yaml --set serving.assistant.qpm=1200 -o md",
    )
    command(app, "compare", examples=examples)(compare)
