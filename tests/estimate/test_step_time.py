"""The analytic step: laws that hold for any job, closed forms, and the parts that a split adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.load import load_model
from planner.estimate.constants import StepConstants
from planner.estimate.frameworks import (
    FRAMEWORKS,
    attention_rate,
    framework_can,
    kept_as,
    planned_framework,
    software_stage,
)
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.stack import Stack
from planner.estimate.step import LAYER_TERMS, STEP_TERMS, step_time
from planner.estimate.step_distinct import FEWEST, Ways
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_memory import host_bytes
from planner.estimate.training_spec import TrainingSpec
from planner.estimate.work import Work
from tests.tiers import settings

MACHINE = Machine(
    peak_flop_per_s=989e12,
    linear_flop_per_s=989e12,
    mfu=0.4,
    multiprocessors=132,
    memory_bytes=80e9,
    memory_bandwidth_bytes_per_s=3.35e12,
    pair_bytes_per_s=450e9,
    all_bytes_per_s=450e9,
    scale_up_devices=8,
    node_devices=8,
    host_bytes_per_s=63e9,
    inter_node_bytes_per_s=50e9,
    family="hopper",
)
LLAMA = Work.of(load_model("llama-3.1-8b"), 8192)
MIXTRAL = Work.of(load_model("mixtral-8x7b"), 4096)
ONE = {
    "devices": 64, "dp": 64, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": 1,
    "recompute": 0, "global_batch": 512,
}  # fmt: skip


def step(work: Work = LLAMA, machine: Machine = MACHINE, stack: Stack | None = None, **layout: int) -> Terms:
    """One step of a layout that differs from data parallelism over 64 devices by `layout`."""
    return step_time(work, Layout(**{**ONE, **layout}), machine, stack or Stack(), StepConstants())


def seconds(work: Work = LLAMA, machine: Machine = MACHINE, stack: Stack | None = None, **layout: int) -> float:
    """Its sum."""
    return float(step(work, machine, stack, **layout).total)


def test_terms_are_named_and_none_is_negative() -> None:
    terms = step(tp=2, dp=8, pp=4, vpp=2)
    assert tuple(terms) == STEP_TERMS
    assert all(float(value) >= 0 for value in terms.values())


def test_products_of_a_step_at_full_rate_are_its_flops() -> None:
    """Without waves, launches and traffic the linear products take 6 x parameters x tokens / rate."""
    ideal = StepConstants(gemm=1.0, wave=0.0, memory=1e6, host_s=0.0)
    arch = load_model("llama-3.1-8b")
    terms = step_time(LLAMA, Layout(**ONE), MACHINE, Stack(), ideal)
    layers = arch.matmul_parameters - arch.vocab_size * arch.hidden_size
    flop_per_device = 6.0 * layers * 512 * 8192 / 64
    depth = 1.0 + 128.0 / 4096  # the least that the inner size costs; 128 / 14336 at best
    assert 1.0 < float(terms["products"]) / (flop_per_device / 989e12) < depth * 1.05


@pytest.mark.parametrize(
    ("layout", "term"),
    [
        ({"tp": 2, "dp": 32}, "tensor_parallel"),
        ({"pp": 4, "dp": 16}, "pipeline_bubble"),
        ({"pp": 4, "dp": 16}, "pipeline_transfer"),
        ({"cp": 2, "dp": 32}, "context_parallel"),
        ({"recompute": 2}, "recompute"),
        ({"sharding": 3}, "data_parallel"),
    ],
)
def test_every_split_has_its_cost(layout: dict[str, int], term: str) -> None:
    alone = step(dp=64)[term] if term != "data_parallel" else np.asarray(0.0)
    assert float(step(**layout)[term]) > float(alone)


def test_experts_exchange_their_tokens() -> None:
    assert float(step(MIXTRAL, ep=8)["expert_parallel"]) > 0
    assert float(step(MIXTRAL, ep=1)["expert_parallel"]) == 0
    assert float(step(MIXTRAL)["experts"]) > 0
    assert float(step(LLAMA)["experts"]) == 0


def test_a_repeated_forward_pass_exchanges_again() -> None:
    """Two exchanges forward and two backward in each layer; two more where the forward pass is repeated."""
    ideal = StepConstants(contention=1.0)  # nothing is hidden
    for work, layout, term in (
        (LLAMA, {"tp": 2, "dp": 32}, "tensor_parallel"),
        (MIXTRAL, {"ep": 8}, "expert_parallel"),
    ):
        kept, chosen, full = (
            float(step_time(work, Layout(**{**ONE, **layout, "recompute": level}), MACHINE, Stack(), ideal)[term])
            for level in (0, 1, 2)
        )
        assert chosen == pytest.approx(kept)
        assert full == pytest.approx(kept * 6 / 4)


def test_interleaved_stages_shorten_the_bubble() -> None:
    plain, interleaved = step(pp=4, dp=16), step(pp=4, dp=16, vpp=2)
    assert float(interleaved["pipeline_bubble"]) == pytest.approx(float(plain["pipeline_bubble"]) / 2)


@pytest.mark.parametrize("rate", [50e9, 0.5e9, 0.2e9])
def test_parts_of_stages_hide_no_more_than_there_is_compute(rate: float) -> None:
    """Sixteen parts a stage sent all their states for nothing over Ethernet: 70B in 64 hours was promised in 36."""
    machine = replace(MACHINE, inter_node_bytes_per_s=rate)
    apart = {"pp": 8, "dp": 8, "micro_batch": 1, "global_batch": 512}  # 64 micro-batches
    beside = Stack(hide_transfers=1.0)
    plain, parts = step(machine=machine, **apart), step(machine=machine, stack=beside, **apart, vpp=4)
    one = float(plain["pipeline_transfer"]) / (2 * (64 + 7))
    stage = sum(float(parts[name]) for name in (*LAYER_TERMS, "head")) / 64
    seen = max(0.0, 4 * 2 * one - stage)
    assert float(parts["pipeline_transfer"]) == pytest.approx(64 * seen + 7 * 2 * one)
    assert (seen > 0) == (rate < 50e9)
    if rate == 0.2e9:  # the bubble that they close is less than what they send
        assert float(parts.total) > float(plain.total)


def test_sharded_gradients_are_scattered_in_every_micro_batch() -> None:
    """ZeRO-2 was as fast as ZeRO-1 however often it scattered, and took less memory: plans flocked there."""
    slow = replace(MACHINE, inter_node_bytes_per_s=1e9)
    for batch, same in ((64, True), (512, False)):
        one, two = (seconds(machine=slow, sharding=stage, global_batch=batch) for stage in (1, 2))
        assert (two == pytest.approx(one, rel=1e-9)) == same
        assert two >= one
    few, many = (float(step(machine=slow, sharding=2, global_batch=64 * m)["data_parallel"]) for m in (1, 9))
    more = float(step(machine=slow, sharding=2, global_batch=64 * 17)["data_parallel"])
    assert more - many == pytest.approx(many - few)  # each micro-batch alike
    staged = {"pp": 2, "dp": 32}  # a pipelined stage keeps its gradients whole
    assert seconds(machine=slow, sharding=2, **staged) == pytest.approx(seconds(machine=slow, sharding=1, **staged))


@pytest.mark.parametrize(("work", "split", "term"), [(MIXTRAL, {"ep": 8}, "expert"), (LLAMA, {"tp": 8}, "tensor")])
def test_a_hidden_share_of_an_exchange_ends_where_compute_does(work: Work, split: dict[str, int], term: str) -> None:
    bridge = Stack(expert_hidden=0.5, tensor_hidden=0.6)  # with the rates of links of a machine, and a thousandth
    for factor in (1.0, 1e-3):
        machine = replace(MACHINE, pair_bytes_per_s=450e9 * factor, all_bytes_per_s=450e9 * factor)
        layout = {**split, "dp": 64 // split.get("tp", 1)}
        bare, seen = (step(work, machine, stack, **layout) for stack in (Stack(), bridge))
        busy = sum(float(bare[name]) for name in ("products", "attention", "elementwise", "experts", "recompute"))
        name = f"{term}_parallel"
        hidden = float(bare[name]) - float(seen[name])
        assert hidden <= busy * (1 + 1e-9)
        assert (hidden == pytest.approx(busy)) == (factor < 1)


def test_one_stage_has_no_bubble_and_one_rank_no_exchange() -> None:
    alone = step(devices=1, dp=1, global_batch=8)
    for term in ("pipeline_bubble", "pipeline_transfer", "tensor_parallel", "data_parallel", "context_parallel"):
        assert float(alone[term]) == 0


def test_an_unknown_network_takes_forever_between_nodes_only() -> None:
    machine = replace(MACHINE, inter_node_bytes_per_s=float("nan"))
    assert np.isinf(seconds(machine=machine))
    assert np.isfinite(seconds(machine=machine, devices=8, dp=8, global_batch=64))


@settings(max_examples=60, few=30)
@given(
    rate=st.sampled_from(
        ["peak_flop_per_s", "linear_flop_per_s", "memory_bandwidth_bytes_per_s", "all_bytes_per_s",
         "pair_bytes_per_s", "inter_node_bytes_per_s"]
    ),
    factor=st.floats(0.05, 1.0),
    tp=st.sampled_from([1, 2, 8]),
    pp=st.sampled_from([1, 2, 4]),
    sharding=st.sampled_from([0, 1, 3]),
    recompute=st.sampled_from([0, 1, 2]),
)  # fmt: skip
def test_a_slower_machine_is_never_faster(
    rate: str, factor: float, tp: int, pp: int, sharding: int, recompute: int
) -> None:
    layout = {"tp": tp, "pp": pp, "dp": 64 // (tp * pp), "sharding": sharding, "recompute": recompute}
    slower = replace(MACHINE, **{rate: getattr(MACHINE, rate) * factor})
    assert seconds(machine=slower, **layout) >= seconds(**layout) * (1 - 1e-12)


@settings(max_examples=30)
@given(batch=st.sampled_from([64, 128, 256, 512, 1024]), sharding=st.sampled_from([0, 1, 3]))
def test_a_larger_batch_takes_longer_and_less_per_sequence(batch: int, sharding: int) -> None:
    small, large = seconds(global_batch=batch, sharding=sharding), seconds(global_batch=2 * batch, sharding=sharding)
    assert small < large <= 2 * small * (1 + 1e-12)


def test_many_layouts_at_once_are_each_alone() -> None:
    layouts = [{"tp": 1, "dp": 64}, {"tp": 2, "dp": 32}, {"tp": 4, "dp": 4, "pp": 4}, {"sharding": 3}]
    columns = {name: np.array([{**ONE, **one}[name] for one in layouts]) for name in ONE}
    together = step_time(LLAMA, Layout(**columns), MACHINE, Stack(), StepConstants()).total
    assert together == pytest.approx([seconds(**one) for one in layouts], rel=1e-12)


def test_many_models_at_once_are_each_alone() -> None:
    both = Work.stack([LLAMA, MIXTRAL])
    columns = {name: np.array([value, value], dtype=float) for name, value in ONE.items()}
    total = step_time(both, Layout(**columns), MACHINE, Stack(), StepConstants()).total
    assert total == pytest.approx([seconds(LLAMA), seconds(MIXTRAL)], rel=1e-12)


def test_fp8_is_faster_and_its_casts_cost() -> None:
    machine = replace(MACHINE, linear_flop_per_s=1979e12)
    low = step(machine=machine, stack=Stack(low_precision=1.0))
    assert float(low["products"]) < float(step()["products"])
    assert float(low["elementwise"]) > float(step()["elementwise"])


@pytest.mark.parametrize(
    ("change", "slower"),
    [
        ({"framework": "deepspeed"}, None),
        ({"offload": ("activations",)}, True),
        ({"offload": ("optimizer",)}, True),
        ({"gradient_compression": 4.0}, False),
        ({"lora_rank": 16}, False),
        ({"attention": "eager"}, True),
    ],
)
def test_what_a_job_asks_for_acts_on_its_time(change: dict[str, object], slower: bool | None) -> None:
    arch, layout = load_model("llama-3.1-8b"), Layout(**{**ONE, "sharding": 1})
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, tier="analytic")
    plain = float(training_time(arch, spec, layout, MACHINE).total)
    changed = float(training_time(arch, replace(spec, **change), layout, MACHINE).total)  # type: ignore[arg-type]
    assert changed != plain
    if slower is not None:
        assert (changed > plain) == slower


def test_frozen_weights_that_are_packed_take_longer_than_plain_ones() -> None:
    arch, layout = load_model("llama-3.1-8b"), Layout(**ONE)
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, tier="analytic", lora_rank=16)
    packed = replace(spec, lora_base="nf4")
    assert training_time(arch, packed, layout, MACHINE).total > training_time(arch, spec, layout, MACHINE).total


def test_adapters_of_a_higher_rank_take_longer() -> None:
    """Down to the rank and up again is arithmetic beside every product: rank 256 on a width of 4,096 is no trifle."""
    arch, layout = load_model("llama-3.1-8b"), Layout(**ONE)
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, tier="analytic")
    low, high = (float(training_time(arch, replace(spec, lora_rank=rank), layout, MACHINE).total) for rank in (16, 256))
    assert 1.03 < high / low < 1.25


def test_steps_of_a_run_add_up() -> None:
    arch, layout = load_model("llama-3.1-8b"), Layout(**ONE)
    spec = TrainingSpec(tokens=512 * 8192 * 10, sequence_length=8192, tier="analytic")
    ten = float(training_time(arch, spec, layout, MACHINE).total)
    twenty = float(training_time(arch, replace(spec, epochs=2.0), layout, MACHINE).total)
    assert twenty == pytest.approx(2 * ten, rel=1e-9)


def test_kernels_of_a_later_generation_are_not_slower() -> None:
    for family in ("ampere", "hopper", "blackwell"):
        assert attention_rate("flash1", family) < attention_rate("flash2", family)
    assert attention_rate("flash2", "hopper") < attention_rate("fused", "hopper")


def test_frameworks_offer_what_they_have() -> None:
    layout = Layout(**{**ONE, "sharding": np.array([0, 1, 2, 3]), "pp": np.array([1, 4, 1, 4])})
    assert list(framework_can(FRAMEWORKS["megatron"], layout)) == [True, True, True, False]
    assert list(framework_can(FRAMEWORKS["deepspeed"], layout)) == [True, True, True, False]
    assert list(framework_can(FRAMEWORKS["maxtext"], layout)) == [True, True, False, True]
    tensors = Layout(**{**ONE, "sharding": np.array([0, 1, 2, 3]), "tp": np.array([2, 2, 2, 2])})
    assert list(framework_can(FRAMEWORKS["deepspeed"], tensors)) == [True, True, True, False]  # as its export refuses
    alone = Layout(**{**ONE, "sharding": np.array([0, 0]), "devices": np.array([1, 8])})
    assert list(framework_can(FRAMEWORKS["fsdp"], alone)) == [True, False]  # one device has nothing to share


def test_the_usual_software_follows_device_and_sharding() -> None:
    assert planned_framework(None, "hopper", 3).name == "fsdp"
    assert planned_framework(None, "hopper", 1).name == "megatron"
    assert planned_framework(None, "tpu-v5e", 3).name == "maxtext"
    assert planned_framework("deepspeed", "hopper", 3).name == "deepspeed"
    assert planned_framework("jax", "hopper", 3).name == "jax"
    assert planned_framework("jax", "tpu-v5e", 3).name == "maxtext"  # what JAX says of a TPU, and no more


def test_one_device_is_run_by_what_shares_nothing() -> None:
    assert [int(software_stage(1, devices)) for devices in (1, 8)] == [3, 1]
    assert [kept_as(None, "hopper", stage) for stage in (1, 3)] == ["megatron", "fsdp"]
    assert kept_as("pytorch", "hopper", 3) == "pytorch"  # which says less than a row: the common stack
    assert kept_as(None, None, 3) is None  # of any device nothing follows
    arch = load_model("gpt2-xl")
    spec = TrainingSpec(tokens=1e9, sequence_length=1024)
    one = {**ONE, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1}
    layouts = [Layout(**{**one, "devices": n, "dp": n, "sharding": stage}) for n, stage in ((1, 0), (8, 1), (8, 3))]
    named = [replace(spec, framework=name) for name in ("fsdp", "megatron", "fsdp")]
    every = Layout.concatenate(layouts)
    own = [float(training_memory(arch, job, layout).total) for job, layout in zip(named, layouts)]
    assert training_memory(arch, spec, every, "hopper").total.tolist() == pytest.approx(own, rel=1e-12)
    assert training_memory(arch, spec, every).total.tolist() != pytest.approx(own, rel=1e-3)


def test_what_goes_to_hosts_is_that_of_the_software_too() -> None:
    arch, one = load_model("gpt2-xl"), {**ONE, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1}
    spec = TrainingSpec(tokens=1e9, sequence_length=1024, offload=("optimizer",))
    layout = Layout(**{**one, "devices": 8, "dp": 8, "sharding": 3})
    own, common = (float(host_bytes(arch, spec, layout, family).total) for family in ("hopper", None))
    assert own == float(host_bytes(arch, replace(spec, framework="fsdp"), layout).total)
    assert own != common


def test_one_device_is_no_layout_of_many_that_are_alike() -> None:
    """Same layers, same stage, other software: as many layouts at once as are worked out apart."""
    arch, count = load_model("gpt2-xl"), 2 * FEWEST
    one = {**ONE, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "sharding": 0}
    spec = TrainingSpec(tokens=1e9, sequence_length=1024)
    devices = np.where(np.arange(count) % 2, 8, 1)
    columns = {name: np.full(count, value) for name, value in one.items()}
    every = Layout(**{**columns, "devices": devices, "dp": devices})
    apart = [float(training_time(arch, spec, Layout(**{**one, "devices": n, "dp": n}), MACHINE).total) for n in (1, 8)]
    assert training_time(arch, spec, every, MACHINE).total.tolist() == pytest.approx(apart * FEWEST, rel=1e-12)
    ways = Ways.of(every)
    assert ways is not None
    assert ways.layer[0] != ways.layer[1]


def test_the_analytic_tier_wants_layers() -> None:
    from planner.architecture.load import coarse_model

    spec = TrainingSpec(tokens=1e9, sequence_length=8192, tier="analytic")
    with pytest.raises(ValueError, match="layers"):
        training_time(coarse_model(8e9), spec, Layout(**ONE), MACHINE)


def test_sharing_layers_changes_nothing() -> None:
    """Hundreds of layouts at once, whose layers repeat, and each of them alone."""
    rng = np.random.default_rng(7)
    count = 3 * FEWEST
    tp, pp, cp = (rng.choice([1, 2, 4], count) for _ in range(3))
    dp = 2048 // (tp * pp * cp)
    columns = {
        "devices": dp * tp * pp * cp, "dp": dp, "tp": tp, "pp": pp, "vpp": np.where(pp > 1, 2, 1), "cp": cp,
        "ep": rng.choice([1, 8], count), "micro_batch": rng.choice([1, 2], count),
        "sharding": rng.choice([0, 1, 3], count), "recompute": rng.choice([0, 1, 2], count),
        "global_batch": np.full(count, 4096),
    }  # fmt: skip
    for work in (LLAMA, MIXTRAL):
        together = step_time(work, Layout(**columns), MACHINE, Stack(), StepConstants())
        for i in rng.choice(count, 40, replace=False):
            alone = step_time(work, Layout(**{n: v[i] for n, v in columns.items()}), MACHINE, Stack(), StepConstants())
            assert {n: float(v) for n, v in alone.items()} == pytest.approx(together.row(int(i)), rel=1e-12)


def test_software_that_differs_between_layouts_is_not_shared() -> None:
    count = 200
    columns = {name: np.full(count, value) for name, value in ONE.items()}
    traffic = np.linspace(0.5, 1.5, count)
    total = step_time(LLAMA, Layout(**columns), MACHINE, Stack(traffic=traffic), StepConstants()).total
    assert np.all(np.diff(total) > 0)


def test_blocks_change_nothing() -> None:
    from planner.estimate.training import BLOCK, in_blocks

    count = 2 * BLOCK + 17
    columns = {name: np.full(count, value) for name, value in ONE.items()}
    columns["global_batch"] = np.arange(count) * 64 + 64
    layout, seen = Layout(**columns), []

    def evaluate(part: Layout) -> Terms:
        seen.append(len(part.dp))
        return step_time(LLAMA, part, MACHINE, Stack(), StepConstants())

    blocked, whole = in_blocks(evaluate, layout), evaluate(layout)
    assert seen == [BLOCK, BLOCK, 17, count]
    assert np.array_equal(blocked.total, whole.total)
    assert all(np.array_equal(blocked[name], whole[name]) for name in whole)
