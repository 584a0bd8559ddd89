"""Megatron-LM's words for a model: sizes from its config.json, the rest by family.

A family that Megatron's GPT model has no options for (parallel attention, ALiBi, GeGLU, linear attention ...) is
refused: a model that is nearly the right one would be trained with the wrong weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.architecture.model import Architecture, LayerGroup
from planner.carriers import dataclass
from planner.export.launch import Model, NotExpressible, TrainingLaunch, TrainingLayout
from planner.export.training import expert_tensor_size

Option = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family fixes in code: classes of transformers 5.23.0, as planner/architecture/families.py names them."""

    rotary: bool = True  # else learned positions
    rms_norm: bool = True  # else LayerNorm
    activation: str = "--swiglu"  # "" = gelu
    biases: bool = False
    qkv_biases: bool = False
    qk_norm: bool = False
    latent: bool = False  # multi-latent attention
    further: tuple[Option, ...] = ()


_LLAMA = Family()
_LATENT = Family(qk_norm=True, latent=True)
FAMILIES = {
    "gpt2": Family(rotary=False, rms_norm=False, activation="", biases=True),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "phi3": _LLAMA,
    "qwen2": Family(qkv_biases=True),
    "qwen3": Family(qk_norm=True),
    "qwen3_moe": Family(qk_norm=True),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "kimi_k2": _LATENT,
    "nemotron": Family(
        rms_norm=False,
        activation="--squared-relu",
        further=(("--apply-layernorm-1p",), ("--rotary-percent", "0.5")),
    ),
}
SIGMOID_ROUTERS = ("deepseek_v3", "kimi_k2")  # which a bias of each expert keeps even, in place of a loss
_GROUPED = {
    "n_group": "--moe-router-num-groups",
    "topk_group": "--moe-router-group-topk",
    "routed_scaling_factor": "--moe-router-topk-scaling-factor",
}
_SOFTMAX_FIRST = {"norm_topk_prob": "--moe-router-pre-softmax where it is false"}
ROUTING = {  # what a config.json says of how tokens find their experts, by family
    "qwen3_moe": _SOFTMAX_FIRST,
    "deepseek_v2": {**_SOFTMAX_FIRST, **_GROUPED},
    **dict.fromkeys(SIGMOID_ROUTERS, _GROUPED),
}


def model_options(launch: TrainingLaunch) -> list[Option]:
    """Options that describe the model, in the order of Megatron's own groups.

    Raises
    ------
    NotExpressible
        Only the size is known, or the family has something that Megatron-LM has no option for.
    """
    model = launch.model
    if model.arch is None or model.config is None or not model.arch.layers:
        told = "its config.json is not readable here" if model.config_path else "only the size of the model is known"
        raise NotExpressible(told, "give the scenario a preset or {config: path/to/config.json}")
    arch, first = model.arch, model.arch.layers[0]
    family = FAMILIES[arch.family]
    positions = max(arch.max_positions, launch.sequence_length)
    options: list[Option] = [
        ("--num-layers", str(arch.layer_count)),
        ("--hidden-size", str(arch.hidden_size)),
        ("--ffn-hidden-size", str(_dense_width(arch))),
        ("--num-attention-heads", str(first.query_heads)),
        *_attention(first, launch.sequence_length),
        ("--seq-length", str(launch.sequence_length)),
        ("--max-position-embeddings", str(positions)),
        ("--vocab-size", str(arch.vocab_size)),
        ("--make-vocab-size-divisible-by", "128"),
        *_shape_of_layers(family, model.config),
    ]
    options += [] if arch.tied_embeddings else [("--untie-embeddings-and-output-weights",)]
    return options + list(_experts(model, arch, launch.layout))


def _dense_width(arch: Architecture) -> int:
    """Width of the dense MLP; of a model of experts alone, that of an expert."""
    return next((layer.mlp_width for layer in arch.layers if layer.mlp == "dense"), arch.layers[0].expert_width)


def _attention(layer: LayerGroup, sequence_length: int) -> Iterator[Option]:
    if layer.attention == "mla":
        yield ("--kv-lora-rank", str(layer.kv_rank))
        if layer.query_rank:
            yield ("--q-lora-rank", str(layer.query_rank))
        yield ("--qk-head-dim", str(layer.head_size - layer.rope_size))
        yield ("--qk-pos-emb-head-dim", str(layer.rope_size))
        yield ("--v-head-dim", str(layer.value_head_size))
        return
    yield ("--kv-channels", str(layer.head_size))
    if layer.kv_heads != layer.query_heads:
        yield ("--group-query-attention",)
        yield ("--num-query-groups", str(layer.kv_heads))
    if 0 < layer.window_tokens < sequence_length:
        yield ("--window-size", f"{layer.window_tokens - 1},0")


