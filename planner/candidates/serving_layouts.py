"""Legal replicas of a model on a machine: how many devices, and how the model is split over them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.layouts import tensor_splits
from planner.candidates.offers import Site
from planner.estimate.serving import ReplicaLayout
from planner.estimate.serving_work import cache_heads

LARGEST_PIPELINE = 16
LARGEST_SPAN = 16  # shapes of one replica
ATTENTION_RANKS = (1, 2, 4, 8)  # attention data parallelism, for models with experts


def replica_layouts(
    arch: Architecture, site: Site, *, context_parallel: bool = False
) -> tuple[ReplicaLayout, NDArray[np.int64], NDArray[np.int64]]:
    """Legal replicas on a site, with the shapes and the replicas of one unit of each.

    `context_parallel` lets tensor ranks share out the tokens of heads that they would hold in copies.
    """
    per_shape, span = site.shape.devices, LARGEST_SPAN if site.inter_node_bytes_per_s is not None else 1
    domain = max(per_shape, site.shape.scale_up_devices)
    depth = min(max(arch.layer_count, 1), LARGEST_PIPELINE)
    splits = [
        (tp, pp, dp, ep, cp)
        for tp in tensor_splits(arch, domain)
        for pp in (2**k for k in range(depth.bit_length()) if 2**k <= depth)
        for dp in (ATTENTION_RANKS if arch.is_moe else (1,))
        for ep in sorted({1, tp * dp} if arch.is_moe and _experts_divide(arch, tp * dp) else {1})
        if _packs(tp * pp * dp, per_shape, span)
        for cp in (cache_splits(arch, tp) if context_parallel else (1,))
    ]
    tp, pp, dp, ep, cp = np.array(splits, dtype=np.int64).reshape(-1, 5).T
    devices = tp * pp * dp
    nodes = np.maximum(devices // per_shape, 1)
    replicas = np.maximum(per_shape // devices, 1)
    sizes = {"devices": devices, "tp": tp, "pp": pp, "ep": ep, "cp": cp}
    return ReplicaLayout(**{name: size.astype(np.float64) for name, size in sizes.items()}), nodes, replicas


def cache_splits(arch: Architecture, tp: int) -> list[int]:
    """Powers of two of tensor ranks that may share out the tokens of a cache: those that would hold copies."""
    copies = [tp // min(tp, cache_heads(group)) for group in arch.layers if group.attention != "linear"]
    most = min(copies, default=1)
    return [2**k for k in range(most.bit_length()) if most % 2**k == 0]


def _experts_divide(arch: Architecture, ranks: int) -> bool:
    return all(group.experts % ranks == 0 for group in arch.layers if group.experts)


def _packs(devices: int, per_shape: int, span: int) -> bool:
    """A replica is a part of a shape, or a whole number of shapes."""
    return devices <= per_shape or (devices % per_shape == 0 and devices // per_shape <= span)
