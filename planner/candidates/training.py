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

from planner.candidates.counts import node_counts
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, training_refusal
from planner.candidates.offers import Site, group_by_physics, names_on
from planner.candidates.patience import Patience
from planner.candidates.switching import with_switches
from planner.candidates.ties import plain_training
from planner.candidates.training_choice import busy_s, fastest, least_times
from planner.candidates.training_fit import AT_ONCE, look
from planner.candidates.training_looked import Fitting, Level, Looked, Search
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Part, TrainingTable, priced
from planner.carriers import dataclass
from planner.estimate.terms import Terms
from planner.estimate.training import OnMachine, Timed, is_analytic, run_seconds, training_times
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
    counts = [node_counts(question, group, ledger) for group in groups]
    able = (
        [] if out(lambda: False) else [Search.of(question, group, some) for group, some in zip(groups, counts) if some]
    )
    looked, fitting = look(question, able, out, every_layout=every_layout)
    found = [
        _chosen(question, one, ledger, every_layout=every_layout)
        for one in _timed(question, looked, fitting, every_layout)
    ]
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


def _able_sites(question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger) -> Iterator[Site]:
    for site in sites:
        reason = training_refusal(site, question.job, question.scenario, question.catalog)
        if reason:
            text = refusal_note(site, reason, "training", question.job)
            ledger.drop(reason, "offers", nearest=text, on=names_on([site]))
        else:
            yield site


def _timed(
    question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting], every_layout: bool
) -> Iterator[_Timed]:
    """Every machine with the time of every layout that fits at any confidence, some machines at once."""
    waiting: list[Fitting] = []
    for one in fitting:
        waiting.append(one)
        if sum(len(each.rows) for each in waiting) >= AT_ONCE:
            yield from _at_once(question, looked, waiting, every_layout)
            waiting = []
    yield from _at_once(question, looked, waiting, every_layout)


def _at_once(
    question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting], every_layout: bool
) -> Iterator[_Timed]:
    """Times on some machines: all but for rounding, of those that may be chosen or told term by term."""
    some = [one for one in fitting if len(one.rows)]
    asked = [one.search.on(one.rows) for one in some]
    rough = {} if every_layout else _roughly(question, looked, some, asked)
    wanted = [
        rough[place].wanted(question, one.levels) if place in rough else np.arange(len(one.rows))
        for place, one in enumerate(some)
    ]
    exact = [replace(one, rows=one.rows[places]) for one, places in zip(asked, wanted)]
    found = training_times(question.arch, looked.layout, looked.ways, exact)
    busy = {key: busy_s(terms) for key, terms in {id(one.terms): one.terms for one in found}.items()}
    timed = {}
    for place, (one, its) in enumerate(zip(some, found)):
        known = rough[place] if place in rough else _Timed.blank(question, looked, one)
        timed[id(one)] = known.exactly(wanted[place], its, busy[id(its.terms)])
    for one in fitting:
        yield timed[id(one)] if id(one) in timed else _Timed.blank(question, looked, one)


