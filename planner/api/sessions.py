"""A scenario that is asked several things: its ways are listed once, and kept for whatever is asked next.

The one place that holds candidates between two questions: `solve`, `asked`, `margins` and `compare` are sessions of
one question each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from planner.analysis.beside import NO_TIME, beside_plan, despite_ctrl_c
from planner.analysis.certified import proves_best
from planner.analysis.standing import standing_of
from planner.analysis.tighten import on_exact_rates, solve_within_targets
from planner.answers import Plan
from planner.api.checking import case_problems
from planner.api.listing import enumerate_candidates
from planner.api.taking import catalog_of, checked_count, checked_limit, checked_share, document_of, scenario_of
from planner.brief import brief
from planner.candidates.patience import LATEST, endless
from planner.candidates.plainer import Plainer
from planner.candidates.program import SHARE
from planner.candidates.reprice import cost_at, repriceable
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.catalog.model import Catalog
from planner.checks.verify import verify as _verify
from planner.deadline import Deadline, TimeIsUp, due, is_up
from planner.errors import PlanError, UsageError
from planner.estimate.market import market
from planner.optimize.class_mixes import better_mixes, mixes_may_help, within_looser_limits
from planner.optimize.process import worked_s
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import STOPS, Status, as_far_as_listed, uninterrupted
from planner.plan.document import build_document, resealed, with_simulation
from planner.plan.pins import check_pins, demand_ways
from planner.plan.plainest import plainest
from planner.plan.plan_files import read_document
from planner.plan.references import load_model, loader_of
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.analysis.others.other_plans import Previous, Staying
    from planner.analysis.why.model import BreakEvenRow, LayoutPrice, MarginalValue, WhyNot
    from planner.api.taking import PlanLike, ScenarioLike
    from planner.candidates.cases import Case
    from planner.optimize.limited import Asker
    from planner.plan.model.others import Infeasible, NearOptimal, Others
    from planner.plan.model.plan import PlanDocument

Answer = tuple[Candidates, Solution]
ANSWER_SHARE = 0.7  # of the time that is left then, for rates that plans rest on; the rest is for the certificate
LISTING_SHARE = 0.7  # of the time that is left until a deadline; what is not listed by then is left out
SOLVERS_PART = 0.7  # of a gap that is asked for: the certificate proves less than the solver, and is what a plan says
AT_ONCE = 4  # workloads of a plan that is checked and written down in the second that is kept back for it
TELLING_S = 0.05  # of a processor, from which on it tells how busy the machine is
ASKED = ("solver", "time_limit_s", "threads", "seed")  # options of further programs


def _spent(limit: Deadline, cases: int, number: int) -> float:
    """Share of its part of the time that is gone for a case; of a module, so that other processes can be told."""
    return limit.spent() * cases - (number - 1)


class Session:
    """A scenario and a catalog, with every way to run the one on the other.

    Parameters
    ----------
    scenario
        Or the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    allow_suspect
        Use prices that look wrong, too.
    solver, gap, time_limit_s, threads, seed
        As for `planner.solve`. The time limit is that of each call, of making the session too; a deadline in place of
        seconds is one of all calls together.
    tie_tolerance
        As for `planner.solve`.
    workers
        Processes of this machine that list workloads beside each other; sessions made from this one list by themselves.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    """

    def __init__(
        self,
        scenario: ScenarioLike,
        catalog: Catalog | None = None,
        *,
        allow_suspect: bool = False,
        solver: str = "highs",
        gap: float = 0.0,
        time_limit_s: float | Deadline | None = None,
        threads: int = 1,
        seed: int = 0,
        tie_tolerance: float = SHARE,
        workers: int = 1,
        candidates: Candidates | None = None,
        known: Candidates | None = None,
    ) -> None:
        self.scenario: Scenario = scenario_of(scenario)
        self.catalog: Catalog = catalog or catalog_of(self.scenario)
        self.allow_suspect, self.tie_tolerance, self.workers = allow_suspect, checked_share(tie_tolerance), workers
        self.options: dict[str, Any] = {"solver": solver, "gap": checked_share(gap, "the gap", 1.0)}
        self.options |= {"threads": checked_count(threads, "threads", 1), "seed": checked_count(seed, "the seed")}
        self._time_limit, self._slowness = checked_limit(time_limit_s), 1.0
        self._listing: Deadline | None = None
        self._begin(lists=True)
        began_s = time.process_time()
        self.candidates: Candidates = candidates or self._first_listed(known)
        self.listed_s = time.process_time() - began_s  # of a processor, to list the ways
        self.solved_s = self.listed_s  # and to solve, once that is done
        self._answer: Answer | None = None
        self._plainer: tuple[Solution, Answer | None] | None = None  # the cheapest plan, and the plainer one beside it

    def _begin(self, *, lists: bool = False) -> None:
        """A call begins, and the time for it, which one that only lists may use for that; a deadline runs already."""
        limit, shared = Deadline.of(self._time_limit), isinstance(self._time_limit, Deadline)
        self.options["time_limit_s"] = None if limit is None else due(limit.slowed(self._slowness))
        if limit is not None and (lists or not shared):
            self._listing = limit.portion(1.0 / LATEST if lists and not shared else LISTING_SHARE)

    def _first_listed(self, known: Candidates | None) -> Candidates:
        """The ways of the scenario; under a time limit also how long a plan takes to be written down."""
        limit: Deadline | None = self.options["time_limit_s"]
        if limit is None:
            return self._listed(self.scenario, 1, self.catalog, known)
        before_s, worked_s = limit.clock(), time.process_time()
        found = self._listed(self.scenario, 1, self.catalog, known)
        took_s, worked_s = limit.clock() - before_s, time.process_time() - worked_s
        busy = max(took_s / worked_s, 1.0) if worked_s > TELLING_S else 1.0
        parts = max(len(self.scenario.workloads) / AT_ONCE, 1.0)
        self._slowness = busy * parts * (1 + len(self.scenario.uncertainty))
        self.options["time_limit_s"] = due(limit.slowed(self._slowness))
        return found

    def with_(self, changes: Mapping[str, Any] | str | None = None, /, **more: Any) -> Session:
        """A session of the scenario with some values changed, as `Scenario.with_`.

        Workloads that the change does not concern are not evaluated again.
        """
        return self.on(self.scenario.with_(changes, **more))

    def on(self, scenario: Scenario) -> Session:
        """A session of another scenario in the same way; what it has in common with this one is taken from here."""
        own = self.scenario.hardware.catalog
        catalog = self.catalog if scenario.hardware.catalog == own else catalog_of(scenario)
        return self.beside(scenario, catalog)

    def beside(
        self, scenario: Scenario, catalog: Catalog, *, known: Session | None = None, seed: int | None = None
    ) -> Session:
        """A session of another scenario and catalog, asked in the same way.

        Parameters
        ----------
        known
            What the scenario has in common with this session is taken from there; default: from this one.
        seed
            Of the solver; default: the same.
        """
        self._begin(lists=True)
        listed = self._listed(scenario, 1, catalog, known=(known or self).candidates)
        asked: dict[str, Any] = {**self.options, "time_limit_s": self._time_limit, "tie_tolerance": self.tie_tolerance}
        asked["seed"] = self.options["seed"] if seed is None else seed
        return Session(scenario, catalog, allow_suspect=self.allow_suspect, candidates=listed, **asked)

    @property
    def time_limit_s(self) -> float | Deadline | None:
        """Of each call, as it was given; a deadline is one of all calls together."""
        return self._time_limit

    def solve(
        self,
        *,
        simulate: bool = False,
        previous: Previous | PlanLike | None = None,
        best: int = 0,
        within: float | None = None,
        ways_out: bool = True,
    ) -> Plan:
        """The cheapest plan, proven and verified; parameters and errors are those of `planner.solve`.

        Parameters
        ----------
        simulate
            Also run the chosen replicas of fleets in a simulation, with the same seed.
        previous
            A plan to stay with where that costs nothing, or `Previous`: where that costs little; None: none.
        best
            Also list that many of the best different decisions; 0 = none.
        within
            Also tell the fewest and the most of each device in plans that cost at most this share more; None: no.
        ways_out
            Look for ways out where nothing meets every limit, which takes longest then; `repairs` finds them later.

        Raises
        ------
        UsageError
            `best` or `within` is no such number; or other plans are asked for, or one to stay with, and there are
            several futures; or one to stay with, and there are mixes within a job or another first objective.
        InputError
            Nothing fits a layout that is fixed, where another one would do; or `previous` holds no plan.
        StoppedError
            No solver could be run.
        PlanError
            The verifier refuses the plan: a bug.
        """
        best = checked_count(best, "best")
        within = None if within is None else checked_share(within, "within", math.inf)
        self._begin()
        scenario, catalog, began_s = self.scenario, self.catalog, worked_s()
        demand_ways(self.candidates, lambda other: self.search(other, every_layout=True))
        if scenario.uncertainty and (best or within is not None):
            hint = "leave uncertainty, or --best and --within, out"
            raise UsageError.of("not-together", "other plans are those of one future, not of several", hint=hint)
        staying = self._staying(previous)
        if staying is not None:
            document = self._planned_beside(staying)
        elif scenario.uncertainty:
            document = self._planned_for_cases(ways_out=ways_out)
        else:
            answer = self.answer()  # which may find more ways
            document = self._planned(self.ways, *answer, plain=True, ways_out=ways_out)
        problems = despite_ctrl_c(
            lambda: (
                _verify(document, catalog, load_model, self.candidates.recall)
                + (standing_of(document, self.ways).problems if self._stands(document) else [])
                + (case_problems(document, catalog, self.candidates.recall) if scenario.uncertainty else [])
            )
        )
        if problems:
            raise PlanError(*problems)
        self.solved_s = self.listed_s + worked_s() - began_s
        whole = self._with_what_was_asked(document, simulate, staying, best, within)
        return Plan(document=whole)

    def least_microusd(self) -> int | None:
        """What the plan that `solve` gives costs, without writing it down; None where none is proven.  [micro-USD]"""
        self._begin()
        candidates, solution = self.answer()
        if solution.status is not Status.OPTIMAL:
            return None
        proposed = self._proposed(candidates, solution)
        return (solution if proposed is None else proposed[1]).cost_microusd

    def cost_at(self, catalog: Catalog) -> int | None:
        """What the plan that `solve` gives costs at the prices of another catalog; None: it is not proven.  [micro-USD]

        Raises
        ------
        UsageError
            Which ways there are depends on prices: contracts, mixes within a job, several futures, schedules.
        InputError
            The other catalog lacks an offer of the plan.
        """
        self._begin()
        if not repriceable(self.candidates):
            text = (
                "what standing still costs is not told of contracts, mixes within a job, schedules and several futures"
            )
            raise UsageError.of(
                "not-together", text, hint="leave them out of the scenario, or read the best of each day"
            )
        candidates, solution = self.answer()
        if solution.status is not Status.OPTIMAL:
            return None
        candidates, solution = self._proposed(candidates, solution) or (candidates, solution)
        there = market(self.scenario, catalog)
        return cost_at(candidates, solution.units, there)

    def _stands(self, document: PlanDocument) -> bool:
        """Whether something is claimed to be proven, or there is time to see how much is."""
        return document["certificate"] is not None or not is_up(self.options["time_limit_s"])

    def _with_what_was_asked(
        self, document: PlanDocument, simulate: bool, staying: Staying | None, best: int, within: float | None
    ) -> PlanDocument:
        """The plan with other plans and the simulation, as far as there is time."""
        asked = (staying is not None or best or within is not None) and STOPS["interrupt"] not in document["warnings"]
        parts = {"other plans": asked, "the simulation": simulate}
        try:
            if asked and not is_up(self.options["time_limit_s"]):
                document = self._with_others(document, staying, best, within)
                parts.pop("other plans")
            if simulate and not is_up(self.options["time_limit_s"]):
                from planner.analysis.simulated import simulated_rows

                rows = simulated_rows(document, self.catalog, load_model, seed=self.options["seed"])
                document = with_simulation(document, rows)
                parts.pop("the simulation")
        except TimeIsUp:
            pass
        missing = [part for part, wanted in parts.items() if wanted]
        if not missing:
            return document
        return resealed({**document, "warnings": [*document["warnings"], f"{NO_TIME}: {', '.join(missing)}"]})

    def marginal_values(self) -> list[MarginalValue]:
        """What one step more of each limit saves, each by solving again; nothing without a plan.  [micro-USD]"""
        from planner.analysis.why.marginals import marginal_values

        self._begin()
        candidates, solution = self._plain
        return marginal_values(candidates, solution, self.search, self._asker) if solution.has_plan else []

    def break_even(self) -> list[BreakEvenRow]:
        """What forcing each device that is not chosen costs, and the price at which it would be chosen."""
        from planner.analysis.why.break_evens import break_even_prices

        self._begin()
        return break_even_prices(*self._plain, self._asker)

    def why_not(self, device: str, *, workload: str | None = None) -> list[WhyNot]:
        """Why a device is not in the plan, by workload: dearer by how much, or impossible and what came nearest.

        Machines that are owned are asked by their shape, an entry a group, or by place: "hardware.owned[0]".

        Raises
        ------
        InputError
            The catalog has no such device, or several go by that name.
        """
        from planner.analysis.why.why_not import Asked, groups_named, why_not
        from planner.catalog.names import one_device

        self._begin()
        things = groups_named(self.scenario, device) or [Asked(name=one_device(self.catalog, device))]

        told = (why_not(*self._plain, thing, self.search, workload=workload, asker=self._asker) for thing in things)
        return [entry for entries in told for entry in entries]

    def layout_price(self, layout: str, *, workload: str | None = None) -> list[LayoutPrice]:
        """What each workload costs in a layout, "tp2 pp1 zero-3", beside the plan; or why it cannot be.

        Parameters
        ----------
        workload
            Only this one.
        """
        from planner.analysis.why.layouts import layout_price

        document = self.solve().document
        self._begin()

        def listed(scenario: Scenario) -> Candidates:
            check_pins(scenario, self.catalog, loader_of(scenario))
            found = self.search(scenario)
            demand_ways(found, lambda other: self.search(other, every_layout=True))
            return found

        names = (one.name for one in self.scenario.workloads if workload in (None, one.name))
        return [layout_price(document, self.scenario, name, layout, listed, self.solved) for name in names]

    def repairs(self) -> Infeasible | None:
        """Conflict set and ways out, as the plan document has them; None unless proven infeasible."""
        from planner.analysis.why.infeasible import infeasibility

        self._begin()
        candidates, solution = self._plain
        return infeasibility(candidates, self.search, **self.options) if solution.status == "infeasible" else None

    def __repr__(self) -> str:
        solved = self._answer[1].status if self._answer else "not solved yet"
        return brief("Session", self.scenario.name, f"catalog {self.catalog.name}", solved)

    def _repr_html_(self) -> str:
        return str(self.candidates._repr_html_())

    @cached_property
    def ways(self) -> Candidates:
        """The candidates with every mix of offers within a job that a best plan may use."""
        return self.mixed(self.candidates)

    def answer(self) -> Answer:
        """The best plan, and the ways that it was chosen among; kept for the next question."""
        if self._answer is None:
            limit: Deadline | None = self.options["time_limit_s"]
            limit = limit and limit.portion(ANSWER_SHARE)
            found = solve_within_targets(self.ways, self.solved, prepare=self.mixed, limit=limit)
            if found[1].stopped_by == "interrupt":
                return found  # the next one who asks may wait for all of it
            self._answer = self._at_better_mixes(found)
        return self._answer

    def _at_better_mixes(self, found: Answer) -> Answer:
        """The best plan with mixes of classes of requests with which fleets are cheaper among the ways; or the same.

        Where limits leave no plan, those of the cheapest within looser ones: with cheaper fleets there may be one.
        """
        limit: Deadline | None = self.options["time_limit_s"]
        none = found[1].status is Status.INFEASIBLE
        if is_up(limit) or (found[1].status is not Status.OPTIMAL and not (none and mixes_may_help(found[0]))):
            return found
        try:
            free = solve_within_targets(within_looser_limits(found[0]), self.solved, limit=limit) if none else found
            mixes = better_mixes(*free, over=lambda: is_up(limit)) if free[1].status is Status.OPTIMAL else None
            if not mixes:
                return found
            listed = self._enumerated(self.scenario, self.candidates, more_mixes=mixes)
            ways = self.mixed(listed)
            again = solve_within_targets(ways, self.solved, prepare=self.mixed, limit=limit)
        except (TimeIsUp, KeyboardInterrupt):
            return found
        if again[1].status is not Status.OPTIMAL or not (none or again[1].cost_microusd < found[1].cost_microusd):
            return found
        self.candidates, self.__dict__["ways"] = listed, ways
        return again

    def solved(self, candidates: Candidates, *, cost_only: bool = False) -> Solution:
        """The best plan of the columns as they are, proven as far as they are all; `cost_only`: any of its cost."""
        asked = {**self.options, "gap": SOLVERS_PART * self.options["gap"]}
        found = optimize(candidates.program, cost_only=cost_only, **asked)
        solution = as_far_as_listed(found, candidates.cut)
        if candidates.unlisted is None:
            return solution
        from planner.optimize.mixing import within_bound

        return within_bound(solution, candidates.unlisted)

    def mixed(self, candidates: Candidates) -> Candidates:
        """Candidates with every mix of offers within a job that a best plan may use."""
        if not candidates.spaces or candidates.scenario.uncertainty:
            return candidates
        from planner.optimize.mixing import with_mixes_that_matter

        try:
            return with_mixes_that_matter(candidates, proves_best, **self.options)
        except TimeIsUp:
            return replace(candidates, cut=tuple(candidates.spaces))

    def search(self, scenario: Scenario, *, patience_s: float | None = None, every_layout: bool = False) -> Candidates:
        """The ways of another scenario, those past its deadlines too when there is patience.

        Parameters
        ----------
        scenario
            On the catalog of this session; what both have in common is taken from here.
        patience_s
            Keep ways to train that take so long, past the deadline; None: only those that are on time.  [s]
        every_layout
            Keep layouts that a faster one on the same machines dominates.
        """
        limit, known = self.options["time_limit_s"], self.candidates
        asked: dict[str, Any] = {"patience_s": patience_s, "every_layout": every_layout}
        asked["spent"] = limit.spent if isinstance(limit, Deadline) else endless
        return self._enumerated(scenario, known, more_mixes=known.more_mixes, **asked)

    def _enumerated(self, scenario: Scenario, known: Candidates, **asked: Any) -> Candidates:
        """The ways of a scenario at the prices and ties of this session."""
        own: dict[str, Any] = {"allow_suspect": self.allow_suspect, "tie_share": self.tie_tolerance}
        return _enumerate(scenario, self.catalog, loader_of(scenario), known=known, **own, **asked)

    @cached_property
    def _plain(self) -> Answer:
        """The answer to further questions, which weigh no mixes within a job: all of them list ways without."""
        if self.ways is self.candidates:
            return self.answer()
        return solve_within_targets(self.candidates, self.solved)

    @property
    def _asker(self) -> Asker:
        """How further programs are solved."""
        from planner.optimize.limited import Asker

        return Asker(options={key: value for key, value in self.options.items() if key in ASKED})

    def _planned(
        self, listed: Candidates, candidates: Candidates, solution: Solution, *, plain: bool = False, **asked: bool
    ) -> PlanDocument:
        """The plan document of a solution, with what is worked out beside it; `plain`: of a plainer one, if near."""
        options = {**self.options, "allow_suspect": self.allow_suspect, **asked}
        beside, solution = beside_plan(listed, candidates, solution, search=self.search, **options)
        told = {name: options[name] for name in ("seed", "threads", "gap")}
        limit: Deadline | None = options["time_limit_s"]
        proposed = self._proposed(candidates, solution) if plain else None
        return despite_ctrl_c(
            lambda: build_document(
                candidates, solution, proposed=proposed, weighed=plain, **beside, **told, over=lambda: is_up(limit)
            )
        )

    def _proposed(self, candidates: Candidates, solution: Solution) -> Answer | None:
        """The plan in plainer layouts that costs little more than the cheapest, and its ways; None: the cheapest."""
        limit: Deadline | None = self.options["time_limit_s"]
        if not solution.has_plan or solution.stopped_by == "interrupt" or is_up(limit):
            return None
        if self._plainer is not None and self._plainer[0] is solution:
            return self._plainer[1]

        def search(plainer: Plainer) -> Candidates:
            return self._enumerated(self.scenario, candidates, plainer=plainer, more_mixes=candidates.more_mixes)

        def solved(ways: Candidates, ready: Callable[[Candidates], Candidates], cost_only: bool) -> Answer:
            return solve_within_targets(ready(ways), partial(self.solved, cost_only=cost_only), prepare=ready)

        try:
            found = plainest(candidates, solution, search, solved)
        except (TimeIsUp, KeyboardInterrupt):
            return None
        self._plainer = (solution, None if found[1] is solution else found)
        return self._plainer[1]

    def _planned_beside(self, staying: Staying) -> PlanDocument:
        """The plan that stays with another one: what would be proposed without that, where it changes no more nodes."""
        listed, best = self.answer()
        if best.has_plan:
            staying.best = best
            stays = solve_within_targets(
                staying.ready(self.ways), staying.solved, prepare=staying.ready, rank=staying.rank
            )
            staying.proven = Status.OPTIMAL is best.status is stays[1].status
            proposed = self._proposed(listed, best) or (listed, best)
            if stays[1].has_plan and staying.changes(*stays) < staying.changes(*proposed):
                return self._planned(self.ways, *stays)
        return self._planned(self.ways, listed, best, plain=True)

    def _planned_for_cases(self, *, ways_out: bool) -> PlanDocument:
        """The plan of a scenario that may turn out in several ways."""
        from planner.analysis.uncertain import listed_cases, solve_cases

        def listed(scenario: Scenario, number: int) -> Candidates:
            known = self.candidates
            return known if number == 1 else self._listed(scenario, number, self.catalog, known=known)

        def again(settings: Sequence[str]) -> list[Case]:
            changed = with_settings(self.scenario, list(settings))
            return listed_cases(changed, lambda scenario, number: self._listed(scenario, number, self.catalog))

        cases = listed_cases(self.scenario, listed)

        def planned(ready: Candidates, solve: Callable[[Candidates], Solution]) -> PlanDocument:
            found = solve_within_targets(ready, solve)
            return self._planned(ready, *found, ways_out=ways_out, compared=ready is cases[0].candidates)

        def whole(asked: Candidates, options: Mapping[str, Any]) -> Solution:
            # one case alone is no answer: Ctrl-C ends them all
            return uninterrupted(as_far_as_listed(optimize(asked.program, **options), asked.cut))

        return solve_cases(self.scenario, cases, planned, whole, self.options, again=again)

    def _listed(self, scenario: Scenario, number: int, catalog: Catalog, known: Candidates | None = None) -> Candidates:
        """The ways of a scenario, as case of that number; each has an equal part of the time until a deadline."""
        limit, cases = self._listing, 1 + len(self.scenario.uncertainty)
        spent = endless if limit is None else partial(_spent, limit, cases, number)
        own: dict[str, Any] = {"allow_suspect": self.allow_suspect, "tie_tolerance": self.tie_tolerance}
        return enumerate_candidates(scenario, catalog, workers=self.workers, known=known, spent=spent, **own)

    def _staying(self, previous: Previous | PlanLike | None) -> Staying | None:
        """The way to solve that stays with a plan, when one is given."""
        if previous is None:
            return None
        from planner.analysis.others.other_plans import Previous, Staying

        if self.scenario.uncertainty or self.scenario.objective[0] != "cost":
            hint = "leave --previous out, or solve the scenario without uncertainty and with cost first"
            raise UsageError.of(
                "not-together", "staying with a plan is weighed against the least cost of one future", hint=hint
            )
        if self.scenario.mixes:
            hint = "leave --previous out, or mix_within_job"
            raise UsageError.of("not-together", "what a mix within a job changes is not counted yet", hint=hint)
        if not isinstance(previous, Previous):
            previous = Previous(document=document_of(previous))
        read_document(previous.document)
        return Staying(previous=previous, options=self.options)

    def _with_others(
        self, document: PlanDocument, staying: Staying | None, best: int, within: float | None
    ) -> PlanDocument:
        """The plan with what else could be done, under a new seal."""
        from planner.analysis.others.other_plans import decisions_document, near_optimal_document, previous_document

        def verified(plan: PlanDocument) -> None:
            if problems := _verify(plan, self.catalog, load_model, self.candidates.recall):
                raise PlanError(*problems)

        listed, options = self.ways, self.options

        def near_optimal(candidates: Candidates) -> NearOptimal | None:
            return near_optimal_document(candidates, within or 0.0, options)

        others: Others = {
            "decisions": decisions_document(listed, best, verified, options) if best else None,
            "near_optimal": None if within is None else on_exact_rates(listed, near_optimal)[1],
            "previous": previous_document(staying, document) if staying is not None else None,
        }
        return resealed({**document, "others": others})
