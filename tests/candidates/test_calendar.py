"""Calendars and contracts: each rule by hand, the whole against enumeration on tiny scenarios."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.candidates.calendar import CONTRACT, ON_DEMAND, RUN
from planner.candidates.contracts import block_hours
from planner.candidates.money import cost_microusd
from planner.candidates.search import Candidates, enumerate_candidates
from planner.catalog.model import Catalog, Offer
from planner.optimize.solve import Solution, optimize
from planner.scenario.schema import Scenario
from tests.tiers import settings
from tests.worlds import catalog, fleet, job, offer, scenario

STEP_S = 1000.0  # a period; a job is 6000 device-seconds, so n nodes take ceil(6 / n) periods
HOUR_S = 3600.0


def steps(count: float) -> str:
    return f"{count * STEP_S:g} s"


def block(hours_of_steps: float = 1.0, dollars: float = 0.5, most: float | None = None, **changes: Any) -> Offer:
    """A block of whole periods at half the price."""
    step = hours_of_steps * STEP_S / HOUR_S
    terms = {"min_term_hours": step, "term_step_hours": step, "max_term_hours": most and most * STEP_S / HOUR_S}
    return offer(price_model="block", dollars=dollars, **{**terms, **changes})


def solved(asked: Scenario, own: Catalog) -> tuple[Candidates, Solution]:
    found = enumerate_candidates(asked, own, api.load_model)
    return found, optimize(found.program, cost_only=True)


def cost(asked: Scenario, own: Catalog) -> int | None:
    _, solution = solved(asked, own)
    return solution.cost_microusd if solution.has_plan else None


def taken(candidates: Candidates, solution: Solution, kind: str) -> list[tuple[str, int, int, int]]:
    """(what, first period, period after the last, units) of the purchases of a kind."""
    calendar = candidates.calendar
    assert calendar is not None
    rows = []
    for column in np.flatnonzero(np.asarray(solution.units) > 0).tolist():
        purchase = calendar.purchases[column]
        if purchase is not None and purchase.kind == kind:
            what = purchase.offer.price_model if purchase.offer else f"{purchase.provider}/{purchase.region}"
            rows.append((what, int(calendar.start[column]), int(calendar.stop[column]), int(solution.units[column])))
    return sorted(rows)


def jobs_of(candidates: Candidates, solution: Solution) -> dict[str, list[tuple[int, int, int]]]:
    """Nodes, first period and period after the last of every job."""
    calendar, found = candidates.calendar, dict[str, list[tuple[int, int, int]]]()
    assert calendar is not None
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop):
            if task.kind == "training" and solution.units[column]:
                nodes = int(candidates.program.nodes[column])
                found.setdefault(task.name, []).append((nodes, int(calendar.start[column]), int(calendar.stop[column])))
    return found


def asked(jobs: Sequence[dict[str, Any]], periods: int = 8, **top: Any) -> Scenario:
    return scenario(training=jobs, periods=steps(1), horizon=steps(periods), **top)


RESTARTS = {"mtbf_per_device": "1000 months", "stragglers": 0, "checkpoint_bandwidth": "1 PB/s", "restart": "400 s"}


# ---- each rule -----------------------------------------------------------------------------------


def test_without_new_keys_there_is_no_calendar() -> None:
    own = catalog()
    found = enumerate_candidates(scenario(training=[job()]), own, api.load_model)
    assert found.calendar is None
    assert all(task.kind != "optional" for task in found.program.tasks)


def test_a_calendar_of_one_period_is_the_program_without_one() -> None:
    """Columns, costs and rows: quotas, devices, power, budget."""
    own = catalog(offers=[offer(), offer(region="r2", dollars=0.7), offer(price_model="spot", dollars=0.3)])
    jobs, fleets = [job("a", deadline="5000 s"), job("b", deadline="6000 s", count=2)], [fleet(qpm=6000)]
    top: dict[str, Any] = {
        "horizon": "6000 s",
        "hardware": {"quotas": [{"region": "r2", "max_shapes": 3}], "pricing": ["on_demand", "spot"],
                     "spot": {"interruptions": "0.05 /h"},
                     "owned": [{"shape": "north/one", "count": 1, "price": "$0.1/h"}]},
        "limits": {"max_devices": 24, "power": "12 kW", "budget": "$1000", "spend": "$50/h"},
    }  # fmt: skip
    plain = enumerate_candidates(scenario(training=jobs, serving=fleets, **top), own, api.load_model)
    timed = enumerate_candidates(scenario(training=jobs, serving=fleets, periods="6000 s", **top), own, api.load_model)
    assert timed.calendar is not None
    assert timed.calendar.periods == 1
    assert [row.name for row in timed.program.rows] == [row.name for row in plain.program.rows]
    assert [row.bound for row in timed.program.rows] == [row.bound for row in plain.program.rows]
    assert [row.label for row in timed.program.rows] == [row.label for row in plain.program.rows]
    one, other = optimize(plain.program), optimize(timed.program)
    assert (one.status, one.cost_microusd) == (other.status, other.cost_microusd)
    assert one.has_plan


def test_jobs_take_turns_under_a_quota() -> None:
    """At once they need two nodes each for three steps; one after the other four nodes for two."""
    jobs = [job("a", deadline="4000 s"), job("b", deadline="4000 s")]
    hardware = {"quotas": [{"max_shapes": 4}]}
    found, solution = solved(asked(jobs, hardware=hardware), catalog())
    used = np.zeros(8, dtype=int)
    for rows in jobs_of(found, solution).values():
        for nodes, start, stop in rows:
            used[start:stop] += nodes
    assert solution.status == "optimal"
    assert used.max() <= 4
    assert cost(asked([job("a", deadline="2000 s"), job("b", deadline="2000 s")], hardware=hardware), catalog()) is None


def test_starts_respect_release_and_deadline() -> None:
    found, _ = solved(
        asked([job("a", start="1500 s", deadline="3500 s")], hardware={"quotas": [{"max_shapes": 9}]}), catalog()
    )
    calendar = found.whole_calendar
    assert calendar is not None
    assert int(calendar.start.min()) == 2  # the first period that begins at 1500 s or later
    assert (found.whole.finish_s <= 5000 + 1e-6).all()
    assert (found.whole.finish_s >= calendar.start * STEP_S).all()  # of the plan's time, not of the job's
    assert (calendar.stop <= 5).all()


def test_what_comes_after_waits() -> None:
    jobs = [job("b", after=["a", "c"]), job("a", deadline="3000 s"), job("c", deadline="2000 s")]
    found, solution = solved(asked(jobs), catalog())
    when = jobs_of(found, solution)
    assert when["b"][0][1] >= max(when["a"][0][2], when["c"][0][2])
    late = [job("b", after="a", deadline="3000 s"), job("a", deadline="3000 s")]
    tight = {"quotas": [{"max_shapes": 2}]}  # three periods each
    assert cost(asked(late, hardware=tight), catalog()) is None
    assert cost(asked([job("b", deadline="3000 s")], hardware=tight), catalog()) is not None


@pytest.mark.parametrize("kind", [("fixed", "elastic"), ("elastic", "fixed"), ("elastic", "elastic")])
def test_orders_hold_for_jobs_that_pause(kind: tuple[str, str]) -> None:
    """Two nodes: three periods each, so b ends in the sixth."""
    jobs = [
        job("a", schedule=kind[0], failures="none", deadline="6000 s"),
        job("b", schedule=kind[1], failures="none", after="a", deadline="6000 s"),
    ]
    found, solution = solved(asked(jobs, hardware={"quotas": [{"max_shapes": 2}]}), catalog())
    assert solution.status == "optimal"
    runs = {name: [t for n, t in running(found, solution) if n == name] for name in ("a", "b")}
    assert max(runs["a"]) < min(runs["b"])
    shorter = [jobs[0] | {"deadline": "5000 s"}, jobs[1] | {"deadline": "5000 s"}]
    assert cost(asked(shorter, hardware={"quotas": [{"max_shapes": 2}]}), catalog()) is None


def running(candidates: Candidates, solution: Solution) -> Iterator[tuple[str, int]]:
    """Job and period of everything that runs."""
    calendar = candidates.calendar
    assert calendar is not None
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop):
            purchase = calendar.purchases[column]
            if not solution.units[column] or calendar.pausable[column]:
                continue
            name = purchase.workload if purchase else task.name
            if purchase is None or purchase.kind == RUN:
                yield from ((name, period) for period in range(int(calendar.start[column]), int(calendar.stop[column])))


def test_a_job_that_pauses_makes_room() -> None:
    """Two nodes; b must have both for three periods in the middle, and a needs three more."""
    rigid = [job("b", start="2000 s", deadline="3000 s", failures="none"), job("a", deadline="6000 s", failures="none")]
    limit = {"quotas": [{"max_shapes": 2}]}
    assert cost(asked(rigid, 6, hardware=limit), catalog()) is None
    found, solution = solved(asked([rigid[0], rigid[1] | {"schedule": "elastic"}], 6, hardware=limit), catalog())
    assert solution.status == "optimal"
    assert sorted(t for name, t in running(found, solution) if name == "a") == [0, 1, 5]
    assert solution.cost_microusd == 2 * cost_microusd(2, 1_000_000, 3000 / HOUR_S)


def test_a_job_that_may_pause_pauses_for_a_reason_only() -> None:
    """Three periods at one price: the first ones that there are, save where another job has the nodes."""

    def periods(*jobs: dict[str, Any]) -> list[int]:
        question = asked(jobs, hardware={"quotas": [{"max_shapes": 2}]})
        found = enumerate_candidates(question, catalog(), api.load_model)
        return [period for name, period in running(found, optimize(found.program)) if name == "a"]

    elastic = job("a", deadline="5000 s", failures="none", schedule="elastic")
    rigid = job("b", start="1000 s", deadline="3000 s", failures="none")
    assert periods(elastic) == [0, 1, 2]
    assert periods(elastic | {"start": "2000 s", "deadline": "5000 s"}) == [2, 3, 4]
    assert periods(elastic | {"deadline": "8000 s"}, rigid) == [0, 4, 5]


def test_the_earliest_finish_is_that_of_the_last_period_of_a_job_that_may_pause() -> None:
    """The nodes are another job's in the middle: three of its periods around that end with the sixth."""
    elastic = job("a", deadline="9000 s", failures="none", schedule="elastic")
    rigid = job("b", start="1000 s", deadline="3000 s", failures="none")
    question = asked([elastic, rigid], 9, hardware={"quotas": [{"max_shapes": 2}]}, objective="time")
    found = enumerate_candidates(question, catalog(), api.load_model)
    solution = optimize(found.program)
    assert [period for name, period in running(found, solution) if name == "a"] == [0, 4, 5]
    assert dict(solution.stages)["time"] == 6 * STEP_S


