"""Keys of a scenario that do nothing beside the others that it has: taken without a word they would be believed."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.offers import quota_matches, site_at, usable_offers
from planner.catalog.model import Catalog
from planner.scenario.hardware_keys import RESERVING
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

# of a fleet whose rates are given, and of one that the rule of thumb predicts: what only a prediction acts on
_PREDICTED = ("prefix_cached", "speculative", "disaggregated")
_OF_A_MODEL = ("weights", "kv_cache", "engine", "limits", "layout", "slo", "variability_given", *_PREDICTED)


def idle_keys(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """A sentence for each key that was given and changes nothing, with what it waits for.

    Parameters
    ----------
    scenario
        As it was asked; what was left out is not told.
    catalog
        Says what is sold of what quotas count.
    """
    given, hardware, jobs = scenario.model_fields_set, scenario.hardware, scenario.training
    if "plain_within" in given and scenario.prefer == "cheapest":
        yield "plain_within does nothing beside prefer: cheapest, which takes no plainer layout at any price"
    yield from _of_hardware(scenario, catalog)
    if hardware.boot_s is not None and not jobs:
        yield "hardware.boot does nothing: it is paid for before a job runs, and there is none"
    for job in jobs:
        yield from _of_job(job, hardware.pricing)
    for fleet in scenario.serving:
        yield from _of_fleet(fleet)


def _of_hardware(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    hardware = scenario.hardware
    if hardware.assume_between_zones is not None and not scenario.mixes:
        yield "hardware.assume_between_zones does nothing: no job has mix_within_job: true"
    ahead = bool(hardware.contracts) or any(model in RESERVING for model in hardware.pricing)
    if "beyond_horizon" in hardware.model_fields_set and not ahead:
        yield (
            "hardware.beyond_horizon does nothing: hardware.pricing names nothing that is bought ahead "
            f"({', '.join(RESERVING)}), and there are no hardware.contracts"
        )
    if "pricing" in hardware.model_fields_set:  # where it is left out, that is a warning
        for model, stated in (("spot", hardware.spot), ("flex", hardware.flex)):
            if stated is not None and model not in hardware.pricing and not _on_spot(model, scenario):
                yield f"hardware.{model} does nothing: hardware.pricing names no {model}"
    if not any(job.offload for job in scenario.training):
        for index, owned in enumerate(hardware.owned):
            if owned.host_memory_bytes is not None:
                yield f"hardware.owned[{index}].host_memory does nothing: no job has offload"
    sites = [site_at(offer, catalog) for offer in usable_offers(scenario, catalog)] if hardware.quotas else []
    for index, quota in enumerate(hardware.quotas):
        if not any(quota_matches(site, quota) for site in sites):
            yield f"hardware.quotas[{index}] does nothing: it counts none of what may be rented"


def _on_spot(model: str, scenario: Scenario) -> bool:
    """Whether a share on spot is told of already."""
    return model == "spot" and any(fleet.max_spot_share for fleet in scenario.serving)


def _of_job(job: TrainingJob, pricing: tuple[str, ...]) -> Iterator[str]:
    given = job.model_fields_set
    if "switch_within_job" in given and job.switch_within_job and not {"spot", "on_demand"} <= set(pricing):
        yield f"{job.name}: switch_within_job does nothing while hardware.pricing names not both spot and on_demand"
    if "stack" in given and job.model.parameters is not None:
        yield f"{job.name}: stack does nothing: of a bare size no activations are known"


def _of_fleet(fleet: ServingFleet) -> Iterator[str]:
    given = fleet.model_fields_set
    if fleet.slo is not None and "spread" in fleet.slo.model_fields_set and not fleet.traffic.classes:
        yield f"{fleet.name}: slo.spread does nothing: no classes of requests are told apart (trace or histogram)"
    if fleet.integer_slices and len(fleet.traffic.buckets) < 2:
        yield f"{fleet.name}: integer_slices does nothing: all requests are alike (trace or histogram tells them apart)"
    idle, why = tuple[str, ...](), ""
    if fleet.profile is not None:
        idle, why = _OF_A_MODEL, "its rates are given by profile"
    elif fleet.tier == "rule":
        idle, why = _PREDICTED, "its estimator is rule"
    elif fleet.throughput_tokens_per_s_per_device is not None:
        idle, why = ("disaggregated",), "throughput is given"
    fields = type(fleet).model_fields
    names = [fields[name].alias or name for name in idle if name in given and getattr(fleet, name) not in ("false", 0)]
    if names:
        yield f"{fleet.name}: {', '.join(names)} {'do' if len(names) > 1 else 'does'} nothing: {why}"
