"""Floors and knees of decoding, which the composed steps are held against."""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-SRV-21")
def knee_batch(
    weight_bytes: FloatOrArray,
    cache_bytes_per_sequence: FloatOrArray,
    flop_per_token: FloatOrArray,
    bandwidth_bytes_per_s: FloatOrArray,
    peak_flop_per_s: FloatOrArray,
) -> FloatOrArray:
    """Batch at which a decode step starts to grow: cache reads and arithmetic pass the weight reads.

    Parameters
    ----------
    weight_bytes
        Weights of one device, dense model.  [B]
    cache_bytes_per_sequence
        Cache of one sequence on one device.  [B]
    flop_per_token
        Arithmetic of one token on one device.  [FLOP]
    bandwidth_bytes_per_s
        Memory bandwidth.  [B/s]
    peak_flop_per_s
        Dense peak.  [FLOP/s]

    Returns
    -------
    Sequences.  [count]

    Notes
    -----
    Eq. (1):  b* = (W / BW) / (k / BW + f / F)

    References
    ----------
    [1] R. Pope et al., "Efficiently Scaling Transformer Inference," MLSys 2023, sec. 2.

    Examples
    --------
    >>> round(float(knee_batch(16e9, 0, 16e9, 3.35e12, 989e12)))
    295
    """
    bandwidth = as_float(bandwidth_bytes_per_s)
    per_sequence = as_float(cache_bytes_per_sequence) / bandwidth + as_float(flop_per_token) / as_float(peak_flop_per_s)
    return as_float(weight_bytes) / bandwidth / per_sequence


@equation("EQ-SRV-22")
def decode_floor_s(
    weight_bytes: FloatOrArray, cache_bytes: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray
) -> FloatOrArray:
    """No decode step is shorter than reading its weights and cache once at full bandwidth.

    Parameters
    ----------
    weight_bytes
        Weights that the step touches, on one device.  [B]
    cache_bytes
        Cache of all running sequences, on one device.  [B]
    bandwidth_bytes_per_s
        Memory bandwidth.  [B/s]

    Returns
    -------
    Time; a measurement below it is wrong or of another configuration.  [s]

    Notes
    -----
    Eq. (1):  t = (W + k) / BW

    References
    ----------
    [1] R. Pope et al., "Efficiently Scaling Transformer Inference," MLSys 2023, sec. 2.

    Examples
    --------
    >>> round(float(decode_floor_s(70.6e9 / 4, 0, 3.35e12)) * 1e3, 2)
    5.27
    """
    return (as_float(weight_bytes) + as_float(cache_bytes)) / as_float(bandwidth_bytes_per_s)
