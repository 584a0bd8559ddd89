"""Machines that a job is looked at on, and what was found there: layouts, which of them fit, the seconds of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.candidates.offers import Site
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.step_distinct import Ways
from planner.estimate.terms import Terms
from planner.estimate.training import OnMachine
from planner.estimate.training_spec import TrainingSpec

Rows = NDArray[np.int64]
Misses: TypeAlias = tuple[tuple[str, int, float], ...]  # reason, how many, and how far off the nearest is


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One physics group and the node counts to try on it."""

    group: list[Site]
    counts: tuple[int, ...]
    spec: TrainingSpec  # the job there
    machine: Machine

    @classmethod
    def of(cls, question: TrainingQuestion, group: list[Site], counts: tuple[int, ...]) -> Search:
        """A group that is looked at for a job.

        Parameters
        ----------
        question
            The job.
        group
            Sites of equal physics; the first of them stands for all.
        counts
            Numbers of shapes to try.
        """
        return cls(group=group, counts=counts, spec=question.spec_on(group[0]), machine=question.machine(group[0]))

    def on(self, rows: Rows) -> OnMachine:
        """Some layouts there."""
        return OnMachine(spec=self.spec, machine=self.machine, rows=rows)

    @property
    def domain(self) -> int:
        """Devices that tensor parallelism may span."""
        return self.group[0].domain

    @property
    def family(self) -> str:
        """Of the device."""
        return self.group[0].device.family

    @property
    def microusd_per_flop(self) -> float:
        """What computing costs at the least price, if at the peak."""
        least = min(site.offer.price_microusd_per_hour for site in self.group) / self.group[0].shape.devices
        peak = float(np.max(self.machine.peak_flop_per_s))
        return least / 3600.0 / peak if peak > 0 else np.inf

    @property
    def device_counts(self) -> list[int]:
        """Devices of each count."""
        return [count * self.group[0].shape.devices for count in self.counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What holds at one confidence on one machine."""

    confidence: float
    time_margin: float
    memory_margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What fits one machine; of layouts that no question takes, as a faster one is there, only how many there are."""

    rows: Rows  # of `Looked.layout`, at any confidence
    nodes: Rows  # shapes of each
    fits: tuple[NDArray[np.bool_], ...]  # by confidence, whether it does
    stands: tuple[Rows, ...]  # by confidence, for how many layouts that fit it stands, itself among them
    step_s: NDArray[np.float64]  # but for rounding; nan where nobody asks, or its tier puts no steps together
    seen: Mapping[int, int]  # layouts that were looked at, by count of shapes; 0 where none is legal
    missed: Mapping[int, Misses]  # at the first confidence, by count of shapes

    def select(self, places: Rows) -> Fit:
        """Some of them."""
        return replace(
            self,
            rows=self.rows[places],
            nodes=self.nodes[places],
            fits=tuple(some[places] for some in self.fits),
            stands=tuple(some[places] for some in self.stands),
            step_s=self.step_s[places],
        )

    def beside(self, other: Fit) -> Fit:
        """Both, of different layouts."""
        return Fit(
            rows=np.concatenate([self.rows, other.rows]),
            nodes=np.concatenate([self.nodes, other.nodes]),
            fits=tuple(np.concatenate(each) for each in zip(self.fits, other.fits)),
            stands=tuple(np.concatenate(each) for each in zip(self.stands, other.stands)),
            step_s=np.concatenate([self.step_s, other.step_s]),
            seen={count: self.seen.get(count, 0) + other.seen.get(count, 0) for count in {**self.seen, **other.seen}},
            missed={
                count: (*self.missed.get(count, ()), *other.missed.get(count, ()))
                for count in {**self.missed, **other.missed}
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Layouts of a job, their memory, and which of them fit which machine."""

    layout: Layout
    memory: dict[str, Terms]  # by `family_alike` of the machines that were looked at
    ways: Ways | None
    on: Mapping[bytes, Fit]  # by digest of the machine

    @property
    def nbytes(self) -> int:
        """Of all arrays, roughly.  [B]"""
        names = len(Layout.__slots__) + sum(len(terms) for terms in self.memory.values()) + 3
        return 8 * names * np.size(self.layout.devices) + sum(42 * len(fit.rows) for fit in self.on.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Layouts that fit the memory of one machine at each confidence, on the counts that are asked for."""

    search: Search
    levels: list[Level]
    rows: Rows  # of `Looked.layout`, at any of them
    nodes: Rows
    places: list[Rows]  # by level, of the rows among these
    stands: list[Rows]  # by level, for how many layouts each of these stands
    step_s: NDArray[np.float64]
    fit: Fit | None = None  # of which they are
