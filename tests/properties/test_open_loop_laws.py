"""Laws of the open loop: better hardware and wider targets never carry less, more load is never faster."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.estimate.serving_open import OpenLoad, RequestShape, Targets, load_at, slo_capacity
from planner.estimate.serving_pools import decode_pool_capacity, prefill_pool_capacity
from tests.simulate.engines import MACHINES, replica_of
from tests.tiers import settings

ENGINES = [
    ("llama-3.1-8b", "bf16", "bf16", 1, 1, "h100"),
    ("llama-3.1-8b", "fp8", "fp8", 1, 1, "l40s"),
    ("llama-3.1-70b", "fp8", "fp8", 4, 1, "h100"),
    ("llama-3.1-70b", "bf16", "bf16", 4, 2, "a100"),
    ("gpt-oss-120b", "mxfp4", "bf16", 2, 1, "b200"),
    ("deepseek-v3", "fp8", "fp8", 8, 1, "h200"),
]
SLACK = 2e-3  # roots are found within 1e-4, and the slope of a step is that of its chord


def _shape(prompt: float, output: float, spread: float) -> RequestShape:
    return RequestShape(
        input_tokens=prompt,
        output_tokens=output,
        input_second_moment=spread * prompt**2,
        output_second_moment=spread * output**2,
    )


engines = st.sampled_from(ENGINES)
shapes = st.builds(_shape, st.floats(50, 8000), st.floats(2, 1500), st.floats(1, 1.6))
limits = st.sampled_from([4.0, 32.0, 128.0, 512.0])
settled = settings(max_examples=40, few=20)


def rate(engine: Any, shape: RequestShape, targets: Targets, limit: Any) -> np.ndarray:
    return slo_capacity(engine, shape, targets, limit).requests_per_s


@settled
@given(engines, shapes, limits, st.floats(0.3, 4.0), st.floats(0.012, 0.15))
def test_wider_targets_carry_no_less(
    engine: tuple[Any, ...], shape: RequestShape, limit: float, ttft: float, tpot: float
) -> None:
    wider = np.array([1.0, 1.1, 1.5, 3.0])
    for targets in (
        Targets(ttft_p95_s=ttft * wider, tpot_p95_s=tpot),
        Targets(ttft_p99_s=ttft, tpot_p50_s=tpot * wider),
        Targets(e2e_p95_s=(ttft + 1000 * tpot) * wider),
    ):
        found = rate(replica_of(*engine), shape, targets, limit)
        assert (np.diff(found) >= -SLACK * found[1:]).all()


@settled
@given(engines, shapes, limits, st.sampled_from(["memory_bandwidth_bytes_per_s", "all_bytes_per_s"]))
def test_better_hardware_carries_no_less(
    engine: tuple[Any, ...], shape: RequestShape, limit: float, field: str
) -> None:
    targets = Targets(ttft_p95_s=2.0, tpot_p95_s=0.06)
    base = getattr(MACHINES[engine[5]], field)
    links = {"pair_bytes_per_s": base * 1.3} if field == "all_bytes_per_s" else {}
    slow = rate(replica_of(*engine), shape, targets, limit)
    fast = rate(replica_of(*engine, **{field: base * 1.3, **links}), shape, targets, limit)
    assert float(fast) >= float(slow) * (1 - SLACK)


@settled
@given(engines, shapes, st.floats(0.3, 4.0), st.floats(0.012, 0.15))
def test_more_slots_carry_no_less(engine: tuple[Any, ...], shape: RequestShape, ttft: float, tpot: float) -> None:
    found = rate(
        replica_of(*engine), shape, Targets(ttft_p95_s=ttft, tpot_p95_s=tpot), np.array([8.0, 24.0, 80.0, 300.0])
    )
    # more slots move the chord that stands for the slope of a step: a few percent, not a law
    assert (np.diff(found) >= -0.05 * found[1:]).all()


@settled
@given(engines, shapes, limits)
def test_more_load_is_never_faster(engine: tuple[Any, ...], shape: RequestShape, limit: float) -> None:
    replica = replica_of(*engine)
    full = float(rate(replica, shape, Targets(), limit))
    load = load_at(replica, shape, full * np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97]), limit)
    for metric, keys in (("tpot_s", ("mean", "p50")), ("ttft_s", ("mean", "p95")), ("e2e_s", ("mean", "p95"))):
        for key in keys:
            values = getattr(load, metric)[key]
            assert (np.diff(values) >= -SLACK * values[1:]).all(), (metric, key, values)
    assert (np.diff(load.sequences) > 0).all()
    assert (np.diff(load.prefill_share) > 0).all()


@settled
@given(engines, shapes, limits, st.floats(0.05, 0.95), st.sampled_from([0.0, 1.0, 4.0]))
def test_a_load_is_sound(
    engine: tuple[Any, ...], shape: RequestShape, limit: float, load: float, variability: float
) -> None:
    """Figures are finite, percentiles in order, Little's law holds, nothing beats an idle engine."""
    replica = replica_of(*engine)
    full = float(slo_capacity(replica, shape, Targets(), limit, arrival_variability=variability).requests_per_s)
    found = load_at(replica, shape, load * full, limit, arrival_variability=variability)
    assert _in_order(found)
    assert 0 < float(found.prefill_share) < 1
    assert float(found.sequences) <= limit * (1 + 1e-3)
    assert float(found.tpot_s["mean"]) >= float(replica.token_s(1.0, shape.context_tokens)) * (1 - 1e-9)
    decoding = load * full * (float(shape.output_tokens) - 1) * float(found.tpot_s["p50"])
    assert decoding <= float(found.sequences) * 1.5
    assert float(found.ttft_s["mean"]) >= float(replica.request_s)


def _in_order(load: OpenLoad) -> bool:
    tables = (load.ttft_s, load.tpot_s, load.e2e_s)
    rows = [[float(table[key]) for key in ("p50", "p90", "p95", "p99")] for table in tables]
    return all(np.isfinite(row).all() and row == sorted(row) for row in rows)


@settled
@given(engines, shapes, st.floats(0.3, 4.0), st.floats(0.012, 0.15), limits)
def test_wider_targets_of_pools(
    engine: tuple[Any, ...], shape: RequestShape, ttft: float, tpot: float, limit: float
) -> None:
    replica, wider = replica_of(*engine), np.array([1.0, 1.2, 2.0])
    prefill = prefill_pool_capacity(replica, shape, Targets(ttft_p95_s=ttft * wider)).requests_per_s
    decode = decode_pool_capacity(replica, shape, Targets(tpot_p95_s=tpot * wider), limit).requests_per_s
    assert (np.diff(prefill) >= -SLACK * prefill[1:]).all()
    assert (np.diff(decode) >= -SLACK * decode[1:]).all()
