"""The fitted constants of a device: those of its family, and what a family without rows makes of its parent's."""

from __future__ import annotations

from planner.catalog.model import Catalog, Device
from planner.errors import InputError
from planner.estimate.constants import NAMES, StepConstants


def step_constants(catalog: Catalog, device: Device) -> StepConstants:
    """The constants of a device's family; a catalog made by hand that has none takes the priors.

    A family that inherits sustains as much less of its peak in large products as its best measured product does.

    Raises
    ------
    InputError
        The catalog names a constant that the equations do not know.
    """
    found = catalog.training_families.get(device.family)
    constants = dict(found.constants) if found else {}
    unknown = sorted(set(constants) - set(NAMES))
    if unknown:
        raise InputError.of(
            "unknown-constant",
            f"calibration/training.yaml gives {device.family} constants that no equation takes: {', '.join(unknown)}",
            hint=f"the names are {', '.join(NAMES)}",
        )
    if found and found.inherited_from and "gemm" in constants:
        constants["gemm"] = min(constants["gemm"] * _product_ratio(device, found.inherited_from, catalog), 1.0)
    return StepConstants(**constants)


def _product_ratio(device: Device, parent: str, catalog: Catalog) -> float:
    """Best measured product of a device over that of the family it inherits from, as shares of their peaks; else 1."""
    own = product_share(device)
    others = [product_share(other) for other in catalog.devices.values() if other.family == parent]
    known = [share for share in others if share is not None]
    return own / max(known) if own is not None and known else 1.0


def product_share(device: Device) -> float | None:
    """Best measured 16-bit matrix product of a device as a share of its peak; None where none was measured."""
    measured, peak = device.measured_matmul_flop_per_s.get("bf16"), device.peak_flop_per_s.get("bf16")
    return measured / peak if measured and peak else None
