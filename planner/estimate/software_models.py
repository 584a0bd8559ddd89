"""Models that programs of training make: families that Megatron-LM has options for, and tables of what others ship.

A program that ships its models by name trains those of the sizes in its table and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.architecture.model import Architecture
from planner.carriers import dataclass

# Families of models whose every part Megatron-LM's GPT model has options for
MEGATRON_FAMILIES = ("gpt2", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2",
                     "deepseek_v3", "kimi_k2", "nemotron")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A model that torchtitan 0.2.2 ships: its room, its flavor, and the sizes that tell it."""

    name: str
    flavor: str
    model_type: str  # of config.json
    layers: int
    hidden_size: int
    vocab_size: int
    pipeline: bool  # whether it can be cut into stages


FLAVORS = tuple(
    Flavor(name=name, flavor=flavor, model_type=kind, layers=layers, hidden_size=hidden, vocab_size=vocab, pipeline=cut)
    for name, kind, cut, rows in (
        ("llama3", "llama", True,
         (("8B", 32, 4096, 128256), ("70B", 80, 8192, 128256), ("405B", 126, 16384, 128256))),
        ("qwen3", "qwen3", False,
         (("0.6B", 28, 1024, 151936), ("1.7B", 28, 2048, 151936), ("4B", 36, 2560, 151936),
          ("8B", 36, 4096, 151936), ("14B", 40, 5120, 151936), ("32B", 64, 5120, 151936))),
        ("qwen3", "qwen3_moe", False, (("30B-A3B", 48, 2048, 151936), ("235B-A22B", 94, 4096, 151936))),
        ("deepseek_v3", "deepseek_v2", True, (("16B", 27, 2048, 102400), ("236B", 60, 5120, 102400))),
        ("deepseek_v3", "deepseek_v3", True, (("671B", 61, 7168, 129280),)),
        ("gpt_oss", "gpt_oss", False, (("20b", 24, 2880, 201088), ("120b", 36, 2880, 201088))),
    )
    for flavor, layers, hidden, vocab in rows
)  # fmt: skip


def titan_flavor(arch: Architecture | None) -> Flavor | None:
    """The model of torchtitan that has a model's sizes; None where it ships none.

    Parameters
    ----------
    arch
        The model; None where only its size is known.
    """
    if arch is None:
        return None
    sizes = (arch.family, arch.layer_count, arch.hidden_size, arch.vocab_size)
    named = (one for one in FLAVORS if (one.model_type, one.layers, one.hidden_size, one.vocab_size) == sizes)
    return next(named, None)


# Models of MaxText 0.2.5 by family of config.json, layers, hidden size, vocabulary, key-value heads and width of an MLP
# or expert: maxtext/configs/models in the wheel, read on 2026-11-23. Of Llama 3 and 3.1, which scale positions unlike,
# the longest context tells.
MAXTEXT_MODELS: Mapping[tuple[str | int, ...], str] = MappingProxyType(
    {
        ("gemma", 18, 2048, 256000, 1, 16384): "gemma-2b",
        ("gemma", 28, 3072, 256000, 16, 24576): "gemma-7b",
        ("gemma2", 26, 2304, 256000, 4, 9216): "gemma2-2b",
        ("gemma2", 42, 3584, 256000, 8, 14336): "gemma2-9b",
        ("gemma2", 46, 4608, 256000, 16, 36864): "gemma2-27b",
        ("llama", 32, 4096, 32000, 32, 11008): "llama2-7b",
        ("llama", 40, 5120, 32000, 40, 13824): "llama2-13b",
        ("llama", 80, 8192, 32000, 8, 28672): "llama2-70b",
        ("llama", 32, 4096, 128256, 8, 14336): "llama3.1-8b",
        ("llama", 80, 8192, 128256, 8, 28672): "llama3.1-70b",
        ("llama", 126, 16384, 128256, 8, 53248): "llama3.1-405b",
        ("mistral", 32, 4096, 32000, 8, 14336): "mistral-7b",
        ("mixtral", 32, 4096, 32000, 8, 14336): "mixtral-8x7b",
        ("mixtral", 56, 6144, 32768, 8, 16384): "mixtral-8x22b",
        ("qwen2", 28, 1536, 151936, 2, 8960): "qwen2.5-1.5b",
        ("qwen2", 28, 3584, 152064, 4, 18944): "qwen2.5-7b",
        ("qwen2", 48, 5120, 152064, 8, 13824): "qwen2.5-14b",
        ("qwen3", 28, 1024, 151936, 8, 3072): "qwen3-0.6b",
        ("qwen3", 28, 2048, 151936, 8, 6144): "qwen3-1.7b",
        ("qwen3", 36, 2560, 151936, 8, 9728): "qwen3-4b",
        ("qwen3", 36, 4096, 151936, 8, 12288): "qwen3-8b",
        ("qwen3", 40, 5120, 151936, 8, 17408): "qwen3-14b",
        ("qwen3", 64, 5120, 151936, 8, 25600): "qwen3-32b",
        ("qwen3_moe", 48, 2048, 151936, 4, 768): "qwen3-30b-a3b",
        ("qwen3_moe", 94, 4096, 151936, 4, 1536): "qwen3-235b-a22b",
        ("gpt_oss", 24, 2880, 201088, 8, 2880): "gpt-oss-20b",
        ("gpt_oss", 36, 2880, 201088, 8, 2880): "gpt-oss-120b",
    }
)
_LLAMA_3 = {"llama3.1-8b": "llama3-8b", "llama3.1-70b": "llama3-70b"}
_LLAMA_3_POSITIONS = 8192


def maxtext_model(arch: Architecture | None) -> str | None:
    """MaxText's name of a model; None where it ships none of its sizes.

    Parameters
    ----------
    arch
        The model; None where only its size is known.
    """
    if arch is None or not arch.layers:
        return None
    first = arch.layers[0]
    widths = first.kv_heads, first.expert_width or first.mlp_width
    found = MAXTEXT_MODELS.get((arch.family, arch.layer_count, arch.hidden_size, arch.vocab_size, *widths))
    return _LLAMA_3.get(found, found) if found and arch.max_positions == _LLAMA_3_POSITIONS else found
