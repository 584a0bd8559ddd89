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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.counts import node_counts
from planner.candidates.layouts import enumerate_layouts
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, training_refusal
from planner.candidates.offers import Site, group_by_physics
from planner.candidates.patience import Patience
from planner.candidates.training_choice import busy_s, fastest, least_policies, least_times, policy_runs
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Part, TrainingTable, priced
from planner.carriers import dataclass
from planner.estimate.frameworks import FRAMEWORKS, framework_can
from planner.estimate.layout import Layout
from planner.estimate.resolve import host_bytes_per_device
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_memory import host_bytes
from planner.units import format_bytes, format_duration

__all__ = ["TrainingTable", "percentile", "training_table", "training_tables"]

Rows = NDArray[np.int64]


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
    evaluated = _evaluate_memory(question, [search for search in searches if search.counts], out)
    found = [
        _fitting(question, search, evaluated[search.domain], ledger, every_layout=every_layout)
        for search in searches
        if search.counts and search.domain in evaluated and not out()
    ]
    asked = priced(question, [parts[0] for parts in found], ledger)
    if all(len(parts) == 1 for parts in found):
        return asked, asked
    return asked, priced(question, [parts[-1] for parts in found], Ledger(workload=ledger.workload))


def _able_sites(question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger) -> Iterator[Site]:
    for site in sites:
        reason = training_refusal(site, question.job, question.scenario, question.catalog)
        if reason:
            ledger.drop(reason, "offers", nearest=refusal_note(site, reason, "training", question.job))
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
        shape = self.group[0].shape
        return max(shape.devices, shape.scale_up_devices)

    @property
    def device_counts(self) -> list[int]:
        return [count * self.group[0].shape.devices for count in self.counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """Layouts and their memory, which does not depend on the device."""

    layout: Layout
    memory: Terms
    needed: NDArray[np.float64]
    runs: Rows  # of rows that differ in recomputation alone

    def of_counts(self, device_counts: Sequence[int]) -> NDArray[np.bool_]:
        """Mask of the layouts for any of the counts of devices."""
        devices = np.asarray(self.layout.devices)
        wanted = np.zeros(int(devices.max(initial=0)) + 1, dtype=bool)
        wanted[[count for count in device_counts if count < len(wanted)]] = True
        return np.asarray(wanted[devices])


def _evaluate_memory(
    question: TrainingQuestion, searches: Sequence[_Search], out: Callable[[], bool]
) -> dict[int, _Evaluated]:
    """Layouts and their memory, once per domain size."""
    wanted: dict[int, set[int]] = {}
    for search in searches:
        wanted.setdefault(search.domain, set()).update(search.device_counts)
    result = {}
    for domain, counts in wanted.items():
        if out():
            break
        legal = enumerate_layouts(question.arch, sorted(counts), replace(question.rules, domain_devices=domain))
        layout = _offered(question, legal)
        memory = training_memory(question.arch, question.spec, layout)
        result[domain] = _Evaluated(
            layout=layout, memory=memory, needed=np.asarray(memory.total), runs=policy_runs(layout)
        )
    return result


def _offered(question: TrainingQuestion, layout: Layout) -> Layout:
    """Without the layouts that the framework of the scenario does not have."""
    framework = FRAMEWORKS.get(question.job.framework or "")
    return layout if framework is None else layout.select(np.flatnonzero(framework_can(framework, layout)))


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


def _fitting(
    question: TrainingQuestion, search: _Search, evaluated: _Evaluated, ledger: Ledger, *, every_layout: bool
) -> list[Part]:
    """At each confidence the layouts that fit the memory and meet the deadline; the fastest of each node count."""
    site, levels = search.group[0], _levels(question, search.group[0])
    of_counts = evaluated.of_counts(search.device_counts)
    ledger.layouts_seen += int(of_counts.sum())
    mine = np.flatnonzero(of_counts & _hosts_hold(question, search, evaluated.layout, ledger))
    ledgers = [ledger, *(Ledger(workload=ledger.workload) for _ in levels[1:])]  # what the median drops is not told
    fitting = [
        _in_memory(question, evaluated, mine, site, level, noted, every_layout=every_layout)
        for level, noted in zip(levels, ledgers)
    ]
    timed = _timed(question, site, evaluated, fitting)
    if timed is None:
        return [Part.empty(search.group)] * len(levels)
    return [
        _chosen(question, search, timed, rows, level, noted, every_layout=every_layout)
        for rows, level, noted in zip(fitting, levels, ledgers)
    ]


def _in_memory(
    question: TrainingQuestion,
    evaluated: _Evaluated,
    mine: Rows,
    site: Site,
    level: _Level,
    ledger: Ledger,
    *,
    every_layout: bool,
) -> Rows:
    """Rows that fit the memory at a confidence, without those that another memory policy makes idle."""
    needed = evaluated.needed[mine] * level.memory_margin
    fits = needed <= site.usable_bytes
    _note_memory(ledger, site, needed[~fits], level)
    rows = mine[fits]
    if every_layout or "activations" in question.spec.offload:  # recomputing may beat moving
        return rows
    least = least_policies(evaluated.layout, evaluated.runs, rows)
    ledger.drop("slower", "layouts", len(rows) - len(least))
    return least


def _timed(question: TrainingQuestion, site: Site, evaluated: _Evaluated, fitting: Sequence[Rows]) -> _Timed | None:
    """The time of every row that fits at any confidence; None when there is none."""
    wanted = np.zeros(len(evaluated.needed), dtype=bool)
    for rows in fitting:
        wanted[rows] = True
    union = np.flatnonzero(wanted)
    if not len(union):
        return None
    layout = evaluated.layout.select(union)
    time = training_time(question.arch, question.spec_on(site), layout, question.machine(site))
    return _Timed(
        union=union,
        layout=layout,
        memory=evaluated.memory,
        time=time,
        finish_s=np.asarray(time.total, dtype=np.float64),
        busy_s=busy_s(time),
        nodes=np.asarray(layout.devices, dtype=np.int64) // site.shape.devices,
    )


def _hosts_hold(
    question: TrainingQuestion, search: _Search, layout: Layout, ledger: Ledger
) -> NDArray[np.bool_] | np.bool_:
    """Layouts whose offloaded states and activations the hosts hold; all of them when nothing is offloaded."""
    most = host_bytes_per_device(search.group[0].shape)
    if not question.spec.offload or most is None:
        return np.True_
    over = np.asarray(host_bytes(question.arch, question.spec, layout).total) - most
    missed = over[np.isin(layout.devices, search.device_counts) & (over > 0)]
    if len(missed):
        text = f"needs {format_bytes(float(missed.min()))} less per device in the hosts of {search.group[0].shape.id}"
        ledger.drop("host-memory", "layouts", len(missed), nearest=text, miss=float(missed.min()))
    return np.asarray(over <= 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Layouts of one machine with their memory and time."""

    union: Rows  # ascending rows of all layouts that were evaluated
    layout: Layout
    memory: Terms  # of all layouts that were evaluated
    time: Terms
    finish_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    nodes: Rows


def _chosen(
    question: TrainingQuestion,
    search: _Search,
    timed: _Timed,
    rows: Rows,
    level: _Level,
    ledger: Ledger,
    *,
    every_layout: bool,
) -> Part:
    """Of the rows that fit at a confidence those on time at it."""
    rows = np.searchsorted(timed.union, rows)
    on_time = _on_time(question, search.group[0], timed, rows, level, ledger)
    kept = on_time if every_layout else fastest(timed.layout, timed.nodes, timed.finish_s, on_time)
    ledger.drop("slower", "layouts", len(on_time) - len(kept))
    return Part(
        group=search.group,
        layout=timed.layout.select(kept),
        memory=timed.memory.select(timed.union[kept]),
        time=timed.time.select(kept),
        nodes=timed.nodes[kept],
        finish_s=timed.finish_s[kept],
        fastest_s=least_times(timed.nodes[rows], timed.finish_s[rows]),
    )


def _note_memory(ledger: Ledger, site: Site, needed: NDArray[np.float64], level: _Level) -> None:
    if len(needed):
        over = float(needed.min()) - site.usable_bytes
        at = f" at {percentile(level.confidence)}" if level.memory_margin > 1 else ""
        text = (
            f"needs {format_bytes(over)} less per device{at} on {site.device.id} "
            f"({format_bytes(site.usable_bytes)} usable)"
        )
        ledger.drop("memory", "layouts", len(needed), nearest=text, miss=over)


def _on_time(question: TrainingQuestion, site: Site, timed: _Timed, rows: Rows, level: _Level, ledger: Ledger) -> Rows:
    finish_s, busy = timed.finish_s[rows], timed.busy_s[rows]
    chance = question.preemption_margin(
        site, np.where(np.isfinite(busy), busy, 1.0), timed.nodes[rows], level.confidence
    )
    late = finish_s * level.time_margin * chance - question.latest_s
    on_time = late <= 0  # nan and inf (a group that crosses an unknown network) are not on time
    endless = np.isfinite(busy) & ~np.isfinite(finish_s)
    ledger.drop("failures", "layouts", int(endless.sum()), nearest=f"{site.shape.id}: fails faster than it restarts")
    ledger.drop("network-unknown", "layouts", int((~np.isfinite(busy)).sum()))
    missed = late[~on_time & np.isfinite(late)]
    if len(missed):
        least = float(missed.min())
        at = f" at {percentile(level.confidence)}" if level.time_margin > 1 else ""
        text = f"{format_duration(least)} late{at} on {site.shape.id}"
        ledger.drop("deadline", "layouts", len(missed), nearest=text, miss=least)
    return rows[on_time]


def percentile(confidence: float) -> str:
    """A confidence as scenarios write it: p90."""
    return f"p{100 * confidence:g}"
