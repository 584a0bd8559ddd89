"""What docs/validation.md is made of: figures, obstacles, regressions, the fingerprint, and the page itself."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from planner.calibrate import calibration
from planner.calibrate.calibration import without_source
from planner.calibrate.training import HeldOut, Point
from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.report.validation_document import render_document
from planner.validate.evidence import (
    Evidence,
    accepted,
    band_figures,
    family_errors,
    figures,
    obstacles,
    refused,
    regressions,
)
from planner.validate.fingerprint import SERVING, TRAINING, essence, fingerprint, physics
from planner.validate.judgement import Judged
from planner.validate.rows import MeasuredRow, shipped_training_rows
from planner.validate.score import score_step_times
from planner.validate.training import Prediction, predict_training


@dataclass(frozen=True)
class Said:
    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None
    peak_memory_bytes: float | None = None
    skipped: str | None = None
    family: str = "ampere"


def run(number: int, **cells: Any) -> MeasuredRow:
    base = MeasuredRow(
        id=f"r-{number}", model="M", task="pretrain", trust="A", source_key="s", family="A100", accelerator="A100",
        precision_class="16bit", n_accel=8, seq_len=2048, global_batch=number + 1, step_time_s=1.0,
        peak_mem_gb=10.0, peak_mem_unit="GB", peak_mem_kind="max_memory_allocated",
    )  # fmt: skip
    return replace(base, **cells)


def evidence(times: list[float | None], held_out: list[float | None] | None = None, **more: Any) -> Evidence:
    def say(time_s: float | None) -> Said:
        if time_s is None:
            return Said(skipped="no batch | <b>")
        return Said(step_time_s=time_s, peak_memory_bytes=10.2e9)

    rows = [run(number) for number in range(len(times))]
    return Evidence(rows=rows, shipped=[*map(say, times)], held_out=[*map(say, held_out or times)], **more)


def judged(errors: list[float], spread: float = 0.1, group: str = "A100 dense 16bit") -> Judged:
    count = len(errors)
    return Judged(
        error=np.array(errors),
        low=np.full(count, -1.2816 * spread),
        high=np.full(count, 1.2816 * spread),
        weight=np.ones(count),
        cluster=tuple(("source", number % 4) for number in range(count)),
        group=(group,) * count,
    )


def test_times_are_judged_as_left_out_and_memory_as_shipped() -> None:
    found = {figure.name: figure for figure in figures(evidence([1.01] * 10, sources=judged([0.08, -0.08] * 10)))}
    assert found["A100 dense 16-bit, mean"].value == pytest.approx(0.08)
    assert found["A100 dense 16-bit, mean"].reached is True
    assert found["A100 dense 16-bit, median"].reached is False
    assert found["peak memory allocated, pre-training, mean"].value == pytest.approx(0.02)
    assert "Hopper dense 16-bit, mean" not in found
    few = figures(evidence([1.01], sources=judged([0.2] * 7)))
    assert few[0].reached is None


def test_totals_and_coverage() -> None:
    totals: Any = {"rule": [("a", 1.2, 1.0), ("b", 0.9, 1.0)], "analytic": [("a", 1.4, 1.0)]}
    found = figures(evidence([1.0] * 8 + [1.3, None], totals=totals))
    values = {figure.name: (figure.value, figure.reached) for figure in found}
    mean = (np.log(1.2) - np.log(0.9)) / 2
    assert values["whole runs, rule tier, mean of |ln|"] == (pytest.approx(mean), True)
    assert values["whole runs, analytic tier, mean of |ln|"] == (pytest.approx(np.log(1.4)), False)
    assert values["coverage of rows of trust A and B"] == (pytest.approx(0.9), False)


@pytest.mark.parametrize(("inside", "reached"), [(72, False), (74, True), (86, True), (88, False)])
def test_the_band_may_be_seven_points_off_either_way(inside: int, reached: bool) -> None:
    errors = [0.0] * inside + [0.5] * (100 - inside)
    found = {one.name: one for one in band_figures(judged(errors), judged(errors))}
    assert found["band coverage without the source, pooled"].reached is reached
    assert found["band coverage without the device, pooled"].reached is (70 <= inside <= 90)
    assert found["band coverage, A100 dense"].reached is (70 <= inside <= 90)


def test_few_folds_are_held_against_their_interval() -> None:
    found = {one.name: one for one in band_figures(judged([0.0, 0.0, 0.0, 0.5]), judged([0.0]))}
    assert found["band coverage, A100 dense"].reached is True  # 75 %, and 80 lies in 0 to 100 %
    none = {one.name: one for one in band_figures(judged([0.5] * 4), judged([0.0]))}
    assert none["band coverage, A100 dense"].reached is False


def test_obstacles_are_the_sources_that_hold_the_error() -> None:
    rows = [run(0), run(1, source_key="t"), run(2, source_key="t"), run(3, model="N")]
    scored = score_step_times(rows, [Said(step_time_s=t) for t in (1.0, 1.2, 0.8, 1.1)])
    first, second, third = obstacles(scored)
    assert (first.source, first.model, first.rows) == ("t", "M", 2)
    assert (first.mean, first.bias, first.share) == pytest.approx((0.2, 0.0, 0.8))
    assert (second.model, third.share) == ("N", 0.0)


def state() -> dict[str, Any]:
    return {
        "step_time": {"A100": {"rows": 10, "mean": 0.10}},
        "peak_memory": {"A100": {"rows": 5, "mean": 0.02}},
        "refused": ["r-1"],
    }


def test_no_regression() -> None:
    better = state()
    better["step_time"]["A100"] = {"rows": 11, "mean": 0.105}
    better["refused"] = []
    assert regressions(better, state()) == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("step_time", "A100", "mean"), 0.1051, "step_time of A100: mean error 10.00 % grew to 10.51 %"),
        (("peak_memory", "A100", "mean"), 0.0211, "peak_memory of A100"),
        (("step_time", "A100", "rows"), 9, "10 rows became 9"),
        (("refused",), ["r-1", "r-2"], "r-2 is no longer predicted"),
        (("step_time",), {}, "inf"),
    ],
)
def test_each_regression_is_named(path: tuple[str, ...], value: object, words: str) -> None:
    now: Any = copy.deepcopy(state())
    inner = now
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert any(words in line for line in regressions(now, state()))


def test_accepted_state() -> None:
    found = accepted(evidence([1.1, 1.2, None]), "abc")
    assert found["fingerprint"] == "abc"
    assert found["step_time"] == {"A100": {"rows": 2, "mean": 0.15}}
    assert found["peak_memory"] == {"A100": {"rows": 2, "mean": 0.02}}
    assert found["refused"] == ["r-2"]
    assert regressions(found, found) == []
    assert refused([run(0)], [Said(skipped="x")]) == ["r-0"]
    assert family_errors([]) == {}


def test_fingerprint_sees_code_but_not_its_clothes() -> None:
    plain = "def f(x):\n    return x + 1\n"
    dressed = '"""Module."""\n\n\ndef f(x):  # why\n    """Add one."""\n\n    return x + 1\n'
    assert essence(dressed) == essence(plain)
    assert essence(plain.replace("1", "2")) != essence(plain)
    assert essence('x = "# no comment"\n') == 'x="#nocomment"'
    assert essence('x = f"# {y} no comment"  # but this\n') == 'x=f"#{y}nocomment"'


def test_fingerprint_covers_the_physics_of_training() -> None:
    found = physics(TRAINING)
    assert "planner.equations.communication" in found
    assert "planner.validate.training" in found
    assert "planner.equations.serving" not in found
    assert {"planner.equations.serving", "planner.estimate.serving_closed"} <= physics(SERVING)
    assert len(fingerprint()) == 64
    assert fingerprint() == fingerprint()


def test_fingerprint_sees_constants_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.validate import fingerprint as module

    before = fingerprint()
    whole = module.read_package_text
    monkeypatch.setattr(module, "read_package_text", lambda name: whole(name) + ("1" if name.endswith(".csv") else ""))
    assert fingerprint() != before


def test_the_page_is_markdown_and_holds_every_part() -> None:
    found = evidence([1.3] * 11 + [None], sources=judged([0.3] * 11), devices=judged([0.2] * 11))
    rows = [replace(row, model="<img src=x>|*M*") for row in found.rows]
    left_out = {("training.csv", "x-1"): "nobody knows", ("training.csv", "x-2"): "nobody knows"}
    text = render_document(replace(found, rows=rows), "f" * 64, left_out, [{"rows": "r-*", "why": "made up"}])
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    heads = [b.content for a, b in itertools.pairwise(tokens) if a.type == "heading_open"]
    assert heads == [
        "Validation", "Figures", "Step time without the source", "Step time without the device", "Peak memory",
        "What stands in the way", "The largest errors", "Rows without a prediction", "How errors are counted",
        "Rows that count in no figure", "Step time with constants that have seen the row (in-sample)",
    ]  # fmt: skip
    inner = [child for token in tokens for child in token.children or []]
    assert not {"image", "html_inline", "link_open"} & {token.type for token in inner}
    assert "`" + "f" * 64 + "`" in text
    for words in ("A100 dense 16-bit, mean | 11 | 30.0 %", "NO", "made up", "nobody knows", "x-1, x-2", "r-11"):
        assert words in text


def test_a_row_without_its_source_keeps_its_tokens_and_flops() -> None:
    rows = [run(0), run(1), run(2)]
    shipped = [
        Prediction(step_time_s=2.0, tokens_per_s_per_device=100.0, tflops_per_device=50.0, peak_memory_bytes=1e9),
        Prediction(step_time_s=3.0),
        Prediction(skipped="no"),
    ]
    points = tuple(
        Point(row=row, family="ampere", part="a", framework="fsdp", measured_s=1.0, configuration=row.id)
        for row in (rows[0], rows[2])
    )
    held = HeldOut(points=points, predicted_s=np.array([4.0, 5.0]), spread=np.ones(2))
    found = without_source(rows, shipped, held)
    assert found[0].step_time_s == 4.0
    assert (found[0].tokens_per_s_per_device, found[0].tflops_per_device) == (50.0, 25.0)
    assert found[0].peak_memory_bytes == 1e9
    assert found[1:] == shipped[1:]


def test_constants_that_the_rows_do_not_give_are_not_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def to_yaml(self) -> str:
            return "families: {}"

    monkeypatch.setattr(calibration, "calibrate", lambda *_, **__: Other())
    with pytest.raises(InputError, match="make calibrate first"):
        calibration.gather(load_catalog())


def test_rows_beyond_what_a_fit_saw_are_reported_beside_themselves() -> None:
    pair = judged([0.05, -0.1] * 10), judged([0.1, -0.2] * 10)
    found = {one.name: one for one in figures(evidence([1.0] * 10, beyond={"more than 256 devices": pair}))}
    one = found["beyond what a fit saw, four fifths within: more than 256 devices"]
    assert (one.rows, one.value, one.reached) == (20, pytest.approx(0.2), None)
    assert one.limit == "reported; 10.0 % where such rows of others were seen"
    assert "mean 15.0 % (7.5)" in one.detail


def test_a_row_outside_of_what_was_fitted_has_a_wider_band() -> None:
    catalog = load_catalog()
    inside = next(
        row for row in shipped_training_rows() if row.family == "A100" and row.kind == "dense" and row.n_accel
    )
    outside = replace(inside, n_accel=16384, dp=None, global_batch=65536)
    own, other = predict_training([inside, outside], catalog)
    assert own.time_band is not None
    assert other.time_band is not None
    power = catalog.training_beyond["devices above"]
    assert power > 1.0
    assert other.time_band.p90 == pytest.approx(own.time_band.p90**power)
    assert other.time_band.p10 == pytest.approx(own.time_band.p10**power)
    assert other.time_band.rows == own.time_band.rows