def test_a_restart_takes_time_of_every_running_period() -> None:
    """3000 s and a hair of work: in periods of which 1, 400 or 600 s go into restarts; each fourth is another job's."""
    own, limit = catalog(), {"quotas": [{"max_shapes": 2}]}
    quiet = {"mtbf_per_device": "1000 months", "stragglers": 0, "scale_loss": 0, "checkpoint_bandwidth": "1 PB/s"}
    spans = {}
    for restart in ("1 s", "400 s", "600 s"):
        asked_job = job(schedule="elastic", failures={**quiet, "restart": restart}, deadline="15000 s")
        others = [
            job(f"b{n}", start=f"{n}000 s", deadline="1000 s", failures="none", tokens="0.3B") for n in (3, 7, 11)
        ]
        found, solution = solved(asked([asked_job, *others], 15, hardware=limit), own)
        spans[restart] = sum(name == asked_job["name"] for name, _ in running(found, solution))
    assert spans == {"1 s": 4, "400 s": 6, "600 s": 8}


@pytest.mark.parametrize(("dollars", "bought"), [(0.3, True), (0.74, True), (0.76, False)])
def test_a_commitment_pays_from_its_break_even_on(dollars: float, bought: bool) -> None:
    """Two nodes for three periods of a term of four: 8 x fee against 6 on demand."""
    term: dict[str, Any] = {"min_term_hours": 4 * STEP_S / HOUR_S, "max_term_hours": 4 * STEP_S / HOUR_S}
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=dollars, **term)])
    hardware = {"pricing": ["on_demand", "commitment_1y"]}
    found, solution = solved(asked([job(deadline="3000 s", failures="none")], 4, hardware=hardware), own)
    assert taken(found, solution, CONTRACT) == ([("commitment_1y", 0, 4, 2)] if bought else [])
    expected = 8 * dollars if bought else 6.0
    assert solution.cost_microusd == pytest.approx(expected * 1e6 * STEP_S / HOUR_S, abs=4)


