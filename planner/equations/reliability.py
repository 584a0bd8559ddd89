"""Failures, checkpoints and scale: how much of the wall time a run spends on steps that count.

Of checkpoints: how large they are, how long they stop a job, what keeping them takes. Of many devices in one run: what
waiting for each other and sheer size take.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

HOURS_PER_MONTH = 730.0


@equation("EQ-CKP-1")
def checkpoint_bytes(
    trained_parameters: FloatOrArray,
    weight_bytes_per_parameter: FloatOrArray = 2,
    optimizer_bytes_per_parameter: FloatOrArray = 12,
) -> FloatOrArray:
    """Size of a checkpoint from which training goes on: weights, master weights and moments, no gradients.

    Parameters
    ----------
    trained_parameters
        Parameters that are trained: all of the model, or those of its adapters.  [count]
    weight_bytes_per_parameter
        2 where the 16-bit weights are saved beside the master ones; 4 where shards stay in fp32.  [B]
    optimizer_bytes_per_parameter
        Master weight and moments of the state recipe: 12 for mixed-precision Adam, 8 with fp32 shards.  [B]

    Returns
    -------
    Bytes of one checkpoint: 14 a parameter for mixed-precision Adam, 12 with fp32 shards.  [B]

    Notes
    -----
    Eq. (1):  P (w + o)

    References
    ----------
    [1] BigScience, "BigScience 176B Model": 2.3 TB with optimizer states, 329 GB of bf16 weights alone.
    [2] mlcommons/storage:checkpointing/README.md@53bb3fc, Table 2: 105 GB for Llama 3 8B.

    Examples
    --------
    >>> float(checkpoint_bytes(8e9)) / 1e9
    112.0
    """
    return as_float(trained_parameters) * (as_float(weight_bytes_per_parameter) + optimizer_bytes_per_parameter)


@equation("EQ-CKP-2")
def checkpoint_write_s(
    size_bytes: FloatOrArray, writers: FloatOrArray, bandwidth_bytes_per_s: FloatOrArray
) -> FloatOrArray:
    """Time to write a sharded checkpoint, every writer its part at once.

    Parameters
    ----------
    size_bytes
        Size of the whole checkpoint.  [B]
    writers
        Hosts that write into storage; devices, when only their copy into host memory stops the job.  [count]
    bandwidth_bytes_per_s
        Rate of one writer.  [B/s]

    Returns
    -------
    Time delta of one checkpoint.  [s]

    Notes
    -----
    Eq. (1):  bytes / (writers bandwidth)

    References
    ----------
    [1] Z. Jiang et al., "MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs," NSDI 2024,
        sec. 4.4: state is copied to host memory within seconds, then written in the background.

    Examples
    --------
    >>> float(checkpoint_write_s(112e9, 16, 2e9))
    3.5
    """
    return as_float(size_bytes) / (as_float(writers) * bandwidth_bytes_per_s)


@equation("EQ-CKP-3")
def checkpoint_storage_bytes(size_bytes: FloatOrArray, kept: FloatOrArray) -> FloatOrArray:
    """Storage that a run needs at most for its checkpoints: the kept ones and the one being written.

    Parameters
    ----------
    size_bytes
        Size of one checkpoint.  [B]
    kept
        Checkpoints that are kept.  [count]

    Returns
    -------
    Peak bytes in storage.  [B]

    Notes
    -----
    Eq. (1):  (kept + 1) bytes

    References
    ----------
    [1] Prime Intellect documentation, "Volume capacity": at its peak a run holds keep_last + 1 checkpoints.

    Examples
    --------
    >>> float(checkpoint_storage_bytes(341e9, 2)) / 1e12
    1.023
    """
    return as_float(size_bytes) * (as_float(kept) + 1.0)


@equation("EQ-CKP-4")
def checkpoint_storage_cost(
    storage_bytes: FloatOrArray, price_per_gigabyte_month: FloatOrArray, hours: FloatOrArray
) -> FloatOrArray:
    """What it costs to keep the checkpoints of a run while it lasts.

    Parameters
    ----------
    storage_bytes
        Bytes in storage.  [B]
    price_per_gigabyte_month
        Price of 1e9 bytes for a month of 730 h.  [currency/(GB month)]
    hours
        Wall time of the run.  [h]

    Returns
    -------
    Cost in the currency of the price.  [currency]

    Notes
    -----
    Eq. (1):  bytes / 1e9 price hours / 730

    References
    ----------
    [1] Amazon S3 pricing page: storage is billed by the GB and month (recalled).

    Examples
    --------
    >>> round(float(checkpoint_storage_cost(1e12, 0.023, 1460)), 6)
    46.0
    """
    months = as_float(hours) / HOURS_PER_MONTH
    return as_float(storage_bytes) / 1e9 * as_float(price_per_gigabyte_month) * months


@equation("EQ-REL-1")
def system_mtbf_s(device_mtbf_s: FloatOrArray, devices: FloatOrArray) -> FloatOrArray:
    """Mean time between failures of a synchronous job.

    Parameters
    ----------
    device_mtbf_s
        Mean time between failures of one device with its share of host and network.  [s]
    devices
        Devices N.  [count]

    Returns
    -------
    Mean time between failures of the job.  [s]

    Notes
    -----
    Eq. (1):  M = MTBF_device / N

    References
    ----------
    [1] A. Dubey et al., "The Llama 3 Herd of Models," 2024, sec. 3.3.4: 419 unexpected stops in 54 days on
        16,384 devices, 3.09 h.

    Examples
    --------
    >>> round(float(system_mtbf_s(5.07e4 * 3600, 16384)) / 3600, 2)
    3.09
    """
    return as_float(device_mtbf_s) / as_float(devices)


@equation("EQ-REL-4")
def inverse_goodput(
    checkpoint_s: FloatOrArray,
    interval_s: FloatOrArray,
    mtbf_s: FloatOrArray,
    restart_s: FloatOrArray = 0,
    detection_s: FloatOrArray = 0,
) -> FloatOrArray:
    """Wall time over useful time of a job that checkpoints and fails.

    Parameters
    ----------
    checkpoint_s, interval_s
        Blocking time delta and interval tau.  [s]
    mtbf_s
        Mean time between failures M of the job.  [s]
    restart_s, detection_s
        Time to restart R and to notice a failure.  [s]

    Returns
    -------
    1 / G; infinite when a failure costs more than the time between failures.  [1]

    Notes
    -----
    Eq. (1):  (1 + delta / tau) / (1 - (tau / 2 + R + detect) / M)

    References
    ----------
    [1] J. Daly, FGCS 22, 2006 (first-order form).
    [2] A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters," HPCA 2025,
        arXiv 2410.21680: the expected effective training time ratio, which is G.

    Examples
    --------
    >>> round(float(inverse_goodput(0, 600, 1e12)), 6)
    1.0
    """
    tau, delta = as_float(interval_s), as_float(checkpoint_s)
    lost = (tau / 2.0 + as_float(restart_s) + detection_s) / as_float(mtbf_s)
    kept = np.where(lost < 1.0, 1.0 - lost, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        saving = np.where(delta > 0, delta / tau, 0.0)
    return np.where(lost < 1.0, (1.0 + saving) / kept, np.inf)[()]


@equation("EQ-REL-5")
def best_interval_s(
    checkpoint_s: FloatOrArray, mtbf_s: FloatOrArray, restart_s: FloatOrArray = 0, detection_s: FloatOrArray = 0
) -> FloatOrArray:
    """Checkpoint interval at which `inverse_goodput` is least, exactly.

    Parameters
    ----------
    checkpoint_s
        Time delta that a checkpoint blocks the job.  [s]
    mtbf_s
        Mean time between failures M of the job.  [s]
    restart_s, detection_s
        Time to restart R and to notice a failure.  [s]

    Returns
    -------
    Computing time between checkpoints; 0 when they cost nothing, or a failure more than the time to the next.  [s]

    Notes
    -----
    Eq. (1):  sqrt(delta^2 + 2 delta (M - R - detect)) - delta

    The zero of the derivative of EQ-REL-4 by tau. Young's interval is its limit for a small delta;
    Daly's has M + R, because there a restart does not count against the time between failures.

    References
    ----------
    [1] J. Daly, FGCS 22, 2006, sec. 2, with the cost function of EQ-REL-4.
    [2] N. R. Saxena et al., "Optimal Checkpoint Interval with Availability as an Objective Function," 2024,
        arXiv 2410.18124: the same form for an availability that counts restarts apart.

    Examples
    --------
    >>> round(float(best_interval_s(50, 10_000, 500, 300)), 1)
    910.5
    """
    delta = as_float(checkpoint_s)
    left = np.maximum(as_float(mtbf_s) - restart_s - detection_s, 0.0)
    with np.errstate(invalid="ignore"):  # 0 x inf where nothing fails and nothing is paid for saving
        interval = np.sqrt(delta**2 + 2.0 * delta * left) - delta
    return np.where(delta > 0, interval, 0.0)[()]


@equation("EQ-REL-8")
def preemption_lost_s(
    interval_s: FloatOrArray, checkpoint_s: FloatOrArray, warning_s: FloatOrArray = 0
) -> FloatOrArray:
    """Work that a preemption undoes: half an interval, or one checkpoint when the warning is long enough for it.

    Parameters
    ----------
    interval_s, checkpoint_s
        Computing time between checkpoints tau and time delta that one takes.  [s]
    warning_s
        Time between the notice and the loss of the machine.  [s]

    Returns
    -------
    Mean time lost, restart not included.  [s]

    Notes
    -----
    Eq. (1):  min(delta, tau / 2) if warning >= delta, else tau / 2

    References
    ----------
    [1] Amazon EC2 user guide, "Spot Instance interruption notices": two minutes (recalled).

    Examples
    --------
    >>> float(preemption_lost_s(1200, 60, 120)), float(preemption_lost_s(1200, 60, 30))
    (60.0, 600.0)
    """
    half, delta = as_float(interval_s) / 2.0, as_float(checkpoint_s)
    return np.where(as_float(warning_s) >= delta, np.minimum(delta, half), half)[()]


@equation("EQ-REL-9")
def useful_price(price_per_hour: FloatOrArray, goodput: FloatOrArray) -> FloatOrArray:
    """Price of an hour of steps that count: what makes spot and on-demand comparable.

    Parameters
    ----------
    price_per_hour
        Price p of an hour on the clock.  [currency/h]
    goodput
        Share G of the wall time that counts.  [1]

    Returns
    -------
    Price of a useful hour.  [currency/h]

    Notes
    -----
    Eq. (1):  p / G

    References
    ----------
    [1] J. Thorpe et al., "Bamboo: Making Preemptible Instances Resilient for Affordable Training of
        Large DNNs," NSDI 2023.

    Examples
    --------
    >>> float(useful_price(3, 0.75))
    4.0
    """
    return as_float(price_per_hour) / as_float(goodput)


@equation("EQ-REL-10")
def expected_failures(wall_s: FloatOrArray, mtbf_s: FloatOrArray) -> FloatOrArray:
    """Failures that a run has to expect.

    Parameters
    ----------
    wall_s
        Wall time of the run.  [s]
    mtbf_s
        Mean time between failures of the job.  [s]

    Returns
    -------
    Mean number of failures.  [count]

    Notes
    -----
    Eq. (1):  wall / M

    References
    ----------
    [1] A. Dubey et al., "The Llama 3 Herd of Models," 2024, sec. 3.3.4.

    Examples
    --------
    >>> round(float(expected_failures(54 * 86400, system_mtbf_s(5.0676e4 * 3600, 16384))))
    419
    """
    return as_float(wall_s) / as_float(mtbf_s)


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
