"""Checkpoints: how large they are, how long they stop a job, what keeping them takes. Failures: `reliability.py`."""

from __future__ import annotations

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
