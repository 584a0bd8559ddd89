"""Legal replicas of a model on a machine: how many devices, and how the model is split over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.layouts import splits_tensors, tensor_splits
from planner.candidates.offers import Site
from planner.estimate.serving import ReplicaLayout
from planner.estimate.serving_work import cache_heads

LARGEST_PIPELINE = 16
LARGEST_SPAN = 16  # shapes of one replica
ATTENTION_RANKS = (1, 2, 4, 8, 16, 32)  # attention data parallelism, for models with experts
# Beyond which guides spread whole experts over the ranks (vLLM, "Expert Parallel Deployment"; SGLang, "Large-scale
# expert parallelism", of 4 to 12 nodes; read on 2026-12-01)
CUT_RANKS = 8


def _any_split(_: Mapping[str, int]) -> bool:
    return True


def replica_layouts(
    arch: Architecture,
    site: Site,
    *,
    context_parallel: bool = False,
    pinned: Mapping[str, Sequence[int]] | None = None,
    stretched: bool = False,
    able: Callable[[Mapping[str, int]], bool] = _any_split,
) -> tuple[ReplicaLayout, NDArray[np.int64], NDArray[np.int64]]:
    """Legal replicas on a site, with the shapes and the replicas of one unit of each.

    A replica spans shapes over a network that is made for it, or stated by the scenario; its tensor ranks leave the
    fast links of a machine only where they are fixed so, and fill whole machines then.

    Parameters
    ----------
    context_parallel
        Let tensor ranks share out the tokens of heads that they would hold in copies.
    pinned
        Sizes that are fixed, by name.
    stretched
        Replicas may span shapes over any network that is known.
    able
        Whether the engine splits a replica so: its sizes tp, pp, dp, ep and cp.
    """
    per_shape, known, fixed = site.shape.devices, site.inter_node_bytes_per_s is not None, pinned or {}
    joined = site.domain // per_shape if known else 1  # shapes that fast links join
    span = LARGEST_SPAN if known and (stretched or site.made_for_replicas) else joined
    deepest = max(arch.layer_count, 1)
    depth = min(deepest, LARGEST_PIPELINE)
    splits = [
        (tp, pp, dp, ep, cp)
        for tp in fixed.get("tp", _tensor_splits(arch, site))
        if (tp <= site.domain or ("tp" in fixed and known and tp % site.domain == 0)) and splits_tensors(arch, tp)
        for pp in fixed.get("pp", [2**k for k in range(depth.bit_length()) if 2**k <= depth])
        if pp <= deepest
        for dp in fixed.get("dp", ATTENTION_RANKS if arch.is_moe else (1,))
        if dp == 1 or arch.is_moe
        for ep in sorted({1, tp * dp} if arch.is_moe and _experts_divide(arch, tp * dp) else {1})
        if ep > 1 or dp <= CUT_RANKS or "dp" in fixed
        if ep in fixed.get("ep", (ep,)) and _packs(tp * pp * dp, per_shape, span)
        for cp in (cache_splits(arch, tp) if context_parallel else (1,))
        if cp in fixed.get("cp", (cp,))
        if able({"tp": tp, "pp": pp, "dp": dp, "ep": ep, "cp": cp})
    ]
    tp, pp, dp, ep, cp = np.array(splits, dtype=np.int64).reshape(-1, 5).T
    devices = tp * pp * dp
    nodes = np.maximum(devices // per_shape, 1)
    replicas = np.maximum(per_shape // devices, 1)
    sizes = {"devices": devices, "tp": tp, "pp": pp, "ep": ep, "cp": cp}
    return ReplicaLayout(**{name: size.astype(np.float64) for name, size in sizes.items()}), nodes, replicas


def needless_pipelines(
    arch: Architecture, site: Site, layout: ReplicaLayout, able: Callable[[Mapping[str, int]], bool] = _any_split
) -> NDArray[np.bool_]:
    """Pipelines where links are fast and tensor parallelism over as many devices does with as little memory.

    vLLM's guide ("Parallelism and scaling") cuts a model by tensors within a machine and takes a pipeline where its
    devices lack fast links or do not divide the model; SGLang and TensorRT-LLM advise the same. Over as many devices
    tensor ranks hold as much of the weights as stages do, and of the cache unless they have to copy heads.

    Parameters
    ----------
    arch
        The model.
    site
        The machine.
    layout
        (n,) replicas on it.
    able
        Whether the engine splits a replica so: its sizes tp, pp, dp, ep and cp.
    """
    whole = [
        tp
        for tp in (_tensor_splits(arch, site) if site.fast_links else [])
        if cache_splits(arch, tp)[-1] == 1 and able({"tp": tp, "pp": 1, "dp": 1, "ep": 1, "cp": 1})
    ]
    tp, pp = np.asarray(layout.tp), np.asarray(layout.pp)
    return np.asarray((pp > 1) & (layout.devices <= site.domain) & np.isin(tp * pp, whole))


def pipelines_of_what_fits(site: Site, layout: ReplicaLayout, fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pipelines of a model that fits on fewer devices without one: on one, or by tensors over fast links.

    The same guides take more devices than one for a model that does not fit on it; what a pipeline adds is bubbles.

    Parameters
    ----------
    site
        The machine.
    layout
        (n,) replicas on it.
    fits
        (n,) whether the model fits the memory so.
    """
    tp, pp, devices = (np.asarray(size) for size in (layout.tp, layout.pp, layout.devices))
    whole = fits & (pp == 1) & ((devices == 1) | (site.fast_links & (devices == tp) & (devices <= site.domain)))
    return np.asarray((pp > 1) & (devices > devices[whole].min(initial=np.inf)))


def cache_splits(arch: Architecture, tp: int) -> list[int]:
    """Powers of two of tensor ranks that may share out the tokens of a cache: those that would hold copies."""
    copies = [tp // min(tp, cache_heads(group)) for group in arch.layers if group.attention != "linear"]
    most = min(copies, default=1)
    return [2**k for k in range(most.bit_length()) if most % 2**k == 0]


def _tensor_splits(arch: Architecture, site: Site) -> list[int]:
    return tensor_splits(arch, site.domain, (site.domain,) if site.device.kind == "gpu" else ())


def _experts_divide(arch: Architecture, ranks: int) -> bool:
    return all(group.experts % ranks == 0 for group in arch.layers if group.experts)


def _packs(devices: int, per_shape: int, span: int) -> bool:
    """A replica is a part of a shape, or a whole number of shapes."""
    return devices <= per_shape or (devices % per_shape == 0 and devices // per_shape <= span)


def stretches(pinned: Mapping[str, Sequence[int]]) -> bool:
    """Whether what is fixed of a layout says how a replica is cut, over whatever network there is."""
    return "tp" in pinned or "pp" in pinned
