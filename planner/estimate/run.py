"""From the busy time of a run to its wall time: checkpoints, failures, restarts, the slowest of many."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How often a job fails, what it saves and what it costs to go on, in plain numbers."""

    mtbf_per_device_s: float = float("inf")  # of one device with its share of host and network
    restart_s: float = 0.0  # from a noticed failure to the next useful step
    detection_s: float = 0.0  # from a failure to its notice
    checkpoint_bandwidth_bytes_per_s: float = float("inf")  # of one host into storage
    checkpoint_every_s: float | None = None  # None: the interval that loses least
    asynchronous_checkpoint: bool = False  # only the copy into host memory stops the job
    host_copy_bytes_per_s: float = 10e9  # of one device into host memory; asynchronous checkpoints only
    devices_per_host: float = 8.0  # that share one writer
    straggler_sigma: float = 0.0  # spread of a device's step time, as a share of it
    preemptions_per_s: float = 0.0  # of one shape (spot)
    devices_per_shape: float = 8.0  # that a preemption takes at once
    preemption_restart_s: float = 0.0
    preemption_warning_s: float = 0.0
