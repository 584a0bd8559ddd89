"""Waiting in a pool of servers by a closed form, which the queues of fleets are held against."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-SRV-30")
def erlang_c(servers: FloatOrArray, offered_load: FloatOrArray) -> FloatOrArray:
    """Probability that an arrival must wait, in a pool of equal servers with one queue (M/M/c).

    Parameters
    ----------
    servers
        Servers c, a whole number >= 1.  [count]
    offered_load
        Arrival rate times mean service time a.  [erlang]

    Returns
    -------
    Probability of waiting; 1 when the load reaches the servers.

    Notes
    -----
    Eq. (1):  B_0 = 1,  B_k = a B_{k-1} / (k + a B_{k-1})     (blocking)
    Eq. (2):  C = B_c / (1 - (a/c) (1 - B_c))                 (waiting)

    References
    ----------
    [1] A. K. Erlang, "Solution of some problems in the theory of probabilities of significance in
        automatic telephone exchanges," 1917.
    [2] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 3.5.

    Examples
    --------
    >>> round(float(erlang_c(2, 1.0)), 6)
    0.333333
    """
    count, load = np.broadcast_arrays(as_float(servers), as_float(offered_load))
    blocking = np.ones_like(load)
    for k in range(1, int(count.max(initial=0)) + 1):
        blocking = np.where(k <= count, load * blocking / (k + load * blocking), blocking)
    return np.where(load < count, blocking / (1 - load / count * (1 - blocking)), 1.0)
