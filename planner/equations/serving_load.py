"""Load of one replica in the steady state: request rate, time per token, offline runs, and closed loops.

Those are benchmarks with a fixed number of clients, and users who think between requests.
"""

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


@equation("EQ-CLO-5")
def users_of_others(others_per_s: FloatOrArray, response_s: FloatOrArray, think_s: FloatOrArray) -> FloatOrArray:
    """Users of a closed loop, one of whom sees the others send at a rate.

    Parameters
    ----------
    others_per_s
        Rate y at which the requests of the others come.  [1/s]
    response_s
        Mean time R from a request to its last token beside them.  [s]
    think_s
        Mean time Z from an answer to the next request of the same user.  [s]

    Returns
    -------
    Users n.  [count]

    Notes
    -----
    Eq. (1):  n = 1 + y (Z + R): an arrival sees the loop as it is without its own user (arrival theorem), and those
    n - 1 follow the response-time law, R at one user more standing for theirs.

    References
    ----------
    [1] M. Reiser and S. S. Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks," J. ACM 27(2), 1980.
    [2] P. J. Schweitzer, "Approximate analysis of multiclass closed networks of queues," 1979 (the last clause).

    Examples
    --------
    >>> float(users_of_others(0.0, 4.0, 30.0)), float(users_of_others(2.0, 4.0, 30.0))
    (1.0, 69.0)
    """
    return 1 + as_float(others_per_s) * (as_float(think_s) + as_float(response_s))


@equation("EQ-CLO-6")
def interactive_requests_per_s(users: FloatOrArray, response_s: FloatOrArray, think_s: FloatOrArray) -> FloatOrArray:
    """Rate of the requests of users who each wait for the answer, think, and send the next: response-time law.

    Parameters
    ----------
    users
        Users N, at least 0; a mean where replicas have not all as many.  [count]
    response_s
        Mean time R from a request to its last token.  [s]
    think_s
        Mean time Z from an answer to the next request of the same user.  [s]

    Returns
    -------
    Rate X.  [1/s]

    Notes
    -----
    Eq. (1):  X = N / (Z + R): Little's law of the users, over a cycle.

    References
    ----------
    [1] J. D. C. Little, "A Proof for the Queuing Formula L = lambda W," Operations Research 9(3), 1961.
    [2] P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models," ACM Computing
        Surveys 10(3), 1978, sec. 5 (interactive response time formula).

    Examples
    --------
    >>> float(interactive_requests_per_s(340, 4.0, 30.0))
    10.0
    """
    return as_float(users) / (as_float(think_s) + as_float(response_s))


@equation("EQ-CLO-7")
def crowd_stiffness(elasticity: FloatOrArray, response_s: FloatOrArray, think_s: FloatOrArray) -> FloatOrArray:
    """How fast a crowd in a replica dissolves, over how fast it would if each were served alone and others kept coming.

    Parameters
    ----------
    elasticity
        Relative rise of the time per token for a relative rise of the batch e, below 1.
    response_s
        Mean time T in the replica.  [s]
    think_s
        Mean time Z from an answer to the next request of the same user; infinite = an open loop.  [s]

    Returns
    -------
    Ratio by which the variance of the number running is divided.  [1]

    Notes
    -----
    Eq. (1):  k = 1 - e + T / Z: the normal curve of the birth-death chain with arrivals (n - m) / Z and departures
    m / T(m) around its mode has the variance v = x / (mu'(b) - lambda'(b)) = b / k. Without slowing that is the
    binomial b Z / (Z + T).

    References
    ----------
    [1] F. P. Kelly, "Reversibility and Stochastic Networks," 1979, sec. 3.3 (as for EQ-QUE-5).

    Examples
    --------
    >>> float(crowd_stiffness(0.25, 4.0, 16.0)), float(crowd_stiffness(0.25, 4.0, float("inf")))
    (1.0, 0.75)
    """
    return 1 - as_float(elasticity) + as_float(response_s) / as_float(think_s)


