"""Every legal way to run one training job on every allowed offer, evaluated in vectorised passes.

Sites with equal physics are evaluated once; within one (machine, node count) only the fastest
layout can be in an optimal plan, because cost, devices, power and carbon depend on the node
count and grow with the hours (dominance D1: the exchange argument of `prune`). The simplest
layout wins a tie.

A way is kept when it holds at the confidence that the scenario asks for: needed memory and time, each
multiplied with its quantile of the error band, within what is usable and the deadline. The factor of times is
larger for layouts that lie outside of what rows cover; what is late is left out before the fastest is taken,
and what a way costs is what is predicted, so that dominance stays exact. A second table holds what would be
kept at the median: the same evaluation, chosen from again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.counts import node_counts, whole_hosts
from planner.candidates.ledger import Ledger
from planner.candidates.machines import UNLAUNCHED, refusal_note, training_refusal, unlaunched
from planner.candidates.offers import LARGEST_JOB, Site, group_by_physics, names_on
from planner.candidates.patience import Patience
from planner.candidates.switching import with_switches
from planner.candidates.ties import plain_training
from planner.candidates.training_choice import busy_s, fastest, least_by
from planner.candidates.training_fit import AT_ONCE, look
from planner.candidates.training_looked import Fitting, Level, Looked, Search
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Part, TrainingTable, priced
from planner.carriers import dataclass
from planner.estimate.resolve import measured_mfu
from planner.estimate.software import programs_of
from planner.estimate.terms import Terms
from planner.estimate.training import is_analytic, run_seconds, training_times
from planner.estimate.training_memory import family_alike
from planner.units import format_bytes, format_duration, format_percentile

__all__ = ["TrainingTable", "training_table", "training_tables"]

Rows = NDArray[np.int64]
NEAR = 2e-5  # relative, of times: what is nearer to the best is told apart by its last digits (`ties.six_digits`)


def training_table(
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, *, every_layout: bool = False
) -> TrainingTable:
    """The columns of one job; `every_layout` keeps layouts that a faster one of equal size dominates.

    Parameters
    ----------
    question
        The job.
    sites
        Offers that it may run on, as far as its data go.
    ledger
        Is told of what is left out, and why.
    every_layout
        Keep layouts that a faster one of as many shapes of the same machine dominates.
    """
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

    Parameters
    ----------
    question
        The job.
    sites
        Offers that it may run on, as far as its data go.
    ledger
        Is told of what is left out, and why.
    every_layout
        Keep layouts that a faster one of as many shapes of the same machine dominates.
    patience
        Whether there is time for the job; None: all there is.

    Returns
    -------
    The two tables; one and the same where nothing tells them apart.
    """

    def out(found: Callable[[], bool]) -> bool:
        return patience is not None and patience.out(question.job.name, found)

    offloads = bool(question.job.offload)
    groups = group_by_physics(_able_sites(question, sites, ledger), host_memory=offloads)

    def searched(counts: Sequence[Sequence[int]], told: Ledger) -> list[list[Part]]:
        able = [Search.of(question, group, tuple(some)) for group, some in zip(groups, counts) if some]
        looked, fitting = look(question, [] if out(lambda: False) else able, out, every_layout=every_layout)
        return list(_chosen(question, looked, fitting, told, every_layout=every_layout))

    told = ledger.copy()
    hosts = whole_hosts(groups)
    counts = [node_counts(question, group, told, hosts=hosts) for group in groups]
    found = searched(counts, told)
    if not any(len(parts[0].nodes) for parts in found) and not out(lambda: False):  # more machines may be on time
        again = ledger.copy()
        further = [node_counts(question, group, again, reach=LARGEST_JOB, hosts=hosts) for group in groups]
        if further != counts:
            told, found = again, searched(further, again)
    ledger.become(told)
    levels = question.confidences
    asked = with_switches(question, priced(question, [parts[0] for parts in found], ledger), levels[0])
    if all(len(parts) == 1 for parts in found) and (asked.late is None or len(levels) == 1):
        return asked, asked
    median = priced(question, [parts[-1] for parts in found], Ledger(workload=ledger.workload))
    return asked, with_switches(question, median, levels[-1])


def tell(fitting: Fitting, ledger: Ledger) -> None:
    """What did not fit at the confidence asked for, on record, and how many layouts were looked at."""
    search, level, fit = fitting.search, fitting.levels[0], fitting.fit
    if fit is None:
        return
    ledger.layouts_seen += sum(fit.seen.get(count, 0) for count in search.counts)
    found: dict[str, tuple[int, float]] = {}
    for count in search.counts:
        for reason, many, miss in fit.missed.get(count, ()):
            before, nearest = found.get(reason, (0, np.inf))
            found[reason] = before + many, min(nearest, miss)
    for reason, (many, miss) in found.items():
        if reason in ("slower", "no-program", "unadvised"):
            ledger.drop(reason, "layouts", many)
            continue
        text = f"needs {format_bytes(miss)} less per device{_where(search.group[0], level, reason)}"
        ledger.drop(reason, "layouts", many, nearest=text, miss=miss, on=names_on(search.group))


