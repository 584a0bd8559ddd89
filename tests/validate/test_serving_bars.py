"""Bars of serving on figures made up for the test: the worst fold decides, and what a fold may count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planner.validate import serving_score as kinds
from planner.validate.serving_bars import BARS, counted_folds, judge_serving
from planner.validate.serving_evidence import (
    ServingEvidence,
    accepted_serving,
    serving_figures,
    serving_obstacles,
    share_in_crossed_bands,
)
from planner.validate.serving_points import Point
from planner.validate.serving_result import share_in_bands
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import ScoredPoint, kind_summaries

LOADS = {"tpot_s": "closed loop", "ttft_s": "closed loop", "output_tokens_per_s": "offline"}


def figure(number: int, predicted: float, metric: str = "tpot_s", **cells: object) -> ScoredPoint:
    base: dict[str, object] = {"source": "a/b:c", "accel_class": "H100", "hidden": 4096}
    row = ServingRow(id=f"r-{number}", scenario=LOADS[metric], concurrency=float(number + 1), **{**base, **cells})  # type: ignore[arg-type]
    point = Point(position=number, row=row, metric=metric, measured=1.0, device=row.accel_class or "")
    return ScoredPoint(point=point, predicted=predicted, engine="vllm", family="hopper", device_id="h100-sxm")


def part(*errors: float, metric: str = "tpot_s", **cells: object) -> list[ScoredPoint]:
    return [figure(number, 1 + error, metric, **cells) for number, error in enumerate(errors)]


def verdict(name: str, **folds: Sequence[ScoredPoint]):
    return next(one for one in judge_serving(folds) if one.bar.name == name)


def test_the_bars_are_those_of_the_issue() -> None:
    assert {bar.name: (bar.statistic, bar.limit) for bar in BARS} == {
        "TPOT, closed loop, median": ("median", 0.11),
        "TPOT, closed loop, mean": ("mean", 0.18),
        "TTFT, closed loop, batch within memory, median": ("median", 0.28),
        "output throughput, offline tables, median": ("median", 0.13),
        "throughput, MLPerf server and offline, median": ("median", 0.20),
        "latency, static batches of 2022 engines on A100, median": ("median", 0.12),
        "batch-1 decode, consumer and workstation cards, median": ("median", 0.12),
    }


def test_the_worst_fold_decides() -> None:
    device, model = part(*[0.1] * 9, 0.5), part(*[-0.12] * 10)
    median = verdict("TPOT, closed loop, median", device=device, model=model)
    assert (median.worst, median.value, median.reached) == ("model", pytest.approx(0.12), False)
    mean = verdict("TPOT, closed loop, mean", device=device, model=model)
    assert (mean.worst, mean.value, mean.reached) == ("device", pytest.approx(0.14), True)
    assert {fold: own.rows for fold, own in mean.folds.items()} == {"device": 10, "model": 10}


def test_publications_are_a_fold_only_where_there_are_two() -> None:
    good, bad = part(*[0.05] * 12), part(*[0.9] * 12)
    one = verdict("TPOT, closed loop, median", device=good, model=good, source=bad)
    assert (one.worst in ("device", "model"), one.reached, set(one.folds)) == (True, True, {"device", "model"})

    def two(own: list[ScoredPoint]) -> list[ScoredPoint]:
        return [*own[:-1], figure(99, own[-1].predicted, source="d/e:f")]

    both = verdict("TPOT, closed loop, median", device=two(good), model=two(good), source=two(bad))
    assert (both.worst, both.reached) == ("source", False)
    assert {name: own.rows for name, own in both.sources.items()} == {"a/b": 11, "d/e": 1}
    assert both.sources["d/e"].median == pytest.approx(0.9)


def test_rounds_of_one_benchmark_are_one_publication() -> None:
    rounds = [figure(n, 1.0, source=f"mlcommons/inference_results_v{n % 2 + 3}.1:x") for n in range(10)]
    assert set(counted_folds(kinds.TPOT, {"device": rounds, "source": rounds})) == {"device"}


def test_too_few_figures_are_no_verdict() -> None:
    assert verdict("TPOT, closed loop, median", device=part(*[0.0] * 9), model=part(*[0.0] * 9)).reached is None
    nothing = verdict("TTFT, closed loop, batch within memory, median", device=part(0.1))
    assert (nothing.value, nothing.reached, nothing.folds) == (None, None, {})


@pytest.mark.parametrize(
    ("metric", "cells", "device", "kind"),
    [
        ("tpot_s", {"scenario": "closed loop"}, "h100-sxm", kinds.TPOT),
        ("ttft_s", {"scenario": "vllm bench serve; fixed concurrency"}, "h100-sxm", kinds.TTFT),
        ("output_tokens_per_s", {"scenario": "offline max throughput"}, "h100-sxm", kinds.OFFLINE),
        ("output_tokens_per_s", {"scenario": "MLPerf v4.1 Server closed"}, "h100-sxm", kinds.MLPERF),
        ("output_tokens_per_s", {"scenario": "vllm bench serve; all requests at once"}, "h100-sxm", kinds.BURST),
        ("output_tokens_per_s", {"scenario": "llama-bench tg1024"}, "rtx-4090", kinds.CARDS),
        ("output_tokens_per_s", {"scenario": "llama-bench tg1024"}, "a100-pcie-80gb", kinds.OTHER_SINGLE),
        ("batch_latency_s", {"scenario": "static batch", "engine": "fastertransformer"}, "a100-sxm-80gb", kinds.STATIC),
        ("batch_latency_s", {"scenario": "static batch", "engine": "vllm"}, "a100-sxm-80gb", kinds.OTHER_STATIC),
        ("peak_memory_bytes", {"scenario": "static batch"}, "a100-sxm-80gb", kinds.PEAK_MEMORY),
    ],
)
def test_each_figure_has_a_kind(metric: str, cells: dict[str, str], device: str, kind: str) -> None:
    point = Point(position=0, row=ServingRow(**cells), metric=metric, measured=1.0)
    assert ScoredPoint(point=point, predicted=1.0, engine="", family="", device_id=device).kind == kind


def test_bands_of_a_family_come_before_those_of_all() -> None:
    bands = {"tpot": {"all": (0.5, 2.0), "hopper": (0.95, 1.05)}, "ttft": {"all": (0.5, 2.0)}}
    assert share_in_bands(part(0.0, 0.2), bands) == (1, 2)
    assert share_in_bands(part(0.0, 0.2, metric="ttft_s"), bands) == (2, 2)
    assert share_in_bands(part(0.0, metric="output_tokens_per_s"), bands) == (0, 0)


def test_bands_drawn_without_what_they_are_judged_on() -> None:
    inner, outer = part(*[0.01 * n for n in range(-5, 6)]), part(*[0.5] * 11, accel_class="B200")
    assert share_in_crossed_bands({"device": [*inner, *outer]}) == 0.0  # neither device lies in the other's band
    assert share_in_crossed_bands({"device": inner}) is None


def test_obstacles_hold_most_of_the_error() -> None:
    first, second = serving_obstacles([*part(0.2, -0.2, model="M"), *part(0.1, model="N", accel_class="B200")])
    assert (first.model, first.device, first.rows, first.bias) == ("M", "H100", 2, pytest.approx(0.0))
    assert (second.device, second.share) == ("B200", pytest.approx(0.2))


def test_repeats_are_noise() -> None:
    twice = [figure(0, 1.0), figure(0, 1.0)]
    twice[1] = ScoredPoint(
        point=Point(position=1, row=twice[1].row, metric="tpot_s", measured=1.2), predicted=1.0, engine="vllm",
        family="hopper", device_id="h100-sxm",
    )  # fmt: skip
    (whole, *_) = kind_summaries(twice)[kinds.TPOT]
    assert whole.configurations == 1
    assert whole.noise_floor == pytest.approx(0.1 / 1.1)


def test_figures_and_the_accepted_state() -> None:
    folds = {"device": part(*[0.1] * 10), "model": part(*[0.05] * 10)}
    evidence = ServingEvidence(rows=[], entries=[], shipped=[], folds=folds, bands={"tpot": {"all": (0.8, 1.0)}})
    found = {one.name: one for one in serving_figures(evidence)}
    assert found["TPOT, closed loop, median"].reached is True
    assert "without the device 10.0 %, the model 5.0 %" in found["TPOT, closed loop, median"].detail
    assert found["memory fit, cells out of memory refused"].reached is None
    assert found["left-out figures within their p10-p90 band"].value == 1.0
    assert found["left-out figures within their p10-p90 band"].reached is False
    state = accepted_serving(evidence)
    assert state["serving"] == {}
    assert state["serving_figures"]["TPOT, closed loop, median"] == [pytest.approx(0.1), True]
