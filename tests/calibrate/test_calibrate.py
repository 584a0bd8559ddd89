"""The fit finds constants that made the data, sees nothing of what it leaves out, and writes what the catalog reads."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.calibrate import training, training_effects
from planner.calibrate.calibration import BANDS, Calibration, band_of_spread
from planner.calibrate.mixed_model import Grouping, Rows, Variances, better_variances, solve, tail_weights
from planner.calibrate.training import (
    Corner,
    HeldOut,
    Point,
    beyond,
    fit_constants,
    hold_out,
    points_of,
    power_beyond,
    priors,
    sample_of,
)
from planner.calibrate.training_effects import (
    BAND_NORMAL,
    EFFECTS,
    HEIRS,
    KINDS,
    MODEL_OFFSET,
    OF_A_SITE,
    PRIORS,
    SCATTER,
    SOURCE_OFFSET,
    constants_of,
    fit_effects,
    log_time,
)
from planner.catalog.fitted_constants import read_training
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.reading import Problems
from planner.estimate.constants import NAMES
from planner.validate.judgement import Fold, Judged, source_folds, weights_of
from planner.validate.rows import shipped_training_rows


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def points(catalog: Catalog) -> list[Point]:
    """Some three dozen rows of the A100 from five sources."""
    rows = [row for row in shipped_training_rows() if row.family == "A100" and row.kind == "dense"]
    chosen: dict[str, list[Point]] = {}
    for point in points_of(rows, catalog):
        mine = chosen.setdefault(point.source, [])
        if len(mine) < 8:
            mine.append(point)
    return [point for mine in list(chosen.values())[:5] for point in mine]


def made_by(points: list[Point], catalog: Catalog, **moved: float) -> list[Point]:
    """The points with the times that constants make which are moved by a logarithm each."""
    sample = sample_of(points, catalog)
    offsets = {name: np.full(len(points), moved.get(name, 0.0)) for name in NAMES}
    times = np.exp(log_time(sample, offsets, np.zeros(len(points))))
    return [replace(point, measured_s=float(seconds)) for point, seconds in zip(points, times, strict=True)]


def test_every_constant_has_a_prior_and_a_meaning() -> None:
    assert set(PRIORS) == set(NAMES)
    assert all(prior.meaning and prior.spread > 0 and prior.value <= prior.most for prior in PRIORS.values())
    assert set(KINDS) == set(SOURCE_OFFSET) == set(MODEL_OFFSET) == set(SCATTER)
    assert all(0 < spread <= 0.5 for spread in EFFECTS.values())


def test_the_fit_finds_the_constants_that_made_the_data(points: list[Point], catalog: Catalog) -> None:
    made = made_by(points, catalog, gemm=-0.12, memory=-0.1)
    found = fit_constants(made, catalog)
    log_s, _ = found.predict(made, catalog)
    assert np.max(np.abs(log_s - np.log([point.measured_s for point in made]))) < 0.03
    assert found.of_family("ampere", catalog)["gemm"] < priors("ampere", catalog)["gemm"]


def test_few_rows_stay_near_the_prior(points: list[Point], catalog: Catalog) -> None:
    far = made_by(points, catalog, gemm=-0.4)
    start = priors("ampere", catalog)["gemm"]
    many, one = (fit_constants(part, catalog).of_family("ampere", catalog)["gemm"] for part in (far, far[:1]))
    assert many < one < start


def test_a_source_that_is_all_off_is_an_offset(points: list[Point], catalog: Catalog) -> None:
    """One source half as slow again moves its own offset and machines, and what is predicted of others little."""
    source = points[0].source
    made = made_by(points, catalog)
    slow = [replace(p, measured_s=1.5 * p.measured_s) if p.source == source else p for p in made]
    found = fit_constants(slow, catalog).effects
    own = next(value for name, value in found.sources.items() if name[0] == source)  # type: ignore[index]
    others = [value for name, value in found.sources.items() if name[0] != source]  # type: ignore[index]
    assert own > 0.08
    assert own > 3 * max(abs(value) for value in others)
    rest = [point for point in made if point.source != source]
    log_s, _ = fit_constants(slow, catalog).predict(rest, catalog)
    assert np.max(np.abs(log_s - np.log([point.measured_s for point in rest]))) < 0.15


def test_a_source_with_slow_attention_tells_of_its_own_builds(points: list[Point], catalog: Catalog) -> None:
    """Rows of one source made with slow attention move its own constant, that of its family less than half as far."""
    source = points[0].source
    fast, slow = made_by(points, catalog), made_by(points, catalog, attention=-0.6)
    mixed = [s if s.source == source else f for f, s in zip(fast, slow, strict=True)]
    before, after = (fit_constants(made, catalog).effects for made in (fast, mixed))
    name = next(name for name in after.coefficients if name[0] == "site attention" and name[1].startswith(source))
    own = after.value(*name) - before.value(*name)
    shared = sum(after.value(who, "attention") - before.value(who, "attention") for who in ("all", "ampere"))
    assert own < -0.2
    assert abs(shared) < 0.5 * abs(own)
    assert set(after.deviations) == {f"site {constant}" for constant in OF_A_SITE}


def test_what_is_predicted_is_a_new_source(points: list[Point], catalog: Catalog) -> None:
    """The machines of a source that the fit knows lend nothing to its predictions, and a new one's widen the band."""
    found = fit_constants(points, catalog)
    strange = [replace(p, row=replace(p.row, source_key="someone else")) for p in points]
    known, unknown = found.predict(points, catalog), found.predict(strange, catalog)
    assert unknown[0] == pytest.approx(known[0], abs=1e-12)
    assert unknown[1] == pytest.approx(known[1], abs=1e-12)
    certain = replace(found.effects, deviations=dict.fromkeys(found.effects.deviations, 1e-6))
    assert (replace(found, effects=certain).predict(points, catalog)[1] < known[1]).all()


