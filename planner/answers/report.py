"""A plan with its budget and its sources, for others to read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from planner.answers.answer import Answer
from planner.brief import brief
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_bytes, write_text

if TYPE_CHECKING:
    from planner.report.model import ReportDocument

_FORMS = {".md": "md", ".csv": "csv", ".json": "json", ".txt": "table"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Answer):
    """A report document, and the forms that it is handed on in."""

    document: ReportDocument

    def render(self, form: str = "table", *, width: int = 100) -> str:
        """The text as table, md, csv or json."""
        from planner.report.report_view import render_report

        return render_report(self.document, form, width=width)

    def to_html(self) -> str:
        """One page that works offline."""
        from planner.report.html.pages import render_page

        return render_page(self.document).text

    def to_xlsx(self) -> bytes:
        """A workbook whose totals follow when a price is changed."""
        from planner.report.workbook import workbook

        return workbook(self.document)

    def write(self, path: StrPath) -> None:
        """A file in the form of its ending: .html, .xlsx, .md, .csv, .json or .txt.

        Raises
        ------
        UsageError
            There is no form of that ending.
        OutputError
            It cannot be written there.
        """
        ending = Path(path).suffix.lower()
        if ending == ".xlsx":
            write_bytes(path, self.to_xlsx())
        elif ending == ".html":
            write_text(path, self.to_html())
        elif ending in _FORMS:
            write_text(path, self.render(_FORMS[ending]))
        else:
            known = ", ".join([".html", ".xlsx", *_FORMS])
            raise UsageError.of("unknown-format", f"what form is {os.fspath(path)}?", hint=f"end it in {known}")

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return brief("Report", self.document["plan"]["name"])

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.report_view import terminal_blocks

        return blocks_html(terminal_blocks(self.document))
