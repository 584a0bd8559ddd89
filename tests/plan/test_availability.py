"""Spares that an availability asks for: a looser target, less of it or more choice is never dearer."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.analysis import tighten
from planner.catalog.model import Catalog
from planner.deadline import TimeIsUp
from planner.equations.replicas import share_of_time_within_spares
from planner.errors import InputError
from planner.estimate import serving_spares
from planner.estimate.serving_spares import (
    Frailty,
    fewest_spares,
    frailty,
    replicas_within,
    spares_for,
    time_within_spares,
)
from planner.scenario.load import parse_scenario, with_settings
from planner.scenario.schema import Scenario, Spot
from tests.tiers import cases, while_time_lasts
from tests.verified import errors
from tests.worlds import fleet, scenario

DEVICES = ("gh200*", "h100-*", "l40s", "a100-*", "l4", "rtx-6000-ada", "h200-*")


@cache
def world() -> Catalog:
    return api.load_catalog()


def asked(allow: list[str], **changes: Any) -> Scenario:
    facts: dict[str, Any] = {
        "model": "llama-3.1-8b", "weights": "fp8", "qpm": 2541, "peak_factor": 1, "input_tokens": 1500,
        "output_tokens": 300, "slo": {"ttft_p95": "1 s", "tpot_p95": "80 ms"}, "availability": "99.99 %", **changes,
    }  # fmt: skip
    given = {name: value for name, value in fleet(**facts).items() if name != "throughput" and value is not None}
    return scenario(serving=[given], hardware={"allow": allow}, prefer="cheapest")


def cost(asked: Scenario) -> int | None:
    """Of the cheapest plan, which is verified; None where there is none."""
    try:
        document: Any = api.solve(asked, world()).document
    except InputError:
        return None
    assert not errors(document)
    return document["summary"]["cost_microusd"] if document["status"] == "optimal" else None


def test_one_kind_of_machine_is_not_left_for_two() -> None:
    """Five of one seller and one of another were rented, since of the first there could be no sixth as a spare."""
    gh200 = asked(["gh200*"], availability="99.995 %")
    workload: Any = api.solve(gh200, world()).document["workloads"][0]
    assert len(workload["allocations"]) == 1
    assert workload["fleet"]["spare_replicas"] == 1


def test_fewer_replicas_with_fewer_spares_are_looked_at() -> None:
    """Many small cards were cheapest without a spare, and their spare was then asked of few large ones, too."""
    few, more = cost(asked(["gh200*"])), cost(asked(["gh200*", "h100-*", "l40s"]))
    assert few is not None
    assert more is not None
    assert more <= few


MANY: dict[str, Any] = {
    "qpm": 20000,
    "peak_factor": 2,
    "weights": "bf16",
    "input_tokens": 500,
    "output_tokens": 200,
    "slo": None,
    "availability": "99.9 %",
}


def test_a_budget_for_fewer_spares_is_enough() -> None:
    """Rounds that raised the spares ended above the budget, and nothing was said to meet it."""
    free = asked(["h100-sxm-80gb", "l40s"], **MANY)
    least = cost(free)
    assert least is not None
    within, below = (f"limits.budget=${one / 1e6:.6f}" for one in (least + 1_000_000, least - 1_000_000))
    assert cost(with_settings(free, [within])) == least
    document: Any = api.solve(with_settings(free, [below]), world()).document
    assert document["status"] == "infeasible"
    assert not errors(document)
    (way,) = (way for way in document["infeasible"]["ways_out"] if way["limit"] == "limits.budget")
    assert way["cost_microusd"] == least
    assert cost(with_settings(free, [way["setting"]])) == least


def test_one_kind_alone_holds_the_availability_too() -> None:
    """92 cards without a spare were said to be cheaper than the mix that was chosen."""
    free = asked(["h100-sxm-80gb", "l40s"], **MANY)
    document: Any = api.solve(free, world()).document
    single = document["single_kind"]
    assert len(document["workloads"][0]["allocations"]) == 2
    assert single is None or single["cost_microusd"] >= document["summary"]["cost_microusd"]


@pytest.mark.parametrize("part", range(3))
def test_looser_is_never_dearer(part: int) -> None:
    draw, compared = random.Random(260 + part), 0
    for _ in while_time_lasts(range(cases(3, 25))):
        allow = draw.sample(DEVICES, 2)
        facts: dict[str, Any] = {"qpm": draw.randint(60, 6000), "input_tokens": draw.randint(100, 2500)}
        facts |= {
            "output_tokens": draw.randint(50, 400),
            "availability": draw.choice(("99.9 %", "99.99 %", "99.999 %")),
        }
        tight = cost(asked(allow, **facts))
        others = {
            "more choice": asked([*allow, draw.choice([one for one in DEVICES if one not in allow])], **facts),
            "a looser target": asked(allow, **{**facts, "slo": {"ttft_p95": "2 s", "tpot_p95": "120 ms"}}),
            "less of it": asked(allow, **{**facts, "availability": "99 %"}),
        }
        for name, other in others.items() if tight is not None else ():
            loose = cost(other)
            compared += 1
            assert loose is not None, (name, allow, facts)
            assert loose <= tight * (1 + 1e-9), (name, allow, facts)
    assert compared


@pytest.mark.parametrize("devices", [1, 2, 8])
@pytest.mark.parametrize("share", ["99 %", "99.9 %", "99.999 %"])
@pytest.mark.parametrize("interruptions", ["0 /h", "0.05 /h"])
def test_replicas_within_spares_are_the_most_that_hold_it(devices: int, share: str, interruptions: str) -> None:
    one = asked(["l4"], availability=share).serving[0]
    kind = frailty(one, devices, Spot.model_validate({"interruptions": interruptions, "restart": "10 min"}), 4)
    for spares in range(4):
        most = replicas_within(one, spares, kind)
        if most > spares:
            assert time_within_spares(most, spares, kind) >= (one.availability or 0)
            assert spares_for(one, most, kind) <= spares
        assert time_within_spares(most + 1, spares, kind) < (one.availability or 0)


def test_spot_that_is_taken_away_wants_spares() -> None:
    """Spot nodes that are gone half of the time were told as up for all but what devices fail."""
    text = """{schema: plan/v1, name: spot, serving: [{name: chat, model: llama-3.1-8b, weights: fp8, qpm: 3000,
      input_tokens: 800, output_tokens: 300, availability: 99.9 %, max_spot_share: 100 %}],
      hardware: {allow: [h100-sxm-80gb], pricing: [spot], spot: {interruptions: RATE, restart: 10 min}}}"""
    found = []
    for rate in ("0 /h", "0.05 /h", "0.5 /h"):
        document = api.solve(parse_scenario(text.replace("RATE", rate), file="spot.yaml")).document
        fleet = document["workloads"][0]["fleet"]
        assert fleet["availability"]["time_within_spares"] >= 0.999
        assert ("spot" in fleet["availability"]) == (rate != "0 /h")
        assert any("devices that fail and spot that is taken away, alone" in said for said in document["warnings"])
        found.append((document["summary"]["cost_microusd"], fleet["spare_replicas"]))
    assert found == sorted(found)
    assert found[0][1] < found[1][1] < found[2][1]
    for rate, told in (("0 /h", 0), ("0.05 /h", 1)):
        asked = parse_scenario(text.replace("RATE", rate).replace("availability: 99.9 %, ", ""), file="spot.yaml")
        warnings: Any = api.solve(asked).document["warnings"]
        assert sum("interruptions a day in all, and no spare" in said for said in warnings) == told


def test_a_failed_machine_of_ones_own_is_not_replaced_by_a_seller() -> None:
    """An availability of owned machines was told like one of rented ones, of which another is there within the hour."""
    text = """{schema: plan/v1, name: own, serving: [{name: chat, model: llama-3.1-8b, weights: fp8, qpm: 600,
      input_tokens: 800, output_tokens: 300, availability: 99.9 %}], hardware: {allow: [h100-sxm-80gb], OWNED}}"""
    for owned, told in (("owned: [{shape: dgx-h100, count: 2, price: $1/h}]", 1), ("providers: [aws]", 0)):
        asked = parse_scenario(text.replace("OWNED", owned), file="own.yaml")
        warnings: Any = api.solve(asked).document["warnings"]
        assert sum("another has to stand idle for it" in said for said in warnings) == told


@pytest.mark.parametrize("error", [TimeIsUp, KeyboardInterrupt])
def test_what_was_found_before_the_time_was_up_is_a_plan(error: type[BaseException], monkeypatch: Any) -> None:
    """Fleets of fewer spares are looked at afterwards: what ends that takes the plan's proof, not the plan."""

    def ended(*_: object) -> Any:
        raise error

    monkeypatch.setattr(tighten, "_fewer_spares", ended)
    fifty = {**MANY, "qpm": 44_600}  # of about so many replicas some plans hold the availability without a spare
    document: Any = api.solve(asked(["h100-sxm-80gb", "l40s"], **fifty), world()).document
    assert document["status"] == "feasible"
    assert document["summary"]["bound_microusd"] is None
    assert not errors(document)


