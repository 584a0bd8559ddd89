"""Which tier predicts a fleet, with the constants that it uses and the error that they showed.

The rule tier is the founding formula at a given throughput, or a roofline at textbook efficiencies; the analytic tier
has constants fitted by engine and device family; the measured tier is a throughput that the user names. Only the
analytic tier carries an error band.
"""

from __future__ import annotations

from typing import Any

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device
from planner.estimate.bands import inverse, margin
from planner.estimate.engines import DEFAULT_ENGINE, engine_rules
from planner.estimate.published import published_rate
from planner.estimate.serving import Draft
from planner.estimate.serving_constants import TEXTBOOK, ServingConstants, serving_constants
from planner.estimate.serving_fleet import FleetAsk, Margins
from planner.scenario.schema import ServingFleet


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTier:
    """How a fleet is predicted on a device."""

    tier: str  # rule | analytic | measured
    engine: str  # that the constants are of
    family: str
    constants: ServingConstants
    tag: str  # measured | calibrated | inherited | unfitted, see `Calibrated`; uncalibrated: no constants are used
    inherited_from: str = ""
    tpot: Band | None = None  # measured over predicted
    ttft: Band | None = None
    throughput: Band | None = None  # of a rate

    def margins(self, confidence: float) -> Margins:
        """What times are multiplied with to hold with a confidence, each at least 1.

        A replica is sized by the time per token and by what it carries at all: the larger of both counts.
        """
        rate = None if self.throughput is None else inverse(self.throughput)
        engine, first = max(margin(self.tpot, confidence), margin(rate, confidence)), margin(self.ttft, confidence)
        return Margins(engine=engine, first_token=max(first / engine, 1.0))


def fleet_tier(fleet: ServingFleet, arch: Architecture) -> str:
    """The tier that predicts: where only a model's size is known, the rule."""
    return fleet.tier if arch.layers or fleet.tier == "measured" else "rule"


def fleet_engine(fleet: ServingFleet) -> str:
    """The engine whose limits and constants are used; the default one where it is not named, or not known."""
    rules = engine_rules(fleet.engine)
    return rules.name if rules else DEFAULT_ENGINE


# Families of models whose stages of vLLM hand on what heads of EAGLE-3 read, which others refuse to start with
# (vllm 0.33.0: supports_aux_hidden_states_over_pp of model_executor/models; read on 2026-12-01). SGLang drafts beside
# a pipeline on prefill servers alone, by a layer of the model; its variable SGLANG_ENABLE_PP_SPEC is experimental
# (sglang 0.5.23: srt/arg_groups/validation_hook.py)
_HEADS_IN_STAGES = frozenset({"llama", "llama4_text", "mistral", "phi3", "qwen2", "qwen3"})


def no_drafts(engine: str, fleet: ServingFleet, family: str, stages: int) -> str:
    """Why an engine does not draft tokens of a fleet for a model in so many stages; "" where it does, or nobody knows.

    Parameters
    ----------
    engine
        Of ENGINES.
    fleet
        How it drafts tokens, if it does.
    family
        Of the model, by its name in `config.json`.
    stages
        Of the model's pipeline.
    """
    drafts = fleet.speculative
    if drafts is None or stages == 1:
        return ""
    if engine == "sglang":
        return "sglang drafts no tokens for a model in a pipeline"
    by_head = drafts.model is None and not fleet.drafts_itself
    if engine == "vllm" and by_head and family not in _HEADS_IN_STAGES:
        return f"vllm drafts no tokens by a head for a model of {family} in a pipeline"
    return ""


def unmoved(engine: str, role: str, arch: Architecture, *, tp: int, pp: int, cp: int) -> str:
    """Why no cache gets from or to replicas of a pool that are split so; "" where it does, or nobody knows.

    As vllm 0.33.0 has it (config/vllm.py, distributed/kv_transfer/kv_connector/v1/nixl/base_worker.py), and
    sglang 0.5.23 (srt/disaggregation/common/conn.py: answers in as many stages as prompts, which are not planned
    together); read on 2026-12-01.

    Parameters
    ----------
    engine
        Of ENGINES.
    role
        prefill, decode or whole.
    arch
        The model, whose layers may keep states in place of a cache.
    tp, pp, cp
        Tensor ranks, stages, and tensor ranks that share out the tokens of a cache.
    """
    if role == "whole":
        return ""
    if pp > 1 and role == "decode" and engine in ("vllm", "sglang"):
        return f"{engine} moves no cache to a pool that answers in a pipeline"
    kinds = {group.attention for group in arch.layers}
    if pp > 1 and engine == "vllm" and "linear" in kinds:
        return "vllm moves no states of linear attention out of a pipeline"
    if cp > 1 and engine == "vllm" and not (kinds == {"mla"} and cp == tp):
        return "vllm moves a cache whose tokens ranks share out where all tensor ranks do, of models with MLA"
    return ""


