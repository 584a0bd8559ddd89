"""One training job on groups of unlike machines: what each takes of the batch, and how long a step is.

Every group holds the whole model and computes gradients of its own part of the global batch; the groups then reduce
the gradients among themselves and update alike.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

# Light in glass covers 2e8 m/s, and no two places are further apart than half the way round the Earth, 2e7 m.
FARTHEST_LATENCY_S = 0.1


@equation("EQ-MIX-1")
def proportional_share(sequences_per_s: FloatOrArray, all_sequences_per_s: FloatOrArray) -> FloatOrArray:
    """Share of a batch with which a group finishes together with the others.

    Parameters
    ----------
    sequences_per_s
        Speed r of the group.  [1/s]
    all_sequences_per_s
        Speed of all groups together.  [1/s]

    Returns
    -------
    Share of the batch.  [1]

    Notes
    -----
    Eq. (1):  r / sum r

    References
    ----------
    [1] V. Bharadwaj, D. Ghose and T. G. Robertazzi, "Divisible Load Theory: A New Paradigm for Load Scheduling in
        Distributed Systems," Cluster Computing, 2003: in the best split all processors stop at the same time.

    Examples
    --------
    >>> float(proportional_share(30, 40))
    0.75
    """
    return (as_float(sequences_per_s) / as_float(all_sequences_per_s))[()]


@equation("EQ-MIX-2")
def mixed_step_s(slowest_s: FloatOrArray, synchronisation_s: FloatOrArray = 0) -> FloatOrArray:
    """Time of a step that groups take together: the last one, then the reduction among them.

    Parameters
    ----------
    slowest_s
        Longest time of a group for its own whole number of micro-batches.  [s]
    synchronisation_s
        Reducing the gradients among the groups.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  max_g T_g(b_g) + T_sync

    Nothing of the reduction among groups is taken to hide behind their computation.

    References
    ----------
    [1] J. Chen et al., "Revisiting Distributed Synchronous SGD," 2016: a synchronous step waits for the slowest.

    Examples
    --------
    >>> float(mixed_step_s(3.0, 0.25))
    3.25
    """
    return (as_float(slowest_s) + as_float(synchronisation_s))[()]


@equation("EQ-MIX-3")
def least_group_s(
    batch: FloatOrArray, fixed_sequences: FloatOrArray, all_sequences_per_s: FloatOrArray
) -> FloatOrArray:
    """Least time in which groups get through a batch that could be split at will.

    Parameters
    ----------
    batch
        Sequences B of the batch.  [count]
    fixed_sequences
        Sum over the groups of a / c: what each could do in the time a of a step that its share does not
        change.  [count]
    all_sequences_per_s
        Sum over the groups of 1 / c, with the time c of each further sequence.  [1/s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  (B + sum a_g / c_g) / sum 1 / c_g

    The time t at which sum (t - a_g) / c_g = B. A group with a_g > t would take a negative share, so that this is a
    lower bound whatever the fixed times are; whole micro-batches only add to it.

    References
    ----------
    [1] V. Bharadwaj, D. Ghose and T. G. Robertazzi, "Divisible Load Theory: A New Paradigm for Load Scheduling in
        Distributed Systems," Cluster Computing, 2003.

    Examples
    --------
    One group takes 0.1 s a sequence, another 0.25 s and 0.5 s whatever its share:

    >>> float(least_group_s(40, 0.5 / 0.25, 1 / 0.1 + 1 / 0.25))
    3.0
    """
    return ((as_float(batch) + as_float(fixed_sequences)) / as_float(all_sequences_per_s))[()]


@equation("EQ-MIX-4")
def groups_all_reduce_s(
    message_bytes: FloatOrArray, groups: FloatOrArray, slowest_bytes_per_s: FloatOrArray, latency_s: FloatOrArray = 0
) -> FloatOrArray:
    """Reducing gradients among groups, each of which uses all of its links at once.

    Parameters
    ----------
    message_bytes
        Gradients n of the whole model.  [B]
    groups
        Groups G.  [count]
    slowest_bytes_per_s
        One-way rate of the group with the least: of all its links to the other groups together.  [B/s]
    latency_s
        Start-up time alpha of one step between the two groups that are farthest apart.  [s]

    Returns
    -------
    Time.  [s]

    Notes
    -----
    Eq. (1):  2 (G - 1) / G n / W + 2 (G - 1) alpha

    Inside a group the gradients are already scattered (that is part of the group's own step), so that every device
    holds and sends an equal part: a ring over groups in the place of one over ranks.

    References
    ----------
    [1] P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations," JPDC, 2009.
    [2] J. Austin et al., "How to Scale Your Model," 2025, chapter on GPUs: hierarchical collectives.

    Examples
    --------
    >>> float(groups_all_reduce_s(16e9, 2, 8e9)), float(groups_all_reduce_s(16e9, 1, 8e9))
    (2.0, 0.0)
    """
    g = as_float(groups)
    sent = as_float(group_traffic_bytes(message_bytes, g))
    with np.errstate(divide="ignore", invalid="ignore"):
        ring = sent / as_float(slowest_bytes_per_s) + 2.0 * (g - 1.0) * as_float(latency_s)
    return np.where(g > 1, ring, 0.0)[()]


@equation("EQ-MIX-5")
def group_traffic_bytes(message_bytes: FloatOrArray, groups: FloatOrArray) -> FloatOrArray:
    """Bytes that each of several groups sends to the others in one step.

    Parameters
    ----------
    message_bytes
        Gradients n of the whole model.  [B]
    groups
        Groups G.  [count]

    Returns
    -------
    Traffic.  [B]

    Notes
    -----
    Eq. (1):  2 (G - 1) / G n

    References
    ----------
    [1] P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations," JPDC, 2009,
        Theorem 1: no algorithm sends less.

    Examples
    --------
    >>> float(group_traffic_bytes(16e9, 2))
    16000000000.0
    """
    g = as_float(groups)
    return (2.0 * (g - 1.0) / g * as_float(message_bytes))[()]


@equation("EQ-MIX-6")
def least_cost_per_sequence(price_per_s: FloatOrArray, all_sequences_per_s: FloatOrArray) -> FloatOrArray:
    """Cost of a sequence on groups that are never idle: a lower bound of what a mix costs.

    Parameters
    ----------
    price_per_s
        Sum of the prices p of the groups.  [USD/s]
    all_sequences_per_s
        Sum of the best speeds r that they reach.  [1/s]

    Returns
    -------
    Cost.  [USD]

    Notes
    -----
    Eq. (1):  sum p_g / sum r_g

    A ratio of two sums: it is minimised over whole numbers of machines by Dinkelbach's iterations [1].

    References
    ----------
    [1] W. Dinkelbach, "On Nonlinear Fractional Programming," Management Science 13 (7), 1967.

    Examples
    --------
    >>> float(least_cost_per_sequence(5.0, 40.0))
    0.125
    """
    return (as_float(price_per_s) / as_float(all_sequences_per_s))[()]
