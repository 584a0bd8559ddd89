"""Every legal way to run a scenario, listed: what all other answers of the library are found among.

The ways of many workloads are listed in processes of this machine: the same ways as one workload after the other.

Workloads of a model go together, since they share what was looked at. What both sides know already (the catalogs, the
scenario, offers and shapes) is sent to a process once and comes back by its number, so that a way refers to the very
offers that the rest of the session does.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from planner.api.taking import ScenarioLike, catalog_of, checked_share, scenario_of
from planner.architecture.model import Architecture
from planner.candidates.evaluated import Around, Evaluated, Fresh, in_turn
from planner.candidates.patience import Patience, Spent, endless
from planner.candidates.program import SHARE
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.errors import PlanError, Problem, StoppedError
from planner.estimate.recall import Recall
from planner.plan.pins import check_pins
from planner.plan.references import check_references, loader_of
from planner.scenario.schema import TrainingJob
from planner.sweeps.answering import Processes, checked_workers
from planner.sweeps.question import Answered, Question, without_plan

HINT = "leave --workers out, or ask for fewer offers: it may need more memory than there is"


class Beside:
    """Lists workloads in processes beside each other.

    Parameters
    ----------
    workers
        How many at most.

    Raises
    ------
    UsageError
        There cannot be as many.
    """

    def __init__(self, workers: int) -> None:
        self._workers = checked_workers(workers)

    def __call__(self, fresh: Fresh, around: Around, market: Catalog, patience: Patience) -> dict[str, Evaluated]:
        """The ways of each workload; what was found on the way to them is kept for whoever asks next.

        Raises
        ------
        InputError
            A workload cannot be run anywhere, as when it is listed here.
        StoppedError
            A process that was asked ended twice before it answered.
        """
        parts = _parts(fresh, self._workers)
        if len(parts) < 2:
            return in_turn(fresh, around, market, patience)
        listing = _Listing(fresh, replace(around, recall=Recall()), market, patience)
        answers: dict[int, _PartListed] = {}
        with Processes(listing, min(self._workers, len(parts))) as processes:
            for number, answered in processes((n, _Part(names=names)) for n, names in enumerate(parts)):
                answers[number] = _listed(answered)
        ways: dict[str, Evaluated] = {}
        for number in sorted(answers):
            found, learnt = listing.read(answers[number].ways)
            ways |= {name: replace(one, around=around) for name, one in found.items()}
            around.recall.take_over(learnt)
        cut = {name for answered in answers.values() for name in answered.cut}
        patience.cut += [name for name in fresh if name in cut]
        return ways


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(Question):
    """Workloads that one process lists."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartListed(Answered):
    """Their ways, as `_Listing.read` takes them, and which were not looked at to their end; or which are wrong."""

    ways: bytes = b""
    cut: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Listing:
    """Lists parts; it goes to each process once."""

    def __init__(self, fresh: Fresh, around: Around, market: Catalog, patience: Patience) -> None:
        self._fresh, self._around, self._market, self._patience = fresh, around, market, patience

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}

    def __call__(self, question: Question) -> Answered:
        assert isinstance(question, _Part)
        around = replace(self._around, recall=Recall())
        patience = Patience(workloads=self._patience.workloads, spent=self._patience.spent)
        fresh = {name: self._fresh[name] for name in question.names}
        try:
            ways = in_turn(fresh, around, self._market, patience)
        except PlanError as error:
            return _PartListed(row=without_plan("failed", None), problems=error.problems)
        ways = {name: replace(one, around=self._around) for name, one in ways.items()}
        written = io.BytesIO()
        _Pickler(written, self._known).dump((ways, around.recall))
        return _PartListed(row=without_plan("optimal", None), ways=written.getvalue(), cut=tuple(patience.cut))

    def read(self, ways: bytes) -> tuple[dict[str, Evaluated], Recall]:
        """The ways of a part, and what was found on the way, with this side's own offers."""
        found: tuple[dict[str, Evaluated], Recall] = _Unpickler(io.BytesIO(ways), self._known).load()
        return found

    @cached_property
    def _known(self) -> list[object]:
        """What both sides have, in one order."""
        catalogs = (self._around.catalog, self._market)
        parts = [part for one in catalogs for part in (one.offers, one.shapes, one.devices)]
        facts = [each for one in catalogs for each in (*one.offers, *one.shapes.values(), *one.devices.values())]
        asked = [each for pair in self._fresh.values() for each in pair]
        return [self._around, self._around.scenario, *catalogs, *parts, *facts, *asked, *self._around.pools]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, known: Sequence[object]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(one): number for number, one in enumerate(known)}

    def persistent_id(self, one: object) -> int | None:
        return self._numbers.get(id(one))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[object]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, number: int) -> object:
        return self._known[number]


def _listed(answered: Answered) -> _PartListed:
    """What a process answered.

    Raises
    ------
    PlanError
        A workload is wrong.
    StoppedError
        It did not.
    """
    if not isinstance(answered, _PartListed):
        problem = answered.row["problem"]
        assert problem is not None
        raise StoppedError.of(problem["reference"], problem["message"], hint=HINT)
    if answered.problems:
        raise PlanError(*answered.problems)
    return answered


def _parts(fresh: Fresh, workers: int) -> list[tuple[str, ...]]:
    """Workloads by model and kind, those of a model in several parts where there would be less than one a process."""
    groups: dict[tuple[bool, int], list[str]] = {}
    seen: list[Architecture] = []
    for name, (workload, arch) in fresh.items():
        if arch not in seen:
            seen.append(arch)
        groups.setdefault((isinstance(workload, TrainingJob), seen.index(arch)), []).append(name)
    parts = list(groups.values())
    while len(parts) < workers and (largest := max(parts, key=len, default=[]))[1:]:
        half = len(largest) // 2
        parts.append(largest[half:])
        del largest[half:]
    return [tuple(part) for part in parts]


def enumerate_candidates(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    allow_suspect: bool = False,
    every_layout: bool = False,
    known: Candidates | None = None,
    spent: Spent = endless,
    tie_tolerance: float = SHARE,
    workers: int = 1,
) -> Candidates:
    """Every legal way to run every workload, with memory, time and cost; drops are in its ledgers.

    Parameters
    ----------
    known
        Candidates of another scenario: what they have in common with this one is not worked out again.
    spent
        Share of the time for it that is gone: at 1 what is not listed yet is left out.
    tie_tolerance
        Share of the cost within which costs are equal: what else is as cheap is kept.
    workers
        Processes of this machine that list workloads beside each other; the ways are the same.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    """
    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    check_references(scenario, catalog)
    check_pins(scenario, catalog, loader_of(scenario))
    asked: dict[str, Any] = {"allow_suspect": allow_suspect, "every_layout": every_layout, "known": known}
    asked["tie_share"] = checked_share(tie_tolerance)
    if workers != 1:
        from planner.api.listing import Beside

        asked["lists"] = Beside(workers)
    return _enumerate(scenario, catalog, loader_of(scenario), spent=spent, **asked)
