"""What every replica of a fleet carries of every bucket of requests, in one flat pass over machines and layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from planner.candidates.blended import Blend
from planner.candidates.ledger import Ledger
from planner.candidates.nearest import beside
from planner.candidates.offers import Site, names_on
from planner.candidates.serving_layouts import (
    needless_pipelines,
    pipelines_of_what_fits,
    replica_layouts,
    stretches,
)
from planner.candidates.serving_question import ServingQuestion
from planner.candidates.ties import plain_serving
from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.engines import CONTEXT_PARALLEL_ENGINES, ONE_MACHINE_ENGINES, as_stored, cut_block, no_split
from planner.estimate.machine import Machine
from planner.estimate.published import published_rate
from planner.estimate.resolve import peaks_of
from planner.estimate.resolve_serving import (
    Requests,
    RowLimits,
    repeated_constants,
    repeated_machines,
    repeated_peaks,
    row_limits,
    speculation_of,
)
from planner.estimate.serving import (
    ReplicaLayout,
    ServingMemory,
    ServingSpec,
    can_make,
    given_throughput_capacity,
    serving_capacity,
)
from planner.estimate.serving_constants import layout_kind
from planner.estimate.serving_fleet import (
    ROLES,
    WHOLE,
    Margins,
    Replicas,
    capacity_within_targets,
    fleet_memory,
    full_load,
    load_within_targets,
)
from planner.estimate.serving_step import Replica, ServingWork
from planner.estimate.serving_tiers import fleet_engine, no_drafts, unmoved
from planner.units import counted, format_bytes, format_duration

Rows = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Replicas of all machines side by side, with what they carry."""

    groups: tuple[list[Site], ...]
    group_of: Rows  # (n,)
    layout: ReplicaLayout  # (n,)
    machine: Machine
    nodes: Rows  # (n,) shapes of one unit
    replicas: Rows  # (n,) of one unit
    memory: ServingMemory  # (n,) with all buckets mixed
    requests_per_s: Values  # (roles, n, b) of one replica on each bucket alone, or (mixes, n, 1) on each mix
    full_requests_per_s: Values  # the same where there are no targets: its slots are taken
    rows: tuple[Rows, ...]  # of each role or mix, those worth pricing
    blends: tuple[Blend, ...] = ()  # of each mix; none where replicas take each bucket by itself

    def blended(self, blends: Sequence[Blend]) -> Evaluated:
        """The same with what is known of the rates on each mix."""
        rows = [blend.best() for blend in blends]
        kept = tuple(np.sort(best[blend.bound[best] > 0]) for best, blend in zip(rows, blends))
        rates = np.stack([blend.bound[:, None] for blend in blends])
        full = np.stack([blend.full[:, None] for blend in blends])
        return replace(self, requests_per_s=rates, full_requests_per_s=full, rows=kept, blends=tuple(blends))

    def layout_of(self, places: Rows) -> ReplicaLayout:
        """The layouts at some places."""
        return cast("ReplicaLayout", _rows_of(self.layout, places))

    def memory_on(self, part: int) -> ServingMemory:
        """Memory of every replica on one of the mixes, or on all buckets mixed in one of the roles."""
        return self.blends[part].memory if self.blends else self.memory


