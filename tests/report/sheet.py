"""A tiny evaluator of the formulas that we write: an oracle for the values beside them, and for changed prices.

It knows SUM, SUMIF, ROUND, + - * /, cells, ranges, names and other sheets: a formula with anything else fails.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import openpyxl

_REFERENCE = re.compile(
    r"(?:(?P<sheet>'[^']+'|[A-Za-z]\w*)!)?\$?(?P<c1>[A-Z]{1,3})\$?(?P<r1>\d+)(?::\$?(?P<c2>[A-Z]{1,3})\$?(?P<r2>\d+))?"
    r"|(?P<text>\"[^\"]*\")|(?P<call>SUMIF|SUM|ROUND)(?=\()|(?P<name>[A-Za-z_]\w+)"
)


class Sheet:
    """A workbook whose formulas are worked out again, none of its stored values used."""

    def __init__(self, data: bytes) -> None:
        self.book = openpyxl.load_workbook(io.BytesIO(data))
        self.stored = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
        self._known: dict[tuple[str, str], Any] = {}

    def formulas(self) -> Iterator[tuple[str, str]]:
        for sheet in self.book:
            for row in sheet.iter_rows():
                yield from ((sheet.title, cell.coordinate) for cell in row if cell.data_type == "f")

    def cached(self, sheet: str, cell: str) -> Any:
        return self.stored[sheet][cell].value

    def value(self, sheet: str, cell: str) -> Any:
        """What a cell is worth, by its formula."""
        if (sheet, cell) not in self._known:
            found = self.book[sheet][cell]
            formula = found.data_type == "f"
            self._known[sheet, cell] = self._worked_out(sheet, found.value[1:]) if formula else found.value
        return self._known[sheet, cell]

    def named(self, name: str) -> Any:
        (sheet, cells), *_ = self.book.defined_names[name].destinations
        return self._range(sheet, cells.replace("$", ""))

    def change(self, sheet: str, cell: str, value: float) -> None:
        self.book[sheet][cell] = value
        self._known.clear()

    def _range(self, sheet: str, cells: str) -> Any:
        if ":" not in cells:
            return self.value(sheet, cells)
        return [self.value(sheet, cell.coordinate) for row in self.book[sheet][cells] for cell in row]

    def _worked_out(self, sheet: str, formula: str) -> Any:
        text = _REFERENCE.sub(lambda match: self._python(sheet, match), formula)
        known = {"SUM": _sum, "SUMIF": _sum_if, "ROUND": _rounded, "cells": self._range, "name": self.named}
        return eval(text, {"__builtins__": {}}, known)

    def _python(self, sheet: str, match: re.Match[str]) -> str:
        if match["text"] or match["call"]:
            return match[0]
        if match["name"]:
            return f"name({match['name']!r})"
        where = (match["sheet"] or sheet).strip("'")
        ends = [f"{match['c1']}{match['r1']}", *([f"{match['c2']}{match['r2']}"] if match["c2"] else [])]
        return f"cells({where!r}, {':'.join(ends)!r})"


def _sum(*parts: Any) -> float:
    cells = [cell for part in parts for cell in (part if isinstance(part, list) else [part])]
    return sum(cell for cell in cells if isinstance(cell, int | float))


def _sum_if(where: list[Any], wanted: Any, amounts: list[Any]) -> float:
    return _sum([amount for key, amount in zip(where, amounts) if key == wanted])


def _rounded(number: float, digits: int) -> float:
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
