"""Benchmarks of one replica: a fixed number of clients, a pile of requests, a static batch."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-CLO-1")
def cycle_s(
    sequences: FloatOrArray, prompt_s: FloatOrArray, step_s: FloatOrArray, output_tokens: FloatOrArray
) -> FloatOrArray:
    """Engine time in which a full batch answers one request each.

    Parameters
    ----------
    sequences
        Requests b in the engine.  [count]
    prompt_s
        Engine time P that one prompt takes.  [s]
    step_s
        Time D of one decode step at this batch.  [s]
    output_tokens
        Tokens O generated for a request.  [tokens]

    Returns
    -------
    Time from the arrival of a request to that of its successor, clients answering at once.  [s]

    Notes
    -----
    Eq. (1):  E = b P + O D: work is conserved, whatever the order of prompts and steps.

    References
    ----------
    [1] J. D. C. Little, "A Proof for the Queuing Formula L = lambda W," Operations Research 9(3), 1961.

    Examples
    --------
    >>> float(cycle_s(20, 0.1, 0.02, 500))
    12.0
    """
    return as_float(sequences) * as_float(prompt_s) + as_float(output_tokens) * as_float(step_s)


@equation("EQ-CLO-2")
def burst_wait_s(
    burst: FloatOrArray, sequences: FloatOrArray, prompt_s: FloatOrArray, together: FloatOrArray = 1
) -> FloatOrArray:
    """Wait of a prompt for those that came with it, in a closed loop.

    Parameters
    ----------
    burst
        Share of the clients that send together: 1 where all start at once and stay in step.
    sequences
        Clients b.  [count]
    prompt_s
        Engine time P that one prompt takes.  [s]
    together
        Prompts g that one step takes, at least 1: all of them end with the last.  [count]

    Returns
    -------
    Mean wait beside the own prompt's time.  [s]

    Notes
    -----
    Eq. (1):  W = burst (b + min(b, g) - 2) P / 2: of prompts that arrive together the mean one waits for half of
    the others, and for the end of its own step.

    References
    ----------
    [1] Mean position in a batch arrival; L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 4.5 (recalled).

    Examples
    --------
    >>> float(burst_wait_s(1.0, 21, 0.1)), float(burst_wait_s(1.0, 64, 0.1, 8))
    (1.0, 3.5)
    """
    count = np.maximum(as_float(sequences), 1)
    group = np.minimum(np.maximum(as_float(together), 1), count)
    return np.asarray(as_float(burst) * (count + group - 2) * as_float(prompt_s) / 2)


@equation("EQ-CLO-3")
def closed_loop_tpot_s(
    cycle: FloatOrArray, first_token_engine_s: FloatOrArray, step_s: FloatOrArray, output_tokens: FloatOrArray
) -> FloatOrArray:
    """Mean time per output token of a closed loop: what the cycle leaves after the first token.

    Parameters
    ----------
    cycle
        Engine time E of a cycle.  [s]
    first_token_engine_s
        Part of it before the first token: wait and own prompt.  [s]
    step_s
        Time D of one decode step, below which no token comes.  [s]
    output_tokens
        Tokens O of a request, at least 2.  [tokens]

    Returns
    -------
    Time per output token after the first.  [s]

    Notes
    -----
    Eq. (1):  TPOT = max(D, (E - F) / (O - 1))

    References
    ----------
    [1] Definition of TPOT as (E2E - TTFT) / (O - 1); vLLM, benchmarks/benchmark_serving.py.

    Examples
    --------
    >>> float(closed_loop_tpot_s(12.0, 2.02, 0.019, 500))
    0.02
    """
    after = np.maximum(as_float(output_tokens) - 1, 1)
    return np.maximum(as_float(step_s), (as_float(cycle) - as_float(first_token_engine_s)) / after)


@equation("EQ-CLO-4")
def prompts_per_step(
    sequences: FloatOrArray, output_tokens: FloatOrArray, input_tokens: FloatOrArray, step_tokens: FloatOrArray
) -> FloatOrArray:
    """Prompts that a busy engine puts into one step, and that so share the step's fixed cost.

    Parameters
    ----------
    sequences
        Requests b in the engine.  [count]
    output_tokens, input_tokens
        Tokens O and S of a request.  [tokens]
    step_tokens
        Most tokens of one step.  [tokens]

    Returns
    -------
    Prompts, at least 1.  [count]

    Notes
    -----
    Eq. (1):  g = max(1, min(b / O, T / S)): every step b / O requests end and as many begin.

    References
    ----------
    [1] A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve," OSDI 2024, sec. 4.

    Examples
    --------
    >>> float(prompts_per_step(2048, 128, 128, 8192)), float(prompts_per_step(64, 512, 1024, 8192))
    (16.0, 1.0)
    """
    ended = as_float(sequences) / np.maximum(as_float(output_tokens), 1)
    room = as_float(step_tokens) / np.maximum(as_float(input_tokens), 1)
    return np.maximum(np.minimum(ended, room), 1.0)
