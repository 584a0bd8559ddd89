"""What software keeps on a device: each rule against a count by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.architecture.load import load_model
from planner.architecture.model import Architecture
from planner.equations import layer_parts as part
from planner.equations import pipeline
from planner.estimate.layout import Layout
from planner.estimate.memory_stack import LOGIT_BYTES, MemoryStack, memory_stack
from planner.estimate.training import training_memory
from planner.estimate.training_memory import host_bytes, rank_memory
from planner.estimate.training_spec import TrainingSpec

T, H, A, G, E, F, V, L = 4096, 4096, 32, 8, 128, 14336, 128256, 32
LAYER_WEIGHTS = H * E * (2 * A + 2 * G) + 3 * H * F
SPEC = TrainingSpec(tokens=1e9, sequence_length=T)
MEGATRON = replace(SPEC, framework="megatron")
FSDP = replace(SPEC, framework="fsdp")


def layout(devices: int = 1, **fields: float) -> Layout:
    split = {"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": 0, "recompute": 0, **fields}
    dp = devices // (split["tp"] * split["pp"] * split["cp"])
    return Layout(devices=devices, dp=dp, global_batch=64 * dp, **split)


@pytest.fixture(scope="module")
def llama() -> Architecture:
    return load_model("llama-3.1-8b")


@pytest.fixture(scope="module")
def deepseek() -> Architecture:
    return load_model("deepseek-v3")


def rank(arch: Architecture, stack: MemoryStack, where: Layout, which: str = "max") -> dict[str, float]:
    return rank_memory(arch, stack, T, where, which).row(0)


def test_megatron_keeps_a_placeholder_of_every_shape_of_weight(llama: Architecture) -> None:
    scratch = float(training_memory(llama, MEGATRON, layout(tp=2, devices=2))["scratch"])
    assert scratch == pytest.approx(2 * (LAYER_WEIGHTS + V * H) / 2)


def test_placeholders_are_of_the_layers_and_the_head_of_a_stage(llama: Architecture) -> None:
    stack = memory_stack(MEGATRON)
    first, last = (rank(llama, stack, layout(4, pp=4), which) for which in ("rank0", "last"))
    gradients = float(part.layer_gradient_bytes(T, H, 2 * F))
    assert first["scratch"] == pytest.approx(2 * LAYER_WEIGHTS + gradients)  # no logits there: gradients peak
    assert last["scratch"] == pytest.approx(2 * (LAYER_WEIGHTS + V * H))


def test_the_loss_or_a_layer_whichever_is_more(llama: Architecture) -> None:
    stack = replace(memory_stack(MEGATRON), logit_bytes=LOGIT_BYTES["in_place"])
    wide = rank(llama, stack, layout())
    assert wide["logits"] == T * (2 * V + 2 * H)  # the gradient of the logits beside that of the head's input
    chunked = rank(llama, replace(stack, logit_chunk_tokens=64.0), layout())
    assert chunked["logits"] == 0
    assert chunked["scratch"] - wide["scratch"] == float(part.layer_gradient_bytes(T, H, 2 * F))


def test_sequence_parallelism_gathers_the_input_of_the_head(llama: Architecture) -> None:
    stack = replace(memory_stack(MEGATRON), logit_bytes=LOGIT_BYTES["in_place"])
    terms = rank(llama, stack, layout(8, tp=8))
    assert terms["logits"] == T * (2 * V / 8 + 2 * 2 * H)


@pytest.mark.parametrize("loss", ["fused", "standard"])
def test_the_loss_of_megatron_is_the_one_that_is_launched(llama: Architecture, loss: str) -> None:
    """--cross-entropy-loss-fusion is Megatron-LM's own, with exponentials in 32 bits: 128k tokens did not fit."""
    terms = rank(llama, memory_stack(replace(MEGATRON, cross_entropy=loss)), layout(8, tp=8))
    assert terms["logits"] == T * (6 * V / 8 + 2 * H)


@pytest.mark.parametrize("kind", LOGIT_BYTES)
def test_every_kind_of_loss(llama: Architecture, kind: str) -> None:
    terms = rank(llama, replace(memory_stack(SPEC), logit_bytes=LOGIT_BYTES[kind]), layout())
    assert terms["logits"] == pytest.approx(T * max(LOGIT_BYTES[kind] * V, 2 * V + 2 * H))


