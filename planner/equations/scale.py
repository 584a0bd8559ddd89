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
def scale_loss_factor(loss_per_doubling: FloatOrArray, hosts: FloatOrArray) -> FloatOrArray:
    """Wall time of a whole run over that of its steps in a benchmark, before failures: it grows with the hosts.

    Parameters
    ----------
    loss_per_doubling
        Share of the time that every doubling of the hosts costs.  [1]
    hosts
        Hosts of the run.  [count]

    Returns
    -------
    Factor on the time of the steps; 1 on one host.  [1]

    Notes
    -----
    Eq. (1):  1 + loss log2(hosts)

    What it stands for: slow hosts and links that a short benchmark on picked machines does not meet, evaluation,
    rollbacks after loss spikes, restarts of the publishers' own making.

    References
    ----------
    [1] mosaicml/llm-foundry:scripts/train/benchmarking: 3 to 10 % lost from 128 to 512 H100, two doublings.

    Examples
    --------
    >>> float(scale_loss_factor(0.04, 1)), round(float(scale_loss_factor(0.04, 256)), 2)
    (1.0, 1.32)
    """
    return (1.0 + as_float(loss_per_doubling) * np.log2(np.maximum(as_float(hosts), 1.0)))[()]
