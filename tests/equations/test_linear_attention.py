"""Hybrid models: layers whose state does not grow, in counts, training and serving."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.architecture.load import PRESETS, load_config, load_model
from planner.architecture.model import (
    Architecture,
    attention_forward_flop_per_token,
    core_forward_flop_per_token,
    linear_context_tokens,
    state_bytes,
)
from planner.equations.flops import attention_forward_flop_per_token as softmax_flop
from planner.equations.kinds_of_attention import linear_attention_forward_flop_per_token
from planner.equations.kv_cache import constant_state_bytes
from planner.errors import InputError
from planner.estimate.layer_memory import layer_scalars
from planner.estimate.machine import Machine
from planner.estimate.memory_stack import memory_stack
from planner.estimate.serving import IDEAL, Replica, ReplicaLayout, ServingPeaks, ServingWork, kv_cache_bytes_of_token
from planner.estimate.serving_step import sequence_cache_bytes
from planner.estimate.serving_work import sequence_state_bytes
from planner.estimate.training_spec import TrainingSpec
from planner.estimate.work import Work

NEXT = json.loads((PRESETS / "qwen3-next-80b-a3b.json").read_text())["config"]
STATE = 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2  # of one layer: fp32 state, three tokens of convolution


@pytest.fixture(scope="module")
def arch() -> Architecture:
    return load_model("qwen3-next-80b-a3b")


def read(folder: Path, **changed: Any) -> Architecture:
    file = folder / "config.json"
    file.write_text(json.dumps(NEXT | changed, indent=1))
    return load_config(file)


def replica(arch: Architecture, **layout: float) -> Replica:
    machine = Machine(
        peak_flop_per_s=1e15, mfu=1.0, memory_bytes=80e9, memory_bandwidth_bytes_per_s=1e12, pair_bytes_per_s=1e11,
        all_bytes_per_s=1e11,
    )  # fmt: skip
    return Replica(
        work=ServingWork.of(arch, "bf16", "bf16"),
        layout=ReplicaLayout(**{"devices": 1.0, **layout}),
        machine=machine,
        peaks=ServingPeaks(linear=1e15, expert=1e15, attention=1e15),
        constants=IDEAL,
    )


def test_sizes_of_the_two_kinds(arch: Architecture) -> None:
    linear, full = arch.layers
    assert (linear.attention, linear.count, full.attention, full.count) == ("linear", 36, "gqa", 12)
    assert linear.attention_parameters == 33_718_464
    assert full.attention_parameters == 27_263_488  # with the gate of the output, as wide as the queries
    assert linear.qkv_width == 2 * 2048 + 2 * 4096 + 64
    assert full.qkv_width == 2 * 16 * 256 + 2 * 2 * 256
    assert linear.router_parameters == 2048 * 512 + 2048  # the shared expert's gate


def test_state_of_a_published_hybrid(arch: Architecture) -> None:
    """36 x 524,288 values, as in the model's own account; Qwen3.5-4B's 24 layers take 51,511,296 B in SGLang."""
    assert float(constant_state_bytes(36, 32, 128, 128, 1)) == 18_874_368
    assert state_bytes(arch.layers[0]) == STATE
    assert state_bytes(arch.layers[1]) == 0
    assert float(sequence_state_bytes(load_model("qwen3.5-4b"))) == 51_511_296


def test_layer_types_say_which_layers_are_linear(tmp_path: Path) -> None:
    kinds = ["linear_attention"] * 40 + ["full_attention"] * 8
    model = read(tmp_path, layer_types=kinds)
    assert [(group.attention, group.count) for group in model.layers] == [("linear", 40), ("gqa", 8)]
    every = read(tmp_path, full_attention_interval=2)
    assert [group.count for group in every.layers] == [24, 24]


@pytest.mark.parametrize(
    ("changed", "reference"),
    [
        ({"layer_types": ["mamba"] * 48}, "unknown-layer-kind"),
        ({"layer_types": ["full_attention"]}, "wrong-length"),
        ({"linear_num_key_heads": 5}, "heads-not-divisible"),
        ({"linear_key_head_dim": 0}, "out-of-range"),
        ({"full_attention_interval": "four"}, "wrong-type"),
    ],
)
def test_bad_hybrids_are_refused(tmp_path: Path, changed: dict[str, Any], reference: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, **changed)
    assert caught.value.problems[0].reference == reference
    assert caught.value.problems[0].places[0].line is not None


def test_other_families_know_no_linear_layers(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, model_type="mistral", layer_types=["linear_attention"] * 48)
    assert caught.value.problems[0].reference == "unknown-layer-kind"


def test_work_grows_with_the_sequence_and_not_with_its_square(arch: Architecture) -> None:
    linear, full = arch.layers
    lengths = np.array([2048.0, 4096.0, 1e6])
    assert len(set(np.asarray(core_forward_flop_per_token(linear, lengths)).tolist())) == 1
    grows = np.asarray(attention_forward_flop_per_token(arch, lengths))
    assert np.diff(grows) == pytest.approx(12 * 2 * 16 * 512 * np.diff(lengths) / 2)
    window = linear_context_tokens(linear)
    assert float(softmax_flop(32, 128, 128, window)) == pytest.approx(float(core_forward_flop_per_token(linear, 1e4)))
    assert linear_context_tokens(full) == 0
    layers = Work.of(arch, 65536).layers
    assert [(layer.linear, layer.window_tokens, layer.qkv_width) for layer in layers] == [
        (1, window, linear.qkv_width),
        (0, 0, full.qkv_width),
    ]


def test_decoding_a_token_of_qwen35_takes_the_published_work() -> None:
    """36,972,953,792 FLOPs of all matrix products at 8,192 cached tokens, counted elsewhere from the model's code.

    The convolutions are in it (45 layers of 12,288 channels and four taps), and 192 FLOPs of the rotation.
    """
    model = load_model("qwen3.5-397b-a17b")
    linear, full = model.layers
    core = linear.count * float(linear_attention_forward_flop_per_token(64, 128, 128, 0))
    seen = full.count * float(softmax_flop(full.query_heads, full.head_size, full.value_head_size, 8193))
    convolutions = 45 * 12_288 * 4 * 2
    assert 2 * model.matmul_parameters + core + seen + convolutions + 192 == 36_972_953_792


def test_training_keeps_no_scores_of_linear_layers(arch: Architecture) -> None:
    stack = memory_stack(TrainingSpec(tokens=1e9, sequence_length=4096))
    linear, full = layer_scalars(arch, replace(stack, stored_scores=True), 4096.0)
    assert linear.score_bytes == 0 < full.score_bytes
    assert linear.kv_heads == 0
    longer = layer_scalars(arch, stack, 8192.0)[0]
    assert longer.kept == layer_scalars(arch, stack, 4096.0)[0].kept
    gateless = replace(arch.layers[1], output_gate=False)
    plain = layer_scalars(replace(arch, layers=(gateless,)), stack, 4096.0)[0]
    gated = layer_scalars(arch, stack, 4096.0)[1]
    assert gated.kept.split - plain.kept.split == 2 * 2 * 16 * 256  # gate and gated output, 16 bits


def test_a_sequence_holds_cache_and_state(arch: Architecture) -> None:
    token = 12 * 2 * 2 * 256 * 2
    assert float(kv_cache_bytes_of_token(arch, "bf16")) == token
    assert float(sequence_cache_bytes(arch, "bf16", 10_000)) == 10_000 * token + 36 * STATE
    assert float(sequence_cache_bytes(arch, "fp8", 10_000)) == 5_000 * token + 36 * STATE  # the state stays in fp32
    half = float(sequence_cache_bytes(arch, "bf16", 10_000, 4))
    assert half == 10_000 * token / 2 + 36 * STATE / 4  # two key-value heads, 32 heads of the state


def test_a_decode_step_reads_and_writes_the_state(arch: Architecture) -> None:
    bare = replace(arch, layers=tuple(replace(group, kernel_tokens=1) for group in arch.layers))
    one, other = replica(arch), replica(bare)
    saved = float(one.decode_step(64, 4096)["attention"]) - float(other.decode_step(64, 4096)["attention"])
    assert saved == pytest.approx(64 * 36 * 2 * (2 * 2048 + 4096) * 3 * 2 / 1e12)
    token = 12 * 2 * 2 * 256 * 2
    step = float(one.decode_step(64, 4096)["attention"])
    assert step == pytest.approx(64 * (4096 * token + 2 * 36 * STATE) / 1e12)
    split = float(replica(arch, devices=2.0, tp=2.0).decode_step(64, 4096)["attention"])
    assert split == pytest.approx(step / 2)


def test_prefill_of_linear_layers_is_linear_in_the_prompt(arch: Architecture) -> None:
    only = replace(arch, layers=arch.layers[:1])
    short, long = (float(replica(only).prefill(tokens)["attention"]) for tokens in (20_000, 40_000))
    assert long / short == pytest.approx(2.0, rel=0.01)
    linear, full = ServingWork.of(arch, "bf16", "bf16").layers
    assert linear.kernel_units - full.kernel_units == pytest.approx(0.4)  # four kernels more


def test_models_without_states_are_as_before() -> None:
    for name in ("llama-3-8b", "deepseek-v3", "gpt-oss-120b", "gemma-3-27b"):
        model = load_model(name)
        assert float(sequence_state_bytes(model)) == 0
        assert all(layer.state_bytes == 0 for layer in ServingWork.of(model, "fp8", "bf16").layers)
        assert all(layer.linear == 0 for layer in Work.of(model, 4096).layers)
