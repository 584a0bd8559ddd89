"""A job that begins on spot and ends on demand, from the scenario to the verified plan, its words and its files."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.analysis.others.decisions import changed_nodes
from planner.analysis.others.other_plans import Labels, Previous, held_nodes, nodes_of_units, offer_key, told_apart
from planner.api import export_plan, load_catalog, load_model, load_scenario, solve, verify
from planner.candidates.program import IntArray
from planner.candidates.search import enumerate_candidates
from planner.candidates.switching import switch_hours
from planner.candidates.training import TrainingTable
from planner.catalog.model import Catalog, Provider
from planner.plan.document import digest_of, resealed
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.verified import errors, follow_schema
from tests.worlds import SEEN, catalog, job, offer, scenario

SCENARIO = Path(__file__).parents[2] / "scenarios" / "spot-first.yaml"
CATALOG = load_catalog()
SPOT = {"interruptions": "0.05 /h", "restart": "5 min"}

Document = dict[str, Any]


@pytest.fixture(scope="module")
def plan() -> Document:
    return solve(load_scenario(str(SCENARIO)), CATALOG).document


def world(spot_dollars: float = 0.4) -> Catalog:
    return catalog(
        offers=[offer(dollars=1.0), offer(dollars=spot_dollars, price_model="spot")],
        grids={("north", "r1"): (300, 1.2)},
    )


def asked(*changes: dict[str, Any], spot: dict[str, Any] | None = None, **top: Any) -> Scenario:
    """Jobs of four devices for a hundred hours where one may be had on spot."""
    jobs = [job(f"job{k}", **{"tokens": "200B", "deadline": "100 h", **one}) for k, one in enumerate(changes or ({},))]
    hardware = {"pricing": ["on_demand", "spot"], "spot": spot or SPOT, "quotas": [{"price_model": "spot",
                "max_shapes": 1}], **top.pop("hardware", {})}  # fmt: skip
    return scenario(jobs, hardware=hardware, prefer="cheapest", **top)


def rows_of(document: Document) -> list[Document]:
    rows: list[Document] = document["workloads"][0]["allocations"]
    return rows


def switched(document: Document) -> bool:
    return any("switch" in row for workload in document["workloads"] for row in workload["allocations"])


def test_the_scenario_is_proven_and_less_than_half_as_dear(plan: Document) -> None:
    first, second = rows_of(plan)
    assert (first["price_model"], second["price_model"]) == ("spot", "on_demand")
    assert plan["status"] == "optimal"
    assert errors(plan, CATALOG) == []
    follow_schema(plan)
    alone = solve(
        with_settings(load_scenario(str(SCENARIO)), ["training.continue-8b.switch_within_job=false"]), CATALOG
    )
    assert not switched(alone.document)
    assert plan["summary"]["cost_microusd"] < 0.5 * alone.document["summary"]["cost_microusd"]


def test_the_parts_share_the_work_and_follow_each_other(plan: Document) -> None:
    first, second = rows_of(plan)
    told = first["switch"]
    assert first["hours"] == first["held_hours"] == told["switch_hours"] == second["start_hours"]
    assert told["share"] + second["switch"]["share"] == pytest.approx(1.0, rel=1e-12)
    assert told["share_at_confidence"] < told["share"]
    assert second["start_hours"] + second["held_hours"] <= 8 * 24
    for row in (first, second):
        assert sum(row["time_terms_s"].values()) / 3600 == pytest.approx(row["hours"], rel=1e-9)
    tokens = sum(row["work"]["tokens"] for row in (first, second))
    assert tokens == pytest.approx(100e9, rel=1e-9)
    assert plan["summary"]["devices"] == max(first["devices"], second["devices"])
    band = plan["workloads"][0]["error_band"]["hours"]
    assert band["at_confidence"] == pytest.approx(first["held_hours"] + second["held_hours"], rel=1e-12)
    assert second["error_band"]["hours"]["p10"] < second["hours"] < second["error_band"]["hours"]["p90"]


def test_no_hour_later_is_on_time_and_each_earlier_is_dearer() -> None:
    """Of the pair that is taken: the hour is the last one that holds."""
    own = enumerate_candidates(asked(), world(), load_model, pruned=False)
    table = own.tables["job0"]
    assert isinstance(table, TrainingTable)
    assert table.late is not None
    best = min(table.switches.values(), key=lambda one: sum(one.cost_microusd))
    assert best.hours[0] in switch_hours(100 * 3600.0)
    first, second = table.late.finish_s[best.first] / 3600, table.finish_s[best.second] / 3600
    assert best.hours[0] + best.held_hours[1] <= 100 < best.hours[0] + 1 + best.held_hours[1] - second / first


@pytest.mark.parametrize(
    "changed",
    [
        asked({"switch_within_job": False}),
        asked(hardware={"quotas": [{"price_model": "spot", "max_shapes": 9}]}),  # spot alone is in time
        asked(spot={"interruptions": "0.05 /h", "restart": "60 h"}),  # the restart costs more than spot saves
        asked(spot={"interruptions": "30 /h", "restart": "30 min"}),  # spot never gets anything done
        asked(hardware={"quotas": [{"price_model": "spot", "max_shapes": 0}]}),
    ],
    ids=["off", "enough spot", "dear restart", "no spot", "no quota"],
)
def test_a_switch_that_never_pays_or_is_not_asked_for_is_not_offered(changed: Scenario) -> None:
    own = enumerate_candidates(changed, world(), load_model, pruned=False)
    table = own.tables["job0"]
    assert isinstance(table, TrainingTable)
    assert not table.switches


def committed(**more: Any) -> Catalog:
    """The same world, with machines that may be committed to for a year."""
    known = world()
    return replace(known, offers=(*known.offers, offer(dollars=0.7, price_model="commitment_1y")), **more)


@pytest.mark.parametrize("top", [{}, {"horizon": "100 h"}, {"horizon": "400 h", "periods": "100 h"}])
def test_with_a_commitment_among_the_choices_jobs_still_change_machines(top: dict[str, Any]) -> None:
    """It cost twice as much as soon as commitments might be used: "no job changes machines in a calendar"."""
    alone = solve(asked(**{key: value for key, value in top.items() if key != "periods"}), world()).document
    choice = {"pricing": ["on_demand", "spot", "commitment_1y"]}
    plan = solve(asked(hardware=choice, **top), committed()).document
    assert switched(alone)
    assert switched(plan)
    assert plan["status"] == "optimal"
    assert plan["summary"]["cost_microusd"] == alone["summary"]["cost_microusd"]
    assert errors(plan, committed()) == []
    follow_schema(plan)
    first, second = rows_of(plan)
    runs = plan["schedule"]["jobs"]
    assert [one["start_hours"] for one in runs] == [0, first["switch"]["switch_hours"]]
    assert second["start_hours"] == first["end_hours"]


def test_one_that_begins_with_a_later_period_says_so() -> None:
    """It may start after 30 h, the next period begins after 50."""
    late = {"tokens": "60B", "start": "30 h", "deadline": "100 h"}
    plan = solve(asked(late, periods="50 h", horizon="150 h"), world()).document
    assert errors(plan, world()) == []
    first, second = rows_of(plan)
    assert first["switch"]["name"].endswith(", 20 h later")
    assert (first["start_hours"], second["start_hours"]) == (50, 50 + first["switch"]["switch_hours"])
    second["start_hours"] += 3
    second["end_hours"] += 3
    assert "wrong-start" in {problem.reference for problem in errors(resealed(plan), world())}


def test_spot_as_dear_as_on_demand_is_no_place_to_begin() -> None:
    table = enumerate_candidates(asked(), world(1.0), load_model, pruned=False).tables["job0"]
    assert isinstance(table, TrainingTable)
    assert table.late is not None
    assert not table.switches


def test_a_rental_that_is_billed_for_longer_than_it_is_held_may_undo_a_switch() -> None:
    seller = Provider(id="north", kind="cloud", capacity="", billing_step_s=1.0, minimum_s=84 * 3600.0, provenance=SEEN,
                      boot_s=0.0, boot_provenance=SEEN)  # fmt: skip
    for least_s, offered in ((3600.0, True), (84 * 3600.0, False)):
        sold = replace(world(), providers={"north": replace(seller, minimum_s=least_s)})
        table = enumerate_candidates(asked(), sold, load_model, pruned=False).tables["job0"]
        assert isinstance(table, TrainingTable)
        assert bool(table.switches) == offered


def test_jobs_share_the_quota_of_spot() -> None:
    """Two jobs and one shape on spot: one begins there, the other does not."""
    document = solve(asked({}, {}), world()).document
    assert errors(document, world()) == []
    assert sum("switch" in workload["allocations"][0] for workload in document["workloads"]) == 1


def test_limits_at_a_moment_hold_one_part_those_of_the_plan_both() -> None:
    limits = {"max_devices": 4, "carbon": "1 t", "budget": "$330", "spend": "$4/h", "power": "3 kW"}
    document = solve(asked(limits=limits), world()).document
    assert switched(document)
    assert errors(document, world()) == []
    used = {row["name"]: row["used"] for row in document["limits"]}
    assert used["limits.max_devices"] == used["limits.spend"] == 4
    assert used["limits.budget"] == document["summary"]["cost_usd"]
    first, second = rows_of(document)
    assert used["limits.carbon"] == pytest.approx(first["carbon_kg"] + second["carbon_kg"], rel=1e-6)


def tampered(document: Document, change: Any, catalog: Catalog = CATALOG) -> list[str]:
    forged = copy.deepcopy(document)
    change(rows_of(forged), forged)
    forged = {key: value for key, value in forged.items() if key != "sha256"}
    found = verify({**forged, "sha256": digest_of(forged)}, catalog)
    return [one.reference for one in found if one.severity == "error"]


def test_the_larger_part_counts_whichever_row_comes_first() -> None:
    document = solve(asked(limits={"max_devices": 4}), world()).document
    assert [row["devices"] for row in rows_of(document)] == [1, 4]
    assert "wrong-limit" not in tampered(document, lambda rows, _: rows.reverse(), world())


def test_a_switch_to_what_is_cheaper_alone_is_refused() -> None:
    document = solve(asked(), world()).document
    assert switched(document)
    assert "wrong-switch" not in tampered(document, lambda *_: None, world())
    assert "wrong-switch" in tampered(document, lambda *_: None, world(4.0))


def _later(rows: list[Document], _: Document) -> None:
    """A day more on spot, in every cell that says when."""
    first, second = rows
    for row in rows:
        row["switch"]["switch_hours"] += 24.0
        row["switch"]["name"] = row["switch"]["name"].replace(f"{first['hours']:g} h", f"{first['hours'] + 24:g} h")
    for name in ("hours", "held_hours", "end_hours", "finish_hours"):
        first[name] += 24.0
    for name in ("hours", "held_hours"):
        second[name] -= 1.0
    second["start_hours"] += 24.0


def _cheaper(rows: list[Document], document: Document) -> None:
    """A dollar less, in every sum."""
    for place in (rows[1], document["workloads"][0], document["summary"]):
        place["cost_microusd"] -= 1_000_000
        place["cost_usd"] = place["cost_microusd"] / 1e6


def _oversold(rows: list[Document], _: Document) -> None:
    """A shape more on spot than the quota grants."""
    first = rows[0]
    count = first["count"]
    first["count"], first["devices"] = count + 1, (count + 1) * first["devices_per_shape"]
    for row in rows:
        row["switch"]["name"] = row["switch"]["name"].replace(f"{count} ×", f"{count + 1} ×", 1)


def _alone(rows: list[Document], document: Document) -> None:
    document["workloads"][0]["allocations"] = rows[1:]


def _swapped(rows: list[Document], _: Document) -> None:
    rows[0]["switch"]["part"], rows[1]["switch"]["part"] = 2, 1


def _half_an_hour(rows: list[Document], _: Document) -> None:
    for row in rows:
        row["switch"]["switch_hours"] += 0.5


def _off(_: list[Document], document: Document) -> None:
    document["scenario"]["training"][0]["switch_within_job"] = False


def _sooner_asked(_: list[Document], document: Document) -> None:
    document["scenario"]["training"][0]["deadline"] = "7.5 days"


def _cell(path: str, number: int, factor: float = 0.99) -> Any:
    def change(rows: list[Document], _: Document) -> None:
        *keys, last = path.split(".")
        place: Any = rows[number]
        for key in keys:
            place = place[key]
        place[last] = type(place[last])(place[last] * factor)

    return change


CELLS = ("switch.share", "switch.share_at_confidence", "switch.checkpoint_s", "switch.restart_s", "hours", "held_hours",
         "billed_hours", "work.tokens", "rule_hours", "run.expected_failures", "run.goodput", "power_w",
         "time_terms_s.restarts", "time_terms_s.checkpoints", "error_band.hours.p90", "error_band.cost_usd.p10",
         "error_band.hours.at_confidence", "memory.needed_bytes", "device_hours")  # fmt: skip


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("path", CELLS)
def test_a_changed_cell_is_found(plan: Document, path: str, number: int) -> None:
    assert tampered(plan, _cell(path, number))


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        (_later, "wrong-switch"),
        (_cheaper, "wrong-cost"),
        (_oversold, "limit-exceeded"),
        (_alone, "wrong-switch"),
        (_swapped, "wrong-switch"),
        (_half_an_hour, "wrong-switch"),
        (_off, "not-allowed"),
        (_sooner_asked, "late"),
    ],
)
def test_a_forged_switch_is_refused(plan: Document, change: Any, reference: str) -> None:
    assert reference in tampered(plan, change)


def _beside(document: Document) -> list[list[Document]]:
    """Rows of the cheapest plan, and of another decision, that tell of a switch in short."""
    plans = [document["plain"], *document["others"]["decisions"]["plans"]]
    return [rows for one in plans if "switch" in (rows := one["workloads"][0]["allocations"])[0]]


@pytest.fixture(scope="module")
def with_others() -> Document:
    return solve(load_scenario(str(SCENARIO)), CATALOG, best=2).document


def test_a_plainer_layout_of_a_switch_stands_beside_the_cheapest(plan: Document, with_others: Document) -> None:
    """It stood on pipelines of eight virtual stages for half a per cent: where a job switched, plainness never counted.

    And a decision that switches was told as a run on one offer: `plan verify` refused what `solve --best` had written.
    """
    assert [row["layout"]["pp"] for row in rows_of(plan)] == [1, 1]
    (cheapest,) = (row for row in _beside(with_others)[0] if row["price_model"] == "on_demand")
    assert cheapest["layout"]["vpp"] > 1
    assert 0 < plan["plain"]["above"] < 0.02
    assert len(_beside(with_others)) > 1
    assert errors(with_others, CATALOG) == []
    follow_schema(with_others)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("path", ["hours", "cost_microusd", "switch.share", "switch.restart_s", "switch.switch_hours"])
def test_a_switch_told_in_short_is_worked_out_again(with_others: Document, path: str, number: int) -> None:
    for plan in range(len(_beside(with_others))):

        def change(_: list[Document], document: Document, plan: int = plan) -> None:
            _cell(path, number)(_beside(document)[plan], document)

        assert "wrong-other-plan" in tampered(with_others, change) or "wrong-switch" in tampered(with_others, change)


def test_the_report_says_it_in_plain_words(plan: Document) -> None:
    text = str(solve(load_scenario(str(SCENARIO)), CATALOG))
    first, second = rows_of(plan)
    assert "on spot alone would be late; until the switch they do" in " ".join(text.split())
    assert any(line.startswith("spot for 6.96 days, then on demand for") for line in plan["workloads"][0]["because"])
    assert "until 6.96" in text
    assert first["finish_hours"] < second["finish_hours"]


def test_the_files_say_what_happens_at_the_switch(plan: Document) -> None:
    files = {one.name: one.text for one in export_plan(plan, "skypilot", CATALOG).files}
    tasks = [text for name, text in files.items() if name.endswith(".sky.yaml")]
    assert len(tasks) == 2
    spot, firm = sorted(tasks, key=lambda text: "use_spot: false" in text)
    assert "use_spot: true" in spot
    assert "the first part of the job, until hour 167: stop it then" in spot
    assert "use_spot: false" in firm
    assert "the second part of the job, from hour 167 on: it goes on from the last checkpoint" in firm
    assert "the batch changes from 992 to 1024 sequences" in spot
    first, second = rows_of(plan)
    tokens = [row["layout"]["global_batch_sequences"] * 4096 for row in (first, second)]
    steps = math.ceil(sum(row["work"]["tokens"] / each for row, each in zip((first, second), tokens)))
    assert all(f"{steps:,} steps of {each:,} tokens" in text for text, each in zip((spot, firm), tokens))
    assert "the two parts split the model differently" in firm


def test_no_more_is_rented_for_the_last_hours_than_one_may_expect_to_get() -> None:
    """Twenty-one nodes for three hours would be cheaper by $900; a quota for them is what it takes."""
    least = "{price_model: spot, max_shapes: 2}"
    free = with_settings(load_scenario(str(SCENARIO)), [f"hardware.quotas=[{least}]"])
    granted = with_settings(free, [f"hardware.quotas=[{least}, {{price_model: on_demand, max_shapes: 30}}]"])
    one, other = (solve(asked, CATALOG).document for asked in (free, granted))
    stock = CATALOG.stock_of("aws", "h100-sxm-80gb")
    assert stock is not None
    assert switched(one)
    assert rows_of(one)[1]["devices"] <= stock.devices < rows_of(other)[1]["devices"]
    assert (other["summary"]["cost_microusd"] or 0) < (one["summary"]["cost_microusd"] or 0)
    assert not errors(other)


def test_who_stays_with_a_switch_holds_the_nodes_of_both_its_parts() -> None:
    """Nothing changes where the same is asked again, and a plan that gives up its spot part changes that."""
    before = solve(asked(), world()).document
    again = solve(asked(), world(), previous=Previous(document=before, share=0.01)).document
    assert switched(again)
    assert again["others"]["previous"]["changed_nodes"] == 0
    own = told_apart(enumerate_candidates(asked(), world(), load_model), Labels(key=offer_key), nodes=True)
    held = held_nodes(before)
    nodes, there = nodes_of_units(own, held)
    assert there.keys() == held.keys() == {("job0", row["offer"]) for row in rows_of(before)}
    mine = [column for column in range(len(nodes)) if all(there[key][column] == count for key, count in held.items())]
    assert mine
    assert all(changed_nodes(nodes, [(held[key], there[key]) for key in held], unit(len(nodes), column)) == 0
               for column in mine)  # fmt: skip
    alone = next(column for column in range(len(nodes)) if int(own.rows[column]) not in own.tables["job0"].switches)
    spot = next(row for row in rows_of(before) if row["price_model"] == "spot")
    changed = changed_nodes(nodes, [(held[key], there[key]) for key in held], unit(len(nodes), alone))
    assert changed == spot["count"] + abs(int(nodes[alone]) - rows_of(before)[1]["count"])


def unit(columns: int, column: int) -> IntArray:
    """One unit of a column."""
    return np.eye(columns, dtype=np.int64)[column]


def test_a_job_that_may_pause_may_change_machines_too() -> None:
    """To be allowed to pause cost it the switch."""
    rigid = solve(asked(periods="1 d", horizon="100 h"), world()).document
    loose = solve(asked({"schedule": "elastic"}, periods="1 d", horizon="100 h"), world())
    assert switched(rigid)
    assert switched(loose.document)
    assert loose.document["summary"]["cost_microusd"] == rigid["summary"]["cost_microusd"]
    assert [problem for problem in loose.verify(world()) if problem.severity == "error"] == []
