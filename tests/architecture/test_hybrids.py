"""Mamba-2 and its hybrids, Gemma 4, Molmo and Logics: published counts to the parameter, and what each layer is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from planner.architecture.config import Config
from planner.architecture.from_config import build
from planner.architecture.model import Architecture, core_forward_flop_per_token, linear_context_tokens, state_bytes
from planner.architecture.vision import vision_parts
from planner.equations.flops import attention_forward_flop_per_token as softmax_flop
from planner.equations.kinds_of_attention import state_space_forward_flop_per_token
from planner.errors import InputError
from planner.estimate.layer_memory import layer_scalars
from planner.estimate.memory_stack import memory_stack
from planner.estimate.serving import kv_cache_bytes_of_token
from planner.estimate.serving_work import sequence_state_bytes
from planner.estimate.training_spec import TrainingSpec

MAMBA = {"model_type": "mamba2", "num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8,
         "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768, "expand": 2, "conv_kernel": 4,
         "time_step_limit": [0.0, float("inf")]}  # fmt: skip
NANO_2 = {"model_type": "nemotron_h", "num_hidden_layers": 56, "hidden_size": 4480, "intermediate_size": 15680,
          "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", "vocab_size": 131072,
          "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128,
          "mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}  # fmt: skip
NANO_3 = {"model_type": "nemotron_h", "num_hidden_layers": 52, "hidden_size": 2688, "intermediate_size": 1856,
          "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "vocab_size": 131072,
          "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 64,
          "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "n_routed_experts": 128,
          "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "n_shared_experts": 1,
          "moe_shared_expert_intermediate_size": 3712}  # fmt: skip
GEMMA = {"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "hidden_size": 2816,
         "num_hidden_layers": 30, "num_attention_heads": 16, "num_key_value_heads": 8, "num_global_key_value_heads": 2,
         "head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": True, "intermediate_size": 2112,
         "enable_moe_block": True, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704,
         "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "sliding_window": 1024, "vocab_size": 262144},
         "vision_config": {"hidden_size": 1152, "num_attention_heads": 16, "head_dim": 72, "num_hidden_layers": 27,
                           "intermediate_size": 4304, "patch_size": 16, "position_embedding_size": 10240}}  # fmt: skip
MOLMO = {"model_type": "molmo", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
         "num_key_value_heads": 4, "intermediate_size": 37888, "qkv_bias": True, "vocab_size": 152064}  # fmt: skip
LOGICS = {"model_type": "logics", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
          "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
          "mm_hidden_size": 4224, "mm_vision_tower": "convnext-1024,siglip2-384",
          "siglip_config": {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "patch_size": 14,
                            "num_attention_heads": 16, "num_hidden_layers": 27}}  # fmt: skip


def config_of(data: dict[str, Any], **changed: Any) -> Config:
    data = {**data, **changed}
    return Config(data, "config.json", json.dumps(data, indent=1))


def built(data: dict[str, Any], **changed: Any) -> Architecture:
    return build(config_of(data, **changed), name="m", source="s")


# Looked up on 2026-11-25. Codestral Mamba, of the shape of the class's defaults: ai-tldr.dev/models/codestral-mamba.
# Nemotron Nano 9B v2: the registry of a calculator of caches, from totals of safetensors. Nemotron 3 Nano 30B-A3B:
# n_params of llama.cpp, as logs of llama-bench give it. Gemma 4 26B-A4B: total_parameters of the index of its shards;
# 25.2 and 3.8 billion on its card are of the text model. Molmo 7B-D: a quarter of 32,084,101,120 fp32 bytes of the
# index in maifoundations/LayerCD@6812d5b. Logics-Thinking 8B: half of 18,938,237,760 bytes of the index in
# alibaba/Logics-Thinking@563b07f.
@pytest.mark.parametrize(
    ("data", "published"),
    [
        pytest.param(MAMBA, 7_285_403_648, id="mamba-codestral-7b"),
        pytest.param(NANO_2, 8_888_227_328, id="nemotron-nano-9b-v2"),
        pytest.param(NANO_3, 31_577_940_288, id="nemotron-3-nano-30b-a3b"),
        pytest.param(GEMMA, 25_805_933_872, id="gemma-4-26b-a4b"),
        pytest.param(MOLMO, 8_021_025_280, id="molmo-7b-d"),
        pytest.param(LOGICS, 9_469_118_880, id="logics-thinking-8b"),
    ],
)
def test_counts_are_those_of_the_checkpoints(data: dict[str, Any], published: int) -> None:
    config = config_of(data)
    text = build(config, name="m", source="s").parameters
    assert text + sum(vision_parts(config).values()) == published


def test_active_parameters_are_those_of_the_cards() -> None:
    assert built(GEMMA).active_parameters == pytest.approx(3.8e9, rel=0.01)
    assert built(GEMMA).parameters == pytest.approx(25.2e9, rel=0.005)
    assert built(NANO_3).active_parameters == pytest.approx(3.5e9, rel=0.03)  # llama.cpp names it 31B.A3.5B


def test_a_mixer_and_the_part_after_it_are_a_layer() -> None:
    model = built(NANO_2)
    kinds = [(group.count, group.attention, group.mlp_width) for group in model.layers]
    assert kinds == [(21, "linear", 15680), (6, "linear", 0), (4, "gqa", 15680)]
    alone, pair = model.layers[1], model.layers[0]
    assert pair.norm_parameters == 2 * alone.norm_parameters == 2 * 4480
    listed = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}
    named = {key: value for key, value in NANO_2.items() if key not in ("hybrid_override_pattern", "num_hidden_layers")}
    blocks = [listed[letter] for letter in str(NANO_2["hybrid_override_pattern"])]
    assert built(named, layers_block_type=blocks).layers == model.layers


def test_global_layers_of_gemma_4_have_wider_heads_and_make_values_of_keys() -> None:
    model = built(GEMMA)
    near, far = model.layers
    assert [(group.count, group.window_tokens, group.kv_heads, group.head_size) for group in (near, far)] == [
        (25, 1024, 8, 256),
        (5, 0, 2, 512),
    ]
    assert near.attention_parameters == 2816 * 256 * (16 + 8 + 8 + 16) + 512
    assert far.attention_parameters == 2816 * 512 * (16 + 2 + 16) + 1024
    assert far.qkv_width == (16 + 2) * 512
    # both are cached: they differ by their norms and the rotation
    assert float(kv_cache_bytes_of_token(model, "bf16", 1)) == 2 * 2 * (25 * 8 * 256 + 5 * 2 * 512)
    plain = built({**GEMMA["text_config"], "attention_k_eq_v": False})  # type: ignore[dict-item]
    assert (plain.layers[1].kv_heads, plain.layers[1].qkv_width) == (8, (16 + 8 + 8) * 512)


def test_ranks_that_copy_heads_of_keys_copy_no_projection_of_values() -> None:
    stack = memory_stack(TrainingSpec(tokens=1e9, sequence_length=4096))
    near, far = layer_scalars(built(GEMMA), stack, 4096.0)
    assert (near.kv_parameters_per_head, far.kv_parameters_per_head) == (2816 * 2 * 256, 2816 * 512)


def products(groups: int, heads: int, state: int, size: int, chunk: int) -> Iterator[int]:
    """Multiply-adds of one chunk, block by block as the paper's listing has them."""
    for _ in range(groups):
        yield chunk * chunk * state  # C B^T
    for _ in range(heads):
        yield chunk * chunk * size  # scores times values
        yield chunk * state * size  # the chunk's own state
        yield chunk * state * size  # what the state before gives


