"""Predictions read what was run, never what came out, nor who published it; and the accepted state still holds."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.validate.evidence import family_errors, refused, regressions
from planner.validate.fingerprint import fingerprint
from planner.validate.rows import MEASURED, UNREAD, MeasuredRow, blank_measured, shipped_training_rows
from planner.validate.score import score_memory, score_step_times
from planner.validate.training import predict_training
from tests.tiers import cases

ROOT = Path(__file__).parents[2]
WAY_OUT = "if the change is meant: make calibrate validation, and commit what they write"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def rows() -> tuple[MeasuredRow, ...]:
    return shipped_training_rows()


@pytest.fixture(scope="module")
def predictions(rows: tuple[MeasuredRow, ...], catalog: Catalog) -> list[Any]:
    return list(predict_training(rows, catalog))


def test_blank_cells_change_no_prediction(
    rows: tuple[MeasuredRow, ...], predictions: list[Any], catalog: Catalog
) -> None:
    some = slice(None, None, cases(3, 1))
    assert list(predict_training([blank_measured(row) for row in rows[some]], catalog)) == predictions[some]


def test_other_rows_cells_change_no_prediction(
    rows: tuple[MeasuredRow, ...], predictions: list[Any], catalog: Catalog
) -> None:
    """Measured cells, notes and publications dealt out anew among the rows."""
    donors = list(rows)
    random.Random(3).shuffle(donors)
    names = (*MEASURED, *UNREAD)
    dealt = [
        dataclasses.replace(row, **{name: getattr(donor, name) for name in names}) for row, donor in zip(rows, donors)
    ]
    assert dealt != list(rows)
    some = slice(None, None, cases(3, 1))
    assert list(predict_training(dealt[some], catalog)) == predictions[some]


def test_a_prediction_depends_on_its_row_alone(
    rows: tuple[MeasuredRow, ...], predictions: list[Any], catalog: Catalog
) -> None:
    some = random.Random(5).sample(range(len(rows)), 60)
    for number, said in zip(some, predict_training([rows[number] for number in some], catalog), strict=True):
        before = predictions[number]
        assert (said.skipped, said.family) == (before.skipped, before.family)
        for name in ("step_time_s", "tokens_per_s_per_device", "tflops_per_device", "peak_memory_bytes"):
            value, expected = getattr(said, name), getattr(before, name)
            assert value == (None if expected is None else pytest.approx(expected, rel=1e-9)), rows[number].id


def test_every_prediction_is_whole_or_says_why_not(rows: tuple[MeasuredRow, ...], predictions: list[Any]) -> None:
    assert len(predictions) == len(rows)
    for row, said in zip(rows, predictions, strict=True):
        assert (said.step_time_s is None) == bool(said.skipped), row.id
        if said.step_time_s is None:
            continue
        assert 0 < said.step_time_s < 1e6, row.id
        assert said.family, row.id
        if row.tokens_per_step and row.n_accel:
            rate = row.tokens_per_step / said.step_time_s / row.n_accel
            assert said.tokens_per_s_per_device == pytest.approx(rate), row.id


def accepted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "planner/measurements/accepted.json").read_text(encoding="utf-8"))
    return found


def test_nothing_got_worse_than_accepted(rows: tuple[MeasuredRow, ...], predictions: list[Any]) -> None:
    now = {
        "step_time": family_errors(score_step_times(rows, predictions)),
        "peak_memory": family_errors(score_memory(rows, predictions)),
        "refused": refused(rows, predictions),
    }
    found = regressions(now, accepted())
    assert not found, "\n".join([*found, WAY_OUT])


def test_the_documented_errors_are_of_this_code() -> None:
    now = fingerprint()
    assert now == accepted()["fingerprint"], f"equations, constants or rows changed since they were accepted; {WAY_OUT}"
    page = (ROOT / "docs/validation.md").read_text(encoding="utf-8")
    assert re.findall(r"`([0-9a-f]{64})`", page) == [now], WAY_OUT
