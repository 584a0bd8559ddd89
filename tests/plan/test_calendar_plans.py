"""Plans with a calendar: schedules, contracts, copies and what is owned, checked by hand and against forgers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog, Provenance
from planner.errors import InputError
from planner.plan.document import digest_of
from planner.report.plan_formats import render_screen
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.tiers import cases, first_and_last
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
WEB = {"name": "web", "size": "200 GB", "at": "south/r2", "egress": "$0.02/GB", "storage": "$0.02/GB-month"}
OWNED = {"shape": "north/one", "count": 2, "price": "$0.05/h", "sunk": "$0.4/h", "from": "2026-12-06",
         "until": "2026-12-12"}  # fmt: skip


def world(**changes: Any) -> Catalog:
    """One device; in the north by the hour, for a year, or in blocks of days; in the south dearer, or after a wait."""
    return catalog(
        [device()],
        [shape("north/one"), shape("south/one")],
        [
            offer("north/one", 1.0),
            offer("north/one", 0.6, price_model="commitment_1y"),
            offer("north/one", 0.8, price_model="block", min_term_hours=24, max_term_hours=240, term_step_hours=24,
                  max_shapes=8),
            offer("south/one", 0.9, region="r2", price_model="flex", wait_hours=12, max_term_hours=168),
            offer("south/one", 1.5, region="r2"),
        ],
        **changes,
    )  # fmt: skip


def solved(plan: Scenario, there: Catalog) -> Document:
    """A verified plan as it is written to disk."""
    document: Document = json.loads(api.solve(plan, there).to_json())
    follow_schema(document)
    return document


def references(document: Document, there: Catalog) -> set[str]:
    try:
        return {problem.reference for problem in api.verify(document, there)}
    except InputError as error:
        return {problem.reference for problem in error.problems}


def sealed(document: Document) -> Document:
    """With a seal that fits its content, and no certificate, which covers the costs of columns in its own way."""
    content = {**document, "certificate": None}
    return {**content, "sha256": digest_of(content)}


@pytest.fixture(scope="module")
def everything() -> Document:
    """Orders, pauses, data, flex, owned windows, quotas and a site's power, in days."""
    asked = scenario(
        [
            job("a", tokens="60B", deadline="8 days"),
            job("b", tokens="60B", deadline="8 days", after="a"),
            job("c", tokens="120B", start="2 days", deadline="18 days", data=WEB),
            job("d", tokens="30B", start="1 day", deadline="10 days", schedule="elastic", count=2, data=WEB),
            job("e", tokens="30B", deadline="6 days"),
        ],
        [fleet("chat")],
        horizon="20 days",
        periods="1 day",
        begin="2026-12-01",
        hardware={
            "pricing": ["on_demand", "commitment_1y", "block", "flex"],
            "beyond_horizon": "prorate",
            "flex": {"wait": "12 h"},
            "owned": [OWNED],
            "quotas": [{"provider": "north", "price_model": "on_demand", "max_shapes": 2}],
        },
        limits={"budget": "$3000", "max_devices": 5, "sites": [{"region": "r1", "power": "2.2 kW"}]},
    )
    return solved(asked, world())


def topped() -> Scenario:
    """A fleet of one node for twelve days, and a block of ten days at half the price: two days are topped up."""
    block = {"shape": "north/one", "region": "r1", "price_model": "block", "price": "$0.5/h", "term": "10 days"}
    return scenario([], [fleet("chat")], horizon="12 days", periods="1 day", hardware={"contracts": [block]})


def test_other_plans_may_run_on_nodes_of_a_pool() -> None:
    found = api.solve(topped(), world(), best=2).document
    others = found["others"]
    assert others is not None
    assert others["decisions"] is not None
    rows = [row for plan in others["decisions"]["plans"] for one in plan["workloads"] for row in one["allocations"]]
    assert [row["offer"] for row in rows] == ["reserved:north/r1/one", "north/one:r1:on_demand"]
    assert references(json.loads(json.dumps(found)), world()) == set()


def test_a_quota_that_names_no_price_model_counts_what_is_bought() -> None:
    """A block for ten days and the same node on demand for two: one at any time, and the table says so."""
    found = solved(topped().with_({"hardware.quotas": [{"provider": "north", "max_shapes": 1}]}), world())
    assert {one["kind"] for one in found["contracts"]} == {"block", "on_demand"}
    assert [one["used"] for one in found["limits"] if one["name"].startswith("hardware.quotas")] == [1]
    assert references(found, world()) == set()
    none = api.solve(topped().with_({"hardware.quotas": [{"provider": "north", "max_shapes": 0}]}), world()).document
    (row,) = none["workloads"][0]["allocations"]
    assert (none["contracts"], row["provider"]) == ([], "south")