def test_a_fee_beyond_the_horizon_counts_as_asked() -> None:
    """A year at half the price over eight periods: full never pays, prorated always does."""
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.5)])
    for rule, share in (("full", 1.0), ("prorate", 0.5)):
        hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": rule, "quotas": [{"max_shapes": 2}]}
        found, solution = solved(
            asked([job(deadline="3000 s", failures="none"),
                   job("b", start="3000 s", deadline="3000 s", failures="none")], 6, hardware=hardware), own
        )  # fmt: skip
        assert solution.cost_microusd == pytest.approx(share * cost_microusd(12, 1_000_000, STEP_S / HOUR_S), abs=4)
        contracts = taken(found, solution, CONTRACT)
        assert contracts == ([("commitment_1y", 0, 6, 2)] if rule == "prorate" else [])
        if rule == "prorate":
            assert found.calendar is not None
            bought = next(one for one in found.calendar.purchases if one and one.kind == CONTRACT)
            assert (bought.hours, bought.fee_microusd, bought.prorated) == (8760, 8760 * 500_000, True)


def test_reserved_nodes_are_topped_up_on_demand_for_whole_periods() -> None:
    """One node may be committed; the second of two is taken on demand, three times for a whole period."""
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.1, max_shapes=1)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"}
    found, solution = solved(asked([job(failures="none", deadline="3000 s")], 3, hardware=hardware), own)
    assert taken(found, solution, CONTRACT) == [("commitment_1y", 0, 3, 1)]
    assert taken(found, solution, ON_DEMAND) == [("on_demand", t, t + 1, 1) for t in range(3)]
    assert solution.cost_microusd == pytest.approx(3.3e6 * STEP_S / HOUR_S, abs=8)


