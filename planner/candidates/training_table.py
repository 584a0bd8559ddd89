"""The columns of one training job: layouts that fit and are on time, crossed with the offers of their machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.brief import brief
from planner.candidates.ledger import Ledger
from planner.candidates.money import DEAREST_MICROUSD, rentals_microusd
from planner.candidates.offers import Numbered, ShapeCaps, Site, names_on
from planner.candidates.program import Units
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.estimate.bill import seconds_of
from planner.estimate.layout import Layout
from planner.estimate.terms import Terms
from planner.estimate.training_spec import RunSpec
from planner.units import counted

Physics = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Layouts of one physics group that fit and are on time, before prices.

    They are named by their place among all: of some hundred groups each has a few, which are taken out together.
    """

    group: list[Site]
    layout: Layout  # of every group of the job
    memory: Terms  # of these
    rows: NDArray[np.int64]  # which of these it has
    time: Terms  # of some groups
    places: NDArray[np.int64]  # which of these are its own
    nodes: NDArray[np.int64]
    finish_s: NDArray[np.float64]
    fastest_s: Mapping[int, float] = field(default_factory=dict)  # by count of shapes, on time or not
    late: Part | None = None  # counts that are not on time, which a job may begin on

    @classmethod
    def empty(cls, group: list[Site]) -> Part:
        """No layout that fits."""
        none: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        return cls(
            group=group,
            layout=Layout(**dict.fromkeys(Layout.__slots__, none)),
            memory=Terms({}),
            rows=none,
            time=Terms({}),
            places=none,
            nodes=none,
            finish_s=np.zeros(0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One of the groups that share a job: its machines, its layout for its share, its own time and memory."""

    site: Site
    nodes: int
    layout: Layout  # one element; the global batch is the share
    memory: Terms
    time: Terms  # of the whole run, waiting for the others and reducing gradients among them included
    cost_microusd: int
    traffic_microusd: int  # of the cost: gradients sent to other zones
    carbon_mg: int
    step_s: float  # of its own share

    @property
    def share(self) -> int:
        """Sequences of a step that it takes."""
        return int(self.layout.global_batch[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A row on several offers. Site, layout, memory and time of the row are those of its first group.

    Its shapes are those of all groups, its cost the sum of theirs, its time the one that they share.
    """

    groups: tuple[Group, ...]  # dearest first, then by offer id
    batch: int  # sequences of a step, of all groups
    compute_s: float  # of the slowest group in a step
    synchronisation_s: float
    time_margin: float  # largest of the groups
    run: RunSpec | None  # how they fail and save together


class Switch(NamedTuple):
    """A row that begins on spot and ends on demand. Site, layout and memory of the row are those on demand.

    Its shapes are the most that it holds at one time, its cost and its time those of both parts.
    """

    first: int  # of the late rows of the table
    second: int  # of its own rows
    hours: tuple[float, float]  # that each part holds its machines
    held_hours: tuple[float, float]  # the same at the confidence: the first part ends by the clock
    share: float  # of the work, before the switch
    share_at_confidence: float
    saved_s: float  # for the checkpoint at the switch, of the first part's hours
    restart_s: float  # of the second part's
    cost_microusd: tuple[int, int]

    def rented(self, table: TrainingTable) -> tuple[tuple[Site, int], tuple[Site, int]]:
        """Machines of each part, and how many shapes of them."""
        assert table.late is not None
        places = ((table.late, self.first), (table, self.second))
        return tuple((one.sites[row], int(one.nodes[row])) for one, row in places)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrainingTable:
    """The columns of one job: row i runs `layout[i]` on `nodes[i]` shapes of `sites[i]`."""

    sites: tuple[Site, ...]
    nodes: NDArray[np.int64]
    layout: Layout
    memory: Terms  # bytes per device
    time: Terms  # seconds of the whole run
    finish_s: NDArray[np.float64]
    cost_microusd: tuple[int, ...]
    fastest_s: Mapping[Physics, Mapping[int, float]] = field(default_factory=dict)  # also of counts that are late
    mixes: Mapping[int, Mixed] = field(default_factory=dict)  # rows on several offers; their other cells: see `Mixed`
    late: TrainingTable | None = None  # ways on spot that a job may begin on, none of them on time
    switches: Mapping[int, Switch] = field(default_factory=dict)  # rows on one offer after the other: see `Switch`

    def __repr__(self) -> str:
        return brief("TrainingTable", f"{len(self):,} rows")

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
    def empty(cls, fastest_s: Mapping[Physics, Mapping[int, float]] | None = None) -> TrainingTable:
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
            fastest_s=fastest_s or {},
        )


def priced(question: TrainingQuestion, every_part: Sequence[Part], ledger: Ledger) -> TrainingTable:
    """Cross every part with the offers of its group.

    Parameters
    ----------
    question
        The job.
    every_part
        One of each physics group, empty ones too.
    ledger
        Is told of what quotas and prices rule out.
    """
    fastest_s = {part.group[0].physics: part.fastest_s for part in every_part}
    late = [part.late for part in every_part if part.late is not None]
    found = _crossed(question, every_part, fastest_s, ledger)
    if not late:
        return found
    return replace(found, late=_crossed(question, late, {}, Ledger(workload=ledger.workload)))


def _crossed(
    question: TrainingQuestion,
    every_part: Sequence[Part],
    fastest_s: Mapping[Physics, Mapping[int, float]],
    ledger: Ledger,
) -> TrainingTable:
    parts = [part for part in every_part if len(part.nodes)]
    if not parts:
        return TrainingTable.empty(fastest_s)
    nodes, finish, of_all = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("nodes", "finish_s", "rows")
    )
    starts = np.cumsum([0, *(len(part.nodes) for part in parts)])
    every = [np.arange(start, start + len(part.nodes)) for start, part in zip(starts, parts) for _ in part.group]
    sites = [site for part in parts for site in part.group]
    index, of = np.concatenate(every), np.repeat(np.arange(len(sites)), [len(rows) for rows in every])
    kept = _allowed(question, sites, of, nodes[index], finish[index], ledger)
    index, of = index[kept], of[kept]
    if not len(index):
        return TrainingTable.empty(fastest_s)
    number = np.repeat(np.arange(len(parts)), [len(part.nodes) for part in parts])[index]
    there = tuple(sites[place] for place in of.tolist())
    return TrainingTable(
        sites=there,
        nodes=nodes[index],
        layout=parts[0].layout.select(of_all[index]),
        memory=_memory_of(parts, number, of_all[index]),
        time=_times(parts).select(index),
        finish_s=finish[index],
        cost_microusd=costs_of(there, nodes[index], finish[index] / 3600.0),
        fastest_s=fastest_s,
    )


