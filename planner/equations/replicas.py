"""How many replicas: waiting in a pool of servers, whole numbers and spares; and caches that are sent between pools.

Those of prompts are on their way from a prefill pool to a decode pool.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation
from planner.equations.serving_memory import whole_above


@equation("EQ-QUE-11")
def cache_transfer_s(
    cache_bytes: FloatOrArray, link_bytes_per_s: FloatOrArray, links: FloatOrArray = 1
) -> FloatOrArray:
    """Time in which the cache of a prompt travels from a prefill replica to a decode replica.

    Parameters
    ----------
    cache_bytes
        Cache of the prompt, all layers, one copy.  [B]
    link_bytes_per_s
        Sustained rate of one link, one way.  [B/s]
    links
        Links of the replica that send at the same time.  [count]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  t = k / (n v)

    References
    ----------
    [1] P. Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting," ISCA 2024, sec. 4.3.

    Examples
    --------
    >>> round(float(cache_transfer_s(1500 * 163_840, 50e9 * 0.7, 4)) * 1e3, 3)
    1.755
    """
    return as_float(cache_bytes) / (as_float(links) * as_float(link_bytes_per_s))


@equation("EQ-QUE-12")
def transfers_per_s(transfer_s: FloatOrArray, target_share: FloatOrArray = 0.8) -> FloatOrArray:
    """Requests whose caches the links of a replica carry, with room left on the links.

    Parameters
    ----------
    transfer_s
        Time of one transfer over all of the replica's links.  [s]
    target_share
        Share of the links' time that may be planned.

    Returns
    -------
    Requests per second; infinite where nothing has to travel, nan where the time is not known.  [1/s]

    Notes
    -----
    Eq. (1):  x = u / t, so that  x k <= u n v

    References
    ----------
    [1] Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model
        Serving," OSDI 2024, sec. 4.2.

    Examples
    --------
    >>> float(transfers_per_s(0.02))
    40.0
    """
    time = as_float(transfer_s)
    return np.where(time == 0, np.inf, as_float(target_share) / np.where(time == 0, 1.0, time))


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


_NEVER = -60.0  # logarithm of a probability that adds nothing to one
_VALUES = 2**20  # that are looked at together


@equation("EQ-SRV-34")
def share_of_time_within_spares(
    replicas: FloatOrArray,
    spare_replicas: FloatOrArray,
    availability: FloatOrArray,
    node_availability: FloatOrArray = 1.0,
    replicas_per_node: FloatOrArray = 1.0,
) -> FloatOrArray:
    """Share of the time in which no more replicas are down than there are spares.

    Parameters
    ----------
    replicas
        Replicas R, spares among them.  [count]
    spare_replicas
        Replicas k that may be down, whole and at least 0.  [count]
    availability
        Share A of the time in which one replica is up, as far as it fails alone.
    node_availability
        Share V of the time in which the nodes under it are there, which all replicas on them lose at once.
    replicas_per_node
        Replicas g that are lost with such nodes.  [count]

    Returns
    -------
    Probability.

    Notes
    -----
    Eq. (1):  P[Binomial(R, 1 - A) <= k] = sum_{i <= k} C(R, i) (1 - A)^i A^(R - i);  failures are independent.
    Eq. (2):  P = sum_{g j <= k} P[Binomial(ceil(R / g), 1 - V) = j] P[Binomial(R - g j, 1 - A) <= k - g j]

    References
    ----------
    [1] R. E. Barlow and F. Proschan, "Statistical Theory of Reliability and Life Testing," 1975, sec. 2.1
        (k-out-of-n systems).

    Examples
    --------
    >>> round(float(share_of_time_within_spares(4, 1, 0.9)), 4)
    0.9477

    Two nodes of two replicas each that are taken away a tenth of the time: one spare is of no more use than none.

    >>> [round(float(share_of_time_within_spares(4, k, 1.0, 0.9, 2)), 2) for k in (0, 1, 2)]
    [0.81, 0.81, 0.99]
    """
    count, there, each = as_float(replicas), as_float(node_availability), as_float(replicas_per_node)
    up, spares = as_float(availability), np.minimum(as_float(spare_replicas), as_float(replicas))
    if (each <= 1).all():  # whichever is lost, it is one replica
        up, there = up * there, np.ones_like(there)
    nodes = np.ceil(count / each)
    shape = np.broadcast_shapes(count.shape, up.shape, spares.shape, there.shape, each.shape)
    total = np.zeros(shape)
    most = int(np.max(spares // each, initial=0)) if (there < 1).any() else 0
    block = max(1, int(_VALUES // (max(total.size, 1) * (np.max(spares, initial=0) + 1))))
    with np.errstate(divide="ignore"):
        lost, log_exactly = np.log((1 - there) / there), nodes * np.log(there)  # of a node; that so many are gone
        for first in range(0, most + 1, block):
            if (first > nodes * (1 - there)).all() and (log_exactly < _NEVER).all():
                break  # ever less often from here on
            gone = np.arange(first, min(first + block, most + 1))
            steps = np.log(np.maximum(nodes[..., None] - gone, 0.0) / (gone + 1)) + lost[..., None]
            so_many = np.concatenate(
                [log_exactly[..., None], log_exactly[..., None] + np.cumsum(steps, axis=-1)], axis=-1
            )
            log_exactly = so_many[..., -1]
            away = each[..., None] * gone
            alone = _at_most(count[..., None] - away, spares[..., None] - away, up[..., None])
            share = np.where(away <= spares[..., None], np.exp(so_many[..., :-1]) * alone, 0.0)
            total = total + share.sum(axis=-1)
    return np.minimum(total, 1.0)


def _at_most(count: FloatOrArray, most: FloatOrArray, up: FloatOrArray) -> FloatOrArray:
    """P[Binomial(count, 1 - up) <= most], by logarithms: up^count of many is less than any number."""
    count, up = np.broadcast_arrays(np.maximum(as_float(count), 0.0), as_float(up))
    most = np.clip(most, 0.0, count)
    down = np.arange(int(most.max(initial=0)) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.log(np.maximum(count[..., None] - down[:-1], 0.0) * ((1 - up) / up)[..., None] / down[1:])
        first = np.broadcast_to((count * np.log(up))[..., None], (*steps.shape[:-1], 1))
        terms = np.exp(np.concatenate([first, first + np.cumsum(steps, axis=-1)], axis=-1))
    total = np.where(down <= most[..., None], terms, 0.0).sum(axis=-1)
    return np.where(up > 0, np.minimum(total, 1.0), np.where(most >= count, 1.0, 0.0))
