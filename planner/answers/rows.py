"""Rows of a table, as a list that a notebook shows and pandas takes."""

from __future__ import annotations

from typing import Any

from planner.brief import brief, some
from planner.units import format_number

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
