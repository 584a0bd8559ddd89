"""Spot until an hour, then on demand: the cheapest plan against every hour of the grid, tried one by one.

Brute force takes from the product how long each number of shapes takes for the whole job, and nothing of how parts of
it follow each other: shares of the work, quantiles of preempted runs, increments of bills and limits are written out.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import product
from statistics import NormalDist
from typing import Any, NamedTuple

from planner import api
from planner.candidates.search import enumerate_candidates
from planner.candidates.training import TrainingTable
from planner.candidates.training_choice import busy_s
from planner.candidates.training_question import TrainingQuestion
from planner.catalog.model import Catalog, Provider, RuleError
from planner.estimate.run import checkpoint_bytes_of, run_figures
from planner.scenario.schema import Scenario
from tests.tiers import cases, while_time_lasts
from tests.verified import errors
from tests.worlds import SEEN, catalog, device, job, offer, scenario, shape

SEEDS, CALENDARS = cases(12, 200), cases(10, 150)
CONFIDENCES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95}


class Way(NamedTuple):
    """What one job holds at most on spot, on demand, and of both at one time, in shapes."""

    spot: int
    on_demand: int
    most: int


class World(NamedTuple):
    catalog: Catalog
    data: dict[str, Any]
    devices: int
    spot_quota: int
    on_demand_quota: int
    max_devices: int
    confidence: float
    restart_s: float
    warning_s: float
    interruptions_per_s: float

    def asked(self, **changes: Any) -> Scenario:
        jobs = [{**one, **changes} for one in self.data["training"]]
        return scenario(jobs, **{key: value for key, value in self.data.items() if key != "training"})


def world(seed: int) -> World:
    draw = random.Random(seed)
    devices = draw.choice([1, 2, 8])
    spot_price = draw.uniform(0.2, 0.9)
    made = catalog(
        [device()], [shape("north/one", devices=devices)],
        [offer(dollars=1.0 * devices), offer(dollars=round(spot_price * devices, 4), price_model="spot")],
    )  # fmt: skip
    step, boot = draw.choice([(1.0, 0.0), (60.0, 300.0), (3600.0, 600.0)])
    seller = Provider(id="north", kind="cloud", capacity="", billing_step_s=step, minimum_s=draw.choice([0.0, 7200.0]),
                      provenance=SEEN, boot_s=boot, boot_provenance=SEEN)  # fmt: skip
    made = replace(made, providers={"north": seller} if draw.random() < 0.7 else {})
    if draw.random() < 0.6:
        band = RuleError(
            device="plain",
            family="half",
            runs=5,
            median=0.08,
            mean=0.1,
            max=0.3,
            bias=0.0,
            elsewhere="",
            provenance=SEEN,
        )
        made = replace(made, rule_error=band)
    hours, count = draw.randint(5, 60), draw.choice([1, 1, 2])
    per_hour, warning, restart = draw.choice([0.01, 0.1, 0.5, 2.0]), draw.choice([0, 30, 120]), draw.randint(1, 40)
    spot_quota, on_demand_quota, most = draw.randint(1, 6), draw.randint(4, 24), draw.randint(8, 30)
    confidence = draw.choice(sorted(CONFIDENCES))
    jobs = []
    for number in range(count):
        needed = draw.uniform(0.6, 5.0) * devices  # devices that would be done just in time
        tokens = needed * hours * 3600.0 / 6000.0
        jobs.append(job(f"job{number}", tokens=f"{tokens:.4f}B", deadline=f"{hours} h", confidence=confidence,
                        failures=draw.choice(["none", {"mtbf_per_device": "2000 h", "restart": "7 min"}]),
                        **({"checkpoint_every": "20 min"} if draw.random() < 0.5 else {})))  # fmt: skip
    data = {
        "training": jobs,
        "prefer": "cheapest",
        "limits": {"max_devices": most * devices},
        "hardware": {
            "pricing": ["on_demand", "spot"],
            "spot": {"interruptions": f"{per_hour} /h", "restart": f"{restart} min",
                     **({"warning": f"{warning} s"} if warning else {})},
            "quotas": [{"price_model": "spot", "max_shapes": spot_quota},
                       {"price_model": "on_demand", "max_shapes": on_demand_quota}],
        },
    }  # fmt: skip
    return World(made, data, devices, spot_quota, on_demand_quota, most * devices, CONFIDENCES[confidence],
                 60.0 * restart, float(warning), per_hour / 3600.0)  # fmt: skip


class Whole(NamedTuple):
    """A whole job on some shapes."""

    spot: bool
    nodes: int
    batch: int
    seconds: float
    margin: float  # of the error band
    rate_per_s: float  # at which it is taken away
    loss_s: float
    width_s: float
    lost_share: float
    checkpoint_s: float
    price: int


def wholes(one: World, name: str) -> list[Whole]:
    """The fastest way of each offer on each number of shapes, late or not."""
    found = enumerate_candidates(one.asked(switch_within_job=False), one.catalog, api.load_model, patience_s=1e7,
                                 pruned=False)  # fmt: skip
    table, question = found.tables[name], found.questions[name]
    assert isinstance(table, TrainingTable)
    assert isinstance(question, TrainingQuestion)
    best: dict[tuple[bool, int], int] = {}
    for row, site in enumerate(table.sites):
        key = site.spot, int(table.nodes[row])
        if key not in best or table.finish_s[row] < table.finish_s[best[key]]:
            best[key] = row
    ways = []
    for (spot, nodes), row in best.items():
        site = table.sites[row]
        spec, busy = question.spec_on(site), float(busy_s(table.time)[row])
        delta = every = lost = written = 0.0
        if spec.run is not None:
            size = checkpoint_bytes_of(question.arch, spec)
            figures = run_figures(busy, nodes * one.devices, size, spec.run)
            delta, every = float(figures.checkpoint_s), float(figures.interval_s)
            lost = float(figures.lost_share + figures.restart_share)
            hosts = math.ceil(nodes * one.devices / min(one.devices, 8))
            written = size / (2e9 * hosts)
        warned = one.warning_s >= delta
        ways.append(
            Whole(
                spot=spot, nodes=nodes, batch=int(table.layout.global_batch[row]), seconds=float(table.finish_s[row]),
                margin=question.band(site).time_margin(one.confidence), checkpoint_s=written, lost_share=lost,
                rate_per_s=nodes * one.interruptions_per_s if spot else 0.0, width_s=0.0 if warned else every,
                loss_s=(min(delta, every / 2) if warned else every / 2) + one.restart_s,
                price=site.offer.price_microusd_per_hour,
            )
        )  # fmt: skip
    return ways


def longer(one: World, way: Whole, mean_s: float) -> float:
    """Time of a run of some mean length at the confidence, errors of the prediction aside."""
    z = max(NormalDist().inv_cdf(one.confidence), 0.0)
    variance = way.rate_per_s * mean_s * (way.loss_s**2 + way.width_s**2 / 12.0)
    return mean_s + z * math.sqrt(variance) / (1.0 - way.lost_share)


def surely(one: World, way: Whole, within_s: float) -> float:
    """Mean length of the run that is done within a time, by halving."""
    low, high = 0.0, within_s
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if longer(one, way, middle) <= within_s else (low, middle)
    return low


def rent(one: World, way: Whole, seconds: float) -> int:
    """What so many shapes cost for a time, in whole micro-dollars."""
    seller = one.catalog.providers.get("north")
    hours = Decimal(repr(seconds / 3600.0))
    hours = hours.quantize(Decimal(1).scaleb(hours.adjusted() - 9), ROUND_HALF_EVEN)
    if seller is not None:
        assert seller.billing_step_s is not None
        assert seller.boot_s is not None
        assert seller.minimum_s is not None
        steps = math.ceil((seconds + seller.boot_s) / seller.billing_step_s * (1 - 1e-9))
        hours = Decimal(repr(max(steps * seller.billing_step_s, seller.minimum_s))) / 3600
    return int((way.nodes * way.price * hours).to_integral_value(ROUND_HALF_EVEN))


def ways_of(one: World, name: str, deadline_s: float, *, switching: bool) -> dict[Way, int]:
    """The least cost of each way to hold shapes."""
    found: dict[Way, int] = {}

    def keep(way: Way, cost: int) -> None:
        found[way] = min(cost, found.get(way, cost))

    every = wholes(one, name)
    for whole in every:
        if longer(one, whole, whole.seconds) * whole.margin <= deadline_s:
            keep(
                Way(whole.nodes * whole.spot, whole.nodes * (not whole.spot), whole.nodes),
                rent(one, whole, whole.seconds),
            )
    for first, second in product([w for w in every if w.spot], [w for w in every if not w.spot]):
        if not switching or max(first.batch, second.batch) > 1.1 * min(first.batch, second.batch):
            continue
        for hour in range(1, math.ceil(deadline_s / 3600.0)):
            worked_s = 3600.0 * hour - first.checkpoint_s
            share = worked_s / first.seconds
            if not 0 < share < 1:
                continue
            rest_s = one.restart_s + (1 - share) * second.seconds
            sure = surely(one, first, worked_s / first.margin) / first.seconds
            held_s = 3600.0 * hour + one.restart_s + (1 - sure) * second.seconds * second.margin
            if held_s <= deadline_s:
                cost = rent(one, first, 3600.0 * hour) + rent(one, second, rest_s)
                keep(Way(first.nodes, second.nodes, max(first.nodes, second.nodes)), cost)
    return found


def least(one: World, *, switching: bool = True) -> int | None:
    """What the cheapest plan costs, of all choices together; None where there is none."""
    jobs = one.asked().training
    choices = [ways_of(one, job.name, job.deadline_s, switching=switching).items() for job in jobs]
    costs = [
        sum(cost for _, cost in taken)
        for taken in product(*choices)
        if sum(way.spot for way, _ in taken) <= one.spot_quota
        and sum(way.on_demand for way, _ in taken) <= one.on_demand_quota
        and sum(way.most for way, _ in taken) * one.devices <= one.max_devices
    ]
    return min(costs, default=None)


def profiles(one: World, name: str, deadline_s: float, period_s: float, periods: int) -> dict[tuple[Way, ...], int]:
    """The least cost of each way to hold shapes period by period, from the beginning of any of them."""
    found: dict[tuple[Way, ...], int] = {}
    nothing = Way(0, 0, 0)

    def keep(cost: int, first: Way, until_s: float, second: Way, held_s: float) -> None:
        for start in range(periods):
            if start * period_s + held_s > deadline_s:
                continue
            held = []
            for period in range(periods):
                low, high = ((period + edge - start) * period_s for edge in (0, 1))
                before = first if high > 0 and low < until_s * (1 - 1e-12) else nothing
                after = second if high > until_s * (1 + 1e-12) and low < held_s * (1 - 1e-12) else nothing
                held.append(
                    Way(before.spot + after.spot, before.on_demand + after.on_demand, max(before.most, after.most))
                )
            found[tuple(held)] = min(cost, found.get(tuple(held), cost))

    every = wholes(one, name)
    for whole in every:
        way = Way(whole.nodes * whole.spot, whole.nodes * (not whole.spot), whole.nodes)
        until_s = longer(one, whole, whole.seconds) * whole.margin
        keep(rent(one, whole, whole.seconds), way, until_s, nothing, until_s)
    for first, second in product([w for w in every if w.spot], [w for w in every if not w.spot]):
        if max(first.batch, second.batch) > 1.1 * min(first.batch, second.batch):
            continue
        for hour in range(1, math.ceil(deadline_s / 3600.0)):
            worked_s = 3600.0 * hour - first.checkpoint_s
            if not 0 < worked_s / first.seconds < 1:
                continue
            rest_s = one.restart_s + (1 - worked_s / first.seconds) * second.seconds
            sure = surely(one, first, worked_s / first.margin) / first.seconds
            held_s = 3600.0 * hour + one.restart_s + (1 - sure) * second.seconds * second.margin
            cost = rent(one, first, 3600.0 * hour) + rent(one, second, rest_s)
            parts = Way(first.nodes, 0, first.nodes), Way(0, second.nodes, second.nodes)
            keep(cost, parts[0], 3600.0 * hour, parts[1], held_s)
    return found


def least_in_periods(one: World, period_s: float, periods: int) -> int | None:
    """What the cheapest plan costs where jobs start with periods and hold what they hold in each; None without one."""
    jobs = one.asked().training
    choices = [sorted(profiles(one, job.name, job.deadline_s, period_s, periods).items(), key=lambda way: way[1])
               for job in jobs]  # fmt: skip
    best: int | None = None
    for first, cost in choices[0]:
        for second, more in choices[1] if len(choices) > 1 else [((Way(0, 0, 0),) * periods, 0)]:
            if best is not None and cost + more >= best:
                break
            held = [Way(*map(sum, zip(*both))) for both in zip(first, second)]
            if all(h.spot <= one.spot_quota and h.on_demand <= one.on_demand_quota
                   and h.most * one.devices <= one.max_devices for h in held):  # fmt: skip
                best = cost + more
    return best


def test_with_a_calendar_each_part_holds_its_own_periods() -> None:
    """Costs as brute force finds them over every start, every pair and every hour; the plans hold."""
    wrong, switched, parted = [], 0, 0
    for seed in while_time_lasts(range(CALENDARS)):
        one = world(seed)
        hours, periods = one.asked().training[0].deadline_s / 3600.0, 1 + seed % 5
        period = math.ceil(hours / periods)
        periods = math.ceil(hours / period)
        asked = scenario(one.data["training"], horizon=f"{hours:g} h", periods=f"{period} h",
                         **{key: value for key, value in one.data.items() if key != "training"})  # fmt: skip
        plan = api.solve(asked, one.catalog)
        document = json.loads(plan.to_json())
        cost, best = document["summary"]["cost_microusd"], least_in_periods(one, 3600.0 * period, periods)
        switched += any("switch" in row for workload in document["workloads"] for row in workload["allocations"])
        parted += periods > 1
        if cost != best and (cost is None or best is None or abs(cost - best) > max(10_000, 1e-6 * best)):
            wrong.append((seed, document["status"], cost, best))
        if best is not None and (document["status"] != "optimal" or errors(document, one.catalog)):
            wrong.append((seed, document["status"], [problem.message for problem in errors(document, one.catalog)]))
    assert not wrong
    assert switched >= CALENDARS // 6
    assert parted >= CALENDARS // 2


def test_the_hour_of_the_switch_is_the_best_of_all() -> None:
    """Costs as brute force finds them; the plans hold; and a good part of them switch, and save by it."""
    wrong, switched, late = [], 0, 0
    for seed in while_time_lasts(range(SEEDS)):
        one = world(seed)
        plan = api.solve(one.asked(), one.catalog)
        document = json.loads(plan.to_json())
        cost, best = document["summary"]["cost_microusd"], least(one)
        rows = [row for workload in document["workloads"] for row in workload["allocations"]]
        used = any("switch" in row for row in rows)
        switched += used
        late += best is None
        apart = least(one, switching=False) if used else None
        if used and (apart is None or cost >= apart):
            wrong.append((seed, "a switch that does not pay", cost, apart))
        if cost != best and (cost is None or best is None or abs(cost - best) > max(10_000, 1e-6 * best)):
            wrong.append((seed, document["status"], cost, best))
        if best is not None and (document["status"] != "optimal" or errors(document, one.catalog)):
            wrong.append((seed, document["status"], [problem.message for problem in errors(document, one.catalog)]))
    assert not wrong
    assert switched >= SEEDS // 5
    assert late <= SEEDS // 2  # the others have a plan
    print(f"{switched} of {SEEDS} switch, {late} have no plan")
