"""Every legal way to run one training job on every allowed offer, evaluated in vectorised passes.

Sites with equal physics are evaluated once; within one (machine, node count) only the fastest
layout can be in an optimal plan, because cost, devices, power and carbon depend on the node
count and grow with the hours (dominance D1: the exchange argument of `prune`). The simplest
layout wins a tie.
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
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.offers import Site, group_by_physics, shape_cap
from planner.candidates.program import Units
from planner.candidates.training_question import TrainingQuestion
from planner.estimate.layout import Layout
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory, training_time
from planner.units import format_bytes, format_duration

_SIMPLEST_LAST_TO_FIRST = ("micro_batch", "vpp", "sharding", "recompute", "ep", "cp", "tp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTable:
    """The columns of one job: row i runs `layout[i]` on `nodes[i]` shapes of `sites[i]`."""

    sites: tuple[Site, ...]
    nodes: NDArray[np.int64]
    layout: Layout
    memory: Terms  # bytes per device
    time: Terms  # seconds of the whole run
    finish_s: NDArray[np.float64]
    cost_microusd: tuple[int, ...]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.sites)

    def units(self, count: int) -> Units:
        """What one unit of each row, a whole job, brings and takes."""
        none = np.zeros(len(self), dtype=np.int64)
        return Units(
            cost_microusd=self.cost_microusd,
            finish_s=self.finish_s,
            nodes=self.nodes,
            replicas=none,
            capacity_micro_per_s=none,
            max_units=np.full(len(self), count, dtype=np.int64),
        )

    @classmethod
    def empty(cls) -> TrainingTable:
        """No way to run the job."""
        none: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        return cls(
            sites=(),
            nodes=none,
            layout=Layout(**dict.fromkeys(Layout.__slots__, none)),
            memory=Terms({}),
            time=Terms({}),
            finish_s=np.zeros(0),
            cost_microusd=(),
        )


def training_table(
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, *, every_layout: bool = False
) -> TrainingTable:
    """The columns of one job; `every_layout` keeps layouts that a faster one of equal size dominates."""
    groups = group_by_physics(_able_sites(question, sites, ledger))
    searches = [_Search(group=group, counts=node_counts(question, group, ledger)) for group in groups]
    evaluated = _evaluate_memory(question, [search for search in searches if search.counts])
    parts = [
        _fitting(question, search, evaluated[search.domain], ledger, every_layout=every_layout)
        for search in searches
        if search.counts
    ]
    return _priced(question, [part for part in parts if len(part.nodes)], ledger)


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
        layout = enumerate_layouts(question.arch, sorted(counts), replace(question.rules, domain_devices=domain))
        result[domain] = (layout, training_memory(question.arch, question.spec, layout))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Layouts of one physics group that fit and are on time, before prices."""

    group: list[Site]
    layout: Layout
    memory: Terms
    time: Terms
    nodes: NDArray[np.int64]
    finish_s: NDArray[np.float64]


def _fitting(
    question: TrainingQuestion,
    search: _Search,
    evaluated: tuple[Layout, Terms],
    ledger: Ledger,
    *,
    every_layout: bool,
) -> _Part:
    """The layouts that fit the device's memory and meet the deadline; the fastest of each node count."""
    layout, memory = evaluated
    site = search.group[0]
    mine = np.isin(layout.devices, search.device_counts)
    needed = np.asarray(memory.total)
    fits = mine & (needed <= site.usable_bytes)
    ledger.layouts_seen += int(mine.sum())
    _note_memory(ledger, site, needed[mine & ~fits])
    fitting = np.flatnonzero(fits)
    if not every_layout:
        least = _least_recompute(layout, fitting)
        ledger.drop("slower", "layouts", len(fitting) - len(least))
        fitting = least
    layout = layout.select(fitting)
    time = training_time(question.arch, question.spec_on(site), layout, question.machine(site))
    finish = np.asarray(time.total, dtype=np.float64)
    nodes = np.asarray(layout.devices, dtype=np.int64) // site.shape.devices
    chosen = _on_time(question, site, finish, busy_s(time), ledger)
    if not every_layout:
        best = _fastest(layout, nodes, finish, chosen)
        ledger.drop("slower", "layouts", len(chosen) - len(best))
        chosen = best
    return _Part(
        group=search.group,
        layout=layout.select(chosen),
        memory=memory.select(fitting[chosen]),
        time=time.select(chosen),
        nodes=nodes[chosen],
        finish_s=finish[chosen],
    )


