"""What training software keeps in memory: copies of the states, logits, placeholders, pools, what it recomputes.

One table of documented defaults, a row a framework. The same fields are filled for a scenario's job and for a
measured row; layouts only scale what stands here.
"""

from __future__ import annotations

from dataclasses import field, replace

from planner.carriers import dataclass
from planner.equations.activations import CHUNK_TOKENS, EXPERT_IMBALANCE
from planner.equations.memory import LIBRARY_BYTES
from planner.equations.recipes import StateRecipe, quantized_bits_per_parameter, state_recipe
from planner.estimate.training_spec import TrainingSpec

FRAGMENTATION_SHARE = {"expandable": 0.03, "default": 0.05, "variable": 0.15}
TORCH_BUCKET_BYTES = 25.0 * 2**20
DEEPSPEED_BUCKET_BYTES = 5e8 * 2.0  # reduce_bucket_size, 16-bit
TE_WORKSPACE_BYTES = 0.1 * 2**30  # cuBLAS workspaces of PyTorch and Transformer Engine, 32 MiB a stream

# Bytes of a logit at the peak of the loss. What each kind holds at once, beside nothing else of the logits:
LOGIT_BYTES = {
    "in_place": 2.0,  # Transformer Engine, Liger: the gradient takes the place of the 16-bit logits
    "compiled": 4.0,  # torch.compile: 16-bit logits and their gradient
    "vocab_parallel": 6.0,  # Megatron-LM: 16-bit logits or gradient and fp32 exponentials, in place
    "eager": 12.0,  # PyTorch: fp32 log-softmax, its gradient and the gradient of the loss
    "shifted": 14.0,  # Megatron-LM until 2022: fp32 copy, shifted copy, exponentials, 16-bit logits
    "upcast": 18.0,  # transformers: 16-bit logits, fp32 copy, shifted copy, log-softmax and its gradient
    "shifted_16bit": 8.0,  # transformers' GPTBigCode: logits, shifted copy, log-softmax, gradient, never cast
    "fused_upcast": 9.0,  # the same with a fused kernel: 16-bit logits, shifted copy, gradient in place of one
    "loss_parallel": 16.0,  # torch.distributed.tensor.parallel.loss: two fp32 copies more than it returns
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStack:
    """Plain numbers and names of one job; everything that software decides about memory."""

    recipe: StateRecipe
    value_bytes: float = 2.0  # of an activation
    stored_scores: bool = False  # eager attention
    score_bytes: float = 5.0  # 16-bit softmax, dropout mask, dropped output; 2 without dropout
    dropout: bool | None = None  # None: GPT blocks (ungated MLP) store dropout masks, others do not
    narrow_inputs: bool = False  # inputs of linear layers are kept in 8 bits (Transformer Engine)
    sequence_parallel: bool = True  # with tensor parallelism
    recomputed: frozenset[str] = frozenset({"core_attn"})  # what the selective level drops
    compiled: bool = False
    schedule: str = "1f1b"  # of the pipeline, interleaved with virtual stages; zero_bubble_2 fills its bubbles early
    logit_bytes: float = LOGIT_BYTES["vocab_parallel"]
    logit_chunk_tokens: float = 0.0  # 0: all logits of a micro-batch at once
    expert_imbalance: float = EXPERT_IMBALANCE  # tokens of the fullest rank over the mean
    expert_outputs: bool = True  # kept, where probabilities are multiplied after the experts
    placeholders: bool = False  # weight gradients go to fp32 sums, autograd gets cached placeholders
    end_units: int = 0  # FSDP: 1 gathers embedding and head as one unit, 2 as two; 0: nothing apart from the layers
    pooled_logit_bytes: float = 0.0  # of a logit, in blocks that the pool cannot give to anything else
    stage_outputs: bool = False  # DeepSpeed's pipeline keeps the outputs of a stage
    bucket_bytes: float = TORCH_BUCKET_BYTES
    library_bytes: float = LIBRARY_BYTES
    fragmentation_share: float = FRAGMENTATION_SHARE["default"]
    offload: frozenset[str] = frozenset()  # optimizer, activations
    adapter_rank: int = 0  # 0: all weights are trained
    base_bytes: float = 2.0  # of a frozen weight
    table_bytes: float = 2.0  # of a frozen embedding or head, which no quantisation touches
    frees_gradients: bool = False  # before the next forward pass: the loss never meets them
    update_bytes: float = 0.0  # held per trained parameter while the optimizer works on all of them at once
    predicted_tokens: int = 0  # multi-token prediction: further layers with a head each


@dataclass(frozen=True, slots=True, kw_only=True)
class _Framework:
    """What differs from plain PyTorch."""

    losses: dict[str, str] = field(default_factory=lambda: {"fused": "vocab_parallel", "standard": "eager"})
    settings: dict[str, object] = field(default_factory=dict)


_PLAIN = _Framework()
_FRAMEWORKS = {
    # Transformer Engine layers, gradient_accumulation_fusion, buckets that are views of the gradients. Its fused loss
    # is --cross-entropy-loss-fusion as it is by default (native): pretrain_gpt.py refuses that of Transformer Engine
    # since June 2026 (NVIDIA/Megatron-LM pull request 5115, read on 2026-11-30)
    "megatron": _Framework(
        losses={"fused": "vocab_parallel", "standard": "vocab_parallel"},
        settings={
            "placeholders": True, "expert_outputs": False, "bucket_bytes": 0.0, "library_bytes": TE_WORKSPACE_BYTES,
        },
    ),
    # torchtitan: fully_shard, selective_ac_option = op
    "fsdp": _Framework(
        losses={"fused": "compiled", "standard": "eager"},
        settings={"end_units": 2, "recomputed": frozenset({"operators"}), "bucket_bytes": 0.0},
    ),
    # XLA: one static plan of the step, losses fused by the compiler; remat_policy = save_qkv_proj or the like
    "maxtext": _Framework(
        losses={"fused": "compiled", "standard": "compiled"},
        settings={
            "recomputed": frozenset({"core_attn", "layernorm", "mlp", "moe", "shared_experts"}),
            "bucket_bytes": 0.0, "fragmentation_share": FRAGMENTATION_SHARE["expandable"],
        },
    ),
    "deepspeed": _Framework(settings={"stage_outputs": True, "bucket_bytes": DEEPSPEED_BUCKET_BYTES}),
    # transformers' Trainer: gradients set to None after a step, torch.optim's foreach kernels
    "hf": _Framework(
        losses={"fused": "fused_upcast", "standard": "upcast"},
        settings={"frees_gradients": True, "update_bytes": 2.0, "bucket_bytes": 0.0},
    ),
    "torchtune": _Framework(
        losses={"fused": "compiled", "standard": "upcast"},
        settings={"frees_gradients": True, "bucket_bytes": 0.0,
                  "fragmentation_share": FRAGMENTATION_SHARE["expandable"]},
    ),
}  # fmt: skip

BASE_BYTES = {"bf16": 2.0, "fp16": 2.0, "int8": 1.0, "nf4": float(quantized_bits_per_parameter()) / 8.0}


def memory_stack(spec: TrainingSpec) -> MemoryStack:
    """What the job's framework keeps, by its documented defaults and what the scenario states."""
    framework = _FRAMEWORKS.get(spec.framework or "", _PLAIN)
    wide, narrow = spec.precision == "fp32", spec.precision == "fp8"
    chunked = spec.cross_entropy == "chunked"
    kind = framework.losses["standard" if chunked else spec.cross_entropy]
    stack = MemoryStack(
        recipe=state_recipe(spec.optimizer, spec.precision, spec.framework),
        value_bytes=4.0 if wide else 2.0,
        stored_scores=spec.attention == "eager",
        dropout=spec.dropout,
        narrow_inputs=narrow and spec.framework != "fsdp",
        logit_bytes=LOGIT_BYTES[kind] + (2.0 if wide and spec.cross_entropy == "fused" else 0.0),
        logit_chunk_tokens=float(CHUNK_TOKENS) if chunked else 0.0,
        fragmentation_share=FRAGMENTATION_SHARE[spec.allocator],
        offload=frozenset(spec.offload),
        adapter_rank=spec.lora_rank or 0,
        base_bytes=BASE_BYTES[spec.lora_base],
    )
    return replace(stack, **framework.settings)  # type: ignore[arg-type]
