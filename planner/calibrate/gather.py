"""Gathers the evidence of docs/validation.md: every fold fitted, every row predicted, with and without its source."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from planner.calibrate.calibration import Calibration, calibrate
from planner.calibrate.serving import ServingCalibrationRun, calibrate_serving
from planner.calibrate.training import CORNERS, HeldOut, Point, fit_constants, hold_out, points_of
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.files import data_folder, read_text
from planner.validate.evidence import TOTALS_LIMITS, Evidence
from planner.validate.judgement import device_folds
from planner.validate.rows import COLLECTED, SHIPPED, MeasuredRow, shipped_totals, shipped_training_rows
from planner.validate.score import Scored
from planner.validate.serving import predict_serving
from planner.validate.serving_entries import Entry, entries_of
from planner.validate.serving_evidence import ServingEvidence
from planner.validate.serving_rows import SHIPPED_SERVING, shipped_serving_rows
from planner.validate.serving_score import ServingFold, score_points
from planner.validate.totals import predict_totals, score_totals
from planner.validate.training import Prediction, predict_training

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
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


def same_constants(found: str, shipped: str) -> bool:
    """Whether two texts say the same but for one unit in the last digit of a number.

    What lies half-way between two digits is rounded up here and down there, as sums are taken in another order.

    Examples
    --------
    >>> same_constants("p10: -0.94563", "p10: -0.94564"), same_constants("p10: -0.9456", "p10: -0.94564")
    (True, False)
    """
    if _NUMBER.sub("", found) != _NUMBER.sub("", shipped):
        return False
    pairs = zip(map(Decimal, _NUMBER.findall(found)), map(Decimal, _NUMBER.findall(shipped)))
    return all(
        one == other or (one.as_tuple().exponent == other.as_tuple().exponent and abs(one - other) <= _last_digit(one))
        for one, other in pairs
    )


def _last_digit(number: Decimal) -> Decimal:
    return Decimal(1).scaleb(int(number.as_tuple().exponent))


def _demand_shipped(found: Calibration) -> None:
    shipped = read_text(data_folder("hardware") / "calibration" / "training.yaml")
    if not same_constants(found.to_yaml(), shipped):
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


def gather_serving(catalog: Catalog, tell: Callable[[str], None] = lambda text: None) -> ServingEvidence:
    """All evidence for the shipped constants, from the shipped rows; takes minutes.

    Raises
    ------
    InputError
        The shipped constants are not what the shipped rows give.
    """
    rows = shipped_serving_rows()
    found = calibrate_serving(
        rows, catalog, source=SHIPPED_SERVING, as_of=COLLECTED, folds=("campaign", "device"), tell=tell
    )
    _demand_serving_shipped(found)
    entries = entries_of(rows, catalog)
    return ServingEvidence(
        rows=rows,
        entries=entries,
        shipped=predict_serving(rows, catalog),
        folds=folds_of(found, entries),
    )


def folds_of(found: ServingCalibrationRun, entries: Sequence[Entry]) -> dict[str, ServingFold]:
    """Every figure left out, with its band: bands take their scores from the other campaigns."""
    folds = {}
    for name, own in found.held_out.items():
        known = np.isfinite(own.log_predicted)
        points = [point for point, usable in zip(own.sample.points, known, strict=True) if usable]
        folds[name] = ServingFold(
            scored=score_points(points, np.exp(own.log_predicted[known]), entries),
            judged=own.judged(found.held_out["campaign"]).chosen(known),
        )
    return folds


def _demand_serving_shipped(found: ServingCalibrationRun) -> None:
    if not same_constants(found.to_yaml(), read_text(data_folder("hardware") / "calibration" / "serving.yaml")):
        message = "the shipped constants of serving are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")
