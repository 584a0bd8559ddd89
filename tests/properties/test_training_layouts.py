"""What must hold for every layout: memory grows with work, shrinks with sharding; time grows when anything slows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.load import load_model
from planner.architecture.model import Architecture
from planner.equations import memory as mem
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_spec import TrainingSpec
from tests.tiers import settings

MODELS = {name: load_model(name) for name in ("gpt2-xl", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite")}
POWERS = st.sampled_from([1, 2, 4, 8])
FEW = settings(max_examples=60, few=30)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    tp, pp, cp, dp = draw(POWERS), draw(POWERS), draw(st.sampled_from([1, 2])), draw(POWERS)
    micro_batch, passes = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 3, 16]))
    return Layout(
        devices=tp * pp * cp * dp,
        dp=dp,
        tp=tp,
        pp=pp,
        vpp=draw(st.sampled_from([1, 2])) if pp > 1 else 1,
        cp=cp,
        ep=draw(st.sampled_from([ep for ep in (1, 2, 4, 8) if ep <= dp])),
        micro_batch=micro_batch,
        sharding=draw(st.integers(0, 3)),
        recompute=draw(st.integers(0, 2)),
        global_batch=dp * micro_batch * passes,
    )


@st.composite
def specs(draw: st.DrawFn) -> TrainingSpec:
    return TrainingSpec(
        tokens=1e11,
        sequence_length=draw(st.sampled_from([512, 1024, 4096])),
        precision=draw(st.sampled_from(["fp32", "fp16", "bf16", "fp8"])),
        optimizer=draw(st.sampled_from(mem.OPTIMIZERS)),
        attention=draw(st.sampled_from(["flash", "eager"])),
        cross_entropy=draw(st.sampled_from(["standard", "fused", "chunked"])),
        allocator=draw(st.sampled_from(["default", "expandable", "variable"])),
        framework=draw(st.sampled_from([None, "megatron", "fsdp", "deepspeed"])),
        offload=draw(st.sampled_from([(), (), ("optimizer",), ("activations",), ("optimizer", "activations")])),
        lora_rank=draw(st.sampled_from([None, None, 16])),
        lora_base=draw(st.sampled_from(["bf16", "nf4"])),
    )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    rate = st.floats(1e8, 1e12)
    return Machine(
        peak_flop_per_s=draw(st.floats(1e13, 5e15)),
        mfu=draw(st.floats(0.1, 0.7)),
        pair_bytes_per_s=draw(rate),
        all_bytes_per_s=draw(rate),
        scale_up_devices=draw(st.sampled_from([1, 4, 8, 72])),
        node_devices=draw(st.sampled_from([1, 4, 8])),
        host_bytes_per_s=draw(rate),
        inter_node_bytes_per_s=draw(rate),
    )


models = st.sampled_from(sorted(MODELS)).map(MODELS.get)


def size(arch: Architecture, spec: TrainingSpec, layout: Layout) -> float:
    return float(training_memory(arch, spec, layout).total)


@FEW
@given(models, specs(), layouts())
def test_terms_are_finite_and_sum_to_the_total(arch: Architecture, spec: TrainingSpec, layout: Layout) -> None:
    terms = training_memory(arch, spec, layout)
    values = list(terms.row(0).values())
    assert min(values) >= 0
    assert np.isfinite(values).all()
    assert float(terms.total) == pytest.approx(sum(values), rel=1e-12)


@FEW
@given(models, specs(), layouts())
def test_memory_grows_with_micro_batch(arch: Architecture, spec: TrainingSpec, layout: Layout) -> None:
    twice = replace(layout, micro_batch=2 * layout.micro_batch, global_batch=2 * layout.global_batch)
    assert size(arch, spec, twice) >= size(arch, spec, layout)


@FEW
@given(models, specs(), layouts())
def test_memory_grows_with_sequence(arch: Architecture, spec: TrainingSpec, layout: Layout) -> None:
    longer = replace(spec, sequence_length=2 * spec.sequence_length)
    assert size(arch, longer, layout) >= size(arch, spec, layout)


@FEW
@given(models, specs(), layouts(), st.integers(1, 5))
def test_memory_grows_with_layers(arch: Architecture, spec: TrainingSpec, layout: Layout, more: int) -> None:
    group = arch.layers[-1]
    deeper = replace(arch, layers=(*arch.layers[:-1], replace(group, count=group.count + more * 8)))
    assert size(deeper, spec, layout) >= size(arch, spec, layout)


@FEW
@given(models, specs(), layouts())
def test_states_shrink_with_each_sharding_stage(arch: Architecture, spec: TrainingSpec, layout: Layout) -> None:
    names = ("weights", "gradients", "optimizer")
    terms = [training_memory(arch, spec, replace(layout, sharding=stage)) for stage in range(4)]
    sizes = [sum(float(part[name]) for name in names) for part in terms]
    for less, more in zip(sizes[1:], sizes[:-1]):
        assert less <= more * (1 + 1e-12)
    if layout.dp * layout.cp == 1 and (not arch.is_moe or layout.tp == 1):
        assert sizes == pytest.approx([sizes[0]] * 4)


@FEW
@given(models, specs(), layouts())
def test_interleaving_raises_memory_and_lowers_the_bubble(
    arch: Architecture, spec: TrainingSpec, layout: Layout
) -> None:
    pipelined = replace(layout, devices=layout.devices * 4 // layout.pp, pp=4, global_batch=layout.dp * 64)
    plain, chunks = replace(pipelined, vpp=1), replace(pipelined, vpp=2)
    assert size(arch, spec, chunks) >= size(arch, spec, plain)
    fast = Machine(peak_flop_per_s=1e15, mfu=0.4, pair_bytes_per_s=1e12, all_bytes_per_s=1e12, scale_up_devices=4096)
    bubbles = [float(training_time(arch, spec, each, fast)["pipeline_bubble"]) for each in (plain, chunks)]
    assert bubbles[1] < bubbles[0]


@FEW
@given(models, specs(), layouts(), machines())
def test_no_pipeline_no_bubble(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> None:
    single = replace(layout, devices=layout.devices // layout.pp, pp=1, vpp=1)
    assert float(training_time(arch, spec, single, machine)["pipeline_bubble"]) == 0


RATES = ("peak_flop_per_s", "mfu", "pair_bytes_per_s", "all_bytes_per_s", "host_bytes_per_s", "inter_node_bytes_per_s")


@settings(max_examples=200, few=80)
@given(models, specs(), layouts(), machines(), st.sampled_from(RATES), st.floats(0.05, 0.95))
def test_time_never_falls_when_a_rate_falls(
    arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine, rate: str, share: float
) -> None:
    slower = replace(machine, **{rate: getattr(machine, rate) * share})
    before, after = (float(training_time(arch, spec, layout, m).total) for m in (machine, slower))
    assert after >= before * (1 - 1e-12)


@FEW
@given(models, specs(), st.lists(layouts(), min_size=2, max_size=5), machines())
def test_rows_of_an_array_are_scalar_calls(
    arch: Architecture, spec: TrainingSpec, rows: list[Layout], machine: Machine
) -> None:
    together = Layout.concatenate(rows)
    memory, time = training_memory(arch, spec, together), training_time(arch, spec, together, machine)
    for index, row in enumerate(rows):
        assert memory.row(index) == pytest.approx(training_memory(arch, spec, row).row(0), rel=1e-12)
        assert time.row(index) == pytest.approx(training_time(arch, spec, row, machine).row(0), rel=1e-9, abs=1e-6)
