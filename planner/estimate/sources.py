"""Which equation stands behind each term: what `explain` prints beside a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.equations import (
    activations,
    bands,
    communication,
    kv_cache,
    layer_parts,
    memory,
    mixed,
    pipeline,
    queueing,
    reliability,
    replicas,
    rules,
    serving,
    serving_load,
    serving_memory,
    step_time,
)


def _id(function: Callable[..., Any]) -> str:
    return str(function.equation_id)  # type: ignore[attr-defined]


TRAINING_MEMORY: Mapping[str, str] = {
    "weights": _id(memory.weight_memory_bytes),
    "gradients": _id(memory.gradient_memory_bytes),
    "optimizer": _id(memory.optimizer_memory_bytes),
    "activations": _id(activations.layer_activation_bytes),
    "logits": _id(layer_parts.loss_peak_bytes),
    "gathered": _id(memory.gathered_layer_bytes),
    "scratch": _id(memory.weight_gradient_scratch_bytes),
    "buckets": _id(memory.gradient_bucket_bytes),
    "fragmentation": _id(memory.fragmentation_bytes),
}
RULE_TIME: Mapping[str, str] = {
    "compute": _id(rules.training_hours),
    "recompute": _id(rules.full_recompute_time_factor),
    "tensor_parallel": _id(communication.hierarchical_all_reduce_s),
    "context_parallel": _id(communication.point_to_point_s),
    "expert_parallel": _id(communication.all_to_all_s),
    "data_parallel": _id(communication.hierarchical_all_gather_s),
    "pipeline_bubble": _id(pipeline.bubble_fraction),
    "ragged_batch": _id(rules.tokens_per_step),
    "large_batch": _id(rules.critical_batch_token_factor),
}
ANALYTIC_TIME: Mapping[str, str] = {
    "products": _id(step_time.matrix_product_s),
    "attention": _id(step_time.attention_core_s),
    "elementwise": _id(step_time.layer_traffic_bytes),
    "experts": _id(step_time.matrix_product_s),
    "recompute": _id(step_time.matrix_product_s),
    "tensor_parallel": _id(communication.hierarchical_all_reduce_s),
    "expert_parallel": _id(communication.all_to_all_s),
    "context_parallel": _id(communication.point_to_point_s),
    "offload": _id(step_time.exposed_s),
    "host": _id(step_time.launch_bound_s),
    "head": _id(step_time.matrix_product_s),
    "uneven_stages": _id(pipeline.uneven_stage_fraction),
    "pipeline_bubble": _id(pipeline.bubble_fraction),
    "pipeline_transfer": _id(communication.point_to_point_s),
    "accumulation": _id(step_time.accumulation_s),
    "data_parallel": _id(communication.hierarchical_all_gather_s),
    "optimizer": _id(step_time.optimizer_step_s),
    "large_batch": _id(rules.critical_batch_token_factor),
}
MIXED_TIME: Mapping[str, str] = {
    "group_wait": _id(mixed.mixed_step_s),
    "group_synchronisation": _id(mixed.groups_all_reduce_s),
}
MIXED_BOUNDS = tuple(
    _id(function)
    for function in (
        mixed.proportional_share,
        mixed.least_group_s,
        mixed.group_traffic_bytes,
        mixed.least_cost_per_sequence,
    )
)
RUN_TIME: Mapping[str, str] = {
    "scale_loss": _id(reliability.scale_loss_factor),
    "stragglers": _id(reliability.straggler_factor),
    "checkpoints": _id(reliability.checkpoint_write_s),
    "lost_work": _id(reliability.best_interval_s),
    "restarts": _id(reliability.inverse_goodput),
}
BAND = _id(bands.band_quantile)
SERVING_MEMORY: Mapping[str, str] = {
    "weights": _id(serving_memory.quantised_bytes_per_parameter),
    "workspace": _id(serving_memory.activation_workspace_bytes),
    "overhead": _id(serving_memory.engine_overhead_bytes),
    "kv_cache": _id(kv_cache.kv_cache_bytes_per_token),
}
SERVING_SPEED: Mapping[str, str] = {
    "requests_per_s": _id(serving_load.steady_state_requests_per_s),
    "decode": _id(serving.kernel_group_time_s),
    "replicas": _id(replicas.replicas_needed),
}
SERVING_STEP: Mapping[str, str] = {
    "linear": _id(serving.kernel_group_time_s),
    "experts": _id(serving.distinct_experts),
    "attention": _id(serving.attention_flop_per_context_token),
    "collectives": _id(communication.ring_all_reduce_s),
    "pipeline": _id(communication.point_to_point_s),
    "launch": _id(serving.launch_time_s),
    "draft": _id(serving.accepted_tokens_per_step),
}
SERVING_LATENCY: Mapping[str, str] = {
    "prefill_wait": _id(queueing.prefill_queue_wait_s),
    "step": _id(queueing.mixed_step_s),
    "slots": _id(queueing.slot_wait_probability),
    "resident": _id(queueing.resident_tokens_mean),
    "arrivals": _id(queueing.arrival_wait_factor),
    "replicas": _id(replicas.replicas_needed),
}


def time_equations(tier: str) -> dict[str, str]:
    """Id behind each term of a training time by a tier."""
    return {**(ANALYTIC_TIME if tier == "analytic" else RULE_TIME), **RUN_TIME}


def training_equations(tier: str, *, mixed: bool = False) -> list[str]:
    """Ids behind a training estimate by a tier, each once; `mixed`: of a job that may be mixed."""
    more = [*MIXED_TIME.values(), *MIXED_BOUNDS] if mixed else []
    return list(dict.fromkeys([*TRAINING_MEMORY.values(), *time_equations(tier).values(), BAND, *more]))


USERS: Mapping[str, str] = {
    "others": _id(serving_load.users_of_others),
    "rate": _id(serving_load.interactive_requests_per_s),
    "crowd": _id(serving_load.crowd_stiffness),
    "line": _id(serving_load.relieved_share),
    "in line": _id(serving_load.crowd_in_line_s),
}


def serving_equations(tier: str, *, given_throughput: bool, users: bool = False) -> list[str]:
    """Ids behind a serving estimate by a tier, each once.

    Parameters
    ----------
    tier
        rule, analytic or measured.
    given_throughput
        The scenario names the throughput of a device; no matter to the analytic tier.
    users
        The fleet has users who wait for each answer; only the analytic tier counts them.
    """
    speed = [_id(rules.serving_devices)] if given_throughput else list(SERVING_SPEED.values())
    if tier == "analytic":
        speed = [*SERVING_STEP.values(), *SERVING_LATENCY.values(), *(USERS.values() if users else ()), BAND]
    return list(dict.fromkeys([*SERVING_MEMORY.values(), *speed]))
