"""The fit of serving constants sees nothing of what a fold leaves out, and writes what the catalog reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from planner.calibrate import serving_fit
from planner.calibrate.calibration import same_constants
from planner.calibrate.serving import FOLDS, ServingHeldOut, calibrate_serving, calibration_of, hold_out, sample_of
from planner.calibrate.serving_fit import GROUPS, OFFSETS, fit_serving
from planner.catalog.fitted_constants import read_serving
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.reading import Problems
from planner.errors import InputError
from planner.estimate.serving_constants import ONE_CARD
from planner.validate.serving_points import Point
from planner.validate.serving_rows import SHIPPED_SERVING, ServingRow, shipped_serving_rows
from tests.tiers import cases


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that stops early: what is found matters less here than what was seen."""
    monkeypatch.setattr(serving_fit, "STEPS", cases(1, 3))


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


def seen(rows: list[ServingRow], catalog: Catalog, fold: str, most: int = 2) -> dict[object, bool]:
    """Of each key of a fold: whether its held-out predictions or deviations move when its own figures do."""
    found = {}
    before = held(rows, catalog, fold)
    keys = [FOLDS[fold][0](point) for point in before.sample.points]
    for key in list(dict.fromkeys(keys))[:most]:
        together = before.fold == before.fold[keys.index(key)]
        names = {point.row.name for point, own in zip(before.sample.points, together, strict=True) if own}
        after = held(doubled(rows, lambda row, names=names: row.name in names), catalog, fold)
        found[key] = not (
            np.array_equal(before.log_predicted[together], after.log_predicted[together])
            and np.array_equal(before.deviation[together], after.deviation[together])
        )
        assert not np.allclose(before.log_predicted[~together], after.log_predicted[~together])
    return found


def held(rows: list[ServingRow], catalog: Catalog, fold: str) -> ServingHeldOut:
    sample = sample_of(rows, catalog)
    assert sample is not None
    return hold_out(sample, fold, source="a test", as_of="2026-11-21")


def only(fold: str, monkeypatch: pytest.MonkeyPatch, key: Callable[[Point], object] | None = None) -> None:
    """A fold with a key of its own, where one is given, in three parts."""
    own, _ = FOLDS[fold]
    monkeypatch.setattr("planner.calibrate.serving.FOLDS", {fold: (key or own, 3)})


@pytest.mark.parametrize("fold", ["campaign", "device"])
def test_what_is_left_out_is_not_seen(
    rows: list[ServingRow], catalog: Catalog, monkeypatch: pytest.MonkeyPatch, fold: str
) -> None:
    only(fold, monkeypatch)
    found = seen(rows, catalog, fold, cases(1, 3))
    assert found
    assert not any(found.values()), found


