"""How many replicas: waiting in a pool of servers, whole numbers and spares."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation
from planner.equations.serving_memory import whole_above


@equation("EQ-SRV-31")
def replicas_needed(
    peak_requests_per_s: FloatOrArray,
    replica_requests_per_s: FloatOrArray,
    target_load: FloatOrArray = 1,
    spare_replicas: FloatOrArray = 0,
    min_replicas: FloatOrArray = 0,
) -> FloatOrArray:
    """Whole replicas that carry a peak, with room and spares.

    Parameters
    ----------
    peak_requests_per_s
        Peak arrival rate.  [1/s]
    replica_requests_per_s
        Rate x that one replica sustains.  [1/s]
    target_load
        Share u of it that may be planned.
    spare_replicas
        Replicas k that may fail while the rest still carry the peak.  [count]
    min_replicas
        At least so many.  [count]

    Returns
    -------
    Replicas; infinite when one replica sustains nothing.  [count]

    Notes
    -----
    Eq. (1):  R = max(ceil(lambda / (x u)) + k, R_min)
    A quotient within 1e-12 of a whole number counts as that number: 8 / (10 * 0.8) is one replica.

    References
    ----------
    [1] Capacity planning with N + k redundancy.

    Examples
    --------
    >>> float(replicas_needed(20, 3.0, 0.8, spare_replicas=1))
    10.0
    """
    planned = as_float(replica_requests_per_s) * as_float(target_load)
    quotient = as_float(peak_requests_per_s) / np.where(planned > 0, planned, 1.0)
    needed = np.where(planned > 0, whole_above(quotient), np.inf) + as_float(spare_replicas)
    return np.maximum(needed, as_float(min_replicas))


@equation("EQ-SRV-32")
def peak_requests_per_s(requests_per_minute: FloatOrArray, peak_factor: FloatOrArray = 1) -> FloatOrArray:
    """Peak arrival rate from a mean in requests per minute.

    Parameters
    ----------
    requests_per_minute
        Mean arrival rate q.  [1/min]
    peak_factor
        Peak over mean.

    Returns
    -------
    Requests per second at the peak.  [1/s]

    Notes
    -----
    Eq. (1):  lambda = q / 60 * peak

    References
    ----------
    [1] Unit conversion.

    Examples
    --------
    >>> float(peak_requests_per_s(600, 2))
    20.0
    """
    return as_float(requests_per_minute) / 60 * as_float(peak_factor)


@equation("EQ-SRV-33")
def replica_availability(
    mtbf_per_device_s: FloatOrArray, repair_s: FloatOrArray, devices: FloatOrArray
) -> FloatOrArray:
    """Share of the time in which a replica is up that fails when any of its devices does.

    Parameters
    ----------
    mtbf_per_device_s
        Mean time between failures F of one device with its share of host and network.  [s]
    repair_s
        From a failure until another replica stands in its place M.  [s]
    devices
        Devices n of the replica.  [count]

    Returns
    -------
    Share of the time.

    Notes
    -----
    Eq. (1):  A = (F / (F + M))^n

    References
    ----------
    [1] R. E. Barlow and F. Proschan, "Statistical Theory of Reliability and Life Testing," 1975, sec. 7.2 (series
        systems of independent components).

    Examples
    --------
    >>> round(float(replica_availability(50_000 * 3600, 3600, 8)), 6)
    0.99984
    """
    one = as_float(mtbf_per_device_s) / (as_float(mtbf_per_device_s) + as_float(repair_s))
    return one ** as_float(devices)


@equation("EQ-SRV-34")
def share_of_time_within_spares(
    replicas: FloatOrArray, spare_replicas: FloatOrArray, availability: FloatOrArray
) -> FloatOrArray:
    """Share of the time in which no more replicas are down than there are spares.

    Parameters
    ----------
    replicas
        Replicas R, spares among them.  [count]
    spare_replicas
        Replicas k that may be down, whole and at least 0.  [count]
    availability
        Share A of the time in which one replica is up.

    Returns
    -------
    Probability.

    Notes
    -----
    Eq. (1):  P[Binomial(R, 1 - A) <= k] = sum_{i <= k} C(R, i) (1 - A)^i A^(R - i);  failures are independent.

    References
    ----------
    [1] R. E. Barlow and F. Proschan, "Statistical Theory of Reliability and Life Testing," 1975, sec. 2.1
        (k-out-of-n systems).

    Examples
    --------
    >>> round(float(share_of_time_within_spares(4, 1, 0.9)), 4)
    0.9477
    """
    count, up = as_float(replicas), as_float(availability)
    spares = np.minimum(as_float(spare_replicas), count)
    term = up**count
    total = np.zeros(np.broadcast_shapes(count.shape, up.shape, spares.shape))
    for down in range(int(spares.max(initial=0)) + 1):
        total = total + np.where(down <= spares, term, 0.0)
        falls = (count - down) * (1 - up) < (down + 1) * up  # from here on each term is less than the one before
        term = term * np.maximum(count - down, 0.0) / (down + 1) * (1 - up) / np.where(up > 0, up, 1.0)
        if np.all(falls & (total + term == total)):
            break  # what is left is less than a float tells: a million spares need not a million terms
    return np.where(up > 0, np.minimum(total, 1.0), np.where(spares >= count, 1.0, 0.0))
