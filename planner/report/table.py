"""The terminal view of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.report import text
from planner.report.blocks import Advice
from planner.report.plan_view import plan_blocks

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def render_plan(
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
