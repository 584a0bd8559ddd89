"""Model shapes of published measurements, as composed estimates of plain numbers."""

from __future__ import annotations

from dataclasses import replace

from planner.architecture.load import load_model
from planner.architecture.model import Architecture, LayerGroup
from planner.estimate.layout import Layout
from planner.estimate.training import training_memory
from planner.estimate.training_spec import TrainingSpec


def llama_like(*, hidden: int, layers: int, heads: int, kv: int, width: int, vocab: int = 128256) -> Architecture:
    """A model of Llama 3's kind: grouped heads of 128, gated MLP, untied embeddings."""
    attention, mlp = hidden * 128 * (2 * heads + 2 * kv), 3 * hidden * width
    group = LayerGroup(
        count=layers,
        attention="gqa",
        query_heads=heads,
        kv_heads=kv,
        head_size=128,
        value_head_size=128,
        mlp_width=width,
        attention_parameters=attention,
        mlp_parameters=mlp,
        norm_parameters=2 * hidden,
    )
    table = vocab * hidden
    total = layers * group.parameters + 2 * table + hidden
    return Architecture(
        name="llama-like",
        family="llama",
        source="test",
        hidden_size=hidden,
        vocab_size=vocab,
        tied_embeddings=False,
        max_positions=8192,
        layers=(group,),
        input_embedding_parameters=table,
        position_parameters=0,
        output_head_parameters=table,
        final_norm_parameters=hidden,
        parameters=total,
        active_parameters=total,
        matmul_parameters=total - table,
    )


def deepseek_like(*, model: str, layers: int, dense: int) -> Architecture:
    """A shipped DeepSeek model cut to `layers` layers, the first `dense` of them without experts."""
    arch = load_model(model)
    groups = (replace(arch.layers[0], count=dense), replace(arch.layers[1], count=layers - dense))
    outside = arch.input_embedding_parameters + arch.output_head_parameters + arch.final_norm_parameters
    total = outside + sum(group.count * group.parameters for group in groups)
    return replace(arch, layers=groups, parameters=total, active_parameters=total)


def megatron_allocated_bytes(
    hidden: int,
    layers: int,
    heads: int,
    kv: int,
    width: int,
    tp: int,
    pp: int,
    dp: int,
    cp: int = 1,
    sequence: int = 4096,
) -> float:
    """Bytes in tensors on the fullest rank: Megatron-LM, distributed optimizer, 4 micro-batches of 1."""
    arch = llama_like(hidden=hidden, layers=layers, heads=heads, kv=kv, width=width)
    return _allocated_bytes(arch, tp=tp, pp=pp, dp=dp, cp=cp, ep=1, sequence=sequence)


def megatron_expert_bytes(model: str, layers: int, dense: int, pp: int, dp: int, ep: int) -> float:
    """The same for a cut DeepSeek model without tensor parallelism."""
    arch = deepseek_like(model=model, layers=layers, dense=dense)
    return _allocated_bytes(arch, tp=1, pp=pp, dp=dp, cp=1, ep=ep, sequence=4096)


def _allocated_bytes(arch: Architecture, *, tp: int, pp: int, dp: int, cp: int, ep: int, sequence: int) -> float:
    """`max_memory_allocated` counts tensors, so what the allocator loses to fragmentation is left out."""
    spec = TrainingSpec(tokens=1e9, sequence_length=sequence, framework="megatron")
    layout = Layout(
        devices=tp * pp * dp * cp,
        dp=dp,
        tp=tp,
        pp=pp,
        vpp=1,
        cp=cp,
        ep=ep,
        micro_batch=1,
        sharding=1,
        recompute=0,
        global_batch=4 * dp,
    )
    terms = training_memory(arch, spec, layout)
    return float(terms.total - terms["fragmentation"])