def test_a_quota_on_demand_counts_whole_periods_too() -> None:
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.1, max_shapes=1)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"}
    fits = {**hardware, "quotas": [{"price_model": "on_demand", "max_shapes": 1}]}
    none = {**hardware, "quotas": [{"price_model": "on_demand", "max_shapes": 0}]}
    jobs = [job(failures="none", deadline="3000 s")]
    assert cost(asked(jobs, 3, hardware=fits), own) is not None
    assert cost(asked(jobs, 3, hardware=none), own) is None
    one, both = ({**hardware, "quotas": [{"max_shapes": most}]} for most in (1, 2))  # of all kinds, at one time
    assert cost(asked(jobs, 3, hardware=one), own) is None
    found, solution = solved(asked(jobs, 3, hardware=both), own)
    assert taken(found, solution, CONTRACT) == [("commitment_1y", 0, 3, 1)]
    two = {**hardware, "quotas": [{"price_model": "commitment_1y", "max_shapes": 0}]}
    found, solution = solved(asked(jobs, 3, hardware=two), own)
    assert taken(found, solution, CONTRACT) == []


def test_blocks_come_in_whole_steps() -> None:
    day = block(1)
    week = offer(price_model="block", min_term_hours=24.0, term_step_hours=24.0, max_term_hours=4368.0)
    assert block_hours(week, 1.0) == 24
    assert block_hours(week, 24.5) == 48
    assert block_hours(week, 4369.0) is None
    assert block_hours(day, STEP_S / HOUR_S) == pytest.approx(STEP_S / HOUR_S)