@pytest.mark.parametrize(
    ("model", "qpm", "availability", "spares"),
    [("llama-3.1-8b", 60, "99.999 %", 1), ("llama-3.1-8b", 6000, "99.99 %", 1), ("llama-3.1-70b", 600, "99.99 %", 1)],
)
def test_spares_that_no_plan_does_without_are_proven(model: str, qpm: int, availability: str, spares: int) -> None:
    """The certificate was of fleets without any spare: a fleet of two cards was proven to within 50 %."""
    question = asked(["h100-*", "a100-*", "l40s", "gh200*"], model=model, qpm=qpm, availability=availability, slo=None)
    document: Any = api.solve(question, world()).document
    assert document["workloads"][0]["fleet"]["spare_replicas"] == spares
    assert (document["status"], document["summary"]["gap"]) == ("optimal", 0.0)
    assert not errors(document)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(cases(20, 200)))
def test_no_fleet_has_fewer_spares_than_the_fewest(seed: int, together: bool) -> None:
    """Every fleet of up to seven replicas of up to three kinds that holds its availability, tried one by one."""
    draw = random.Random(seed)
    kinds = [Frailty(1 - draw.choice([3e-2, 1e-2, 1e-3, 1e-5])) for _ in range(draw.randint(1, 3))]
    each = {kind: np.array([draw.uniform(0.5, 4.0), draw.choice([0.0, 1.0, 3.0])]) for kind in kinds}
    demands = (draw.randint(1, 8), draw.choice([0, 0, 2]))
    held = fleet(model="llama-3.1-8b", availability=f"{draw.choice([90, 99, 99.9, 99.99])} %")
    job = scenario(serving=[{name: value for name, value in held.items() if name != "throughput"}]).serving[0]
    fewest = fewest_spares(job, each, demands, together=together)

    def carried(left: list[int]) -> bool:
        """Whether so many replicas of each kind may carry the demand: at most as its sum allows."""
        rates = [sum(count * each[kind][b] for count, kind in zip(left, each)) for b in (0, 1)]
        if together or not demands[1]:
            return all(rate >= demand for rate, demand in zip(rates, demands))
        best = [max(each[kind][b] for count, kind in zip(left, each) if count) if any(left) else 0.0 for b in (0, 1)]
        return all(best) and sum(left) >= sum(demand / rate for demand, rate in zip(demands, best))

    found = [10]
    for counts in product(range(8), repeat=len(each)):
        total = sum(counts)
        if not 1 <= total <= 7:
            continue
        spares = max(spares_for(job, total, kind) for count, kind in zip(counts, each) if count)
        for lost, count in enumerate(counts):
            if count and spares <= count < total + 1:
                left = [own - spares * (place == lost) for place, own in enumerate(counts)]
                if not carried(left):
                    break
        else:
            if total > spares:
                assert spares >= fewest, (counts, spares, fewest)
                found.append(spares)
    if len(each) == 1 and len(found) > 1:
        assert min(found) == fewest


