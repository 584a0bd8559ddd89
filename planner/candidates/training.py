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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.counts import node_counts
from planner.candidates.layouts import enumerate_layouts
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, training_refusal
from planner.candidates.offers import Site, group_by_physics
from planner.candidates.training_choice import busy_s, fastest, least_recompute, least_times
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Part, TrainingTable, priced
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
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, *, every_layout: bool = False
) -> tuple[TrainingTable, TrainingTable]:
    """The columns of one job at the confidence asked for, and at the median; the ledger is of the former."""
    offloads = bool(question.job.offload)
    groups = group_by_physics(_able_sites(question, sites, ledger), host_memory=offloads)
    searches = [_Search(group=group, counts=node_counts(question, group, ledger)) for group in groups]
    evaluated = _evaluate_memory(question, [search for search in searches if search.counts])
    found = [
        _fitting(question, search, evaluated[search.domain], ledger, every_layout=every_layout)
        for search in searches
        if search.counts
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


def _evaluate_memory(question: TrainingQuestion, searches: Sequence[_Search]) -> dict[int, tuple[Layout, Terms]]:
    """Layouts and their memory, once per domain size: memory does not depend on the device."""
    wanted: dict[int, set[int]] = {}
    for search in searches:
        wanted.setdefault(search.domain, set()).update(search.device_counts)
    result = {}
    for domain, counts in wanted.items():
        legal = enumerate_layouts(question.arch, sorted(counts), replace(question.rules, domain_devices=domain))
        layout = _offered(question, legal)
        result[domain] = (layout, training_memory(question.arch, question.spec, layout))
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
    question: TrainingQuestion,
    search: _Search,
    evaluated: tuple[Layout, Terms],
    ledger: Ledger,
    *,
    every_layout: bool,
) -> list[Part]:
    """At each confidence the layouts that fit the memory and meet the deadline; the fastest of each node count."""
    layout, memory = evaluated
    site, levels = search.group[0], _levels(question, search.group[0])
    mine = np.isin(layout.devices, search.device_counts) & _hosts_hold(question, search, layout, ledger)
    needed = np.asarray(memory.total)
    fitting = []
    for number, level in enumerate(levels):
        noted = ledger if number == 0 else Ledger(workload=ledger.workload)
        fits = mine & (needed * level.memory_margin <= site.usable_bytes)
        _note_memory(noted, site, needed[mine & ~fits] * level.memory_margin, level)
        rows = np.flatnonzero(fits)
        if not every_layout and "activations" not in question.spec.offload:  # recomputing may beat moving
            least = least_recompute(layout, rows)
            noted.drop("slower", "layouts", len(rows) - len(least))
            rows = least
        fitting.append(rows)
    ledger.layouts_seen += int(mine.sum())
    union = np.unique(np.concatenate(fitting))
    if not len(union):
        return [Part.empty(search.group)] * len(levels)
    chosen_from = layout.select(union)
    times = training_time(question.arch, question.spec_on(site), chosen_from, question.machine(site))
    timed = _Timed(
        layout=chosen_from,
        memory=memory.select(union),
        time=times,
        finish_s=np.asarray(times.total, dtype=np.float64),
        nodes=np.asarray(chosen_from.devices, dtype=np.int64) // site.shape.devices,
    )
    return [
        _chosen(
            question,
            search,
            timed,
            np.searchsorted(union, rows),
            level,
            ledger if number == 0 else Ledger(workload=ledger.workload),
            every_layout=every_layout,
        )
        for number, (rows, level) in enumerate(zip(fitting, levels))
    ]


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

    layout: Layout
    memory: Terms
    time: Terms
    finish_s: NDArray[np.float64]
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
    on_time = _on_time(question, search.group[0], timed, rows, level, ledger)
    kept = on_time if every_layout else fastest(timed.layout, timed.nodes, timed.finish_s, on_time)
    ledger.drop("slower", "layouts", len(on_time) - len(kept))
    return Part(
        group=search.group,
        layout=timed.layout.select(kept),
        memory=timed.memory.select(kept),
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
    finish_s, busy = timed.finish_s[rows], busy_s(timed.time)[rows]
    late = finish_s * level.time_margin - question.job.deadline_s
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
