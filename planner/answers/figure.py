"""Drawings of an answer: a notebook shows them, and a file of them opens anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner.brief import brief
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_text

if TYPE_CHECKING:
    from planner.report.charts import Chart


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figure:
    """Charts below each other, as SVG; nothing else is needed to look at them."""

    charts: Sequence[Chart]

    def to_svg(self) -> str:
        """The drawing, with its style inside."""
        from planner.report.chart_drawing import svg_alone

        return svg_alone(self.charts) + "\n"

    def write(self, path: StrPath) -> None:
        """The drawing as a file that ends in .svg.

        Raises
        ------
        UsageError
            The path ends otherwise.
        OutputError
            It cannot be written there.
        """
        if Path(path).suffix.lower() != ".svg":
            raise UsageError.of("unknown-format", f"what form is {os.fspath(path)}?", hint="end it in .svg")
        write_text(path, self.to_svg())

    def __repr__(self) -> str:
        return brief("Figure", *(chart.title for chart in self.charts))

    def _repr_svg_(self) -> str:
        return self.to_svg()
