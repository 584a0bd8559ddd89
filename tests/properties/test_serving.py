"""Properties of serving estimates: better hardware never carries less, more work never takes less time."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.load import load_model
from planner.equations.replicas import replicas_needed
from planner.estimate.machine import Machine
from planner.estimate.serving import (
    TEXTBOOK,
    Replica,
    ReplicaLayout,
    ServingSpec,
    serving_capacity,
    serving_memory,
)
from planner.estimate.serving_formats import FORMATS, ServingPeaks
from planner.estimate.serving_work import ServingWork
from tests.published.equations.replicas import erlang_c
from tests.tiers import settings

MODELS = {name: load_model(name) for name in ("llama-3.1-8b", "gpt-oss-20b", "deepseek-v2-lite", "gemma-2-9b")}
SLACK = 1 + 1e-9
REAL = {"pair_bytes_per_s", "all_bytes_per_s", "memory_bandwidth_bytes_per_s", "peak_flop_per_s", "memory_bytes"}
FITTED = dataclasses.replace(TEXTBOOK, kernel_unit_s=41e-6, collective_s=14.5e-6, sequence_s=14.5e-6)

machines = st.builds(
    Machine,
    peak_flop_per_s=st.floats(1e12, 5e15),
    mfu=st.just(0.4),
    memory_bytes=st.floats(8e9, 3e11),
    memory_bandwidth_bytes_per_s=st.floats(1e11, 1e13),
    pair_bytes_per_s=st.floats(1e9, 1e12),
    all_bytes_per_s=st.floats(1e9, 1e12),
    scale_up_devices=st.sampled_from([1, 2, 8]),
    node_devices=st.just(8),
    host_bytes_per_s=st.floats(1e9, 1e11),
    inter_node_bytes_per_s=st.floats(1e9, 1e11),
)
layouts = st.builds(
    lambda tp, pp, dp, ep: ReplicaLayout(devices=tp * pp * dp, tp=tp, pp=pp, ep=min(ep, tp * dp)),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 8]),
)
specs = st.builds(
    ServingSpec,
    weights=st.sampled_from(sorted(FORMATS)),
    kv_cache=st.sampled_from(["bf16", "fp8", "nvfp4"]),
    input_tokens=st.floats(1, 8000),
    output_tokens=st.floats(1, 4000),
    max_num_seqs=st.sampled_from([None, 1, 64, 1024]),
)
models = st.sampled_from(sorted(MODELS))
tiers = st.sampled_from([TEXTBOOK, FITTED])


@settings(max_examples=150, few=60)
@given(models, specs, layouts, machines, tiers, st.sampled_from(sorted(REAL)), st.floats(1, 4))
def test_better_hardware_never_carries_less(model, spec, layout, machine, tier, field, factor):
    better = dataclasses.replace(machine, **{field: getattr(machine, field) * factor})
    before = serving_capacity(MODELS[model], spec, layout, machine, tier)
    after = serving_capacity(MODELS[model], spec, layout, better, tier)
    assert float(after.requests_per_s) * SLACK >= float(before.requests_per_s)


@settings(max_examples=100, few=40)
@given(
    models,
    specs,
    layouts,
    machines,
    tiers,
    st.integers(1, 500),
    st.integers(0, 500),
    st.floats(0, 9000),
    st.floats(0, 9000),
)
def test_a_step_never_shortens_with_batch_or_context(model, spec, layout, machine, tier, batch, more, context, longer):
    rate = machine.peak_flop_per_s
    engine = Replica(
        work=ServingWork.of(MODELS[model], spec.weights, spec.kv_cache),
        layout=layout,
        machine=machine,
        peaks=ServingPeaks(linear=rate, expert=rate, attention=rate),
        constants=tier,
    )
    base = float(engine.decode_step(batch, context).total)
    assert float(engine.decode_step(batch + more, context).total) * SLACK >= base
    assert float(engine.decode_step(batch, context + longer).total) * SLACK >= base
    assert float(engine.prefill(context + longer).total) * SLACK >= float(engine.prefill(context).total)


@settings(max_examples=100, few=40)
@given(models, specs, layouts, machines)
def test_memory_adds_up_and_what_is_planned_fits(model, spec, layout, machine):
    memory = serving_memory(MODELS[model], spec, layout, machine)
    np.testing.assert_allclose(memory.terms.total, sum(memory.terms.row(0).values()), rtol=1e-12)
    if memory.feasible:
        assert float(memory.batch) >= 1
        assert float(memory.terms.total) <= float(memory.usable_bytes) * SLACK
    else:
        assert float(memory.batch) == 0
    assert float(memory.batch) <= (spec.max_num_seqs or np.inf)


@settings(max_examples=100, few=40)
@given(models, specs, layouts, machines)
def test_latency_at_full_load_obeys_little(model, spec, layout, machine):
    found = serving_capacity(MODELS[model], spec, layout, machine)
    in_flight = float(found.requests_per_s) * spec.output_tokens * float(found.tpot_s)
    np.testing.assert_allclose(in_flight, float(found.batch), rtol=1e-6)
    assert float(found.tpot_s) * SLACK >= float(found.decode_step.total)


@settings(max_examples=100, few=40)
@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(1, 1.5))
def test_waiting_falls_with_servers_and_rises_with_load(servers, share, factor):
    load = servers * share
    assert 0 <= float(erlang_c(servers, load)) <= 1
    assert float(erlang_c(servers + 1, load)) <= float(erlang_c(servers, load)) * SLACK
    assert float(erlang_c(servers, load * factor)) * SLACK >= float(erlang_c(servers, load))


@settings(max_examples=100, few=40)
@given(st.floats(1e-6, 1e4), st.floats(0.01, 100), st.floats(0.1, 1), st.integers(0, 3), st.floats(1, 3))
def test_replicas_carry_the_peak_and_one_fewer_does_not(peak, rate, load, spare, factor):
    needed = float(replicas_needed(peak, rate, load, spare))
    working = needed - spare
    assert working * rate * load * SLACK >= peak
    assert (working - 1) * rate * load <= peak * SLACK
    assert float(replicas_needed(peak, rate * factor, load, spare)) <= needed
