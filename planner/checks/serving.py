"""The rows of one fleet against its demand: memory, speed, latencies, peak, spares, money.

Shares the estimates with the search, not the search: every rate and latency is worked out again from the row's own
facts, and what is sent where is held against what is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.checks.cells import energy_cells, memory_cells
from planner.checks.facts import RESERVED, OfferFacts, exact_cost
from planner.checks.findings import TOLERANCE, Finding, Memo, cell_findings
from planner.checks.fleet_load import fleet_cells, load_cells, price_cells, routing_findings, sent_load
from planner.checks.layout import serving_layout_findings
from planner.checks.replica import OneReplica, Rates, ReplicaCells, one_replica
from planner.estimate.kernels import lacks_kernels, not_run
from planner.estimate.published import unpublished
from planner.estimate.resolve_serving import bucket_demands, fleet_levels, level_demands, mixes_of
from planner.estimate.serving_fleet import ROLES, WHOLE
from planner.estimate.serving_tiers import blended, fleet_engine
from planner.scenario.schema import Scenario, ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import Availability, FleetFigures, ServingAllocation, ServingLayout

MICRO = 1_000_000
MOST_MIXES = 16  # of a fleet's own


def serving_findings(
    fleet: ServingFleet,
    scenario: Scenario,
    catalog: Catalog,
    arch: Architecture,
    rows: Sequence[tuple[ServingAllocation, OfferFacts | None]],
    stated: FleetFigures,
    memo: Memo,
) -> Iterator[Finding]:
    """Everything wrong with the rows of a fleet.

    Parameters
    ----------
    fleet
        A fleet of the scenario whose rates are predicted.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with the scenario's discounts and contracts.
    arch
        The model that is served.
    rows
        Each with its offer looked up again; None = there is no such offer, and the row is left out.
    stated
        What the plan says of the fleet as a whole.
    memo
        What was worked out of replicas before; what is worked out now is added.
    """
    spares = fleet.spare_replicas if fleet.availability is None else stated["spare_replicas"]
    mixes = [tuple(one) for one in stated.get("mixes", [])]
    wrong = list(mix_findings(fleet, arch, mixes, [row for row, _ in rows]))
    yield from wrong
    if wrong:
        return
    carried: list[
        tuple[ServingAllocation, list[int]]
    ] = []  # rows with the planned micro-requests/s of one replica by bucket
    for row, facts in rows:
        if facts is None:
            continue
        problems = list(serving_layout_findings(fleet, arch, row["layout"], facts.shape))
        problems = problems or list(_legal(fleet, arch, row, facts))
        yield from problems
        if problems:
            continue
        check = Copy(fleet, arch, catalog, facts, ROLES.index(row["role"]), row["layout"], memo)
        own = mixes[row["class_mix"]] if "class_mix" in row else ()
        rates = check.rates_per_s(tuple(rate > 0 for rate in row["bucket_requests_per_s"]), own)
        yield from _row(check, scenario, row, rates.within_targets)
        carried.append((row, planned_micro_per_s(fleet, rates)))
    levels, together = fleet_levels(fleet, scenario.horizon_s), blended(fleet, arch)
    demands, by_level = bucket_demands(fleet), level_demands(fleet, levels)
    yield from routing_findings(fleet, demands, carried, spares, by_level, together=together, mixes=mixes)
    known = [row for row, facts in rows if facts is not None]
    pools = {(row["provider"], row["region"]) for row in known if row["role"] != ROLES[WHOLE]}
    if len(pools) > 1 and not scenario.uncertainty:
        yield Finding("pools-apart", f"{fleet.name}: its pools lie in {len(pools)} places, and caches go between them")
    yield from _counts(fleet, known, spares)
    yield from _spares(fleet, stated)
    cells = fleet_cells(fleet, known, spares, scenario.horizon_s / 3600.0, scenario.hardware.spot)
    yield from cell_findings("wrong-fleet", fleet.name, stated, cells)
    if ("users" in stated) != ("users" in cells):
        yield Finding("wrong-fleet", f"{fleet.name}: users are told of a fleet with a rate, or not of one with users")


def planned_micro_per_s(fleet: ServingFleet, rates: Rates) -> list[int]:
    """What may be planned of one replica, of each bucket, rounded down.

    Within its targets, and no more than the target load of the rate that fills it.
    """
    pairs = zip(rates.within_targets, rates.full)
    return [math.floor(min(rate, full * fleet.target_load) * MICRO + 1e-6) for rate, full in pairs]


def mix_findings(
    fleet: ServingFleet, arch: Architecture, mixes: Sequence[tuple[float, ...]], rows: Sequence[ServingAllocation]
) -> Iterator[Finding]:
    """Mixes of classes that are none, and rows that serve none of them.

    Parameters
    ----------
    fleet, arch
        What is served, and how: whether its classes of requests may be served apart.
    mixes
        The plan's own: of each bucket the part of its requests that is taken, the largest 1, each (buckets,).
    rows
        Rows of the fleet, which may name a mix by its number.
    """
    share = fleet.traffic.share
    apart = len(mixes_of(fleet.traffic)) > 1 and blended(fleet, arch)
    if mixes and not apart:
        yield Finding("wrong-mix", f"{fleet.name}: its requests are served together, no mix of them is")
    if mixes and (fleet.spare_replicas or fleet.availability is not None):
        yield Finding("wrong-mix", f"{fleet.name}: once a replica is lost the others need not serve mixes of their own")
    if len(mixes) > MOST_MIXES or len(set(mixes)) < len(mixes):
        yield Finding(
            "wrong-mix", f"{fleet.name}: {len(mixes)} mixes, each once and at most {MOST_MIXES} are told apart"
        )
    for one in mixes:
        within = len(one) == len(share) and all(0 <= part <= 1 for part in one) and max(one, default=0) == 1
        if not within or any(part and not asked for part, asked in zip(one, share)):
            yield Finding(
                "wrong-mix", f"{fleet.name}: {list(one)} are no parts of its {len(share)} classes of requests"
            )
    for row in rows:
        if not 0 <= row.get("class_mix", 0) < max(len(mixes), 1) or ("class_mix" in row and not mixes):
            yield Finding("wrong-mix", f"{fleet.name}: {row['offer']} serves a mix that is not among {len(mixes)}")


_SPEEDS = ("bucket_requests_per_s", "replica_requests_per_s", "output_tokens_per_s_per_replica")


class Copy(NamedTuple):
    """A kind of replica with what was already worked out of it: plans of one scenario ask the same again and again."""

    fleet: ServingFleet
    arch: Architecture
    catalog: Catalog
    facts: OfferFacts
    role: int
    split: ServingLayout
    memo: Memo

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells one replica from another."""
        facts, sizes = self.facts, tuple(sorted(self.split.items(), key=itemgetter(0)))
        return self.fleet.name, facts.offer.id, facts.shape.id, sizes, self.role

    @property
    def one(self) -> OneReplica:
        """The replica."""
        return one_replica(self.fleet, self.arch, self.catalog, self.facts, self.split, self.role, self.memo.recall)

    def rates_per_s(self, served: tuple[bool, ...] = (), own: tuple[float, ...] = ()) -> Rates:
        """Of each bucket alone, or of those that are served together, at a mix of the plan's own.  [1/s]"""
        return self.memo.of(("rates", *self.place, served, own), lambda: self.one.rates_per_s(served, own))

    def cells(self, sent: Sequence[float]) -> ReplicaCells:
        """At its share of the load."""
        return self.memo.of(("cells", *self.place, *sent), lambda: self.one.cells(sent))

    def memory(self, sent: Sequence[float]) -> tuple[dict[str, float], float, float]:
        """Terms of one device, what is usable of it, and the most that is missing with any bucket alone.  [B]"""

        def asked() -> tuple[dict[str, float], float, float]:
            one = self.one
            mixed, alone = one.memory(one.mix(sent)), one.memory(one.requests)
            # the cache of a model of unknown shape is not counted, as the plan's warning says
            terms = {name: 0.0 if math.isnan(value) else value for name, value in mixed.terms.row(0).items()}
            return terms, float(np.max(mixed.usable_bytes)), float(np.max(alone.missing_bytes))

        return self.memo.of(("memory", *self.place, *sent), asked)