def test_contracts_that_follow_each_other_are_held_one_at_a_time() -> None:
    """Two blocks of six days, one after the other, were two of one, which the verifier refused."""
    block = {"shape": "north/one", "region": "r1", "price_model": "block", "price": "$0.5/h", "term": "6 days"}
    asked = topped().with_({"hardware.contracts": [{**block, "max_shapes": 1}]}).with_(periods="6 days")
    found = solved(asked, world())
    assert [(one["kind"], one["count"]) for one in found["contracts"]] == [("block", 1), ("block", 1)]
    assert [(one["used"], one["binding"]) for one in found["limits"]] == [(1, True)]


# ---- by hand


def test_everything_at_once_is_sound(everything: Document) -> None:
    assert errors(everything, world()) == []
    rows = {workload["name"]: workload["allocations"][0] for workload in everything["workloads"]}
    assert rows["e"]["funding"] == "flex"
    assert rows["e"]["start_hours"] == 12.0
    assert rows["b"]["start_hours"] >= rows["a"]["end_hours"]
    assert rows["c"]["reserved_pool"] == "north/r1/one"
    assert rows["c"]["cost_microusd"] == 0
    assert (rows["d"]["jobs"], rows["d"]["runs"]) == (2, None)  # nothing is in their way


def test_a_commitment_is_paid_for_the_part_within_the_horizon_or_whole() -> None:
    """A fleet needs a node for 30 days: 720 h at $0.6 are $432, the year $5256; on demand $720."""
    alone: dict[str, Any] = {"serving": [fleet("chat")], "horizon": "30 days", "periods": "1 day"}
    part = solved(scenario([], **alone, hardware={"pricing": ["on_demand", "commitment_1y"],
                                                  "beyond_horizon": "prorate"}), world())  # fmt: skip
    (contract,) = part["contracts"]
    assert (contract["kind"], contract["count"], contract["prorated"]) == ("commitment_1y", 1, True)
    assert (contract["fee_microusd"], contract["cost_microusd"]) == (5_256_000_000, 432_000_000)
    assert (contract["full_microusd"], contract["prorated_microusd"]) == (5_256_000_000, 432_000_000)
    assert (contract["saved_microusd"], contract["break_even_share"]) == (288_000_000, pytest.approx(0.6))
    assert part["summary"]["cost_microusd"] == 432_000_000
    assert part["spend"]["committed_microusd"] == 432_000_000
    assert part["spend"]["variable_microusd"] == 0
    whole = solved(scenario([], **alone, hardware={"pricing": ["on_demand", "commitment_1y"]}), world())
    assert whole["contracts"] == []
    assert whole["summary"]["cost_microusd"] == 720_000_000


@pytest.mark.parametrize(
    ("horizon", "starts", "microusd"),
    [
        ("8760 h", [0], 5_256_000_000),  # $0.6 an hour for its year
        ("8761 h", [0], 5_257_000_000),  # an hour on demand at $1 after it
        ("17520 h", [0, 8760], 10_512_000_000),
        ("17000 h", [0, 8760], 10_512_000_000),  # whole years, cheaper than 8,240 h on demand
    ],
)
def test_a_commitment_that_ends_within_the_horizon_is_renewed(horizon: str, starts: list[int], microusd: int) -> None:
    """Without periods of the scenario's own a period is the term."""
    asked = scenario([], serving=[fleet("chat")], horizon=horizon, hardware={"pricing": ["on_demand", "commitment_1y"]})
    document = solved(asked, world())
    assert references(document, world()) == set()
    assert document["summary"]["cost_microusd"] == microusd
    assert [one["start_hours"] for one in document["contracts"] if one["kind"] == "commitment_1y"] == starts
    assert any("may be followed by another" in line for line in document["assumed"]) == (horizon != "8760 h")
    assert not any("left out" in line for line in document["warnings"])
    only = solved(asked.with_({"hardware.pricing": ["commitment_1y"]}), world())
    assert only["summary"]["cost_microusd"] == 5_256_000_000 * (1 if horizon == "8760 h" else 2)