def _roughly(
    question: TrainingQuestion, looked: Looked, fitting: Sequence[Fitting], asked: Sequence[OnMachine]
) -> dict[int, _Timed]:
    """Times that are right but for rounding, of the machines where steps are put together, by place."""
    places = [place for place, one in enumerate(asked) if is_analytic(one.spec)]
    if looked.ways is None or not places:
        return {}
    steps = [fitting[place].step_s for place in places]
    runs = run_seconds(question.arch, looked.layout, [asked[place] for place in places], steps)
    return {place: _Timed.blank(question, looked, fitting[place]).over(*run) for place, run in zip(places, runs)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Layouts that fit one machine, with their time."""

    looked: Looked
    fitting: Fitting
    time: Terms  # of those that may be chosen, and of others
    place: Rows  # element of `time` of each of them; -1: not told term by term
    finish_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    power: NDArray[np.float64]  # by which the band of each is wider, for lying outside of what rows cover

    @classmethod
    def blank(cls, question: TrainingQuestion, looked: Looked, fitting: Fitting) -> _Timed:
        """No time is known of any."""
        count = len(fitting.rows)
        return cls(
            looked=looked,
            fitting=fitting,
            time=Terms({}),
            place=np.full(count, -1),
            finish_s=np.full(count, np.nan),
            busy_s=np.full(count, np.nan),
            power=question.power(fitting.search.group[0], fitting.nodes, looked.layout, fitting.rows),
        )

    @property
    def nodes(self) -> Rows:
        """Shapes of each of them."""
        return self.fitting.nodes

    def over(self, busy: NDArray[np.float64], wall: NDArray[np.float64]) -> _Timed:
        """With times that are right but for rounding."""
        return replace(self, busy_s=busy, finish_s=wall)

    def exactly(self, places: Rows, timed: Timed, busy: NDArray[np.float64]) -> _Timed:
        """With the exact times of some of them."""
        finish_s, busy_s, place = self.finish_s.copy(), self.busy_s.copy(), self.place.copy()
        elements = timed.first + np.arange(len(places))
        finish_s[places], busy_s[places], place[places] = timed.terms.total[elements], busy[elements], elements
        return replace(self, finish_s=finish_s, busy_s=busy_s, place=place, time=timed.terms)

    def told(self, rows: Rows) -> Rows:
        """Those of some rows of which the time is known term by term: the fastest are among them."""
        return rows[self.place[rows] >= 0]

    def wanted(self, question: TrainingQuestion, levels: Sequence[Level]) -> Rows:
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
        rows = self.fitting.rows[places]
        involved = plain_training(self.looked.layout.select(rows), self.fitting.search.domain)
        return np.unique(np.stack([nodes, involved]), axis=1, return_inverse=True)[1].reshape(-1)


def _chosen(question: TrainingQuestion, timed: _Timed, ledger: Ledger, *, every_layout: bool) -> list[Part]:
    """At each confidence the layouts that fit the memory and meet the deadline; the fastest of each node count."""
    fitting = timed.fitting
    noted = [ledger, *([None] * len(fitting.levels[1:]))]  # what the median drops is not told
    tell(fitting, ledger)
    if not len(fitting.rows):
        return [Part.empty(fitting.search.group)] * len(fitting.levels)
    return [
        _part(question, timed, rows, stands, level, to, every_layout=every_layout)
        for rows, stands, level, to in zip(fitting.places, fitting.stands, fitting.levels, noted)
    ]


def _part(
    question: TrainingQuestion,
    timed: _Timed,
    rows: Rows,
    stands: Rows,
    level: Level,
    ledger: Ledger | None,
    *,
    every_layout: bool,
) -> Part:
    """Of the rows that fit at a confidence, each of which stands for some, those on time at it."""
    group, layout, union = timed.fitting.search.group, timed.looked.layout, timed.fitting.rows
    late_s = _late_s(question, timed, rows, level)
    on_time = rows[late_s <= 0]  # nan and inf (a group that crosses an unknown network) are not on time
    kept = on_time
    if not every_layout:
        domain, every = timed.fitting.search.domain, question.involved is not None
        kept = fastest(layout, union, timed.nodes, timed.finish_s, timed.told(on_time), domain, every_degree=every)
    if ledger is not None:
        _note_late(timed, rows, stands, late_s, level, ledger)
        ledger.drop("slower", "layouts", int(stands[late_s <= 0].sum()) - len(kept))
    part = _chosen_part(question, timed, rows, kept)
    if not question.switches or not group[0].spot:
        return part
    told = timed.told(rows)
    late = told[np.isfinite(timed.finish_s[told]) & ~np.isin(timed.nodes[told], timed.nodes[on_time])]
    late = fastest(layout, union, timed.nodes, timed.finish_s, late, timed.fitting.search.domain)
    return replace(part, late=_chosen_part(question, timed, rows, late)) if len(late) else part


def _chosen_part(question: TrainingQuestion, timed: _Timed, rows: Rows, kept: Rows) -> Part:
    """Some of the rows that fit at a confidence."""
    told = timed.told(rows)
    return Part(
        group=timed.fitting.search.group,
        layout=timed.looked.layout,
        memory=timed.looked.memory[family_alike(question.spec, timed.fitting.search.family)],
        rows=timed.fitting.rows[kept],
        time=timed.time,
        places=timed.place[kept],
        nodes=timed.nodes[kept],
        finish_s=timed.finish_s[kept],
        fastest_s=least_times(timed.nodes[told], timed.finish_s[told]),
    )


def _note_late(
    timed: _Timed, rows: Rows, stands: Rows, late_s: NDArray[np.float64], level: Level, ledger: Ledger
) -> None:
    """Layouts that are not on time, and by how much the nearest misses."""
    group, finish_s, busy = timed.fitting.search.group, timed.finish_s[rows], timed.busy_s[rows]
    endless = np.isfinite(busy) & ~np.isfinite(finish_s)
    text = f"{group[0].shape.id}: fails faster than it restarts"
    ledger.drop("failures", "layouts", int(stands[endless].sum()), nearest=text, on=names_on(group))
    ledger.drop("network-unknown", "layouts", int(stands[~np.isfinite(busy)].sum()))
    late = (late_s > 0) & np.isfinite(late_s)
    if late.any():
        least = float(late_s[late].min())
        at = f" at {format_percentile(level.confidence)}" if level.time_margin > 1 else ""
        text = f"{format_duration(least)} late{at} on {group[0].shape.id}"
        ledger.drop("deadline", "layouts", int(stands[late].sum()), nearest=text, miss=least, on=names_on(group))


def _late_s(question: TrainingQuestion, timed: _Timed, rows: Rows, level: Level) -> NDArray[np.float64]:
    """Time beyond the deadline at a confidence; above 0 is late, nan and inf are never on time.  [s]"""
    site, busy = timed.fitting.search.group[0], timed.busy_s[rows]
    finish_s = timed.finish_s[rows] * question.band(site).time_margins(level.confidence, timed.power[rows])
    if site.spot:
        finish_s = finish_s * question.preemption_margin(
            site, np.where(np.isfinite(busy), busy, 1.0), timed.nodes[rows], level.confidence
        )
    return np.asarray(finish_s - question.latest_s)