def test_constants_never_exceed_what_makes_sense(catalog: Catalog) -> None:
    start = {name: np.asarray(value) for name, value in priors("ampere", catalog).items()}
    moved = {name: np.asarray(5.0 if name == "gemm" else 0.0) for name in NAMES}
    found = constants_of(start, moved)
    assert 0.94 < float(found.gemm) < PRIORS["gemm"].most
    assert float(found.memory) == pytest.approx(PRIORS["memory"].value)


def test_products_are_expected_near_the_best_one_measured(catalog: Catalog) -> None:
    best = 271.2e12 / 312e12  # A100, stas00/ml-engineering
    assert priors("ampere", catalog)["gemm"] == pytest.approx(0.9 * best, rel=1e-3)
    assert priors("tpu-v5e", catalog)["gemm"] == PRIORS["gemm"].value


def one_band(error: float) -> Judged:
    """Errors of ten rows, all as large."""
    ones = np.ones(10)
    return Judged(error=error * ones, low=-0.1 * ones, high=0.1 * ones, weight=ones, cluster=(0,) * 10,
                  group=("A100 dense 16bit",) * 10)  # fmt: skip


def test_rows_beyond_others_are_predicted_by_a_fit_that_has_seen_none_of_them(
    points: list[Point], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of another source above the size change the prediction of those that know them, and of no other."""
    monkeypatch.setattr(training, "CORNERS", [Corner("devices above", "many", lambda point: _devices(point) > 8)])
    large = np.array([_devices(point) > 8 for point in points])
    assert len({point.source for point, is_large in zip(points, large, strict=True) if is_large}) > 1
    first = next(point.source for point, is_large in zip(points, large, strict=True) if is_large)
    slower = [
        replace(point, measured_s=3 * point.measured_s) if is_large and point.source != first else point
        for point, is_large in zip(points, large, strict=True)
    ]
    found = []
    for part in (points, slower):
        known = hold_out(part, source_folds(part), catalog)
        ((seen, unseen),) = beyond(known, catalog).values()
        assert len(seen.error) == len(unseen.error) == large.sum()
        mine = np.array([cluster[0] == first for cluster in seen.cluster])
        found.append((seen.error[mine], unseen.error[mine]))
    (seen, unseen), (other_seen, other_unseen) = found
    assert unseen == pytest.approx(other_unseen, rel=1e-9)
    assert not np.allclose(seen, other_seen, rtol=1e-3)
    assert power_beyond(one_band(0.1), one_band(0.15)) == pytest.approx(1.5)
    assert power_beyond(one_band(0.1), one_band(0.05)) == 1.0


def _devices(point: Point) -> int:
    return point.row.n_accel or 1


def test_what_is_left_out_is_not_seen(points: list[Point], catalog: Catalog) -> None:
    """Doubling the measured times of a source changes nothing in what is predicted for that source, nor in its band."""
    source = points[0].source
    doubled = [replace(p, measured_s=2 * p.measured_s) if p.source == source else p for p in points]
    mine = np.array([point.source == source for point in points])
    fold = [Fold(name=source, judged=mine, out=mine)]
    before, after = (hold_out(part, fold, catalog) for part in (points, doubled))
    assert after.predicted_s[mine] == pytest.approx(before.predicted_s[mine], rel=1e-12)
    assert after.spread[mine] == pytest.approx(before.spread[mine], rel=1e-12)
    whole = fit_constants(points, catalog).predict(points, catalog)[0]
    assert not np.allclose(whole, fit_constants(doubled, catalog).predict(points, catalog)[0], rtol=1e-3)


def test_bands_hold_four_fifths_and_no_source_says_how_wide_its_own_are(points: list[Point]) -> None:
    """Errors twice as far as the spread says make bands twice as wide, but for the source whose errors they are."""
    seen = np.linspace(0.05, 0.5, len(points))
    measured = np.array([point.measured_s for point in points])
    held = HeldOut(points=tuple(points), predicted_s=measured * np.exp(seen), spread=np.full(len(points), 0.1))
    inside = np.abs(seen) <= BAND_NORMAL * 0.1 * held.stretch
    assert np.average(inside, weights=weights_of(points)) == pytest.approx(0.8, abs=1.5 / len(points))
    mine = np.array([point.source == points[0].source for point in points])
    worse = replace(held, predicted_s=np.where(mine, measured * np.exp(5.0 * seen), held.predicted_s))
    assert worse.stretches()[mine] == pytest.approx(held.stretches()[mine])
    assert (worse.stretches()[~mine] > held.stretches()[~mine]).all()
    assert worse.judged().high == pytest.approx(BAND_NORMAL * 0.1 * worse.stretches())


def test_a_device_or_a_family_without_rows_has_a_wider_band(points: list[Point], catalog: Catalog) -> None:
    found = fit_constants(points, catalog)
    _, known = found.predict(points, catalog)
    _, another = found.predict(points, catalog, another=True)
    _, stranger = found.predict(points, catalog, family="turing", another=True)
    assert np.all(known < another)
    assert np.all(another < stranger)


@pytest.fixture(scope="module")
def of_aws(catalog: Catalog) -> list[Point]:
    """Rows of Trainium1, of one source."""
    return [point for point in points_of(shipped_training_rows(), catalog) if point.family == "neuron-v2"]


def test_software_of_another_vendor_moves_its_devices_and_widens_those_of_vendors_without_rows(
    points: list[Point], of_aws: list[Point], catalog: Catalog
) -> None:
    """Trainium1 1.65 times as slow as expected: so are its vendor's devices, less so those of vendors without rows.

    What is known of another's software says nothing of devices of the vendor whose rows all others are.
    """
    made = made_by(of_aws, catalog)
    slow = [replace(point, measured_s=1.65 * point.measured_s) for point in made]
    usual, found = (
        fit_constants(sorted([*points, *some], key=lambda point: point.family), catalog) for some in (made, slow)
    )

    def slower(family: str) -> tuple[float, float]:
        """By how much in the logarithm, and how much wider the band is."""
        (before, near), (after, far) = (one.predict(of_aws, catalog, family=family) for one in (usual, found))
        return float(np.mean(after - before)), float(np.mean(far) / np.mean(near))

    log_s, wider = zip(*(slower(family) for family in ("neuron-v2", "neuron-v3", "gaudi3", "volta")))
    assert log_s[0] > 0.3  # of the 0.5 that its rows are slower
    assert log_s[0] > log_s[1] > log_s[2] > 0.05
    assert log_s[1] > 0.6 * log_s[0]
    assert abs(log_s[3]) < 0.5 * log_s[2]
    assert min(wider[1:3]) > 1.02
    for family in ("neuron-v2", "neuron-v3", "gaudi3"):  # and so says the work that is written
        assert found.work_of(family) > 1.05 * usual.work_of(family)
    assert found.work_of("volta") == usual.work_of("ampere") == 1.0


def test_the_same_rows_perturbed_by_a_last_bit_give_the_same_constants(points: list[Point], catalog: Catalog) -> None:
    nudged = [replace(p, measured_s=math.nextafter(p.measured_s, math.inf if i % 2 else 0.0))
              for i, p in enumerate(points)]  # fmt: skip
    one, other = (fit_constants(part, catalog).of_family("ampere", catalog) for part in (points, nudged))
    assert one == pytest.approx(other, rel=1e-7)


def test_the_file_is_what_the_catalog_reads(points: list[Point], catalog: Catalog, tmp_path: Path) -> None:
    constants, folds = fit_constants(points, catalog), source_folds(points)
    calibration = Calibration(
        constants=constants,
        held_out=hold_out(points, folds, catalog),
        memory=band_of_spread(0.1, rows=9, sources=2),
        tuning_memory=band_of_spread(0.2, rows=3, sources=1),
        corners={"devices above": (one_band(0.1), one_band(0.15)), "pp above": (one_band(0.1), one_band(0.05))},
        others={"hopper": catalog.training_families["hopper"]},
        catalog=catalog,
        source="a test",
        as_of="2026-11-21",
    )
    file = tmp_path / "training.yaml"
    file.write_text(calibration.to_yaml())
    problems = Problems()
    families, stacks, powers = read_training(file, problems)
    assert not problems
    assert powers["devices above"] == pytest.approx(1.5)  # as much further off as rows that no fit had seen
    assert powers["pp above"] == 1.0  # never narrower
    assert powers["ep above"] == catalog.training_beyond["ep above"]  # of which these rows say nothing
    own = families["ampere"]
    assert own.constants["gemm"] == pytest.approx(constants.of_family("ampere", catalog)["gemm"], rel=1e-4)
    part = points[0].part
    band = own.time_band_of(part, "dense")
    assert (band.tag, band.rows) == ("calibrated", sum(point.part == part for point in points))
    unseen = own.time_band_of("a30", "dense")
    assert (unseen.tag, unseen.rows, unseen.sources) == ("inherited", 0, 0)
    assert unseen.p90 > band.p90
    experts = own.time_band_of(part, "experts")
    assert (experts.tag, experts.rows) == ("unfitted", 0)
    known = families["hopper"]
    assert known.constants == catalog.training_families["hopper"].constants
    assert known.time_band_of("h100-sxm-80gb", "experts").rows > 0
    turing = families["turing"]
    assert (turing.inherited_from, turing.time_band.tag, turing.time_band.rows) == ("ampere", "unfitted", 0)
    assert turing.time_band.p90 > unseen.p90
    assert families["gaudi2"].time_band.p90 > turing.time_band.p90 * math.exp(0.1)  # of another vendor
    assert stacks[points[0].framework] == pytest.approx(constants.stacks[points[0].framework], rel=1e-4)


def test_every_device_family_has_constants(catalog: Catalog) -> None:
    known = {name for name, own in catalog.training_families.items() if not own.inherited_from}
    assert known | set(HEIRS) == set(catalog.training_families)


def test_no_band_of_a_device_rests_on_rows_of_another(catalog: Catalog) -> None:
    """Rows and sources behind a band are of the very device and kind; without any the tag says so."""
    counted: dict[tuple[str, str], int] = {}
    for point in points_of(shipped_training_rows(), catalog):
        counted[point.part, point.kind] = counted.get((point.part, point.kind), 0) + 1
    for device in catalog.devices.values():
        family = catalog.training_families.get(device.family)
        for kind in BANDS if family else ():
            band = family.time_band_of(device.id, kind)  # type: ignore[union-attr]
            assert band.rows == counted.get((device.id, kind), 0), (device.id, kind)
            assert (band.tag == "calibrated") == (band.rows > 0)


def world(sizes: dict[str, float], seed: int) -> tuple[Any, ...]:
    """Rows that a mixed model with known variances makes."""
    chance = np.random.default_rng(seed)
    sources, models = 60, 4
    of_source = np.repeat(np.arange(sources), models * 5)
    of_model = np.repeat(np.arange(sources * models), 5)
    count = len(of_source)
    design = chance.normal(size=(count, 2))
    target = design @ np.array([0.3, -0.2]) + chance.normal(0, sizes["source"], sources)[of_source]
    target = target + chance.normal(0, sizes["model"], sources * models)[of_model]
    target = target + chance.normal(0, sizes["scatter"], count)
    rows = Rows(
        weight=np.ones(count),
        kind=np.zeros(count, dtype=np.intp),
        source=Grouping(of_row=of_source, kind=np.zeros(sources, dtype=np.intp)),
        model=Grouping(of_row=of_model, kind=np.zeros(sources * models, dtype=np.intp)),
    )
    return design, target, rows


def test_the_mixed_model_finds_coefficients_and_variances() -> None:
    sizes = {"source": 0.2, "model": 0.1, "scatter": 0.05}
    design, target, rows = world(sizes, 7)
    guess = Variances(source=np.array([0.01]), model=np.array([0.01]), scatter=np.array([0.01]))
    variances, tail = guess, np.ones(len(target))
    for _ in range(60):
        found = solve(design, target, np.array([1e-6, 1e-6]), rows, variances, tail)
        tail = tail_weights(found.residual, rows, variances)
        variances = better_variances(found, rows, guess, tail)
    assert found.coefficients == pytest.approx([0.3, -0.2], abs=0.01)
    assert float(variances.source[0]) ** 0.5 == pytest.approx(0.2, rel=0.25)
    assert float(variances.model[0]) ** 0.5 == pytest.approx(0.1, rel=0.2)
    assert float(variances.scatter[0]) ** 0.5 == pytest.approx(0.05, rel=0.25)


def test_one_odd_row_counts_less_and_less() -> None:
    design, target, rows = world({"source": 0.1, "model": 0.05, "scatter": 0.02}, 3)
    variances = Variances(source=np.array([0.01]), model=np.array([0.0025]), scatter=np.array([0.0004]))
    odd = target.copy()
    odd[0] += 3.0
    found = solve(design, odd, np.array([1.0, 1.0]), rows, variances, np.ones(len(odd)))
    weights = tail_weights(found.residual, rows, variances)
    assert weights[0] < 0.01
    assert np.median(weights) > 1.0


def test_a_fit_nearby_is_a_beginning_and_no_other_end(points: list[Point], catalog: Catalog) -> None:
    sample = sample_of(points, catalog)
    far, near = fit_effects(sample, steps=12), fit_effects(sample, fit_effects(sample), steps=5)
    assert near.value("ampere", "gemm") == pytest.approx(far.value("ampere", "gemm"), abs=2e-3)


def test_steps_of_the_fit_do_not_depend_on_the_data() -> None:
    """Counts are fixed, so that a fit is a smooth function of its rows."""
    assert (training_effects.STEPS, training_effects.INNER) == (7, 4)
