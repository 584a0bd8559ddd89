"""Jobs on devices that fleets leave idle: the least cost against every choice, who bears what, files, and forgeries."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from planner import api
from planner.candidates.search import enumerate_candidates
from planner.catalog.model import Catalog
from planner.plan.document import resealed
from planner.scenario.schema import Scenario
from tests.properties.questions import asked as question_of
from tests.properties.questions import market
from tests.tiers import cases, sampled, while_time_lasts
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

SIZE, HORIZON_H = 8, 720
SEEDS, LAWS = cases(12, 300), range(100)

Document = dict[str, Any]


class Asked(NamedTuple):
    """One job as the brute force sees it."""

    device_hours: float
    deadline_h: float


class World(NamedTuple):
    known: Catalog
    question: Scenario
    replicas: tuple[int, ...]  # devices of each replica of all fleets
    jobs: tuple[Asked, ...]
    owned: int
    dollars: tuple[float, float]  # of an owned node an hour, of a rented one


def world(seed: int) -> World:
    """Fleets of replicas of one size each and jobs without failures, on nodes of eight that are owned or rented."""
    draw = random.Random(seed)
    owned, dollars = draw.choice([0, 1, 1, 2]), (draw.choice([0.1, 1.0, 4.0]), draw.choice([6.0, 8.0, 16.0]))
    fleets, replicas = [], list[int]()
    for number in range(draw.choice([1, 1, 2])):
        size, count = draw.choice([1, 2, 4]), draw.choice([1, 1, 2])
        replicas += [size] * count
        fleets.append(fleet(f"f{number}", model="llama-3.2-1b", qpm=600 * size * count, layout={"tp": size}))
    jobs, wanted = [], []
    for number in range(draw.choice([1, 2, 2])):
        device_hours, deadline = draw.choice([50.0, 300.0, 900.0, 2000.0]), draw.choice([100.0, 400.0, 700.0])
        deadline = 400.0 if device_hours > 1000 else deadline  # on two nodes at most, up to which a job scales
        jobs.append(job(f"j{number}", tokens=f"{device_hours * 0.6:.6g}B", deadline=f"{deadline:g} h", failures="none"))
        wanted.append(Asked(device_hours, deadline))
    hardware: dict[str, Any] = {"pricing": ["on_demand"]}
    if owned:
        hardware["owned"] = [{"shape": "north/eight", "count": owned, "price": f"${dollars[0]}/h"}]
    known = catalog([device()], [shape("north/eight", devices=SIZE)], [offer("north/eight", dollars[1])])
    question = scenario(jobs, fleets, hardware=hardware, horizon=f"{HORIZON_H} h", prefer="cheapest")
    return World(known, question, tuple(replicas), tuple(wanted), owned, dollars)


def ways(one: World, asked: Asked) -> Iterator[tuple[float, int, int, int]]:
    """Of a job: what it costs by itself, owned nodes of its own, devices on shared owned nodes, and on rented ones."""
    owned, rented = one.dollars
    yield asked.device_hours / SIZE * rented, 0, 0, 0  # on as many nodes as it takes, at the same cost
    for nodes in range(1, one.owned + 1):
        if asked.device_hours / SIZE / nodes <= asked.deadline_h:
            yield asked.device_hours / SIZE * owned, nodes, 0, 0
            break
    for devices in (1, 2, 4):
        if asked.device_hours / devices <= asked.deadline_h:
            yield 0.0, 0, devices, 0
            yield 0.0, 0, 0, devices


def least(one: World, *, beside: bool) -> float:
    """What the cheapest plan costs: every place of each replica, every way of each job.  [USD]"""
    best = float("inf")
    own = [[way for way in ways(one, asked) if beside or not (way[2] or way[3])] for asked in one.jobs]
    for on_owned in itertools.product((False, True), repeat=len(one.replicas)):
        devices = [sum(size for size, here in zip(one.replicas, on_owned) if here == place) for place in (True, False)]
        for chosen in itertools.product(*own):
            nodes = [-(-(devices[k] + sum(way[2 + k] for way in chosen)) // SIZE) for k in (0, 1)]
            if nodes[0] + sum(way[1] for way in chosen) <= one.owned:
                paid = sum(count * dollars for count, dollars in zip(nodes, one.dollars)) * HORIZON_H
                best = min(best, paid + sum(way[0] for way in chosen))
    return best


def on_shared(document: Document) -> list[Document]:
    """Rows of jobs on nodes that fleets run on."""
    rows = [row for one in document["workloads"] for row in one["allocations"]]
    return [row for row in rows if "jobs" in row and "shared" in row]


def test_no_choice_is_cheaper_and_every_plan_is_proven_and_verifies() -> None:
    """Brute force over places of replicas, parts of nodes and nodes of their own; a good part stands beside fleets."""
    wrong, beside, saved = [], 0, 0
    for seed in while_time_lasts(range(SEEDS)):
        one = world(seed)
        document: Document = api.solve(one.question, one.known).document
        cost, best = document["summary"]["cost_usd"], least(one, beside=True)
        if abs(cost - best) > 1e-6 * best + 0.02 or document["status"] != "optimal":
            wrong.append((seed, document["status"], cost, best))
        if found := errors(document, one.known):
            wrong.append((seed, "errors", [problem.message for problem in found], 0.0))
        beside += bool(on_shared(document))
        saved += best < 0.99 * least(one, beside=False)
    assert not wrong
    assert beside >= saved >= SEEDS // 4


def small(**top: Any) -> tuple[Scenario, Catalog]:
    """Two fleets on four of the eight devices of one owned node, and a job for which four others are enough."""
    known = catalog(
        [device()],
        [shape("north/eight", devices=SIZE, vcpus=96, host_memory_bytes=2**40)],
        [offer("north/eight", 8.0), offer("north/eight", 6.0, price_model="commitment_1y")],
        grids={("north", "r1"): (300, 1.2)},
    )
    fleets = [fleet(f"f{n}", model="llama-3.2-1b", qpm=1200, layout={"tp": 1}) for n in range(2)]
    tune = job("tune", tokens="500B", deadline="300 h", **top.pop("job", {}))
    hardware = {"owned": [{"shape": "north/eight", "count": 1, "price": "$1/h"}], **top.pop("hardware", {})}
    return scenario([tune], fleets, hardware=hardware, horizon="720 h", **top), known


@pytest.fixture(scope="module")
def plan() -> Document:
    question, known = small()
    return api.solve(question, known).document


def test_four_idle_devices_are_enough(plan: Document) -> None:
    """It rented eight for $900 while four stood idle; what it bears are its device-hours."""
    (row,) = on_shared(plan)
    assert (plan["status"], plan["summary"]["cost_usd"]) == ("optimal", 720)
    assert (row["devices"], row["devices_per_shape"], row["count"]) == (4, 4, 1)
    assert row["shared"] == [{"node": 0, "replicas": 1}]
    bears = 4 * row["hours"] / (4 * row["hours"] + 4 * 720)
    assert row["cost_usd"] == pytest.approx(720 * bears, rel=1e-6)
    assert len(set(row["error_band"]["cost_usd"].values())) == 1
    assert plan["summary"]["devices"] == SIZE
    assert plan["summary"]["device_hours"] == SIZE * 720
    follow_schema(plan)
    assert errors(plan, small()[1]) == []
    told = "\n".join(plan["assumed"])
    assert "tune: its devices of a node that fleets run on too are its own" in told


@pytest.mark.parametrize(
    "top",
    [
        {"hardware": {"share_nodes": False}},
        {"job": {"start": "500 h"}},  # its deadline is beyond the horizon, up to which the node is there
        {"job": {"count": 2}},  # two of four devices do not fit
        {"job": {"regions": "r1"}},  # the node is not there
    ],
    ids=["apart", "beyond the horizon", "too many", "elsewhere"],
)
def test_what_does_not_stand_beside_fleets(top: dict[str, Any]) -> None:
    question, known = small(**top)
    document = api.solve(question, known).document
    assert document["status"] == "optimal"
    assert len(on_shared(document)) <= (top.get("job", {}).get("count", 1) - 1)
    assert errors(document, known) == []
    if "start" in top.get("job", {}):
        assert any("deadline is beyond the horizon" in line for line in document["assumed"])


def test_a_job_that_may_pause_stands_beside_fleets_too() -> None:
    """As one that may not: to be allowed to pause cost it machines of its own."""
    question, known = small(periods="10 d", job={"schedule": "elastic"})
    document = api.solve(question, known).document
    (row,) = on_shared(document)
    assert (document["status"], document["summary"]["cost_usd"], row["runs"]) == ("optimal", 720, None)
    assert errors(document, known) == []


@pytest.mark.parametrize("seed", range(cases(6, 60)))
def test_a_job_that_may_be_mixed_is_never_dearer_for_it(seed: int) -> None:
    """To be allowed to mix cost it the devices that fleets leave idle, and spot before on demand; both are proven."""
    draw = random.Random(seed)
    sizes = {"north/one": 1, "north/four": 4, "north/eight": 8, "south/two": 2}
    offers = [offer(name, size * draw.uniform(0.5, 2)) for name, size in sizes.items()]
    hardware: dict[str, Any] = {}
    if draw.random() < 0.5:
        hardware |= {"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.02 /h"}}
        offers += [offer("north/four", draw.uniform(0.5, 2), price_model="spot")]
    if draw.random() < 0.7:
        hardware |= {"owned": [{"shape": "north/eight", "count": 1, "price": "$1/h"}]}
    known = catalog([device()], [shape(name, devices=size) for name, size in sizes.items()], offers)
    jobs = [job(tokens=f"{draw.choice([5, 20])}B", deadline=f"{draw.choice([40, 100, 300])} h")]
    fleets = [fleet(qpm=draw.choice([300, 1500, 3000]))]
    plain, mixed = (
        api.solve(scenario([{**jobs[0], **more}], fleets, hardware=hardware, horizon="400 h"), known)
        for more in ({}, {"mix_within_job": True})
    )
    assert mixed.document["summary"]["cost_microusd"] <= plain.document["summary"]["cost_microusd"]
    assert (mixed.document["status"], mixed.document["certificate"]["gap"]) == ("optimal", 0)
    assert errors(mixed.document, known) == []


def test_beside_a_calendar_too() -> None:
    """A commitment among the choices changes nothing, and its nodes may be shared as well."""
    more = {"pricing": ["on_demand", "commitment_1y"]}
    document = api.solve(*small(hardware=more)).document
    assert (document["status"], document["summary"]["cost_usd"]) == ("optimal", 720)
    assert len(on_shared(document)) == 1
    question, known = small(hardware={**more, "owned": [], "beyond_horizon": "prorate"})
    reserved = api.solve(question, known).document
    (row,) = on_shared(reserved)
    assert (row["funding"], reserved["summary"]["cost_usd"]) == ("reserved", 6 * 720)
    shares = {one["workload"]: one["cost_microusd"] for one in reserved["schedule"]["shares"]}
    assert 0 < shares["tune"] < shares["f0"]
    assert errors(reserved, known) == []


def test_what_runs_on_some_devices_is_launched_on_these() -> None:
    """Of machines that people have, by the programs that train there."""
    lengths = {"qpm": 60, "input_tokens": 800, "output_tokens": 200, "layout": {"tp": 2}}
    chat = {"name": "chat", "model": "llama-3.1-8b", **lengths}
    tune = {"name": "tune", "model": "llama-3.1-8b", "tokens": "4B", "deadline": "20 d", "sequence_length": 4096,
            "global_batch": "64 sequences"}  # fmt: skip
    owned = {"shape": "aws/p5.48xlarge", "count": 1, "price": "$0.5/h", "region": "us-east-2"}
    question = scenario([tune], [chat], hardware={"owned": [owned], "allow": "h100-*"}, horizon="30 d")
    plan = api.solve(question, api.load_catalog()).document
    (row,) = on_shared(plan)
    assert errors(plan) == []
    script, batch, pods = (
        api.export_plan(plan, form, workload="tune").files[0].text for form in ("torchrun", "slurm", "kubernetes")
    )
    devices = ",".join(map(str, range(row["devices"])))
    assert f"export CUDA_VISIBLE_DEVICES={devices}\n" in script
    assert f"--nproc-per-node {row['devices']} " in script
    assert f"beside chat: devices {devices.replace(',', ', ')}\n" in script
    assert f"#SBATCH --gpus-per-node={row['devices']}\n" in batch
    assert "--exclusive" not in batch
    assert f"nvidia.com/gpu: '{row['devices']}'" in pods
    assert f"cpu: '{int(192 * 0.9 * row['devices'] / 8)}'" in pods
    (server,) = api.export_plan(plan, "vllm", workload="chat").files[:1]
    first = row["devices"]
    assert f"export CUDA_VISIBLE_DEVICES={first},{first + 1}\n" in server.text
    (refusal,) = api.export_plan(plan, "skypilot", workload="tune").refusals
    assert "SkyPilot gives every job nodes of its own" in str(refusal)


def test_at_other_prices_a_part_of_a_node_stays_one() -> None:
    """What was listed is taken over where a discount alone is new; another way on the same kind of device is whole."""
    question, known = small()
    cheaper, _ = small(hardware={"discounts": [{"provider": "north", "fraction": "20 %"}]})
    before = enumerate_candidates(question, known, api.load_model)
    kept = enumerate_candidates(cheaper, known, api.load_model, known=before)
    fresh = enumerate_candidates(cheaper, known, api.load_model)
    both = (kept.tables["tune"], fresh.tables["tune"])
    told = [[(one.shape.devices, one.offer.price_microusd_per_hour) for one in table.sites] for table in both]
    assert told[0] == told[1]
    assert both[0].cost_microusd == both[1].cost_microusd
    assert {size for size, _ in told[0]} >= {4, SIZE}
    (other,) = api.solve(question, known).document["workloads"][0]["alternatives"]
    assert other["devices"] % SIZE == 0


def moved(row: Document, document: Document) -> None:
    row["shared"] = [{"node": 1, "replicas": 1}]


def as_many_devices(row: Document, document: Document) -> None:
    row["devices"] = row["devices_per_shape"] = 8


def dearer(row: Document, document: Document) -> None:
    row["cost_microusd"] += 1000
    row["cost_usd"] = row["cost_microusd"] / 1e6


def later(row: Document, document: Document) -> None:
    row["start_hours"] += 700
    row["end_hours"] += 700


def twice(row: Document, document: Document) -> None:
    row["shared"] = [{"node": 0, "replicas": 2}]


def its_own(row: Document, document: Document) -> None:
    del row["shared"]


@pytest.mark.parametrize("forge", [moved, as_many_devices, dearer, later, twice, its_own])
def test_forged_plans_are_found(plan: Document, forge: Any) -> None:
    document = copy.deepcopy(plan)
    forge(on_shared(document)[0], document)
    assert errors(resealed(document), small()[1])


def beside(seed: int) -> tuple[Catalog, Document]:
    """A random question with fleets and jobs that idle devices may be enough for."""
    draw = random.Random(seed)
    known = market(draw)
    fleets = [fleet(f"f{n}", qpm=draw.choice([120, 600, 1800, 3000])) for n in range(draw.choice([1, 1, 2]))]
    jobs = [
        job(f"j{n}", tokens=f"{draw.choice([50, 200, 500])}B", deadline=f"{draw.choice([100, 240, 700])} h")
        for n in range(draw.choice([1, 2, 3]))
    ]
    hardware: Document = {"pricing": ["on_demand"], "spot": {"interruptions": "0.01 /h"}}
    if draw.random() < 0.6:
        hardware["owned"] = [{"shape": draw.choice(["north/eight", "south/eight"]), "count": draw.randint(1, 2),
                              "price": f"${draw.choice([0.1, 0.5, 2])}/h"}]  # fmt: skip
    return known, {"training": jobs, "serving": fleets, "hardware": hardware, "horizon": "720 h", "prefer": "cheapest"}


@pytest.mark.parametrize("seed", sampled(LAWS, 3))
def test_sharing_and_commitments_are_never_dearer(seed: int) -> None:
    known, data = beside(seed)
    costs, sold = [], sorted({one.price_model for one in known.offers} - {"spot"})
    for more in ({"share_nodes": False}, {}, {"pricing": sold}):
        plan = api.solve(question_of({**data, "hardware": {**data["hardware"], **more}}), known).document
        assert plan["status"] == "optimal"
        assert errors(plan, known) == []
        costs.append(plan["summary"]["cost_usd"])
    assert all(after <= before * (1 + 2e-6) + 0.02 for before, after in itertools.pairwise(costs))
