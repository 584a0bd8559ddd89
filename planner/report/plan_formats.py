"""A plan document in any format, the terminal's table among them: the one door that commands use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.report import csv, json, markdown, text
from planner.report.blocks import Advice
from planner.report.escape import terminal
from planner.report.plan_view import plan_blocks, some_sections
from planner.report.screen import quiet_line, render_screen, screen_blocks

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def render_table(
    document: PlanDocument,
    *,
    width: int = 100,
    colour: bool = False,
    saved: str = "",
    launch: str = "",
    elapsed_s: float | None = None,
    full: bool = False,
    advice: Sequence[Advice] = (),
) -> str:
    """A plan document for a terminal of `width` columns (80 to 120).

    Parameters
    ----------
    document
        The plan.
    width
        Kept within 80 to 120.  [characters]
    colour
        With escape codes for a terminal.
    saved, launch
        The plan's file and the format that launches it; "" where there is none.
    elapsed_s
        How long it took; None = not told.  [s]
    full
        Long lists whole.
    advice
        What would save money: its worth, and the command.
    """
    blocks = plan_blocks(document, saved=saved, launch=launch, elapsed_s=elapsed_s, full=full, advice=advice)
    return text.draw(blocks, width=width, style=text.Style(colour))


def render_plan(document: PlanDocument, form: str, **view: Any) -> str:
    """A plan document as table, json, csv or md; `view` (width, colour, saved ...) is for the table."""
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render_plan(document)
    if form == "md":
        blocks = plan_blocks(document, full=bool(view.get("full")), advice=view.get("advice", ()))
        return markdown.draw(blocks, summary="Prices, assumptions, checks")
    return render_table(document, **view)


def render_first(document: PlanDocument, form: str, **view: Any) -> str:
    """The first screen of a plan as table or md; `view` is that of the screen, with width and colour of the table."""
    if form == "md":
        return markdown.draw(screen_blocks(document, **{k: v for k, v in view.items() if k not in ("width", "colour")}))
    return render_screen(document, **view)


def render_sections(
    document: PlanDocument,
    names: Sequence[str],
    form: str,
    *,
    width: int = 100,
    colour: bool = False,
    full: bool = False,
) -> str:
    """Some sections of a plan as table or md; names are those of `plan_view.SECTIONS`.

    Parameters
    ----------
    document
        The plan.
    names
        In the order in which they are shown.
    form
        table or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    full
        Long lists whole.
    """
    blocks = some_sections(document, names, full)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def quiet(document: PlanDocument) -> str:
    """Total, range and status in one line."""
    return terminal(quiet_line(document)) + "\n"