def test_owned_machines_come_and_go() -> None:
    """From 2000 s to 5000 s: exactly the periods 2, 3 and 4."""
    for until, there in (("2026-12-01 01:23:20", True), ("2026-12-01 01:23:19", False)):
        owned = {"shape": "north/one", "count": 2, "price": "$0/h", "from": "2026-12-01 00:33:20", "until": until}
        hardware = {"owned": [owned], "quotas": [{"max_shapes": 0}]}
        jobs = [job(failures="none", deadline="8000 s")]
        found, solution = solved(asked(jobs, begin="2026-12-01", hardware=hardware), catalog())
        assert jobs_of(found, solution) == ({"job": [(2, 2, 5)]} if there else {})


def test_flex_waits_before_it_runs() -> None:
    """Two nodes: 3000 s of work after 2000 s in the queue."""
    own = catalog(offers=[offer(), offer(price_model="flex", dollars=0.4, max_shapes=2)])
    hardware = {"pricing": ["on_demand", "flex"], "flex": {"wait": "2000 s"}}
    cheap = cost_microusd(2, 400_000, 3000 / HOUR_S)
    assert cost(asked([job(failures="none", deadline="5000 s")], hardware=hardware), own) == cheap
    assert cost(asked([job(failures="none", deadline="4999 s")], hardware=hardware), own) == pytest.approx(2.5 * cheap)
    own = catalog(offers=[offer(), offer(price_model="flex", dollars=0.4, max_shapes=2, max_term_hours=0.8)])
    assert cost(asked([job(failures="none", deadline="5000 s")], hardware=hardware), own) == pytest.approx(2.5 * cheap)


def test_flex_is_no_place_for_a_fleet() -> None:
    own = catalog(offers=[offer(), offer(price_model="flex", dollars=0.4)])
    hardware = {"pricing": ["on_demand", "flex"], "flex": {"wait": "2000 s"}}
    asked_fleet = scenario(serving=[fleet()], periods="1 week", hardware=hardware)
    found = enumerate_candidates(asked_fleet, own, api.load_model)
    assert {site.offer.price_model for site in found.tables["fleet"].sites} == {"on_demand"}
    assert any(drop.reason == "flex" for drop in found.ledgers["fleet"])


def test_fleets_share_what_jobs_reserve() -> None:
    """One node serves all week; its commitment is used by the fleet throughout and pays for itself."""
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.6)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"}
    asked_both = scenario(serving=[fleet()], periods="1 week", horizon="4 weeks", hardware=hardware)
    found, solution = solved(asked_both, own)
    assert taken(found, solution, CONTRACT) == [("commitment_1y", 0, 4, 1)]
    assert solution.cost_microusd == cost_microusd(1, 600_000, 4 * 168)


def test_a_late_commitment_is_not_bought_by_the_week() -> None:
    """Only the last of eight periods is needed: a year from there on counts in full, even where fees are prorated."""
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.5)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"}
    found, solution = solved(asked([job(failures="none", start="7000 s", deadline="1000 s")], hardware=hardware), own)
    assert taken(found, solution, CONTRACT) == []
    assert solution.has_plan


# ---- newsvendor ----------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([0, 1, 2, 4]), min_size=4, max_size=9).filter(any),
    st.integers(min_value=1, max_value=19),
)
@settings(max_examples=30, few=12)
def test_the_best_reservation_is_a_quantile_of_the_load(load: list[int], percent: int) -> None:
    """optimisation.md 4.8: with a fixed load the flat reservation is its (1 - fee / on demand)-quantile."""
    fee, hours, size = 50_000 * percent, STEP_S / HOUR_S, len(load)
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=fee / 1e6)])
    jobs = [  # n nodes for all but a thousandth of one period
        job(f"j{t}", failures="none", start=steps(t), deadline=steps(1), tokens=f"{0.999 * n / 6:.9f}B")
        for t, n in enumerate(load)
        if n
    ]
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"}
    found, solution = solved(asked(jobs, size, hardware=hardware), own)

    def total(reserved: int) -> float:
        return hours * (reserved * fee * size + 1_000_000 * sum(max(n - reserved, 0) for n in load))

    demand = sorted(load)
    place = int(np.ceil((1 - percent / 20) * size - 1e-9))  # the smallest with F(demand) >= 1 - fee / on demand
    quantile = demand[place - 1] if place else 0
    assert total(quantile) == pytest.approx(min(total(r) for r in range(6)))
    assert solution.cost_microusd == pytest.approx(total(quantile), rel=2e-3)
    bought = sum(units * (stop - start) for _, start, stop, units in taken(found, solution, CONTRACT)) / size
    assert total(int(bought)) == pytest.approx(total(quantile), rel=2e-3)


