"""The fit finds constants that made the data, sees nothing of what it leaves out, and writes what the catalog reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.calibrate.crossval import _single_source_kinds, hold_out
from planner.calibrate.fit import Sample, constants_at, fit, flattened
from planner.calibrate.inherit import HEIRS
from planner.calibrate.priors import PRIORS
from planner.calibrate.result import Calibration
from planner.calibrate.training import Point, fit_constants, identifiability, points_of, priors, sample_of
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.reading import Problems
from planner.catalog.training_calibration import read_training
from planner.estimate.constants import NAMES, StepConstants
from planner.validate.rows import shipped_training_rows


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def points(catalog: Catalog) -> list[Point]:
    """Two dozen rows of the A100 from four sources."""
    every = [point for point in points_of(shipped_training_rows(), catalog) if point.family == "ampere"]
    chosen: dict[str, list[Point]] = {}
    for point in every:
        mine = chosen.setdefault(point.source, [])
        if len(mine) < 8:
            mine.append(point)
    return [point for mine in list(chosen.values())[:4] for point in mine]


@pytest.fixture(scope="module")
def constants(points: list[Point], catalog: Catalog) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        stop_early(patch)
        return fit_constants(points, catalog)


@pytest.fixture(scope="module")
def held_out(points: list[Point], constants: Any, catalog: Catalog) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        stop_early(patch)
        return hold_out(points, constants, catalog, lambda _: None)


def stop_early(patch: pytest.MonkeyPatch) -> None:
    """A search for constants that ends soon: what it saw matters more here than what it finds."""
    patch.setattr("planner.calibrate.fit._EVALUATIONS", 60)


def made_by(points: list[Point], catalog: Catalog, **constants: float) -> list[Point]:
    """The points with the times that given constants make."""
    own = StepConstants(**{**priors("ampere", catalog), **constants})
    times = sample_of(points, catalog).batch.predict(own, {}).total
    return [replace(point, measured_s=float(seconds)) for point, seconds in zip(points, times, strict=True)]


def test_every_constant_has_a_prior_and_a_meaning() -> None:
    assert set(PRIORS) == set(NAMES)
    assert all(prior.meaning and prior.spread > 0 and prior.value <= prior.most for prior in PRIORS.values())


def test_the_fit_finds_the_constants_that_made_the_data(points: list[Point], catalog: Catalog) -> None:
    sample = sample_of(made_by(points, catalog, gemm=0.62, attention=0.9), catalog)
    found = fit(sample, ("gemm", "attention"), priors("ampere", catalog), {})
    assert found["gemm"] == pytest.approx(0.62, rel=0.03)
    assert found["attention"] == pytest.approx(0.9, rel=0.06)


def test_few_rows_stay_near_the_prior(points: list[Point], catalog: Catalog) -> None:
    far = made_by(points, catalog, gemm=0.5)
    many = fit(sample_of(far, catalog), ("gemm",), priors("ampere", catalog), {})["gemm"]
    one = fit(sample_of(far[:1], catalog), ("gemm",), priors("ampere", catalog), {})["gemm"]
    assert many < one < priors("ampere", catalog)["gemm"]


def test_a_long_table_does_not_decide_alone(points: list[Point], catalog: Catalog) -> None:
    """Three times as many rows of one source count less than twice, and other sources still move the fit."""
    sources = list(dict.fromkeys(point.source for point in points))
    own = made_by([p for p in points if p.source == sources[0]], catalog, gemm=0.60)
    other = made_by([p for p in points if p.source == sources[1]], catalog, gemm=0.85)
    even = fit(sample_of(own + other[:4], catalog), ("gemm",), priors("ampere", catalog), {})["gemm"]
    assert 0.60 < even < 0.85


def test_a_source_that_is_all_off_counts_less_and_less() -> None:
    small, large = flattened(np.array([0.02, 0.04])), flattened(np.array([0.2, 0.4]))
    assert small[1] / small[0] > 1.7
    assert large[1] / large[0] < 1.7
    assert small[0] == pytest.approx(0.02, rel=0.15)


def test_constants_never_exceed_what_makes_sense(catalog: Catalog) -> None:
    assert constants_at(np.array([5.0]), ("gemm",), priors("ampere", catalog)).gemm == PRIORS["gemm"].most


def test_products_are_expected_near_the_best_one_measured(catalog: Catalog) -> None:
    best = 271.2e12 / 312e12  # A100, stas00/ml-engineering
    assert priors("ampere", catalog)["gemm"] == pytest.approx(0.9 * best, rel=1e-3)
    assert priors("tpu-v5e", catalog)["gemm"] == PRIORS["gemm"].value


def test_a_prediction_that_is_no_number_costs_but_does_not_break(points: list[Point], catalog: Catalog) -> None:
    sample = sample_of(points[:2], catalog)
    broken = Sample(batch=sample.batch, measured_s=np.array([np.nan, 1.0]), sources=sample.sources)
    assert np.isfinite(broken.loss(StepConstants(), {}))


def test_what_is_left_out_is_not_seen(
    points: list[Point], held_out: Any, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doubling the measured times of a source changes nothing in what is predicted for that source."""
    stop_early(monkeypatch)
    source = points[0].source
    doubled = [replace(p, measured_s=2 * p.measured_s) if p.source == source else p for p in points]
    before = held_out
    after = hold_out(doubled, fit_constants(doubled, catalog), catalog, lambda _: None)
    mine = np.array([point.source == source for point in points])
    assert after.predicted_s[mine] == pytest.approx(before.predicted_s[mine], rel=1e-12)
    assert not np.allclose(after.predicted_s[~mine], before.predicted_s[~mine], rtol=1e-6)


