"""What every answer has in common: its document, its JSON, drawings, rows of a table, and short words for itself.

A notebook shows all of them; a file of a drawing opens anywhere, and pandas takes the rows. Each answer has the status
that it means to a shell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.brief import brief, some
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_text
from planner.units import format_number

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


_SHOWN = 20


class Rows(list[dict[str, Any]]):
    """Rows with the same keys each: a plain list otherwise."""

    def to_frame(self) -> Any:
        """One row a row, as a pandas DataFrame; what is nested is left out."""
        from planner.frames import pandas

        return pandas("to_frame").DataFrame(
            [{key: value for key, value in row.items() if _flat(value)} for row in self]
        )

    def __repr__(self) -> str:
        return brief("Rows", f"{len(self)} rows of {some(self[0])}" if self else "none")

    def _repr_html_(self) -> str:
        from planner.report.blocks import Column, Grid
        from planner.report.notebook import blocks_html

        heads = [key for key, value in self[0].items() if _flat(value)] if self else []
        rows = [[_shown(row.get(key)) for key in heads] for row in self[:_SHOWN]]
        notes = (f"{len(self)} rows, the first {_SHOWN} of them; to_frame() has all",) if len(self) > _SHOWN else ()
        return blocks_html([Grid(columns=tuple(Column(head=head) for head in heads), rows=rows, notes=notes)])


def _flat(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return format_number(value, 4, apart=True) if isinstance(value, float) else str(value)


EXIT_CODES = {"optimal": 0, "feasible": 5, "infeasible": 4, "stopped": 6, "failed": 6}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """A document and what it says; every number in it comes from the document."""

    document: Mapping[str, Any]

    def to_json(self) -> str:
        """The document as stable JSON text."""
        return json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Solved(Answer):
    """An answer of a solver, which may have ended in several ways."""

    @property
    def status(self) -> str:
        """optimal, feasible, infeasible, stopped or failed."""
        return str(self.document["status"])

    @property
    def exit_code(self) -> int:
        """Exit code of the command for this status."""
        return EXIT_CODES[self.status]

    def __repr__(self) -> str:
        return brief(type(self).__name__, f"{self.document.get('name', '')}: {self.document.get('status', '')}")