# ---- against enumeration -------------------------------------------------------------------------


@dataclass(frozen=True)
class Tiny:
    """A calendar small enough to try everything."""

    periods: int
    jobs: tuple[tuple[int, int, int], ...]  # device-steps of work, start and deadline in steps
    order: bool  # the last job comes after the first
    quota: int  # on demand, of metered and of whole periods together
    term: int  # of the contract, in periods
    fee: int  # micro-dollars an hour
    most: int  # contracts at one time

    @property
    def scenario(self) -> Scenario:
        names = [f"j{i}" for i in range(len(self.jobs))]
        jobs = [
            job(name, failures="none", tokens=f"{0.999 * work / 6:.9f}B", start=steps(start) if start else "0 s",
                deadline=steps(deadline))
            for name, (work, start, deadline) in zip(names, self.jobs)
        ]  # fmt: skip
        jobs = [{key: value for key, value in one.items() if value != "0 s"} for one in jobs]
        if self.order and len(jobs) > 1:
            jobs[-1]["after"] = names[0]
        hardware = {"pricing": ["on_demand", "calendar"],
                    "quotas": [{"price_model": "on_demand", "max_shapes": self.quota}]}  # fmt: skip
        return asked(jobs, self.periods, hardware=hardware)

    @property
    def catalog(self) -> Catalog:
        hours = self.term * STEP_S / HOUR_S
        contract = offer(price_model="calendar", dollars=self.fee / 1e6, min_term_hours=hours, max_term_hours=hours,
                         max_shapes=self.most)  # fmt: skip
        return catalog(offers=[offer(), contract])

    def best(self) -> int | None:
        """The least cost by trying every run of every job and every purchase."""
        tables = enumerate_candidates(self.scenario, self.catalog, api.load_model).tables
        ways = [list(self._runs(tables[f"j{i}"], *one[1:])) for i, one in enumerate(self.jobs)]
        costs = [self._cost(chosen) for chosen in itertools.product(*ways) if self._in_order(chosen)]
        return min((one for one in costs if one is not None), default=None)

    def _runs(self, table: Any, start: int, deadline: int) -> Iterator[Run]:
        fewest: dict[int, int] = {}  # of reserved nodes, more for as many periods are of no use
        for row, site in enumerate(table.sites):
            nodes, length, reserved = (
                int(table.nodes[row]),
                float(table.finish_s[row]) / STEP_S,
                site.offer.id[0] == "r",
            )
            span = int(np.ceil(length - 1e-9))
            if reserved and fewest.setdefault(span, nodes) < nodes:
                continue
            for first in range(start, self.periods):
                if first + length <= min(start + deadline, self.periods) + 1e-9:
                    yield Run(reserved, nodes, first, first + span, length)

    def _in_order(self, chosen: Sequence[Run]) -> bool:
        return not self.order or len(chosen) < 2 or chosen[-1].first >= chosen[0].stop

    def _cost(self, chosen: Sequence[Run]) -> int | None:
        metered, need = np.zeros(self.periods, dtype=int), np.zeros(self.periods, dtype=int)
        total = 0
        for run in chosen:
            (need if run.reserved else metered)[run.first : run.stop] += run.nodes
            total += 0 if run.reserved else cost_microusd(run.nodes, 1_000_000, run.length * STEP_S / HOUR_S)
        if (metered > self.quota).any():
            return None
        supply = self._supply(tuple(need), tuple(self.quota - metered))
        return None if supply is None else total + supply

    def _supply(self, need: tuple[int, ...], room: tuple[int, ...]) -> int | None:
        """Contracts at every start, and nodes for whole periods within the quota."""
        fee = cost_microusd(1, self.fee, self.term * STEP_S / HOUR_S)
        period = cost_microusd(1, 1_000_000, STEP_S / HOUR_S)
        best = None
        for bought in itertools.product(range(min(max(need), self.most) + 1), repeat=self.periods):
            have = [sum(bought[max(t - self.term + 1, 0) : t + 1]) for t in range(self.periods)]
            if max(have) > self.most:
                continue
            short = [max(n - h, 0) for n, h in zip(need, have)]
            if all(s <= r for s, r in zip(short, room)):
                total = fee * sum(bought) + period * sum(short)
                best = total if best is None else min(best, total)
        return best


