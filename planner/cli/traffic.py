"""`plan traffic`: what a request trace shows, and the scenario lines that say the same."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Form, Frame, command
from planner.errors import InputError


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


def register(parent: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan traffic scenarios/requests.csv", "plan traffic scenarios/requests.csv -o json")
    command(parent, "traffic", examples=examples)(traffic)