def _where(site: Site, level: Level, reason: str) -> str:
    if reason == "host-memory":
        return f" in the hosts of {site.shape.id}"
    at = f" at {format_percentile(level.confidence)}" if level.memory_margin > 1 else ""
    return f"{at} on {site.device.id} ({format_bytes(site.usable_bytes)} usable)"


def _able_sites(question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger) -> list[Site]:
    job, scenario = question.job, question.scenario
    reasons = [training_refusal(site, job, scenario, question.catalog) for site in sites]
    able = [site for site, reason in zip(sites, reasons) if not reason]
    kinds = {kind: bool(programs_of(job, question.arch, kind)) for kind in {site.device.kind for site in able}}
    nothing = {
        id(site)
        for site in unlaunched(able, scenario.hardware, lambda site: kinds[site.device.kind])
        if measured_mfu(site.device, job.mfu) is None
    }
    for site, reason in zip(sites, reasons):
        if why := reason or (UNLAUNCHED if id(site) in nothing else ""):
            ledger.drop(why, "offers", nearest=refusal_note(site, why, "training", job), on=names_on([site]))
    return [site for site in able if id(site) not in nothing]


def _chosen(
    question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting], ledger: Ledger, *, every_layout: bool
) -> Iterator[list[Part]]:
    """Of every machine, at each confidence, the ways to run the job there; some machines at once."""
    waiting: list[Fitting] = []
    for number, one in enumerate(fitting, 1):
        waiting.append(one)
        if number == len(fitting) or sum(len(each.rows) for each in waiting) >= AT_ONCE:
            yield from _at_once(question, looked, waiting, ledger, every_layout=every_layout)
            waiting = []