def test_as_many_replicas_as_spares_suffice_for_are_the_edge() -> None:
    kind, held = Frailty(0.97), fleet(model="llama-3.1-8b", availability="99 %")
    job = scenario(serving=[{name: value for name, value in held.items() if name != "throughput"}]).serving[0]
    assert replicas_within(job, 0, kind) == 0
    most = replicas_within(job, 1, kind)
    for demand, spares in ((1, 1), (most - 1, 1), (most, 2)):
        assert fewest_spares(job, {kind: np.ones(1)}, (demand,), together=False) == spares


@pytest.mark.parametrize("share_nodes", [False, True])
def test_a_budget_that_no_fleet_with_its_spares_keeps_is_infeasible(share_nodes: bool) -> None:
    """Without a plan no spare is planned, and none was left untried: it is no search that was cut."""
    sized = {"model": "llama-3.1-8b", "weights": "fp8", "qpm": 60, "input_tokens": 1000, "output_tokens": 300}
    fleets = [{"name": name, **sized, "availability": "99.999 %"} for name in ("a", "b")]
    hardware = {"allow": ["h100-*", "a100-*"], "share_nodes": share_nodes}
    question = {"schema": "plan/v1", "name": "x", "horizon": "1 month", "serving": fleets, "hardware": hardware}
    document: Any = api.solve({**question, "limits": {"budget": "$100"}}, world()).document
    assert document["status"] == "infeasible"
    assert [one["fleet"]["spare_replicas"] for one in document["workloads"]] == [0, 0]
    assert not errors(document)


def test_the_share_of_time_within_spares_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet on spot with a load over the week asked 6,000 times for 200 shares: 90 s of a solve of 95 s."""
    worked: list[tuple[float, ...]] = []

    def counted(*given: float) -> float:
        worked.append(given)
        return share_of_time_within_spares(*given)

    monkeypatch.setattr(serving_spares, "share_of_time_within_spares", counted)
    one = asked(["l40s", "h100-*"], availability=0.995).serving[0]
    kind = Frailty(0.99991234, 0.98, 4)  # of no other test
    found = [spares_for(one, 3000, kind) for _ in range(50)]
    assert len(set(found)) == 1
    assert 1 <= len(worked) <= 10  # halving a thousand