@pytest.mark.parametrize(
    ("hardware", "horizon", "seconds"),
    [
        ({"pricing": ["on_demand"]}, "17520 h", None),
        ({"pricing": ["on_demand", "commitment_3y"]}, "17520 h", None),
        ({"pricing": ["commitment_1y", "commitment_3y"]}, "60 months", 8760 * 3600),
        ({"pricing": ["commitment_3y"]}, "60 months", 26280 * 3600),
        ({"contracts": [{"term": "6 months"}]}, "8760 h", 4380 * 3600),
        ({"contracts": [{"term": "1 h"}]}, "521 h", None),  # more periods than can be planned
        ({"contracts": [{"term": "1 h"}]}, "520 h", 3600),
    ],
)
def test_the_period_of_a_plan_that_names_none(hardware: dict[str, Any], horizon: str, seconds: float | None) -> None:
    own = {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.5/h"}
    if "contracts" in hardware:
        hardware = {"contracts": [{**own, **one} for one in hardware["contracts"]]}
    asked = scenario([], serving=[fleet("chat")], horizon=horizon, hardware=hardware)
    assert asked.renewed_s == (None if seconds is None else pytest.approx(seconds))
    assert asked.period_s == pytest.approx(seconds or asked.horizon_s)
    assert asked.with_({"periods": horizon}).renewed_s is None


def test_a_contract_too_short_for_a_period_is_told_with_what_mends_it() -> None:
    """The setting that the warning prints, used as printed."""
    hardware = {"pricing": ["commitment_1y", "block"]}
    asked = scenario([], serving=[fleet("chat")], horizon="17520 h", periods="17520 h", hardware=hardware)
    document = solved(asked, world())
    assert document["status"] == "infeasible"
    told = [line for line in document["warnings"] if "is left out" in line]
    assert [line.partition(" is")[0] for line in told] == ["block", "commitment_1y"]
    assert "its longest term, 12 months, is shorter than a period, 24 months" in told[1]
    assert "--set 'periods=8760 h'" in " ".join(render_screen(document).split())
    mended = solved(with_settings(asked, [told[1].split("'")[1]]), world())
    assert mended["summary"]["cost_microusd"] == 2 * 5_256_000_000
    assert [line.partition(" is")[0] for line in mended["warnings"] if "is left out" in line] == ["block"]


def test_the_reserved_share_is_the_quantile_of_the_load() -> None:
    """Nodes are contracted while the last one is in use for at least fee / price of the time (newsvendor)."""
    jobs = [job(f"j{n}", tokens=f"{14.4 * days}B", deadline=f"{days} days") for n, days in enumerate((30, 25, 17, 6))]
    only = {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate",
            "quotas": [{"provider": "*", "price_model": "on_demand", "max_shapes": 9}]}  # fmt: skip
    document = solved(scenario(jobs, horizon="30 days", periods="1 day", hardware=only), world())
    reserved = sum(one["count"] for one in document["contracts"] if one["kind"] == "commitment_1y")
    for contract in document["contracts"]:
        if contract["kind"] == "commitment_1y" and contract["first_period"] == 0:
            assert contract["last_node_share"] >= contract["break_even_share"] - 1e-12
    assert reserved >= 2


def test_use_and_shares_add_up(everything: Document) -> None:
    plan = everything["schedule"]
    for use in plan["use"]:
        for held, top, used in zip(use["reserved"], use["on_demand"], use["used"]):
            assert used <= held + top
        mine = [one for one in everything["contracts"] if one["pool"] == use["pool"]]
        shares = [one["cost_microusd"] for one in plan["shares"] if one["pool"] == use["pool"]]
        assert sum(shares) == sum(one["cost_microusd"] for one in mine)
    spend, summary = everything["spend"], everything["summary"]
    assert spend["committed_microusd"] + spend["variable_microusd"] == summary["cost_microusd"]


def test_a_copy_costs_moving_and_keeping_and_is_paid_once(everything: Document) -> None:
    """200 GB at $0.02 are $4; kept from day 1 to day 20 (456 h) at $0.02 a month of 730 h."""
    assert [(one["provider"], one["region"]) for one in everything["copies"]] == [("north", "r1"), ("owned", "owned")]
    for found in everything["copies"]:
        assert found["egress_microusd"] == 4_000_000
        assert found["storage_microusd"] == round(200 * 0.02 * 456 / 730 * 1e6)
        assert found["cost_microusd"] == found["egress_microusd"] + found["storage_microusd"]


def test_a_job_that_pauses_counts_once_against_budget_and_carbon() -> None:
    """50 h of one device: $50, and 500 W at 300 g/kWh for 50 h, 7.5 kg; on three days, around 20 h of another job."""
    other = job("f", tokens="12B", start="2 days", deadline="1 day", failures="none")
    own = {"budget": "$71", "carbon": "10.6 kg", "sites": [{"region": "r1", "carbon": "10.6 kg"}], "max_devices": 1}
    asked = scenario(
        [job("d", tokens="30B", deadline="5 days", schedule="elastic"), other],
        horizon="5 days",
        periods="1 day",
        limits=own,
    )
    document = solved(asked, world(grids={("north", "r1"): (300.0, 1.0), ("south", "r2"): (300.0, 1.0)}))
    row = row_of(document, "d")
    assert (row["cost_microusd"], len(row["runs"])) == (50_000_000, 3)
    assert row["carbon_kg"] == pytest.approx(7.5)
    for limit in ({"budget": "$69"}, {"carbon": "10.4 kg"}, {"sites": [{"region": "r1", "carbon": "10.4 kg"}]}):
        forged = copy.deepcopy(document)
        forged["scenario"]["limits"] |= limit
        there = world(grids={("north", "r1"): (300.0, 1.0), ("south", "r2"): (300.0, 1.0)})
        assert "limit-exceeded" in references(sealed(forged), there)


def test_what_may_be_taken_away_is_held_for_longer_than_its_mean() -> None:
    """Spot machines are planned to be held up to the quantile of the preemptions that the job asks for."""
    noisy = {"mtbf_per_device": "100 h", "checkpoint_bandwidth": "14 GB/s", "restart": "10 min", "stragglers": 0}
    asked = scenario(
        [job("a", tokens="28B", deadline="9 days", failures=noisy, confidence="p90")],
        horizon="10 days",
        periods="1 day",
        hardware={"pricing": "spot", "spot": {"interruptions": "0.05 /h"}, "quotas": [{"max_shapes": 1}]},
    )
    there = catalog([device()], [shape("north/one")], [offer("north/one", 0.4, price_model="spot")])
    document = solved(asked, there)
    row, told = row_of(document, "a"), document["schedule"]["jobs"][0]
    assert row["held_hours"] > row["hours"] > 28e9 * 6e-6 / 3600
    assert told["slack_hours"] == pytest.approx(9 * 24 - row["start_hours"] - row["held_hours"])


def test_sunk_cost_stands_beside_the_total(everything: Document) -> None:
    """Two machines, six days, $0.4 an hour."""
    (owned,) = everything["owned"]
    assert owned["sunk_microusd"] == 2 * 144 * 400_000
    assert everything["spend"]["sunk_microusd"] == owned["sunk_microusd"]


def test_dates_follow_the_begin(everything: Document) -> None:
    first = next(one for one in everything["schedule"]["jobs"] if one["workload"] == "e")
    assert (first["start_date"], first["start_hours"]) == ("2026-12-01 12:00", 12.0)
    assert everything["schedule"]["begin"] == "2026-12-01"


def test_what_is_bought_has_facts_behind_it_and_what_is_reserved_has_no_price(everything: Document) -> None:
    facts = {(fact["subject"], fact["fact"]): fact for fact in everything["provenance"]["facts"]}
    for contract in everything["contracts"]:
        told = facts[contract["offer"], "price"]
        assert (told["source"], told["as_of"]) == (contract["price_source"], contract["price_as_of"])
        assert told["value"] == f"{contract['price_microusd_per_hour'] / 1e6:g} USD/h per shape"
    assert not [subject for subject, _ in facts if subject.startswith("reserved:")]
    said = " ".join(everything["assumed"])
    assert "a job starts with a period of 24 h" in said
    assert "a copy of data is kept" in said


def test_recalled_prices_of_contracts_are_warned_of() -> None:
    recalled = Provenance(source="from memory", as_of="2026-11-21", status="recalled")
    year = offer("north/one", 0.6, price_model="commitment_1y", provenance=recalled)
    there = catalog([device()], [shape("north/one")], [offer("north/one", 1.0), year])
    hardware = {"pricing": ["on_demand", "commitment_1y"], "allow_recalled": True}
    document = solved(scenario([], [fleet("chat")], horizon="12 months", hardware=hardware), there)
    assert "north/one:r1:commitment_1y: the price was recalled, not seen" in document["warnings"]


def test_one_period_without_a_grid() -> None:
    """A contract without `periods`: everything runs at once, for the whole horizon."""
    document = solved(
        scenario([], [fleet("chat")], horizon="12 months",
                 hardware={"pricing": ["on_demand", "commitment_1y"]}), world()
    )  # fmt: skip
    assert document["schedule"]["periods"] == 1
    assert [one["kind"] for one in document["contracts"]] == ["commitment_1y"]
    assert document["summary"]["cost_microusd"] == 8760 * 600_000


def test_a_plan_without_a_calendar_says_so() -> None:
    document = solved(scenario([job(deadline="2 h")]), world())
    assert (document["contracts"], document["copies"], document["schedule"], document["owned"]) == ([], [], None, [])
    row = document["workloads"][0]["allocations"][0]
    assert (row["funding"], row["reserved_pool"], row["runs"]) == ("on_demand", None, None)
    assert row["end_hours"] == pytest.approx(row["hours"])


def test_an_infeasible_calendar_gives_a_document_without_a_plan() -> None:
    asked = scenario([job("a", tokens="60B", deadline="1 day"), job("b", tokens="60B", deadline="1 day", after="a")],
                     horizon="2 days", periods="1 day")  # fmt: skip
    document = solved(asked, world())
    assert document["status"] == "infeasible"
    assert (document["schedule"], document["spend"]) == (None, None)


def test_the_same_question_gives_the_same_bytes() -> None:
    asked = topped()
    assert api.solve(asked, world()).to_json() == api.solve(asked, world()).to_json()


# ---- forgers


def edit(*path: str | int, to: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        node: Any = document
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = to(node[path[-1]]) if callable(to) else to

    return apply


def row_of(document: Document, name: str) -> Document:
    found: Document = next(w for w in document["workloads"] if w["name"] == name)["allocations"][0]
    return found


def add_up(document: Document) -> None:
    """All totals anew, as a careful forger would."""
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    ran = sum(row["cost_microusd"] for row in rows)
    top = sum(one["cost_microusd"] for one in document["contracts"] if one["kind"] == "on_demand")
    tied = sum(one["cost_microusd"] for one in document["contracts"]) - top
    copied = sum(one["cost_microusd"] for one in document["copies"])
    summary, total = document["summary"], ran + top + tied + copied
    summary["cost_microusd"] = summary["bound_microusd"] = total
    summary["cost_usd"] = summary["bound_usd"] = total / 1e6
    document["spend"] |= {
        "workloads_microusd": ran, "topped_up_microusd": top, "copies_microusd": copied, "committed_microusd": tied,
        "variable_microusd": ran + top + copied,
    }  # fmt: skip


def moved(name: str, hours: float) -> Callable[[Document], None]:
    """A job at another time, wherever its time is told."""

    def apply(document: Document) -> None:
        row = row_of(document, name)
        told = next(one for one in document["schedule"]["jobs"] if one["workload"] == name)
        for piece, names in (
            (row, ("start_hours", "end_hours", "finish_hours")),
            (told, ("start_hours", "finish_hours")),
        ):
            for one in names:
                piece[one] += hours
        told["slack_hours"] -= hours
        for run in told["runs"]:
            run["start_hours"] += hours
            run["end_hours"] += hours

    return apply


def no_contract(document: Document) -> None:
    document["contracts"].pop(0)
    add_up(document)


def fewer_nodes(document: Document) -> None:
    """One contracted node less, with every sum right."""
    contract = document["contracts"][0]
    for name in ("full_microusd", "prorated_microusd", "cost_microusd", "devices"):
        contract[name] = 0
    contract |= {"count": 0, "cost_usd": 0.0}
    add_up(document)


def cheaper_fee(document: Document) -> None:
    contract = document["contracts"][0]
    contract["price_microusd_per_hour"] //= 2
    for name in ("fee_microusd", "full_microusd", "prorated_microusd", "cost_microusd"):
        contract[name] //= 2
    contract["cost_usd"] = contract["cost_microusd"] / 1e6
    add_up(document)


def shorter_contract(document: Document) -> None:
    contract = document["contracts"][0]
    contract["end_period"] -= 1
    contract["end_hours"] -= 24


def no_copy(document: Document) -> None:
    document["copies"].clear()
    add_up(document)


def free_copy(document: Document) -> None:
    document["copies"][0] |= {"egress_microusd": 0, "storage_microusd": 0, "cost_microusd": 0, "cost_usd": 0.0}
    add_up(document)


def another_place(document: Document) -> None:
    document["copies"][0]["region"] = "r2"


def at_home(document: Document) -> None:
    for asked in document["scenario"]["training"][2:4]:
        asked["data"] = {**asked["data"], "residency": ["r2"]}


def fewer_runs(document: Document) -> None:
    row_of(document, "d")["runs"].pop()


def twice_at_once(document: Document) -> None:
    row_of(document, "d")["runs"][0]["jobs"] = 3


def without_pauses(document: Document) -> None:
    row_of(document, "d")["runs"] = None


def no_pauses(document: Document) -> None:
    row_of(document, "d")["runs"] = []


def not_reserved(document: Document) -> None:
    row_of(document, "c")["reserved_pool"] = None
    row_of(document, "c")["funding"] = "on_demand"


def half_a_period(document: Document) -> None:
    moved("c", 12.0)(document)


FORGERIES: list[tuple[str, Callable[[Document], None], set[str]]] = [
    ("a start before what comes first is done", moved("b", -24 * 5), {"too-early"}),
    ("a start before its own", moved("c", -24.0), {"too-early"}),
    ("a start before the plan", moved("c", -24.0 * 10), {"wrong-start"}),
    ("an end after the deadline", moved("c", 24.0 * 10), {"late"}),
    ("a start in the middle of a period", half_a_period, {"wrong-start"}),
    ("a start at a time when the pool is empty", moved("c", 24.0 * 3), {"limit-exceeded"}),
    ("owned hardware after it is gone", moved("b", 24 * 8), {"limit-exceeded", "late"}),
    ("a contract dropped", no_contract, {"limit-exceeded"}),
    ("no nodes under a contract", fewer_nodes, {"wrong-count"}),
    ("a count, alone", edit("contracts", 0, "count", to=7), {"wrong-fee", "wrong-contract"}),
    ("half the fee, all sums right", cheaper_fee, {"wrong-contract", "wrong-fee"}),
    ("a fee, alone", edit("contracts", 0, "fee_microusd", to=lambda n: n - 1), {"wrong-fee"}),
    ("a whole fee called prorated", edit("contracts", 0, "prorated", to=False), {"wrong-fee"}),
    ("a contract that ends early", shorter_contract, {"wrong-fee", "limit-exceeded"}),
    ("a contract for another term", edit("contracts", 0, "term_hours", to=720.0), {"wrong-contract"}),
    ("a contract that nobody offers", edit("contracts", 0, "offer", to="north/one:r1:luck"), {"unknown-offer"}),
    ("another kind of contract", edit("contracts", 0, "kind", to="block"), {"wrong-contract"}),
    ("a saving", edit("contracts", 0, "saved_microusd", to=lambda n: n + 1), {"wrong-contract"}),
    ("a pool that stands elsewhere", edit("contracts", 0, "pool", to="north/r9/one"), {"wrong-contract"}),
    ("whole fees in the scenario", edit("scenario", "hardware", "beyond_horizon", to="full"), {"wrong-fee"}),
    ("contracts not allowed", edit("scenario", "hardware", "pricing", to=["on_demand", "flex"]), {"not-allowed"}),
    ("flex not allowed", edit("scenario", "hardware", "pricing", to=["on_demand", "commitment_1y"]), {"not-allowed"}),
    ("a longer wait", edit("scenario", "hardware", "owned", 0, "until", to="2026-12-08"), {"limit-exceeded"}),
    ("a copy dropped", no_copy, {"wrong-copy"}),
    ("a copy for nothing", free_copy, {"wrong-copy"}),
    ("a copy elsewhere", another_place, {"wrong-copy"}),
    ("data that may not leave", at_home, {"not-allowed"}),
    ("a bigger data set", edit("scenario", "training", 3, "data", "size", to="3 TB"), {"wrong-copy", "conflict"}),
    ("on demand what runs under contract", not_reserved, {"wrong-funding"}),
    ("another name of a pool", edit("workloads", 2, "allocations", 0, "offer", to="reserved:x"), {"unknown-offer"}),
    ("a date of what a pool costs", edit("workloads", 2, "allocations", 0, "price_as_of", to="2026"), {"wrong-offer"}),
    ("who told what a pool costs", edit("workloads", 2, "allocations", 0, "price_source", to="x"), {"wrong-offer"}),
    ("how well it is known", edit("workloads", 2, "allocations", 0, "price_status", to="seen"), {"wrong-offer"}),
    ("less power at a site", edit("scenario", "limits", "sites", 0, "power", to="0.9 kW"), {"limit-exceeded"}),
    ("fewer devices at once", edit("scenario", "limits", "max_devices", to=3), {"limit-exceeded"}),
    ("longer periods", edit("scenario", "periods", to="2 days"), {"wrong-schedule"}),
    ("another begin", edit("scenario", "begin", to="2026-12-02"), {"wrong-schedule", "limit-exceeded"}),
    ("the use of a pool", edit("schedule", "use", 0, "used", 3, to=0), {"wrong-schedule"}),
    ("what is contracted", edit("schedule", "use", 0, "reserved", 3, to=9), {"wrong-schedule"}),
    ("who bears a pool", edit("schedule", "shares", 0, "cost_microusd", to=0), {"wrong-schedule"}),
    ("a shorter hold", edit("workloads", 2, "allocations", 0, "held_hours", to=1.0), {"wrong-time"}),
    ("no schedule", edit("schedule", to=None), {"wrong-schedule", "malformed-plan"}),
    ("sunk cost", edit("owned", 0, "sunk_microusd", to=1), {"wrong-total"}),
    ("variable spend", edit("spend", "variable_microusd", to=lambda n: n - 1), {"wrong-total"}),
    ("a total without contracts", edit("summary", "cost_microusd", to=lambda n: n - 1), {"wrong-total", "wrong-proof"}),
]


@pytest.mark.parametrize(("name", "forge", "expected"), FORGERIES, ids=[name for name, _, _ in FORGERIES])
def test_forgeries_are_caught(
    name: str, forge: Callable[[Document], None], expected: set[str], everything: Document
) -> None:
    forged = copy.deepcopy(everything)
    forge(forged)
    found = references(sealed(forged), world())
    assert found & expected, found


def cells(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            yield from cells(value, (*path, key))
        else:
            yield (*path, key), value


def test_every_number_of_the_calendar_is_checked(everything: Document) -> None:
    """Nothing that people read of contracts, copies, schedule and spend can be changed alone; a third by default."""
    missed = []
    for part in ("contracts", "copies", "schedule", "owned", "spend"):
        listed = dict(cells(everything[part], (part,)))
        kept = first_and_last(listed)
        for path in [path for path in listed if path in kept][:: cases(3, 1)]:
            value = listed[path]
            changed: Any = "x" if isinstance(value, str) else not value if isinstance(value, bool) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                changed = value + 1 if isinstance(value, int) else value * 1.01 + (value == 0)
            forged = copy.deepcopy(everything)
            edit(*path, to=changed)(forged)
            if changed is not None and not references(sealed(forged), world()):
                missed.append(".".join(map(str, path)))
    assert missed == []


def test_nodes_on_demand_for_whole_periods_are_checked() -> None:
    """240 h at $0.5 under contract, 48 h at $1 on demand."""
    document = solved(topped(), world())
    assert document["summary"]["cost_microusd"] == 168_000_000
    assert document["spend"]["topped_up_microusd"] == 48_000_000
    (use,) = document["schedule"]["use"]
    assert (sum(use["reserved"]), sum(use["on_demand"]), use["used"]) == (10, 2, [1] * 12)
    top = next(n for n, one in enumerate(document["contracts"]) if one["kind"] == "on_demand")
    for change in (
        {"cost_microusd": 47_000_000, "cost_usd": 47.0},
        {"end_period": 99},
        {"offer": "south/one:r2:on_demand"},
    ):
        forged = copy.deepcopy(document)
        forged["contracts"][top] |= change
        add_up(forged)
        assert references(sealed(forged), world()) & {"wrong-fee", "wrong-contract"}


def twice_the_same_run(document: Document) -> None:
    runs = row_of(document, "d")["runs"]
    runs[1] = dict(runs[0])


def one_job_less_in_the_schedule(document: Document) -> None:
    document["schedule"]["jobs"].pop()


def a_copy_for_nobody(document: Document) -> None:
    document["copies"].append({**document["copies"][0], "region": "r2"})


def owned_without_end(document: Document) -> None:
    document["owned"].append(dict(document["owned"][0]))


TOLD: list[tuple[str, Callable[[Document], None], str]] = [
    (
        "a contract that names another period",
        edit("contracts", 0, "first_period", to=lambda n: n + 1),
        "it does not start with the period that it names",
    ),
    ("a copy that nobody reads", a_copy_for_nobody, "that nothing needs"),
    ("a row of what is owned too many", owned_without_end, "2 rows of what is owned, 1 have a price"),
    ("a job missing from the schedule", one_job_less_in_the_schedule, "5 jobs in the schedule, 6 rows"),
]


@pytest.fixture(scope="module")
def paused() -> Document:
    """Two jobs of three days each, one node each, with two days before and two after the one of another job."""
    other = job("f", tokens="20B", start="3 days", deadline="1 day", failures="none", layout={"dp": 2})
    asked = job("d", tokens="30B", start="1 day", deadline="5 days", schedule="elastic", count=2)
    document = solved(scenario([asked, other], horizon="12 days", periods="1 day", limits={"max_devices": 2}), world())
    assert sum(run["jobs"] for run in row_of(document, "d")["runs"]) == 2 * 3  # 50 h are three days each
    assert errors(document, world()) == []
    return document


PAUSED: list[tuple[str, Callable[[Document], None], str, str]] = [
    ("a run dropped", fewer_runs, "wrong-time", "d: 4 periods are run"),
    ("more jobs at once than there are", twice_at_once, "wrong-count", "d: 3 of 2 jobs run in period 1"),
    ("no pauses told", without_pauses, "wrong-start", "d: end_hours"),
    ("none named", no_pauses, "wrong-start", "d: it pauses, and no running periods are named"),
    ("a run told twice", twice_the_same_run, "wrong-start", "d: its runs are not periods of the calendar, each once"),
    ("before its start", edit("scenario", "training", 0, "start", to="2 days"), "too-early", "d: runs before 48 h"),
]


@pytest.mark.parametrize(("name", "forge", "reference", "words"), PAUSED, ids=[name for name, *_ in PAUSED])
def test_forged_pauses_are_told(
    name: str, forge: Callable[[Document], None], reference: str, words: str, paused: Document
) -> None:
    forged = copy.deepcopy(paused)
    forge(forged)
    found = [problem for problem in api.verify(sealed(forged), world()) if problem.reference == reference]
    assert any(words in problem.message for problem in found), found


@pytest.mark.parametrize(("name", "forge", "words"), TOLD, ids=[name for name, _, _ in TOLD])
def test_forgeries_are_told_by_name(
    name: str, forge: Callable[[Document], None], words: str, everything: Document
) -> None:
    forged = copy.deepcopy(everything)
    forge(forged)
    assert any(words in problem.message for problem in api.verify(sealed(forged), world()))


def test_nodes_added_on_demand_stand_where_their_pool_does() -> None:
    document = solved(topped(), world())
    top = next(one for one in document["contracts"] if one["kind"] == "on_demand")
    top["zone"] = "z9"
    messages = [problem.message for problem in api.verify(sealed(document), world())]
    assert any("it stands in '', its pool in 'z9'" in message for message in messages)


def test_a_calendar_and_contracts_that_nobody_asked_for(everything: Document) -> None:
    plain = solved(scenario([job("a")]), world())
    forged = {**plain, "schedule": everything["schedule"], "contracts": everything["contracts"][:1]}
    told = {problem.message for problem in api.verify(sealed(forged), world())}
    assert "the scenario and the plan do not agree that there is a calendar" in told
    assert "contracts are bought without a calendar" in told


def test_no_more_is_bought_than_is_sold(everything: Document) -> None:
    """Neither at once nor added up over contracts that run side by side."""
    there, name = world(), everything["contracts"][0]["offer"]
    few = [
        replace(one, max_shapes=everything["contracts"][0]["count"]) if one.id == name else one for one in there.offers
    ]
    limited = replace(there, offers=tuple(few))
    assert not any("is sold up to" in problem.message for problem in api.verify(everything, limited))
    more, twice = copy.deepcopy(everything), copy.deepcopy(everything)
    more["contracts"][0]["count"] += 1
    twice["contracts"].append(dict(twice["contracts"][0]))
    for forged, words in ((more, "are bought"), (twice, "are held in period")):
        told = [problem.message for problem in api.verify(sealed(forged), limited)]
        assert any("is sold up to" in message and words in message for message in told)


def between() -> dict[str, Any]:
    """A job that has the one machine on the second day."""
    return job("between", tokens="12B", start="1 day", deadline="1 day", failures="none")


@pytest.mark.parametrize("schedule", ["fixed", "elastic"])
@pytest.mark.parametrize("deadline", ["20 h", "30 h", "36 h", "60 h"])
def test_a_job_that_may_pause_is_planned_where_one_that_may_not_is(deadline: str, schedule: str) -> None:
    """It runs through where nothing is in its way: no period is rounded up, and none needs to be whole."""
    asked = job(tokens="18B", deadline=deadline, schedule=schedule)
    document = solved(scenario([asked], periods="1 day", horizon="6 days"), catalog())
    alone = solved(scenario([{**asked, "schedule": "fixed"}], horizon="6 days"), catalog())
    (row,), (rigid,) = (one["workloads"][0]["allocations"] for one in (document, alone))
    cells = ("cost_microusd", "start_hours", "finish_hours", "runs")
    assert [row[name] for name in cells] == [rigid[name] for name in cells]
    assert references(document, catalog()) == set()


@pytest.mark.parametrize(("deadline", "hours"), [("54 h", 54.0), ("60 h", 60.0), ("71 h", 71.0), ("84 h", 72.0)])
@pytest.mark.parametrize("horizon", ["6 days", "84 h"])
def test_a_job_that_pauses_ends_in_the_day_that_its_deadline_cuts(deadline: str, hours: float, horizon: str) -> None:
    """30 hours of work: the last part of the run is done by then."""
    asked = job(tokens="18B", deadline=deadline, failures="none", schedule="elastic")
    plan = scenario([asked, between()], periods="1 day", horizon=horizon, limits={"max_devices": 1})
    document = solved(plan, catalog())
    (row,) = document["workloads"][0]["allocations"]
    assert (row["cost_microusd"], row["finish_hours"], len(row["runs"])) == (30_000_000, hours, 2)
    assert references(document, catalog()) == set()


@pytest.mark.parametrize(("deadline", "status"), [("55.5 h", "infeasible"), ("57 h", "optimal")])
def test_no_part_of_a_job_that_may_pause_is_cut_off_by_its_deadline(deadline: str, status: str) -> None:
    """A little more than 30 hours on the one machine, and an hour before each of the two parts."""
    failures = {"mtbf_per_device": "800000 h", "restart": "1 h", "stragglers": 0}
    asked = job(tokens="18B", deadline=deadline, failures=failures, schedule="elastic")
    plan = scenario([asked, between()], periods="1 day", horizon="6 days", limits={"max_devices": 1})
    assert api.solve(plan, catalog()).status == status


def test_what_is_left_of_a_limit_is_counted_by_the_shapes_of_a_job_that_may_pause() -> None:
    """Three shapes of two devices, with room for just one more under the limit of eight."""
    there = catalog([device()], [shape("north/two", devices=2)], [offer("north/two")])
    asked = job(tokens="72B", deadline="2 days", failures="none", schedule="elastic", layout={"dp": 6})
    plan = scenario([asked], periods="1 day", horizon="6 days", limits={"max_devices": 8})
    (limit,) = solved(plan, there)["limits"]
    assert (limit["used"], limit["bound"], limit["binding"]) == (6, 8, False)


def test_a_way_that_may_end_in_the_period_that_its_deadline_cuts_stays_beside_one_that_may_not() -> None:
    """Two days are another job's. In 18 hours of the third two machines do what takes one of them 23, for as much."""
    other = job("other", tokens="57B", deadline="48 h", failures="none", layout={"dp": 2})
    asked = job("pausing", tokens="13.8B", deadline="66 h", failures="none", schedule="elastic")
    plan = scenario([other, asked], periods="1 day", horizon="6 days", limits={"max_devices": 2})
    document = solved(plan, catalog())
    (row,) = document["workloads"][1]["allocations"]
    assert (row["count"], row["start_hours"], row["finish_hours"]) == (2, 48, 59.5)
    assert references(document, catalog()) == set()


def test_the_soonest_end_of_a_job_that_may_pause_is_no_later_than_its_deadline() -> None:
    """The certificate of a plan that minimises time is about the same end as its rows."""
    asked = job(tokens="18B", deadline="60 h", failures="none", schedule="elastic")
    top: dict[str, Any] = {"objective": ["time", "cost"], "limits": {"max_devices": 1}}
    document = solved(scenario([asked, between()], periods="1 day", horizon="6 days", **top), catalog())
    assert document["workloads"][0]["allocations"][0]["finish_hours"] == 60
    assert references(document, catalog()) == set()
