"""Bars of serving on figures made up for the test: what is left out decides, and a configuration weighs one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from planner.validate import serving_score as kinds
from planner.validate.judgement import Judged, weights_of
from planner.validate.serving_evidence import ServingEvidence, accepted_serving, serving_figures, serving_obstacles
from planner.validate.serving_points import Point
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import (
    BARS,
    ScoredPoint,
    ServingFold,
    campaigns_of_pairs,
    errors_of_fold,
    judge_serving,
    kind_summaries,
)

LOADS = {"tpot_s": "closed loop", "ttft_s": "closed loop", "output_tokens_per_s": "offline"}


def figure(number: int, predicted: float, metric: str = "tpot_s", **cells: object) -> ScoredPoint:
    base: dict[str, object] = {"source": "a/b:c", "accel_class": "H100", "hidden": 4096}
    row = ServingRow(id=f"r-{number}", scenario=LOADS[metric], concurrency=float(number + 1), **{**base, **cells})  # type: ignore[arg-type]
    point = Point(position=number, row=row, metric=metric, measured=1.0, device=row.accel_class or "")
    return ScoredPoint(point=point, predicted=predicted, engine="vllm", family="hopper", device_id="h100-sxm")


def part(*errors: float, metric: str = "tpot_s", **cells: object) -> list[ScoredPoint]:
    return [figure(number, 1 + error, metric, **cells) for number, error in enumerate(errors)]


def fold(scored: Sequence[ScoredPoint], low: float = -0.2, high: float = 0.2) -> ServingFold:
    count = len(scored)
    return ServingFold(
        scored=scored,
        judged=Judged(
            error=np.log([item.predicted / item.measured for item in scored]),
            low=np.full(count, low),
            high=np.full(count, high),
            weight=weights_of([item.point for item in scored]),
            cluster=tuple(item.point.campaign for item in scored),
            group=tuple(item.point.band_kind for item in scored),
        ),
    )


def verdict(name: str, campaign: Sequence[ScoredPoint], device: Sequence[ScoredPoint] = ()):
    found = judge_serving({"campaign": fold(campaign), "device": fold(device)})
    return next(one for one in found if one.bar.name == name)


def test_the_bars_are_those_of_the_issue() -> None:
    assert {bar.name: (bar.statistic, bar.limit) for bar in BARS} == {
        "TPOT, closed loop, median": ("median", 0.14),
        "TPOT, closed loop, p90": ("p90", 0.38),
        "TTFT, closed loop within memory, median": ("median", 0.27),
        "TTFT, closed loop within memory, mean": ("mean", 0.55),
        "throughput, offline tables, median": ("median", 0.12),
        "MLPerf Offline, median": ("median", 0.18),
        "MLPerf Server, median": ("median", 0.20),
        "MLPerf Interactive, median": ("median", 0.33),
        "static batches, latency, median": ("median", 0.14),
        "static batches, latency, mean": ("mean", 0.20),
        "piles at once, throughput, median": ("median", 0.40),
        "open loops, TPOT, median": ("median", 0.18),
        "open loops, TTFT, median": ("median", 0.35),
        "decode of one card, median": ("median", 0.08),
        "prompt speed of one card, median": ("median", 0.35),
    }


def test_figures_without_their_campaign_decide() -> None:
    good, bad = part(*[0.1] * 11, 0.5), part(*[-0.6] * 12)
    found = verdict("TPOT, closed loop, median", good, bad)
    assert (found.value, found.reached) == (pytest.approx(0.1), True)
    assert found.without_device is not None
    assert found.without_device.median == pytest.approx(0.6)
    assert verdict("TPOT, closed loop, median", bad, good).reached is False
    assert verdict("TPOT, closed loop, p90", good).value == pytest.approx(0.5, abs=0.3)


def test_a_configuration_weighs_one() -> None:
    """Thirty rows of one configuration count no more than one."""
    often = [figure(0, 1.9) for _ in range(30)]
    found = verdict("TPOT, closed loop, median", [*often, *part(*[0.05] * 12)[1:]])
    assert found.errors is not None
    assert (found.errors.rows, found.errors.configurations) == (41, pytest.approx(12.0))
    assert found.value == pytest.approx(0.05)


def test_too_few_figures_are_no_verdict() -> None:
    assert verdict("TPOT, closed loop, median", part(*[0.0] * 9)).reached is None
    nothing = verdict("TTFT, closed loop within memory, median", part(0.1))
    assert (nothing.value, nothing.reached, nothing.errors) == (None, None, None)


def test_campaigns_of_a_pair_are_publications_releases_and_models() -> None:
    rows = [figure(n, 1.0, hidden=1024 * n, engine_version="1.0") for n in (1, 2, 2)]
    rows.append(figure(3, 1.0, hidden=1024, engine_version="1.1"))
    rows.append(figure(4, 1.0, hidden=1024, engine_version="1.0, CUDA 12"))  # other libraries, the same release
    assert campaigns_of_pairs(fold(rows)) == {("vllm", "hopper"): 3}


@pytest.mark.parametrize(
    ("metric", "cells", "device", "kind"),
    [
        ("tpot_s", {"scenario": "closed loop"}, "h100-sxm", kinds.TPOT),
        ("ttft_s", {"scenario": "vllm bench serve; fixed concurrency"}, "h100-sxm", kinds.TTFT),
        ("output_tokens_per_s", {"scenario": "offline max throughput"}, "h100-sxm", kinds.OFFLINE),
        ("output_tokens_per_s", {"scenario": "MLPerf v4.1 Server closed"}, "h100-sxm", kinds.MLPERF_SERVER),
        ("output_tokens_per_s", {"scenario": "MLPerf v5.1 Interactive closed"}, "h100-sxm", kinds.MLPERF_INTERACTIVE),
        ("output_tokens_per_s", {"scenario": "MLPerf v5.1 Offline closed"}, "h100-sxm", kinds.MLPERF_OFFLINE),
        ("output_tokens_per_s", {"scenario": "closed loop"}, "h100-sxm", kinds.CLOSED_RATE),
        ("batch_latency_s", {"scenario": "open loop, Poisson"}, "h100-sxm", kinds.ANSWER),
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


def test_a_band_holds_what_lies_between_its_ends() -> None:
    found = errors_of_fold(fold(part(0.0, 0.1, 0.3, -0.3)), np.full(4, True))
    assert found is not None
    assert found.coverage == 0.5
    assert errors_of_fold(fold(part(0.1)), np.array([False])) is None


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
    folds = {"campaign": fold(part(*[0.1] * 10)), "device": fold(part(*[0.3] * 10))}
    evidence = ServingEvidence(rows=[], entries=[], shipped=[], folds=folds)
    found = {one.name: one for one in serving_figures(evidence)}
    assert found["TPOT, closed loop, median"].reached is True
    assert "without the device 30.0 %" in found["TPOT, closed loop, median"].detail
    assert found["memory fit, cells out of memory refused"].reached is None
    assert (
        found["TPOT in its band, without the campaign"].value,
        found["TPOT in its band, without the device"].value,
    ) == (
        1.0,
        0.0,
    )
    assert found["TPOT in its band, without the campaign"].reached is False  # wider than four in five need
    state = accepted_serving(evidence)
    assert state["serving"] == {}
    assert state["serving_figures"]["TPOT, closed loop, median"] == [pytest.approx(0.1), True]


def test_pairs_with_many_campaigns_are_judged_apart() -> None:
    many = [figure(n, 1.1, hidden=1024 * n) for n in range(1, 9)]
    few = [figure(n, 1.1, hidden=1024 * n) for n in range(1, 8)]
    for rows, told in ((many, True), (few, False)):
        evidence = ServingEvidence(
            rows=[], entries=[], shipped=[], folds={"campaign": fold(rows), "device": fold(rows)}
        )
        names = [one.name for one in serving_figures(evidence)]
        assert ("vllm on hopper in its band, 8 campaigns" in names) is told