@dataclass(frozen=True)
class Run:
    reserved: bool
    nodes: int
    first: int
    stop: int
    length: float  # in periods


@st.composite
def tiny_calendars(draw: st.DrawFn) -> Tiny:
    periods = draw(st.integers(min_value=2, max_value=4))
    jobs = []
    for _ in range(draw(st.integers(min_value=1, max_value=2))):
        start = draw(st.integers(min_value=0, max_value=periods - 1))
        deadline = draw(st.integers(min_value=1, max_value=periods - start))
        jobs.append((draw(st.integers(min_value=1, max_value=6)), start, deadline))
    return Tiny(
        periods=periods,
        jobs=tuple(jobs),
        order=draw(st.booleans()),
        quota=draw(st.integers(min_value=0, max_value=3)),
        term=draw(st.integers(min_value=1, max_value=3)),
        fee=draw(st.integers(min_value=2, max_value=11)) * 100_000,
        most=draw(st.integers(min_value=1, max_value=3)),
    )


@given(tiny_calendars())
@settings(max_examples=60, few=25)
def test_tiny_calendars_against_everything_tried(tiny: Tiny) -> None:
    assert cost(tiny.scenario, tiny.catalog) == tiny.best()


# ---- laws ----------------------------------------------------------------------------------------


@given(tiny_calendars(), st.sampled_from(["quota", "most", "deadline", "order", "fee"]))
@settings(max_examples=30, few=12)
def test_more_freedom_never_costs_more(tiny: Tiny, what: str) -> None:
    freer = {
        "quota": {"quota": tiny.quota + 1},
        "most": {"most": tiny.most + 1},
        "order": {"order": False},
        "fee": {"fee": tiny.fee - 100_000},
        "deadline": {"jobs": tuple((w, s, min(d + 1, tiny.periods - s)) for w, s, d in tiny.jobs)},
    }[what]
    before = cost(tiny.scenario, tiny.catalog)
    other = replace(tiny, **freer)  # type: ignore[arg-type]
    after = cost(other.scenario, other.catalog)
    assert before is None or (after is not None and after <= before)


@given(tiny_calendars())
@settings(max_examples=15, few=7)
def test_finer_periods_never_cost_more_without_contracts(tiny: Tiny) -> None:
    """Halved periods keep every start and hold less: what fits in whole ones fits in halves."""
    own = catalog()
    data = tiny.scenario.resolved
    whole = cost(scenario(**{**plain(data), "hardware": {"quotas": [{"max_shapes": max(tiny.quota, 1)}]}}), own)
    halves = {**plain(data), "periods": steps(0.5), "hardware": {"quotas": [{"max_shapes": max(tiny.quota, 1)}]}}
    finer = cost(scenario(**halves), own)
    assert whole is None or (finer is not None and finer <= whole)


def plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in ("schema", "name")}


