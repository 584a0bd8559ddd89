"""Time of the pieces of a training step on one device: matrix products, attention, traffic, overlap.

Every function is elementwise. A rate is what the vendor states; `efficiency` is the fitted share of it.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

TILE_ELEMENTS = 128.0 * 256.0  # output elements that one multiprocessor computes at a time
DEPTH_HALF = 128.0  # inner size at which a product reaches half of its rate: the pipeline has to fill
FLASH_BACKWARD = 2.5  # five products backward for two forward: scores are computed again
EAGER_BACKWARD = 2.0  # four products backward for two forward
EAGER_FORWARD_BYTES_PER_SCORE = 11.0  # write, mask, softmax, dropout, read; in 16 bits
EAGER_BACKWARD_BYTES_PER_SCORE = 15.0
TRAFFIC_BACKWARD = 1.8  # traffic of norms, activations and residuals backward over forward


@equation("EQ-TIME-1")
def matrix_product_s(
    rows: FloatOrArray,
    columns: FloatOrArray,
    depth: FloatOrArray,
    sustained_flop_per_s: FloatOrArray,
    wave_elements: FloatOrArray = 0,
    depth_half: FloatOrArray = DEPTH_HALF,
) -> FloatOrArray:
    """Compute time of one matrix product.

    Parameters
    ----------
    rows, columns, depth
        M, N and K: an M x K matrix times a K x N one.  [count]
    sustained_flop_per_s
        Rate R of large products: peak times efficiency.  [FLOP/s]
    wave_elements
        Output elements at which half of the time is lost to unfilled waves: w0 x 128 x 256 x multiprocessors; 0 for
        systolic arrays.  [count]
    depth_half
        Inner size at which half of the rate is reached.  [count]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  2 (M N + A) (K + K_half) / R,  the same as 2 M N K / (R x q / (q + w0) x K / (K + K_half)) with
    q = M N / (128 x 256 x multiprocessors): tile and wave quantisation, smoothed.

    References
    ----------
    [1] NVIDIA, "Matrix Multiplication Background User's Guide": tile and wave quantisation.

    Examples
    --------
    >>> round(float(matrix_product_s(8192, 8192, 8192, 250e12) * 1e3), 3)
    4.467
    """
    return (
        2.0
        * (as_float(rows) * as_float(columns) + wave_elements)
        * (as_float(depth) + depth_half)
        / as_float(sustained_flop_per_s)
    )


@equation("EQ-TIME-2")
def matrix_traffic_bytes(
    rows: FloatOrArray, columns: FloatOrArray, depth: FloatOrArray, value_bytes: FloatOrArray = 2
) -> FloatOrArray:
    """Bytes that one matrix product has to move at least: both factors in, the product out.

    Parameters
    ----------
    rows, columns, depth
        M, N and K.  [count]
    value_bytes
        Bytes of a value.  [B]

    Returns
    -------
    Traffic.  [B]

    Notes
    -----
    Eq. (1):  bytes x (M K + K N + M N)

    References
    ----------
    [1] S. Williams et al., "Roofline," Communications of the ACM 52, 2009.

    Examples
    --------
    >>> float(matrix_traffic_bytes(2, 3, 4))
    52.0
    """
    m, n, k = as_float(rows), as_float(columns), as_float(depth)
    return value_bytes * (m * k + k * n + m * n)


@equation("EQ-TIME-3")
def attention_core_s(
    sequences: FloatOrArray,
    queries: FloatOrArray,
    attended: FloatOrArray,
    heads: FloatOrArray,
    head_size: FloatOrArray,
    value_head_size: FloatOrArray,
    sustained_flop_per_s: FloatOrArray,
) -> FloatOrArray:
    """Forward time of softmax(Q K') V at a sustained rate.

    Parameters
    ----------
    sequences
        Sequences b of a micro-batch.  [count]
    queries
        Query tokens per sequence on this rank.  [count]
    attended
        Keys that a query meets on average; s / 2 under a causal mask.  [count]
    heads, head_size, value_head_size
        Query heads on this rank, sizes of keys and of values.  [count]
    sustained_flop_per_s
        Rate of the attention kernel.  [FLOP/s]

    Returns
    -------
    Time; the backward pass of a flash kernel takes `FLASH_BACKWARD` times as long.  [s]

    Notes
    -----
    Eq. (1):  2 b s_q s_k a (e_qk + e_v) / R

    References
    ----------
    [1] T. Dao et al., "FlashAttention," 2022, section 3; backward of five products: [2] T. Dao, "FlashAttention-2,"
        2023, section 4.

    Examples
    --------
    >>> round(float(attention_core_s(1, 8192, 4096, 32, 128, 128, 150e12) * 1e3), 3)
    3.665
    """
    products = as_float(sequences) * queries * attended * heads * (as_float(head_size) + value_head_size)
    return 2.0 * products / as_float(sustained_flop_per_s)


@equation("EQ-TIME-4")
def eager_softmax_bytes(
    sequences: FloatOrArray, queries: FloatOrArray, keys: FloatOrArray, heads: FloatOrArray
) -> FloatOrArray:
    """Forward traffic of the s x s scores when attention stores them.

    Parameters
    ----------
    sequences, queries, keys, heads
        b, query tokens and key tokens per sequence, heads on this rank.  [count]

    Returns
    -------
    Traffic; backward it is 15/11 of this.  [B]

    Notes
    -----
    Eq. (1):  11 b s_q s_k a

    References
    ----------
    [1] V. Korthikanti et al., 2022, section 4.1: scores, softmax, mask and dropout in 16 bits and one byte.

    Examples
    --------
    >>> float(eager_softmax_bytes(1, 2048, 2048, 16))
    738197504.0
    """
    return EAGER_FORWARD_BYTES_PER_SCORE * as_float(sequences) * queries * keys * heads


@equation("EQ-TIME-5")
def layer_traffic_bytes(
    tokens: FloatOrArray,
    hidden_per_rank: FloatOrArray,
    mlp_width_per_rank: FloatOrArray,
    qkv_width_per_rank: FloatOrArray,
    up_projections: FloatOrArray,
) -> FloatOrArray:
    """Forward traffic of what is not a matrix product: norms, residuals, rotations, activation functions.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch.  [count]
    hidden_per_rank
        h, divided by t under sequence parallelism.  [count]
    mlp_width_per_rank, qkv_width_per_rank
        f / t and (a + 2 g) e / t.  [count]
    up_projections
        1, or 2 for a gated MLP.  [count]

    Returns
    -------
    Traffic; backward it is 1.8 times this.  [B]

    Notes
    -----
    Eq. (1):  T (22 h / z + 4 u f / t + 4 (a + 2 g) e / t),  16-bit values

    References
    ----------
    [1] Counted: two norms read and write h, two residual sums read two and write one, dropout or casts twice;
        activation function reads u f and writes f; rotation reads and writes q, k, v.

    Examples
    --------
    >>> float(layer_traffic_bytes(1, 4096, 14336, 6144, 2))
    229376.0
    """
    widths = 22.0 * as_float(hidden_per_rank) + 4.0 * as_float(up_projections) * mlp_width_per_rank
    return as_float(tokens) * (widths + 4.0 * as_float(qkv_width_per_rank))


@equation("EQ-TIME-6")
def exposed_s(communication_s: FloatOrArray, hiding_s: FloatOrArray, contention: FloatOrArray = 0) -> FloatOrArray:
    """What communication adds to compute that runs beside it.

    Parameters
    ----------
    communication_s
        Time of the communication alone.  [s]
    hiding_s
        Compute that can run at the same time.  [s]
    contention
        Share of the overlapped time by which both slow each other down: copies need multiprocessors and memory.

    Returns
    -------
    Added time.  [s]

    Notes
    -----
    Eq. (1):  max(0, C - H) + c min(C, H)

    References
    ----------
    [1] S. Rashidi et al., "Enabling Compute-Communication Overlap in Distributed Deep Learning Training
        Platforms," ISCA 2021: contention for cores and memory.

    Examples
    --------
    >>> float(exposed_s(3.0, 2.0, 0.5))
    2.0
    """
    comm, compute = as_float(communication_s), as_float(hiding_s)
    return np.maximum(comm - compute, 0.0) + contention * np.minimum(comm, compute)


@equation("EQ-TIME-7")
def optimizer_step_s(
    parameters: FloatOrArray, bytes_per_parameter: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray
) -> FloatOrArray:
    """Time of the optimizer on the parameters that a rank updates.

    Parameters
    ----------
    parameters
        Parameters of the rank, after sharding.  [count]
    bytes_per_parameter
        Read and written: gradient, master weight, moments, weight; about 30.  [B]
    bandwidth_bytes_per_s
        Sustained memory bandwidth.  [B/s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  bytes P / W

    References
    ----------
    [1] Counted for Adam: gradient 4, master weight and two moments read and written 24, weight 2.

    Examples
    --------
    >>> round(float(optimizer_step_s(1e9, 30, 1.5e12)), 3)
    0.02
    """
    return as_float(parameters) * bytes_per_parameter / as_float(bandwidth_bytes_per_s)


@equation("EQ-TIME-8")
def flash_rate_share(attended: FloatOrArray, head_size: FloatOrArray) -> FloatOrArray:
    """Share of its best rate that a fused attention kernel reaches on short sequences and small heads.

    Parameters
    ----------
    attended
        Keys that a query meets on average.  [count]
    head_size
        Size of a head.  [count]

    Returns
    -------
    Share between 0 and 1.

    Notes
    -----
    Eq. (1):  s_k / (s_k + 256) x e / (e + 12) x (128 + 12) / 128, at most 1: blocks of the mask's diagonal are half
    empty, and small heads leave products of little depth.

    References
    ----------
    [1] T. Dao, "FlashAttention-2," 2023, figures 4 to 6: rate by sequence length and head size.

    Examples
    --------
    >>> round(float(flash_rate_share(4096, 128)), 3), round(float(flash_rate_share(512, 64)), 3)
    (0.941, 0.614)
    """
    keys, size = as_float(attended), as_float(head_size)
    return np.minimum(keys / (keys + 256.0) * size / (size + 12.0) * (140.0 / 128.0), 1.0)


@equation("EQ-TIME-9")
def launch_bound_s(device_s: FloatOrArray, host_s: FloatOrArray) -> FloatOrArray:
    """Time of a layer whose kernels a host launches one after the other.

    Parameters
    ----------
    device_s
        Time of its kernels.  [s]
    host_s
        Time of launching them.  [s]

    Returns
    -------
    Time; at least the larger of both.  [s]

    Notes
    -----
    Eq. (1):  sqrt(device^2 + host^2): long kernels hide launches, short ones wait for them, and a layer has both.

    References
    ----------
    [1] Smoothed maximum; the limits are those of PyTorch's asynchronous execution ("CUDA semantics" notes).

    Examples
    --------
    >>> float(launch_bound_s(4e-3, 3e-3))
    0.005
    """
    return np.hypot(as_float(device_s), as_float(host_s))


@equation("EQ-TIME-10")
def accumulation_s(
    parameters: FloatOrArray, micro_batches: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray
) -> FloatOrArray:
    """Time of adding the gradients of every further micro-batch to their 32-bit sum.

    Parameters
    ----------
    parameters
        Parameters whose gradients a rank holds.  [count]
    micro_batches
        Micro-batches of a step.  [count]
    bandwidth_bytes_per_s
        Sustained memory bandwidth.  [B/s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  6 P (m - 1) / W: the sum is read and written in four bytes, the product's two are not

    References
    ----------
    [1] NVIDIA/Megatron-LM, gradient accumulation fusion: the sum is read and written by the weight-gradient product.

    Examples
    --------
    >>> round(float(accumulation_s(1e9, 5, 1.6e12)), 6)
    0.015
    """
    return 6.0 * as_float(parameters) * np.maximum(as_float(micro_batches) - 1.0, 0.0) / bandwidth_bytes_per_s


@equation("EQ-TIME-11")
def quantisation_bytes(tokens: FloatOrArray, input_width: FloatOrArray) -> FloatOrArray:
    """Traffic of quantising the inputs of a layer's linear products.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch.  [count]
    input_width
        Columns of all inputs together.  [count]

    Returns
    -------
    Traffic of one direction (inputs forward, gradients backward).  [B]

    Notes
    -----
    Eq. (1):  4 T w: two bytes read, one written by rows and one by columns

    References
    ----------
    [1] P. Micikevicius et al., "FP8 Formats for Deep Learning," 2022; the transposed copy is what the
        weight-gradient product reads.

    Examples
    --------
    >>> float(quantisation_bytes(8192, 4096))
    134217728.0
    """
    return 4.0 * as_float(tokens) * input_width


@equation("EQ-TIME-12")
def host_optimizer_s(
    parameters: FloatOrArray, host_bytes_per_s: FloatOrArray, parameters_per_s: FloatOrArray = 5e8
) -> FloatOrArray:
    """Time of an optimizer step on the host: gradients down, weights up, Adam on the processor.

    Parameters
    ----------
    parameters
        Parameters that one device's share of the host updates.  [count]
    host_bytes_per_s
        Rate of a device's host link, one way.  [B/s]
    parameters_per_s
        Parameters that one device's share of the processors updates.  [1/s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  max( (2 + 2) P / W_host, P / R )

    References
    ----------
    [1] J. Ren et al., "ZeRO-Offload," 2021: gradients and weights cross the link in 16 bits.
    [2] DeepSpeed, "ZeRO-Offload" tutorial, pull request 7474 (August 2025): steps of 2.4 to 3.1 s for 3.1e9 parameters
        on a host of two devices and 128 cores: 5e8 to 6.5e8 parameters a second and device.

    Examples
    --------
    >>> float(host_optimizer_s(2e9, 25e9))
    4.0
    """
    p = as_float(parameters)
    return np.maximum(4.0 * p / as_float(host_bytes_per_s), p / as_float(parameters_per_s))


@equation("EQ-TIME-13")
def misaligned_rate_share(head_size: FloatOrArray) -> FloatOrArray:
    """Share of their rate that unfused attention products keep when heads do not fill the matrix units.

    Parameters
    ----------
    head_size
        Size e of a head.  [values]

    Returns
    -------
    Share r of the rate.  [1]

    Notes
    -----
    Eq. (1):  r = 1 if e mod 8 = 0, else 1/6

    16-bit products whose inner size is no multiple of 16 bytes leave the tensor cores; the share is what head sizes of
    108 cost against 104 and 112 in published runs.

    References
    ----------
    [1] NVIDIA, "Matrix Multiplication Background User's Guide," tensor core requirements.
    [2] bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles: 128 heads of 108 against 96 of 144.

    Examples
    --------
    >>> float(misaligned_rate_share(128)), round(float(misaligned_rate_share(108)), 3)
    (1.0, 0.167)
    """
    return np.where(np.mod(as_float(head_size), 8.0) == 0, 1.0, 1.0 / 6.0)[()]
