"""Rates that are published of a device that no engine known here serves on: of a model, one user at a time.

A dataflow machine, or a chip that holds a model in its SRAM, is compiled by its vendor for each model; no equation of
batches and bandwidths stands for that. What somebody measured there is a rate, and beyond what was measured there is
none.
"""

from __future__ import annotations

from planner.architecture.model import Architecture
from planner.catalog.model import Device, PublishedRate
from planner.scenario.schema import ServingFleet


def published_rate(fleet: ServingFleet, arch: Architecture, device: Device) -> PublishedRate | None:
    """The rate of a fleet's model and format on a device; None where the equations answer, or the user does.

    Parameters
    ----------
    fleet
        Its weights must be in the format that was measured.
    arch
        The model, found by its name.
    device
        With the rates that are published of it; they count where only an engine of its vendor serves on it.
    """
    if not device.engine or fleet.throughput_tokens_per_s_per_device is not None or fleet.tier == "measured":
        return None
    return next((one for one in device.published if one.model == arch.name and one.weights == fleet.weights), None)


def unpublished(fleet: ServingFleet, arch: Architecture, device: Device, devices_per_shape: int) -> str:
    """Why nothing is known of a fleet on a device that only its vendor's engine serves on; "" where something is.

    Parameters
    ----------
    fleet
        What is served; a throughput that it gives is known in any case.
    arch
        The model, found by its name.
    device
        With the rates that are published of it, each of a number of devices in one machine.
    devices_per_shape
        Devices of the machine that is asked about.
    """
    given = fleet.throughput_tokens_per_s_per_device is not None or fleet.tier == "measured"
    if not device.engine or given:
        return ""
    if fleet.engine is not None and fleet.engine.lower() != device.engine:
        return (
            f"{device.id}: {fleet.engine} does not run on it, {device.engine} of {device.vendor} does; leave engine out"
        )
    found = published_rate(fleet, arch, device)
    if found is None:
        rates = ", ".join(f"{one.model} {one.weights} {one.output_tokens_per_s:,.0f}" for one in device.published)
        says = f"; published, in tokens/s of one user: {rates}" if rates else ""
        return f"{device.id}: of {arch.name} in {fleet.weights} no rate is published{says}. {_MEASURE}"
    if devices_per_shape != found.devices:
        return f"{device.id}: the rate of {arch.name} is published of {found.devices} in one machine. {_MEASURE}"
    if fleet.users:
        return f"{device.id}: no response time is published, and what users send follows from that. Give a rate: qpm"
    if fleet.targets_s or fleet.disaggregated != "false":
        return f"{device.id}: no time to a first token is published, so that no target can be kept. {_MEASURE}"
    return ""


_MEASURE = "A rate that you measured (throughput of the fleet, in output tokens per second and device) serves"
