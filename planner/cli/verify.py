"""`plan verify`: is a plan what it says it is? Checked without the search and without the solver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Form, Frame, command

if TYPE_CHECKING:
    from planner.api.checking import Checked


def verify(
    frame: Frame,
    plan: flags.PlanFile = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    solve: Annotated[bool, typer.Option("--solve", help="Also solve again and compare the optimum.")] = False,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
) -> None:
    """Check a plan file against its scenario, its catalog and itself, and what of it is proven without any solver."""
    from planner.cli.find import plan_file
    from planner.errors import InputError, NotProvenError
    from planner.plan.plan_files import read_plan
    from planner.report import problems as report

    path = plan_file(plan)
    document = read_plan(path)
    from planner.api import checking
    from planner.api.solving import solved_again
    from planner.plan.plan_files import catalog_of_plan

    catalog = catalog_of_plan(document, hardware, prices=prices, price=price)
    with frame.progress(f"checking {path}"):
        checked = checking.check(document, catalog)
    problems, told, decided = checked.problems, [words_of(checked)], False
    if solve and checked.holds:
        with frame.progress(f"solving {path} again"):
            found, words, decided = solved_again(document, catalog)
        problems = found or ([] if decided else problems)
        told.append(words)
    wrong = [problem for problem in problems if problem.severity == "error"]
    claims = bool(wrong) and checking.only_claims(document, wrong)
    if claims:
        problems = [*problems, *replace(checked.standing, problems=[]).all_problems()]
    if frame.verbose:
        told += checking.leaf_counts(document)
    said = " · ".join(filter(None, told))
    frame.emit(report.findings(problems, path, output.value, proven=said, **frame.view(out)), out)
    if wrong and not claims:
        raise typer.Exit(InputError.exit_code)
    raise typer.Exit(0 if not wrong and (checked.standing.proven or decided) else NotProvenError.exit_code)


def words_of(checked: Checked) -> str:
    """What is proven of a plan that holds."""
    from planner.report.certainty_words import certificate_words

    standing = checked.standing
    if not standing.proven or checked.document["status"] == "infeasible":
        return standing.words
    return certificate_words(checked.document, standing.columns)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan verify .plan/llama.plan.json", "plan verify .plan/llama.plan.json --solve")
    command(app, "verify", examples=examples)(verify)
