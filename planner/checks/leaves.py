"""Every leaf of a plan, in exactly one class: what the verifier does with it, and of what type it is.

*Recomputed*: worked out again by code of `planner.checks` alone, from the scenario, the catalog and the choices
of the plan. *Held*: compared with the scenario, its file, the catalog or the certificate, or a choice (an offer, a
count, a split) that these must allow and from which everything else is recomputed; counts of the ways that were looked
at are held against all of them, listed again. *Solved*: what a search for other answers gave, held against solving the
scenario again (`plan verify --solve`), otherwise against the figures beside it at most. *Told*: not checked, and
nothing but words and where they are from. A leaf that no line names is a finding, and so is one of another type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

from planner.checks.findings import Finding
from planner.plan.model.rows import Energy

RECOMPUTED, HELD, SOLVED, TOLD = "recomputed", "held", "solved", "told"
TYPES: Mapping[str, tuple[type, ...]] = {"int": (int,), "float": (float,), "str": (str,), "bool": (bool,)}
ANY = "**"  # whatever lies below, of any type
EACH = "*"  # any key, or any element


class Leaf(NamedTuple):
    """What the table says of a leaf."""

    kind: str
    types: tuple[type, ...]  # () for any


def _flat(cells: type) -> str:
    """Numbers and texts of a part of a row, each with its type, as the table has them."""
    kinds = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(cells).items()}
    names = {name: next(kind.__name__ for kind in some if kind is not type(None)) for name, some in kinds.items()}
    return " ".join(f"{name}:{names[name]}{'?' * (type(None) in some)}" for name, some in kinds.items())


_QUANTILES = "p10:float p50:float p90:float"
_SPREAD = f"{_QUANTILES} at_confidence:float"
_BAND = f"{_QUANTILES} rows:int sources:int median_error:float mean_error:float p90_error:float margin:float"
_TRAINING_SIZES = "dp:int tp:int pp:int vpp:int cp:int ep:int micro_batch:int sharding:str recompute:str"
_TRAINING_SIZES += " global_batch_sequences:int micro_batches:int"
_ROW = "workloads.*.allocations.*"
_OTHER_ROW = "others.decisions.plans.*.workloads.*.allocations.*"
_CHEAPEST_ROW = "plain.workloads.*.allocations.*"
_SWITCH_AS_IT_IS = "part:int parts:int switch_hours:float"
_SWITCH = "name:str share:float share_at_confidence:float checkpoint_s:float restart_s:float"
_LATENCY = "mean:float? p50:float? p90:float? p95:float? p99:float?"
_ENERGY = _flat(Energy)
_MONEY = "cost_microusd:int cost_usd:float"
_PLACE = "provider:str region:str zone:str shape:str"
_PRICE = "price_microusd_per_hour:int price_as_of:str price_status:str price_source:str"

# path of what holds the leaves, class, names and types; null is a type of its own, written `?`
TABLE: tuple[tuple[str, str, str], ...] = (
    ("", HELD, "schema:str status:str name:str title:str sha256:str"),
    ("", TOLD, "scenario_file:str case:str? settings.*:str"),
    ("", TOLD, "assumed.*:str warnings.*:str notes.*:str"),
    ("", HELD, "scenario.**"),
    ("", HELD, "certificate.**"),
    ("summary", HELD, "cost_microusd:int? bound_microusd:int? gap:float? objective.*:str"),
    ("summary", RECOMPUTED, "cost_usd:float? bound_usd:float? training_usd:float? serving_usd:float?"),
    ("summary", RECOMPUTED, "unused_usd:float"),
    ("summary", RECOMPUTED, "horizon_hours:float devices:int? device_hours:float?"),
    ("summary.cost_band", RECOMPUTED, _SPREAD),
    ("summary.margins", SOLVED, "median_cost_microusd:int"),
    ("summary.margins", RECOMPUTED, "confidence:float median_cost_usd:float margins_microusd:int margins_usd:float"),
    ("workloads.*", HELD, "name:str kind:str model:str parameters:int active_parameters:int count:int"),
    ("workloads.*", RECOMPUTED, f"{_MONEY} estimator:str equations.*:str"),
    ("workloads.*", TOLD, "because.*:str"),
    ("workloads.*.demand", HELD, "tokens:float epochs:float progress_tokens:float sequence_length:int"),
    ("workloads.*.demand", HELD, "deadline_hours:float start_hours:float"),
    ("workloads.*.demand", HELD, "requests_per_minute:float? peak_requests_per_s:float? input_tokens:float?"),
    ("workloads.*.demand", HELD, "output_tokens:float? target_load:float spare_replicas:int targets_s.*:float"),
    ("workloads.*.demand", HELD, "arrival_variability:float users:float think_time_s:float"),
    (_ROW, HELD, f"offer:str {_PLACE} country:str device:str price_model:str {_PRICE} devices_per_shape:int"),
    (_ROW, HELD, "count:int jobs:int role:str level:int class_mix:int replicas:int start_hours:float"),
    (_ROW, HELD, "routed_requests_per_s.*:float users:float"),
    (_ROW, RECOMPUTED, "replica_users:float"),
    (f"{_ROW}.layout", HELD, _TRAINING_SIZES),
    (f"{_ROW}.shared.*", HELD, "node:int replicas:int"),
    ("shared_nodes.*", HELD, f"offer:str {_PLACE} country:str device:str price_model:str {_PRICE} count:int"),
    ("shared_nodes.*", HELD, "devices_per_shape:int"),
    ("shared_nodes.*", RECOMPUTED, f"devices:int used_devices:int hours:float {_MONEY}"),
    ("shared_nodes.*.users.*", RECOMPUTED, f"workload:str devices:int replicas:int lost_with_a_node:int {_MONEY}"),
    (f"{_ROW}.runs.*", HELD, "start_hours:float end_hours:float jobs:int"),
    (_ROW, RECOMPUTED, f"devices:int {_MONEY} hours:float held_hours:float billed_hours:float end_hours:float"),
    (_ROW, RECOMPUTED, "finish_hours:float"),
    (_ROW, RECOMPUTED, "deadline_hours:float funding:str reserved_pool:str? device_hours:float"),
    (_ROW, RECOMPUTED, f"{_ENERGY} time_terms_s.*:float binds:str binds.*:float"),
    (_ROW, RECOMPUTED, "software.*:str"),
    (_ROW, RECOMPUTED, "step_time_ratio:float? mfu:float mfu_source:str peak_flop_per_s:float rule_hours:float"),
    (_ROW, RECOMPUTED, "devices_per_replica:int replicas_needed:int bucket_requests_per_s.*:float"),
    (_ROW, RECOMPUTED, "replica_requests_per_s:float planned_requests_per_s:float load_at_peak:float"),
    (_ROW, RECOMPUTED, "output_tokens_per_s_per_replica:float? mean_output_tokens:float? batch:float?"),
    (_ROW, RECOMPUTED, "tpot_s:float? prefill_s:float? decode_terms_s.*:float"),
    (_ROW, RECOMPUTED, "usd_per_million_output_tokens_mean:float? usd_per_million_output_tokens_full:float?"),
    (f"{_ROW}.memory", RECOMPUTED, "needed_bytes:float usable_bytes:float free_bytes:float terms_bytes.*:float"),
    (f"{_ROW}.run", RECOMPUTED, "modelled:bool goodput:float checkpoint_bytes:float checkpoint_s:float"),
    (f"{_ROW}.run", RECOMPUTED, "checkpoint_every_s:float mtbf_hours:float? expected_failures:float"),
    (f"{_ROW}.run", RECOMPUTED, "storage_bytes:float storage_usd:float?"),
    (f"{_ROW}.work", RECOMPUTED, "flop_per_token:float tokens:float flop_count:float flop_per_s_per_device:float"),
    (f"{_ROW}.mix", RECOMPUTED, "name:str groups:int share:float sequences:int batch_sequences:int"),
    (f"{_ROW}.switch", HELD, _SWITCH_AS_IT_IS),
    (f"{_ROW}.switch", RECOMPUTED, _SWITCH),
    (f"{_ROW}.mix", RECOMPUTED, "group_step_s:float compute_s:float synchronisation_s:float traffic_microusd:int"),
    (f"{_ROW}.error_band", RECOMPUTED, "confidence:float tier:str family:str constants:str inherited_from:str tag:str"),
    (f"{_ROW}.error_band.time", RECOMPUTED, _BAND),
    (f"{_ROW}.error_band.memory", RECOMPUTED, _BAND),
    (f"{_ROW}.error_band.hours", RECOMPUTED, _SPREAD),
    (f"{_ROW}.error_band.cost_usd", RECOMPUTED, _SPREAD),
    (f"{_ROW}.error_band.needed_bytes", RECOMPUTED, _SPREAD),
    (f"{_ROW}.tier", RECOMPUTED, "tier:str engine:str family:str constants:str tag:str inherited_from:str"),
    (f"{_ROW}.tier", RECOMPUTED, "confidence:float"),
    (f"{_ROW}.tier.tpot", RECOMPUTED, _BAND),
    (f"{_ROW}.tier.ttft", RECOMPUTED, _BAND),
    (f"{_ROW}.tier.throughput", RECOMPUTED, _BAND),
    (f"{_ROW}.point", RECOMPUTED, "requests_per_s:float input_tokens:float output_tokens:float batch_limit:float"),
    (f"{_ROW}.point", RECOMPUTED, "output_tokens_per_s:float batch_limit_by:str capacity_requests_per_s:float"),
    (f"{_ROW}.point", RECOMPUTED, "sized_by:str sequences:float prefill_share:float slot_wait_s:float?"),
    (f"{_ROW}.point", RECOMPUTED, "prefill_s:float decode_step_s:float decode_terms_s.*:float binds:str"),
    (f"{_ROW}.point", RECOMPUTED, "itl_p99_s:float? users:float"),
    (f"{_ROW}.point.ttft_s", RECOMPUTED, _LATENCY),
    (f"{_ROW}.point.tpot_s", RECOMPUTED, _LATENCY),
    (f"{_ROW}.point.e2e_s", RECOMPUTED, _LATENCY),
    (f"{_ROW}.point.targets.*", RECOMPUTED, "name:str target_s:float predicted_s:float? at_confidence_s:float?"),
    (f"{_ROW}.point.targets.*", RECOMPUTED, "margin:float?"),
    (f"{_ROW}.point.classes.*", RECOMPUTED, "name:str"),
    (f"{_ROW}.point.classes.*.targets.*", RECOMPUTED, "name:str at_confidence_s:float? most_s:float"),
    ("workloads.*.alternatives.*", HELD, "device:str offer:str count:int"),
    ("workloads.*.alternatives.*.layout", HELD, _TRAINING_SIZES),
    ("workloads.*.alternatives.*", RECOMPUTED, f"devices:int {_MONEY} hours:float note:str tie:bool replicas:int"),
    ("workloads.*.cross_check.*", RECOMPUTED, "rule:str equation:str value:float unit:str"),
    ("workloads.*.cross_check.*", TOLD, "text:str"),
    ("workloads.*.fleet", RECOMPUTED, "spare_replicas:int usd_per_million_output_tokens_mean:float?"),
    ("workloads.*.fleet", RECOMPUTED, "usd_per_million_output_tokens_full:float?"),
    ("workloads.*.fleet.buckets.*", HELD, "name:str input_tokens:float? output_tokens:float? share:float"),
    ("workloads.*.fleet.buckets.*", RECOMPUTED, "peak_requests_per_s:float?"),
    ("workloads.*.fleet.users", RECOMPUTED, "users:float think_time_s:float response_s:float requests_per_s:float"),
    ("workloads.*.fleet.levels.*", RECOMPUTED, "users:float requests_per_s:float? hours:float hours_at_least:float"),
    ("workloads.*.fleet", HELD, "mixes.*.*:float"),
    ("workloads.*.fleet.availability", RECOMPUTED, "asked:float? replica:float repair_s:float"),
    ("workloads.*.fleet.availability", RECOMPUTED, "time_within_spares:float"),
    ("workloads.*.fleet.availability.spot", RECOMPUTED, "replicas:int interruptions_per_s:float away_s:float"),
    ("workloads.*.fleet.api", RECOMPUTED, "price:str usd_per_request:float? cost_usd:float?"),
    ("workloads.*.fleet.api", RECOMPUTED, "usd_per_million_output_tokens:float? break_even_requests_per_s:float?"),
    ("workloads.*.error_band", RECOMPUTED, "confidence:float tiers.*:str families.*:str"),
    ("workloads.*.error_band.hours", RECOMPUTED, _SPREAD),
    ("workloads.*.error_band.cost_usd", RECOMPUTED, _SPREAD),
    ("workloads.*.under_way", RECOMPUTED, "device:str shape:str count:int measured_step_s:float ratio:float"),
    ("workloads.*.under_way", RECOMPUTED, "predicted_step_s:float"),
    ("workloads.*.under_way.layout", HELD, _TRAINING_SIZES),
    ("workloads.*.term_sources.memory.*", RECOMPUTED, "equation:str"),
    ("workloads.*.term_sources.memory.*", TOLD, "source:str"),
    ("workloads.*.term_sources.time.*", RECOMPUTED, "equation:str"),
    ("workloads.*.term_sources.time.*", TOLD, "source:str"),
    ("limits.*", RECOMPUTED, "name:str label:str bound:float used:float unit:str binding:bool"),
    ("single_kind", SOLVED, "device:str cost_microusd:int"),
    ("single_kind", RECOMPUTED, "cost_usd:float dearer:float"),
    ("elsewhere.*", HELD, "seller:str"),
    ("elsewhere.*", RECOMPUTED, "here_microusd:int cost_microusd:int? cost_usd:float? dearer:float?"),
    ("elsewhere.*", RECOMPUTED, "offers.*:str missing.*:str unjoined.*:str instead.*:str"),
    ("named.*", RECOMPUTED, "place:str name:str used:bool"),
    ("named.*", TOLD, "text:str"),
    ("rejected.*", HELD, "devices:int columns:int offers_seen:int layouts_seen:int"),
    ("rejected.*.reasons.*", HELD, "reason:str what:str count:int"),
    ("rejected.*.reasons.*", TOLD, "nearest:str"),
    ("infeasible", TOLD, "workloads.*.*:str"),
    ("infeasible", SOLVED, "minimal:bool"),
    ("infeasible", RECOMPUTED, "median_cost_microusd:int? median_cost_usd:float?"),
    ("infeasible.conflict.*", HELD, "name:str"),
    ("infeasible.conflict.*", TOLD, "label:str place:str"),
    ("infeasible.ways_out.*", RECOMPUTED, "limit:str unit:str from:int to:int? setting:str cost_microusd:int?"),
    ("infeasible.ways_out.*", RECOMPUTED, "cost_usd:float?"),
    ("infeasible.ways_out.*", TOLD, "place:str from_text:str to_text:str more_text:str"),
    ("infeasible.ways_out.*", SOLVED, "proven:bool"),
    ("infeasible.combined", RECOMPUTED, f"{_MONEY} loosening:float"),
    ("infeasible.combined", SOLVED, "proven:bool"),
    ("infeasible.combined.changes.*", RECOMPUTED, "limit:str unit:str from:int to:int? setting:str"),
    ("infeasible.combined.changes.*", TOLD, "from_text:str to_text:str more_text:str"),
    ("contracts.*", HELD, f"kind:str offer:str pool:str {_PLACE} device:str count:int first_period:int {_PRICE}"),
    ("contracts.*", HELD, "start_hours:float term_hours:float"),
    ("contracts.*", RECOMPUTED, f"devices:int end_period:int end_hours:float start_date:str? end_date:str? {_MONEY}"),
    ("contracts.*", RECOMPUTED, "fee_microusd:int prorated:bool full_microusd:int prorated_microusd:int"),
    ("contracts.*", RECOMPUTED, "used_share:float last_node_share:float? next_node_share:float?"),
    ("contracts.*", RECOMPUTED, "on_demand_microusd:int? saved_microusd:int? break_even_share:float?"),
    ("copies.*", HELD, "data:str provider:str region:str from:str size_bytes:float"),
    ("copies.*", RECOMPUTED, f"kept_hours:float egress_microusd:int storage_microusd:int {_MONEY}"),
    ("schedule", HELD, "begin:str? period_hours:float periods:int"),
    ("schedule.jobs.*", RECOMPUTED, "workload:str place:str jobs:int release_hours:float start_hours:float"),
    ("schedule.jobs.*", RECOMPUTED, "finish_hours:float deadline_hours:float? slack_hours:float?"),
    ("schedule.jobs.*", RECOMPUTED, "start_date:str? finish_date:str?"),
    ("schedule.jobs.*.runs.*", RECOMPUTED, "start_hours:float end_hours:float jobs:int"),
    ("schedule.use.*", RECOMPUTED, f"pool:str kind:str {_PLACE} used_share:float? reserved.*:int on_demand.*:int"),
    ("schedule.use.*", RECOMPUTED, "used.*:int"),
    ("schedule.shares.*", RECOMPUTED, f"pool:str workload:str node_hours:float {_MONEY}"),
    ("owned.*", RECOMPUTED, "shape:str region:str count:int hours:float sunk_microusd:int sunk_usd:float"),
    ("owned_hours.*", HELD, "place:str shape:str offer:str devices_per_shape:int bought_microusd:int?"),
    ("owned_hours.*", HELD, "residual_microusd:int? years:float? power_w:float? energy_microusd_per_kwh:int?"),
    ("owned_hours.*", HELD, "pue:float?"),
    ("owned_hours.*", RECOMPUTED, "capital_microusd_per_hour:int power_microusd_per_hour:int"),
    ("owned_hours.*", RECOMPUTED, "staff_microusd_per_hour:int price_microusd_per_hour:int"),
    ("owned_hours.*", RECOMPUTED, "price_usd_per_device_hour:float cost_microusd:int"),
    ("owned_hours.*", RECOMPUTED, "capital_microusd:int power_microusd:int staff_microusd:int"),
    ("spend", RECOMPUTED, "workloads_microusd:int topped_up_microusd:int copies_microusd:int"),
    ("spend", RECOMPUTED, "committed_microusd:int variable_microusd:int sunk_microusd:int"),
    ("ties", TOLD, "tolerance:float untold:str"),  # a larger tolerance is said wherever "optimal" is
    ("ties.rows.*", TOLD, "workload:str others:int by.*:str"),
    ("provenance", TOLD, "planner:str solver:str modelling:str seed:int threads:int gap_asked:float solver_gap:float?"),
    ("provenance", HELD, "columns:int columns_pruned:int"),
    ("provenance", RECOMPUTED, "prices_as_of:str"),
    ("provenance.catalog", HELD, "name:str as_of:str sha256:str own_prices.*:str"),
    ("provenance.catalog", TOLD, "hardware:str"),  # what it holds, sha256 says
    ("provenance.facts.*", HELD, "subject:str fact:str value:str source:str as_of:str status:str"),
    ("uncertainty", RECOMPUTED, "expected_usd:float? at_risk_usd:float?"),
    ("uncertainty", SOLVED, "bound_usd:float?"),
    ("uncertainty", RECOMPUTED, "perfect_information_usd:float? stochastic_solution_usd:float?"),
    ("uncertainty.risk", HELD, "level:float weight:float"),
    ("uncertainty.cases.*", HELD, "name:str probability:float"),
    ("uncertainty.cases.*", RECOMPUTED, "cost_microusd:int? cost_usd:float?"),
    ("uncertainty.cases.*", HELD, "known_beforehand_usd:float? contracts_of_written_usd:float?"),
    ("simulation.*", RECOMPUTED, "workload:str offer:str device:str requests:int requests_per_s:float sequences:float"),
    ("simulation.*", RECOMPUTED, "users:int"),
    ("simulation.*", HELD, "seed:int"),
    ("simulation.*.ttft_s", RECOMPUTED, "mean:float p50:float p95:float p99:float"),
    ("simulation.*.tpot_s", RECOMPUTED, "mean:float p50:float p95:float p99:float"),
    ("simulation.*.e2e_s", RECOMPUTED, "mean:float p50:float p95:float p99:float"),
    ("plain", HELD, "within:float"),
    ("plain", RECOMPUTED, "cheapest_microusd:int cheapest_usd:float above:float"),
    ("plain.workloads.*", RECOMPUTED, f"name:str kind:str {_MONEY} devices:int finish_hours:float?"),
    (_CHEAPEST_ROW, HELD, "offer:str count:int jobs:int replicas:int"),
    (_CHEAPEST_ROW, RECOMPUTED, f"{_PLACE} device:str price_model:str funding:str devices_per_shape:int devices:int"),
    (_CHEAPEST_ROW, RECOMPUTED, f"start_hours:float hours:float finish_hours:float {_MONEY}"),
    (f"{_CHEAPEST_ROW}.layout", HELD, _TRAINING_SIZES),
    (f"{_CHEAPEST_ROW}.shared.*", HELD, "node:int replicas:int"),
    (f"{_CHEAPEST_ROW}.switch", HELD, _SWITCH_AS_IT_IS),
    (f"{_CHEAPEST_ROW}.switch", RECOMPUTED, _SWITCH),
    ("others.decisions", HELD, "asked:int"),
    ("others.decisions", SOLVED, "ended:str plans.*.proven:bool"),
    ("others.decisions.plans.*", RECOMPUTED, f"{_MONEY} dearer_usd:float dearer:float devices:int"),
    ("others.decisions.plans.*.workloads.*", RECOMPUTED, f"name:str kind:str {_MONEY} devices:int finish_hours:float?"),
    (_OTHER_ROW, HELD, "offer:str count:int jobs:int replicas:int"),
    (_OTHER_ROW, RECOMPUTED, f"{_PLACE} device:str price_model:str funding:str devices_per_shape:int devices:int"),
    (_OTHER_ROW, RECOMPUTED, f"start_hours:float hours:float finish_hours:float {_MONEY}"),
    (f"{_OTHER_ROW}.layout", HELD, _TRAINING_SIZES),
    (f"{_OTHER_ROW}.shared.*", HELD, "node:int replicas:int"),
    (f"{_OTHER_ROW}.switch", HELD, _SWITCH_AS_IT_IS),
    (f"{_OTHER_ROW}.switch", RECOMPUTED, _SWITCH),
    ("others.near_optimal", HELD, "share:float cost_microusd:int devices.*.device:str"),
    ("others.near_optimal", RECOMPUTED, "most_microusd:int most_usd:float"),
    ("others.near_optimal.devices.*", SOLVED, "fewest:int? most:int? best:int"),
    ("others.previous", HELD, "changes.*.workload:str changes.*.offer:str"),
    ("others.previous", RECOMPUTED, "changed_nodes:int changes.*.before:int changes.*.after:int"),
    ("others.previous", RECOMPUTED, "cheapest_microusd:int? cheapest_usd:float? staying_usd:float?"),
    ("others.previous", TOLD, "sha256:str file:str share:float? move_usd:float?"),  # asked of a file not at hand
    ("others.previous", SOLVED, "proven:bool"),
)
NESTED = ("uncertainty.cases.*.plan",)  # plans within a plan, of the same leaves
NULL = (
    *("summary.cost_band", "summary.margins", "workloads.*.fleet", "workloads.*.error_band", "workloads.*.under_way"),
    *(f"{_ROW}.{name}" for name in ("runs", "error_band", "error_band.time", "error_band.memory", "point")),
    *(f"{_ROW}.tier.{name}" for name in ("tpot", "ttft", "throughput")),
    *("workloads.*.fleet.availability", "workloads.*.fleet.api", "single_kind", "infeasible", "infeasible.combined"),
    *("others.decisions", "others.near_optimal", "others.previous"),
    *("schedule", "spend", "certificate", "uncertainty", "uncertainty.risk", "uncertainty.cases.*.plan"),
)  # what may be null in place of all that lies below


PARTS = (
    *("schema", "status", "name", "title", "summary", "workloads", "limits", "single_kind", "rejected", "infeasible"),
    *(
        "named",
        "contracts",
        "copies",
        "schedule",
        "owned",
        "spend",
        "certificate",
        "uncertainty",
        "assumed",
        "warnings",
        "notes",
    ),
    *("provenance", "scenario", "scenario_file", "case", "sha256"),
)


class Branch(dict[str, "Branch"]):
    """The table as a tree; a branch that is a leaf says what leaf."""

    leaf: Leaf | None = None
    nullable = False


@cache
def tree() -> Branch:
    """The table by path."""
    root = Branch()
    for prefix, kind, words in TABLE:
        for word in words.split():
            path, _, named = word.partition(":")
            branch = _at(root, ".".join(filter(None, (prefix, path))))
            types = TYPES[named.removesuffix("?")] if named else ()
            types += (type(None),) if named.endswith("?") else ()
            assert branch.leaf is None, f"{prefix}.{path} is named twice"
            branch.leaf = Leaf(kind, types)
    for path in NULL:
        _at(root, path).nullable = True
    for path in NESTED:
        _at(root, path).update(root)
    return root


def _at(root: Branch, path: str) -> Branch:
    for step in path.split("."):
        root = root.setdefault(step, Branch())
    return root


def read(document: Any) -> Iterator[tuple[tuple[str | int, ...], Leaf | None, Any]]:
    """Every leaf of a document with its path and what the table says of it; None: nothing, or another type."""
    return _read(document, tree(), ())


def _read(value: Any, branch: Branch | None, path: tuple[str | int, ...]) -> Iterator[Any]:
    if branch is not None and ANY in branch:
        yield path, branch[ANY].leaf, value
    elif isinstance(value, dict | list) and branch:
        keys = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in keys:
            named = branch.get(key) if isinstance(key, str) and isinstance(value, dict) else None
            yield from _read(inner, named if named is not None else branch.get(EACH), (*path, key))
    elif value is None and branch is not None and branch.nullable:
        yield path, branch.leaf or Leaf(HELD, ()), value
    else:
        leaf = branch.leaf if branch is not None else None
        fits = leaf is not None and (not leaf.types or type(value) in leaf.types)
        yield path, leaf if fits else None, value


def leaf_findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Leaves that no plan has, those of another type, and parts that every plan has and this one lacks."""
    for part in PARTS:
        if part not in document:
            yield Finding("unknown-leaf", f"{part} is missing")
    for path, leaf, value in read(document):
        if leaf is None:
            yield Finding("unknown-leaf", f"{spelled(path)}: no plan has such a leaf: {str(value)[:80]!r}")


def counts(document: Mapping[str, Any]) -> dict[str, int]:
    """How many leaves of a plan are of each class."""
    found = Counter(leaf.kind for _, leaf, _ in read(document) if leaf is not None)
    return {kind: found[kind] for kind in (RECOMPUTED, HELD, SOLVED, TOLD) if found[kind] or kind != SOLVED}


def told_paths() -> list[str]:
    """The leaves that are told, as `docs/reliability.md` lists them."""
    return [
        f"{prefix}.{word.partition(':')[0]}".removeprefix(".").replace(".*", "[]")
        for prefix, kind, words in TABLE
        if kind == TOLD
        for word in words.split()
    ]


def spelled(path: tuple[str | int, ...]) -> str:
    """A path as people write it: "workloads[0].allocations[1].hours"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