def blended(fleet: ServingFleet, arch: Architecture) -> bool:
    """Whether targets are of all classes of requests together, and replicas are planned at a mix of them.

    A router that hands out whole slices of a class, and pools that share the work on a request, take each class by
    itself.
    """
    several = sum(share > 0 for share in fleet.traffic.share) > 1
    apart = fleet.integer_slices or fleet.disaggregated != "false" or fleet.rates is not None
    together = bool(fleet.targets_s or fleet.users) and not apart
    return several and together and fleet_tier(fleet, arch) == "analytic"


def tier_on(fleet: ServingFleet, arch: Architecture, device: Device, catalog: Catalog, layout: str = "") -> ServingTier:
    """The prediction of a fleet on a device, in a kind of layout (`serving_constants.layout_kind`).

    Parameters
    ----------
    fleet
        Its tier, engine and format.
    arch
        The model.
    device
        What serves.
    catalog
        Constants of serving; without any those of a textbook are taken.
    layout
        Kind of layout; "" inside one fast domain. It widens the bands.

    Raises
    ------
    InputError
        The catalog names a constant of serving that the equations do not know.
    """
    tier = fleet_tier(fleet, arch)
    if published_rate(fleet, arch, device) is not None:
        return ServingTier(
            tier="measured", engine=device.engine, family=device.family, constants=TEXTBOOK, tag="measured"
        )
    if tier != "analytic" or catalog.serving is None:  # a catalog may bring no constants of its own: textbook ones
        tag = "measured" if tier == "measured" else "uncalibrated"
        engine = fleet_engine(fleet) if tier == "analytic" else ""
        return ServingTier(tier=tier, engine=engine, family=device.family, constants=TEXTBOOK, tag=tag)
    found = serving_constants(catalog, device, fleet_engine(fleet), fleet.weights, experts=arch.is_moe)
    tpot, ttft, throughput = (
        found.band(kind, experts=arch.is_moe, layout=layout) for kind in ("tpot", "ttft", "throughput")
    )
    return ServingTier(
        tier="analytic",
        engine=found.engine,
        family=device.family,
        constants=found.constants,
        tag=tpot.tag,
        tpot=tpot,
        ttft=ttft,
        throughput=throughput,
    )


def fleet_ask(fleet: ServingFleet) -> FleetAsk:
    """What a fleet asks of every replica."""
    return FleetAsk(
        weights=fleet.weights,
        kv_cache=fleet.kv_cache,
        targets_s=fleet.targets_s,
        arrival_variability=fleet.arrival_variability,
        spread=fleet.spread,
        think_s=fleet.traffic.think_s,
        target_load=fleet.target_load if fleet.users else 1.0,
        draft=draft_of(fleet),
        sent_tokens=1 + (fleet.speculative.length if fleet.speculative else 0) if _sends(fleet) else 0,
    )


def _sends(fleet: ServingFleet) -> bool:
    """Whether its engine is told to send tokens to experts by buffers of DeepEP or MoRI, as launch files do."""
    return fleet_engine(fleet) in ("vllm", "sglang")


def draft_of(fleet: ServingFleet) -> Draft | None:
    """What drafts tokens for a fleet, if anything does."""
    if fleet.speculative is None:
        return None
    return Draft(weights=fleet.draft_format, arch=fleet.speculative.draft, experts=fleet.drafts_itself)


def fleet_demand(fleet: ServingFleet) -> dict[str, Any]:
    """What a fleet asks for, in base units."""
    return {
        **(
            {"users": fleet.traffic.users * fleet.peak_factor, "think_time_s": fleet.traffic.think_s}
            if fleet.users
            else {}
        ),
        "requests_per_minute": None if fleet.users else fleet.qpm,
        "peak_requests_per_s": None if fleet.users else fleet.traffic.peak_requests_per_s,
        "input_tokens": fleet.input_tokens,
        "output_tokens": fleet.output_tokens,
        "target_load": fleet.target_load,
        "spare_replicas": fleet.spare_replicas,
        "targets_s": fleet.targets_s,
        "arrival_variability": fleet.arrival_variability,
    }
