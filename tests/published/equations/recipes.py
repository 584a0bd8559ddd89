"""Model states of adapters, as papers print them."""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-MEM-8")
def adapter_state_bytes(
    base_parameters: FloatOrArray,
    base_bytes_per_parameter: FloatOrArray,
    adapter_parameters: FloatOrArray,
    adapter_bytes_per_parameter: FloatOrArray = 16,
) -> FloatOrArray:
    """Model states of LoRA and QLoRA: a frozen base and trained low-rank adapters.

    Parameters
    ----------
    base_parameters
        Frozen parameters.  [count]
    base_bytes_per_parameter
        2 in 16 bit (LoRA); `quantized_bits_per_parameter` / 8 for QLoRA.  [B]
    adapter_parameters
        Trained adapter parameters, sum of r (d_in + d_out).  [count]
    adapter_bytes_per_parameter
        16 for mixed-precision Adam, 18 with fp32 main gradients.  [B]

    Returns
    -------
    Bytes of model states before sharding.  [B]

    Notes
    -----
    Eq. (1):  M = b_0 P_0 + 16 P_r

    References
    ----------
    [1] E. Hu et al., "LoRA," ICLR 2022, arXiv 2106.09685.
    [2] T. Dettmers et al., "QLoRA," NeurIPS 2023, arXiv 2305.14314.

    Examples
    --------
    >>> float(adapter_state_bytes(70e9, 2, 100e6)) / 1e9
    141.6
    """
    return as_float(base_parameters) * base_bytes_per_parameter + as_float(adapter_parameters) * (
        adapter_bytes_per_parameter
    )