@pytest.mark.parametrize("shape", [(1, 4, 16, 8, 32), (8, 128, 128, 64, 256), (2, 6, 5, 7, 3)])
def test_work_is_the_sum_of_the_blocks(shape: tuple[int, ...]) -> None:
    chunk = shape[-1]
    assert float(state_space_forward_flop_per_token(*shape)) == 2 * sum(products(*shape)) / chunk  # type: ignore[arg-type]


def test_the_state_is_all_that_a_sequence_keeps() -> None:
    model = built(MAMBA)
    state = 128 * 64 * 128 * 4 + (8192 + 2 * 8 * 128) * 3 * 2  # fp32 state, three tokens of convolution
    assert state_bytes(model.layers[0]) == state
    assert float(sequence_state_bytes(model)) == 64 * state
    assert float(sequence_state_bytes(model, 4)) == 16 * state
    assert float(kv_cache_bytes_of_token(model, "bf16", 1)) == 0
    group = model.layers[0]
    assert group.qkv_width == 2 * 8192 + 2 * 8 * 128 + 128
    assert float(core_forward_flop_per_token(group, 100)) == float(core_forward_flop_per_token(group, 1e6)) == 8_912_896
    window = linear_context_tokens(group)
    assert float(softmax_flop(128, 128, 64, window)) == pytest.approx(8_912_896)
    assert core_forward_flop_per_token(built(MAMBA, chunk_size=128).layers[0], 1) < 8_912_896


