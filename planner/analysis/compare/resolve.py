"""Solving the questions between two: as few as can be, each as cheaply as can be.

Ways to run the workloads are listed once for each set of scenario keys and facts that is applied, with the offers of
both catalogs; where only prices differ, and which offers there are, the same ways are priced anew
(`candidates.reprice` has the proof), which takes a hundredth of the time.

*What need not be solved.* Let x be the best plan of a question, proven best with no rates lowered on the way.

1. A change of an offer that no workload can run on, or that the scenario does not allow, leaves every column as it is:
   the program is the same.
2. A change that only makes plans *dearer* that use some offer, or forbids them, leaves x the best when x does not use
   it: x costs what it did and keeps every limit; any other plan costs what it did, or more, and keeps no limit that it
   did not keep. In the tie rule the criteria before and after the cost stay as they are, so the plans that come before
   x are not more than before: none. This holds for any number of such changes at once.

Both hold from A forwards (a change applied to A) and from B backwards (a change taken out of B: there the price that
rose falls back, so a change that made something cheaper is the one that need not be tried).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from planner.analysis.compare.changes import PRICED, Between, Change
from planner.analysis.compare.outcome import Outcome, outcome_of
from planner.candidates.offers import usable_offers
from planner.candidates.reprice import closed, offers_in_play, repriceable, repriced
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.estimate.market import market
from planner.optimize.solve import Solution
from planner.scenario.schema import Scenario

Prepare = Callable[[Candidates], Candidates]
Question = frozenset[int]
MOST_SOLVES, MOST_LISTINGS = 500, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How candidates are listed and solved; the planner's own way, handed in from above."""

    enumerate: Callable[[Scenario, Catalog], Candidates]
    solve: Callable[[Candidates, Prepare], tuple[Candidates, Solution]]


class ExhaustedError(Exception):
    """As many questions as may be were solved."""


@dataclass(slots=True, kw_only=True)
class Resolver:
    """Answers questions between two, each once."""

    between: Between
    engine: Engine
    most_solves: int = MOST_SOLVES
    most_listings: int = MOST_LISTINGS
    solves: int = 0
    listings: int = 0
    skipped: dict[str, set[int]] = field(default_factory=lambda: {"unusable": set(), "dearer": set()})
    _answers: dict[tuple[Question, tuple[tuple[str, int], ...]], Outcome] = field(default_factory=dict)
    _listed: dict[Question, Candidates | str] = field(default_factory=dict)

    @property
    def every(self) -> Question:
        """All changes: the question of B."""
        return frozenset(range(len(self.between.changes)))

    def outcome(self, chosen: Collection[int], prices: Mapping[str, int] | None = None) -> Outcome:
        """The best plan of A with some changes, and with some prices of its own.

        Raises
        ------
        ExhaustedError
            Too many questions were asked.
        """
        key = frozenset(chosen), tuple(sorted((prices or {}).items()))
        if key not in self._answers:
            self._answers[key] = self._solved(key[0], prices or {})
        return self._answers[key]

    def candidates(self, chosen: Question, prices: Mapping[str, int]) -> Candidates | str:
        """Candidates of a question and nothing else; or why there are none."""
        rest = frozenset(number for number in chosen if self.between.changes[number].kind not in PRICED)
        listed = self._family(rest)
        if isinstance(listed, str):
            return listed
        catalog = self.between.catalog(chosen, prices=prices)
        if not repriceable(listed):
            return self._enumerated(rest, catalog)
        asked = repriced(listed, market(listed.scenario, catalog))
        return closed(asked, self._absent(listed, catalog))

    def _absent(self, listed: Candidates, catalog: Catalog) -> frozenset[str]:
        """Offers of the catalogs that the question does not have; what the scenario brings itself stays."""
        known, there = self.between.offer_names, {offer.id for offer in catalog.offers}
        return frozenset(name for name in offers_in_play(listed) if name in known and name not in there)

    def _solved(self, chosen: Question, prices: Mapping[str, int]) -> Outcome:
        if self.solves >= self.most_solves:
            raise ExhaustedError
        self.solves += 1
        asked = self.candidates(chosen, prices)
        if isinstance(asked, str):
            return Outcome(status="invalid", problem=asked)
        answered, solution = self._put(asked, chosen, prices)
        return outcome_of(answered, solution, untouched=answered is asked)

    def _put(self, asked: Candidates, chosen: Question, prices: Mapping[str, int]) -> tuple[Candidates, Solution]:
        """Solve; whenever rates are lowered on the way and columns listed anew, what is not to be had stays closed."""

        def prepare(again: Candidates) -> Candidates:
            return closed(again, self._absent(again, self.between.catalog(chosen, prices=prices)))

        return self.engine.solve(asked, prepare)

    def answered(self, chosen: Question) -> tuple[Candidates, Solution] | None:
        """The candidates of a question as they were solved, and their plan; None when there is none."""
        asked = self.candidates(chosen, {})
        if isinstance(asked, str):
            return None
        answered, solution = self._put(asked, chosen, {})
        return (answered, solution) if solution.has_plan else None

    def _family(self, rest: Question) -> Candidates | str:
        """Every way under some scenario keys and facts, on the offers of both catalogs."""
        if rest not in self._listed:
            self._listed[rest] = self._enumerated(rest, self.between.catalog(rest, every_offer=True))
        return self._listed[rest]

    def _enumerated(self, rest: Question, catalog: Catalog) -> Candidates | str:
        if self.listings >= self.most_listings:
            raise ExhaustedError
        self.listings += 1
        try:
            return self.engine.enumerate(self.between.scenario(rest), catalog)
        except InputError as error:
            return error.problems[0].message

    def _in_play(self, listed: Candidates) -> frozenset[str]:
        """Offers that some workload can run on; where prices shape what is listed, all that the scenario allows."""
        if repriceable(listed):
            return offers_in_play(listed)
        allowed = usable_offers(listed.scenario, listed.catalog, allow_suspect=self.between.allow_suspect)
        return frozenset(offer.id for offer in allowed)

    def alone(self, numbers: Collection[int]) -> Outcome | None:
        """A with these changes alone; None when they need not be tried: see the module."""
        return self._tried(frozenset(numbers), frozenset(), lambda change: change.dearer)

    def without(self, numbers: Collection[int]) -> Outcome | None:
        """B without these changes; None when they need not be tried."""
        return self._tried(frozenset(numbers), self.every, lambda change: change.cheaper)

    def _tried(self, numbers: Question, start: Question, harmless: Callable[[Change], bool]) -> Outcome | None:
        begun = self.outcome(start)
        matter = frozenset(number for number in numbers if not self._idle(number, start, begun, harmless))
        # those that are idle are idle together; with others that matter they may not be
        return self.outcome(start ^ numbers) if matter else None

    def _idle(self, number: int, start: Question, begun: Outcome, harmless: Callable[[Change], bool]) -> bool:
        """Whether a change leaves the plan of a start as it is: claims 1 and 2."""
        change = self.between.changes[number]
        if change.kind not in PRICED:
            return False
        listed = self._family(frozenset(n for n in start if self.between.changes[n].kind not in PRICED))
        if isinstance(listed, str):
            return False
        if change.id not in self._in_play(listed):
            self.skipped["unusable"].add(number)
            return True
        if harmless(change) and begun.settled and change.id not in begun.used:
            self.skipped["dearer"].add(number)
            return True
        return False
