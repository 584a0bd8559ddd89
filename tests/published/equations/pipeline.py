"""Pipeline schedules that no estimate composes: without a bubble, and micro-batches alive at once."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-PIPE-2")
def zero_bubble_idle_s(
    pipeline_stages: FloatOrArray,
    forward_s: FloatOrArray,
    input_gradient_s: FloatOrArray,
    weight_gradient_s: FloatOrArray,
    weight_passes_moved: FloatOrArray = 0,
) -> FloatOrArray:
    """Idle time of a schedule that fills bubbles with weight-gradient passes.

    Parameters
    ----------
    pipeline_stages
        Stages p.  [count]
    forward_s, input_gradient_s, weight_gradient_s
        Times F, B, W of one micro-batch on one stage.  [s]
    weight_passes_moved
        0 for 1F1B's own order, 2 for ZB-H1, 3 for ZB-H2.  [count]

    Returns
    -------
    Idle time of a device in a step.  [s]

    Notes
    -----
    Eq. (1):  (p - 1) (F + B + W - n W);  1F1B n = 0: F + B + W;  H1 n = 2: F + B - W;  H2 n = 3: F + B - 2 W

    References
    ----------
    [1] P. Qi et al., arXiv 2401.10241, Table 1.

    Examples
    --------
    >>> [float(zero_bubble_idle_s(5, 1, 1, 1, n)) for n in (0, 2, 3)]
    [12.0, 4.0, 0.0]
    """
    busy = as_float(forward_s) + input_gradient_s + weight_gradient_s
    return (as_float(pipeline_stages) - 1.0) * (busy - as_float(weight_passes_moved) * weight_gradient_s)


@equation("EQ-ACT-13")
def in_flight_1f1b(micro_batches: FloatOrArray, pipeline_stages: FloatOrArray, stage: FloatOrArray = 0) -> FloatOrArray:
    """Micro-batches whose activations a stage holds under one-forward-one-backward.

    Parameters
    ----------
    micro_batches
        Micro-batches m of a step; GPipe holds all of them.  [count]
    pipeline_stages
        Stages p.  [count]
    stage
        Index i of the stage, 0 first.

    Returns
    -------
    Micro-batches alive at once.  [count]

    Notes
    -----
    Eq. (1):  min(m, p - i)

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM," SC21, arXiv 2104.04473, sec. 2.2.1.

    Examples
    --------
    >>> float(in_flight_1f1b(16, 4)), float(in_flight_1f1b(16, 4, 3))
    (4.0, 1.0)
    """
    return np.minimum(as_float(micro_batches), as_float(pipeline_stages) - stage)


@equation("EQ-ACT-14")
def interleaved_memory_factor(pipeline_stages: FloatOrArray, virtual_stages: FloatOrArray) -> FloatOrArray:
    """How much more the first stage holds when each device has v chunks of layers.

    Parameters
    ----------
    pipeline_stages
        Stages p.  [count]
    virtual_stages
        Chunks v of a device; 1 = not interleaved.  [count]

    Returns
    -------
    Factor on the activations of the first stage.  [1]

    Notes
    -----
    Eq. (1):  1 + (p - 1) / (p v)  for v > 1,  1 for v = 1

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.2.3.

    Examples
    --------
    >>> round(float(interleaved_memory_factor(8, 3)), 4)
    1.2917
    """
    p, v = as_float(pipeline_stages), as_float(virtual_stages)
    return np.where(v > 1, 1.0 + (p - 1.0) / (p * v), 1.0)[()]