def test_a_kind_of_one_source_is_left_out_by_model(
    points: list[Point], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_early(monkeypatch)
    own = [point for point in points if point.source == points[0].source]
    models = {point.model for point in own}
    assert len(models) > 1
    first = own[0].model
    doubled = [replace(p, measured_s=2 * p.measured_s) if p.model == first else p for p in own]
    before = hold_out(own, fit_constants(own, catalog), catalog, lambda _: None)
    after = hold_out(doubled, fit_constants(doubled, catalog), catalog, lambda _: None)
    mine = np.array([point.model == first for point in own])
    assert after.predicted_s[mine] == pytest.approx(before.predicted_s[mine], rel=1e-12)


def test_rows_mind_what_they_decide_only(points: list[Point], constants: Any, catalog: Catalog) -> None:
    mind = identifiability(points, constants, catalog)["ampere"]
    assert mind["gemm"] > 0.003
    assert "experts" not in mind


def test_the_file_is_what_the_catalog_reads(
    points: list[Point], constants: Any, held_out: Any, catalog: Catalog, tmp_path: Path
) -> None:
    calibration = Calibration(
        constants=constants,
        held_out=held_out,
        memory=catalog.training_families["ampere"].memory_band,
        others={"hopper": catalog.training_families["hopper"]},
        mind={},
        source="a test",
        as_of="2026-11-21",
    )
    file = tmp_path / "training.yaml"
    file.write_text(calibration.to_yaml())
    problems = Problems()
    families, _ = read_training(file, problems)
    assert not problems
    own = families["ampere"]
    assert own.constants["gemm"] == pytest.approx(constants.families["ampere"]["gemm"], rel=1e-4)
    assert own.time_band.rows == len(points)
    assert own.time_band.p10 <= own.time_band.p50 <= own.time_band.p90
    assert families["hopper"].constants == catalog.training_families["hopper"].constants
    assert families["turing"].inherited_from == "ampere"
    wide, near = families["turing"].time_band, own.time_band
    assert wide.p90 / wide.p10 > near.p90 / near.p10
    assert "gemm" in calibration.report() or calibration.report()


def test_every_device_family_has_constants(catalog: Catalog) -> None:
    fitted = {name for name, own in catalog.training_families.items() if not own.inherited_from}
    assert fitted | set(HEIRS) == set(catalog.training_families)


def loss_of(errors: list[tuple[str, float]]) -> float:
    """The loss of predictions that are off by a logarithm each, by source."""
    ratio = np.exp([error for _, error in errors])
    batch: Any = SimpleNamespace(predict=lambda *_: SimpleNamespace(total=ratio))
    sources = tuple(source for source, _ in errors)
    return Sample(batch=batch, measured_s=np.ones(len(errors)), sources=sources).loss(StepConstants(), {})


def test_a_source_weighs_by_the_root_of_its_rows() -> None:
    """Nine rows of one source that are off by 0.1 and one of another that is off by 0.3: three parts and one."""
    own, other = (float(flattened(np.array([error]))[0]) for error in (0.1, 0.3))
    mixed = [*[("a", 0.1)] * 9, ("b", -0.3)]
    assert loss_of(mixed) == pytest.approx((3 * own + other) / 4)
    assert loss_of(mixed[::-1]) == pytest.approx(loss_of(mixed))
    assert loss_of([("a", 0.1)] * 4) == pytest.approx(own)


def test_a_kind_of_two_sources_is_held_out_by_source() -> None:
    def point(family: str, experts: bool, source: str) -> Any:
        return SimpleNamespace(family=family, row=SimpleNamespace(is_moe=experts), source=source)

    points = [
        point("one", False, "a"), point("one", False, "a"), point("one", True, "a"), point("one", True, "b"),
        point("two", False, "a"), point("two", False, "b"), point("two", False, "c"),
    ]  # fmt: skip
    assert _single_source_kinds(points) == {("one", False)}