@equation("EQ-CLO-8")
def relieved_share(crowd_s: FloatOrArray, load: FloatOrArray, outside_s: FloatOrArray) -> FloatOrArray:
    """What is left of a wait in line when those who stand in it are missing among those who come.

    Parameters
    ----------
    crowd_s
        Work of the users who stand in a line, as it goes with the work that waits: c of EQ-CLO-9.  [s]
    load
        Share rho of the time that the server works, below 1.
    outside_s
        Mean time T of a cycle outside the line.  [s]

    Returns
    -------
    Wait over W0, that of a line that keeps nobody from coming; at most 1.  [1]

    Notes
    -----
    Eq. (1):  f = (sqrt(1 + 4 a) - 1) / (2 a),  a = c / ((1 - rho) T)

    With n users in line instead of among the x T outside, work comes at rho - P (n - E[n]) / T. The mean square of the
    work V that waits is steady: E[V (1 - rho(n))] = (1 - rho) W0, so that W + P Cov(V, n) / ((1 - rho) T) = W0,
    and the covariance is taken to shrink as W^2. The line is then a normal cut at 0, whose percentiles lie about
    sqrt(f) as far above its mean, in means, as those of an exponential.

    References
    ----------
    [1] L. Kleinrock, "Queueing Systems," vol. 2, 1976, sec. 2.7 (diffusion of unfinished work); the closed form is the
        planner's own.

    Examples
    --------
    >>> float(relieved_share(1.0, 0.5, 1.0)), round(float(relieved_share(1.0, 0.5, 1e9)), 6)
    (0.5, 1.0)
    """
    pull = as_float(crowd_s) / (np.maximum(1 - as_float(load), 1e-12) * as_float(outside_s))
    return np.asarray(2 / (1 + np.sqrt(1 + 4 * np.maximum(pull, 0.0))))


@equation("EQ-CLO-9")
def crowd_in_line_s(
    arrivals_per_s: FloatOrArray, mean_s: FloatOrArray, second_moment: FloatOrArray, third_moment: FloatOrArray
) -> FloatOrArray:
    """How the number of those who stand in a line goes with the work that waits there.

    Parameters
    ----------
    arrivals_per_s
        Poisson arrivals x.  [1/s]
    mean_s, second_moment, third_moment
        Moments P, P2 and P3 of what each asks of the server, x P below 1.  [s], [s^2], [s^3]

    Returns
    -------
    c = P Cov(V, n) / W: V the work that waits, n those in line and at the server, W the mean wait.  [s]

    Notes
    -----
    V is what is left of the work under way, R, and the work of the n_q who wait, which is independent of n_q.
    Eq. (1):  E[V n] = E[R n_q] + P E[n_q^2] + W,  since V > 0 only where one is at the server
    Eq. (2):  E[V^2] = x P3 / 3 + 2 P E[R n_q] + (P2 - P^2) E[n_q] + P^2 E[n_q^2]
    Eq. (3):  W = x P2 / (2 (1 - rho)),  E[V^2] = 2 W^2 + x P3 / (3 (1 - rho))  (Takacs)
    Eq. (4):  E[n_q] = x W,  E[n_q^2] = x W + x^2 E[V^2]: the n_q of one who leaves the line came while it waited
    Exact; of an exponential server c = W / rho = P / (1 - rho); with few arrivals c goes to P. Without work 0.

    References
    ----------
    [1] L. Takacs, "Introduction to the Theory of Queues," 1962, ch. 1 (moments of the wait).
    [2] J. Keilson and L. D. Servi, "A Distributional Form of Little's Law," Operations Research Letters 7(5), 1988
        (Eq. 4).

    Examples
    --------
    >>> round(float(crowd_in_line_s(0.5, 1.0, 2.0, 6.0)), 12), float(crowd_in_line_s(0.0, 1.0, 1.0, 1.0))
    (2.0, 1.0)
    """
    rate, square, mean = as_float(arrivals_per_s), as_float(second_moment), as_float(mean_s)
    asked = mean > 0  # else nobody stands in line
    mean, square = np.where(asked, mean, 1.0), np.where(asked, square, 1.0)
    free = np.maximum(1 - rate * mean, 1e-12)
    wait = square / (2 * free)  # each moment over the rate: none of them divides by it
    wait_square = 2 * rate * wait**2 + as_float(third_moment) / (3 * free)
    line, line_square = rate * wait, rate * wait + rate**2 * wait_square
    spread = (square - mean**2) * line + mean**2 * line_square
    under_way = (wait_square - as_float(third_moment) / 3 - spread) / (2 * mean)
    together = under_way + mean * line_square + wait - wait * (rate * line + rate * mean)
    return np.asarray(np.where(asked, mean * together / wait, 0.0))
