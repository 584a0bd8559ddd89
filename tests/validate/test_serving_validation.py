"""Serving rows: predictions read what was run, never what came out; memory, floor and rules of what does not count."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.validate.evidence import regressions
from planner.validate.rows import shipped_left_out
from planner.validate.serving import NO_ROOM, ServingBatch, ServingPrediction, batch_of, predict_serving
from planner.validate.serving_entries import entries_of, memory_of
from planner.validate.serving_evidence import kind_errors, refused_rows
from planner.validate.serving_points import left_out_of, points_of
from planner.validate.serving_result import (
    BELOW_FLOOR,
    BELOW_IDEAL,
    WAITS,
    coverage_of,
    figures_of,
    lint,
    memory_fit,
    ran,
    said_of,
)
from planner.validate.serving_result import CANNOT_FIT as CANNOT
from planner.validate.serving_rows import (
    MEASURED,
    SERVING_TABLES,
    UNREAD,
    ServingRow,
    blank_serving,
    shipped_serving_rows,
)
from planner.validate.serving_score import score_points
from tests.tiers import cases

ROOT = Path(__file__).parents[2]
WAY_OUT = "if the change is meant: make calibrate validation, and commit what they write"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def rows() -> tuple[ServingRow, ...]:
    return shipped_serving_rows()


@pytest.fixture(scope="module")
def batch(rows: tuple[ServingRow, ...], catalog: Catalog) -> ServingBatch:
    return batch_of(entries_of(rows, catalog))


@pytest.fixture(scope="module")
def predictions(rows: tuple[ServingRow, ...], catalog: Catalog) -> list[ServingPrediction]:
    return predict_serving(rows, catalog)


# ---------------------------------------------------------------- the table


def test_shipped_rows_are_whole(rows: tuple[ServingRow, ...]) -> None:
    assert len(rows) == len({row.id for row in rows}) == 2696
    assert all(row.source and row.source_key and row.accelerator and row.scenario for row in rows)
    assert all(row.notes is None for row in rows)  # sentences are not copied
    assert all(ran(row) != bool(row.out_of_memory) for row in rows)
    assert sum(row.out_of_memory or 0 for row in rows) == 9
    assert sum(row.peak_mem_gb is not None for row in rows) == 62
    assert {row.trust for row in rows} == {None, "A", "B", "C"}


def test_each_load_is_recognised(rows: tuple[ServingRow, ...]) -> None:
    counts = {load: sum(row.load == load for row in rows) for load in {row.load for row in rows}}
    assert counts == {
        "closed": 808, "static": 555, "mlperf": 452, "offline": 340, "burst": 261, "single": 119, "peak": 96,
        "first": 48, "open": 17,
    }  # fmt: skip


def test_left_out_says_what_the_rules_say(rows: tuple[ServingRow, ...], batch: ServingBatch) -> None:
    listed = {name: why for (file, name), why in shipped_left_out().items() if file in SERVING_TABLES}
    assert listed == left_out_of(rows, points_of(rows, batch))


# ---------------------------------------------------------------- nothing measured is read


def test_blank_cells_change_no_prediction(
    rows: tuple[ServingRow, ...], predictions: list[ServingPrediction], catalog: Catalog
) -> None:
    some = slice(None, None, cases(3, 1))
    assert predict_serving([blank_serving(row) for row in rows[some]], catalog) == predictions[some]


def test_other_rows_cells_change_no_prediction(
    rows: tuple[ServingRow, ...], predictions: list[ServingPrediction], catalog: Catalog
) -> None:
    """Measured cells, notes and publications dealt out anew among the rows."""
    donors = list(rows)
    random.Random(3).shuffle(donors)
    names = (*MEASURED, *UNREAD)
    dealt = [dataclasses.replace(row, **{n: getattr(donor, n) for n in names}) for row, donor in zip(rows, donors)]
    assert dealt != list(rows)
    some = slice(None, None, cases(3, 1))
    assert predict_serving(dealt[some], catalog) == predictions[some]


def test_a_prediction_depends_on_its_row_alone(
    rows: tuple[ServingRow, ...], predictions: list[ServingPrediction], catalog: Catalog
) -> None:
    some = random.Random(5).sample(range(len(rows)), 40)
    for number, said in zip(some, predict_serving([rows[number] for number in some], catalog), strict=True):
        before = predictions[number]
        assert said.skipped == before.skipped
        for name in ("tpot_s", "ttft_s", "output_tokens_per_s", "batch_latency_s", "peak_memory_bytes"):
            value, expected = getattr(said, name), getattr(before, name)
            assert value == (None if expected is None else pytest.approx(expected, rel=1e-9)), rows[number].id


def test_every_prediction_is_whole_or_says_why_not(
    rows: tuple[ServingRow, ...], predictions: list[ServingPrediction]
) -> None:
    names = ("tpot_s", "ttft_s", "output_tokens_per_s", "batch_latency_s")
    for row, said in zip(rows, predictions, strict=True):
        found = [value for name in names if (value := getattr(said, name)) is not None]
        assert bool(found) != bool(said.skipped), row.id
        assert all(0 < value < 1e9 for value in found), row.id


# ---------------------------------------------------------------- memory


def test_memory_fit_and_coverage(rows: tuple[ServingRow, ...], predictions: list[ServingPrediction]) -> None:
    fit = memory_fit(rows, predictions)
    assert (fit.out_of_memory, fit.refused) == (9, 9)
    assert fit.fitting > 2600
    assert fit.accepted_share >= 0.95
    found = coverage_of(rows, predictions)
    assert found.rows == 2687
    assert found.share >= 0.99
    assert sum(map(len, found.refusals.values())) == found.rows - found.predicted


def test_a_batch_that_is_allocated_as_a_whole_is_refused_from_one_size_on(
    rows: tuple[ServingRow, ...], catalog: Catalog
) -> None:
    row = next(row for row in rows if row.id == "ft-GPT-20B-fa-tp1pp1-b64-200-200")
    sizes = [dataclasses.replace(row, concurrency=float(size)) for size in (1, 32, 64, 96, 128, 256)]
    answers = predict_serving(sizes, catalog)
    refused = [(said.skipped or "").startswith(NO_ROOM) for said in answers]
    assert refused == [False, False, False, True, True, True]
    assert "weights in fp16, cache in" in (answers[-1].skipped or "")  # by how much, and of which format
    paged = [dataclasses.replace(size, engine="vllm") for size in sizes]  # runs fewer at once instead
    assert not any(said.skipped for said in predict_serving(paged, catalog))


def test_printed_peak_memory_within_four_percent(rows: tuple[ServingRow, ...], batch: ServingBatch) -> None:
    errors = {}
    for entry in batch.entries:
        row = rows[entry.row]
        if row.peak_mem_gb is not None:
            errors[row.id] = memory_of(row, entry).peak_bytes / 1e9 / row.peak_mem_gb - 1
    assert len(errors) == 62
    outlier = "ft-GPT-1.3B-fa-tp1pp1-b1-128-8"  # 8.67 GB at batch 1, 5.39 GB at batch 2
    assert max(abs(error) for name, error in errors.items() if name != outlier) < 0.04


# ---------------------------------------------------------------- lint


def _odd(row: ServingRow, catalog: Catalog) -> set[str]:
    return {finding.kind for finding in lint([row], batch_of(entries_of([row], catalog)))}


def test_lint_of_a_measurement(rows: tuple[ServingRow, ...], catalog: Catalog) -> None:
    row = ServingRow(
        model="M", layers=32, hidden=4096, heads=32, kv_heads=8, ffn_hidden=14336, vocab=128256, engine="vllm",
        accelerator="H100-SXM", n_accel=1, tp=1, scenario="closed loop", input_tokens=1000.0, output_tokens=500.0,
        concurrency=16.0, ttft_ms=120.0, tpot_ms=9.0,
    )  # fmt: skip
    assert _odd(row, catalog) == set()
    # 8.03e9 parameters of two bytes, less the embedding: 15e9 B at 3.35e12 B/s are 4.5 ms
    assert _odd(dataclasses.replace(row, tpot_ms=4.4, concurrency=1.0), catalog) == {BELOW_FLOOR}
    assert _odd(dataclasses.replace(row, tpot_ms=5.0, concurrency=1.0), catalog) == set()
    # 32 prompts of 8,000 tokens are 4.1e15 FLOP, 4.2 s at 989 TFLOP/s: no cycle of 3 s holds them and 100 steps
    long = dataclasses.replace(row, input_tokens=8000.0, output_tokens=100.0, concurrency=32.0, weight_precision="bf16")
    assert _odd(dataclasses.replace(long, ttft_ms=1000.0, tpot_ms=20.0), catalog) == {BELOW_IDEAL}
    assert _odd(dataclasses.replace(long, ttft_ms=3000.0, tpot_ms=40.0), catalog) == set()
    assert _odd(dataclasses.replace(row, tpot_ms=90.0, concurrency=900.0), catalog) == {WAITS}
    assert _odd(dataclasses.replace(row, n_params_b=70.6, layers=80, hidden=8192, heads=64, ffn_hidden=28672,
                                    tpot_ms=60.0), catalog) == {CANNOT}  # fmt: skip
    blank = blank_serving(dataclasses.replace(row, concurrency=900.0))
    assert _odd(blank, catalog) == set()  # nothing measured, nothing odd
    latency = dataclasses.replace(row, scenario="static batch", ttft_ms=None, tpot_ms=None, e2e_latency_ms=2000.0)
    assert _odd(latency, catalog) == {BELOW_FLOOR}
    assert _odd(dataclasses.replace(latency, e2e_latency_ms=4000.0), catalog) == set()


def test_few_shipped_rows_are_below_the_floor(rows: tuple[ServingRow, ...], batch: ServingBatch) -> None:
    found = lint(rows, batch)
    below = {finding.name for finding in found if finding.kind == BELOW_FLOOR}
    other = {name for name in below if not name.startswith("gpustack-3")}  # one block: prompts found in a cache
    assert other == {"aic-1586", "aic-1587", "trt09-thr-A100-Mixtral-8x7B-2048-2048"}
    conserved = {finding.name for finding in found if finding.kind == BELOW_IDEAL}
    assert {"aic-0888", "gpustack-395", "gpustack-396"} <= conserved - below  # that the floor lets pass


# ---------------------------------------------------------------- the accepted state


def test_nothing_got_worse_than_accepted(
    rows: tuple[ServingRow, ...], predictions: list[ServingPrediction], batch: ServingBatch
) -> None:
    accepted: dict[str, Any] = json.loads((ROOT / "planner/measurements/accepted.json").read_text(encoding="utf-8"))
    points = figures_of(rows, batch)
    scored = score_points(points, [said_of(predictions, point) for point in points], batch.entries)
    now = {"serving": kind_errors(scored), "serving_refused": refused_rows(rows, predictions)}
    assert accepted["serving"], WAY_OUT
    found = regressions(now, accepted)
    assert not found, "\n".join([*found, WAY_OUT])


def test_a_figure_that_got_worse_is_found() -> None:
    then = {"serving": {"TPOT, closed loop": {"rows": 10, "mean": 0.1}}, "serving_refused": ["a"]}
    worse = {"serving": {"TPOT, closed loop": {"rows": 9, "mean": 0.2}}, "serving_refused": ["a", "b"]}
    assert regressions(then, then) == []
    assert len(regressions(worse, then)) == 3


def test_floor_holds_every_prediction(rows: tuple[ServingRow, ...], predictions: list[ServingPrediction]) -> None:
    static = [said for row, said in zip(rows, predictions) if row.load == "static" and said.tpot_s and said.floor_s]
    assert len(static) > 200
    assert all(np.array([said.tpot_s / said.floor_s for said in static]) >= 1)