def test_without_sequence_parallelism_the_stream_is_whole(llama: Architecture) -> None:
    stack = memory_stack(MEGATRON)
    split, whole = (
        rank(llama, replace(stack, sequence_parallel=flag), layout(8, tp=8))["activations"] for flag in (True, False)
    )
    assert whole - split == pytest.approx(L * T * 8 * H * 7 / 8)
    full = layout(8, tp=8, recompute=2)
    stored = [rank(llama, replace(stack, sequence_parallel=flag), full)["activations"] for flag in (True, False)]
    assert stored[1] - stored[0] == pytest.approx((L * 2 + 8) * T * H * 7 / 8)


MODULES = {  # of one layer and token
    "layernorm": 2 * 2 * H,
    "mlp": 6 * F,
    "core_attn": 0,
}


@pytest.mark.parametrize("module", MODULES)
def test_selective_modules_of_a_dense_layer(llama: Architecture, module: str) -> None:
    stack = replace(memory_stack(MEGATRON), recomputed=frozenset({module}))
    none, some = (rank(llama, stack, layout(recompute=level))["activations"] for level in (0, 1))
    assert none - some == pytest.approx((L - 1) * T * MODULES[module])  # one layer at a time is back


MOE_MODULES = {
    "moe_act": 2 * 8 * 2048,
    "moe": 8 * (2 * 7168 + 6 * 2048) + 6 * 2048,
    "shared_experts": 6 * 2048,
    "mla_up_proj": 2 * 128 * (2 * 192 + 128),
}


@pytest.mark.parametrize("module", MOE_MODULES)
def test_selective_modules_of_a_layer_with_experts(deepseek: Architecture, module: str) -> None:
    layers = deepseek.layers[1].count
    arch = replace(deepseek, layers=deepseek.layers[1:])
    stack = replace(memory_stack(MEGATRON), recomputed=frozenset({module}))
    none, some = (rank(arch, stack, layout(recompute=level))["activations"] for level in (0, 1))
    assert none - some == pytest.approx((layers - 1) * T * MOE_MODULES[module])


def test_every_second_product_is_kept_operator_by_operator(llama: Architecture) -> None:
    plain = memory_stack(FSDP)
    eager, compiled = (
        rank(llama, replace(plain, compiled=flag), layout(8, sharding=3, recompute=1, micro_batch=8))["activations"]
        for flag in (False, True)
    )
    heads = 2 * A * E + 2 * G * E + 2 * A * E + 4 * A
    assert eager == pytest.approx(L * 8 * T * (2 * H + heads + 2 * F + 2 * H))
    assert eager - compiled == pytest.approx(L * 8 * T * 2 * H)  # a compiler sees that nothing reads the last product


def test_units_of_fsdp_at_the_loss_and_inside_a_layer(llama: Architecture) -> None:
    stack, where = memory_stack(FSDP), layout(8, sharding=3, micro_batch=8)
    layer = LAYER_WEIGHTS + 2 * H
    terms = rank(llama, stack, where)
    assert terms["logits"] == 4 * 8 * T * V
    assert terms["gathered"] == 2 * 2 * layer + 2 * V * H  # two layers, and the head
    short = rank(llama, replace(stack, logit_chunk_tokens=1.0), where)
    assert short["gathered"] == (2 * 2 + 4) * layer + 2 * 2 * V * H  # gradients of a layer and of the head
    assert short["logits"] == 0


def test_pools_of_fsdp_are_lost_not_allocated(llama: Architecture) -> None:
    stack, where = replace(memory_stack(FSDP), fragmentation_share=0.0), layout(8, sharding=3)
    assert rank(llama, stack, where)["fragmentation"] == 4 * V * H
    joined = replace(stack, end_units=1, pooled_logit_bytes=2.0)
    assert rank(llama, joined, where)["fragmentation"] == 4 * 2 * V * H + 2 * T * V


def test_experts_multiply_by_probabilities_before_or_after(deepseek: Architecture) -> None:
    arch = replace(deepseek, layers=deepseek.layers[1:])
    stack = memory_stack(MEGATRON)
    before, after = (rank(arch, replace(stack, expert_outputs=flag), layout())["activations"] for flag in (False, True))
    assert after - before == pytest.approx(58 * T * 8 * 2 * 7168)