def _row(check: Copy, scenario: Scenario, row: ServingAllocation, rates: Sequence[float]) -> Iterator[Finding]:
    """Everything wrong with one row."""
    fleet, facts, here = check.fleet, check.facts, sent_load(check.fleet, row)
    horizon, levels = scenario.horizon_s / 3600.0, fleet_levels(fleet, scenario.horizon_s)
    hours = horizon if levels is None else float(levels.hours_at_least[row["level"]])
    if row["level"] and levels is None:
        yield Finding("wrong-load", f"{fleet.name}: {row['offer']} is scaled, and the fleet is not")
    sent = [part / max(row["replicas_needed"], 1) for part in here]
    users = users_cells(check, row, rates, sent) if fleet.users else None
    yield from _users(fleet, row, users)
    loads = load_cells(fleet, users.rates if users else rates, users.routed if users else here, row["replicas"])
    yield from _memory(fleet, row, check.memory(sent), rates)
    cells = check.cells(sent)
    speed: dict[str, object] = {**cells, **{name: value for name, value in loads.items() if name in _SPEEDS}}
    if row["point"] is not None and cells["point"] is not None:  # each figure by its own size
        del speed["point"]
        stated = {**row["point"], "classes": row["point"].get("classes", [])}
        yield from cell_findings("wrong-speed", fleet.name, stated, cells["point"])
    yield from cell_findings("wrong-speed", fleet.name, row, speed)
    if check.role != WHOLE and fleet.disaggregated == "false":
        yield Finding("not-allowed", f"{fleet.name}: {row['offer']} only serves {row['role']}, which is not asked for")
    yield from _missed(fleet, row)
    if "shared" not in row:
        yield from _money(fleet, row, facts, hours)
        yield from cell_findings(
            "wrong-energy", fleet.name, row, energy_cells(check.catalog, facts, row["count"], hours)
        )
    cost = None if row["funding"] == RESERVED else row["cost_microusd"]
    prices = price_cells(fleet, loads, cost, row["replicas"], hours, horizon)
    carried = {name: value for name, value in loads.items() if name not in _SPEEDS}
    load: Mapping[str, object] = {"hours": hours, "device_hours": row["devices"] * hours, **carried, **prices}
    yield from cell_findings("wrong-load", fleet.name, row, load)