def _at_once(
    question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting], ledger: Ledger, *, every_layout: bool
) -> Iterator[list[Part]]:
    """Times on some machines: all but for rounding, of those that may be chosen or told term by term."""
    for one in fitting:
        tell(one, ledger)
    timed, parts = _Timed.of(question, looked, [one for one in fitting if len(one.rows)]), list[Iterator[Part]]()
    if timed is not None:
        several = any(len(one.levels) > 1 for one in timed.fitting)
        levels = [timed.at_level(question, number) for number in ((0, -1) if several else (0,))]
        if not every_layout:
            timed = timed.roughly(question)
        timed = timed.exactly(question, timed.wanted(question, levels))
        parts = [
            iter(_parts(question, timed, level, to, every_layout=every_layout))
            for level, to in zip(levels, (ledger, None))  # what the median drops is not told
        ]
    for one in fitting:
        if not len(one.rows):
            yield [Part.empty(one.search.group)] * len(one.levels)
        else:
            yield [next(some) for some in parts][: len(one.levels)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtLevel:
    """Of layouts on some machines those that fit at a confidence."""

    at: Rows  # ascending
    stands: Rows  # for how many layouts each stands
    margin: NDArray[np.float64]  # what times are multiplied with, but for what is taken away on spot
    levels: Sequence[Level]  # of each machine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Layouts that fit some machines, one machine after the other, with their time."""

    looked: Looked
    fitting: Sequence[Fitting]
    starts: Rows  # where the layouts of each machine begin, and the end
    machine: Rows  # of each of them, its place in `fitting`
    rows: Rows  # of all layouts
    nodes: Rows
    kind: Rows  # a number, by machine and shapes, of those among which only the fastest may be chosen
    domain: Rows  # devices that fast links join, of each
    power: NDArray[np.float64]  # by which the band of each is wider, for lying outside of what rows cover
    finish_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    time: Sequence[Terms]  # by machine, of those that may be chosen, and of others
    place: Rows  # element of its machine's `time` of each; -1: not told term by term

    @classmethod
    def of(cls, question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting]) -> _Timed | None:
        """No time is known of any; None where there are none."""
        if not fitting:
            return None
        counts = [len(one.rows) for one in fitting]
        machine = np.repeat(np.arange(len(fitting)), counts)
        rows, nodes = (np.concatenate([getattr(one, name) for one in fitting]) for name in ("rows", "nodes"))
        sites = [one.search.group[0] for one in fitting]
        domain = np.array([site.domain for site in sites])[machine]
        kind = np.unique(machine * (int(nodes.max()) + 1) + nodes, return_inverse=True)[1].reshape(-1)
        return cls(
            looked=looked,
            fitting=fitting,
            starts=np.cumsum([0, *counts]),
            machine=machine,
            rows=rows,
            nodes=nodes,
            kind=kind,
            domain=domain,
            power=question.powers(sites, machine, nodes, looked.layout, rows),
            finish_s=np.full(len(rows), np.nan),
            busy_s=np.full(len(rows), np.nan),
            time=[Terms({})] * len(fitting),
            place=np.full(len(rows), -1),
        )

    def sites(self) -> Iterator[tuple[int, Site]]:
        """Number and site of each machine."""
        return enumerate(one.search.group[0] for one in self.fitting)

    def of_machine(self, number: int, rows: Rows) -> Rows:
        """Of some ascending places those on a machine."""
        first, last = np.searchsorted(rows, self.starts[number : number + 2])
        return rows[first:last]

    def at_level(self, question: TrainingQuestion, number: int) -> _AtLevel:
        """Those that fit at the confidence of a number, with the margins of their times."""
        levels = [one.levels[number] for one in self.fitting]
        places = [first + one.places[number] for first, one in zip(self.starts.tolist(), self.fitting)]
        margins = [
            question.band(site).time_margins(levels[place].confidence, self.power[places[place]])
            for place, site in self.sites()
        ]
        stands = np.concatenate([one.stands[number] for one in self.fitting])
        return _AtLevel(at=np.concatenate(places), stands=stands, margin=np.concatenate(margins), levels=levels)

    def roughly(self, question: TrainingQuestion) -> _Timed:
        """With times that are right but for rounding, of the machines where steps are put together."""
        places = [place for place, one in enumerate(self.fitting) if is_analytic(one.search.spec)]
        if self.looked.ways is None or not places:
            return self
        some = [self.fitting[place] for place in places]
        asked, steps = [one.search.on(one.rows) for one in some], [one.step_s for one in some]
        runs = run_seconds(question.arch, self.looked.layout, asked, steps)
        known = np.isin(self.machine, places)
        finish_s, busy_s = self.finish_s.copy(), self.busy_s.copy()
        busy_s[known], finish_s[known] = (np.concatenate(of) for of in zip(*runs))
        return replace(self, busy_s=busy_s, finish_s=finish_s)

    def exactly(self, question: TrainingQuestion, wanted: Rows) -> _Timed:
        """With the exact times of some of them, ascending."""
        mine = [self.of_machine(number, wanted) for number in range(len(self.fitting))]
        asked = [one.search.on(self.rows[some]) for one, some in zip(self.fitting, mine)]
        found = training_times(question.arch, self.looked.layout, self.looked.ways, asked)
        busy = {key: busy_s(terms) for key, terms in {id(one.terms): one.terms for one in found}.items()}
        finish, steps, place = self.finish_s.copy(), self.busy_s.copy(), self.place.copy()
        for one, some in zip(found, mine):
            last = one.first + len(some)
            finish[some], place[some] = one.terms.total[one.first : last], np.arange(one.first, last)
            steps[some] = busy[id(one.terms)][one.first : last]
        return replace(self, finish_s=finish, busy_s=steps, place=place, time=[one.terms for one in found])

    def told(self, rows: Rows) -> Rows:
        """Those of some rows of which the time is known term by term: the fastest are among them."""
        return rows[self.place[rows] >= 0]

    def late_s(self, question: TrainingQuestion, level: _AtLevel) -> NDArray[np.float64]:
        """Time beyond the deadline at a confidence; above 0 is late, nan and inf are never on time.  [s]"""
        finish_s = self.finish_s[level.at] * level.margin
        for number, site in self.sites():
            if site.spot:
                first, last = np.searchsorted(level.at, self.starts[number : number + 2])
                mine = level.at[first:last]
                finish_s[first:last] *= question.preemption_margin(
                    site,
                    np.where(np.isfinite(self.busy_s[mine]), self.busy_s[mine], 1.0),
                    self.nodes[mine],
                    level.levels[number].confidence,
                )
        return finish_s - question.latest_s

    def wanted(self, question: TrainingQuestion, levels: Sequence[_AtLevel]) -> Rows:
        """Those that may be chosen, or come nearest to being on time: their last digits count."""
        kept = np.isnan(self.finish_s) & np.isnan(self.busy_s)  # nothing is known of them yet
        kind = self.kind
        if question.involved is not None:
            involved = plain_training(self.looked.layout.select(self.rows), self.domain)
            kind = np.unique(kind * (int(involved.max()) + 1) + involved, return_inverse=True)[1].reshape(-1)
        for level in levels:
            late = self.late_s(question, level)
            kept[level.at[np.abs(late) <= NEAR * question.latest_s]] = True
            missed = np.flatnonzero((late > 0) & np.isfinite(late))
            least = least_by(self.machine[level.at[missed]], late[missed], len(self.fitting))
            kept[level.at[missed[late[missed] <= least[self.machine[level.at[missed]]]]]] = True
            for some in (level.at, level.at[late <= 0]):
                least = least_by(kind[some], self.finish_s[some], int(kind.max()) + 1)
                kept[some[self.finish_s[some] <= least[kind[some]] * (1 + NEAR)]] = True
        return np.flatnonzero(kept)


