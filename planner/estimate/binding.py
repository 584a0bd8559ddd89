"""What a time is spent on: every term of every tier belongs to one resource."""

from __future__ import annotations

from collections.abc import Mapping

_TERMS: Mapping[str, tuple[str, ...]] = {
    "compute": ("compute", "products", "attention", "experts", "head"),
    "recomputation": ("recompute",),
    "memory bandwidth": ("elementwise", "accumulation", "optimizer"),
    "communication": (
        *("tensor_parallel", "expert_parallel", "context_parallel", "data_parallel", "pipeline_transfer", "offload"),
    ),
    "pipeline bubble": ("pipeline_bubble", "uneven_stages"),
    "host": ("host",),
    "other groups": ("group_wait", "group_synchronisation"),
    "batch": ("ragged_batch", "large_batch"),
    "failures and scale": ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts"),
}
RESOURCE: Mapping[str, str] = {term: resource for resource, terms in _TERMS.items() for term in terms}


def bound_by(terms: Mapping[str, float]) -> dict[str, float]:
    """Share of the time by resource, largest first.

    Products wait for whichever of compute and memory is slower, so that `compute` holds what small products lose to
    memory; what is listed as memory bandwidth is traffic beside the products.

    Examples
    --------
    >>> bound_by({"products": 6.0, "host": 1.0, "attention": 1.0})
    {'compute': 0.875, 'host': 0.125}
    """
    total = sum(terms.values())
    shares: dict[str, float] = {}
    for name, value in terms.items():
        resource = RESOURCE.get(name, "other")
        shares[resource] = shares.get(resource, 0.0) + (value / total if total else 0.0)
    return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share > 0}
