"""The fitted constants of a device: those of its family, and what a family without rows makes of its parent's."""

from __future__ import annotations

from planner.catalog.model import Catalog, Device
from planner.errors import InputError
from planner.estimate.constants import NAMES, StepConstants
from planner.estimate.frameworks import PART


def step_constants(catalog: Catalog, device: Device) -> StepConstants:
    """The constants of a device's family; a catalog made by hand that has none takes the priors.

    A device sustains as much less of its peak in large products as its best measured product, or its power, says.

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
    if found and "gemm" in constants:
        ratio = product_ratio(device, found.inherited_from or found.family, catalog)
        constants["gemm"] = min(constants["gemm"] * ratio, 1.0)
    return StepConstants(**constants)


def fitted_on(catalog: Catalog, device: Device) -> dict[str, float]:
    """Fitted factors of all stacks, and of the family and the part, as `frameworks.fitted_factors` takes them."""
    family = catalog.training_families.get(device.family)
    if family is None:
        return dict(catalog.training_stacks)
    part = family.parts.get(device.id)
    own = {f"{PART}/experts": part.expert_work} if part else {}
    return {**catalog.training_stacks, PART: family.work * (part.work if part else 1.0), **own}


# Clock against power of a chip that computes at its limit: between P ~ f (voltage at its floor) and P ~ f^3.
CLOCK_EXPONENT = 2.0 / 3.0


def product_ratio(device: Device, family: str, catalog: Catalog) -> float:
    """Large products of a device over the best ones measured in a family, as shares of their peaks; 1 where unknown.

    A device on which nothing was measured sustains what its power lets it: that of the best measured one, times
    (power per peak FLOP over that one's)^(2/3), at most as much.

    Parameters
    ----------
    device
        Where products run.
    family
        Whose best measured device counts: that of the device, or the one that its constants are inherited from.
    catalog
        All devices, with the products that were measured on them.
    """
    own = product_share(device)
    measured = [other for other in catalog.devices.values() if other.family == family and product_share(other)]
    if not measured or device.peak_flop_per_s.get("bf16") is None:
        return 1.0
    best = max(measured, key=lambda other: (product_share(other) or 0.0, other.id))
    share = product_share(best) or 1.0
    if own is not None:
        return own / share
    if device.family != family or not device.tdp_w or not best.tdp_w:
        return 1.0
    power = device.tdp_w / device.peak_flop_per_s["bf16"] / (best.tdp_w / best.peak_flop_per_s["bf16"])
    return float(min(power, 1.0) ** CLOCK_EXPONENT)


def product_share(device: Device) -> float | None:
    """Best measured 16-bit matrix product of a device as a share of its peak; None where none was measured."""
    measured, peak = device.measured_matmul_flop_per_s.get("bf16"), device.peak_flop_per_s.get("bf16")
    return measured / peak if measured and peak else None