class UsersCells(NamedTuple):
    """What users of a row send.  [1/s]"""

    most: float  # of one replica, users
    rates: list[float]  # what they send it, of each bucket
    routed: list[float]  # what those send that are there, to the whole row


def users_cells(check: Copy, row: ServingAllocation, most: Sequence[float], sent: Sequence[float]) -> UsersCells:
    """What users of a row send, by the law of response times.

    Parameters
    ----------
    check
        The kind of replica.
    row
        Only its number of replicas without spares counts.
    most
        Users that one replica serves within its targets, by bucket; the largest counts.
    sent
        Users of one replica by bucket.
    """
    share = [float(part) for part in check.fleet.traffic.share]
    full, each = check.one.users_send([max(most) * part for part in share]), check.one.users_send(sent)
    return UsersCells(max(most), [full] * len(share), [each * max(row["replicas_needed"], 1) * part for part in share])


def _users(fleet: ServingFleet, row: ServingAllocation, found: UsersCells | None) -> Iterator[Finding]:
    """Users stand where a fleet has some, and nowhere else."""
    if found is None:
        if {"users", "replica_users"} & row.keys() or "users" in (row["point"] or {}):
            yield Finding("wrong-load", f"{fleet.name}: {row['offer']} is sent users, and the fleet has a rate")
        return
    told: Mapping[str, object] = {"users": row.get("users"), "replica_users": row.get("replica_users"), **row}
    yield from cell_findings("wrong-speed", fleet.name, told, {"replica_users": found.most})
    yield from cell_findings("wrong-load", fleet.name, told, {"routed_requests_per_s": found.routed})