def test_a_planted_leak_is_caught(rows: list[ServingRow], catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that have seen all rows tell what is left out as well."""
    only("device", monkeypatch)
    sample = sample_of(rows, catalog)
    assert sample is not None
    monkeypatch.setattr("planner.calibrate.serving.fit_serving", lambda _: fit_serving(sample))
    monkeypatch.setattr("planner.calibrate.serving.calibration_of", lambda _, *more, **all_: calibration_of(
        sample, *more, **all_))  # fmt: skip
    before = held(rows, catalog, "device")
    sample = sample_of(doubled(rows, lambda row: row.accel_class == rows[0].accel_class), catalog)
    after = held(rows, catalog, "device")
    mine = np.array([point.row.accel_class == rows[0].accel_class for point in before.sample.points])
    assert not np.allclose(before.log_predicted[mine], after.log_predicted[mine])


def test_a_campaign_is_a_publication_a_release_and_a_model(rows: list[ServingRow], catalog: Catalog) -> None:
    found = held(rows, catalog, "campaign")
    campaigns: dict[object, set[int]] = {}
    for point, number in zip(found.sample.points, found.fold, strict=True):
        campaigns.setdefault(point.campaign, set()).add(int(number))
    assert len(campaigns) > 3
    assert all(len(numbers) == 1 for numbers in campaigns.values())


def test_bands_take_their_scores_from_other_folds(rows: list[ServingRow], catalog: Catalog) -> None:
    """Errors of a fold ten times as large leave its own bands as they are and widen those of the others."""
    found = held(rows, catalog, "campaign")
    found = dataclasses.replace(found, fold=np.arange(len(found.sample)) % 2)
    off = dataclasses.replace(found, log_predicted=np.where(found.fold == 0, 9.0, 0.0) + found.log_predicted)
    with_few = pytest.MonkeyPatch()
    with_few.setattr("planner.calibrate.serving.FEWEST_CAMPAIGNS", 1)
    before, after = found.judged(), off.judged()
    with_few.undo()
    mine = found.fold == 0
    assert np.array_equal(before.low[mine], after.low[mine])
    assert (after.low[~mine] < before.low[~mine] - 1.0).any()


def test_the_fit_is_the_same_when_every_figure_moves_by_a_last_bit(rows: list[ServingRow], catalog: Catalog) -> None:
    sample = sample_of(rows, catalog)
    assert sample is not None

    def nudged(row: ServingRow) -> ServingRow:
        tpot, ttft = row.tpot_ms, row.ttft_ms
        return dataclasses.replace(
            row,
            tpot_ms=tpot and float(np.nextafter(tpot, 0.0)),
            ttft_ms=ttft and float(np.nextafter(ttft, np.inf)),
        )

    moved = [nudged(row) for row in rows]
    other = sample_of(moved, catalog)
    assert other is not None
    for one, two in zip(
        fit_serving(sample).coefficients.values(), fit_serving(other).coefficients.values(), strict=True
    ):
        assert one == pytest.approx(two, rel=1e-6, abs=1e-9)


def test_an_engine_that_is_slower_in_every_row_is_found_to_be(rows: list[ServingRow], catalog: Catalog) -> None:
    """Twice the times of one engine move its own factors, those of the others hardly."""
    engine = "vllm"
    sample, slower = (
        sample_of(some, catalog) for some in (rows, doubled(rows, lambda row: (row.engine or "") == engine))
    )
    assert sample is not None
    assert slower is not None
    before, after = fit_serving(sample), fit_serving(slower)
    assert after.value("engine", engine) > before.value("engine", engine) + 0.02
    for other in {"sglang", "trt-llm"} & set(sample.labels.engine):
        gain = after.value("engine", engine) - before.value("engine", engine)
        assert abs(after.value("engine", other) - before.value("engine", other)) < gain


def test_the_file_is_what_the_catalog_reads(rows: list[ServingRow], catalog: Catalog, tmp_path: Path) -> None:
    found = calibrate_serving(rows, catalog, source="a test", as_of="2026-11-21")
    path = tmp_path / "serving.yaml"
    path.write_text(found.to_yaml(), encoding="utf-8")
    problems = Problems()
    read = read_serving(path, problems)
    assert not list(problems)
    assert read is not None
    assert read.common == pytest.approx(dict(found.found.common), rel=1e-4)
    assert set(read.bands) == set(OFFSETS)
    for level, traits in found.found.traits.items():
        assert set(read.traits.get(level, {})) == set(traits)
        for name, trait in traits.items():
            assert read.traits[level][name].factors == pytest.approx(dict(trait.factors), rel=1e-4)
            assert read.traits[level][name].rows == trait.rows
    for kind, group in read.bands.items():
        for name, spread in group.items():
            assert spread.spread == pytest.approx(found.found.bands[kind][name].spread, rel=1e-4)
            assert spread.scores[0] < spread.scores[2]
    assert read.provenance.source == "a test"


def test_nothing_to_fit(catalog: Catalog) -> None:
    row = ServingRow(model="M", accelerator="H100-SXM", n_accel=1, scenario="closed loop")
    with pytest.raises(InputError, match="no row of the table can be fitted"):
        calibrate_serving([row], catalog, source="a test", as_of="2026-11-21")


def test_shipped_constants_cover_every_engine_and_family_of_the_rows(catalog: Catalog) -> None:
    assert catalog.serving is not None
    assert {"vllm", "sglang", "trt-llm", "fastertransformer", "llama.cpp"} <= set(catalog.serving.traits["engine"])
    assert {"ampere", "hopper", "blackwell", "ada"} <= set(catalog.serving.traits["family"])
    assert catalog.serving.provenance.source == SHIPPED_SERVING


def test_nothing_is_expected_of_one_engine_or_device_and_not_of_another() -> None:
    """Every factor begins at one: what an engine is known for is learnt from rows, inside the fold."""
    engines = {"vllm", "sglang", "trt", "fastertransformer", "neuron", "hopper", "ampere", "blackwell"}
    assert not engines & {word for group in GROUPS for word in group.split()}
    assert ONE_CARD == ("llama.cpp", "mlc-llm")


@pytest.mark.parametrize(
    ("found", "same"),
    [
        ("dense: {p10: -0.94564, rows: 12}", True),
        ("dense: {p10: -0.94563, rows: 12}", True),
        ("dense: {p10: -0.94562, rows: 12}", False),
        ("dense: {p10: 0.94564, rows: 12}", False),
        ("dense: {p10: -0.94564, rows: 14}", False),
        ("moe: {p10: -0.94564, rows: 12}", False),
        ("dense: {p10: -0.94564}", False),
        ("dense: {p10: -0.945640, rows: 12}", True),
        ("dense: {p10: -0.945641, rows: 12}", False),
    ],
)
def test_constants_are_stale_by_more_than_a_last_digit(found: str, same: bool) -> None:
    """A quantile half-way between two digits was another one beside other folds, and nobody could make the page."""
    assert same_constants(found, "dense: {p10: -0.94564, rows: 12}") == same
