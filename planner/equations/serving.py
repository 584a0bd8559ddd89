"""Time of one forward step of a serving engine, by component, and its physical floor.

Kernels of one step run one after the other, so the step is a sum over component groups; inside a
group the slower of memory and arithmetic counts. Every efficiency and overhead is an argument:
textbook values give the roofline, fitted values a calibrated estimate.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-SRV-10")
def distinct_experts(experts: FloatOrArray, experts_per_token: FloatOrArray, sequences: FloatOrArray) -> FloatOrArray:
    """Experts of a layer that a batch touches, so whose weights one step must read.

    Parameters
    ----------
    experts
        Routed experts E.  [count]
    experts_per_token
        Experts k that each token visits.  [count]
    sequences
        Tokens b in the step.  [count]

    Returns
    -------
    Expected number of distinct experts.  [count]

    Notes
    -----
    Eq. (1):  E_t = E (1 - (1 - k/E)^b), exact in expectation for uniform independent routing;
    real routing is skewed and touches fewer.

    References
    ----------
    [1] Occupancy of E cells by b draws of k; W. Feller, "An Introduction to Probability Theory," vol. 1, ch. 4.

    Examples
    --------
    >>> [round(float(distinct_experts(256, 8, b))) for b in (1, 16, 64, 128)]
    [8, 102, 222, 252]
    """
    total = as_float(experts)
    return total * (1 - (1 - as_float(experts_per_token) / total) ** as_float(sequences))


@equation("EQ-SRV-11")
def kernel_group_time_s(
    read_bytes: FloatOrArray,
    flop_count: FloatOrArray,
    bandwidth_bytes_per_s: FloatOrArray,
    peak_flop_per_s: FloatOrArray,
    bandwidth_efficiency: FloatOrArray = 1,
    compute_efficiency: FloatOrArray = 1,
) -> FloatOrArray:
    """Time of a group of kernels on one device: the slower of memory and arithmetic.

    Parameters
    ----------
    read_bytes
        Bytes read.  [B]
    flop_count
        Floating-point operations.  [FLOP]
    bandwidth_bytes_per_s
        Memory bandwidth.  [B/s]
    peak_flop_per_s
        Dense peak of the number format.  [FLOP/s]
    bandwidth_efficiency, compute_efficiency
        Shares of both that are sustained.

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  t = max(bytes / (BW eta_bw), flop / (F eta_c))

    References
    ----------
    [1] S. Williams et al., "Roofline," Communications of the ACM 52(4), 2009.
    [2] R. Pope et al., "Efficiently Scaling Transformer Inference," MLSys 2023, sec. 2.

    Examples
    --------
    >>> round(float(kernel_group_time_s(70.6e9 / 4, 0, 3.35e12, 1979e12)) * 1e3, 2)
    5.27
    """
    memory_time = as_float(read_bytes) / (as_float(bandwidth_bytes_per_s) * as_float(bandwidth_efficiency))
    compute_time = as_float(flop_count) / (as_float(peak_flop_per_s) * as_float(compute_efficiency))
    return np.maximum(memory_time, compute_time)


@equation("EQ-SRV-12")
def attention_flop_per_context_token(
    query_heads: FloatOrArray, key_size: FloatOrArray, value_size: FloatOrArray
) -> FloatOrArray:
    """Arithmetic of one new token against one token of its context, in one layer.

    Parameters
    ----------
    query_heads
        Query heads a.  [count]
    key_size, value_size
        Values of a head that are multiplied with a key and with a value. For a latent cache that
        is read without expansion: r + p and r.  [values]

    Returns
    -------
    Operations.  [FLOP]

    Notes
    -----
    Eq. (1):  f = 2 a (e_k + e_v), i.e. 4 a e for equal heads and 2 a (2 r + p) for a latent.

    References
    ----------
    [1] R. Pope et al., "Efficiently Scaling Transformer Inference," MLSys 2023, sec. 2.
    [2] DeepSeek-AI, "DeepSeek-V2," arXiv 2405.04434, 2024, app. C (absorbed projections).

    Examples
    --------
    >>> float(attention_flop_per_context_token(64, 128, 128))
    32768.0
    """
    return 2 * as_float(query_heads) * (as_float(key_size) + as_float(value_size))


@equation("EQ-SRV-13")
def causal_pair_count(tokens: FloatOrArray, window_tokens: FloatOrArray = 0) -> FloatOrArray:
    """Pairs of query and key tokens in the prefill of one sequence.

    Parameters
    ----------
    tokens
        Prompt length S.  [tokens]
    window_tokens
        Sliding window, 0 = full attention.  [tokens]

    Returns
    -------
    Pairs; S^2 / 2 for full attention.  [count]

    Notes
    -----
    Eq. (1):  n = S w - w^2 / 2,  w = min(S, window)

    References
    ----------
    [1] The area under the causal, banded mask.

    Examples
    --------
    >>> float(causal_pair_count(1000)), float(causal_pair_count(1000, 128))
    (500000.0, 119808.0)
    """
    total, window = as_float(tokens), as_float(window_tokens)
    seen = np.minimum(total, np.where(window > 0, window, np.inf))
    return total * seen - seen**2 / 2


@equation("EQ-SRV-14")
def group_bandwidth_bytes_per_s(
    ranks: FloatOrArray,
    pair_bytes_per_s: FloatOrArray,
    all_bytes_per_s: FloatOrArray,
    scale_up_devices: FloatOrArray,
    host_bytes_per_s: FloatOrArray,
    node_devices: FloatOrArray,
    inter_node_bytes_per_s: FloatOrArray,
) -> FloatOrArray:
    """One-way rate at which each device of a group exchanges data with the rest of it.

    Parameters
    ----------
    ranks
        Neighbouring devices n that form the group.  [count]
    pair_bytes_per_s
        One-way rate between two devices of a fast domain.  [B/s]
    all_bytes_per_s
        One-way rate of a device to all others of its domain together.  [B/s]
    scale_up_devices
        Devices of a fast domain.  [count]
    host_bytes_per_s
        One-way rate of a device to its host, for nodes of several domains or of none.  [B/s]
    node_devices
        Devices of a node.  [count]
    inter_node_bytes_per_s
        One-way rate of a device between nodes; nan = unknown.  [B/s]

    Returns
    -------
    Rate of one device; infinite for a group of one, which has nothing to exchange.  [B/s]

    Notes
    -----
    Eq. (1):  v = min(all, (n - 1) pair)  inside a fast domain,
              v = min(all, host)          inside a node,
              v = min(all, inter-node)    between nodes; a device without fast links has those of its host and network.
    A switch has pair = all; in a mesh or torus a small group uses only the links between its own.

    References
    ----------
    [1] E. Chan et al., "Collective Communication: Theory, Practice, and Experience,"
        Concurrency and Computation 19(13), 2007, sec. 3.

    Examples
    --------
    >>> float(group_bandwidth_bytes_per_s(4, 50e9, 300e9, 8, 31e9, 8, 25e9)) / 1e9
    150.0
    """
    size, fast = as_float(ranks), as_float(all_bytes_per_s)
    fast = np.where(fast > 0, fast, np.inf)
    inside = np.minimum(fast, as_float(pair_bytes_per_s) * np.maximum(size - 1, 1))
    in_node = np.minimum(fast, as_float(host_bytes_per_s))
    across = np.minimum(fast, as_float(inter_node_bytes_per_s))
    beyond = np.where(size <= as_float(node_devices), in_node, across)
    return np.where(size > 1, np.where(size <= as_float(scale_up_devices), inside, beyond), np.inf)


@equation("EQ-SRV-15")
def layer_kernel_units(
    latent_attention: FloatOrArray = 0,
    has_experts: FloatOrArray = 0,
    has_shared_expert: FloatOrArray = 0,
    sparse_index: FloatOrArray = 0,
    linear_attention: FloatOrArray = 0,
) -> FloatOrArray:
    """Kernels of one layer in one step, in units of a classic dense layer.

    Parameters
    ----------
    latent_attention, has_experts, has_shared_expert, sparse_index, linear_attention
        1 when the layer has it, else 0.

    Returns
    -------
    Units of ten kernels.  [count]

    Notes
    -----
    Eq. (1):  K = (6 + 10 latent + 8 index + 4 linear + 4 + 1 experts + 2 shared) / 10

    References
    ----------
    [1] Count of the kernels that TensorRT-LLM, vLLM and SGLang launch for such a layer, rounded so that models with
        latent attention and experts are as well predicted as plain ones; a unit's time is fitted, so only the ratio
        between kinds of layers enters.

    Examples
    --------
    >>> float(layer_kernel_units()), float(layer_kernel_units(1, 1, 1))
    (1.0, 2.3)
    """
    attention = 6 + 10 * as_float(latent_attention) + 8 * as_float(sparse_index) + 4 * as_float(linear_attention)
    return (attention + 4 + as_float(has_experts) + 2 * as_float(has_shared_expert)) / 10


@equation("EQ-SRV-16")
def launch_time_s(
    kernel_units: FloatOrArray,
    sequences: FloatOrArray,
    unit_s: FloatOrArray,
    sequence_s: FloatOrArray,
    sequence_unit_s: FloatOrArray = 0,
) -> FloatOrArray:
    """Fixed cost of one step: kernel launches, and work per running sequence.

    Parameters
    ----------
    kernel_units
        Units K of ten kernels in one step.  [count]
    sequences
        Running sequences b.  [count]
    unit_s
        Time tau of a unit.  [s]
    sequence_s
        Time c of the engine per sequence and step.  [s]
    sequence_unit_s
        Time d of a unit per sequence: blocks of threads that a sequence adds to its kernels.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  t = K (tau + d b) + c b.  Ignoring it makes small batches on fast devices twice too good.

    References
    ----------
    [1] tau, c and d are fitted on published serving measurements.

    Examples
    --------
    >>> round(float(launch_time_s(80, 16, 41e-6, 14.5e-6)) * 1e3, 3)
    3.512
    """
    batch, units = as_float(sequences), as_float(kernel_units)
    return units * (as_float(unit_s) + as_float(sequence_unit_s) * batch) + as_float(sequence_s) * batch


@equation("EQ-SRV-17")
def expert_imbalance(expert_parallel: FloatOrArray) -> FloatOrArray:
    """Load of the busiest expert-parallel rank over the mean load.

    Parameters
    ----------
    expert_parallel
        Ranks that experts are spread over.  [count]

    Returns
    -------
    Factor on the experts' arithmetic, at least 1.

    Notes
    -----
    Eq. (1):  1 at 1 rank, 1.2 at 8, 1.5 from 32 on; linear in log2 between. Assumed, not fitted.

    References
    ----------
    [1] ai-dynamo/aiconfigurator, docs/POWER_LAW_DISTRIBUTION.md@095f58a (routing is skewed).

    Examples
    --------
    >>> float(expert_imbalance(1)), float(expert_imbalance(8)), float(expert_imbalance(64))
    (1.0, 1.2, 1.5)
    """
    return np.asarray(np.interp(np.log2(as_float(expert_parallel)), [0.0, 3.0, 5.0], [1.0, 1.2, 1.5]))


@equation("EQ-SRV-23")
def accepted_tokens_per_step(draft_tokens: FloatOrArray, acceptance: FloatOrArray) -> FloatOrArray:
    """Tokens that one verification of a draft yields for a sequence.

    Parameters
    ----------
    draft_tokens
        Drafted tokens g.  [tokens]
    acceptance
        Probability p that a drafted token is accepted.

    Returns
    -------
    Expected tokens, between 1 and g + 1.  [tokens]

    Notes
    -----
    Eq. (1):  A = (1 - p^(g + 1)) / (1 - p),  g + 1 for p = 1; tokens accepted independently.

    References
    ----------
    [1] Y. Leviathan et al., "Fast Inference from Transformers via Speculative Decoding," ICML 2023, eq. 1 (recalled).

    Examples
    --------
    >>> round(float(accepted_tokens_per_step(3, 0.7)), 3), float(accepted_tokens_per_step(3, 1))
    (2.533, 4.0)
    """
    drafted, share = as_float(draft_tokens), as_float(acceptance)
    sure = share >= 1
    return np.where(sure, drafted + 1, (1 - share ** (drafted + 1)) / np.where(sure, 1.0, 1 - share))


@equation("EQ-SRV-24")
def narrow_format_share(
    peak_flop_per_s: FloatOrArray, wide_peak_flop_per_s: FloatOrArray, share_per_halving: FloatOrArray
) -> FloatOrArray:
    """Share of the gain of a narrow number format that products keep.

    Parameters
    ----------
    peak_flop_per_s
        Dense peak F of the format that the products run in.  [FLOP/s]
    wide_peak_flop_per_s
        Dense peak F_16 of 16-bit formats.  [FLOP/s]
    share_per_halving
        Share s that is kept each time the peak doubles.

    Returns
    -------
    Factor on the share of the peak that is sustained, 1 for 16-bit products.

    Notes
    -----
    Eq. (1):  n = s^(log2(F / F_16)): scales are read and applied, operands are quantised on the way, and power caps
    the clock, whatever the format.

    References
    ----------
    [1] s is fitted on published serving measurements.

    Examples
    --------
    >>> float(narrow_format_share(4e15, 1e15, 0.9)), float(narrow_format_share(1e15, 1e15, 0.9))
    (0.81, 1.0)
    """
    narrow, wide = as_float(peak_flop_per_s), as_float(wide_peak_flop_per_s)
    with np.errstate(invalid="ignore"):  # infinite peaks: the physical floor
        ratio = np.where(np.isfinite(narrow), narrow / wide, 1.0)
    return as_float(share_per_halving) ** np.log2(np.maximum(ratio, 1.0))
