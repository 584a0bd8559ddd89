"""One stage: a criterion minimised over a scope, by price-and-fix, each answer checked in integers.

A relaxation gives a bound, prices of the joint limits and reduced costs; each task alone
at these prices gives a better bound (`ways`) and often the plan itself. Everything that no
equally good plan can use is closed, and what is left is solved in PuLP, the model of record.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, splits_simply
from planner.carriers import dataclass
from planner.optimize.answer import Adapter, Answer, Kept
from planner.optimize.apart import Apart, apart_of
from planner.optimize.build import build
from planner.optimize.check import Verdict, judge, violations
from planner.optimize.criteria import LINEAR, value_of
from planner.optimize.enumerate import Floor, floor_of, is_plan, narrowed, ways_of
from planner.optimize.fleet import cuts_of_point, cuts_of_prices, learn
from planner.optimize.fleets import list_plans, listable
from planner.optimize.incumbent import at_most, known_value
from planner.optimize.large import decomposed
from planner.optimize.model import Model
from planner.optimize.relax import Relaxation, relax
from planner.optimize.ruled_out import rule_out
from planner.optimize.scope import Scope
from planner.optimize.status import Ending, FloatArray, Options, Outcome
from planner.optimize.ways import Prices, Way

__all__ = ["Adapter", "Answer", "Found", "Priced", "Run"]

WHOLE = 150  # columns up to which the whole model goes to the solver at once
ROUTED = 20  # columns up to which flows are variables from the start
ROUNDS, MOST_ROUNDS = 25, 1000  # of lines learned before flows become variables; before giving up
PATIENCE_S = 1.0  # for those rounds
ROOTS, GAIN = 20, 1e-3  # rounds that tighten a relaxation; the relative gain below which they end
CLOSE_CALLS = 8  # points of one model that are ruled out since they break a line by less than a solver can tell
AGAIN = "broke new lines time and again"
CUT_OFF = (Ending.HANG, Ending.INTERRUPT, Ending.ERROR)  # what was told before is all there is
MOST_HELD = 600  # columns up to which plans as good as one are told apart: of more one question may take many seconds
BEST, WIDER = 3, 4  # columns of each task, by reduced cost, in the first small model; as many times more in the second
SHARED = 12  # columns of each task in the first model where workloads in whole units have their price: it is the best


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A criterion minimised: the plan, whether it is proven, and what may still be the answer."""

    answer: Answer
    scope: Scope
    proven: bool = False
    bound: float = -math.inf  # unscaled
    floor: Floor | None = None
    options: list[list[Way]] | None = None  # ways that plans of this value are made of
    value: float = math.inf  # of all plans as good, in a tie as well; scaled as floor and options are
    plans: IntArray | None = None  # all that may be as good


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A model with what its relaxation proves."""

    scope: Scope
    model: Model
    relaxation: Relaxation | None
    prices: Prices | None = None
    floor: Floor | None = None
    apart: Apart | None = None  # of many columns, where their ways are not listed

    @property
    def bound(self) -> float:
        """Best bound, unscaled."""
        bounds = [-math.inf]
        if self.relaxation is not None:
            bounds.append(self.relaxation.bound)
        if self.apart is not None:
            bounds.append(self.apart.bound)
        if self.floor is not None:
            bounds.append(self.floor.bound)
        return max(bounds) / self.model.scale

    def ways(self, value: float) -> list[list[Way]] | None:
        """Ways that plans of at most an unscaled value are made of; None when not known."""
        if self.floor is None or self.prices is None:
            return None
        return ways_of(self.scope, self.prices, self.floor, value * self.model.scale)

    def within(self, value: float, options: list[list[Way]] | None) -> Scope:
        """The scope without units that no plan of at most an unscaled value needs."""
        scope = self.scope
        if self.relaxation is not None:
            upper = np.zeros_like(scope.upper)
            highest = self.relaxation.highest(value * self.model.scale, len(self.model.columns))
            columns = self.model.columns
            upper[columns] = np.minimum(scope.upper[columns], highest.astype(np.int64))
            if self.apart is not None and options is None:
                upper[columns] = self.apart.highest(value * self.model.scale, upper[columns])
            scope = replace(scope, upper=upper)
        if options is not None:
            scope = replace(scope, upper=np.minimum(scope.upper, narrowed(scope, options).upper))
        return scope


@dataclass(slots=True, kw_only=True)
class Run:
    """One call of `optimize`: solvers, clock, what was said."""

    adapters: Sequence[Adapter]
    options: Options
    stop_at: float | None = None
    messages: list[str] = field(default_factory=list)
    routed: tuple[IntArray, Model, FloatArray] | None = None  # last plan that came with flows
    kept: Kept | None = None  # the best plan so far, for when the run ends early
    ties: bool = False  # plans that are as cheap as the cheapest are asked about afterwards
    ties_s: float = 1.0  # for that, at least
    work: float = 0.0  # asked for so far: columns of each model to the power of 1.5, as the time of one grows
    most_work: float = math.inf  # that is asked for

    def minimise(self, scope: Scope, criterion: str, given: IntArray | None = None) -> Found:
        """Best value of a linear criterion over a scope; of the cost with all that is left of plans as cheap.

        Parameters
        ----------
        scope
            All plans that can be the answer.
        criterion
            What is minimised.
        given
            Units of a plan of the scope, where one is known: the first small model is never without one.
        """
        known = known_value(scope, criterion) if _any_split(scope) or _any_boxed(scope) else None
        if known is not None:
            known += self._tie(scope, criterion, known)
            scope = at_most(scope, criterion, known)
        model = build(scope, criterion)
        if model.unfit():
            return Found(answer=Answer(ending=Ending.ERROR, detail=model.unfit()), scope=scope)
        large = decomposed(self, scope, criterion, model)
        if large is not None and large.ending is not Ending.OPTIMAL:
            return Found(answer=large, scope=scope, bound=large.bound)
        priced = self._price(scope, criterion, model)
        if self.kept is not None:
            self.kept.prove(criterion, priced.bound)
        if large is not None:
            return self._prove(priced, criterion, scope, large)
        listed = None if known is None else self._list(priced, criterion, known)
        if listed is not None:
            return listed
        first = scope
        guess = None if priced.floor is None else priced.floor.units
        if guess is not None and is_plan(scope, guess):
            self.keep(guess)
            value = value_of(scope.program, guess, criterion)
            value += self._tie(scope, criterion, value)
            first = priced.within(value, priced.ways(value))
        elif priced.relaxation is not None and len(model.columns) > WHOLE:
            alone = priced.apart is None or self.most_work < math.inf
            best = _most_promising(priced, BEST if alone else SHARED)
            first = scope.only(best if given is None else best | (given > 0))
        answer = self.ask(first, criterion, model=model if first is scope else None)
        if answer.ending is Ending.INFEASIBLE and first is not scope and priced.relaxation is not None:
            first = scope.only(_most_promising(priced, WIDER * BEST))
            answer = self.ask(first, criterion)
        if answer.units is None and first is not scope:
            answer, first = self.ask(scope, criterion), scope
        if answer.units is None:
            return Found(answer=answer, scope=scope)
        return self._prove(priced, criterion, first, answer)

    def tie(self, scope: Scope, cost_microusd: float) -> int:
        """By how much plans may be dearer than a cost and still be as cheap.  [micro-USD]"""
        return scope.program.tie_microusd(int(cost_microusd)) if self.ties else 0

    def _tie(self, scope: Scope, criterion: str, value: float) -> int:
        return self.tie(scope, value) if criterion == "cost" else 0

    def _list(self, priced: Priced, criterion: str, most: int) -> Found | None:
        """The plans of least value of a single fleet, when they can be listed; the solver has the last word on them.

        `most` = value that all of them are within, a tie included.
        """
        if not priced.scope.cuts or not listable(priced.scope, criterion):
            return None
        scope = priced.within(most, None)
        model = build(scope, criterion, flows=False)
        relaxation = relax(model, threads=self.options.threads, stop_at=self.stop_at)
        if relaxation is None:
            return None
        table = model.table()
        lines = [number for number, kind in enumerate(table.kinds) if kind == "price"]
        needs = table.low[lines]
        weighed = np.maximum(relaxation.multipliers[lines] * needs, 0.0)
        as_good = partial(self._tie, scope, criterion)
        listed = list_plans(scope, criterion, relaxation, weighed, most, as_good)
        if listed is None:
            return None
        left = replace(scope, upper=listed.upper)
        answer = self.ask(left.only(listed.plans[0] > 0), criterion)
        if answer.units is None or value_of(scope.program, answer.units, criterion) != listed.value:
            return None
        proven = replace(answer, ending=Ending.OPTIMAL)
        return Found(answer=proven, scope=left, proven=True, bound=float(listed.value), plans=listed.plans)

    def any_plan(self, scope: Scope) -> Answer:
        """Whether a scope has a plan: each task's cheapest way may be one, else a solver is asked."""
        model = build(scope, "cost")
        floor = self._price(scope, "cost", model).floor
        if floor is not None and is_plan(scope, floor.units):
            return Answer(ending=Ending.OPTIMAL, units=floor.units)
        return self.ask(scope, "cost")

    def keep(self, units: IntArray | None) -> None:
        """Remember a checked plan of a part of the scope, which is one of the whole."""
        if self.kept is not None:
            self.kept.offer(units, checked=True)

    def _price(self, scope: Scope, criterion: str, model: Model) -> Priced:
        relaxation = relax(model, threads=self.options.threads, stop_at=self.stop_at)
        if relaxation is not None and model.routes:
            scope.cuts.extend(cuts_of_prices(scope, model, relaxation.multipliers))
            relaxation = self._tightened(scope, model, relaxation)
        if relaxation is None or criterion not in LINEAR:
            return Priced(scope=scope, model=model, relaxation=relaxation)
        prices = Prices.of(model, relaxation)
        floor = floor_of(scope, prices)
        many = floor is None and len(model.columns) > WHOLE
        apart = apart_of(scope.program, model, relaxation, prices) if many else None
        return Priced(scope=scope, model=model, relaxation=relaxation, prices=prices, floor=floor, apart=apart)

    def _tightened(self, scope: Scope, model: Model, relaxation: Relaxation) -> Relaxation:
        """The relaxation with lines of losses that its own point breaks, for as long as that raises the bound."""
        for _ in range(ROOTS):
            new = [cut for cut in cuts_of_point(scope, model, relaxation.point) if not cut.lossless]
            if not new:
                break
            scope.cuts.extend(new)
            learn(model, scope, new)
            better = relax(model, threads=self.options.threads, stop_at=self.stop_at)
            if better is None:
                break
            gain, relaxation = better.bound - relaxation.bound, better
            if gain < GAIN * abs(better.bound):
                break
        return relaxation

    def _prove(self, priced: Priced, criterion: str, first: Scope, answer: Answer) -> Found:
        """Make sure of the answer of a part: whatever can be as good must have been in the model.

        What is left, and the ways, are those of all plans that are as good, in a tie as well.
        """
        program = priced.scope.program
        value = value_of(program, _units(answer), criterion)
        as_good = value + self._tie(priced.scope, criterion, value)
        options = priced.ways(as_good)
        left = priced.within(as_good, options)
        better = left if as_good == value else priced.within(value, priced.ways(value))
        missed = bool((better.upper > first.upper).any())
        if missed:
            second = self.ask(better, criterion)
            if second.units is not None and value_of(program, second.units, criterion) <= value:
                answer, value = second, value_of(program, second.units, criterion)
            elif second.units is not None:  # stopped short of what is known
                answer = replace(answer, ending=second.ending, bound=second.bound)
            else:  # the first plan stands, unproven
                answer = replace(answer, ending=Ending.LIMIT, bound=-math.inf)
        bound = max(priced.bound, answer.bound)
        proven = answer.ending is Ending.OPTIMAL and (self.options.gap == 0 or bound >= value * (1 - 1e-9))
        return Found(
            answer=answer,
            scope=left,
            proven=proven,
            bound=min(bound, float(value)),
            floor=priced.floor,
            options=options,
            value=as_good * priced.model.scale,
        )

    def ask(self, scope: Scope, criterion: str, weights: IntArray | None = None, model: Model | None = None) -> Answer:
        """Solve the model of a criterion; an answer that does not stand is put to the next solver.

        Fleets with many columns are first asked without flows: only with the lines of prices that
        are known, and those that the answers teach. Where that takes many rounds, flows come in.

        Parameters
        ----------
        scope
            What may be in the plan; learns lines on the way.
        criterion
            What is minimised.
        weights
            One per column of the program, in place of those of the criterion.
        model
            That of the scope and criterion with flows, when it has been built already.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C; a plan that was told of until then has been kept.
        """
        work = len(scope.open) ** 1.5
        held = self.most_work < math.inf and len(scope.open) > MOST_HELD
        if held or self.work + work > self.most_work:
            return Answer(ending=Ending.LIMIT, detail="work-limit")
        self.work += work
        doubted: Answer | None = None
        pointed = False  # whether a solver came with a point that does not quite stand
        flows = len(scope.open) <= ROUTED or not _any_split(scope)
        if model is not None and model.routes and (not flows or any(not cut.lossless for cut in scope.cuts)):
            model = None
        for adapter in self.adapters:
            if self.stop_at is not None and time.monotonic() >= self.stop_at:  # a large model takes seconds to build
                return Answer(ending=Ending.LIMIT, detail="time-limit")
            asked = model or build(scope, criterion, weights, flows=flows)
            most = (MOST_ROUNDS, math.inf) if flows else (ROUNDS, PATIENCE_S)
            answer, why = self._ask_one(adapter, scope, asked, *most)
            if answer is None and why == AGAIN and not flows:
                asked = build(scope, criterion, weights, flows=True)
                answer, why = self._ask_one(adapter, scope, asked, MOST_ROUNDS, math.inf)
            if answer is not None and answer.ending is Ending.INFEASIBLE and not adapter.sure_of_infeasible:
                doubted = answer
            elif answer is not None:
                if answer.units is not None and doubted is not None:
                    self.messages.append(f"{doubted.solver} called infeasible what {adapter.name} has a plan for")
                return answer
            else:
                self.messages.append(f"{adapter.name}: the answer {why}")
                pointed |= why.startswith(("(optimal)", "(gap)", "(limit)"))
        if doubted is not None and pointed:  # a no beside a point that misses by a micro-dollar proves nothing
            return Answer(
                ending=Ending.ERROR, detail=f"{doubted.solver} called infeasible what another has a point for"
            )
        return doubted or Answer(ending=Ending.ERROR, detail="no solver gave an answer that stands")

    def _ask_one(
        self, adapter: Adapter, scope: Scope, model: Model, rounds: int, patience_s: float
    ) -> tuple[Answer | None, str]:
        """The answer of one solver, asked again with lines that its plans or points break; or why it is refused."""
        spare, tries = Spare(model=model, scope=scope), CLOSE_CALLS
        while True:
            left = None if self.stop_at is None else self.stop_at - time.monotonic()
            if left is not None and left <= 0:
                return spare.answer(Ending.LIMIT, adapter), ""
            before = time.monotonic()
            outcome = adapter.run(model, _timed(self.options, _least(left, patience_s)))
            patience_s -= time.monotonic() - before
            if outcome.ending in CUT_OFF and outcome.values is not None:
                self.keep(judge(scope, model, outcome).units)
            if outcome.ending is Ending.INTERRUPT:
                raise KeyboardInterrupt
            if patience_s <= 0 and outcome.ending is Ending.LIMIT:
                return None, AGAIN
            bound = -math.inf if outcome.bound is None else outcome.bound / model.scale
            spare.bound = max(spare.bound, bound)
            if outcome.ending is Ending.INFEASIBLE:
                return Answer(ending=Ending.INFEASIBLE, solver=adapter.name), ""
            if outcome.ending is Ending.HANG:
                return Answer(ending=Ending.HANG, detail=outcome.detail), ""
            if outcome.ending is Ending.LIMIT and outcome.values is None:
                return spare.answer(Ending.LIMIT, adapter), ""
            if outcome.ending not in (Ending.OPTIMAL, Ending.GAP, Ending.LIMIT):
                return None, f"({outcome.ending}) was refused: {outcome.detail or 'no words'}"
            verdict = judge(scope, model, outcome)
            self.keep(verdict.units)
            if verdict.units is not None and outcome.values is not None:
                if model.flows:
                    self.routed = (verdict.units, model, outcome.values)
                ending = _ending(outcome, self.options)
                return Answer(ending=ending, units=verdict.units, bound=bound, solver=adapter.name), ""
            known = {cut.key for cut in scope.cuts}
            new = [cut for cut in verdict.cuts if cut.key not in known]
            if verdict.broken is not None and tries and rule_out(model, scope, verdict.broken):
                tries -= 1
                continue
            if not new:
                why = verdict.why or "breaks a line that it was given"
                return None, f"({outcome.ending}) was refused: {why}"
            rounds -= 1
            if rounds < 0 or patience_s <= 0:
                return None, AGAIN
            spare.offer(verdict)
            scope.cuts.extend(new)
            learn(model, scope, new)