def _least_recompute(layout: Layout, fitting: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of layouts that differ in recomputation alone, the one that recomputes least and fits.

    More recomputation only adds time: no term of the rule tier falls with it. `enumerate_layouts`
    lists the levels of one layout next to each other, from the least.
    """
    same = np.concatenate([[0], np.cumsum(np.diff(np.asarray(layout.recompute)) <= 0)])[fitting]
    first = np.ones(len(same), dtype=bool)
    first[1:] = same[1:] != same[:-1]
    return fitting[first]


def _note_memory(ledger: Ledger, site: Site, needed: NDArray[np.float64]) -> None:
    if len(needed):
        over = float(needed.min()) - site.usable_bytes
        text = (
            f"needs {format_bytes(over)} less per device on {site.device.id} ({format_bytes(site.usable_bytes)} usable)"
        )
        ledger.drop("memory", "layouts", len(needed), nearest=text, miss=over)


def busy_s(time: Terms) -> NDArray[np.float64]:
    """Time of the optimizer steps alone, without failures and checkpoints.  [s]"""
    return np.asarray(sum(time[name] for name in time if name not in RUN_TERMS))


def _on_time(
    question: TrainingQuestion,
    site: Site,
    finish_s: NDArray[np.float64],
    busy: NDArray[np.float64],
    ledger: Ledger,
) -> NDArray[np.int64]:
    late = finish_s - question.job.deadline_s
    on_time = late <= 0  # nan and inf (a group that crosses an unknown network) are not on time
    endless = np.isfinite(busy) & ~np.isfinite(finish_s)
    ledger.drop("failures", "layouts", int(endless.sum()), nearest=f"{site.shape.id}: fails faster than it restarts")
    ledger.drop("network-unknown", "layouts", int((~np.isfinite(busy)).sum()))
    missed = late[~on_time & np.isfinite(late)]
    if len(missed):
        least = float(missed.min())
        ledger.drop(
            "deadline",
            "layouts",
            len(missed),
            nearest=f"{format_duration(least)} late on {site.shape.id}",
            miss=least,
        )
    return np.flatnonzero(on_time)


def _fastest(
    layout: Layout, nodes: NDArray[np.int64], finish_s: NDArray[np.float64], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of the chosen layouts the fastest of each node count; the simplest one on a tie."""
    if not len(chosen):
        return chosen
    mine, finish = nodes[chosen], ten_digits(finish_s[chosen] / 3600.0)
    best = np.full(int(mine.max()) + 1, np.inf)
    np.minimum.at(best, mine, finish)
    ties = chosen[finish == best[mine]]
    simplest = [np.asarray(getattr(layout, name))[ties] for name in _SIMPLEST_LAST_TO_FIRST]
    order = np.lexsort((*simplest, nodes[ties]))
    first = np.ones(len(order), dtype=bool)
    first[1:] = nodes[ties][order][1:] != nodes[ties][order][:-1]
    fastest: NDArray[np.int64] = ties[order[first]]
    return fastest


def ten_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to ten significant digits: hours that differ by less are one time, as in `money`."""
    exponent = np.floor(np.log10(np.maximum(values, 1e-300)))
    scale = 10.0 ** (9 - exponent)
    rounded: NDArray[np.float64] = np.rint(values * scale) / scale
    return rounded


def _priced(question: TrainingQuestion, parts: Sequence[_Part], ledger: Ledger) -> TrainingTable:
    """Cross every part with the offers of its group."""
    rows = [
        (part_index, row, site)
        for part_index, part in enumerate(parts)
        for site in part.group
        for row in _within_caps(question, part, site, ledger)
    ]
    if not rows:
        return TrainingTable.empty()
    starts = np.cumsum([0, *(len(part.nodes) for part in parts)])
    index = np.array([starts[part_index] + row for part_index, row, _ in rows])
    joined = _concatenate(parts)
    nodes, finish = joined.nodes[index], joined.finish_s[index]
    sites = tuple(site for _, _, site in rows)
    return TrainingTable(
        sites=sites,
        nodes=nodes,
        layout=joined.layout.select(index),
        memory=joined.memory.select(index),
        time=joined.time.select(index),
        finish_s=finish,
        cost_microusd=tuple(
            cost_microusd(int(n), site.offer.price_microusd_per_hour, float(seconds) / 3600.0)
            for n, site, seconds in zip(nodes, sites, finish)
        ),
    )


def _within_caps(question: TrainingQuestion, part: _Part, site: Site, ledger: Ledger) -> list[int]:
    cap = shape_cap(question.scenario, site)
    kept = np.flatnonzero(part.nodes <= cap)
    if len(kept) < len(part.nodes):
        least = int(part.nodes[part.nodes > cap].min())
        text = f"{least} shapes of {site.offer.id}, {cap} allowed"
        ledger.drop("quota", "columns", len(part.nodes) - len(kept), nearest=text, miss=float(least - cap))
    dollars = part.nodes[kept] * (site.offer.price_microusd_per_hour / 1e6) * (part.finish_s[kept] / 3600.0)
    sane = kept[dollars * 1e6 <= DEAREST_MICROUSD]
    ledger.drop("too-dear", "columns", len(kept) - len(sane), nearest=f"{site.offer.id}: more than $10,000,000,000")
    return [int(row) for row in sane]


def _concatenate(parts: Sequence[_Part]) -> _Part:
    return _Part(
        group=[],
        layout=Layout.concatenate([part.layout for part in parts]),
        memory=Terms.concatenate([part.memory for part in parts]),
        time=Terms.concatenate([part.time for part in parts]),
        nodes=np.concatenate([part.nodes for part in parts]),
        finish_s=np.concatenate([part.finish_s for part in parts]),
    )
