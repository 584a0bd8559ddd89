"""Every legal way to run one training job on every allowed offer, evaluated in vectorised passes.

Sites with equal physics are evaluated once; within one (machine, node count) only the fastest
layout can be in an optimal plan, because cost, devices, power and carbon depend on the node
count and grow with the hours (dominance D1: the exchange argument of `prune`). The simplest
layout wins a tie.

A way is kept when it holds at the confidence that the scenario asks for: needed memory and time, each
multiplied with its quantile of the error band, within what is usable and the deadline. The factor is one
number for a physics group, since its sites share a device family, so that the fastest layout is also the
fastest at any confidence and dominance stays exact. A second table holds what would be kept at the median:
the same evaluation, chosen from again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.counts import node_counts
from planner.candidates.layouts import enumerate_layouts, offered
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, training_refusal
from planner.candidates.offers import Site, group_by_physics, names_on
from planner.candidates.patience import Patience
from planner.candidates.switching import with_switches
from planner.candidates.ties import plain_training
from planner.candidates.training_choice import busy_s, fastest, least_policies, least_times, policy_runs
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Part, TrainingTable, priced
from planner.carriers import dataclass
from planner.estimate.frameworks import named_framework
from planner.estimate.layout import Layout
from planner.estimate.recall import figures_of
from planner.estimate.resolve import host_bytes_per_device
from planner.estimate.software import open_can
from planner.estimate.step_distinct import Ways
from planner.estimate.terms import Terms
from planner.estimate.training import (
    OnMachine,
    Timed,
    is_analytic,
    run_seconds,
    step_seconds,
    training_memory,
    training_times,
)
from planner.estimate.training_memory import host_bytes
from planner.units import format_bytes, format_duration

__all__ = ["TrainingTable", "percentile", "training_table", "training_tables"]

Rows = NDArray[np.int64]
AT_ONCE = 1 << 17  # layouts on machines that are timed at once
NEAR = 2e-5  # relative, of times: what is nearer to the best is told apart by its last digits (`ties.six_digits`)


def training_table(
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, *, every_layout: bool = False
) -> TrainingTable:
    """The columns of one job; `every_layout` keeps layouts that a faster one of equal size dominates."""
    return training_tables(question, sites, ledger, every_layout=every_layout)[0]


def training_tables(
    question: TrainingQuestion,
    sites: Sequence[Site],
    ledger: Ledger,
    *,
    every_layout: bool = False,
    patience: Patience | None = None,
) -> tuple[TrainingTable, TrainingTable]:
    """The columns of one job at the confidence asked for, and at the median; the ledger is of the former.

    When patience runs out, the machines that were looked at by then are all there are.
    """

    def out() -> bool:
        return patience is not None and patience.out(question.job.name)

    offloads = bool(question.job.offload)
    groups = group_by_physics(_able_sites(question, sites, ledger), host_memory=offloads)
    searches = [_Search(group=group, counts=node_counts(question, group, ledger)) for group in groups]
    able = [] if out() else [search for search in searches if search.counts]
    evaluated = _evaluate_memory(question, able)
    found = [
        _chosen(question, one, ledger, every_layout=every_layout)
        for one in _timed(question, evaluated, able, ledger, out, every_layout=every_layout)
    ]
    levels = question.confidences
    asked = with_switches(question, priced(question, [parts[0] for parts in found], ledger), levels[0])
    if all(len(parts) == 1 for parts in found) and (asked.late is None or len(levels) == 1):
        return asked, asked
    median = priced(question, [parts[-1] for parts in found], Ledger(workload=ledger.workload))
    return asked, with_switches(question, median, levels[-1])


def _able_sites(question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger) -> Iterator[Site]:
    for site in sites:
        reason = training_refusal(site, question.job, question.scenario, question.catalog)
        if reason:
            text = refusal_note(site, reason, "training", question.job)
            ledger.drop(reason, "offers", nearest=text, on=names_on([site]))
        else:
            yield site


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """One physics group and the node counts to try on it."""

    group: list[Site]
    counts: tuple[int, ...]

    @property
    def domain(self) -> int:
        """Devices that tensor parallelism may span."""
        return self.group[0].domain

    @property
    def device_counts(self) -> list[int]:
        return [count * self.group[0].shape.devices for count in self.counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """Layouts for any machine and their memory, which does not depend on the device."""

    layout: Layout
    memory: Terms
    needed: NDArray[np.float64]
    runs: Rows  # of rows that differ in recomputation alone
    ways: Ways | None
    by_count: Mapping[int, Rows]  # ascending, of each count of devices

    def rows_on(self, search: _Search, involved: int | None) -> Rows:
        """Ascending rows of the layouts for the counts and the fast domain of some machines; `involved` at most."""
        some = [self.by_count[count] for count in search.device_counts if count in self.by_count]
        rows = np.sort(np.concatenate(some), kind="stable") if some else np.zeros(0, dtype=np.int64)
        rows = np.asarray(rows[np.asarray(self.layout.tp)[rows] <= search.domain])
        if involved is None:
            return rows
        return np.asarray(rows[plain_training(self.layout.select(rows), search.domain) <= involved])


def _evaluate_memory(question: TrainingQuestion, searches: Sequence[_Search]) -> _Evaluated:
    """Layouts for all counts of devices in the largest fast domain that has them, and their memory."""
    largest: dict[int, int] = {}
    for search in searches:
        for count in search.device_counts:
            largest[count] = max(largest.get(count, 1), search.domain)
    rules = replace(question.rules, domain_devices=max(largest.values(), default=1))
    layout = offered(question.job, rules, enumerate_layouts(question.arch, sorted(largest), rules))
    devices = np.asarray(layout.devices, dtype=np.int64)
    domains = np.zeros(int(devices.max(initial=0)) + 1, dtype=np.int64)
    for count in {count for count in largest if count < len(domains)}:
        domains[count] = largest[count]
    able = np.asarray(layout.tp) <= domains[devices]
    if question.involved is not None:  # no machine finds a layout less involved than that of the smallest domain
        smallest = min((search.domain for search in searches), default=1)
        able &= plain_training(layout, smallest) <= question.involved
    kept = np.flatnonzero(able)
    layout, devices = layout.select(kept), devices[kept]
    order = np.argsort(devices, kind="stable")
    counts, starts = np.unique(devices[order], return_index=True)
    memory = training_memory(question.arch, question.spec, layout)
    return _Evaluated(
        layout=layout,
        memory=memory,
        needed=np.asarray(memory.total),
        runs=policy_runs(layout),
        ways=Ways.of(layout),
        by_count=dict(zip(counts.tolist(), np.split(order, starts[1:]))),
    )


def _launched(question: TrainingQuestion, search: _Search, layout: Layout, rows: Rows) -> Rows:
    """Rows that some program of the device's kind has; on GPUs the programs together have all that is advised."""
    job, site = question.job, search.group[0]
    if site.device.kind == "gpu" or named_framework(job.framework):
        return rows
    mine = layout.select(rows)
    return np.asarray(rows[open_can(job, question.arch, mine, site.device.kind, site.shape.devices)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """What holds at one confidence on one machine."""

    confidence: float
    time_margin: float
    memory_margin: float


def _levels(question: TrainingQuestion, site: Site) -> list[_Level]:
    """The confidence asked for, then the median; one when they are the same on this machine."""
    band = question.band(site)
    levels = [
        _Level(confidence=share, time_margin=band.time_margin(share), memory_margin=band.memory_margin(share))
        for share in question.confidences
    ]
    same = (levels[0].time_margin, levels[0].memory_margin) == (levels[-1].time_margin, levels[-1].memory_margin)
    return levels[:1] if same else levels


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting:
    """Layouts that fit the memory of one machine at each confidence."""

    search: _Search
    evaluated: _Evaluated
    levels: list[_Level]
    union: Rows  # ascending, of any of them
    places: list[Rows]  # by level, of the rows among these
    noted: list[Ledger]  # by level


def _fitting(
    question: TrainingQuestion, search: _Search, evaluated: _Evaluated, ledger: Ledger, *, every_layout: bool
) -> _Fitting:
    levels = _levels(question, search.group[0])
    mine = _launched(question, search, evaluated.layout, evaluated.rows_on(search, question.involved))
    ledger.layouts_seen += len(mine)
    mine = _in_hosts(question, search, evaluated.layout, mine, ledger)
    noted = [ledger, *(Ledger(workload=ledger.workload) for _ in levels[1:])]  # what the median drops is not told
    rows = [
        _in_memory(question, evaluated, mine, search.group, level, to, every_layout=every_layout)
        for level, to in zip(levels, noted)
    ]
    wanted = np.zeros(len(evaluated.needed), dtype=bool)
    for some in rows:
        wanted[some] = True
    union = np.flatnonzero(wanted)
    places = [np.searchsorted(union, some) for some in rows]
    return _Fitting(search=search, evaluated=evaluated, levels=levels, union=union, places=places, noted=noted)


def _timed(
    question: TrainingQuestion,
    evaluated: _Evaluated,
    searches: Sequence[_Search],
    ledger: Ledger,
    out: Callable[[], bool],
    *,
    every_layout: bool,
) -> Iterator[_Timed]:
    """Every machine with the time of every layout that fits at any confidence, some machines at once."""
    waiting: list[_Fitting] = []

    for search in searches:
        if out():
            break
        waiting.append(_fitting(question, search, evaluated, ledger, every_layout=every_layout))
        if sum(len(one.union) for one in waiting) >= AT_ONCE:
            yield from _at_once(question, evaluated, waiting, every_layout=every_layout)
            waiting = []
    yield from _at_once(question, evaluated, waiting, every_layout=every_layout)


def _at_once(
    question: TrainingQuestion, evaluated: _Evaluated, fitting: Sequence[_Fitting], *, every_layout: bool
) -> Iterator[_Timed]:
    """Times on some machines: all but for rounding, of those that may be chosen or told term by term."""
    some = [one for one in fitting if len(one.union)]
    asked = [
        OnMachine(
            spec=question.spec_on(one.search.group[0]), machine=question.machine(one.search.group[0]), rows=one.union
        )
        for one in some
    ]
    rough = {} if every_layout else _roughly(question, evaluated, some, asked)
    wanted = [
        rough[place].wanted(question, one.levels) if place in rough else np.arange(len(one.union))
        for place, one in enumerate(some)
    ]
    exact = [replace(one, rows=one.rows[places]) for one, places in zip(asked, wanted)]
    found = training_times(question.arch, evaluated.layout, evaluated.ways, exact)
    busy = {key: busy_s(terms) for key, terms in {id(one.terms): one.terms for one in found}.items()}
    timed = {}
    for place, (one, its) in enumerate(zip(some, found)):
        known = rough[place] if place in rough else _Timed.blank(one)
        timed[id(one)] = known.exactly(wanted[place], its, busy[id(its.terms)])
    for one in fitting:
        yield timed[id(one)] if id(one) in timed else _Timed.blank(one)


def _roughly(
    question: TrainingQuestion, evaluated: _Evaluated, fitting: Sequence[_Fitting], asked: Sequence[OnMachine]
) -> dict[int, _Timed]:
    """Times that are right but for rounding, of the machines where they come cheaper than term by term, by place."""
    places = [place for place, one in enumerate(asked) if is_analytic(one.spec)]
    if evaluated.ways is None or not places:
        return {}
    some = [asked[place] for place in places]
    steps = _steps(question, evaluated, [fitting[place] for place in places], some)
    runs = run_seconds(question.arch, evaluated.layout, some, steps)
    return {place: _Timed.blank(fitting[place]).over(*run) for place, run in zip(places, runs)}


def _steps(
    question: TrainingQuestion, evaluated: _Evaluated, fitting: Sequence[_Fitting], asked: Sequence[OnMachine]
) -> list[NDArray[np.float64]]:
    """Seconds of a step: recalled, or worked out for what is not known; kept by machine and count of devices."""
    assert evaluated.ways is not None
    devices = np.asarray(evaluated.layout.devices)
    parts: list[tuple[int, Rows, tuple[bytes, int]]] = []  # machine, places among its layouts, and what is asked
    for number, (one, its) in enumerate(zip(fitting, asked)):
        told = _figures_of(question, one, its)
        of_places = devices[one.union]
        order = np.argsort(of_places, kind="stable")
        counts, starts = np.unique(of_places[order], return_index=True)
        parts += [
            (number, places, (told, count)) for count, places in zip(counts.tolist(), np.split(order, starts[1:]))
        ]
    known = {key: question.recall.known(key) for _, _, key in parts}
    missing = [part for part in parts if known[part[2]] is None]
    of_machine: dict[int, list[Rows]] = {}
    for number, places, _ in missing:
        of_machine.setdefault(number, []).append(places)
    new = [replace(asked[one], rows=asked[one].rows[np.concatenate(some)]) for one, some in of_machine.items()]
    seconds = step_seconds(question.arch, evaluated.layout, evaluated.ways, new) if new else []
    ends = np.cumsum([len(places) for _, places, _ in missing])[:-1]
    for (_, _, key), value in zip(missing, np.split(np.concatenate(seconds), ends) if new else ()):
        known[key] = value.copy()
        question.recall.keep(key, known[key])
    found = [np.empty(len(one.union)) for one in fitting]
    for number, places, key in parts:
        found[number][places] = known[key]
    return found


def _figures_of(question: TrainingQuestion, fitting: _Fitting, asked: OnMachine) -> bytes:
    """Everything that the layouts on a machine and the time of their steps follow from, but the count of devices."""
    site = fitting.search.group[0]
    memory = (site.usable_bytes, host_bytes_per_device(site.shape), [level.memory_margin for level in fitting.levels])
    which = (fitting.search.domain, -1 if question.involved is None else question.involved)
    return figures_of(question.physics, asked.machine, *which, *memory, texts=True)


def _in_memory(
    question: TrainingQuestion,
    evaluated: _Evaluated,
    mine: Rows,
    group: Sequence[Site],
    level: _Level,
    ledger: Ledger,
    *,
    every_layout: bool,
) -> Rows:
    """Rows that fit the memory at a confidence, without those that another memory policy makes idle."""
    needed = evaluated.needed[mine] * level.memory_margin
    fits = needed <= group[0].usable_bytes
    _note_memory(ledger, group, needed[~fits], level)
    rows = mine[fits]
    if every_layout or "activations" in question.spec.offload:  # recomputing may beat moving
        return rows
    least = least_policies(evaluated.layout, evaluated.runs, rows)
    ledger.drop("slower", "layouts", len(rows) - len(least))
    return least


def _in_hosts(question: TrainingQuestion, search: _Search, layout: Layout, rows: Rows, ledger: Ledger) -> Rows:
    """Rows whose offloaded states and activations the hosts hold; all of them when nothing is offloaded."""
    most = host_bytes_per_device(search.group[0].shape)
    if not question.spec.offload or most is None:
        return rows
    over = np.asarray(host_bytes(question.arch, question.spec, layout.select(rows)).total) - most
    missed = over[over > 0]
    if len(missed):
        text = f"needs {format_bytes(float(missed.min()))} less per device in the hosts of {search.group[0].shape.id}"
        on, least = names_on(search.group), float(missed.min())
        ledger.drop("host-memory", "layouts", len(missed), nearest=text, miss=least, on=on)
    return rows[over <= 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Layouts that fit one machine, with their time."""

    fitting: _Fitting
    time: Terms  # of those that may be chosen, and of others
    place: Rows  # element of `time` of each of them; -1: not told term by term
    finish_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    nodes: Rows

    @classmethod
    def blank(cls, fitting: _Fitting) -> _Timed:
        """Nothing is known of any."""
        count, devices = len(fitting.union), np.asarray(fitting.evaluated.layout.devices, dtype=np.int64)
        return cls(
            fitting=fitting,
            time=Terms({}),
            place=np.full(count, -1),
            finish_s=np.full(count, np.nan),
            busy_s=np.full(count, np.nan),
            nodes=devices[fitting.union] // fitting.search.group[0].shape.devices,
        )

    def over(self, busy: NDArray[np.float64], wall: NDArray[np.float64]) -> _Timed:
        """With times that are right but for rounding."""
        return replace(self, busy_s=busy, finish_s=wall)

    def exactly(self, places: Rows, timed: Timed, busy: NDArray[np.float64]) -> _Timed:
        """With the exact times of some of them."""
        finish_s, busy_s, place = self.finish_s.copy(), self.busy_s.copy(), self.place.copy()
        elements = timed.first + np.arange(len(places))
        finish_s[places], busy_s[places], place[places] = timed.terms.total[elements], busy[elements], elements
        return replace(self, finish_s=finish_s, busy_s=busy_s, place=place, time=timed.terms)

    def wanted(self, question: TrainingQuestion, levels: Sequence[_Level]) -> Rows:
        """Those that may be chosen, or come nearest to being on time: their last digits count."""
        kept = np.zeros(len(self.finish_s), dtype=bool)
        for rows, level in zip(self.fitting.places, levels):
            late = _late_s(question, self, rows, level)
            kept[rows[np.abs(late) <= NEAR * question.latest_s]] = True
            missed = np.where((late > 0) & np.isfinite(late), late, np.inf)
            if len(rows):
                kept[rows[np.argmin(missed)]] = True
            for some in (rows, rows[late <= 0]):
                finish, kinds = self.finish_s[some], self._kinds(question, some)
                least = np.full(int(kinds.max(initial=0)) + 1, np.inf)
                np.fmin.at(least, kinds, finish)  # a time that is not known is never the least
                kept[some[finish <= least[kinds] * (1 + NEAR)]] = True
        return np.flatnonzero(kept)

    def _kinds(self, question: TrainingQuestion, places: Rows) -> Rows:
        """A number for each of some places, of those among which only the fastest may be chosen."""
        nodes = self.nodes[places]
        if question.involved is None:
            return nodes
        rows = self.fitting.union[places]
        involved = plain_training(self.fitting.evaluated.layout.select(rows), self.fitting.search.domain)
        return np.unique(np.stack([nodes, involved]), axis=1, return_inverse=True)[1].reshape(-1)


def _chosen(question: TrainingQuestion, timed: _Timed, ledger: Ledger, *, every_layout: bool) -> list[Part]:
    """At each confidence the layouts that fit the memory and meet the deadline; the fastest of each node count."""
    fitting = timed.fitting
    if not len(fitting.union):
        return [Part.empty(fitting.search.group)] * len(fitting.levels)
    return [
        _part(question, timed, rows, level, noted, every_layout=every_layout)
        for rows, level, noted in zip(fitting.places, fitting.levels, fitting.noted)
    ]


def _part(
    question: TrainingQuestion, timed: _Timed, rows: Rows, level: _Level, ledger: Ledger, *, every_layout: bool
) -> Part:
    """Of the rows that fit at a confidence those on time at it."""
    group, layout, union = timed.fitting.search.group, timed.fitting.evaluated.layout, timed.fitting.union
    on_time = _on_time(question, group, timed, rows, level, ledger)
    kept = on_time
    if not every_layout:
        domain, every = timed.fitting.search.domain, question.involved is not None
        kept = fastest(layout, union, timed.nodes, timed.finish_s, on_time, domain, every_degree=every)
    ledger.drop("slower", "layouts", len(on_time) - len(kept))
    part = _chosen_part(timed, rows, kept)
    if not question.switches or not group[0].spot:
        return part
    late = rows[np.isfinite(timed.finish_s[rows]) & ~np.isin(timed.nodes[rows], timed.nodes[on_time])]
    late = fastest(layout, union, timed.nodes, timed.finish_s, late, timed.fitting.search.domain)
    return replace(part, late=_chosen_part(timed, rows, late)) if len(late) else part


def _chosen_part(timed: _Timed, rows: Rows, kept: Rows) -> Part:
    """Some of the rows that fit at a confidence."""
    group, layout, union = timed.fitting.search.group, timed.fitting.evaluated.layout, timed.fitting.union
    return Part(
        group=group,
        layout=layout.select(union[kept]),
        memory=timed.fitting.evaluated.memory.select(union[kept]),
        time=timed.time.select(timed.place[kept]),
        nodes=timed.nodes[kept],
        finish_s=timed.finish_s[kept],
        fastest_s=least_times(timed.nodes[rows], timed.finish_s[rows]),
    )


def _note_memory(ledger: Ledger, group: Sequence[Site], needed: NDArray[np.float64], level: _Level) -> None:
    if len(needed):
        site = group[0]
        over = float(needed.min()) - site.usable_bytes
        at = f" at {percentile(level.confidence)}" if level.memory_margin > 1 else ""
        text = (
            f"needs {format_bytes(over)} less per device{at} on {site.device.id} "
            f"({format_bytes(site.usable_bytes)} usable)"
        )
        ledger.drop("memory", "layouts", len(needed), nearest=text, miss=over, on=names_on(group))


def _on_time(
    question: TrainingQuestion, group: Sequence[Site], timed: _Timed, rows: Rows, level: _Level, ledger: Ledger
) -> Rows:
    site = group[0]
    finish_s, busy = timed.finish_s[rows], timed.busy_s[rows]
    late = _late_s(question, timed, rows, level)
    on_time = late <= 0  # nan and inf (a group that crosses an unknown network) are not on time
    endless = np.isfinite(busy) & ~np.isfinite(finish_s)
    text = f"{site.shape.id}: fails faster than it restarts"
    ledger.drop("failures", "layouts", int(endless.sum()), nearest=text, on=names_on(group))
    ledger.drop("network-unknown", "layouts", int((~np.isfinite(busy)).sum()))
    missed = late[~on_time & np.isfinite(late)]
    if len(missed):
        least = float(missed.min())
        at = f" at {percentile(level.confidence)}" if level.time_margin > 1 else ""
        text = f"{format_duration(least)} late{at} on {site.shape.id}"
        ledger.drop("deadline", "layouts", len(missed), nearest=text, miss=least, on=names_on(group))
    return rows[on_time]


def _late_s(question: TrainingQuestion, timed: _Timed, rows: Rows, level: _Level) -> NDArray[np.float64]:
    """Time beyond the deadline at a confidence; above 0 is late, nan and inf are never on time.  [s]"""
    site, busy = timed.fitting.search.group[0], timed.busy_s[rows]
    finish_s = timed.finish_s[rows] * level.time_margin
    if site.spot:
        finish_s = finish_s * question.preemption_margin(
            site, np.where(np.isfinite(busy), busy, 1.0), timed.nodes[rows], level.confidence
        )
    return np.asarray(finish_s - question.latest_s)


def percentile(confidence: float) -> str:
    """A confidence as scenarios write it: p90."""
    return f"p{100 * confidence:g}"
