"""Gathers the evidence of docs/validation.md: every fold fitted, every row predicted with and without its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from planner.calibrate.crossval import CORNERS, HeldOut, hold_out
from planner.calibrate.result import Calibration, calibrate
from planner.calibrate.training import Point, fit_constants, points_of
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.files import data_folder, read_text
from planner.validate.evidence import TOTALS_LIMITS, Evidence
from planner.validate.folds import device_folds
from planner.validate.rows import COLLECTED, SHIPPED, MeasuredRow, shipped_totals, shipped_training_rows
from planner.validate.score import Scored
from planner.validate.totals import predict_totals
from planner.validate.totals_result import score_totals
from planner.validate.training import Prediction, predict_training

# "fitted on MPT + vTrain, tested on Korthikanti Table 5": which publication is which
_FITTED_ON = ("mosaicml/llm-foundry", "VIA-Research/vTrain")
_TESTED_ON = "calculon-ai/calculon"


def gather(catalog: Catalog, tell: Callable[[str], None] = lambda text: None) -> Evidence:
    """All evidence for the shipped constants, from the shipped rows; takes a minute or two.

    Raises
    ------
    InputError
        The shipped constants are not what the shipped rows give.
    """
    rows = shipped_training_rows()
    found = calibrate(rows, catalog, source=SHIPPED, as_of=COLLECTED, tell=tell)
    _demand_shipped(found)
    shipped = predict_training(rows, catalog)
    return Evidence(
        rows=rows,
        shipped=shipped,
        held_out=without_source(rows, shipped, found.held_out),
        sources=found.held_out.judged(),
        devices=hold_out(found.points, device_folds(found.points), catalog, tell).judged(),
        beyond={corner.title: found.corners[corner.name] for corner in CORNERS if corner.name in found.corners},
        korthikanti=_korthikanti(points_of(rows, catalog), catalog),
        totals={tier: _totals(catalog, tier) for tier in TOTALS_LIMITS},
    )


def _demand_shipped(found: Calibration) -> None:
    shipped = read_text(data_folder("hardware") / "calibration" / "training.yaml")
    if found.to_yaml() != shipped:
        message = "the shipped constants are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")


def without_source(rows: Sequence[MeasuredRow], shipped: Sequence[Prediction], held_out: HeldOut) -> list[Prediction]:
    """Predictions of a fit without the row's source; those of rows that no fit uses stay as they are.

    Parameters
    ----------
    rows, shipped
        One prediction a row, by the shipped constants, in the same order.
    held_out
        The rows that a fit may use, each as predicted without its source; matched by name.
    """
    times = {point.row.name: float(s) for point, s in zip(held_out.points, held_out.predicted_s, strict=True)}
    return [_at(said, times[row.name]) if row.name in times else said for row, said in zip(rows, shipped, strict=True)]


def _at(said: Prediction, step_time_s: float) -> Prediction:
    """The same prediction with another step time; the tokens and FLOPs of a step stay."""
    if said.step_time_s is None:
        return said
    faster = said.step_time_s / step_time_s
    tokens, tflops = said.tokens_per_s_per_device, said.tflops_per_device
    return dataclasses.replace(
        said,
        step_time_s=step_time_s,
        tokens_per_s_per_device=None if tokens is None else tokens * faster,
        tflops_per_device=None if tflops is None else tflops * faster,
        terms={},
    )


def _korthikanti(points: Sequence[Point], catalog: Catalog) -> list[Scored]:
    constants = fit_constants([point for point in points if point.source in _FITTED_ON], catalog)
    tested = [point for point in points if point.source == _TESTED_ON]
    return [
        Scored(
            row=point.row,
            family=point.row.family or point.family,
            constants=point.family,
            predicted=float(seconds),
            measured=point.measured_s,
            target=point.measured_s,
        )
        for point, seconds in zip(tested, np.exp(constants.predict(tested, catalog)[0]), strict=True)
    ]


def _totals(catalog: Catalog, tier: str) -> list[tuple[str, float, float]]:
    rows = shipped_totals()
    scored = score_totals(rows, predict_totals(rows, catalog, tier))
    return [(item.row.name, item.predicted, item.measured) for item in scored]
