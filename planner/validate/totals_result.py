"""Predicted device hours of whole runs held against published budgets."""

from __future__ import annotations

from collections.abc import Sequence

from planner.validate.model import CoverageRow, Quantity, RowLabel, RowValidated
from planner.validate.result import Validation, row_document, summary_row
from planner.validate.rows import MeasuredRow, TotalsRow
from planner.validate.score import Scored, summaries
from planner.validate.totals import TotalsPrediction

_GROUPS = ("all", "family")


def why_no_budget(row: TotalsRow) -> str | None:
    """Why a run counts in no error figure; None when it counts."""
    if "recalled" in (row.evidence or ""):
        return "recalled"
    return "no device hours" if row.device_hours is None else None


def score_totals(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> list[Scored]:
    """Every run that counts and has both predicted and published device hours [h]."""
    return [
        Scored(
            row=_as_run(row),
            family=said.family,
            constants=said.family,
            predicted=said.device_hours,
            measured=row.device_hours,
            target=row.device_hours,
        )
        for row, said in zip(rows, predictions, strict=True)
        if said.device_hours is not None and row.device_hours is not None and why_no_budget(row) is None
    ]


def _as_run(row: TotalsRow) -> MeasuredRow:
    """The cells that views show of any row."""
    return MeasuredRow(
        id=row.id,
        model=row.model,
        accelerator=row.accelerator,
        n_accel=row.devices,
        n_params_b=row.params_b,
        source_key=_source_key(row),
        line=row.line,
    )


def _source_key(row: TotalsRow) -> str:
    return (row.source or "").split(":")[0]


def validate_totals(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> Validation:
    """Hold predictions against the runs that they were made for."""
    scored = score_totals(rows, predictions)
    return Validation(
        kind="totals",
        rows=[_row(row, said) for row, said in zip(rows, predictions, strict=True)],
        summary=[
            _coverage(rows, predictions),
            *(summary_row("device_hours", summary) for summary in summaries(scored) if summary.group in _GROUPS),
        ],
        labels=[_label(row, said) for row, said in zip(rows, predictions, strict=True)],
        targets=[("device_hours", item) for item in scored],
        own_rows=False,
    )


def _row(row: TotalsRow, said: TotalsPrediction) -> RowValidated:
    measured: dict[Quantity, float] = {} if row.device_hours is None else {"device_hours": row.device_hours}
    return row_document(row.name, ("device_hours",), said, measured, said.skipped)


def _coverage(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> CoverageRow:
    refusals: dict[str, list[str]] = {}
    for row, said in zip(rows, predictions, strict=True):
        if said.device_hours is None:
            refusals.setdefault(said.skipped or "no reason given", []).append(row.name)
    refused = sum(map(len, refusals.values()))
    return {
        "quantity": "coverage",
        "group": "coverage",
        "name": "runs",
        "rows": len(rows),
        "predicted": len(rows) - refused,
        "skipped": refused,
        "share": 1 - refused / len(rows) if rows else 1.0,
        "refusals": refusals,
        "left_out_rows": sum(why_no_budget(row) is not None for row in rows),
    }


def _label(row: TotalsRow, said: TotalsPrediction) -> RowLabel:
    return {
        "model": row.model or "",
        "device": f"{row.devices or '?'} × {row.accelerator or '?'}",
        "family": said.family,
        "source": _source_key(row),
        "left_out": why_no_budget(row) or "",
    }
