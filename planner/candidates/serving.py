"""Every legal replica of one fleet on every allowed offer, with the load that it carries.

A replica is one model copy on tp·pp·dp devices. Several replicas share a shape when they fit into
it; a replica may span whole shapes when the network between them is known. A unit, the smallest
thing that can be added, is one full shape of replicas, or the shapes of one replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.brief import brief
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, serving_refusal
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.offers import ShapeCaps, Site, group_by_physics
from planner.candidates.program import WHOLE, Units
from planner.candidates.serving_layouts import replica_layouts
from planner.candidates.serving_question import ServingQuestion, resolve_serving
from planner.candidates.serving_rates import Evaluated, evaluate
from planner.estimate.resolve_serving import level_demands

__all__ = ["ServingQuestion", "ServingTable", "replica_layouts", "resolve_serving", "serving_table"]

MICRO = 1_000_000
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServingTable:
    """The columns of one fleet: row i adds units of `nodes[i]` shapes of `sites[i]`."""

    sites: tuple[Site, ...]
    evaluated: Evaluated | None
    places: Rows  # (n,) of each row in the evaluated arrays
    nodes: Rows
    replicas: Rows
    bucket_requests_per_s: NDArray[np.float64]  # (n, b) of one replica at full load, on each bucket alone
    share_kept: NDArray[np.float64]  # (n,) of the rates that may be planned: 1, or less where a mix misses a target
    bucket_capacity_micro_per_s: Rows  # (n, b) of one unit, at the target load
    requests_per_s: NDArray[np.float64]  # (n,) of one replica at full load, on the fleet's own mix
    cost_microusd: tuple[int, ...]  # of one unit over the horizon
    needed_units: Rows  # when the fleet runs on this row alone
    max_units: Rows
    unit_caps: Rows  # that offers and quotas allow
    demands_micro_per_s: tuple[int, ...]
    horizon_hours: float
    role: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (n,) as in `Program`; left out: whole
    level: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (n,) of load, from which a row runs
    level_hours: tuple[float, ...] = ()  # at each level or above; left out: the horizon
    level_demands: tuple[tuple[int, ...], ...] = ()  # of each bucket; left out: the peak all the time
    alone_microusd: tuple[int, ...] = ()  # of a fleet on one row alone; left out: its units at their cost

    def __post_init__(self) -> None:
        """Fill what was left out."""
        for name in ("role", "level"):
            if len(getattr(self, name)) != len(self.sites):
                object.__setattr__(self, name, np.zeros(len(self.sites), dtype=np.int64))

    def hours(self, row: int) -> float:
        """How long the units of a row run.  [h]"""
        return self.level_hours[int(self.level[row])] if self.level_hours else self.horizon_hours

    def alone_cost_microusd(self, row: int) -> int:
        """Cost of the fleet on one row alone.  [micro-USD]"""
        return (
            self.alone_microusd[row] if self.alone_microusd else self.cost_microusd[row] * int(self.needed_units[row])
        )

    def __repr__(self) -> str:
        return brief(type(self).__name__, f"{len(self):,} rows")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.sites)

    @property
    def demand_micro_per_s(self) -> int:
        """Peak rate over all buckets.  [micro-requests/s]"""
        return sum(self.demands_micro_per_s)

    @property
    def capacity_micro_per_s(self) -> Rows:
        """Rate of one unit at the target load: of its only bucket, or of the mix.  [micro-requests/s]"""
        if len(self.demands_micro_per_s) == 1:
            return self.bucket_capacity_micro_per_s[:, 0]
        return _mixed(self.bucket_capacity_micro_per_s, self.demands_micro_per_s).astype(np.int64)

    def units(self) -> Units:
        """What one unit of each row brings and takes."""
        return Units(
            cost_microusd=self.cost_microusd,
            finish_s=np.zeros(len(self)),
            nodes=self.nodes,
            replicas=self.replicas,
            capacity_micro_per_s=self.bucket_capacity_micro_per_s,
            max_units=self.max_units,
        )

    def tightened(self, question: ServingQuestion, kept: Mapping[tuple[int, int], float]) -> ServingTable:
        """The same rows where replicas at some places, in some roles, may carry only a share of their rates."""
        shares = np.array([kept.get((int(place), int(role)), 1.0) for place, role in zip(self.places, self.role)])
        planned = _planned(question, self.bucket_requests_per_s, shares)
        needed, most = _units_needed(question, planned, self.replicas, self.role, self.demands_micro_per_s)
        tight = replace(
            self,
            share_kept=shares,
            bucket_capacity_micro_per_s=planned * self.replicas[:, None],
            needed_units=np.where(self.level == 0, needed, NEVER),
            max_units=np.maximum(np.minimum(most, self.unit_caps), 1),
        )
        return replace(tight, alone_microusd=_alone(question, tight, planned))

    def layout_row(self, row: int) -> dict[str, int]:
        """The parallel split of one row."""
        assert self.evaluated is not None
        place = self.places[row]
        return {name: int(_at(getattr(self.evaluated.layout, name), place)) for name in ("tp", "pp", "dp", "ep", "cp")}

    def devices_per_replica(self, row: int) -> int:
        """Devices of one replica of a row."""
        assert self.evaluated is not None
        return int(_at(self.evaluated.layout.devices, self.places[row]))

    def memory_row(self, row: int) -> tuple[dict[str, float], float]:
        """Memory terms of one device, all buckets mixed, and what is usable; an unknown cache counts as none.  [B]"""
        assert self.evaluated is not None
        place, memory = int(self.places[row]), self.evaluated.memory
        terms = {name: value if np.isfinite(value) else 0.0 for name, value in memory.terms.row(place).items()}
        return terms, float(_at(memory.usable_bytes, place))

    def batch_row(self, row: int) -> float | None:
        """Sequences that a replica of a row may run at once; None where that is not known."""
        assert self.evaluated is not None
        batch = float(_at(self.evaluated.memory.batch, self.places[row]))
        return batch if np.isfinite(batch) else None


def _at(values: Any, index: Any) -> Any:
    array = np.asarray(values)
    return array[index] if array.ndim else array[()]


def serving_table(question: ServingQuestion, sites: Sequence[Site], ledger: Ledger) -> ServingTable:
    """The columns of one fleet."""
    groups = group_by_physics(_able_sites(question, sites, ledger))
    found = evaluate(question, groups, ledger)
    caps = ShapeCaps(question.scenario)
    rows: list[tuple[Site, int, int]] = []
    for role, mine in enumerate(found.rows if found else ()):
        assert found is not None
        of_group = [mine[found.group_of[mine] == number] for number in range(len(groups))]
        rows += [
            (site, int(place), role)
            for number, group in enumerate(groups)
            for site in group
            for place in of_group[number]
            if _within_cap(question, caps, site, int(found.nodes[place]), ledger)
        ]
    return _priced(question, found, rows, ledger)


def _able_sites(question: ServingQuestion, sites: Sequence[Site], ledger: Ledger) -> Iterator[Site]:
    for site in sites:
        reason = serving_refusal(site, question.fleet, question.scenario, question.catalog)
        if reason:
            ledger.drop(reason, "offers", nearest=refusal_note(site, reason, "serving"))
        else:
            yield site


def _within_cap(question: ServingQuestion, caps: ShapeCaps, site: Site, nodes: int, ledger: Ledger) -> bool:
    cap = caps.of(site)
    if nodes > cap:
        text = f"{nodes} shapes of {site.offer.id} for one replica, {cap} allowed"
        ledger.drop("quota", "columns", nearest=text, miss=float(nodes - cap))
        return False
    hours = question.scenario.horizon_s / 3600.0
    if nodes * site.offer.price_microusd_per_hour * hours > DEAREST_MICROUSD:
        ledger.drop("too-dear", "columns", nearest=f"{site.offer.id}: more than $10,000,000,000")
        return False
    return True


def _priced(
    question: ServingQuestion, found: Evaluated | None, rows: Sequence[tuple[Site, int, int]], ledger: Ledger
) -> ServingTable:
    fleet, demands = question.fleet, question.demands_micro_per_s
    places = np.array([place for _, place, _ in rows], dtype=np.int64)
    role = np.array([role for _, _, role in rows], dtype=np.int64)
    each = np.zeros((0, len(demands))) if found is None or not rows else found.requests_per_s[role, places]
    planned = _planned(question, each, np.ones(len(each)))
    usable = np.flatnonzero((planned > 0).any(axis=1))
    ledger.drop("too-slow", "columns", len(rows) - len(usable), nearest="less than a request in eleven days")
    rows, places, role = [rows[int(i)] for i in usable], places[usable], role[usable]
    each, planned = each[usable], planned[usable]
    nodes = np.zeros(0, dtype=np.int64) if found is None else found.nodes[places]
    replicas = np.zeros(0, dtype=np.int64) if found is None else found.replicas[places]
    limits = ShapeCaps(question.scenario, one_job=False)
    caps = np.array([limits.of(site) for site, _, _ in rows], dtype=np.int64)
    caps = np.maximum(caps // np.maximum(nodes, 1), 1)
    hours = question.scenario.horizon_s / 3600.0
    needed, most = _units_needed(question, planned, replicas, role, demands)
    levels = question.levels
    level_hours = (hours,) if levels is None else tuple(float(one) for one in levels.hours_at_least)
    base, level = np.repeat(np.arange(len(rows)), len(level_hours)), np.tile(np.arange(len(level_hours)), len(rows))
    table = ServingTable(
        sites=tuple(rows[row][0] for row in base),
        evaluated=found,
        places=places[base],
        role=role[base],
        level=level,
        level_hours=level_hours,
        level_demands=level_demands(fleet, levels),
        nodes=nodes[base],
        replicas=replicas[base],
        bucket_requests_per_s=each[base],
        share_kept=np.ones(len(base)),
        bucket_capacity_micro_per_s=(planned * replicas[:, None])[base],
        requests_per_s=(each[:, 0] if len(demands) == 1 else _mixed(each, demands))[base],
        cost_microusd=tuple(
            cost_microusd(int(nodes[row]), rows[row][0].offer.price_microusd_per_hour, level_hours[step])
            for row, step in zip(base, level)
        ),
        needed_units=np.where(level == 0, needed[base], NEVER),
        max_units=np.minimum(most, caps)[base],
        unit_caps=caps[base],
        demands_micro_per_s=demands,
        horizon_hours=hours,
    )
    return replace(table, alone_microusd=_alone(question, table, planned[base]))


def _alone(question: ServingQuestion, table: ServingTable, planned: Rows) -> tuple[int, ...]:
    """Cost of a fleet on each row alone, with what more is started at each level of load.  [micro-USD]"""
    if not table.level_demands:
        return ()
    steps = [
        _units_needed(question, planned, table.replicas, table.role, demands)[0] for demands in table.level_demands
    ]
    more = np.diff(np.stack(steps), axis=0, prepend=0)
    prices = [
        [cost_microusd(int(count), site.offer.price_microusd_per_hour, hours) for hours in table.level_hours]
        for count, site in zip(table.nodes, table.sites)
    ]
    return tuple(sum(int(units) * price for units, price in zip(more[:, i], prices[i])) for i in range(len(table)))


def _planned(question: ServingQuestion, rates: NDArray[np.float64], kept: NDArray[np.float64]) -> Rows:
    """What may be planned of one replica, of each bucket.  [micro-requests/s]"""
    planned: Rows = np.floor(rates * kept[:, None] * question.fleet.target_load * MICRO + 1e-6).astype(np.int64)
    return planned


def _mixed(rates: NDArray[Any], demands: Sequence[int]) -> NDArray[np.float64]:
    """Rate on a fleet's own mix of the buckets that can be served: their loads add up."""
    each = np.asarray(rates, dtype=np.float64)
    shares = np.where(each > 0, np.asarray(demands, dtype=np.float64), 0.0)
    load = np.where(each > 0, shares / np.where(each > 0, each, 1.0), 0.0).sum(axis=1)
    return np.asarray(np.where(load > 0, shares.sum(axis=1) / np.where(load > 0, load, 1.0), 0.0))


