"""Rules of thumb, each with what it silently assumes."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

A100_HOURS_PER_BILLION_SQUARED = 13.3  # A100-80GB hours per 1e9 tokens x 1e9 parameters: the founding texts
A100_PEAK_FLOP_PER_S = 312e12  # dense 16 bit; NVIDIA A100 datasheet
A100_SUSTAINED_FLOP_PER_S = 6e18 / (A100_HOURS_PER_BILLION_SQUARED * 3600.0)  # 125.3e12
A100_RULE_MFU = A100_SUSTAINED_FLOP_PER_S / A100_PEAK_FLOP_PER_S  # 40.2 %: exactly what 13.3 means
FULL_RECOMPUTE_TIME_SHARE = 0.30  # upper end of the founding 25-30 %
FULL_RECOMPUTE_TIME_RANGE = (0.25, 0.30)
FRAGMENTATION_RANGE = (0.05, 0.15)  # founding texts


@equation("EQ-RULE-1")
def a100_training_hours(
    tokens: FloatOrArray,
    parameter_count: FloatOrArray,
    epochs: FloatOrArray = 1,
    hours_per_billion_squared: FloatOrArray = A100_HOURS_PER_BILLION_SQUARED,
) -> FloatOrArray:
    """Device-hours of a training run on A100-80GB by the founding rule.

    Parameters
    ----------
    tokens
        Tokens of one epoch.  [tokens]
    parameter_count
        Parameters; of a mixture of experts the active ones.  [count]
    epochs
        Passes over the tokens.  [1]
    hours_per_billion_squared
        Hours per 1e9 tokens and 1e9 parameters.  [h]

    Returns
    -------
    Device-hours.  [h]

    Notes
    -----
    Eq. (1):  H = 13.3 (tokens / 1e9) epochs (parameters / 1e9)

    The constant is an utilisation in disguise: 6 x 1e18 FLOP in 13.3 h is 125.3 TFLOP/s, that is
    40.2 % of the A100's 312 TFLOP/s. Held against 23 published budgets on A100 it errs by 18.7 % in
    the median and 43 % at most, without bias; small models come out too high.

    References
    ----------
    [1] The founding rule of thumb of this project.
    [2] meta-llama/llama, MODEL_CARD.md: Llama 2 7B 184,320 and 70B 1,720,320 A100-hours (-2.7 %, +6.7 %).

    Examples
    --------
    >>> round(float(a100_training_hours(2e12, 6.74e9)))
    179284
    """
    work = as_float(tokens) / 1e9 * epochs * (as_float(parameter_count) / 1e9)
    return work * hours_per_billion_squared


@equation("EQ-RULE-3")
def training_hours(
    tokens: FloatOrArray,
    parameter_count: FloatOrArray,
    epochs: FloatOrArray,
    devices: FloatOrArray,
    sustained_flop_per_s: FloatOrArray = A100_SUSTAINED_FLOP_PER_S,
) -> FloatOrArray:
    """Wall hours of a run: the A100 rule scaled by sustained FLOP/s, divided by the devices.

    Parameters
    ----------
    tokens, parameter_count, epochs
        As in `a100_training_hours`.  [tokens], [count], [1]
    devices
        Devices that share the work.  [count]
    sustained_flop_per_s
        Model FLOP/s that one device sustains: utilisation x dense peak of the precision.  [FLOP/s]

    Returns
    -------
    Wall hours.  [h]

    Notes
    -----
    Eq. (1):  13.3 (tokens / 1e9) epochs (parameters / 1e9) / devices x 125.3e12 / sustained

    Scaling by peak alone is too optimistic: newer devices sustain a smaller share of it.

    References
    ----------
    [1] The founding rule of thumb of this project.

    Examples
    --------
    >>> float(training_hours(200e9, 8e9, 1, 64))
    332.5
    """
    scale = A100_SUSTAINED_FLOP_PER_S / as_float(sustained_flop_per_s)
    return a100_training_hours(tokens, parameter_count, epochs) / as_float(devices) * scale


@equation("EQ-RULE-4")
def devices_for_deadline(
    tokens: FloatOrArray,
    parameter_count: FloatOrArray,
    epochs: FloatOrArray,
    hours: FloatOrArray,
    sustained_flop_per_s: FloatOrArray = A100_SUSTAINED_FLOP_PER_S,
) -> FloatOrArray:
    """Devices that finish a run within a number of hours, not rounded up.

    Parameters
    ----------
    tokens, parameter_count, epochs
        As in `a100_training_hours`.  [tokens], [count], [1]
    hours
        Wall hours allowed.  [h]
    sustained_flop_per_s
        Model FLOP/s that one device sustains.  [FLOP/s]

    Returns
    -------
    Devices.  [count]

    Notes
    -----
    Eq. (1):  tokens x epochs x size x 13.3 / hours  (tokens and size in 1e9)

    References
    ----------
    [1] The founding rule of thumb of this project.

    Examples
    --------
    >>> float(devices_for_deadline(200e9, 8e9, 1, 720)) < 30
    True
    """
    return training_hours(tokens, parameter_count, epochs, hours, sustained_flop_per_s)


@equation("EQ-RULE-5")
def full_recompute_time_factor(share: FloatOrArray = FULL_RECOMPUTE_TIME_SHARE) -> FloatOrArray:
    """How much longer a step takes when all activations are recomputed.

    Parameters
    ----------
    share
        Extra time; 0.25 to 0.30 by the founding rule.  [1]

    Returns
    -------
    Factor on the compute time.  [1]

    Notes
    -----
    Eq. (1):  1 + 0.30

    One extra forward pass is a third of the work, less the head and what hides behind communication.

    References
    ----------
    [1] The founding rule of thumb of this project: 25 to 30 %.

    Examples
    --------
    >>> float(full_recompute_time_factor())
    1.3
    """
    return 1.0 + as_float(share)


@equation("EQ-RULE-6")
def critical_batch_token_factor(batch_tokens: FloatOrArray, critical_batch_tokens: FloatOrArray) -> FloatOrArray:
    """How many more tokens a run needs when its global batch is above the critical batch.

    Parameters
    ----------
    batch_tokens
        Tokens B of a global batch.  [tokens]
    critical_batch_tokens
        Critical batch B_crit; not a number = not stated.  [tokens]

    Returns
    -------
    Factor on the tokens.  [1]

    Notes
    -----
    Eq. (1):  1 + B / B_crit  for B > B_crit,  1 otherwise

    The theory of [1] inflates below B_crit as well, E = E_min (1 + B / B_crit); here a scenario's tokens
    are taken to be the need at or below its critical batch, so the factor starts at 2 above it.

    References
    ----------
    [1] S. McCandlish et al., "An Empirical Model of Large-Batch Training," 2018, arXiv 1812.06162, eq. 2.11.

    Examples
    --------
    >>> float(critical_batch_token_factor(4e6, 8e6)), float(critical_batch_token_factor(16e6, 8e6))
    (1.0, 3.0)
    """
    batch, critical = as_float(batch_tokens), as_float(critical_batch_tokens)
    return np.where(batch > critical, 1.0 + batch / critical, 1.0)[()]


@equation("EQ-RULE-7")
def optimizer_steps(tokens: FloatOrArray, epochs: FloatOrArray, tokens_per_step: FloatOrArray) -> FloatOrArray:
    """Optimizer steps of a run, not rounded.

    Parameters
    ----------
    tokens
        Tokens of one epoch.  [tokens]
    epochs
        Passes over them.  [1]
    tokens_per_step
        Tokens of a global batch.  [tokens]

    Returns
    -------
    Steps.  [count]

    Notes
    -----
    Eq. (1):  tokens epochs / (B s)

    References
    ----------
    [1] Definition.

    Examples
    --------
    >>> float(optimizer_steps(200e9, 1, 4e6))
    50000.0
    """
    return as_float(tokens) * epochs / as_float(tokens_per_step)


@equation("EQ-RULE-8")
def tokens_per_step(global_batch: FloatOrArray, sequence_length: FloatOrArray) -> FloatOrArray:
    """Tokens of one optimizer step.

    Parameters
    ----------
    global_batch
        Sequences B of a step.  [sequences]
    sequence_length
        Tokens s of a sequence.  [tokens]

    Returns
    -------
    Tokens.  [tokens]

    Notes
    -----
    Eq. (1):  B s

    References
    ----------
    [1] Definition.

    Examples
    --------
    >>> float(tokens_per_step(512, 8192))
    4194304.0
    """
    return as_float(global_batch) * sequence_length


@equation("EQ-RULE-9")
def serving_devices(
    output_tokens: FloatOrArray, throughput_tokens_per_s_per_device: FloatOrArray, requests_per_minute: FloatOrArray
) -> FloatOrArray:
    """Devices of a serving fleet by the founding rule, throughput read as that of one device.

    Parameters
    ----------
    output_tokens
        Output tokens of a request.  [tokens]
    throughput_tokens_per_s_per_device
        Sustained output tokens per second of one device over all its users.  [tokens/s]
    requests_per_minute
        Requests per minute (QPM).  [1/min]

    Returns
    -------
    Devices, not rounded up.  [count]

    Notes
    -----
    Eq. (1):  output_tokens / throughput x QPM / 60

    The rule leaves out prompt tokens, memory, peaks, latency and the size of a replica.

    References
    ----------
    [1] The founding rule of thumb of this project.

    Examples
    --------
    >>> round(float(serving_devices(200, 2100, 1000)), 2)
    1.59
    """
    return as_float(output_tokens) / throughput_tokens_per_s_per_device * requests_per_minute / 60.0


@equation("EQ-RULE-10")
def serving_concurrency(
    output_tokens: FloatOrArray, speed_tokens_per_s_per_user: FloatOrArray, requests_per_minute: FloatOrArray
) -> FloatOrArray:
    """Sequences in flight: the same formula, throughput read as the speed that one user sees.

    Parameters
    ----------
    output_tokens
        Output tokens of a request.  [tokens]
    speed_tokens_per_s_per_user
        Tokens per second of one sequence, 1 / TPOT.  [tokens/s]
    requests_per_minute
        Requests per minute (QPM).  [1/min]

    Returns
    -------
    Mean sequences being served at once, not devices.  [count]

    Notes
    -----
    Eq. (1):  N = lambda W = (QPM / 60) (output_tokens / speed)   (Little's law)

    References
    ----------
    [1] J. Little, "A Proof for the Queuing Formula L = lambda W," Operations Research 9(3), 1961.

    Examples
    --------
    >>> round(float(serving_concurrency(200, 50, 1000)), 1)
    66.7
    """
    residence_s = as_float(output_tokens) / speed_tokens_per_s_per_user
    return as_float(requests_per_minute) / 60.0 * residence_s


@equation("EQ-RULE-11")
def estimate_memory_tool_bytes(
    parameter_count: FloatOrArray, bytes_per_weight: FloatOrArray = 2, largest_multiple: FloatOrArray = 4
) -> FloatOrArray:
    """What `accelerate estimate-memory` prints for training: the largest part of a step, not the sum.

    Parameters
    ----------
    parameter_count
        Parameters.  [count]
    bytes_per_weight
        Bytes of a weight at the chosen precision.  [B]
    largest_multiple
        Model copies in the largest part (backward pass, then optimizer step: 4).  [1]

    Returns
    -------
    Bytes printed.  [B]

    Notes
    -----
    Eq. (1):  4 w P

    References
    ----------
    [1] huggingface/accelerate, documentation "Model memory estimator": training peaks at 4 x the model.

    Examples
    --------
    >>> round(float(estimate_memory_tool_bytes(1_557_611_200)) / 1e9, 1)
    12.5
    """
    return as_float(largest_multiple) * bytes_per_weight * as_float(parameter_count)


@equation("EQ-RULE-12")
def batch_tokens_of_compute(flop_count: FloatOrArray) -> FloatOrArray:
    """The global batch at which a run of so much compute learns best.

    Parameters
    ----------
    flop_count
        Compute C of the whole run, all epochs.  [FLOP]

    Returns
    -------
    Tokens of a global batch.  [tokens]

    Notes
    -----
    Eq. (1):  0.2920 C^0.3271

    Fitted by [1] to runs of 1e17 to 2e19 FLOP and held against one of 1e20. Its own models of 7 and 67 billion
    parameters were trained at it.

    References
    ----------
    [1] DeepSeek-AI, "DeepSeek LLM: Scaling Open-Source Language Models with Longtermism," 2024, arXiv 2401.02954,
        section 3.1, eq. 1.

    Examples
    --------
    DeepSeek LLM 67B on 2T tokens took 4,608 sequences of 4,096, 18.9 million tokens, a step.

    >>> round(float(batch_tokens_of_compute(6 * 67e9 * 2e12)) / 1e6, 1)
    19.3
    """
    return 0.2920 * as_float(flop_count) ** 0.3271
