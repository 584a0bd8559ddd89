"""Commands that tell what is there: candidates, traces, models and scenarios by name, schemas, and the help itself."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage
from planner.errors import InputError


def candidates(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    every: Annotated[bool, typer.Option("--all", help="Those that were pruned or dropped, too.")] = False,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
) -> None:
    """List the ways to run each workload, with memory, time and cost."""
    from planner.cli.find import load
    from planner.report.lists import render_candidates

    question, catalog = load(
        scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
    )
    from planner import api

    with frame.progress(f"enumerating {question.name}"):
        rows = api.candidates_table(question, catalog, every=every, allow_suspect=allow_suspect)
    frame.emit(render_candidates(rows, output.value, full=frame.verbose > 0, **frame.view(out)), out)


def _candidates(app: typer.Typer) -> None:
    examples = ("plan candidates scenarios/llama.yaml", "plan candidates scenarios/gpt2-xl.yaml -o csv --all")
    command(app, "candidates", examples=examples)(candidates)


def traffic(
    frame: Frame,
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="CSV with the columns timestamp, input_tokens, output_tokens.")
    ],
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """Rate, burstiness, lengths, profile and peak of a request trace, and the scenario lines to paste."""
    from planner.report.reading_view import render_traffic
    from planner.traffic.request_trace import read_trace, traffic_document

    try:
        with frame.progress("reading"):
            document = traffic_document(read_trace(trace))
    except InputError as error:
        if any(problem.reference == "missing-column" for problem in error.problems):
            frame.say(f"plan read {trace} --into SCENARIO takes logs of other forms, too")
        raise
    frame.emit(render_traffic(document, output.value, **frame.view(out)), out)


def _traffic(parent: typer.Typer) -> None:
    examples = ("plan traffic scenarios/requests.csv", "plan traffic scenarios/requests.csv -o json")
    command(parent, "traffic", examples=examples)(traffic)


models = typer.Typer(help="Models by name: parameters, FLOPs and cache per token.", no_args_is_help=True)


def list_models(frame: Frame, output: flags.Output = Form.table, out: flags.OutFile = None) -> None:
    """List the shipped models with their computed counts."""
    from planner.architecture.load import preset_summary
    from planner.report.memory_view import render_models

    frame.emit(render_models(preset_summary(), output.value, **frame.view(out)), out)


def show_model(
    frame: Frame,
    model: flags.Model,
    sequence: Annotated[
        int, typer.Option("--sequence", min=1, max=flags.MOST_LENGTH, help="Tokens that attention looks over.")
    ] = 4096,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """Show one model: parameters, FLOPs per token, cache bytes per token by format, layer kinds."""
    from planner.architecture.load import load_model
    from planner.memory.model_facts import model_facts
    from planner.report.memory_view import render_model

    facts = model_facts(load_model(model), sequence)
    frame.emit(render_model(facts, output.value, **frame.view(out)), out)


def _models(parent: typer.Typer) -> None:
    command(models, "list", examples=("plan models list", "plan models list -o csv"))(list_models)
    command(models, "show", examples=("plan models show llama-3.1-8b", "plan models show deepseek-v3 -o json"))(
        show_model
    )
    parent.add_typer(models, name="models")


def scenarios(
    frame: Frame,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Print this one, to begin with.", autocompletion=complete.shipped),
    ] = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """List the scenarios that ship and can be named wherever a scenario is taken, or print one of them."""
    from planner.files import read_bytes
    from planner.report.lists import render_scenarios
    from planner.scenario.shipped import beside, shipped_scenarios, shipped_text
    from planner.yamlfile import MAX_BYTES

    if name is None:
        rows = [asdict(one) for one in shipped_scenarios()]
        frame.emit(render_scenarios(rows, output.value, **frame.view(out)), out)
        return
    if output is not Form.table:
        raise usage("not-together", "a scenario is printed as the file that it is", "leave -o out, or NAME")
    frame.emit(shipped_text(name), out)
    for file, text in beside(name).items():  # without which it would not be read elsewhere
        where = Path(out).with_name(file) if out and out != "-" else None
        if where is None:
            frame.say(f"it reads {file} from its folder: plan scenarios {name} --out {name}.yaml writes both")
        elif not where.exists():
            frame.emit(text, str(where))
        elif read_bytes(str(where), limit_bytes=MAX_BYTES) != text.encode():
            frame.say(f"it reads {where}, which is there and holds something else: it was left as it is")


def _scenarios(app: typer.Typer) -> None:
    command(app, "scenarios", examples=("plan scenarios", "plan scenarios gpt2-xl --out mine.yaml"))(scenarios)


class Which(StrEnum):
    """Documents that have a schema."""

    scenario = "scenario"
    plan = "plan"
    frontier = "frontier"
    report = "report"
    compare = "compare"
    validation = "validation"


def schema(
    frame: Frame,
    which: Annotated[Which, typer.Argument(help="Of which document.")] = Which.scenario,
    out: flags.OutFile = None,
) -> None:
    """Print the JSON Schema of scenario files, of plan documents, of frontiers, reports, comparisons or validations."""
    from planner.report import json

    frame.emit(json.render(_schema(which)), out)


def _schema(which: Which) -> dict[str, object]:
    if which is not Which.scenario:
        from planner.api.schemas import shipped

        return shipped(which.value)
    from planner.scenario.jsonschema import scenario_json_schema

    return dict(scenario_json_schema())


def _schema_command(app: typer.Typer) -> None:
    command(app, "schema", examples=("plan schema", "plan schema plan --out .plan/plan.schema.json"))(schema)


def show_help(
    frame: Frame,
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="One command; default: all.")] = None,
) -> None:
    """Show the help of plan, or of one command."""
    here = context.find_root()
    for word in words or ():
        commands = getattr(here.command, "commands", {})
        if word not in commands:
            from planner.spelling import closest

            near = closest(word, commands) or list(commands)
            raise usage("unknown-command", f"there is no command '{word}'", ", ".join(near))
        here = type(here)(commands[word], info_name=word, parent=here)
    frame.emit(here.get_help() + "\n")


def _help(app: typer.Typer) -> None:
    command(app, "help", examples=("plan help", "plan help catalog list"))(show_help)


REGISTER = {
    "candidates": _candidates,
    "traffic": _traffic,
    "models": _models,
    "scenarios": _scenarios,
    "schema": _schema_command,
    "help": _help,
}