def _legal(fleet: ServingFleet, arch: Architecture, row: ServingAllocation, facts: OfferFacts) -> Iterator[Finding]:
    split, per_shape = row["layout"], facts.shape.devices
    if refused := unpublished(fleet, arch, facts.device, per_shape):
        yield Finding("unpublished", f"{fleet.name}: {refused}")
    if refused := not_run(fleet, facts.device, per_shape):
        yield Finding("not-run", f"{fleet.name}: {refused}")
    if lacks_kernels(fleet, facts.device):
        yield Finding("no-kernels", f"{fleet.name}: its engine does not serve {fleet.weights} on {facts.device.id}")
    yield from _moved(fleet, arch, row)
    devices = split["tp"] * split["pp"] * split["dp"]
    if devices != row["devices_per_replica"]:
        yield Finding("illegal-layout", f"{fleet.name}: tp·pp·dp = {devices}, not {row['devices_per_replica']}")
    shapes_each = -(-devices // per_shape)
    fitting = row["count"] * (per_shape // devices) if devices <= per_shape else row["count"] // shapes_each
    if not 1 <= row["replicas"] <= fitting:
        yield Finding("wrong-count", f"{fleet.name}: {row['replicas']} replicas do not fit {row['count']} shapes")
    if shapes_each > 1 and facts.inter_node_bytes_per_s is None:
        yield Finding("network-unknown", f"{fleet.name}: a replica on {row['offer']} may not span shapes")


def _moved(fleet: ServingFleet, arch: Architecture, row: ServingAllocation) -> Iterator[Finding]:
    """Caches reach no answers in stages, nor do states of linear attention leave them in vLLM; shares go whole."""
    kinds, engine, split = {group.attention for group in arch.layers}, fleet_engine(fleet), row["layout"]
    of_pools = {"decode": ("vllm", "sglang"), "prefill": ("vllm",) if "linear" in kinds else ()}
    if split["pp"] > 1 and engine in of_pools.get(row["role"], ()):
        yield Finding("illegal-layout", f"{fleet.name}: no cache is moved by a {row['role']} pool in stages")
    whole = split["cp"] == 1 or (split["cp"] == split["tp"] and kinds == {"mla"})
    if row["role"] in of_pools and engine == "vllm" and not whole:
        yield Finding("illegal-layout", f"{fleet.name}: no cache is moved by a pool with cp {split['cp']}")


def _memory(
    fleet: ServingFleet, row: ServingAllocation, found: tuple[dict[str, float], float, float], rates: Sequence[float]
) -> Iterator[Finding]:
    terms, usable, missing = found
    yield from cell_findings("wrong-memory", fleet.name, row["memory"], memory_cells(terms, usable), scale=usable)
    if missing > 0 and not any(rates):
        yield Finding("does-not-fit", f"{fleet.name}: {missing:.6g} B per device are missing")


def _missed(fleet: ServingFleet, row: ServingAllocation) -> Iterator[Finding]:
    """Targets that the row's own figures miss."""
    point = row["point"]
    for target in point["targets"] if point and point["requests_per_s"] > 0 else ():
        if target["at_confidence_s"] is None or target["at_confidence_s"] > target["target_s"] * (1 + TOLERANCE):
            said = "not stable" if target["at_confidence_s"] is None else f"{target['at_confidence_s']:.6g} s"
            yield Finding(
                "target-missed", f"{fleet.name}: {target['name']} is {said}, {target['target_s']:.6g} s asked"
            )


def _money(fleet: ServingFleet, row: ServingAllocation, facts: OfferFacts, hours: float) -> Iterator[Finding]:
    """One unit is rounded once; a row is whole units."""
    per_shape, devices = facts.shape.devices, row["devices_per_replica"]
    nodes = max(devices // per_shape, 1)
    unit = exact_cost(nodes, facts.offer.price_microusd_per_hour, hours)
    units, rest = divmod(row["count"], nodes)
    if rest:
        yield Finding("wrong-count", f"{fleet.name}: {row['count']} shapes in units of {nodes}")
    if row["cost_microusd"] != units * unit:
        yield Finding("wrong-cost", f"{fleet.name}: {row['cost_microusd']} stated, {units * unit} computed")


def _spares(fleet: ServingFleet, stated: FleetFigures) -> Iterator[Finding]:
    """Spares as asked for, or as many as hold the availability asked for."""
    if fleet.availability is None and stated["spare_replicas"] != fleet.spare_replicas:
        text = f"{stated['spare_replicas']} spares, {fleet.spare_replicas} asked for"
        yield Finding("wrong-fleet", f"{fleet.name}: {text}")
    if fleet.availability is None:
        return
    share = cast("Availability", stated["availability"])["time_within_spares"]
    if share < fleet.availability:
        text = f"up {share:.6%} of the time, {fleet.availability:.6%} asked for"
        yield Finding("not-available", f"{fleet.name}: {text}")


def _counts(fleet: ServingFleet, rows: Sequence[ServingAllocation], spares: int) -> Iterator[Finding]:
    """Replicas without spares, and the least number of them."""
    for row in rows:
        needed = row["replicas"] - spares if len(rows) == 1 else row["replicas"]
        yield from cell_findings("wrong-load", fleet.name, row, {"replicas_needed": needed})
    replicas = sum(row["replicas"] for row in rows)
    if replicas < fleet.min_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: {replicas} replicas, at least {fleet.min_replicas} asked for")