def evaluate(question: ServingQuestion, groups: Sequence[list[Site]], ledger: Ledger) -> Evaluated | None:
    """All replicas of all groups of machines; None where there is no machine.

    Parameters
    ----------
    question
        The fleet.
    groups
        Sites of equal physics; the first of each stands for all of them.
    ledger
        Is told of replicas that are left out, and why.
    """
    if not groups:
        return None
    shared = fleet_engine(question.fleet) in CONTEXT_PARALLEL_ENGINES
    splits = [_replicas_on(question, group, ledger, context_parallel=shared) for group in groups]
    _note_fabrics(question, groups, ledger, context_parallel=shared)
    sizes = [len(nodes) for _, nodes, _ in splits]
    names = [field.name for field in fields(ReplicaLayout)]
    layout = ReplicaLayout(
        **{
            name: np.concatenate([np.asarray(getattr(one, name), dtype=np.float64) for one, _, _ in splits])
            for name in names
        }
    )
    nodes, replicas = (np.concatenate([split[which] for split in splits]) for which in (1, 2))
    degree = 0 * nodes if question.involved is None else _degree(layout, groups, sizes)
    found = _Evaluation(
        question=question,
        groups=tuple(groups),
        group_of=np.repeat(np.arange(len(groups)), sizes),
        layout=layout,
        machine=repeated_machines([question.machine(group[0]) for group in groups], sizes),
        limits=row_limits(
            question.fleet,
            [(group[0].device, group[0].shape) for group in groups],
            sizes,
            layout.dp,
            by_engine=question.tier == "analytic",
        ),
        sizes=tuple(sizes),
        ledger=ledger,
    )
    memory = found.memory_of_mix()
    kept = found.needed(memory)
    if len(kept) < len(nodes):
        found, memory, nodes, replicas, degree = (
            found.take(kept),
            _rows_of(memory, kept),
            *(rows[kept] for rows in (nodes, replicas, degree)),
        )
    none = np.zeros((0, len(nodes), 1))
    rates, full = (none, none) if question.blended else found.rates(question.tier, memory)
    rates, full = (found.published(each, memory) for each in (rates, full)) if len(rates) else (rates, full)
    planned = [np.minimum(each, most * question.fleet.target_load) for each, most in zip(rates, full)]
    rows = [_best_of_equals(question, found.group_of, nodes, replicas, degree, each, ledger) for each in planned]
    each_kind = Evaluated(
        groups=tuple(groups),
        group_of=found.group_of,
        layout=found.layout,
        machine=found.machine,
        nodes=nodes,
        replicas=replicas,
        memory=memory,
        requests_per_s=rates,
        full_requests_per_s=full,
        rows=tuple(rows),
    )
    return each_kind.blended(list(found.blends(nodes, replicas, degree))) if question.blended else each_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    """One pass over all replicas."""

    question: ServingQuestion
    groups: tuple[list[Site], ...]
    group_of: Rows
    layout: ReplicaLayout
    machine: Machine
    limits: RowLimits
    sizes: tuple[int, ...]
    ledger: Ledger

    def memory_of_mix(self) -> ServingMemory:
        """Memory of every replica with all buckets mixed."""
        self.ledger.layouts_seen += len(self.group_of)
        return self._memory(np.arange(len(self.group_of)), self._whole)

    def needed(self, memory: ServingMemory) -> Rows:
        """Places of replicas but for pipelines of a model that already fits without one."""
        if self.question.fleet.layout is not None and "pp" in self.question.fleet.layout.sizes:
            return np.arange(len(self.group_of))
        fits = _flat(memory.missing_bytes, len(self.group_of)) <= 0
        needless = np.zeros(len(fits), dtype=bool)
        for number, group in enumerate(self.groups):
            rows = np.flatnonzero(self.group_of == number)
            needless[rows] = pipelines_of_what_fits(group[0], _rows_of(self.layout, rows), fits[rows])
            text = f"{group[0].shape.id}: it fits on fewer devices without one (layout: pp says otherwise)"
            self.ledger.drop("pipeline", "layouts", int(needless[rows].sum()), nearest=text, on=names_on(group))
        return np.flatnonzero(~needless)

    def take(self, rows: Rows) -> _Evaluation:
        """Of some replicas alone."""
        return replace(
            self,
            group_of=self.group_of[rows],
            layout=_rows_of(self.layout, rows),
            machine=_rows_of(self.machine, rows),
            limits=self.limits.take(rows),
            sizes=tuple(np.bincount(self.group_of[rows], minlength=len(self.groups)).tolist()),
        )

    @property
    def _whole(self) -> Requests:
        return self.question.requests.mixed(np.asarray(self.question.fleet.traffic.share))

    def rates(self, tier: str, memory: ServingMemory) -> tuple[Values, Values]:
        """Requests per second of every replica on every bucket, within the targets and without; 0 where none."""
        if tier == "analytic":
            return self._within_targets()
        found = self._by_rule(memory)[None]
        return found, found

    def published(self, rates: Values, memory: ServingMemory) -> Values:
        """The rates, where those of some machines are published: nothing else is known of a replica there."""
        tokens = self.question.requests.output_tokens
        fits = _flat(memory.missing_bytes, len(self.group_of)) <= 0
        for number, group in enumerate(self.groups):
            known = published_rate(self.question.fleet, self.question.arch, group[0].device)
            if known is None:
                continue
            rows = np.flatnonzero(self.group_of == number)
            whole = fits[rows] & np.asarray(as_float(self.layout.tp)[rows] == known.devices)
            each = known.output_tokens_per_s / as_float(tokens)
            rates[:, rows] = np.where(whole[:, None], each, 0.0)
        return rates

    def blends(self, nodes: Rows, replicas: Rows, degree: Rows) -> Iterator[Blend]:
        """What is known at once of the rates on each mix; 0 where it does not fit."""
        count, everyone = len(self.group_of), self._replicas()
        mixed = [self.question.requests.mixed(weights) for weights in self.question.mixes]
        memories = [self._memory(np.arange(count), requests) for requests in mixed]
        missing = np.stack([_flat(memory.missing_bytes, count) for memory in memories])
        note_memory(self, missing.min(axis=0))
        known = np.isfinite(as_float(everyone.replica.step_s(1.0, self._whole.resident_tokens[0])))
        self._note_unknown(int(((missing <= 0).any(axis=0) & ~known).sum()))
        kinds = np.unique(np.stack([self.group_of, nodes, replicas, degree], axis=1), axis=0, return_inverse=True)[1]
        for requests, memory, lacks in zip(mixed, memories, missing):
            fits = np.flatnonzero((lacks <= 0) & known)
            ask, share = self.question.ask, self.question.fleet.target_load
            yield Blend.of(ask, share, everyone, requests, memory, fits, kinds.reshape(-1))

    def _memory(self, index: Rows, requests: Requests) -> ServingMemory:
        ask, arch = self.question.ask, self.question.arch
        layout, machine = (_rows_of(part, index) for part in (self.layout, self.machine))
        return fleet_memory(arch, ask, layout, machine, self.limits.take(index), requests)

    # ---- rule and measured: a given throughput, or a roofline at the batch that memory allows

    def _by_rule(self, memory: ServingMemory) -> Values:
        """One rate for all buckets."""
        question = self.question
        count, buckets = len(self.group_of), len(question.fleet.traffic.buckets)
        given, tokens = question.fleet.throughput_tokens_per_s_per_device, question.requests.output_tokens
        fits = np.asarray(_flat(memory.missing_bytes, count) <= 0)
        note_memory(self, _flat(memory.missing_bytes, count))
        if given is not None:
            fits &= self._makes(given, memory, fits)
            rate = np.stack([as_float(given_throughput_capacity(given, self.layout, one)) for one in tokens], axis=-1)
        else:
            rate = np.stack([self._roofline(bucket, memory) for bucket in range(buckets)], axis=-1)
        known = np.isfinite(rate) & (rate > 0)
        self._note_unknown(int((fits & ~known.any(axis=1)).sum()))
        return np.where(fits[:, None] & known, rate, 0.0)

    def _makes(self, given: float, memory: ServingMemory, fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Replicas on which enough sequences fit for what was measured."""
        arch, weights, batch = self.question.arch, self.question.fleet.weights, _flat(memory.batch, len(self.group_of))
        able = can_make(given, arch, weights, self.layout, self.machine, batch)
        for number, group in enumerate(self.groups):
            few = np.flatnonzero((self.group_of == number) & fits & ~able)
            if len(few):
                most = int(batch[few].max())
                where = group[0].device.id
                text = f"{counted(most, 'sequence')} at once on {where} cannot make {given:g} tokens/s a device"
                self.ledger.drop("memory", "layouts", len(few), nearest=text, miss=np.inf, on=names_on(group))
        return able

    def _roofline(self, bucket: int, memory: ServingMemory) -> Values:
        question = self.question
        requests = question.requests.take(np.array([bucket]))
        found = serving_capacity(
            question.arch,
            _plain_spec(question, requests),
            self.layout,
            self.machine,
            peaks=self._peaks(),
            memory=memory,
        )
        return np.broadcast_to(as_float(found.requests_per_s), (len(self.group_of),))

    # ---- analytic: the largest rate within the latency targets

    def _within_targets(self) -> tuple[Values, Values]:
        count, buckets = len(self.group_of), len(self.question.fleet.traffic.buckets)
        row, bucket = np.repeat(np.arange(count), buckets), np.tile(np.arange(buckets), count)
        memory = self._memory(row, self.question.requests.take(bucket))
        missing, batch = _flat(memory.missing_bytes, len(row)), _flat(memory.batch, len(row))
        fits = missing <= 0
        note_memory(self, np.asarray(missing.reshape(count, buckets).min(axis=1)))
        everyone = self._replicas()
        context = self.question.requests.resident_tokens[bucket]
        known = np.isfinite(as_float(everyone.replica.take(row).step_s(1.0, context)))
        self._note_unknown(int((fits & ~known).reshape(count, buckets).any(axis=1).sum()))
        everything = np.flatnonzero(fits & known)
        split = self.question.fleet.disaggregated
        rates = np.zeros((1 if split == "false" else len(ROLES), len(row)))
        full, ask, targeted = np.zeros_like(rates), self.question.ask, bool(self.question.ask.targets_s)
        for role in range(len(rates)):
            asked = everything[self._moved(role, np.unique(row[everything]))[row[everything]]]
            if not len(asked) or (role == WHOLE and split == "true"):
                continue
            requests = self.question.requests.take(bucket[asked])
            some = (everyone if role == WHOLE else self._replicas(role)).take(row[asked])
            found = _flat(load_within_targets(ask, some, requests, batch[asked], role), len(asked))
            rates[role, asked] = full[role, asked] = np.where(np.isfinite(found), found, 0.0)
            if targeted:
                found = _flat(full_load(ask, some, requests, batch[asked], role), len(asked))
                full[role, asked] = np.where(np.isfinite(found), found, 0.0)
            if role == WHOLE:
                self._note_targets(asked, row, bucket, batch, rates[role])
        if split == "true" and not rates.any():
            self._note_unknown(count)
        return rates.reshape(len(rates), count, buckets), full.reshape(len(full), count, buckets)

    def _moved(self, role: int, rows: Rows) -> NDArray[np.bool_]:
        """Whether caches get to and from each place in a role; of those rows that do not it is noted why."""
        engine, arch = fleet_engine(self.question.fleet), self.question.arch
        sizes = np.stack(np.broadcast_arrays(self.layout.tp, self.layout.pp, self.layout.cp), axis=-1).astype(np.int64)
        kinds, kind_of = np.unique(sizes, axis=0, return_inverse=True)
        why = [unmoved(engine, ROLES[role], arch, tp=tp, pp=pp, cp=cp) for tp, pp, cp in kinds.tolist()]
        moved = np.array([not one for one in why], dtype=bool)[kind_of.reshape(-1)]
        lost = rows[~moved[rows]]
        if len(lost):
            self.ledger.layouts_seen += len(lost)  # a pool sees each layout once more
            on = {name for group in np.unique(self.group_of[lost]) for name in names_on(self.groups[group])}
            nearest = why[int(kind_of.reshape(-1)[lost[0]])]
            self.ledger.drop("unmoved", "layouts", len(lost), nearest=nearest, on=sorted(on))
        return moved

    def _replicas(self, role: int = WHOLE) -> Replicas:
        question, machine = self.question, self.machine
        tiers = [question.tier_on(group[0]) for group in self.groups]
        columns = np.broadcast_arrays(self.layout.devices, self.layout.pp, machine.scale_up_devices, machine.pcie)
        kinds = [layout_kind(*row, apart=role != WHOLE) for row in zip(*(column.tolist() for column in columns))]
        places = list(zip(self.group_of.tolist(), kinds))
        confidence = question.fleet.confidence_share
        each = {
            (group, kind): question.tier_on(self.groups[group][0], kind).margins(confidence)
            for group, kind in dict.fromkeys(places)
        }
        replica = Replica(
            work=ServingWork.of(question.arch, question.fleet.weights, question.fleet.kv_cache),
            layout=self.layout,
            machine=self.machine,
            peaks=self._peaks(),
            constants=repeated_constants([tier.constants for tier in tiers], self.sizes),
            speculation=speculation_of(question.fleet),
        )
        return Replicas(
            arch=question.arch,
            recall=question.recall,
            replica=replica,
            limits=self.limits,
            margins=Margins(
                engine=np.array([each[place].engine for place in places]),
                first_token=np.array([each[place].first_token for place in places]),
            ),
        )

    def _peaks(self) -> Any:
        question = self.question
        fleet = question.fleet
        each = [peaks_of(question.arch, fleet.weights, g[0].device, g[0].shape, fleet.engine) for g in self.groups]
        return repeated_peaks(each, self.sizes)

    # ---- what is dropped

    def _note_unknown(self, count: int) -> None:
        if self.question.arch.layers:
            self.ledger.drop("network-unknown", "layouts", count)
            return
        text = "a bare parameter count has no speed of its own: give throughput, or name a preset or config"
        on = names_on(site for group in self.groups for site in group)
        self.ledger.drop("shape-unknown", "layouts", count, nearest=text, on=on)

    def _note_targets(self, asked: Rows, row: Rows, bucket: Rows, batch: Values, rates: Values) -> None:
        """Replicas that keep a target on no bucket, with the nearest miss."""
        able = np.zeros(len(self.group_of), dtype=bool)
        able[row[asked[rates[asked] > 0]]] = True
        failed = asked[~able[row[asked]]]
        if not len(failed):
            return
        rows, some = row[failed], self._replicas().take(row[failed])
        requests = self.question.requests.take(bucket[failed])
        load = capacity_within_targets(self.question.ask, some, requests, batch[failed])
        miss, name, value = _nearest_miss(self.question.ask.targets_s, load, _flat(some.margins.first_token, len(rows)))
        nearest = int(self.group_of[rows[miss]])
        where = self.groups[nearest][0].device.id
        limit = self.question.ask.targets_s.get(name)
        text = f"an idle replica on {where} keeps no target"
        if limit is not None:
            text = f"{name} {beside(value, limit)} on an idle {where}, {format_duration(limit)} asked"
        over = value / limit - 1.0 if limit else np.inf
        self.ledger.drop(
            "latency", "layouts", len(np.unique(rows)), nearest=text, miss=over, on=names_on(self.groups[nearest])
        )
        others = names_on(site for number in np.unique(self.group_of[rows]) for site in self.groups[int(number)])
        self.ledger.note("latency", "layouts", "an idle replica there keeps no target", np.inf, others)


def _nearest_miss(targets_s: Any, load: Any, first: Values) -> tuple[int, str, float]:
    """The element that comes nearest to its targets, the one that it misses most, and what it has there.

    `first` is what the time to the first token may take beyond the engine's own margin.
    """
    if not targets_s:
        return 0, "", 0.0
    latencies = {name: _flat(load.latency_s(name), len(first)) for name in targets_s}
    latencies |= {name: value * first for name, value in latencies.items() if name.startswith("ttft")}
    over = np.stack([latencies[name] / limit for name, limit in targets_s.items()])
    worst = np.where(np.isfinite(over), over, np.inf).max(axis=0)
    best = int(np.argmin(worst))
    name = list(targets_s)[int(np.argmax(over[:, best]))]
    return best, name, float(over[:, best].max() * targets_s[name])


def note_memory(evaluation: _Evaluation, missing: Values) -> None:
    """Replicas that do not fit, group by group, with the nearest miss; `missing` is of their smallest requests."""
    for number, group in enumerate(evaluation.groups):
        over = missing[(evaluation.group_of == number) & (missing > 0)]
        if len(over):
            least = float(over.min())
            text = f"needs {format_bytes(least)} less per device on {group[0].device.id}"
            evaluation.ledger.drop("memory", "layouts", len(over), nearest=text, miss=least, on=names_on(group))


def _best_of_equals(
    question: ServingQuestion,
    group_of: Rows,
    nodes: Rows,
    replicas: Rows,
    degree: Rows,
    rates: Values,
    ledger: Ledger,
) -> Rows:
    """Rows with a rate; of equal machines, shapes and replicas only those that no other beats on every bucket.

    `degree` of plainness tells more of them apart.

    Rows of equal machines cost the same, so that the one with the higher rates stands in for the other.
    """
    able = np.flatnonzero((rates > 0).any(axis=1))
    if question.tier != "analytic":
        return able
    order = able[np.lexsort((able, -rates[able].sum(axis=1), replicas[able], nodes[able], group_of[able]))]
    alike: dict[tuple[int, ...], list[int]] = {}
    for row in order.tolist():
        kind = (int(group_of[row]), int(nodes[row]), int(replicas[row]), int(degree[row]))
        mine = alike.setdefault(kind, [])
        if not any((rates[other] >= rates[row]).all() for other in mine):
            mine.append(row)
    kept = [row for rows in alike.values() for row in rows]
    ledger.drop("slower", "layouts", len(able) - len(kept))
    return np.array(sorted(kept), dtype=np.int64)


def _replicas_on(
    question: ServingQuestion, group: Sequence[Site], ledger: Ledger, *, context_parallel: bool
) -> tuple[ReplicaLayout, Rows, Rows]:
    """Legal replicas on a machine that somebody advises, of those that are no more involved than asked for."""
    site = group[0]
    pin = question.fleet.layout
    fixed = pin.sizes if pin else {}
    engine, cut, staged = fleet_engine(question.fleet), dict[tuple[int, ...], str](), dict[tuple[int, ...], str]()
    loaded = as_stored(question.fleet.weights, question.stored)

    def able(split: Mapping[str, int]) -> bool:
        reason, _ = no_split(
            engine,
            split,
            machine_devices=site.shape.devices,
            joined_devices=site.domain,
            vendor=site.device.vendor,
            family=question.arch.family,
            kv_cache=question.fleet.kv_cache,
        )
        if not reason:
            reason = no_drafts(engine, question.fleet, question.arch.family, split["pp"])
            if reason:
                staged[tuple(split.values())] = reason
        if not reason:
            reason = cut_block(engine, question.arch, loaded, split)
            if reason:
                cut[tuple(split.values())] = reason
        return not reason

    layout, nodes, replicas = replica_layouts(
        question.arch,
        site,
        context_parallel=context_parallel,
        pinned=fixed,
        stretched=stretches(fixed),
        able=able,
    )
    for why, lost in (("blocks", cut), ("drafts", staged)):
        ledger.layouts_seen += len(lost)
        ledger.drop(why, "layouts", len(lost), nearest=next(iter(lost.values()), ""), on=names_on(group))
    needless = np.zeros(len(nodes), dtype=bool)
    if not stretches(fixed):
        needless = needless_pipelines(question.arch, site, layout, able)
        text = (
            f"{site.shape.id}: tensor parallelism over as many devices needs no more (layout: pp or tp says otherwise)"
        )
        ledger.layouts_seen += int(needless.sum())
        ledger.drop("pipeline", "layouts", int(needless.sum()), nearest=text, on=names_on(group))
    if question.involved is None:
        kept = np.flatnonzero(~needless)
    else:
        plain = plain_serving(layout, site.domain, site.made_for_replicas) <= question.involved
        kept = np.flatnonzero(plain & ~needless)
    return _rows_of(layout, kept), nodes[kept], replicas[kept]


def _note_fabrics(
    question: ServingQuestion, groups: Sequence[list[Site]], ledger: Ledger, *, context_parallel: bool
) -> None:
    """Replicas over several machines that nobody stretches one over: their network is not made for it."""
    if question.fleet.layout is not None and stretches(question.fleet.layout.sizes):
        return
    if fleet_engine(question.fleet) in ONE_MACHINE_ENGINES:
        return
    for group in groups:
        site = group[0]
        published = site.shape.inter_node_bytes_per_s_per_device
        if site.inter_node_bytes_per_s is None or site.made_for_replicas:
            continue
        within, beyond = (
            len(replica_layouts(question.arch, site, context_parallel=context_parallel, stretched=stretched)[1])
            for stretched in (False, True)
        )
        rate = 8e-9 * (published or site.inter_node_bytes_per_s)
        missing = f"{rate:.3g} Gbit/s a device, 100 asked for"
        if rate >= 100.0:
            missing = f"a part of a host, whose network it shares: {rate:.3g} Gbit/s a device is of whole hosts"
        text = f"{site.shape.id}: {missing} (layout: pp or tp says otherwise)"
        ledger.layouts_seen += beyond - within
        ledger.drop("fabric", "layouts", beyond - within, nearest=text, miss=max(100.0 - rate, 0.0), on=names_on(group))


def _degree(layout: ReplicaLayout, groups: Sequence[list[Site]], sizes: Sequence[int]) -> Rows:
    """How involved each layout is on its machine."""
    domain = np.repeat([group[0].domain for group in groups], sizes)
    return plain_serving(layout, domain, np.repeat([group[0].made_for_replicas for group in groups], sizes))


def _plain_spec(question: ServingQuestion, requests: Requests) -> Any:
    return ServingSpec(
        weights=question.fleet.weights,
        kv_cache=question.fleet.kv_cache,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
    )


def _rows_of(part: Any, index: Rows) -> Any:
    columns = {field.name: getattr(part, field.name) for field in fields(part)}
    return type(part)(**{n: v[index] if isinstance(v, np.ndarray) and v.ndim else v for n, v in columns.items()})


def _flat(values: Any, count: int) -> Values:
    return np.broadcast_to(as_float(values), (count,))
