"""Model states of a device together, as papers print them."""

from __future__ import annotations

from planner.equations.memory import gradient_memory_bytes, optimizer_memory_bytes, weight_memory_bytes
from planner.equations.registry import FloatOrArray, equation


@equation("EQ-MEM-5")
def model_state_bytes(
    parameter_count: FloatOrArray,
    bytes_per_weight: FloatOrArray,
    bytes_per_gradient: FloatOrArray,
    bytes_per_state: FloatOrArray,
    shard_devices: FloatOrArray,
    stage: FloatOrArray,
) -> FloatOrArray:
    """Weights, gradients and optimizer state of one rank at a ZeRO stage.

    Parameters
    ----------
    parameter_count
        Parameters P of the rank before sharding.  [count]
    bytes_per_weight, bytes_per_gradient, bytes_per_state
        Bytes w, q, o of one parameter in the recipe.  [B]
    shard_devices
        Ranks D that share the states; in hybrid sharding the shard group only.  [count]
    stage
        ZeRO stage 0 to 3.

    Returns
    -------
    Bytes of model states on one device.  [B]

    Notes
    -----
    Eq. (1):  stage 0: P (w + q + o);  1: P (w + q + o/D);  2: P (w + (q + o)/D);  3: P (w + q + o)/D

    References
    ----------
    [1] S. Rajbhandari et al., arXiv 1910.02054, Fig. 1 and Table 1.

    Examples
    --------
    >>> [round(float(model_state_bytes(7.5e9, 2, 2, 12, 64, stage)) / 1e9, 1) for stage in range(4)]
    [120.0, 31.4, 16.6, 1.9]
    """
    return (
        weight_memory_bytes(parameter_count, bytes_per_weight, shard_devices, stage)
        + gradient_memory_bytes(parameter_count, bytes_per_gradient, shard_devices, stage)
        + optimizer_memory_bytes(parameter_count, bytes_per_state, shard_devices, stage)
    )