def test_a_predicted_token_is_a_layer_and_a_head(deepseek: Architecture) -> None:
    stack = replace(memory_stack(MEGATRON), expert_imbalance=1.0)
    plain, more = (rank(deepseek, replace(stack, predicted_tokens=n), layout(64, pp=4, ep=16), "last") for n in (0, 1))
    moe = deepseek.layers[1]
    outside = moe.parameters - moe.expert_parameters
    ends = 129280 * 7168 + 2 * 7168 * 7168
    assert more["weights"] - plain["weights"] == pytest.approx(2 * (outside + moe.expert_parameters / 16 + ends))
    assert more["logits"] == 2 * plain["logits"]
    first = [rank(deepseek, replace(stack, predicted_tokens=n), layout(64, pp=4, ep=16), "rank0") for n in (0, 1)]
    assert first[0] == first[1]


def test_adapters_train_and_the_base_does_not(llama: Architecture) -> None:
    spec = replace(SPEC, lora_rank=16)
    terms = training_memory(llama, spec, layout())
    sides = 4 * H + A * E + 2 * G * E + A * E + 3 * (H + F)
    adapters = L * 16 * sides
    assert float(terms["weights"]) == pytest.approx(2 * llama.parameters + 2 * adapters)
    assert float(terms["gradients"]) == pytest.approx(2 * adapters)
    assert float(terms["optimizer"]) == pytest.approx(12 * adapters)
    quantised = training_memory(llama, replace(spec, lora_base="nf4"), layout())
    ends = llama.input_embedding_parameters + llama.output_head_parameters + llama.final_norm_parameters
    stored = 4.127 / 8 * (llama.parameters - ends) + 2 * ends  # embedding and head are not quantised
    assert float(quantised["weights"]) == pytest.approx(stored + 2 * adapters, rel=1e-4)
    assert float(terms["scratch"]) == 0


def test_offloading_moves_bytes_to_the_host(llama: Architecture) -> None:
    where = layout(8, sharding=1, recompute=2)
    plain = training_memory(llama, SPEC, where)
    for what in ("optimizer", "activations"):
        spec = replace(SPEC, offload=(what,))
        device, host = training_memory(llama, spec, where), host_bytes(llama, spec, where)
        assert float(device[what] + host[what]) == pytest.approx(float(plain[what]))
        assert float(device.total) < float(plain.total)
        assert float(host.total) == float(host[what])
    assert float(host_bytes(llama, SPEC, where).total) == 0


def test_offloaded_activations_leave_two_layers(llama: Architecture) -> None:
    spec = replace(SPEC, offload=("activations",))
    kept, left = (float(training_memory(llama, each, layout())["activations"]) for each in (SPEC, spec))
    assert left == pytest.approx(kept * 2 / 32)


@pytest.mark.parametrize(("pp", "left"), [(1, 2 / 32), (8, 2 / 4), (16, 1.0), (32, 1.0)])
def test_offloaded_activations_are_at_most_all_of_a_stage(llama: Architecture, pp: int, left: float) -> None:
    """A stage of two layers or fewer has nothing to send away: it keeps what it has, no more."""
    spec, where = replace(SPEC, offload=("activations",)), layout(pp, pp=pp)
    kept, device = (float(training_memory(llama, each, where)["activations"]) for each in (SPEC, spec))
    assert device == pytest.approx(kept * left)
    assert float(host_bytes(llama, spec, where)["activations"]) == pytest.approx(kept * (1 - left))


def test_deepspeed_reduces_in_fp32_and_keeps_outputs_of_stages(llama: Architecture) -> None:
    spec = replace(SPEC, framework="deepspeed")
    where = layout(16, pp=4, sharding=1)
    ours, plain = (training_memory(llama, each, where) for each in (spec, SPEC))
    assert float(ours["optimizer"]) == pytest.approx(16 / 12 * float(plain["optimizer"]))
    assert float(ours["activations"] - plain["activations"]) == pytest.approx(4 * 2 * T * H)


def test_a_zero_bubble_schedule_holds_more_at_the_first_stage(llama: Architecture) -> None:
    stack = memory_stack(MEGATRON)
    where = layout(4, pp=4)
    plain, filled = (
        rank(llama, replace(stack, schedule=name), where, "rank0")["activations"] for name in ("1f1b", "zero_bubble_2")
    )
    assert filled / plain == pytest.approx(float(pipeline.in_flight_zero_bubble(64, 4, 1)) / 4)


def test_gradient_compression_changes_no_memory(llama: Architecture) -> None:
    sizes = {float(training_memory(llama, replace(SPEC, gradient_compression=c), layout(8)).total) for c in (1.0, 4.0)}
    assert len(sizes) == 1