def _shape_of_layers(family: Family, config: Mapping[str, Any]) -> Iterator[Option]:
    yield ("--position-embedding-type", "rope" if family.rotary else "learned_absolute")
    base = config.get("rope_theta")
    if family.rotary and isinstance(base, int | float):
        yield ("--rotary-base", str(int(base)))
    yield from _rope_scaling(config.get("rope_scaling"), family.latent)
    yield ("--normalization", "RMSNorm" if family.rms_norm else "LayerNorm")
    epsilon = config.get("rms_norm_eps" if family.rms_norm else "layer_norm_epsilon")
    if isinstance(epsilon, int | float) and not isinstance(epsilon, bool):
        yield ("--norm-epsilon", repr(float(epsilon)))
    if family.activation:
        yield (family.activation,)
    if not family.biases:
        yield ("--disable-bias-linear",)
    if family.qkv_biases:
        yield ("--add-qkv-bias",)
    if family.latent:
        yield ("--multi-latent-attention",)
    if family.qk_norm:
        yield ("--qk-layernorm",)
    yield from family.further


def _rope_scaling(scaling: Any, latent: bool) -> Iterator[Option]:
    """Llama 3's own scaling of positions, YaRN for latent attention; any other is refused."""
    scaling = scaling if isinstance(scaling, Mapping) else {}
    kind = scaling.get("rope_type", scaling.get("type")) or "default"
    if kind == "default":
        if latent:  # whose default is YaRN, and whose fused kernel knows nothing else
            yield ("--rope-type", "rope")
            yield ("--no-rope-fusion",)
    elif kind == "llama3" and not latent:
        yield ("--use-rope-scaling",)
        yield ("--rope-scaling-factor", _number(scaling.get("factor", 8.0)))
    elif kind == "yarn" and latent:
        yield ("--rope-type", "yarn")
        yield ("--rotary-scaling-factor", _number(scaling.get("factor", 40.0)))
        yield ("--mscale", _number(scaling.get("mscale", 1.0)))
        yield ("--mscale-all-dim", _number(scaling.get("mscale_all_dim", 0.0)))
    else:
        raise NotExpressible(f"its positions are scaled by '{kind}', which is not exported")


def _number(value: Any, key: str = "rope_scaling") -> str:
    """A number of a config.json as an argument; anything else is a mistake of that file."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotExpressible(f"{key} of its config.json holds no number where one belongs", "mend that file")
    return repr(float(value))


def _experts(model: Model, arch: Architecture, layout: TrainingLayout) -> Iterator[Option]:
    routed = [layer for layer in arch.layers if layer.experts]
    if not routed:
        return
    layer = routed[0]
    yield ("--num-experts", str(layer.experts))
    yield ("--moe-ffn-hidden-size", str(layer.expert_width))
    yield ("--moe-router-topk", str(layer.experts_per_token))
    yield from _routed_layers(model, arch)
    if layer.shared_expert_width:
        yield ("--moe-shared-expert-intermediate-size", str(layer.shared_expert_width))
    yield from _routing(arch.family, model.config or {})
    yield ("--moe-grouped-gemm",)
    yield ("--moe-token-dispatcher-type", "alltoall")
    if layout.ep > 1:
        yield ("--expert-model-parallel-size", str(layout.ep))
        yield ("--expert-tensor-parallel-size", str(expert_tensor_size(layout)))


def _routing(family: str, config: Mapping[str, Any]) -> Iterator[Option]:
    """How tokens find their experts: a checkpoint was trained with just that, and means nothing with another."""
    if family in SIGMOID_ROUTERS:
        yield ("--moe-router-score-function", "sigmoid")
        yield ("--moe-router-enable-expert-bias",)
    known = {key: config.get(key) for key in ROUTING.get(family, ())}
    if known.get("norm_topk_prob") is False:
        yield ("--moe-router-pre-softmax",)
    groups, chosen, scale = (known.get(key) for key in _GROUPED)
    if isinstance(groups, int) and groups > 1 and isinstance(chosen, int):
        yield (_GROUPED["n_group"], str(int(groups)))
        yield (_GROUPED["topk_group"], str(int(chosen)))
    if scale not in (None, 1):
        yield (_GROUPED["routed_scaling_factor"], _number(scale, "routed_scaling_factor"))


def _routed_layers(model: Model, arch: Architecture) -> Iterator[Option]:
    """Which layers route: all, or all but the first few."""
    dense = sum(layer.count for layer in arch.layers if not layer.experts)
    if not dense:
        return
    assert model.config is not None
    if model.config.get("first_k_dense_replace") != dense:
        raise NotExpressible("dense layers lie between those with experts, which is not exported")
    yield ("--moe-layer-freq", f"([0]*{dense}+[1]*{arch.layer_count - dense})")
