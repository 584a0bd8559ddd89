"""Composed memory and rule-tier time of training, against worked figures and against the equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.architecture.model import Architecture
from planner.equations import activations as act
from planner.equations import memory as mem
from planner.equations.rules import A100_RULE_MFU
from planner.estimate.layout import Layout
from planner.estimate.machine import Group, Machine
from planner.estimate.memory_ranks import ranks_of, stage_of
from planner.estimate.memory_stack import memory_stack
from planner.estimate.terms import Terms
from planner.estimate.training import activations_known, training_memory, training_time
from planner.estimate.training_memory import rank_memory
from planner.estimate.training_spec import TrainingSpec
from tests.published.equations.memory import model_state_bytes

A100 = Machine(
    peak_flop_per_s=312e12,
    mfu=A100_RULE_MFU,
    pair_bytes_per_s=300e9,
    all_bytes_per_s=300e9,
    scale_up_devices=8,
    node_devices=8,
    host_bytes_per_s=25e9,
    inter_node_bytes_per_s=25e9,
)
PLAIN = {"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": 0, "recompute": 0}


def layout(devices: float = 1, global_batch: float = 512, **fields: object) -> Layout:
    values = {**PLAIN, **fields}
    ranks = np.asarray(values["tp"]) * values["pp"] * values["cp"]
    return Layout(devices=devices, dp=devices // ranks, global_batch=global_batch, **values)


def coarse(parameters: int = 8_000_000_000) -> Architecture:
    zeros = dict.fromkeys(
        (
            *("hidden_size", "vocab_size", "max_positions", "input_embedding_parameters", "position_parameters"),
            *("output_head_parameters", "final_norm_parameters"),
        ),
        0,
    )
    counts = dict.fromkeys(("parameters", "active_parameters", "matmul_parameters"), parameters)
    names = {"name": "8B", "family": "coarse", "source": "test"}
    return Architecture(**names, tied_embeddings=False, layers=(), **zeros, **counts)


@pytest.fixture(scope="module")
def gpt2_xl() -> Architecture:
    return load_model("gpt2-xl")


@pytest.fixture(scope="module")
def llama_8b() -> Architecture:
    return load_model("llama-3.1-8b")


GPT2_XL = {  # attention, recompute: activations, fragmentation, total, in 1e9 bytes
    ("eager", 0): (275.56, 14.26, 324.7),
    ("flash", 0): (83.56, 4.66, 123.1),
    ("eager", 2): (10.66, 1.02, 46.6),
}


@pytest.mark.parametrize(("attention", "recompute"), GPT2_XL)
def test_gpt2_xl_batch_32_sequence_1000(gpt2_xl: Architecture, attention: str, recompute: int) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=1000, precision="fp16", attention=attention)
    terms = training_memory(gpt2_xl, spec, layout(micro_batch=32, recompute=recompute, global_batch=32))
    activations, fragmentation, total = GPT2_XL[attention, recompute]
    shown = {name: round(value / 1e9, 2) for name, value in terms.row(0).items()}
    assert shown == {
        "weights": 3.12,
        "gradients": 3.12,
        "optimizer": 18.69,
        "activations": activations,
        "logits": 9.65,
        "gathered": 0,
        "scratch": 0,
        "buckets": 0,
        "libraries": 0.32,
        "fragmentation": fragmentation,
    }
    assert round(float(terms.total) / 1e9, 1) == total


def test_gpt2_xl_largest_batch_on_32_gb(gpt2_xl: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=1000, precision="fp16", attention="eager")
    batch = np.arange(1, 33)
    sizes = training_memory(gpt2_xl, spec, layout(micro_batch=batch, recompute=2, global_batch=batch)).total
    assert np.diff(sizes) == pytest.approx(0.666e9, rel=1e-3)
    assert batch[sizes <= mem.usable_memory_bytes(32 * 2**30)].max() == 11
    assert sizes[31] > mem.usable_memory_bytes(40 * 2**30)
    assert sizes[31] < mem.usable_memory_bytes(80 * 2**30)


def test_llama_8b_zero_3_on_16(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=200e9, sequence_length=8192)
    terms = training_memory(llama_8b, spec, layout(16, sharding=3, recompute=2))
    shown = {name: round(float(terms[name]) / 1e9, 2) for name in ("activations", "logits", "fragmentation")}
    assert shown == {"activations": 3.29, "logits": 6.30, "fragmentation": 0.57}
    assert float(terms["weights"] + terms["gradients"] + terms["optimizer"]) / 1e9 == pytest.approx(8.03, abs=5e-3)
    assert float(terms["gathered"] + terms["scratch"]) / 1e9 == pytest.approx(1.78, abs=5e-3)
    assert float(terms.total) / 1e9 == pytest.approx(20.3, abs=5e-2)


@pytest.mark.parametrize("sharding", [0, 1, 2, 3])
def test_states_are_the_equation(llama_8b: Architecture, sharding: int) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    terms = training_memory(llama_8b, spec, layout(64, sharding=sharding))
    states = float(terms["weights"] + terms["gradients"] + terms["optimizer"])
    assert states == pytest.approx(float(model_state_bytes(llama_8b.parameters, 2, 2, 12, 64, sharding)))


def test_tied_table_lives_on_both_ends_of_a_pipeline(gpt2_xl: Architecture) -> None:
    """The logits of 50,257 words weigh more than activations in flight here, so the last stage is the fullest."""
    spec = TrainingSpec(tokens=1e9, sequence_length=1024, optimizer="sgd")
    terms = training_memory(gpt2_xl, spec, layout(2, pp=2, global_batch=1))
    layers = (gpt2_xl.parameters - gpt2_xl.input_embedding_parameters - gpt2_xl.position_parameters - 3200) // 2
    assert float(terms["logits"]) == float(act.logits_bytes(1024, 50257))
    assert float(terms["weights"]) == 2 * (layers + gpt2_xl.input_embedding_parameters + 3200)


def test_first_stage_wins_with_many_micro_batches(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    terms = training_memory(llama_8b, spec, layout(8, pp=8))
    layer = act.layer_activation_bytes(8192, 4096, 32, 8, 128, 14336)
    assert float(terms["logits"]) == 0
    assert float(terms["activations"]) == pytest.approx(8 * 4 * float(layer))


def test_uneven_layers_fill_the_fullest_stage() -> None:
    arch = load_model("llama-3.1-405b")  # 126 layers
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    terms = training_memory(arch, spec, layout(128, tp=8, pp=16, recompute=2))
    stored = act.layer_input_bytes(8192, 16384, 8)
    layer = act.layer_activation_bytes(8192, 16384, 128, 8, 128, 53248, 1, 8, 8)
    assert float(terms["activations"]) == pytest.approx(16 * 8 * float(stored) + float(layer))


def test_replicated_kv_heads_cost_memory() -> None:
    arch = load_model("llama-3.1-8b")
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    sizes = [training_memory(arch, spec, layout(tp, tp=tp)) for tp in (8, 16)]
    halves = [float(terms["activations"]) * tp for terms, tp in zip(sizes, (8, 16))]
    assert halves[1] - halves[0] == pytest.approx(32 * 8192 * 4 * 8 * 128)  # K and V of 8 heads held twice
    weights = [float(terms["weights"]) * tp for terms, tp in zip(sizes, (8, 16))]
    assert weights[1] - weights[0] > 32 * 2 * 2 * 4096 * 8 * 128  # and their projections (norms replicate too)


def test_experts_are_divided_by_expert_and_tensor_parallelism() -> None:
    arch = load_model("mixtral-8x7b")
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    experts = sum(group.count * group.expert_parameters for group in arch.layers)
    one, eight = (float(training_memory(arch, spec, layout(8, ep=ep))["weights"]) for ep in (1, 8))
    assert one - eight == pytest.approx(2 * experts * 7 / 8)
    split = float(training_memory(arch, spec, layout(8, tp=8))["weights"])
    assert split < one / 7.9  # experts are split by t as well when ep leaves room


def test_uneven_routing_is_charged_across_ranks_only() -> None:
    arch = load_model("mixtral-8x7b")
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    one, eight = (float(training_memory(arch, spec, layout(8, ep=ep))["activations"]) for ep in (1, 8))
    routed = act.moe_activation_bytes(4096, 4096, 8, 2, 14336) - act.moe_activation_bytes(4096, 4096, 8, 0, 14336)
    assert eight - one == pytest.approx(0.1 * 32 * float(routed))


def test_leading_dense_layers_are_on_the_first_stage() -> None:
    arch = load_model("deepseek-v3")  # 3 dense layers, then 58 with experts
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    placed = layout(16, pp=16, global_batch=16)
    moe = arch.layers[1].parameters
    dense = arch.layers[0].parameters
    first = 2 * (3 * dense + moe + arch.input_embedding_parameters)
    last = 2 * (3 * moe + arch.output_head_parameters + arch.final_norm_parameters)
    for rank, weights in (("rank0", first), ("last", last), ("max", 2 * 4 * moe)):
        terms = rank_memory(arch, memory_stack(spec), spec.sequence_length, placed, rank)
        assert float(terms["weights"]) == weights


@pytest.mark.parametrize("name", ["deepseek-v3", "kimi-k2", "glm-4.5", "mixtral-8x7b", "llama-3.1-405b"])
@pytest.mark.parametrize("pp", [2, 3, 7, 16, 21])
def test_no_stage_that_counts_has_less_than_the_mean(name: str, pp: int) -> None:
    """DeepSeek-V3 on 168 cards of 80 GB took 62 GB of the fullest one: its states are 72 GB of each."""
    arch = load_model(name)
    spec = TrainingSpec(tokens=1e9, sequence_length=1, framework="megatron")  # nearly all of it states
    ep = 8 if arch.is_moe else 1
    terms = training_memory(arch, spec, layout(8 * pp, pp=pp, ep=ep, global_batch=8 * pp))
    states = sum(float(terms[part]) for part in ("weights", "gradients", "optimizer"))
    experts = sum(group.count * group.expert_parameters for group in arch.layers)
    assert states >= 18 * (arch.parameters - experts + experts / ep) / pp * (1 - 1e-6)


def test_behind_leading_dense_layers_fewer_micro_batches_are_alive() -> None:
    arch = load_model("deepseek-v3")
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    ranks = ranks_of(arch, memory_stack(spec), 4096, layout(21, pp=21, global_batch=63))
    stage = stage_of(ranks, "inner")
    assert (float(stage.index), [float(n) for n in stage.layers]) == (1.0, [0.0, 3.0])
    assert not stage.has_head.any()
    none = stage_of(ranks_of(arch, memory_stack(spec), 4096, layout(2, pp=2, global_batch=6)), "inner")
    assert [float(n) for n in none.layers] == [0.0, 0.0]  # two stages are the first and the last


def test_mla_keeps_latents_and_expanded_heads() -> None:
    arch = load_model("deepseek-v3")
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    dense = replace(arch, layers=(arch.layers[0],))
    terms = training_memory(dense, spec, layout(global_batch=1))
    token = 8 * 7168 + 4 * 128 + 2 * 128 * (2 * 192 + 2 * 128) + 2 * (1536 + 512) + 6 * 18432
    assert float(terms["activations"]) == 3 * 4096 * token


def test_precisions_change_activations(llama_8b: Architecture) -> None:
    base = TrainingSpec(tokens=1e9, sequence_length=4096)
    sizes = {
        name: float(training_memory(llama_8b, replace(base, precision=name), layout())["activations"])
        for name in ("fp32", "bf16", "fp8")
    }
    assert sizes["fp32"] == 2 * sizes["bf16"]
    assert sizes["bf16"] - sizes["fp8"] == pytest.approx(32 * float(act.fp8_saved_bytes(4096, 4096, 4096, 14336)))


@pytest.mark.parametrize(("kind", "size"), [("fused", 6), ("standard", 12)])
def test_logits_by_kind_of_loss(llama_8b: Architecture, kind: str, size: float) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=4096, cross_entropy=kind)
    assert float(training_memory(llama_8b, spec, layout())["logits"]) == size * 4096 * 128256


def test_chunked_loss_holds_a_chunk(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=4096, cross_entropy="chunked")
    assert float(training_memory(llama_8b, spec, layout())["logits"]) == 12 * act.CHUNK_TOKENS * 128256


def test_selective_recompute_matters_for_eager_attention_only(gpt2_xl: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=1000)
    flash = [float(training_memory(gpt2_xl, spec, layout(recompute=r))["activations"]) for r in (0, 1)]
    assert flash[0] == flash[1]
    eager = replace(spec, attention="eager")
    none, selective = (float(training_memory(gpt2_xl, eager, layout(recompute=r))["activations"]) for r in (0, 1))
    scores = float(act.attention_score_bytes(1000, 1, 25))
    assert none - selective == pytest.approx(47 * scores)  # one layer's scores are alive at a time


def test_frameworks_hold_different_buffers(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    buckets = {
        name: float(training_memory(llama_8b, replace(spec, framework=name), layout(8, sharding=1))["buckets"])
        for name in (None, "deepspeed", "megatron")
    }
    assert buckets == {None: 2 * 25 * 2**20, "deepspeed": 2 * 5e8 * 2, "megatron": 0}


def test_fsdp_under_a_pipeline_keeps_the_stage_gathered(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=4096, framework="fsdp")
    terms = training_memory(llama_8b, spec, layout(16, pp=2, sharding=3))
    assert float(terms["gathered"]) == pytest.approx((2 + 4) / 4 * 8 * float(terms["weights"]))


def test_a_count_alone_gives_states_and_says_so() -> None:
    arch = coarse()
    assert not activations_known(arch)
    terms = training_memory(arch, TrainingSpec(tokens=1e9, sequence_length=2048), layout(8, sharding=3))
    assert float(terms.total) == pytest.approx(16e9 + mem.LIBRARY_BYTES)
    split = training_time(arch, TrainingSpec(tokens=1e9, sequence_length=2048), layout(8, tp=2), A100)
    assert np.isinf(split["tensor_parallel"])


@pytest.mark.parametrize("devices", [1, 7, 64, 512])
def test_founding_rule_is_exact_on_a100(llama_8b: Architecture, devices: int) -> None:
    spec = TrainingSpec(tokens=200e9, epochs=2, sequence_length=8192)
    terms = training_time(llama_8b, spec, layout(devices, global_batch=devices * 4), A100)
    hours = 13.3 * 200 * 2 * (llama_8b.parameters / 1e9) / devices
    assert float(terms["compute"]) / 3600 == pytest.approx(hours, rel=1e-14)
    assert float(terms.total) >= float(terms["compute"])


def test_one_device_has_no_penalty(llama_8b: Architecture) -> None:
    terms = training_time(llama_8b, TrainingSpec(tokens=1e9, sequence_length=8192), layout(), A100)
    assert float(terms.total) == float(terms["compute"])


def test_active_parameters_count_for_experts() -> None:
    arch = load_model("mixtral-8x7b")
    terms = training_time(arch, TrainingSpec(tokens=1e9, sequence_length=4096), layout(), A100)
    assert float(terms["compute"]) / 3600 == pytest.approx(13.3 * arch.active_parameters / 1e9)


@pytest.mark.parametrize(
    ("split", "term"),
    [
        ({"tp": 2}, "tensor_parallel"),
        ({"pp": 4}, "pipeline_bubble"),
        ({"recompute": 2}, "recompute"),
        ({"global_batch": 60}, "ragged_batch"),
    ],
)
def test_every_split_costs_time(llama_8b: Architecture, split: dict[str, int], term: str) -> None:
    terms = training_time(llama_8b, TrainingSpec(tokens=1e9, sequence_length=8192), layout(16, **split), A100)
    assert float(terms[term]) > 0


def test_expert_context_and_data_parallelism_cost_time_on_slow_links(llama_8b: Architecture) -> None:
    slow = replace(A100, inter_node_bytes_per_s=1e8, all_bytes_per_s=1e8, pair_bytes_per_s=1e8)
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    assert float(training_time(llama_8b, spec, layout(16, cp=2), slow)["context_parallel"]) > 0
    assert float(training_time(llama_8b, spec, layout(16), slow)["data_parallel"]) > 0
    moe = load_model("mixtral-8x7b")
    assert float(training_time(moe, spec, layout(16, ep=8), slow)["expert_parallel"]) > 0


def test_tensor_parallel_penalty_by_hand(llama_8b: Architecture) -> None:
    """Two all-reduces of 2 T h bytes forward and two backward in each of 32 layers, 64 passes a step."""
    spec = TrainingSpec(tokens=512 * 8192, sequence_length=8192)  # one step
    terms = training_time(llama_8b, spec, layout(16, tp=2), A100)
    message = 2 * 8192 * 4096
    one = 2 * (1 / 2) * message / (300e9 * 0.78) + 2 * 10e-6
    assert float(terms["tensor_parallel"]) == pytest.approx(64 * 32 * 4 * one)


def test_pipeline_by_hand(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=512 * 8192, sequence_length=8192)
    terms = training_time(llama_8b, spec, layout(4, pp=4), A100)
    busy = float(terms["compute"])
    transfer = 2 * (2 * 8192 * 4096 / (300e9 * 0.78) + 10e-6)
    assert float(terms["pipeline_bubble"]) == pytest.approx(busy * 3 / 512 + (512 + 3) * transfer)


@pytest.mark.parametrize("rate", [300e9, 1e8])
def test_interleaved_parts_send_beside_compute_by_hand(llama_8b: Architecture, rate: float) -> None:
    """Two parts a stage send twice as much; what a micro-batch computes on a stage hides so much of it and no more."""
    spec = TrainingSpec(tokens=512 * 8192, sequence_length=8192)
    terms = training_time(llama_8b, spec, layout(4, pp=4, vpp=2), replace(A100, pair_bytes_per_s=rate))
    busy = float(terms["compute"])
    seen = max(0.0, 2 * 2 * (2 * 8192 * 4096 / (rate * 0.78) + 10e-6) - busy / 512)
    assert (seen > 0) == (rate == 1e8)
    bubble = busy / 512 * 3 / 2
    assert float(terms["pipeline_bubble"]) == pytest.approx(bubble + (512 + 3 / 2) * seen, rel=1e-9)


def test_a_measured_mfu_has_no_penalties(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, measured_mfu=True)
    terms = training_time(llama_8b, spec, layout(16, tp=2, pp=4, recompute=2), replace(A100, mfu=0.5))
    assert float(terms.total) == float(terms["compute"])
    assert float(terms.total) == pytest.approx(
        13.3 * llama_8b.parameters / 1e9 / 16 * 3600 * A100_RULE_MFU / 0.5, rel=1e-12
    )


def test_a_batch_above_the_critical_one_needs_more_tokens(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, critical_batch_tokens=256 * 8192)
    terms = training_time(llama_8b, spec, layout(16, tp=2), A100)
    assert float(terms["large_batch"]) == pytest.approx(2 * (float(terms.total) - float(terms["large_batch"])))


def test_an_unknown_network_takes_forever_only_when_used(llama_8b: Architecture) -> None:
    unknown = replace(A100, inter_node_bytes_per_s=float("nan"))
    spec = TrainingSpec(tokens=1e9, sequence_length=8192)
    assert np.isfinite(training_time(llama_8b, spec, layout(8, tp=2), unknown).total)
    assert np.isinf(training_time(llama_8b, spec, layout(16, tp=2), unknown).total)
    assert np.isinf(training_time(llama_8b, spec, layout(16, tp=8, pp=2), unknown).total)
    assert np.isinf(training_time(llama_8b, spec, layout(16, tp=8, pp=2, vpp=2), unknown).total)


def test_tiers_of_links() -> None:
    """Eight PCIe devices in NVLink pairs: a pair is fast, four talk over PCIe, sixteen over the network."""
    pairs = replace(A100, scale_up_devices=2)
    rates = [1e9 / float(Group(machine=pairs, ranks=n, stride=1).all_gather_s(1e9)) * (n - 1) / n for n in (2, 4)]
    assert rates == pytest.approx([300e9 * 0.78, 25e9 * 0.78], rel=0.01)
    lonely = replace(A100, scale_up_devices=1, node_devices=1, all_bytes_per_s=0.0, pair_bytes_per_s=0.0)
    assert np.isfinite(Group(machine=lonely, ranks=4, stride=1).all_reduce_s(1e9))


def test_one_call_for_all_is_each_call_alone(llama_8b: Architecture) -> None:
    spec = TrainingSpec(tokens=1e9, sequence_length=8192, attention="eager")
    rows = [
        layout(64, sharding=3, recompute=2),
        layout(64, tp=4, pp=4, vpp=2, sharding=1),
        layout(32, tp=16, cp=2, micro_batch=2, recompute=1),
        layout(8, pp=8, sharding=2, global_batch=4),
    ]
    machines = [A100, replace(A100, mfu=0.3), replace(A100, inter_node_bytes_per_s=1e9), A100]
    together = Layout.concatenate(rows)
    machine = Machine(**{name: np.array([getattr(m, name) for m in machines]) for name in Machine.__slots__})
    for estimate, alone in (
        (training_memory(llama_8b, spec, together), [training_memory(llama_8b, spec, row) for row in rows]),
        (
            training_time(llama_8b, spec, together, machine),
            [training_time(llama_8b, spec, row, m) for row, m in zip(rows, machines)],
        ),
    ):
        for index, single in enumerate(alone):
            assert estimate.row(index) == pytest.approx(single.row(0), rel=1e-12)
            assert float(estimate.total[index]) == pytest.approx(float(single.total), rel=1e-12)


def test_terms_are_a_frozen_mapping() -> None:
    terms = Terms({"a": np.array([1.0, 2.0]), "b": 3.0})
    assert list(terms) == ["a", "b"]
    assert terms.total.tolist() == [4, 5]
    assert terms.row(1) == {"a": 2, "b": 3}
    assert terms.select(np.array([False, True])).total.tolist() == [5]
    joined = Terms.concatenate([terms, terms.select(np.array([0]))])
    assert joined.total.tolist() == [4, 5, 4]
    assert "a=" in repr(terms)
    assert len(Terms({})) == 0
    with pytest.raises(TypeError):
        terms["a"] = np.zeros(2)  # type: ignore[index]


def test_layouts_select_and_count_micro_batches() -> None:
    both = Layout.concatenate([layout(4), layout(8, tp=2)])
    assert both.micro_batches.tolist() == [128, 128]
    assert both.select(np.array([1])).tp.tolist() == [2]
