"""Collective operations by the alpha-beta model: a latency per step and a time per byte.

n bytes over w ranks; `bandwidth` is the one-way rate of one device that the collective really
reaches (link rate times `LINK_EFFICIENCY`), `latency` the start-up time alpha of one step.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

# nccl-tests on A100: 235e9 of 300e9 B/s one way; stas00/ml-engineering, network benchmarks
LINK_EFFICIENCY = 0.78
SCALE_UP_LATENCY_S = 10e-6  # upper end of 5-10 us on NVLink (recalled)
NETWORK_LATENCY_S = 25e-6  # upper end of 15-25 us between nodes (recalled)


@equation("EQ-COM-1")
def ring_all_reduce_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """Ring all-reduce.

    Parameters
    ----------
    message_bytes
        Bytes n that every rank contributes.  [B]
    ranks
        Ranks w.  [count]
    bandwidth_bytes_per_s
        One-way rate of one device.  [B/s]
    latency_s
        Start-up time alpha of one step.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  2 (w - 1) / w n / W + 2 (w - 1) alpha

    References
    ----------
    [1] R. Thakur et al., "Optimization of Collective Communication Operations in MPICH," 2005.
    [2] NVIDIA/nccl-tests, doc/PERFORMANCE.md: bus-bandwidth factor 2 (n - 1) / n.

    Examples
    --------
    >>> float(ring_all_reduce_s(1e9, 8, 100e9))
    0.0175
    """
    w = as_float(ranks)
    return 2.0 * (w - 1.0) * (as_float(message_bytes) / (w * bandwidth_bytes_per_s) + latency_s)


@equation("EQ-COM-3")
def tree_all_reduce_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """Double-binary-tree all-reduce: more bytes than a ring, fewer steps.

    Parameters
    ----------
    message_bytes
        Bytes n that every rank contributes.  [B]
    ranks
        Ranks w; one rank needs no time.  [count]
    bandwidth_bytes_per_s
        One-way rate of one device.  [B/s]
    latency_s
        Start-up time alpha of one step.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  2 n / W + 2 log2(w) alpha  for w > 1,  0 for w = 1

    References
    ----------
    [1] P. Sanders et al., "Two-tree algorithms for full bandwidth broadcast, reduction and scan," 2009.

    Examples
    --------
    >>> float(tree_all_reduce_s(1e9, 8, 100e9))
    0.02
    """
    w = as_float(ranks)
    time = 2.0 * as_float(message_bytes) / bandwidth_bytes_per_s + 2.0 * np.log2(np.maximum(w, 1.0)) * latency_s
    return np.where(w > 1, time, 0.0)[()]


@equation("EQ-COM-4")
def all_reduce_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """All-reduce by the better of ring and tree.

    Parameters
    ----------
    message_bytes, ranks, bandwidth_bytes_per_s, latency_s
        As in `ring_all_reduce_s`.  [B], [count], [B/s], [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  min(ring, tree)

    References
    ----------
    [1] NVIDIA NCCL: the algorithm is chosen by message size.

    Examples
    --------
    >>> float(all_reduce_s(1e9, 8, 100e9)), float(all_reduce_s(8, 1024, 100e9, 1e-5)) < 3e-4
    (0.0175, True)
    """
    return np.minimum(
        ring_all_reduce_s(message_bytes, ranks, bandwidth_bytes_per_s, latency_s),
        tree_all_reduce_s(message_bytes, ranks, bandwidth_bytes_per_s, latency_s),
    )


@equation("EQ-COM-5")
def all_to_all_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """All-to-all: every rank sends a w-th of its bytes to every other.

    Parameters
    ----------
    message_bytes
        Bytes n that one rank holds, its own part included.  [B]
    ranks
        Ranks w.  [count]
    bandwidth_bytes_per_s
        One-way rate of one device to all others together.  [B/s]
    latency_s
        Start-up time alpha of one message.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  (w - 1) / w n / W + (w - 1) alpha

    References
    ----------
    [1] NVIDIA/nccl-tests, doc/PERFORMANCE.md: bus-bandwidth factor (n - 1) / n.

    Examples
    --------
    >>> float(all_to_all_s(1e9, 4, 75e9))
    0.01
    """
    w = as_float(ranks)
    return (w - 1.0) * (as_float(message_bytes) / (w * bandwidth_bytes_per_s) + latency_s)


@equation("EQ-COM-6")
def point_to_point_s(
    message_bytes: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """One message from one device to another, or a pipelined broadcast.

    Parameters
    ----------
    message_bytes
        Bytes n.  [B]
    bandwidth_bytes_per_s
        One-way rate between the two.  [B/s]
    latency_s
        Start-up time alpha.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  n / W + alpha

    References
    ----------
    [1] R. Hockney, "The communication challenge for MPP," Parallel Computing 20, 1994.

    Examples
    --------
    >>> float(point_to_point_s(1e9, 50e9, 1e-5))
    0.02001
    """
    return as_float(message_bytes) / bandwidth_bytes_per_s + latency_s


@equation("EQ-COM-8")
def hierarchical_all_gather_s(
    message_bytes: FloatOrArray,
    ranks_per_node: FloatOrArray,
    nodes: FloatOrArray,
    node_bandwidth_bytes_per_s: FloatOrArray,
    network_bandwidth_bytes_per_s: FloatOrArray,
    node_latency_s: FloatOrArray = 0,
    network_latency_s: FloatOrArray = 0,
) -> FloatOrArray:
    """All-gather or reduce-scatter over nodes whose devices each have a share of the network.

    Parameters
    ----------
    message_bytes
        Bytes n of the whole array.  [B]
    ranks_per_node, nodes
        G and N; w = G N.  [count]
    node_bandwidth_bytes_per_s
        One-way rate of a device inside the node.  [B/s]
    network_bandwidth_bytes_per_s
        One-way rate of a device to other nodes; not used when there is one node.  [B/s]
    node_latency_s, network_latency_s
        Start-up times of a step.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  max( n (w - 1) / w / W_node,  n (N - 1) / N / (G W_nic) ) + (G - 1) alpha + (N - 1) alpha_nic

    References
    ----------
    [1] J. Austin et al., "How to Scale Your Model," 2025, chapter on GPUs: hierarchical collectives.

    Examples
    --------
    >>> float(hierarchical_all_gather_s(1e9, 8, 1, 100e9, 1e9)), float(hierarchical_all_gather_s(1e9, 8, 2, 1e12, 25e9))
    (0.00875, 0.0025)
    """
    n, g, outside = as_float(message_bytes), as_float(ranks_per_node), as_float(nodes)
    w = g * outside
    inside_s = n * (w - 1.0) / w / as_float(node_bandwidth_bytes_per_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        across_s = n * (outside - 1.0) / outside / (g * as_float(network_bandwidth_bytes_per_s))
    across_s = np.where(outside > 1, across_s, 0.0)
    latency = (g - 1.0) * node_latency_s + (outside - 1.0) * as_float(network_latency_s)
    return np.maximum(inside_s, across_s) + latency


@equation("EQ-COM-9")
def hierarchical_all_reduce_s(
    message_bytes: FloatOrArray,
    ranks_per_node: FloatOrArray,
    nodes: FloatOrArray,
    node_bandwidth_bytes_per_s: FloatOrArray,
    network_bandwidth_bytes_per_s: FloatOrArray,
    node_latency_s: FloatOrArray = 0,
    network_latency_s: FloatOrArray = 0,
) -> FloatOrArray:
    """All-reduce over nodes: reduce-scatter inside, all-reduce of the parts across, all-gather inside, in a pipeline.

    Parameters
    ----------
    message_bytes, ranks_per_node, nodes
        n, G and N.  [B], [count], [count]
    node_bandwidth_bytes_per_s, network_bandwidth_bytes_per_s
        One-way rates of a device inside the node and to other nodes.  [B/s]
    node_latency_s, network_latency_s
        Start-up times of a step.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  AR(n, G, W_node) + AR(n / G, N, W_nic) - min( 2 n (G - 1) / (G W_node), 2 n (N - 1) / (G N W_nic) )

    A message goes in chunks, one on the network while another is inside the node: what is moved on the faster of both
    levels hides behind the slower, and latencies of both are waited for.

    References
    ----------
    [1] J. Austin et al., "How to Scale Your Model," 2025, chapter on GPUs: hierarchical collectives.
    [2] NVIDIA NCCL, src/device/all_reduce.h: rings and trees over all ranks, chunk by chunk.

    Examples
    --------
    >>> float(hierarchical_all_reduce_s(1e9, 8, 1, 100e9, 1e9)), float(hierarchical_all_reduce_s(1e9, 1, 8, 1e9, 100e9))
    (0.0175, 0.0175)
    """
    n, g, outside = as_float(message_bytes), as_float(ranks_per_node), as_float(nodes)
    near, far = as_float(node_bandwidth_bytes_per_s), as_float(network_bandwidth_bytes_per_s)
    inside_s = all_reduce_s(n, g, near, node_latency_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        across_s = all_reduce_s(n / g, outside, far, network_latency_s)
        hidden_s = np.minimum(ring_all_reduce_s(n, g, near), ring_all_reduce_s(n / g, outside, far))
    return inside_s + np.where(outside > 1, across_s - hidden_s, 0.0)


@equation("EQ-COM-12")
def context_ring_bytes(
    tokens: FloatOrArray,
    kv_heads: FloatOrArray,
    head_size: FloatOrArray,
    value_head_size: FloatOrArray,
    tensor_parallel: FloatOrArray,
    context_parallel: FloatOrArray,
) -> FloatOrArray:
    """Keys and values that one rank passes round the ring in the forward pass of one layer.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank, b s / c.  [tokens]
    kv_heads, head_size, value_head_size
        g, e and e_v.  [count], [values], [values]
    tensor_parallel, context_parallel
        t and c.  [count]

    Returns
    -------
    Bytes sent by one device; the backward pass sends twice as many.  [B]

    Notes
    -----
    Eq. (1):  (c - 1) T 2 (e + e_v) max(g / t, 1)

    References
    ----------
    [1] H. Liu et al., "Ring Attention with Blockwise Transformers," 2023, arXiv 2310.01889.

    Examples
    --------
    >>> float(context_ring_bytes(4096, 8, 128, 128, 1, 2)) / 2**20
    16.0
    """
    local_heads = np.maximum(as_float(kv_heads) / tensor_parallel, 1.0)
    values = 2.0 * (as_float(head_size) + value_head_size)
    return (as_float(context_parallel) - 1.0) * tokens * values * local_heads
