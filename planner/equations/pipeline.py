"""Pipeline schedules: idle time, whole-pipeline time, bytes between stages, micro-batches alive at once."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-PIPE-1")
def bubble_fraction(
    pipeline_stages: FloatOrArray, micro_batches: FloatOrArray, virtual_stages: FloatOrArray = 1
) -> FloatOrArray:
    """Idle time of a pipeline as a share of its busy time, 1F1B or interleaved.

    Parameters
    ----------
    pipeline_stages, micro_batches, virtual_stages
        p, m and v.  [count]

    Returns
    -------
    Bubble over ideal time.  [1]

    Notes
    -----
    Eq. (1):  (p - 1) / (v m)

    References
    ----------
    [1] D. Narayanan et al., arXiv 2104.04473, sec. 2.2.1 and 2.2.2.

    Examples
    --------
    >>> float(bubble_fraction(4, 8)), float(bubble_fraction(4, 8, 2)), float(bubble_fraction(1, 8))
    (0.375, 0.1875, 0.0)
    """
    return (as_float(pipeline_stages) - 1.0) / (as_float(virtual_stages) * micro_batches)


@equation("EQ-PIPE-6")
def idle_stage_factor(pipeline_stages: FloatOrArray, in_flight: FloatOrArray) -> FloatOrArray:
    """Time of work on a pipeline that has less in flight than stages, over that on a full one.

    Parameters
    ----------
    pipeline_stages
        Stages p.  [count]
    in_flight
        Pieces m that walk the stages at the same time, at least 1.  [count]

    Returns
    -------
    Factor, at least 1.

    Notes
    -----
    Eq. (1):  p / min(p, m): of p stages m work.

    References
    ----------
    [1] Y. Huang et al., "GPipe," NeurIPS 2019, sec. 2.2.

    Examples
    --------
    >>> float(idle_stage_factor(4, 1)), float(idle_stage_factor(4, 3)), float(idle_stage_factor(4, 64))
    (4.0, 1.3333333333333333, 1.0)
    """
    stages = as_float(pipeline_stages)
    return stages / np.minimum(stages, np.maximum(as_float(in_flight), 1.0))


@equation("EQ-PIPE-3")
def pipeline_time_s(
    micro_batches: FloatOrArray,
    pipeline_stages: FloatOrArray,
    virtual_stages: FloatOrArray,
    slowest_stage_s: FloatOrArray,
    mean_stage_s: FloatOrArray,
    transfer_s: FloatOrArray = 0,
) -> FloatOrArray:
    """Time of all micro-batches of a step through a pipeline.

    Parameters
    ----------
    micro_batches, pipeline_stages, virtual_stages
        m, p and v.  [count]
    slowest_stage_s, mean_stage_s
        Forward and backward of one micro-batch on the slowest and on the mean stage.  [s]
    transfer_s
        Exposed transfer to the next stage and back, per micro-batch.  [s]

    Returns
    -------
    Time of a step without data-parallel communication and optimizer.  [s]

    Notes
    -----
    Eq. (1):  T = m (t_max + t_p2p) + (p - 1) / v (t_mean + t_p2p)

    References
    ----------
    [1] D. Narayanan et al., arXiv 2104.04473, sec. 2.2.

    Examples
    --------
    >>> float(pipeline_time_s(8, 4, 1, 1.0, 1.0)), float(pipeline_time_s(8, 4, 2, 1.0, 1.0))
    (11.0, 9.5)
    """
    filling = (as_float(pipeline_stages) - 1.0) / as_float(virtual_stages)
    return as_float(micro_batches) * (as_float(slowest_stage_s) + transfer_s) + filling * (
        as_float(mean_stage_s) + transfer_s
    )


@equation("EQ-PIPE-4")
def stage_transfer_bytes(
    tokens: FloatOrArray, hidden_size: FloatOrArray, shards: FloatOrArray = 1, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """Activations that one stage sends to the next for one micro-batch.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    shards
        t when every tensor-parallel rank sends its part (scatter-gather or sequence parallel).  [count]
    bytes_per_value
        Bytes of one value.  [B]

    Returns
    -------
    Bytes sent by one device, one way.  [B]

    Notes
    -----
    Eq. (1):  2 T h / t

    References
    ----------
    [1] D. Narayanan et al., arXiv 2104.04473, sec. 4.1.

    Examples
    --------
    >>> float(stage_transfer_bytes(2048, 12288, 8)) / 2**20
    6.0
    """
    return as_float(bytes_per_value) * tokens * hidden_size / as_float(shards)


@equation("EQ-PIPE-5")
def uneven_stage_fraction(
    layers: FloatOrArray, fullest_stage_layers: FloatOrArray, stages: FloatOrArray
) -> FloatOrArray:
    """How much longer the fullest stage works than a mean one.

    Parameters
    ----------
    layers
        Layers L of the model.  [count]
    fullest_stage_layers
        Layers n of the fullest stage.  [count]
    stages
        Stages p.  [count]

    Returns
    -------
    Excess over the mean stage.  [1]

    Notes
    -----
    Eq. (1):  n p / L - 1

    References
    ----------
    [1] A. Dubey et al., "The Llama 3 Herd of Models," 2024, sec. 3.3.2 (pipeline imbalance).

    Examples
    --------
    >>> round(float(uneven_stage_fraction(126, 8, 16)), 4)
    0.0159
    """
    return as_float(fullest_stage_layers) * stages / as_float(layers) - 1.0


@equation("EQ-ACT-15")
def in_flight_micro_batches(
    micro_batches: FloatOrArray,
    pipeline_stages: FloatOrArray,
    virtual_stages: FloatOrArray = 1,
    stage: FloatOrArray = 0,
) -> FloatOrArray:
    """Micro-batches of a stage's layers that are alive at once, interleaved or not.

    Parameters
    ----------
    micro_batches, pipeline_stages, virtual_stages
        m, p and v.  [count]
    stage
        Index i of the stage, 0 first.

    Returns
    -------
    Micro-batches, in units of all layers of the stage; not whole when interleaved.  [count]

    Notes
    -----
    Eq. (1):  v = 1: min(m, p - i);  v > 1: min(m, (2 (p - i - 1) + (v - 1) p + 1) / v)

    which is p (1 + (p - 1) / (p v)) at the first stage.

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.2.3.
    [2] D. Narayanan et al., arXiv 2104.04473, sec. 2.2.2 (warm-up chunks of a rank).

    Examples
    --------
    >>> float(in_flight_micro_batches(64, 8, 1)), round(float(in_flight_micro_batches(64, 8, 3)), 3)
    (8.0, 10.333)
    """
    m, p, v = as_float(micro_batches), as_float(pipeline_stages), as_float(virtual_stages)
    behind = p - 1.0 - stage
    return np.minimum(m, np.where(v > 1, (2.0 * behind + (v - 1.0) * p + 1.0) / v, behind + 1.0))


@equation("EQ-ACT-16")
def in_flight_zero_bubble(
    micro_batches: FloatOrArray, pipeline_stages: FloatOrArray, doubled: FloatOrArray = 0
) -> FloatOrArray:
    """Micro-batches alive at the first stage of a zero-bubble schedule.

    Parameters
    ----------
    micro_batches, pipeline_stages
        m and p.  [count]
    doubled
        0 for ZB-H1 (memory of 1F1B), 1 for ZB-H2.

    Returns
    -------
    Micro-batches alive at once.  [count]

    Notes
    -----
    Eq. (1):  H1: min(m, p);  H2: min(m, 2 p - 1)

    References
    ----------
    [1] P. Qi et al., "Zero Bubble Pipeline Parallelism," ICLR 2024, arXiv 2401.10241.

    Examples
    --------
    >>> float(in_flight_zero_bubble(64, 8)), float(in_flight_zero_bubble(64, 8, 1))
    (8.0, 15.0)
    """
    p = as_float(pipeline_stages)
    return np.minimum(as_float(micro_batches), p + (p - 1.0) * doubled)