def costs_of(sites: Sequence[Site], nodes: NDArray[np.int64], hours: NDArray[np.float64]) -> tuple[int, ...]:
    """(n,) what runs on shapes of some sites cost.  [micro-USD]

    Parameters
    ----------
    sites
        (n,) where each is.
    nodes
        (n,) shapes of each.
    hours
        (n,) of each run.  [h]
    """
    every = Numbered(sites)
    prices = every.whole(lambda site: site.offer.price_microusd_per_hour)
    paid = seconds_of([site.bill for site in every.different], hours, every.number)
    return tuple(rentals_microusd(nodes, prices, hours, paid))


def _allowed(
    question: TrainingQuestion,
    sites: Sequence[Site],
    of: NDArray[np.int64],
    nodes: NDArray[np.int64],
    finish_s: NDArray[np.float64],
    ledger: Ledger,
) -> NDArray[np.int64]:
    """Of runs on some sites those within the limits that concern them alone, and at prices that anybody could pay."""
    caps = ShapeCaps(question.scenario)
    most = np.array([caps.of(site) for site in sites])[of]
    prices = np.array([site.offer.price_microusd_per_hour for site in sites])[of]
    within = nodes <= most
    for place in np.unique(of[~within]).tolist():
        beyond, site = nodes[(of == place) & ~within], sites[place]
        least, cap = int(beyond.min()), caps.of(site)
        text = f"{counted(least, 'shape')} of {site.said}, {cap} allowed"
        ledger.drop("quota", "columns", len(beyond), nearest=text, miss=float(least - cap), on=names_on([site]))
    dear = within & (nodes * (prices / 1e6) * (finish_s / 3600.0) * 1e6 > DEAREST_MICROUSD)
    for place in np.unique(of[dear]).tolist():
        many, text = int(dear[of == place].sum()), f"{sites[place].offer.id}: more than $10,000,000,000"
        ledger.drop("too-dear", "columns", many, nearest=text)
    return np.flatnonzero(within & ~dear)


def _memory_of(parts: Sequence[Part], part: NDArray[np.int64], of_all: NDArray[np.int64]) -> Terms:
    """Of layouts by the memory of the parts that they are of: few parts have another than the first."""
    every = {id(one.memory): one.memory for one in parts}
    if len(every) == 1:
        return parts[0].memory.select(of_all)
    which = np.array([id(one.memory) for one in parts])[part]
    places = [np.flatnonzero(which == number) for number in every]
    terms = Terms.concatenate([memory.select(of_all[some]) for memory, some in zip(every.values(), places)])
    return terms.select(np.argsort(np.concatenate(places)))


def _times(parts: Sequence[Part]) -> Terms:
    """Times of the rows of several parts, one part after the other."""
    known = {id(part.time): part.time for part in parts}
    starts = dict(zip(known, np.cumsum([0, *(len(one.total) for one in known.values())]).tolist()))
    return Terms.concatenate(list(known.values())).select(
        np.concatenate([starts[id(part.time)] + part.places for part in parts])
    )