@dataclass(slots=True, kw_only=True)
class Spare:
    """A plan for when time runs out: an answer that breaks a loss, with the spares of every type added."""

    model: Model
    scope: Scope
    units: IntArray | None = None
    value: float = math.inf
    bound: float = -math.inf

    def offer(self, verdict: Verdict) -> None:
        """Keep the answer with spares added, if that is a plan and better than the one kept."""
        if verdict.raw is None:
            return
        units = verdict.raw.copy()
        for task in self.scope.program.tasks:
            used = np.flatnonzero(units[task.first : task.stop]) + task.first
            units[used] += -(-task.spare_replicas // np.maximum(self.scope.program.replicas[used], 1))
        costs = self.model.objective[: len(self.model.columns)]
        value = float(costs @ units[self.model.columns])
        if value < self.value and not any(True for _ in violations(self.scope, units)):
            self.units, self.value = units, value

    def answer(self, ending: Ending, adapter: Adapter) -> Answer:
        """What is known when time has run out."""
        if self.units is None:
            return Answer(ending=ending, detail="time-limit")
        return Answer(ending=ending, units=self.units, bound=self.bound, solver=adapter.name)


def _least(left: float | None, patience_s: float) -> float | None:
    return left if patience_s == math.inf else patience_s if left is None else min(left, patience_s)


def _any_split(scope: Scope) -> bool:
    """Whether a fleet's flows can be left out of the model."""
    return any(
        task.kind == "serving" and not (task.boxed or task.integer_slices) and not splits_simply(scope.program, task)
        for task in scope.program.tasks
    )


def _any_boxed(scope: Scope) -> bool:
    """Whether a fleet is told by lines alone."""
    return any(task.boxed and not splits_simply(scope.program, task) for task in scope.program.tasks)


def _ending(outcome: Outcome, options: Options) -> Ending:
    """With no gap asked for, a stop within tolerance is an optimum."""
    return Ending.OPTIMAL if outcome.ending is Ending.GAP and options.gap == 0 else outcome.ending


def _timed(options: Options, left: float | None) -> Options:
    return Options(gap=options.gap, time_limit_s=left, threads=options.threads, seed=options.seed)


def _most_promising(priced: Priced, best: int) -> NDArray[np.bool_]:
    """The relaxation's own columns, the best few of each task, and all that can be bought."""
    assert priced.relaxation is not None
    scope, columns = priced.scope, priced.model.columns
    mask = np.zeros(scope.program.column_count, dtype=bool)
    mask[columns[priced.relaxation.support]] = True
    above = priced.relaxation.reduced[: len(columns)] if priced.apart is None else priced.apart.excess
    for task in scope.program.tasks:
        inside = np.flatnonzero((columns >= task.first) & (columns < task.stop))
        few = len(inside) if task.kind == "optional" else best
        mask[columns[inside[np.argsort(above[inside], kind="stable")[:few]]]] = True
    return mask


def _units(answer: Answer) -> IntArray:
    assert answer.units is not None
    return answer.units
