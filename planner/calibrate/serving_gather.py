"""Gathers the evidence of serving for docs/validation.md: every fold fitted, every row predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.calibrate.serving import ServingCalibrationRun, calibrate_serving
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.files import data_folder, read_text
from planner.validate.rows import COLLECTED
from planner.validate.serving import predict_serving
from planner.validate.serving_bars import ServingFold
from planner.validate.serving_entries import Entry, entries_of
from planner.validate.serving_evidence import ServingEvidence
from planner.validate.serving_rows import SHIPPED_SERVING, shipped_serving_rows
from planner.validate.serving_score import score_points


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
    _demand_shipped(found)
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


def _demand_shipped(found: ServingCalibrationRun) -> None:
    if found.to_yaml() != read_text(data_folder("hardware") / "calibration" / "serving.yaml"):
        message = "the shipped constants of serving are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")
