"""The fit of serving constants sees nothing of what a fold leaves out, and writes what the catalog reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from planner.calibrate import serving_fit
from planner.calibrate.serving import FOLDS, calibrate_serving
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.reading import Problems
from planner.catalog.serving_calibration import read_serving
from planner.errors import InputError
from planner.validate.serving_points import Point
from planner.validate.serving_rows import ServingRow, shipped_serving_rows
from tests.tiers import cases, sampled


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that stops early: what is found matters less here than what was seen."""
    monkeypatch.setattr(serving_fit, "_ROUNDS", cases(1, 3))


@pytest.fixture(scope="module")
def rows() -> list[ServingRow]:
    """A dozen dense rows of closed loops and MLPerf: two publications, three devices, three models."""
    chosen: dict[tuple[object, ...], list[ServingRow]] = {}
    for row in shipped_serving_rows():
        if row.load in ("closed", "mlperf") and not row.n_experts and row.accel_class in ("H100-SXM", "B200", "L40S"):
            mine = chosen.setdefault((row.source_key, row.accel_class, row.hidden), [])
            if len(mine) < 2:
                mine.append(row)
    return [row for mine in chosen.values() for row in mine]


def doubled(rows: list[ServingRow], which: Callable[[ServingRow], bool]) -> list[ServingRow]:
    """The same rows, with every measured figure of some of them twice as large."""
    names = ("tpot_ms", "ttft_ms", "output_tokens_per_s_total")

    def twice(row: ServingRow) -> ServingRow:
        found = {name: 2 * value for name in names if (value := getattr(row, name)) is not None}
        return dataclasses.replace(row, **found)

    return [twice(row) if which(row) else row for row in rows]


def seen(rows: list[ServingRow], catalog: Catalog, fold: str, most: int = 3) -> dict[object, bool]:
    """Of each key of a fold: whether its held-out predictions move when its own measured figures do."""
    found = {}
    before = calibrate_serving(rows, catalog, source="a test", as_of="2026-11-21")
    keys = [FOLDS[fold](point) for point in before.points]
    for key in list(dict.fromkeys(keys))[:most]:
        names = {point.row.name for point, own in zip(before.points, keys, strict=True) if own == key}
        after = calibrate_serving(
            doubled(rows, lambda row, names=names: row.name in names),
            catalog, source="a test", as_of="2026-11-21",
        )  # fmt: skip
        mine = np.array([own == key for own in keys])
        found[key] = not np.array_equal(before.held_out[fold][mine], after.held_out[fold][mine], equal_nan=True)
        others = ~mine
        assert not np.allclose(before.held_out[fold][others], after.held_out[fold][others], equal_nan=True)
    return found


def only(fold: str, monkeypatch: pytest.MonkeyPatch, key: Callable[[Point], object] | None = None) -> None:
    """One fold, to save time; with a key of its own where one is given."""
    whole = dict(FOLDS)
    monkeypatch.setattr("planner.calibrate.serving.FOLDS", {fold: key or whole[fold]})


@pytest.mark.parametrize("fold", sampled(["model", "device", "source"], 1))
def test_what_is_left_out_is_not_seen(
    rows: list[ServingRow], catalog: Catalog, monkeypatch: pytest.MonkeyPatch, fold: str
) -> None:
    only(fold, monkeypatch)
    found = seen(rows, catalog, fold, cases(2, 3))
    assert len(found) >= 2
    assert not any(found.values()), found


def test_a_planted_leak_is_caught(rows: list[ServingRow], catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that leaves out every third row shows the fit the other rows of the device."""
    only("device", monkeypatch, lambda point: point.position % 3)
    assert all(seen(rows, catalog, "device", 1).values())


def test_the_file_is_what_the_catalog_reads(rows: list[ServingRow], catalog: Catalog, tmp_path: Path) -> None:
    whole = [row for row in shipped_serving_rows() if row.load == "offline" and row.n_params_b == 8.03][:4]
    found = calibrate_serving([*rows, *whole], catalog, source="a test", as_of="2026-11-21")
    path = tmp_path / "serving.yaml"
    path.write_text(found.to_yaml(), encoding="utf-8")
    problems = Problems()
    read = read_serving(path, problems)
    assert not problems
    assert read is not None
    assert read.common == pytest.approx(dict(found.factors.common), rel=1e-4)
    assert set(read.bands) == {"tpot", "ttft", "throughput"}
    for group in read.bands.values():
        assert group["all"].p10 <= group["all"].p50 <= group["all"].p90
    assert read.provenance.source == "a test"


def test_nothing_to_fit(catalog: Catalog) -> None:
    row = ServingRow(model="M", accelerator="H100-SXM", n_accel=1, scenario="closed loop")
    with pytest.raises(InputError, match="no row of the table can be fitted"):
        calibrate_serving([row], catalog, source="a test", as_of="2026-11-21")


def test_shipped_constants_cover_every_engine_and_family_of_the_rows(catalog: Catalog) -> None:
    assert catalog.serving is not None
    assert {"vllm", "sglang", "trt-llm", "fastertransformer", "llama.cpp"} <= set(catalog.serving.engines)
    assert {"ampere", "hopper", "blackwell", "ada"} <= set(catalog.serving.families)
    assert catalog.serving.provenance.source == "planner/measurements/serving.csv"
