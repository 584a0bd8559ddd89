"""Nemotron-H, whose config lists mixers and feed-forward parts one by one: two of them are a layer here."""

from __future__ import annotations

import re

from planner.architecture.config import MOST, Config
from planner.architecture.families import Family, Feed, attention_bias, experts_per_token

_MIXERS, _FEEDS = "M*", "-E"  # state space and attention; dense and routed feed-forward
_BLOCK_KINDS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "mlp": "-", "moe": "E"}


def _blocks(config: Config) -> list[str]:
    """Nemotron-H: its parts in pairs, a mixer and the feed-forward part after it, where one is.

    The config counts each part as a layer of its own, with a norm before it; two of them are a layer here.
    """
    listed = config.data.get("layers_block_type")
    pattern = config.data.get("hybrid_override_pattern")
    if isinstance(listed, list) and all(isinstance(kind, str) for kind in listed):
        key, pattern = "layers_block_type", "".join(_BLOCK_KINDS.get(kind, "?") for kind in listed)
    else:
        key = "hybrid_override_pattern"
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MOST["layers"]:
        config.fail("missing-key", f"'{key}' must tell the kind of every layer", key)
        return []
    if strange := set(pattern) - {*_MIXERS, *_FEEDS}:
        message = f"'{key}' holds kinds of layers that are not counted: {', '.join(sorted(strange))[:40]}"
        config.fail("unknown-layer-kind", message, key, "counted: M (Mamba-2), * (attention), - (dense), E (experts)")
        return []
    pairs = re.findall(f"[{re.escape(_MIXERS)}][{_FEEDS}]?", pattern)
    if sum(map(len, pairs)) != len(pattern):
        message = f"'{key}' has a feed-forward layer that follows on no mixer, which is not counted"
        config.fail("unknown-layer-kind", message, key)
        return []
    return pairs


def _depth(config: Config) -> int:
    """Nemotron-H: pairs of a mixer and a feed-forward part."""
    named, pairs = config.data.get("num_hidden_layers"), _blocks(config)
    if pairs and named is not None and named != sum(map(len, pairs)):
        message = f"'num_hidden_layers' is {str(named)[:20]}, but {sum(map(len, pairs))} layers are listed"
        config.conflict("wrong-length", message, "num_hidden_layers")
    return len(pairs)


def _states(config: Config, layers: int) -> tuple[bool, ...]:
    """Nemotron-H: layers with Mamba-2."""
    return tuple(pair[0] == "M" for pair in _blocks(config))


def _feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Nemotron-H: dense, routed or none after each mixer.

    Parameters
    ----------
    config
        Its pattern of parts; what is wrong in it is noted there.
    layers, hidden
        Of the model; not looked at, since the pattern tells how many layers there are.
    """
    pairs = _blocks(config)
    kinds = {pair[1:] for pair in pairs}
    made = {"": Feed()}
    if "-" in kinds:
        made["-"] = Feed(width=config.count("intermediate_size", most="width"))
    if "E" in kinds:
        made["E"] = _experts(config)
    return tuple(made[pair[1:]] for pair in pairs)


def _experts(config: Config) -> Feed:
    if config.has("moe_latent_size"):
        config.fail("unknown-architecture", "experts behind a narrower projection are not counted", "moe_latent_size",
                    "a job takes model: {parameters: 8B}")  # fmt: skip
    experts = config.count("n_routed_experts", most="experts")
    shared = config.count("n_shared_experts", most="experts", default=1, least=0)
    return Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("moe_intermediate_size", most="width"),
        shared_width=config.count("moe_shared_expert_intermediate_size", most="width") if shared else 0,
        router_values=1,
    )


NEMOTRON_H = Family(
    title="Nemotron-H and Nemotron Nano 2 and 3",
    gated=False,
    head_size=128,
    other="state-space",
    others=_states,
    depth=_depth,
    feeds=_feeds,
    variant=attention_bias,
)