def _parts(
    question: TrainingQuestion, timed: _Timed, level: _AtLevel, ledger: Ledger | None, *, every_layout: bool
) -> list[Part]:
    """Of each machine what fits it and is on time at a confidence; the fastest of each number of shapes."""
    layout, union, every = timed.looked.layout, timed.rows, question.involved is not None
    late_s = timed.late_s(question, level)
    on_time = level.at[late_s <= 0]  # nan and inf (a group that crosses an unknown network) are not on time
    kept = on_time
    if not every_layout:
        told = timed.told(on_time)
        kept = fastest(layout, union, timed.kind, timed.finish_s, told, timed.domain, every_degree=every)
    if ledger is not None:
        _note_late(timed, level, late_s, ledger)
        ledger.drop("slower", "layouts", int(level.stands[late_s <= 0].sum()) - len(kept))
    parts = _of_machines(question, timed, level, kept)
    if not question.switches:
        return parts
    told = timed.told(level.at)
    there = np.isin(timed.kind[told], timed.kind[on_time])
    late = told[np.isfinite(timed.finish_s[told]) & ~there]
    late = fastest(layout, union, timed.kind, timed.finish_s, late, timed.domain, every_degree=every)
    others = _of_machines(question, timed, level, late)
    return [
        replace(part, late=other) if part.group[0].spot and len(other.rows) else part
        for part, other in zip(parts, others)
    ]


def _of_machines(question: TrainingQuestion, timed: _Timed, level: _AtLevel, kept: Rows) -> list[Part]:
    """Of each machine some of the rows that fit it at a confidence."""
    told = timed.told(level.at)
    least = least_by(timed.kind[told], timed.finish_s[told], int(timed.kind.max()) + 1)
    _, first = np.unique(timed.kind, return_index=True)
    ends = np.searchsorted(timed.machine[first], np.arange(len(timed.fitting) + 1))
    parts = []
    for number, one in enumerate(timed.fitting):
        mine, kinds = kept[timed.machine[kept] == number], slice(*ends[number : number + 2])
        known = np.isfinite(least[kinds])
        shapes, times = timed.nodes[first[kinds]][known], least[kinds][known]
        parts.append(
            Part(
                group=one.search.group,
                layout=timed.looked.layout,
                memory=timed.looked.memory[family_alike(question.spec, one.search.family)],
                rows=timed.rows[mine],
                time=timed.time[number],
                places=timed.place[mine],
                nodes=timed.nodes[mine],
                finish_s=timed.finish_s[mine],
                fastest_s=dict(zip(shapes.tolist(), times.tolist())),
            )
        )
    return parts


def _note_late(timed: _Timed, level: _AtLevel, late_s: NDArray[np.float64], ledger: Ledger) -> None:
    """Layouts that are not on time, and by how much the nearest misses."""
    machine, busy, count = timed.machine[level.at], timed.busy_s[level.at], len(timed.fitting)
    finite = np.isfinite(busy)
    late = (late_s > 0) & np.isfinite(late_s)

    def stands(which: NDArray[np.bool_]) -> list[int]:
        return [int(many) for many in np.bincount(machine[which], level.stands[which], count)]

    endless, unknown, missed = stands(finite & ~np.isfinite(timed.finish_s[level.at])), stands(~finite), stands(late)
    least = least_by(machine[late], late_s[late], count).tolist()
    for number, site in timed.sites():
        on, at = names_on(timed.fitting[number].search.group), level.levels[number]
        text = f"{site.shape.id}: fails faster than it restarts"
        ledger.drop("failures", "layouts", endless[number], nearest=text, on=on)
        ledger.drop("network-unknown", "layouts", unknown[number])
        if missed[number]:
            said = f" at {format_percentile(at.confidence)}" if at.time_margin > 1 else ""
            text = f"{format_duration(least[number])} late{said} on {site.shape.id}"
            ledger.drop("deadline", "layouts", missed[number], nearest=text, miss=least[number], on=on)
