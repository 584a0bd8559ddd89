"""Plain by default: on the offers of the cheapest plan the plainest layouts that cost little more."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.api import sessions
from planner.candidates.ties import plain_serving, plain_training
from planner.errors import PlanError
from planner.estimate.layout import Layout
from planner.estimate.serving import ReplicaLayout
from planner.plan import plainest
from planner.plan.document import resealed
from planner.report.alternatives_view import because_lines
from planner.report.plan_formats import render_plan
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from planner.units import format_money
from tests.frontier.random_worlds import random_world
from tests.tiers import cases
from tests.worlds import catalog, device, fleet, offer, scenario, shape


def training(**sizes: Any) -> Layout:
    whole = {"dp": 1, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": 1, "recompute": 0}
    sizes = {**whole, **sizes}
    devices = sizes["dp"] * sizes["tp"] * sizes["pp"] * sizes["cp"]
    return Layout(devices=devices, global_batch=64, **sizes)


def test_layouts_of_a_job_are_ordered_as_guides_advise() -> None:
    order = [
        training(dp=8, sharding=3),
        training(dp=4, tp=2),
        training(dp=4, pp=4, tp=4),
        training(dp=4, pp=4, tp=4, vpp=2),
        training(dp=4, pp=2),  # a pipeline within a machine
        training(dp=4, pp=2, vpp=4),
        training(dp=4, pp=4, tp=4, sharding=3),  # weights shared out under a pipeline
    ]
    involved = [int(plain_training(one, 8)) for one in order]
    assert involved == sorted(involved)
    assert len(set(involved)) == len(order)
    assert int(plain_training(training(dp=8, sharding=1), 8)) == involved[0]


def test_one_replica_in_a_deep_pipeline_is_not_plainer_than_four_in_a_usual_one() -> None:
    """Llama 3.1 405B on 512 B200 was proposed in 64 stages, 0.8 % dearer than in the 16 that it was trained in."""
    usual = training(dp=4, tp=4, pp=16, vpp=8, cp=2)
    assert int(plain_training(usual, 8)) < int(plain_training(training(tp=4, pp=64, vpp=2, cp=2), 8))
    assert int(plain_training(usual, 8)) == int(plain_training(training(tp=4, pp=16, vpp=8, cp=2), 8))


def test_a_copy_of_the_experts_takes_its_ranks_of_a_stage() -> None:
    """Stages of 8 ranks of experts leave a machine of 8: five kinds of parallelism on 24 devices passed for plainer."""
    usual = training(dp=8, tp=2, pp=2, ep=8, vpp=25)
    all_kinds = training(dp=2, tp=2, pp=3, cp=2, ep=2, vpp=16)
    assert int(plain_training(usual, 8)) < int(plain_training(all_kinds, 8))
    assert int(plain_training(training(dp=2, pp=2, ep=2), 8)) > int(plain_training(all_kinds, 8))  # within a machine


def test_replicas_are_ordered_as_guides_advise() -> None:
    order = [
        (ReplicaLayout(devices=1), True),
        (ReplicaLayout(devices=8, tp=8), True),
        (ReplicaLayout(devices=4, tp=2, pp=2), True),  # a pipeline within a machine
        (ReplicaLayout(devices=16, tp=8, pp=2), True),
        (ReplicaLayout(devices=16, tp=16), True),
        (ReplicaLayout(devices=16, tp=8, pp=2), False),  # over a network that is not made for it
    ]
    involved = [int(plain_serving(layout, 8, fabric)) for layout, fabric in order]
    assert involved == sorted(involved)
    assert len(set(involved)) == len(order)


def asked(**changes: Any) -> Scenario:
    """One job on one node: tensors in two are 0.5 % cheaper than what people run."""
    jobs = [{"name": "train", "model": "qwen2.5-7b", "sequence_length": 4096, "tokens": "2B", "deadline": "30 days"}]
    hardware = {"allow": ["h100-sxm-80gb"]}
    return scenario(jobs, hardware=hardware, limits={"max_devices": 8}, **changes)


def test_the_plainest_within_two_percent_is_proposed_and_the_cheapest_told() -> None:
    cheapest, plain = api.solve(asked(prefer="cheapest")).document, api.solve(asked()).document
    told: Any = plain["plain"]
    assert "plain" not in cheapest
    assert cheapest["workloads"][0]["allocations"][0]["layout"]["tp"] > 1
    (row,) = plain["workloads"][0]["allocations"]
    assert row["layout"]["tp"] == 1
    assert row["offer"] == cheapest["workloads"][0]["allocations"][0]["offer"]
    assert told["cheapest_microusd"] == cheapest["summary"]["cost_microusd"]
    assert told["workloads"][0]["allocations"][0]["layout"] == cheapest["workloads"][0]["allocations"][0]["layout"]
    assert 0 < told["above"] <= told["within"]
    assert plain["certificate"] is not None
    assert plain["certificate"]["value"] == told["cheapest_microusd"]
    assert not api.verify(plain)


def test_nothing_is_paid_for_plainness_beyond_the_share() -> None:
    above = api.solve(asked()).document["plain"]["above"]
    less = api.solve(asked(plain_within=above / 2)).document
    assert less["plain"]["above"] < above
    assert "plain" not in api.solve(asked(plain_within=0)).document


def test_what_is_asked_for_after_the_cost_is_not_given_up_for_plainness(monkeypatch: pytest.MonkeyPatch) -> None:
    """One device for all the time in place of two for half of it, at the same price, where one device passes for
    plainer than two replicas; a plan that does it is refused.
    """

    def fewer(layout: Layout, domain: Any) -> Any:
        return plain_training(layout, domain) + (np.asarray(layout.dp) > 1)

    for room in ("search", "training", "training_choice", "training_fit"):
        monkeypatch.setattr(f"planner.candidates.{room}.plain_training", fewer)
    given, wares = random_world(42, objective=["cost", "time"])
    ends = {}
    for prefer in ("plain", "cheapest"):
        document = api.solve(with_settings(given, [f"prefer={prefer}"]), wares).document
        ends[prefer] = max(row["finish_hours"] for one in document["workloads"] for row in one["allocations"])
    assert ends["plain"] <= 1.02 * ends["cheapest"]
    monkeypatch.setattr("planner.plan.plainest._further", lambda *given: [])
    with pytest.raises(PlanError, match="the last job ends at"):
        api.solve(given, wares)


def test_jobs_of_one_workload_are_run_alike() -> None:
    """Two jobs: a plainer way of one of them at twice the share is none of both."""
    one, two = (api.solve(asked(plain_within=share)).document["plain"] for share in (0.002, 0.02))
    assert not one["workloads"]
    assert two["workloads"]
    jobs = [
        {
            "name": "train",
            "model": "qwen2.5-7b",
            "sequence_length": 4096,
            "tokens": "2B",
            "deadline": "30 days",
            "count": 2,
        }
    ]
    both = scenario(jobs, hardware={"allow": ["h100-sxm-80gb"]}, limits={"max_devices": 16}, plain_within=0.002)
    assert len(api.solve(both).document["workloads"][0]["allocations"]) == 1


def test_a_model_on_two_cards_is_not_cut_into_a_pipeline() -> None:
    fleets = [fleet("chat", model="llama-3.1-70b", weights="fp8", qpm=300, input_tokens=1500, output_tokens=400,
                    slo={"ttft_p95": "1 s"})]  # fmt: skip
    document = api.solve(scenario(serving=fleets, hardware={"allow": ["h100-sxm-80gb"]})).document
    assert {row["layout"]["pp"] for row in document["workloads"][0]["allocations"]} == {1}
    assert not api.verify(document)


FORGED = {
    "dearer": lambda plan: plan["plain"].update(cheapest_microusd=plan["plain"]["cheapest_microusd"] * 9 // 10),
    "within": lambda plan: plan["plain"].update(within=0.5),
    "gone": lambda plan: plan.pop("plain"),
    "layout": lambda plan: plan["plain"]["workloads"][0]["allocations"][0]["layout"].update(pp=4),
    "cost": lambda plan: plan["plain"]["workloads"][0]["allocations"][0].update(cost_microusd=1),
}


@pytest.mark.parametrize("name", sorted(FORGED))
def test_what_is_told_of_the_cheapest_plan_is_verified(name: str) -> None:
    forged: Any = copy.deepcopy(api.solve(asked()).document)
    FORGED[name](forged)
    assert api.verify(resealed(forged))


def random_scenario(rng: np.random.Generator) -> dict[str, Any]:
    """A job, a fleet or both, on some devices."""
    devices = ["h100-sxm-80gb", "a100-*", "l40s", "h200-sxm", "b200", "l4"]
    jobs = [
        {
            "name": "train",
            "model": str(rng.choice(["llama-2-7b", "llama-2-13b", "llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b"])),
            "tokens": f"{int(rng.integers(1, 60))}B",
            "deadline": f"{int(rng.integers(10, 90))} days",
            "count": int(rng.integers(1, 3)),
        }
    ]
    slo = {"slo": {"ttft_p95": f"{float(rng.uniform(0.3, 3)):.2f} s"}} if rng.random() < 0.5 else {}
    fleets = [
        fleet(
            "chat",
            model=str(rng.choice(["llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b", "mixtral-8x7b"])),
            weights=str(rng.choice(["bf16", "fp8"])),
            qpm=int(rng.integers(10, 2000)),
            input_tokens=int(rng.integers(100, 3000)),
            output_tokens=int(rng.integers(50, 600)),
            spare_replicas=int(rng.integers(0, 2)),
            **slo,
        )
    ]
    kind = int(rng.integers(0, 3))
    allow = [str(one) for one in rng.choice(devices, int(rng.integers(1, 4)), replace=False)]
    return {"training": jobs if kind != 1 else [], "serving": fleets if kind else [], "hardware": {"allow": allow}}


def on_the_same(rows: Any, cheapest: Any) -> bool:
    """Whether offers are those of the cheapest plan, or, of a fleet on several devices, other sizes of its machines."""

    def sold(row: Any) -> tuple[str, ...]:
        return row["device"], row["provider"], row["region"], row["zone"], row["price_model"]

    used, beside = {row["offer"] for row in cheapest}, {sold(row) for row in cheapest if "replicas" in row}
    several = len({device for device, *_ in beside}) > 1
    return all(row["offer"] in used or (several and sold(row) in beside) for row in rows)


def test_plain_plans_cost_at_most_so_much_more_on_the_same_offers() -> None:
    """And the headline lies within its own band, always."""
    rng = np.random.default_rng(1)
    plainer = 0
    for _ in range(cases(9, 500)):
        data = random_scenario(rng)
        plain, cheapest = (api.solve(scenario(**data, prefer=prefer)).document for prefer in ("plain", "cheapest"))
        assert plain["status"] == cheapest["status"]
        if plain["status"] == "infeasible":
            continue
        told: Any = plain["plain"]
        assert told["cheapest_microusd"] == cheapest["summary"]["cost_microusd"]
        assert plain["summary"]["cost_microusd"] <= 1.02 * told["cheapest_microusd"]
        for one, other in zip(plain["workloads"], cheapest["workloads"]):
            assert on_the_same(one["allocations"], other["allocations"])
        for document in (plain, cheapest):
            summary = document["summary"]
            low, high = (summary["cost_band"][end] for end in ("p10", "p90"))
            assert low * (1 - 1e-9) <= summary["cost_usd"] <= high * (1 + 1e-9)
        assert not api.verify(plain)
        plainer += bool(told["workloads"])
    assert plainer


ELSEWHERE = ("calendar", "mixed", "uncertain", "plain")  # where plainness is weighed, and where the cheapest is taken


def random_elsewhere(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """A random scenario with a calendar, a job over several offers, or several futures."""
    data = random_scenario(rng)
    if kind == "calendar":
        return {**data, "horizon": "120 days", "periods": "30 days"}
    if kind == "mixed" and data["training"]:
        size = {"model": "llama-3.1-8b", "tokens": f"{int(rng.integers(5, 40))}B", "deadline": "20 days", "count": 1}
        jobs = [{**job, **size, "mix_within_job": True} for job in data["training"]]
        there = {"allow": ["h100-sxm-80gb", "a100-*"], "regions": ["us-east5"]}
        return {**data, "training": jobs, "serving": [], "hardware": there}
    if kind == "uncertain" and data["serving"]:
        more = int(data["serving"][0]["qpm"]) * int(rng.integers(2, 4))
        busy = {"name": "busy", "probability": "30 %", "set": {"serving.chat.qpm": more}}
        return {**data, "horizon": "120 days", "uncertainty": [busy]}
    return data


def test_plain_against_cheapest_with_calendars_mixes_and_futures() -> None:
    """Same offers, at most so much dearer, and the proven cheapest is told, whatever is asked."""
    rng = np.random.default_rng(2)
    tried = dict.fromkeys(ELSEWHERE, 0)
    for number in range(cases(4, 200)):
        kind = ELSEWHERE[number % len(ELSEWHERE)]
        data = random_elsewhere(rng, kind)
        plain, cheapest = (api.solve(scenario(**data, prefer=prefer)).document for prefer in ("plain", "cheapest"))
        assert plain["status"] == cheapest["status"]
        if plain["status"] != "optimal":  # no plan, or one that the clock cut: two of those may differ
            continue
        tried[kind] += 1
        paid, least = (document["summary"]["cost_microusd"] for document in (plain, cheapest))
        told: Any = plain.get("plain")
        assert least is not None
        assert paid is not None
        if told is None:  # left as it is: the proposal itself is the cheapest
            assert paid == least
        else:
            assert told["cheapest_microusd"] == least
            assert least * (1 - 1e-9) <= paid <= 1.02 * least
        if paid > least:
            text = render_plan(plain, "table", width=400)
            assert f"above the proven cheapest, {format_money(least)}" in text
        for one, other in zip(plain["workloads"], cheapest["workloads"]):
            assert on_the_same(one["allocations"], other["allocations"])
        assert not [problem for problem in api.verify(plain) if problem.severity == "error"]
    assert sum(map(bool, tried.values())) >= len(ELSEWHERE) - 1  # of few cases one kind may have no plan


@pytest.mark.parametrize(("dollars", "sellers"), [(1.02, {"south"}), (1.2, {"north", "south"})])
def test_a_fleet_is_on_one_offer_where_that_costs_little_more(dollars: float, sellers: set[str]) -> None:
    """669 machines at one seller stood beside a single odd one at another, to save 0.02 %."""
    few = offer("north/one", 1.0, max_shapes=5)
    wares = catalog([device()], [shape("north/one"), shape("south/one")], [few, offer("south/one", dollars)])
    six = fleet("chat", qpm=3600)  # 60 requests of 100 tokens a second, 10 a device
    plan = api.solve(scenario(serving=[six]), wares)
    (workload,) = plan.document["workloads"]
    assert {row["provider"] for row in workload["allocations"]} == sellers
    assert api.verify(plan, wares) == []
    cheapest = api.solve(scenario(serving=[six], prefer="cheapest"), wares).document
    assert cheapest["summary"]["cost_usd"] == pytest.approx((5 + dollars) * 730)
    told: Any = plan.document["plain"]
    assert told["cheapest_microusd"] == cheapest["summary"]["cost_microusd"]
    if sellers == {"south"}:
        said = next(line for line in because_lines(plan.document) if "on one offer" in line)
        assert said == (
            "chat: on one offer, and 1.7 % above the proven cheapest, 5 plain of north, 1 plain of south ($4,395)"
        )
    else:
        assert told["workloads"] == []


@pytest.mark.parametrize(("dollars", "devices"), [(1.05, {"plain"}), (1.3, {"plain", "small"})])
def test_a_fleet_on_several_kinds_may_take_other_sizes_of_its_machines(dollars: float, devices: set[str]) -> None:
    """Pairs of one card and a single other one stood where a single one of the first cost 1 % more."""
    shapes = [shape("north/pair", devices=2), shape("north/one"), shape("north/small", device="small")]
    offers = [offer("north/pair", 1.9), offer("north/one", dollars), offer("north/small", 1.0)]
    wares = catalog([device(), device("small")], shapes, offers)
    five = fleet("chat", qpm=3000)  # 50 requests of 100 tokens a second, 10 a device
    plan = api.solve(scenario(serving=[five]), wares)
    assert {row["device"] for row in plan.document["workloads"][0]["allocations"]} == devices
    assert api.verify(plan, wares) == []
    forged: Any = copy.deepcopy(plan.document)
    if devices == {"plain"}:
        (told,) = forged["plain"]["workloads"]
        told["allocations"] = [row for row in told["allocations"] if row["device"] == "plain"]
        assert any("which the cheapest plan does not use" in one.message for one in api.verify(resealed(forged), wares))


@pytest.mark.parametrize(("share", "held"), [(0.06, {"plain": 104}), (0.02, {"plain": 96, "small": 3})])
def test_a_fleet_on_one_kind_may_take_hardly_more_devices(share: float, held: dict[str, int]) -> None:
    """228 devices in machines of four and two odd ones stood where 232 in machines of four cost hardly more."""
    shapes = [shape("north/eight", devices=8), shape("north/small", device="small")]
    offers = [offer("north/eight", 8.0), offer("north/small", 2.6)]  # thirteen of eight cost 0.2 % more
    wares = catalog([device(), device("small")], shapes, offers)
    many = fleet("chat", qpm=60 * 990)  # 10 requests a second a device
    plan = api.solve(scenario(serving=[many], plain_within=share), wares)
    (workload,) = plan.document["workloads"]
    assert {row["device"]: row["devices"] for row in workload["allocations"]} == held
    assert api.verify(plan, wares) == []
    forged: Any = copy.deepcopy(plan.document)
    forged["scenario"]["plain_within"] = 0.02
    few = [one.message for one in api.verify(resealed(forged), wares)]
    assert any("104 devices, more than the 99 of the cheapest plan, and 2 more" in one for one in few) == (share > 0.02)


def test_of_many_workloads_trials_by_cost_alone_end_at_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """And plans of one cost are told apart once, not in every trial."""
    told_apart: list[bool] = []
    asked = sessions.optimize

    def noted(program: Any, **options: Any) -> Any:
        told_apart.append(not options.get("cost_only", False))
        return asked(program, **options)

    monkeypatch.setattr(sessions, "optimize", noted)
    size: dict[str, Any] = {"model": "qwen2.5-7b", "sequence_length": 4096, "deadline": "30 days"}
    jobs = [{"name": f"train-{number}", "tokens": f"{number}B", **size} for number in range(1, 6)]
    six = scenario(jobs, hardware={"allow": ["h100-sxm-80gb"]}, limits={"max_devices": 40})
    found = []
    for few in (plainest.FEW, 100):
        monkeypatch.setattr(plainest, "FEW", few)
        told_apart.clear()
        document: Any = api.solve(six).document
        found.append((document["workloads"], document["plain"], sum(told_apart), len(told_apart)))
    (one_by_one, all_at_once) = found
    assert one_by_one[:2] == all_at_once[:2]
    assert len(one_by_one[1]["workloads"]) > 1
    assert one_by_one[2] < all_at_once[2]
    assert api.solve(six).verify() == []
