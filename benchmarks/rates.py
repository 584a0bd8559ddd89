"""Rates a second: the largest rate within latency targets of every replica on every bucket of requests.

Every legal layout of a model on every machine of the shipped catalog, times sixteen buckets; prints how many
(device, layout, bucket) are worked out a second on one core, and the time in units of one numpy multiply
pass over as many float64 values. The bar is 100,000 a second.

    python benchmarks/rates.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from planner import api
from planner.estimate import serving_fleet
from planner.estimate.serving_open import slo_capacity
from planner.scenario.load import parse_scenario

CASES = {
    "llama-3.1-70b in fp8": ("llama-3.1-70b", "fp8", "{ttft_p95: 2 s, tpot_p95: 60 ms}"),
    "qwen3-235b-a22b (experts) in fp8": ("qwen3-235b-a22b", "fp8", "{ttft_p95: 2 s, tpot_p95: 60 ms}"),
    "llama-3.1-8b in bf16, every target": (
        "llama-3.1-8b", "bf16", "{ttft_p50: 1 s, ttft_p99: 4 s, tpot_p50: 50 ms, tpot_p99: 90 ms}",
    ),
}  # fmt: skip
SCENARIO = """
schema: plan/v1
name: rates
serving:
  - {{name: chat, model: {model}, weights: {weights}, requests: 20 /s, input_tokens: 1500, output_tokens: 300,
     slo: {slo}}}
"""
INPUTS, OUTPUTS = (128, 512, 2048, 6000), (32, 128, 400, 1000)


def median_s(work: Callable[[], object], runs: int = 5) -> float:
    """Median seconds of processor time of one call."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def asked(model: str, weights: str, slo: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the search asks of the open loop, for one bucket."""
    scenario = parse_scenario(SCENARIO.format(model=model, weights=weights, slo=slo), file="rates.yaml")
    with mock.patch.object(serving_fleet, "slo_capacity", side_effect=slo_capacity) as spy:
        api.enumerate_candidates(scenario, api.load_catalog())
    call = max(spy.call_args_list, key=lambda one: np.size(one.args[3]))
    return call.args, call.kwargs


def bucketed(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], int]:
    """The same replicas on sixteen buckets, with the sequences that their memory then holds, about."""
    replica, shape, targets, batch = args
    replicas, buckets = np.size(batch), len(INPUTS) * len(OUTPUTS)
    rows = np.repeat(np.arange(replicas), buckets)
    inputs = np.tile(np.repeat(INPUTS, len(OUTPUTS)), replicas).astype(float)
    outputs = np.tile(OUTPUTS, len(INPUTS) * replicas).astype(float)
    spread = 1.1  # a bucket is not one length
    wanted = type(shape)(
        input_tokens=inputs,
        output_tokens=outputs,
        input_second_moment=spread * inputs**2,
        output_second_moment=spread * outputs**2,
    )
    fewer = np.max(shape.context_tokens) / wanted.context_tokens
    slots = np.clip(np.floor(np.asarray(batch)[rows] * fewer), 1.0, 1024.0)
    kept = {name: value[rows] if np.ndim(value) else value for name, value in options.items()}
    return (replica.take(rows), wanted, targets.take(rows), slots), kept, len(rows)


def measure(title: str, model: str, weights: str, slo: str) -> None:
    args, options, count = bucketed(*asked(model, weights, slo))
    load = slo_capacity(*args, **options)
    seconds = median_s(lambda: slo_capacity(*args, **options))
    values, out = np.random.default_rng(0).random(count), np.empty(count)
    passes = seconds / median_s(lambda: [np.multiply(values, 1.000001, out=out) for _ in range(100)]) * 100
    able = float(np.mean(load.requests_per_s > 0))
    rate = f"{count:,} rates, {able:.0%} above 0, {count / seconds:,.0f} /s (bar 100,000)"
    print(f"{title}: {rate}, {seconds:.3f} s, {passes:,.0f} multiply passes")


def main() -> None:
    for title, case in CASES.items():
        measure(title, *case)


if __name__ == "__main__":
    main()
