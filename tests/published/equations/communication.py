"""Collective operations that no estimate composes: in a switch, on a ring and a torus."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-COM-2")
def ring_all_gather_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """Ring all-gather, or reduce-scatter: half of an all-reduce.

    Parameters
    ----------
    message_bytes
        Bytes n of the whole gathered (or still whole) array.  [B]
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
    Eq. (1):  (w - 1) / w n / W + (w - 1) alpha

    References
    ----------
    [1] R. Thakur et al., "Optimization of Collective Communication Operations in MPICH," 2005.
    [2] NVIDIA/nccl-tests, doc/PERFORMANCE.md: bus-bandwidth factor (n - 1) / n.

    Examples
    --------
    >>> float(ring_all_gather_s(1e9, 8, 100e9))
    0.00875
    """
    w = as_float(ranks)
    return (w - 1.0) * (as_float(message_bytes) / (w * bandwidth_bytes_per_s) + latency_s)


@equation("EQ-COM-7")
def in_switch_all_reduce_s(
    message_bytes: FloatOrArray, ranks: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """All-reduce whose sums are formed in the switch (NVLink SHARP, InfiniBand SHARP).

    Parameters
    ----------
    message_bytes, ranks, bandwidth_bytes_per_s, latency_s
        As in `ring_all_reduce_s`.  [B], [count], [B/s], [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  n (w + 1) / w / W + 2 alpha

    References
    ----------
    [1] NVIDIA, NVLink SHARP: a rank sends its data once and receives the sum once.

    Examples
    --------
    >>> float(in_switch_all_reduce_s(8e9, 8, 450e9)) * 1e3
    20.0
    """
    w = as_float(ranks)
    return as_float(message_bytes) * (w + 1.0) / (w * bandwidth_bytes_per_s) + 2.0 * as_float(latency_s)


@equation("EQ-COM-11")
def torus_all_to_all_s(
    message_bytes: FloatOrArray, axis_bandwidth_bytes_per_s: FloatOrArray, closed: FloatOrArray = 1
) -> FloatOrArray:
    """All-to-all over one axis of a torus: a quarter of an all-gather.

    Parameters
    ----------
    message_bytes
        Bytes n of the whole array.  [B]
    axis_bandwidth_bytes_per_s
        Rate of one chip over both directions of the axis.  [B/s]
    closed
        1 when the axis wraps around, else 0.

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  n / (4 W_axis)

    References
    ----------
    [1] J. Austin et al., "How to Scale Your Model," 2025, chapter 3, sharded matrices.

    Examples
    --------
    >>> float(torus_all_to_all_s(18e9, 1.8e11))
    0.025
    """
    return torus_all_gather_s(message_bytes, axis_bandwidth_bytes_per_s, 1.0, 0.0, closed) / 4.0


@equation("EQ-COM-10")
def torus_all_gather_s(
    message_bytes: FloatOrArray,
    axis_bandwidth_bytes_per_s: FloatOrArray,
    axes: FloatOrArray = 1,
    hops: FloatOrArray = 0,
    closed: FloatOrArray = 1,
    hop_latency_s: FloatOrArray = 1e-6,
) -> FloatOrArray:
    """All-gather or reduce-scatter over axes of a torus of TPU chips.

    Parameters
    ----------
    message_bytes
        Bytes n of the whole array.  [B]
    axis_bandwidth_bytes_per_s
        Rate of one chip over both directions of one axis.  [B/s]
    axes
        Axes j used together.  [count]
    hops
        Hops to the farthest chip.  [count]
    closed
        1 when the axis wraps around, else 0 (half the rate).
    hop_latency_s
        Time of one hop.  [s]

    Returns
    -------
    Time; an all-reduce takes twice as long.  [s]

    Notes
    -----
    Eq. (1):  max( n / (j W_axis), 1e-6 hops ),  W_axis halved when the axis is open

    References
    ----------
    [1] J. Austin et al., "How to Scale Your Model," 2025, chapter 3, sharded matrices.

    Examples
    --------
    >>> float(torus_all_gather_s(18e9, 1.8e11)), float(torus_all_gather_s(18e9, 1.8e11, 3, 8))
    (0.1, 0.03333333333333333)
    """
    rate = as_float(axis_bandwidth_bytes_per_s) * np.where(as_float(closed) > 0, 1.0, 0.5) * axes
    return np.maximum(as_float(message_bytes) / rate, as_float(hops) * hop_latency_s)
