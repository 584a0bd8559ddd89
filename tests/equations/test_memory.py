"""Model states of every recipe, and the smaller parts of a device's memory."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations import memory as mem
from planner.equations import recipes
from tests.published.equations.memory import model_state_bytes
from tests.published.equations.recipes import adapter_state_bytes

TABLE = {  # total bytes of a parameter, as the recipes are tabulated
    ("adamw", "fp32", None): 16,
    ("adamw", "fp16", None): 16,
    ("adamw", "bf16", None): 16,
    ("adamw", "bf16", "megatron"): 18,
    ("adam", "bf16", "fsdp"): 16,
    ("adamw", "fp8", None): 20,
    ("adamw-pure-bf16", "bf16", None): 8,
    ("adamw-bf16-moments", "bf16", None): 14,
    ("adamw-8bit", "bf16", None): 10,
    ("adamw-8bit-no-master", "bf16", None): 6,
    ("adafactor", "bf16", None): 8,
    ("adafactor-momentum", "bf16", None): 12,
    ("sgd-momentum", "bf16", None): 12,
    ("sgd", "bf16", None): 8,
    ("sgd", "fp32", None): 8,
    ("sgd-momentum", "fp32", None): 12,
    ("muon", "bf16", None): 14,
}


@pytest.mark.parametrize(("optimizer", "precision", "framework"), TABLE)
def test_bytes_of_a_parameter(optimizer: str, precision: str, framework: str | None) -> None:
    recipe = mem.state_recipe(optimizer, precision, framework)
    assert recipe.total == TABLE[optimizer, precision, framework]
    assert recipe.source


@pytest.mark.parametrize("optimizer", mem.OPTIMIZERS)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16", "fp8"])
def test_every_optimizer_has_a_recipe_at_every_precision(optimizer: str, precision: str) -> None:
    assert mem.state_recipe(optimizer, precision).total >= 6


def test_founding_vector() -> None:
    assert mem.adam_mixed_precision_state_bytes(1.5e9) == 24e9


def test_states_of_every_recipe_shrink_with_the_stage() -> None:
    for recipe in mem.RECIPES.values():
        sizes = [
            float(model_state_bytes(1e9, recipe.weight, recipe.gradient, recipe.optimizer, 8, stage))
            for stage in range(4)
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[3] == pytest.approx(recipe.total * 1e9 / 8)


def test_a_shard_group_of_one_shards_nothing() -> None:
    sizes = model_state_bytes(1e9, 2, 2, 12, 1, np.arange(4))
    assert np.all(sizes == 16e9)


def test_zero_2_under_a_pipeline_keeps_whole_gradients() -> None:
    stage = mem.effective_sharding_stage(np.array([0, 1, 2, 2, 2, 3]), np.array([8, 8, 8, 1, 8, 8]), [4, 4, 4, 4, 1, 4])
    assert stage.tolist() == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(("capacity", "usable"), [(80 * 2**30, 84.4e9), (32 * 2**30, 32.9e9)])
def test_usable_memory_of_published_sizes(capacity: float, usable: float) -> None:
    assert mem.usable_memory_bytes(capacity) == pytest.approx(usable, rel=2e-3)


def test_a_known_reserve_wins_and_an_unknown_one_is_bounded() -> None:
    assert mem.usable_memory_bytes(16e9, 1e9) == 15e9
    assert mem.usable_memory_bytes(16e9, None) == pytest.approx(16e9 * 0.93)
    assert mem.usable_memory_bytes(np.array([1e9, 80e9])) == pytest.approx([0.93e9, 78.5e9])


def test_lora_and_qlora() -> None:
    adapters = 40e6
    lora = adapter_state_bytes(7e9, 2, adapters)
    qlora = adapter_state_bytes(7e9, recipes.quantized_bits_per_parameter() / 8, adapters)
    assert lora == 7e9 * 2 + 16 * adapters
    assert qlora == pytest.approx(7e9 * 0.515869 + 16 * adapters, rel=1e-5)


def test_shard_group_of_experts() -> None:
    assert mem.expert_shard_devices(64, 2, 4, 32, 4) == 4
    assert mem.expert_shard_devices(64, 2, 4, 32, 1) == 16