def test_biases_are_counted_where_they_are() -> None:
    one = {"num_hidden_layers": 1}
    plain = built(MAMBA, **one).parameters
    assert built(MAMBA, **one, use_bias=True).parameters - plain == 2 * 8192 + 2 * 8 * 128 + 128 + 4096
    assert plain - built(MAMBA, **one, use_conv_bias=False).parameters == 8192 + 2 * 8 * 128
    normed = built(MOLMO, attention_layer_norm=True).parameters
    assert normed - built(MOLMO).parameters == 28 * (28 + 4) * 128
    assert built(MOLMO).parameters - built(MOLMO, weight_tying=True).parameters == 152064 * 3584


@pytest.mark.parametrize(
    ("data", "changed", "reference", "said"),
    [
        (MAMBA, {"num_heads": 64}, "heads-not-divisible", "not as wide as 'expand'"),
        (MAMBA, {"n_groups": 3}, "heads-not-divisible", "cannot share 3 groups"),
        (MAMBA, {"state_size": float("inf")}, "wrong-type", "Infinity"),
        (NANO_2, {"hybrid_override_pattern": "M-X*"}, "unknown-layer-kind", "not counted: X"),
        (NANO_2, {"hybrid_override_pattern": "M--*"}, "unknown-layer-kind", "follows on no mixer"),
        (NANO_2, {"hybrid_override_pattern": "-M"}, "unknown-layer-kind", "follows on no mixer"),
        (NANO_2, {"hybrid_override_pattern": None}, "missing-key", "the kind of every layer"),
        (NANO_2, {"hybrid_override_pattern": ["M"]}, "missing-key", "the kind of every layer"),
        (NANO_2, {"hybrid_override_pattern": "M" * 20_000}, "missing-key", "the kind of every layer"),
        (NANO_2, {"layers_block_type": ["linear_attention", "window"]}, "unknown-layer-kind", "not counted: ?"),
        (NANO_2, {"num_hidden_layers": 57}, "wrong-length", "56 layers are listed"),
        (NANO_3, {"moe_latent_size": 1024}, "unknown-architecture", "narrower projection"),
        (NANO_3, {"num_experts_per_tok": 129}, "out-of-range", "129 experts"),
        (GEMMA["text_config"], {"hidden_size_per_layer_input": 256}, "unknown-architecture", "embeddings of each"),
        (GEMMA["text_config"], {"num_kv_shared_layers": 10}, "unknown-architecture", "of other layers"),
        (GEMMA["text_config"], {"num_global_key_value_heads": 3}, "heads-not-divisible", "cannot share 3"),
    ],
)  # fmt: skip
def test_what_is_not_counted_is_refused(
    data: dict[str, Any], changed: dict[str, Any], reference: str, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        built(data, **changed)
    assert caught.value.problems[0].reference == reference
    assert all(problem.hint for problem in caught.value.problems)


def test_other_encoders_than_the_released_ones_are_refused() -> None:
    with pytest.raises(InputError, match="its encoders of pictures are not"):
        vision_parts(config_of(LOGICS, mm_vision_tower="siglip2-512"))
