"""Caches of prompts on their way from a prefill pool to a decode pool."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


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
