"""Many devices in one run: what waiting for each other and sheer size take."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-REL-7")
def straggler_factor(sigma: FloatOrArray, devices: FloatOrArray) -> FloatOrArray:
    """Mean of the slowest of many devices over the mean of one: a synchronous step waits for it.

    Parameters
    ----------
    sigma
        Spread of a device's step time, as a share of it; 0.005 to 0.01.  [1]
    devices
        Devices N.  [count]

    Returns
    -------
    Factor on the step time, at least 1.  [1]

    Notes
    -----
    Eq. (1):  1 + sigma sqrt(2 ln N)

    The leading term of the expected largest of N independent normal values: an upper bound of it.

    References
    ----------
    [1] H. Cramer, "Mathematical Methods of Statistics," 1946, sec. 28.6.

    Examples
    --------
    >>> float(straggler_factor(0.01, 1))
    1.0
    >>> round(float(straggler_factor(0.01, 1024)), 4)
    1.0372
    """
    return (1.0 + as_float(sigma) * np.sqrt(2.0 * np.log(np.maximum(as_float(devices), 1.0))))[()]


@equation("EQ-REL-11")
def most_devices(
    global_batch: FloatOrArray,
    micro_batch: FloatOrArray,
    tensor_parallel: FloatOrArray,
    pipeline_stages: FloatOrArray,
    context_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """Devices beyond which a fixed global batch leaves ranks without work.

    Parameters
    ----------
    global_batch, micro_batch
        Sequences B of an optimizer step and b of one pass of one rank.  [count]
    tensor_parallel, pipeline_stages, context_parallel
        Degrees t, p and c.  [count]

    Returns
    -------
    Largest number of devices.  [count]

    Notes
    -----
    Eq. (1):  N_max = B t p c / b

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters," SC 2021, sec. 3.3
        (d <= B / b with d = N / (t p)).

    Examples
    --------
    >>> float(most_devices(1024, 1, 8, 16))
    131072.0
    """
    share = as_float(tensor_parallel) * pipeline_stages * context_parallel
    return as_float(global_batch) * share / as_float(micro_batch)


@equation("EQ-REL-12")
def scale_loss_factor(scale_loss: FloatOrArray, hosts: FloatOrArray) -> FloatOrArray:
    """Wall time of a whole run over that of its steps in a benchmark, before failures: it saturates with the hosts.

    Parameters
    ----------
    scale_loss
        Share of the time that a run over many hosts loses.  [1]
    hosts
        Hosts of the run.  [count]

    Returns
    -------
    Factor on the time of the steps; 1 on one host, 1 + loss on very many.  [1]

    Notes
    -----
    Eq. (1):  1 + loss (hosts - 1) / hosts

    A hierarchical collective sends (hosts - 1) / hosts of a message over the network, however many hosts there are:
    what the network, slow hosts, evaluation and rollbacks cost a run grows with that share and no further. Failures
    are not in it: they are counted device by device.

    References
    ----------
    [1] J. Austin et al., "How to Scale Your Model," 2025, chapter on GPUs: hierarchical collectives.
    [2] A. Dubey et al., "The Llama 3 Herd of Models," 2024, table 4: 43 % of the peak on 8,192 H100, 41 % on 16,384.

    Examples
    --------
    >>> float(scale_loss_factor(0.2, 1)), float(scale_loss_factor(0.2, 2)), float(scale_loss_factor(0.2, 2000))
    (1.0, 1.1, 1.1999)
    """
    many = np.maximum(as_float(hosts), 1.0)
    return (1.0 + as_float(scale_loss) * (many - 1.0) / many)[()]