NEVER = 2**31  # units of a row that cannot carry a fleet alone


def _units_needed(
    question: ServingQuestion, planned: Rows, replicas: Rows, role: Rows, demands: Sequence[int]
) -> tuple[Rows, Rows]:
    """Units of each row that carry a demand alone, and the most that can help."""
    fleet = question.fleet
    spares, least = fleet.spare_replicas, fleet.min_replicas
    if len(demands) == 1:
        one, whole = planned[:, 0], demands[0]
        largest = int(one.max()) if len(one) else 0
        needed = np.where(role == WHOLE, _units_for(whole + spares * one, one, replicas, least), NEVER)
        return needed, _units_for(whole + spares * largest + 0 * one, one, replicas, least)
    with np.errstate(divide="ignore"):
        loads = np.asarray(demands) / planned
    each = np.maximum(replicas, 1)
    by_count = -(-least // each)

    def units(load: NDArray[np.float64]) -> Rows:
        by_load = np.ceil((load / each + spares / each) * (1 + 1e-12)).astype(np.int64)
        return np.asarray(np.maximum(np.maximum(by_load, by_count), 1))

    served = np.isfinite(loads)
    most = units(np.where(served, loads, 0.0).sum(axis=1))
    return np.where(served.all(axis=1) & (role == WHOLE), most, NEVER), most


def _units_for(load: Rows, planned: Rows, replicas: Rows, min_replicas: int) -> Rows:
    """Units of a row that carry a load alone, and hold the fewest replicas asked for."""
    unit = np.maximum(planned * replicas, 1)
    by_load, by_count = -(-load // unit), -(-min_replicas // np.maximum(replicas, 1))
    needed: Rows = np.maximum(np.maximum(by_load, by_count), 1)
    return needed