@given(tiny_calendars(), st.randoms(use_true_random=False))
@settings(max_examples=15, few=7)
def test_the_order_of_jobs_and_offers_changes_nothing(tiny: Tiny, random: Any) -> None:
    """Same cost, same jobs at the same time, same purchases."""
    data, own = plain(tiny.scenario.resolved), tiny.catalog
    shuffled = [dict(random.sample(list(one.items()), len(one))) for one in data["training"]]
    random.shuffle(shuffled)
    found = []
    for jobs, offers in ((data["training"], own.offers), (shuffled, own.offers[::-1])):
        candidates = enumerate_candidates(
            scenario(**{**data, "training": jobs}), replace(own, offers=tuple(offers)), api.load_model
        )
        solution = optimize(candidates.program)
        kinds = [taken(candidates, solution, kind) for kind in (CONTRACT, ON_DEMAND)] if solution.has_plan else []
        when = dict(sorted(jobs_of(candidates, solution).items())) if solution.has_plan else {}
        found.append((solution.status, solution.cost_microusd, when, kinds))
    assert found[0] == found[1]


def test_the_shipped_portfolio_is_of_a_size_that_can_be_proven() -> None:
    asked_plan = api.load_scenario(Path(__file__).parents[2] / "scenarios" / "portfolio.yaml")
    assert (len(asked_plan.training), len(asked_plan.serving), asked_plan.periods) == (20, 5, 26)
    found = enumerate_candidates(asked_plan, api.load_catalog(), api.load_model)
    assert found.calendar is not None
    assert {pool.shape for pool in found.calendar.pools} == {"aws/p4d.24xlarge", "aws/p5.48xlarge"}
    kinds = {one.kind for one in found.calendar.purchases if one}
    assert kinds == {CONTRACT, ON_DEMAND, "copy", RUN}
    assert {o.price_model for pool in found.calendar.pools for o in pool.contracts} == {"block", "commitment_1y"}
    assert found.program.column_count < 20_000
    assert all(task.first < task.stop for task in found.program.tasks)


@given(tiny_calendars(), st.integers(min_value=1, max_value=2), st.sampled_from(["none", RESTARTS]))
@settings(max_examples=25, few=10)
def test_a_job_that_may_pause_never_costs_more(tiny: Tiny, count: int, failures: Any) -> None:
    """Every plan of rigid jobs is one of jobs that may pause, whatever a restart takes; also of several alike."""
    data = plain(tiny.scenario.resolved)
    if tiny.order and len(tiny.jobs) > 1:
        count = 1  # jobs with a count stand in no order
    rigid = [{**one, "count": count, "failures": failures} for one in data["training"]]
    before = cost(scenario(**{**data, "training": rigid}), tiny.catalog)
    loose = [{**one, "schedule": "elastic"} for one in rigid]
    after = cost(scenario(**{**data, "training": loose}), tiny.catalog)
    assert before is None or (after is not None and after <= before)


def test_a_contract_counts_as_spending_in_every_hour_of_its_term() -> None:
    """Two nodes at 40 cents are 80 cents an hour; 79 leave one node, which is too slow."""
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.4)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate",
                "quotas": [{"price_model": "on_demand", "max_shapes": 0}]}  # fmt: skip
    jobs = [job(failures="none", deadline="3000 s")]
    for spend, fits in (("$0.8/h", True), ("$0.79/h", False)):
        found, solution = solved(asked(jobs, 3, hardware=hardware, limits={"spend": spend}), own)
        assert solution.has_plan == fits
        names = [row.name for row in found.program.rows if row.name.startswith("limits")]
        assert names == ["limits.spend@0", "limits.spend@1"]  # the third period is as the second


def test_the_budget_counts_whole_fees() -> None:
    own = catalog(offers=[offer(), offer(price_model="commitment_1y", dollars=0.0001)])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "quotas": [{"price_model": "on_demand", "max_shapes": 0}]}
    jobs = [job(failures="none", deadline="3000 s")]
    fee = 2 * 8760 * 0.0001
    assert cost(asked(jobs, 3, hardware=hardware, limits={"budget": f"${fee:.3f}"}), own) == round(fee * 1e6)
    assert cost(asked(jobs, 3, hardware=hardware, limits={"budget": f"${fee - 0.001:.3f}"}), own) is None
