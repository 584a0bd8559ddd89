"""Gathers the evidence of serving for docs/validation.md: every fold fitted, every row predicted."""

from __future__ import annotations

from collections.abc import Callable

from planner.calibrate.serving import FOLDS, ServingCalibrationRun, calibrate_serving
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.files import data_folder, read_text
from planner.validate.rows import COLLECTED
from planner.validate.serving import entries_of, predict_serving
from planner.validate.serving_evidence import ServingEvidence
from planner.validate.serving_result import serving_bands
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
    found = calibrate_serving(rows, catalog, source=SHIPPED_SERVING, as_of=COLLECTED, tell=tell)
    _demand_shipped(found)
    entries = entries_of(rows, catalog)
    return ServingEvidence(
        rows=rows,
        entries=entries,
        shipped=predict_serving(rows, catalog),
        folds={fold: score_points(found.points, found.held_out[fold], entries) for fold in FOLDS},
        bands=serving_bands(catalog),
    )


def _demand_shipped(found: ServingCalibrationRun) -> None:
    if found.to_yaml() != read_text(data_folder("hardware") / "calibration" / "serving.yaml"):
        message = "the shipped constants of serving are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")
