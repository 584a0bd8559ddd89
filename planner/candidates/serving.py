"""Every legal replica of one fleet on every allowed offer, with the load that it carries.

A replica is one model copy on tp·pp·dp devices. Several replicas share a shape when they fit into
it; a replica may span whole shapes when the network between them is known. A unit, the smallest
thing that can be added, is one full shape of replicas, or the shapes of one replica.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.brief import brief
from planner.candidates.blended import Blend, endless
from planner.candidates.ledger import Ledger
from planner.candidates.machines import SHARE, UNLAUNCHED, refusal_note, serving_refusal, unlaunched
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.nearest import nearest_miss
from planner.candidates.offers import ShapeCaps, Site, group_by_physics, names_on
from planner.candidates.program import Units
from planner.candidates.serving_layouts import replica_layouts
from planner.candidates.serving_question import ServingQuestion, resolve_serving
from planner.candidates.serving_rates import Evaluated, evaluate
from planner.candidates.serving_units import NEVER, units_with
from planner.carriers import dataclass
from planner.estimate.serving_spares import Frailty, fewest_spares, frailty, spares_for
from planner.units import counted

__all__ = ["ServingQuestion", "ServingTable", "replica_layouts", "resolve_serving", "serving_table"]

MICRO = 1_000_000
TOLD = 10.0  # ways that cost so many times as much as the cheapest are not looked for
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServingTable:
    """The columns of one fleet: row i adds units of `nodes[i]` shapes of `sites[i]`.

    Where users send what they are answered in time for (`of_users`), every rate and demand here is a number of users:
    how many a replica holds depends on it alone, what they send on all of them. In micro-requests/s read millionths.
    """

    sites: tuple[Site, ...]
    evaluated: Evaluated | None
    places: Rows  # (n,) of each row in the evaluated arrays
    nodes: Rows
    replicas: Rows
    bucket_requests_per_s: NDArray[np.float64]  # (n, b) of one replica at full load, on each bucket alone or in its mix
    full_requests_per_s: NDArray[np.float64]  # (n, b) the same whatever that does to latencies
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
    mix: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (n,) of `ServingQuestion.mixes`
    level_hours: tuple[float, ...] = ()  # at each level or above; left out: the horizon
    level_demands: tuple[tuple[int, ...], ...] = ()  # of each bucket; left out: the peak all the time
    of_users: bool = False
    alone_microusd: tuple[int, ...] = ()  # of a fleet on one row alone; left out: its units at their cost

    def __post_init__(self) -> None:
        """Fill what was left out."""
        for name in ("role", "level", "mix"):
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
        if self.blended:
            return np.asarray(self.bucket_capacity_micro_per_s.sum(axis=1))
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
        """The same rows where replicas at some places, in some roles or mixes, may carry only a part of their rates."""
        shares = np.array([kept.get((int(place), int(part)), 1.0) for place, part in zip(self.places, self.part)])
        planned = _planned(question, self.bucket_requests_per_s * shares[:, None], self.full_requests_per_s, self.mix)
        needed, most = _units_needed(question, self, planned, self.replicas, self.demands_micro_per_s)
        tight = replace(
            self,
            share_kept=shares,
            bucket_capacity_micro_per_s=planned * self.replicas[:, None],
            needed_units=np.where(_may_be_all(question, self), needed, NEVER),
            max_units=np.maximum(np.minimum(most, self.unit_caps), 1),
        )
        return replace(tight, alone_microusd=_alone(question, tight, planned))

    def exactly(self, question: ServingQuestion, rows: Sequence[int], *, known: bool = False) -> ServingTable:
        """The same ways where rates of some rows, so far bounded, are those of the best layout of their cost.

        Parameters
        ----------
        question
            The fleet.
        rows
            Their numbers.
        known
            Also all rates that were worked out for whatever question: not where more depends on them than a bound.
        """
        assert self.evaluated is not None
        blends = [blend.known() if known else blend for blend in self.evaluated.blends]
        for row in rows:
            mix = int(self.mix[row])
            blends[mix] = blends[mix].settled(int(self.places[row]))
        return self._with(question, blends)

    def surveyed(self, question: ServingQuestion, most: int, over: Callable[[], bool] = endless) -> ServingTable:
        """The same ways where the cheapest on each of some devices is known: those that are cheap by a guess.

        Parameters
        ----------
        question
            The fleet.
        most
            Devices that are looked at, those with the cheapest guess first.
        over
            Whether the time is up: rates of the other devices then stay bounded.
        """
        assert self.evaluated is not None
        whole, *others = self.evaluated.blends
        alone, able = _Alone.of(question, self.evaluated), np.flatnonzero(whole.bound > 0)
        names = np.array([group[0].device.id for group in self.evaluated.groups])[self.evaluated.group_of[able]]
        guessed = alone.at(able, whole.guess(able))
        devices, kind = np.unique(names, return_inverse=True)
        least = np.full(len(devices), np.inf)
        np.minimum.at(least, kind, guessed)
        for device in np.argsort(least, kind="stable")[:most].tolist():
            if over():
                break
            mine, below = kind == device, TOLD * float(least.min())
            whole = whole.searched(alone, able[mine], below=below, over=over, guessed=guessed[mine])
        return self._with(question, [whole, *others])

    @property
    def blended(self) -> bool:
        """Whether rows are replicas at a mix of classes of requests."""
        return self.evaluated is not None and bool(self.evaluated.blends)

    @property
    def part(self) -> Rows:
        """Role or mix of each row; one of them is 0."""
        return self.role + self.mix

    def _with(self, question: ServingQuestion, blends: Sequence[Blend]) -> ServingTable:
        """The rows with what is known of their rates by now; those that carry nothing stay."""
        assert self.evaluated is not None
        found, best = self.evaluated.blended(blends), [blend.best() for blend in blends]
        of_set = np.stack([own[blend.set_of] for own, blend in zip(best, blends)])
        places = of_set[self.mix, self.places]
        if np.array_equal(found.nodes[places], self.nodes):  # the same machines at the same cost
            return _rated(question, replace(self, evaluated=found, places=places))
        own = np.flatnonzero(self.level == 0)
        kept = [(self.sites[row], int(places[row]), int(self.mix[row])) for row in own.tolist()]
        return _priced(question, found, kept, Ledger(workload=question.fleet.name), least=0)

    @property
    def open_rows(self) -> NDArray[np.bool_]:
        """Rows whose rates are only known not to be higher."""
        if not self.blended:
            return np.zeros(len(self), dtype=bool)
        assert self.evaluated is not None
        exact = np.stack([blend.exact for blend in self.evaluated.blends])
        return np.asarray(~exact[self.mix, self.places])

    def bounded(self, row: int) -> bool:
        """Whether the rates of a row are only known not to be higher."""
        if not self.blended:
            return False
        assert self.evaluated is not None
        return not self.evaluated.blends[int(self.mix[row])].exact[self.places[row]]

    def layout_row(self, row: int) -> dict[str, int]:
        """The parallel split of one row."""
        assert self.evaluated is not None
        place = self.places[row]
        return {name: int(_at(getattr(self.evaluated.layout, name), place)) for name in ("tp", "pp", "dp", "ep", "cp")}

    def devices_per_replica(self, row: int) -> int:
        """Devices of one replica of a row."""
        assert self.evaluated is not None
        return int(_at(self.evaluated.layout.devices, self.places[row]))

    def of_machines(self, value: Callable[[Site], int]) -> Rows:
        """A whole number of the machine of each row, which sites of equal physics have in common."""
        assert self.evaluated is not None
        known = np.array([value(group[0]) for group in self.evaluated.groups], dtype=np.int64)
        return np.asarray(known[self.evaluated.group_of[self.places]])

    def frailties(self, question: ServingQuestion) -> list[Frailty]:
        """How much of the time replicas of each row are up: on spot, shapes are taken away beside devices that fail."""
        spot = question.scenario.hardware.spot
        found: dict[tuple[int, int, bool], Frailty] = {}
        kinds = [(self.devices_per_replica(i), one.shape.devices, one.spot) for i, one in enumerate(self.sites)]
        for devices, of_shape, taken in set(kinds):
            found[devices, of_shape, taken] = frailty(question.fleet, devices, spot if taken else None, of_shape)
        return [found[kind] for kind in kinds]

    def spares_of_any_plan(self, question: ServingQuestion) -> int:
        """Spares that every plan has: those asked for, and those without which no rows hold the availability."""
        fleet = question.fleet
        if fleet.availability is None or self.role.any() or not len(self):
            return fleet.spare_replicas
        each = self.bucket_capacity_micro_per_s / np.maximum(self.replicas, 1)[:, None]
        rates: dict[Frailty, NDArray[np.float64]] = {}
        for kind, own in zip(self.frailties(question), each):
            rates[kind] = np.maximum(rates.get(kind, 0.0), own)
        fewest = fewest_spares(fleet, rates, self.demands_micro_per_s, together=self.blended)
        return max(fleet.spare_replicas, fewest)

    def memory_row(self, row: int) -> tuple[dict[str, float], float]:
        """Memory terms of one device, all buckets mixed, and what is usable; an unknown cache counts as none.  [B]"""
        assert self.evaluated is not None
        place, memory = int(self.places[row]), self.evaluated.memory_on(int(self.part[row]))
        terms = {name: value if np.isfinite(value) else 0.0 for name, value in memory.terms.row(place).items()}
        return terms, float(_at(memory.usable_bytes, place))


def _at(values: Any, index: Any) -> Any:
    array = np.asarray(values)
    return array[index] if array.ndim else array[()]


def serving_table(
    question: ServingQuestion, sites: Sequence[Site], ledger: Ledger, over: Callable[[], bool] = endless
) -> ServingTable:
    """The columns of one fleet; once its time is `over`, rates of mixes stay as they are bounded.

    Parameters
    ----------
    question
        The fleet.
    sites
        Offers that it may stay on.
    ledger
        Is told of what is left out, and why.
    over
        Whether the time is up.
    """
    groups = group_by_physics(_able_sites(question, sites, ledger))
    found = evaluate(question, groups, ledger)
    if found is not None and found.blends:
        whole, *others = found.blends
        found = found.blended([whole.searched(_Alone.of(question, found), over=over), *others])
        if not _note_blends(question, found, ledger):
            found = None
    caps = ShapeCaps(question.scenario)
    rows: list[tuple[Site, int, int]] = []
    for part, mine in enumerate(found.rows if found else ()):
        assert found is not None
        of_group = [mine[found.group_of[mine] == number] for number in range(len(groups))]
        rows += [
            (site, int(place), part)
            for number, group in enumerate(groups)
            for site in group
            for place in of_group[number]
            if _within_cap(question, caps, site, int(found.nodes[place]), ledger)
        ]
    return _priced(question, found, rows, ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone:
    """Cost of a fleet whose requests are served together, on one kind of replica, at the least price of its machine."""

    demand: int  # [micro-requests/s]
    spares: int
    most: NDArray[np.float64]  # (layouts,) that may be planned of a replica  [1/s]
    unit: NDArray[np.float64]  # (layouts,) of one unit over the horizon
    replicas: Rows  # (layouts,) of one unit
    least: Rows  # (layouts,) units

    @classmethod
    def of(cls, question: ServingQuestion, found: Evaluated) -> _Alone:
        """On the replicas that were evaluated."""
        fleet, demand = question.fleet, sum(question.demands_micro_per_s)
        prices = [min(site.offer.price_microusd_per_hour for site in group) for group in found.groups]
        hours = question.scenario.horizon_s / 3600.0
        return cls(
            demand=demand,
            spares=fleet.spare_replicas,
            most=found.blends[0].full * fleet.target_load,
            unit=np.array(prices, dtype=np.float64)[found.group_of] * found.nodes * hours,
            replicas=found.replicas,
            least=np.maximum(-(-fleet.min_replicas // np.maximum(found.replicas, 1)), 1),
        )

    def at(self, rows: Rows, requests_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """On each of some layouts at a rate of each; infinite where it carries nothing."""
        planned = np.floor(np.minimum(requests_per_s, self.most[rows]) * MICRO + 1e-6)
        units = np.ceil((self.demand / np.maximum(planned, 1.0) + self.spares) / self.replicas[rows] * (1 - 1e-12))
        return np.where(planned > 0, np.maximum(units, self.least[rows]) * self.unit[rows], np.inf)

    def rate_below(self, rows: Rows, most: float) -> NDArray[np.float64]:
        """The least rate of one replica at which that is at most so much; infinite where none is.  [1/s]

        Nodes that contracts pay cost nothing here, however many: any rate will do.
        """
        unit = self.unit[rows]
        units = np.where(unit > 0, np.floor(most / np.where(unit > 0, unit, 1.0) * (1 + 1e-12)), np.inf)
        sharing = units * self.replicas[rows] - self.spares
        rate = self.demand / MICRO / np.maximum(sharing, 1)
        able = (sharing > 0) & (units >= self.least[rows]) & (rate <= self.most[rows])
        return np.where(able, rate, np.inf)


def _note_blends(question: ServingQuestion, found: Evaluated, ledger: Ledger) -> bool:
    """Layouts that another of the same cost beats on every mix, and those that keep no target even when idle.

    Returns
    -------
    Whether every class of requests is served by some layout within its targets; else the nearest miss is told.
    """
    able = np.stack([blend.able for blend in found.blends]).any(axis=0)
    idle = np.stack([np.broadcast_to(blend.batch >= 1, able.shape) for blend in found.blends]).any(axis=0)
    buckets = np.array(question.fleet.traffic.buckets)[question.mixes[0] > 0]
    miss = nearest_miss(found.blends, buckets.tolist())
    if miss is not None:
        where = f"{found.groups[int(found.group_of[miss.row])][0].device.id} {_split(found, miss.row)}"
        text = miss.told(where, question.fleet.confidence_share)
        ledger.drop("latency", "layouts", int(idle.sum()), nearest=text, miss=miss.over, on=_names_where(found, idle))
        return False
    text = "an idle replica keeps no target on any mix"
    ledger.drop("latency", "layouts", int((idle & ~able).sum()), nearest=text, on=_names_where(found, idle & ~able))
    ledger.drop("slower", "layouts", int(able.sum()) - len(np.unique(np.concatenate(found.rows))))
    return True


def _names_where(found: Evaluated, rows: Any) -> set[str]:
    """Names, as ledgers keep them, of the machines that the layouts of a mask are on."""
    return names_on(site for number in np.unique(found.group_of[rows]) for site in found.groups[int(number)])


def _split(found: Evaluated, place: int) -> str:
    """ "tp4 pp2"."""
    sizes = {name: int(_at(getattr(found.layout, name), place)) for name in ("tp", "pp", "dp", "ep", "cp")}
    return " ".join(f"{name}{size}" for name, size in sizes.items() if size > 1 or name == "tp")


def _able_sites(question: ServingQuestion, sites: Sequence[Site], ledger: Ledger) -> list[Site]:
    fleet, arch, scenario = question.fleet, question.arch, question.scenario
    reasons = [serving_refusal(site, fleet, arch, scenario, question.catalog) for site in sites]
    able = [site for site, reason in zip(sites, reasons) if not reason]
    nothing = {id(site) for site in unlaunched(able, scenario.hardware, lambda site: site.shape.kind != SHARE)}
    for site, reason in zip(sites, reasons):
        if why := reason or (UNLAUNCHED if id(site) in nothing else ""):
            note = refusal_note(site, why, "serving", fleet=fleet, arch=arch)
            ledger.drop(why, "offers", nearest=note, on=names_on([site]))
    return [site for site in able if id(site) not in nothing]


def _within_cap(question: ServingQuestion, caps: ShapeCaps, site: Site, nodes: int, ledger: Ledger) -> bool:
    cap = caps.of(site)
    if nodes > cap:
        text = f"{counted(nodes, 'shape')} of {site.said} for one replica, {cap} allowed"
        ledger.drop("quota", "columns", nearest=text, miss=float(nodes - cap), on=names_on([site]))
        return False
    hours = question.scenario.horizon_s / 3600.0
    if nodes * site.offer.price_microusd_per_hour * hours > DEAREST_MICROUSD:
        ledger.drop("too-dear", "columns", nearest=f"{site.offer.id}: more than $10,000,000,000")
        return False
    return True


def _priced(
    question: ServingQuestion,
    found: Evaluated | None,
    rows: Sequence[tuple[Site, int, int]],
    ledger: Ledger,
    *,
    least: int = 1,  # micro-requests/s that a row carries
) -> ServingTable:
    places = np.array([place for _, place, _ in rows], dtype=np.int64)
    part = np.array([part for _, _, part in rows], dtype=np.int64)
    planned = _rates_of(question, found, places, part)[2]
    usable = np.flatnonzero((planned >= least).any(axis=1))
    slow = names_on(rows[int(i)][0] for i in np.setdiff1d(np.arange(len(rows)), usable))
    text = "less than a request in eleven days"
    ledger.drop("too-slow", "columns", len(rows) - len(usable), nearest=text, on=slow)
    rows, places, part = [rows[int(i)] for i in usable], places[usable], part[usable]
    mix = part if question.blended else 0 * part
    nodes = np.zeros(0, dtype=np.int64) if found is None else found.nodes[places]
    limits = ShapeCaps(question.scenario, one_job=False)
    caps = np.array([limits.of(site) for site, _, _ in rows], dtype=np.int64)
    caps = np.maximum(caps // np.maximum(nodes, 1), 1)
    hours = question.scenario.horizon_s / 3600.0
    levels = question.levels
    level_hours = (hours,) if levels is None else tuple(float(one) for one in levels.hours_at_least)
    base, level = np.repeat(np.arange(len(rows)), len(level_hours)), np.tile(np.arange(len(level_hours)), len(rows))
    none, no_rates = np.zeros(0, dtype=np.int64), np.zeros(0)
    table = ServingTable(
        sites=tuple(rows[row][0] for row in base),
        evaluated=found,
        places=places[base],
        role=(part - mix)[base],
        mix=mix[base],
        level=level,
        level_hours=level_hours,
        level_demands=question.level_demands,
        nodes=nodes[base],
        replicas=none,
        bucket_requests_per_s=no_rates,
        full_requests_per_s=no_rates,
        share_kept=np.ones(len(base)),
        bucket_capacity_micro_per_s=none,
        requests_per_s=no_rates,
        cost_microusd=tuple(
            cost_microusd(int(nodes[row]), rows[row][0].offer.price_microusd_per_hour, level_hours[step])
            for row, step in zip(base, level)
        ),
        needed_units=none,
        max_units=none,
        unit_caps=caps[base],
        demands_micro_per_s=question.demands_micro_per_s,
        of_users=bool(question.fleet.users),
        horizon_hours=hours,
    )
    return _rated(question, table)


def _rated(question: ServingQuestion, table: ServingTable) -> ServingTable:
    """A table with what the replicas at its places carry."""
    found, demands = table.evaluated, table.demands_micro_per_s
    each, full, planned = _rates_of(question, found, table.places, table.part)
    replicas = np.zeros(0, dtype=np.int64) if found is None else found.replicas[table.places]
    needed, most = _units_needed(question, table, planned, replicas, demands)
    rated = replace(
        table,
        replicas=replicas,
        bucket_requests_per_s=each,
        full_requests_per_s=full,
        share_kept=np.ones(len(table)),
        bucket_capacity_micro_per_s=planned * replicas[:, None],
        requests_per_s=each[:, 0] if len(demands) == 1 else _mixed(each, demands),
        needed_units=np.where(_may_be_all(question, table), needed, NEVER),
        max_units=np.minimum(most, table.unit_caps),
    )
    return replace(rated, alone_microusd=_alone(question, rated, planned))


def _may_be_all(question: ServingQuestion, table: ServingTable) -> NDArray[np.bool_]:
    """Rows that a fleet may run on alone: all the time, and not at a mix in which its requests do not come."""
    return np.asarray((table.level == 0) & (table.mix < question.listed_mixes))


def _rates_of(
    question: ServingQuestion, found: Evaluated | None, places: Rows, part: Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64], Rows]:
    """Rates of replicas within their targets and with all slots taken  [1/s], and what of them may be planned.

    The last in micro-requests a second.
    """
    each = full = np.zeros((0, len(question.demands_micro_per_s)))
    if found is not None and len(places):
        each, full = found.requests_per_s[part, places], found.full_requests_per_s[part, places]
    mix = part if question.blended else 0 * part
    if question.blended:
        each = each * (question.boxes[mix] > 0)
    return each, np.broadcast_to(full, each.shape), _planned(question, each, full, mix)


def _alone(question: ServingQuestion, table: ServingTable, planned: Rows) -> tuple[int, ...]:
    """Cost of a fleet on each row alone, with what more is started at each level of load.  [micro-USD]"""
    if not table.level_demands:
        return ()
    steps = [_units_needed(question, table, planned, table.replicas, demands)[0] for demands in table.level_demands]
    more = np.diff(np.stack(steps), axis=0, prepend=0)
    prices = [
        [cost_microusd(int(count), site.offer.price_microusd_per_hour, hours) for hours in table.level_hours]
        for count, site in zip(table.nodes, table.sites)
    ]
    return tuple(sum(int(units) * price for units, price in zip(more[:, i], prices[i])) for i in range(len(table)))


def _planned(question: ServingQuestion, rates: NDArray[np.float64], full: NDArray[np.float64], mix: Rows) -> Rows:
    """What may be planned of one replica, of each bucket alone or beside the others of its mix.  [micro-requests/s]

    No more than it carries within its targets, nor than the target load of what fills its slots.
    """
    most = np.minimum(rates, full * question.fleet.target_load)
    planned: Rows = np.floor(most * MICRO + 1e-6).astype(np.int64)
    return np.floor(planned * question.boxes[mix] + 1e-6).astype(np.int64) if question.blended else planned


def _mixed(rates: NDArray[Any], demands: Sequence[int]) -> NDArray[np.float64]:
    """Rate on a fleet's own mix of the buckets that can be served: their loads add up."""
    each = np.asarray(rates, dtype=np.float64)
    shares = np.where(each > 0, np.asarray(demands, dtype=np.float64), 0.0)
    load = np.where(each > 0, shares / np.where(each > 0, each, 1.0), 0.0).sum(axis=1)
    return np.asarray(np.where(load > 0, shares.sum(axis=1) / np.where(load > 0, load, 1.0), 0.0))


MOST_DEVICES = 64  # of a replica, where the spares that an availability may ask for are bounded


def _units_needed(
    question: ServingQuestion, table: ServingTable, planned: Rows, replicas: Rows, demands: Sequence[int]
) -> tuple[Rows, Rows]:
    """Units of each row that carry a demand alone, and the most that can help, spares that are found later included."""
    fleet, role = question.fleet, table.role
    spares = fleet.spare_replicas
    needed, most = units_with(question, planned, replicas, role, demands, spares)
    if fleet.availability is None or not len(planned):
        return needed, most
    kinds = {frailty(fleet, MOST_DEVICES), *(kind for kind in table.frailties(question) if kind.there < 1)}
    while True:  # more replicas may ask for more spares, until they do not
        all_of_them = int((most * np.maximum(replicas, 1)).max())
        wanted = max(spares_for(fleet, all_of_them, kind) for kind in kinds)
        if wanted <= spares:
            return needed, most
        spares = wanted
        most = units_with(question, planned, replicas, role, demands, spares)[1]
