"""Waiting of requests at one replica: for the engine's next step, for prefill, for a free slot.

Percentiles of waits, and of the distributions that stand for them, are in closed form.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-QUE-4")
def wait_percentile_s(
    share_waiting: FloatOrArray, mean_wait_of_waiting_s: FloatOrArray, percentile: FloatOrArray
) -> FloatOrArray:
    """Percentile of a wait that is nothing for some and exponential for the others.

    Parameters
    ----------
    share_waiting
        Probability P of waiting at all.
    mean_wait_of_waiting_s
        Mean wait of those who wait.  [s]
    percentile
        Share q of requests that wait no longer, below 1.

    Returns
    -------
    The wait that a share q of all requests does not pass.  [s]

    Notes
    -----
    Eq. (1):  W_q = E[W | W > 0] max(0, ln(P / (1 - q)))

    References
    ----------
    [1] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 5.12; exact for M/M/c.

    Examples
    --------
    >>> round(float(wait_percentile_s(0.5, 2.0, 0.95)), 4)
    4.6052
    """
    ratio = as_float(share_waiting) / (1 - as_float(percentile))
    return as_float(mean_wait_of_waiting_s) * np.log(np.maximum(ratio, 1.0))


@equation("EQ-QUE-6")
def normal_share_below(score: FloatOrArray) -> FloatOrArray:
    """Standard normal distribution, by a logistic curve.

    Parameters
    ----------
    score
        Distance from the mean in standard deviations z.

    Returns
    -------
    Share below it, within 0.00015.

    Notes
    -----
    Eq. (1):  Phi(z) = 1 / (1 + exp(-1.5976 z - 0.070566 z^3))

    References
    ----------
    [1] S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution,"
        J. Industrial Engineering and Management 2(1), 2009.

    Examples
    --------
    >>> round(float(normal_share_below(1.6449)), 3)
    0.95
    """
    z = np.clip(as_float(score), -8.0, 8.0)
    return 1 / (1 + np.exp(-z * (1.5976 + 0.070566 * z * z)))


@equation("EQ-QUE-9")
def gamma_percentile(mean: FloatOrArray, squared_variation: FloatOrArray, percentile: FloatOrArray) -> FloatOrArray:
    """Percentile of a gamma distribution, by Wilson and Hilferty.

    Parameters
    ----------
    mean
        Mean m.
    squared_variation
        Variance over squared mean c^2, above 0.
    percentile
        Share q below, between 0 and 1.

    Returns
    -------
    The value, never below 0.

    Notes
    -----
    Eq. (1):  X_q = m (1 - c^2 / 9 + z c / 3)^3
    Eq. (2):  z = t - (2.515517 + 0.802853 t + 0.010328 t^2) / (1 + 1.432788 t + 0.189269 t^2 + 0.001308 t^3),
              t = sqrt(-2 ln(min(q, 1 - q))), with the sign of q - 1/2

    References
    ----------
    [1] E. B. Wilson and M. M. Hilferty, "The distribution of chi-square," PNAS 17, 1931.
    [2] M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions," 1964, 26.2.23.

    Examples
    --------
    >>> round(float(gamma_percentile(1.0, 1.0, 0.95)), 2)  # exponential: 3.00
    2.97
    """
    share, variation = as_float(percentile), as_float(squared_variation)
    t = np.sqrt(-2 * np.log(np.maximum(np.minimum(share, 1 - share), 1e-300)))
    score = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    score = np.where(share < 0.5, -score, score)
    root = 1 - variation / 9 + score * np.sqrt(variation) / 3
    return np.asarray(as_float(mean) * np.maximum(root, 0.0) ** 3)


NORMAL_P99 = 2.3263478740408408  # 99th percentile of the standard normal distribution


@equation("EQ-QUE-1")
def resident_tokens_mean(
    input_tokens: FloatOrArray, output_tokens: FloatOrArray, output_second_moment: FloatOrArray
) -> FloatOrArray:
    """Mean length of the sequences that run at some moment: longer outputs stay longer.

    Parameters
    ----------
    input_tokens
        Mean prompt length E[I].  [tokens]
    output_tokens
        Mean generated length E[O], above 0.  [tokens]
    output_second_moment
        E[O^2].  [tokens^2]

    Returns
    -------
    Mean tokens of a running sequence.  [tokens]

    Notes
    -----
    Eq. (1):  s = E[I O + O^2 / 2] / E[O] = E[I] + E[O^2] / (2 E[O])  for prompts and outputs that are independent.

    References
    ----------
    [1] W. Feller, "An Introduction to Probability Theory and Its Applications," vol. 2, 1971, sec. XI.4
        (the inspection paradox).

    Examples
    --------
    >>> float(resident_tokens_mean(1024, 1024, 1024**2)), float(resident_tokens_mean(1024, 1024, 2 * 1024**2))
    (1536.0, 2048.0)
    """
    return as_float(input_tokens) + as_float(output_second_moment) / (2 * as_float(output_tokens))


@equation("EQ-QUE-2")
def prefill_queue_wait_s(
    requests_per_s: FloatOrArray, service_s: FloatOrArray, service_second_moment: FloatOrArray
) -> FloatOrArray:
    """Mean wait for a server that takes requests one by one in their order (M/G/1).

    Parameters
    ----------
    requests_per_s
        Arrival rate x, Poisson.  [1/s]
    service_s
        Mean service time E[S].  [s]
    service_second_moment
        E[S^2].  [s^2]

    Returns
    -------
    Mean wait before service; infinite from a load of 1 on.  [s]

    Notes
    -----
    Eq. (1):  W = x E[S^2] / (2 (1 - rho)),  rho = x E[S]

    References
    ----------
    [1] F. Pollaczek, "Ueber eine Aufgabe der Wahrscheinlichkeitstheorie," Math. Zeitschrift 32, 1930.
    [2] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 5.7.

    Examples
    --------
    >>> float(prefill_queue_wait_s(5, 0.1, 0.01))
    0.05
    """
    rate = as_float(requests_per_s)
    free = 1 - rate * as_float(service_s)
    return np.where(free > 0, rate * as_float(service_second_moment) / (2 * np.where(free > 0, free, 1.0)), np.inf)


@equation("EQ-QUE-13")
def staffed_batch(batch_limit: FloatOrArray) -> FloatOrArray:
    """Mean batch at which 99 of 100 random arrivals find a slot.

    Parameters
    ----------
    batch_limit
        Slots B.  [sequences]

    Returns
    -------
    Sequences in service, in the mean; at least half a slot.  [sequences]

    Notes
    -----
    Eq. (1):  b + z sqrt(b) = B,  z = 2.326: the number in service of many slots is spread as a Poisson number.

    References
    ----------
    [1] S. Halfin, W. Whitt, "Heavy-Traffic Limits for Queues with Many Exponential Servers," Operations Research
        29(3), 1981 (square-root staffing).

    Examples
    --------
    >>> [round(float(staffed_batch(slots)), 1) for slots in (16, 256, 2048)]
    [9.0, 221.4, 1945.4]
    """
    slots = as_float(batch_limit)
    root = (-NORMAL_P99 + np.sqrt(NORMAL_P99**2 + 4 * slots)) / 2
    return np.asarray(np.maximum(root**2, 0.5))


@equation("EQ-QUE-14")
def tail_wait_s(mean_wait_s: FloatOrArray) -> FloatOrArray:
    """Wait that 99 of 100 requests do not exceed, of a queue with a given mean wait.

    Parameters
    ----------
    mean_wait_s
        Mean wait W.  [s]

    Returns
    -------
    99th percentile, as of an exponential wait.  [s]

    Notes
    -----
    Eq. (1):  W_99 = W ln 100: waits are close to exponential at high load.

    References
    ----------
    [1] J. F. C. Kingman, "On Queues in Heavy Traffic," Journal of the Royal Statistical Society B 24(2), 1962.

    Examples
    --------
    >>> round(float(tail_wait_s(1.0)), 3)
    4.605
    """
    return np.asarray(as_float(mean_wait_s) * np.log(100.0))


@equation("EQ-QUE-3")
def arrival_wait_factor(arrival_variability: FloatOrArray, service_variability: FloatOrArray) -> FloatOrArray:
    """Factor on a wait under Poisson arrivals when arrivals are more or less even.

    Parameters
    ----------
    arrival_variability
        Squared coefficient of variation c_a^2 of the times between arrivals; 1 = Poisson, 0 = even.
    service_variability
        Squared coefficient of variation c_s^2 of the service times.

    Returns
    -------
    Factor on the wait.

    Notes
    -----
    Eq. (1):  f = (c_a^2 + c_s^2) / (1 + c_s^2)

    References
    ----------
    [1] J. F. C. Kingman, "The single server queue in heavy traffic," Proc. Camb. Phil. Soc. 57, 1961.
    [2] A. O. Allen, "Probability, Statistics, and Queueing Theory," 1990, sec. 5.3.

    Examples
    --------
    >>> float(arrival_wait_factor(1, 0.5)), float(arrival_wait_factor(4, 0))
    (1.0, 4.0)
    """
    service = as_float(service_variability)
    return (as_float(arrival_variability) + service) / (1 + service)


@equation("EQ-QUE-5")
def running_variance(
    sequences: FloatOrArray, slowdown_elasticity: FloatOrArray, peakedness: FloatOrArray
) -> FloatOrArray:
    """Variance of the number of running sequences when each slows the others.

    Parameters
    ----------
    sequences
        Mean number running b.  [count]
    slowdown_elasticity
        Relative rise of the time per token for a relative rise of the batch, e = (b/T) dT/db, below 1.
    peakedness
        Variance over mean that the arrivals would give with endless slots and no slowing, z; 1 = Poisson.

    Returns
    -------
    Variance.  [count^2]

    Notes
    -----
    Eq. (1):  v = b z / (1 - e): the normal curve of the birth-death chain with departures mu(n) = n / T(n)
    around its mode, v = x / mu'(b).

    References
    ----------
    [1] F. P. Kelly, "Reversibility and Stochastic Networks," 1979, sec. 3.3 (state-dependent sharing is
        insensitive to the lengths).
    [2] A. E. Eckberg, "Generalized peakedness of teletraffic processes," ITC 10, 1983.

    Examples
    --------
    >>> float(running_variance(20, 0.25, 1))
    26.666666666666668
    """
    return as_float(sequences) * as_float(peakedness) / (1 - as_float(slowdown_elasticity))


@equation("EQ-QUE-7")
def slot_wait_probability(
    slots: FloatOrArray, sequences: FloatOrArray, variance: FloatOrArray, full_load: FloatOrArray
) -> FloatOrArray:
    """Probability that an arrival finds all slots of a replica taken.

    Parameters
    ----------
    slots
        Sequences B that may run at once.  [count]
    sequences
        Mean number running if slots were endless b.  [count]
    variance
        Its variance v.  [count^2]
    full_load
        Arrival rate over the rate at which a full replica finishes r, below 1.

    Returns
    -------
    Probability of waiting; 1 from a full load of 1 on.

    Notes
    -----
    Eq. (1):  p = h / (1 - r) / (Phi(z) + h r / (1 - r)),  h = phi(z) / sqrt(v),  z = (B - 1/2 - b) / sqrt(v)
    The chain of requests in the replica is normal below B and geometric with ratio r above.

    References
    ----------
    [1] S. Halfin and W. Whitt, "Heavy-traffic limits for queues with many exponential servers,"
        Operations Research 29(3), 1981.

    Examples
    --------
    >>> round(float(slot_wait_probability(50, 40, 40, 0.8)), 3)
    0.101
    """
    spread, load = np.sqrt(np.maximum(as_float(variance), 1e-12)), as_float(full_load)
    z = (as_float(slots) - 0.5 - as_float(sequences)) / spread
    density = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / (spread * np.sqrt(2 * np.pi))
    free = 1 - load
    above = density / np.where(free > 0, free, 1.0)
    share = above / (as_float(normal_share_below(z)) + above * load)
    return np.where(free > 0, np.minimum(share, 1.0), 1.0)


@equation("EQ-QUE-8")
def mixed_step_s(
    decode_step_s: FloatOrArray,
    requests_per_s: FloatOrArray,
    prefill_s: FloatOrArray,
    prefill_second_moment: FloatOrArray,
) -> FloatOrArray:
    """Length of the engine's step that an arrival falls into: decoding, and the prompts that came before.

    Parameters
    ----------
    decode_step_s
        Decoding part D of a step.  [s]
    requests_per_s
        Arrival rate x, Poisson.  [1/s]
    prefill_s
        Mean engine time of a prompt E[P].  [s]
    prefill_second_moment
        E[P^2].  [s^2]

    Returns
    -------
    Mean length, weighted by length, of a step that takes in all prompts that came during the last one;
    infinite when prefill alone fills the engine.  [s]

    Notes
    -----
    Eq. (1):  C' = D + sum of P over Poisson(x C) arrivals
    Eq. (2):  E[C] = D / (1 - rho),  Var[C] = x E[P^2] E[C] / (1 - rho^2),  rho = x E[P]
    Eq. (3):  E[C^2] / E[C] = D / (1 - rho) + x E[P^2] / (1 - rho^2)

    References
    ----------
    [1] H. Takagi, "Queueing Analysis," vol. 1, 1991, sec. 2.4 (gated vacations).

    Examples
    --------
    >>> round(float(mixed_step_s(0.02, 2, 0.1, 0.01)), 6)
    0.045833
    """
    rate = as_float(requests_per_s)
    share = rate * as_float(prefill_s)
    free = np.where(share < 1, 1 - share, 1.0)
    step = as_float(decode_step_s) / free + rate * as_float(prefill_second_moment) / (free * (1 + share))
    return np.where(share < 1, step, np.inf)


@equation("EQ-QUE-10")
def others_in_window(expected: FloatOrArray, arrival_variability: FloatOrArray) -> FloatOrArray:
    """Other requests that come within a time around an arrival: more in bursts, fewer when arrivals are even.

    Parameters
    ----------
    expected
        Rate times the time n.  [count]
    arrival_variability
        Squared coefficient of variation c_a^2 of the times between arrivals.

    Returns
    -------
    Mean number of others.  [count]

    Notes
    -----
    Eq. (1):  o = n for c_a^2 = 1;  max(0, n - 1 + c_a^2) below;
    Eq. (2):  o = n + (c_a^2 - 1) / 2 * g above, with g = sqrt(n) / (sqrt(n) + 0.4) of a burst of gamma gaps inside.
    The excess of the renewal function is (c_a^2 - 1) / 2 for long times; g is a fit to it for c_a^2 from 2 to 8.

    References
    ----------
    [1] D. R. Cox, "Renewal Theory," 1962, sec. 4.2.

    Examples
    --------
    >>> float(others_in_window(0.5, 1)), float(others_in_window(0.5, 0)), round(float(others_in_window(0.16, 3)), 3)
    (0.5, 0.0, 0.66)
    """
    count, variability = as_float(expected), as_float(arrival_variability)
    if (variability == 1).all():
        shape = np.broadcast_shapes(count.shape, variability.shape)
        return count if count.shape == shape else np.broadcast_to(count, shape)
    root = np.sqrt(count)
    burst = (variability - 1) / 2 * root / (root + 0.4)
    return np.where(variability > 1, count + burst, np.maximum(count - 1 + np.minimum(variability, 1.0), 0.0))
