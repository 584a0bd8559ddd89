"""Load of one replica in the steady state: request rate, time per token, offline runs."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-SRV-18")
def steady_state_requests_per_s(
    prefill_s: FloatOrArray, decode_step_s: FloatOrArray, output_tokens: FloatOrArray, sequences: FloatOrArray
) -> FloatOrArray:
    """Request rate of a replica that keeps its batch full.

    Parameters
    ----------
    prefill_s
        Engine time P that one prompt takes.  [s]
    decode_step_s
        Time D of one decode step at this batch.  [s]
    output_tokens
        Tokens generated for a request.  [tokens]
    sequences
        Running sequences b, at least 1.  [count]

    Returns
    -------
    Requests per second.  [1/s]

    Notes
    -----
    Eq. (1):  x = 1 / (P + O D / b): each request takes P of prefill and its share 1/b of O steps.
    It solves  b = x O TPOT  with  TPOT = D / (1 - x P).

    References
    ----------
    [1] J. D. C. Little, "A Proof for the Queuing Formula L = lambda W," Operations Research 9(3), 1961.

    Examples
    --------
    >>> float(steady_state_requests_per_s(0.1, 0.02, 500, 20))
    1.6666666666666667
    """
    return 1 / (as_float(prefill_s) + as_float(output_tokens) * as_float(decode_step_s) / as_float(sequences))


@equation("EQ-SRV-19")
def loaded_time_per_output_token_s(
    decode_step_s: FloatOrArray, prefill_s: FloatOrArray, requests_per_s: FloatOrArray
) -> FloatOrArray:
    """Time between tokens of a sequence while the engine also prefills arriving requests.

    Parameters
    ----------
    decode_step_s
        Time D of one decode step.  [s]
    prefill_s
        Engine time P that one prompt takes.  [s]
    requests_per_s
        Arrival rate x into the replica.  [1/s]

    Returns
    -------
    Mean time per output token; infinite when prefill alone fills the engine.  [s]

    Notes
    -----
    Eq. (1):  TPOT = D / (1 - x P)   for  x P < 1

    References
    ----------
    [1] A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve,"
        OSDI 2024, sec. 3 (prefill stalls decode).

    Examples
    --------
    >>> round(float(loaded_time_per_output_token_s(0.020, 0.1, 2.0)), 6)
    0.025
    """
    free = 1 - as_float(requests_per_s) * as_float(prefill_s)
    return np.where(free > 0, as_float(decode_step_s) / np.where(free > 0, free, 1.0), np.inf)


@equation("EQ-SRV-27")
def front_end_s(
    requests: FloatOrArray, output_tokens: FloatOrArray, request_s: FloatOrArray, token_s: FloatOrArray
) -> FloatOrArray:
    """Time of one process between clients and engine: parse, tokenise, and send every token on.

    Parameters
    ----------
    requests
        Requests N.  [count]
    output_tokens
        Tokens O of an answer.  [tokens]
    request_s, token_s
        Time f of a request and h of a token.  [s]

    Returns
    -------
    Time, beside that of the engine: no run of N requests is shorter.  [s]

    Notes
    -----
    Eq. (1):  T = N (f + O h)

    References
    ----------
    [1] A pipeline is as fast as its slowest part; f and h are fitted on runs of many short answers.

    Examples
    --------
    >>> float(front_end_s(1000, 200, 4e-3, 50e-6))
    14.0
    """
    return as_float(requests) * (as_float(request_s) + as_float(output_tokens) * as_float(token_s))


@equation("EQ-SRV-20")
def offline_makespan_s(
    requests: FloatOrArray,
    prefill_s: FloatOrArray,
    decode_step_s: FloatOrArray,
    output_tokens: FloatOrArray,
    sequences: FloatOrArray,
) -> FloatOrArray:
    """Time that a replica takes for a pile of equal requests.

    Parameters
    ----------
    requests
        Requests N, all present at the start.  [count]
    prefill_s
        Engine time P that one prompt takes.  [s]
    decode_step_s
        Time D of one decode step at this batch.  [s]
    output_tokens
        Tokens O generated for a request.  [tokens]
    sequences
        Running sequences b.  [count]

    Returns
    -------
    Time until the last token.  [s]

    Notes
    -----
    Eq. (1):  T = N P + (N/b + 1/2) O D  for N > b, the 1/2 being the tail that drains;
              T = N P + O D  otherwise.

    References
    ----------
    [1] Wave count of a batch-limited queue; the tail runs at half the batch on average.

    Examples
    --------
    >>> float(offline_makespan_s(100, 0.1, 0.02, 500, 20))
    65.0
    """
    count, batch = as_float(requests), as_float(sequences)
    waves = np.where(count > batch, count / batch + 0.5, 1.0)
    return count * as_float(prefill_s) + waves * as_float(output_tokens) * as_float(decode_step_s)
