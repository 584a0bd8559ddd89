"""Why a site cannot run a workload, or counts only where it is asked for, and what it draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.architecture.model import Architecture
from planner.candidates.offers import Site, is_at
from planner.candidates.sellers import is_brought
from planner.catalog.model import Catalog, Grid
from planner.catalog.names import device_matches
from planner.estimate.frameworks import runs_on
from planner.estimate.kernels import lacks_kernels, not_run
from planner.estimate.published import unpublished
from planner.scenario.schema import Hardware, Scenario, ServingFleet, TrainingJob

UNLAUNCHED = "unlaunched"
SHARE = "share"  # kind of shapes that are a part of one device, by time or by memory


def training_refusal(site: Site, job: TrainingJob, scenario: Scenario, catalog: Catalog) -> str:
    """Why a site cannot train a job at all, or an empty string.

    Parameters
    ----------
    site
        The offer, its shape and its device.
    job
        Its precision, its framework, and what it offloads.
    scenario
        Where it limits power, or limits or weighs carbon, these must be known.
    catalog
        Grids of the places.
    """
    device = site.device
    if "training" not in device.uses:
        return "not-for-training"
    if not runs_on(job.framework, device.frameworks):
        return "framework"
    if not device.peak_flop_per_s.get(job.precision):
        return "precision"
    if job.offload and site.shape.host_memory_bytes is None:
        return "host-memory-unknown"
    return _energy_refusal(site, scenario, catalog)


def serving_refusal(site: Site, fleet: ServingFleet, arch: Architecture, scenario: Scenario, catalog: Catalog) -> str:
    """Why a site cannot serve a fleet at all, or an empty string.

    Parameters
    ----------
    site
        The offer, its shape and its device.
    fleet
        Its engine and its formats.
    arch
        The model.
    scenario
        Where it limits power, or limits or weighs carbon, these must be known.
    catalog
        Grids of the places.
    """
    device = site.device
    if "serving" not in device.uses:
        return "not-for-serving"
    if not device.memory_bandwidth_bytes_per_s:
        return "bandwidth-unknown"
    if not any(device.peak_flop_per_s.get(name) for name in ("bf16", "fp16", "fp32")):
        return "precision"
    if unpublished(fleet, arch, device, site.shape.devices):
        return "unpublished"
    if not_run(fleet, device, site.shape.devices):
        return "not-run"
    if lacks_kernels(fleet, device):
        return "no-kernels"
    return _energy_refusal(site, scenario, catalog)


def unlaunched(sites: Sequence[Site], hardware: Hardware, launches: Callable[[Site], bool]) -> list[Site]:
    """Sites on which nothing that `plan export` writes for runs a workload, where it does on others.

    Nobody would rent them unasked. They count where the scenario names their device, owns them or brought their price,
    and where there are no others.

    Parameters
    ----------
    sites
        That can run the workload.
    hardware
        Patterns of devices that are allowed.
    launches
        Whether something runs it on a site.
    """
    waiting = [site for site in sites if not launches(site)]
    if len(waiting) == len(sites):
        return []
    return [site for site in waiting if not (site.owned is not None or is_brought(site.offer)
            or any(pattern != "*" and device_matches(site.device, pattern) for pattern in hardware.allow))]  # fmt: skip


def refusal_note(
    site: Site,
    reason: str,
    use: str,
    job: TrainingJob | None = None,
    fleet: ServingFleet | None = None,
    arch: Architecture | None = None,
) -> str:
    """What is known about a refusal, in words.

    Parameters
    ----------
    site
        The offer that was refused.
    reason
        As `training_refusal` or `serving_refusal` gives it.
    use
        ``training`` or ``serving``.
    job
        Of training, whose precision and framework are told; else None.
    fleet, arch
        Of serving; else None.
    """
    device = site.device
    if reason == f"not-for-{use}":
        return f"{device.id}: {device.refusals.get(use, f'not made for {use}')}"
    if reason == "precision":
        wanted = job.precision if job else "16 or 32 bits"
        return f"{device.id} computes in {', '.join(device.peak_flop_per_s) or 'nothing known'}, not in {wanted}"
    if reason == "unpublished" and fleet and arch:
        return unpublished(fleet, arch, device, site.shape.devices)
    if reason == "not-run" and fleet:
        return not_run(fleet, device, site.shape.devices)
    if reason == "no-kernels":
        form = "4-bit" if fleet and fleet.weights == "mxfp4" else "8-bit"
        return f"{device.id}: the engine has no kernels for {form} floats on it"
    if reason == "framework" and job:
        return f"{device.id} runs {', '.join(device.frameworks) or 'no training framework'}, not {job.framework}"
    if reason == UNLAUNCHED:
        where = f"a share of {device.id} ({site.shape.id})" if site.shape.kind == SHARE else device.id
        return f"{where}: nothing that plan export writes for runs there; named in hardware.allow it counts"
    if reason == "carbon-unknown" and site.owned is not None:
        return f"hardware.owned[{site.owned}]: the carbon of its grid is unknown; write carbon: 380 g/kWh there"
    if reason == "carbon-unknown":
        return f"{site.offer.provider} {site.offer.region}: the carbon of its grid is unknown"
    if reason == "host-memory-unknown" and site.owned is not None:
        place = f"hardware.owned[{site.owned}]"
        return f"{site.shape.id}: the memory of its hosts is unknown; write host_memory: 512 GB, say, in {place}"
    if reason == "host-memory-unknown":
        return f"{site.shape.id}: the memory of its hosts is unknown, and something is offloaded to it"
    return f"{device.id}: its {reason.removesuffix('-unknown')} is unknown"


def _energy_refusal(site: Site, scenario: Scenario, catalog: Catalog) -> str:
    limits = scenario.limits
    here = [place for place in limits.sites if is_at(site, place)]
    counts_carbon = limits.carbon_g is not None or "carbon" in scenario.objective
    counts_carbon = counts_carbon or any(place.carbon_g is not None for place in here)
    counts_power = limits.power_w is not None or any(place.power_w is not None for place in here)
    if power_w(site) is None and (counts_power or counts_carbon):
        return "power-unknown"
    if counts_carbon and grid_of(site, catalog) is None:
        return "carbon-unknown"
    return ""


def power_w(site: Site) -> float | None:
    """What one shape draws as its owner says, else the rated power of its accelerators; None when unknown.  [W]"""
    if site.drawn_w is not None or site.device.tdp_w is None:
        return site.drawn_w
    return site.device.tdp_w * site.shape.devices * site.shape.compute_share


def grid_of(site: Site, catalog: Catalog) -> Grid | None:
    """What its energy emits, and the overhead of its building; None when unknown."""
    if site.owned is not None:
        return site.grid
    return catalog.grids.get((site.offer.provider, site.offer.region))


def carbon_mg_per_hour(site: Site, catalog: Catalog) -> float:
    """Carbon of one shape at the power that it draws, building overhead included; 0 when unknown.  [mg/h]"""
    grid, drawn_w = grid_of(site, catalog), power_w(site)
    return (drawn_w or 0.0) / 1000.0 * grid.pue * grid.gco2_per_kwh * 1000.0 if grid else 0.0
