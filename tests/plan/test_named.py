"""What a scenario names does not vanish: owned machines, devices and providers are used, or a line says why not."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from planner import api
from planner.api.advising import advice
from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.plan.document import resealed
from planner.plan.notes.assumptions import _beyond
from planner.report.alternatives_view import because_lines
from planner.report.plan_formats import render_screen
from planner.report.plan_words import carbon_of
from planner.report.screen_words import matters
from planner.scenario.load import parse_scenario
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

OWNED = {"shape": "dgx-a100-80gb", "count": 8, "price": "$0/h"}


def line_of(document: Any, place: str) -> Any:
    (found,) = (one for one in document["named"] if one["place"] == place)
    return found


def test_owned_machines_of_a_reference_design_work_together() -> None:
    """The case of the issue: eight machines that `init` itself suggests train what one of them could not."""
    asked = scenario(
        [job("train", model="llama-3.1-8b", tokens="120B", deadline="30 days", global_batch="4M tokens")],
        hardware={"owned": [OWNED], "allow": ["a100-*"]},
    )
    document = api.solve(asked).document
    (row,) = document["workloads"][0]["allocations"]
    assert row["provider"] == "owned"
    assert row["count"] > 1
    assert line_of(document, "hardware.owned[0]")["used"]
    assert line_of(document, "hardware.owned[0]")["text"].startswith(f"used: {row['count']} of 8 for train")
    assert not api.verify(document)


def test_nodes_of_one_rack_are_to_be_asked_for() -> None:
    """Trays of four are joined by the rack's links: eighteen of them talk as fast as four devices of one do."""
    sold = load_catalog()
    racks = {one.id: one for one in sold.shapes.values() if one.device in ("gb200-nvl72", "gb300-nvl72")}
    assert {one.scale_up_devices for one in racks.values()} == {72}
    chat = {"name": "chat", "model": "kimi-k2", "qpm": 100, "input_tokens": 1000, "output_tokens": 300}
    plan = api.solve(scenario(serving=[chat], hardware={"allow": ["gb200-nvl72"], "providers": ["coreweave"]}))
    (row,) = plan.document["workloads"][0]["allocations"]
    nodes = row["devices_per_replica"] // 4
    told = f"the {nodes} nodes of each replica must stand in one rack of 18"
    assert nodes > 1
    assert any(told in text for text in plan.document["warnings"])
    (file,) = (one.text for one in api.export_plan(plan, "kubernetes").files if one.name.startswith("chat"))
    assert f"the {nodes} nodes of a replica must stand in one rack of 18" in file
    alone = api.solve(scenario(serving=[{**chat, "model": "llama-3.1-8b"}], hardware={"allow": ["gb200-nvl72"]}))
    assert not any("rack" in text for text in alone.document["warnings"])


def test_a_job_over_parts_of_hosts_on_a_stated_network_is_told() -> None:
    """Sixteen machines of one H100 at 400 Gbit/s apiece stood in a plan without a word."""
    job = {
        "name": "train",
        "model": "llama-3.1-8b",
        "tokens": "20B",
        "deadline": "30 days",
        "layout": {"dp": 16, "tp": 1, "pp": 1},
    }
    network = {"assume_inter_node": "400 Gbit/s", "allow": ["h100-sxm-80gb"]}
    document = api.solve(scenario([job], hardware={**network, "providers": ["verda"]})).document
    (row,) = document["workloads"][0]["allocations"]
    told = f"the 16 × {row['shape']} of the job are parts of hosts, whose network cards they share with others"
    (warning,) = (text for text in document["warnings"] if told in text)
    assert "nobody was seen to sell 400 Gbit/s between them" in warning
    assert warning in matters(document)
    whole = api.solve(scenario([job], hardware={**network, "providers": ["hyperstack"]})).document
    assert whole["workloads"][0]["allocations"][0]["devices_per_shape"] == 8
    assert not any("parts of hosts" in text for text in whole["warnings"])


@pytest.mark.parametrize(
    ("hardware", "rest"),
    [
        ({"exclude": ["*"]}, "there is no plan for all that is asked"),
        ({}, "a part of it there would not lower the cost"),
    ],
)
def test_owned_machines_that_are_too_few_for_a_fleet_are_said_to_be(hardware: dict[str, Any], rest: str) -> None:
    """They were said to lack memory, as some layouts on them do."""
    asked = scenario(
        [],
        [fleet(qpm=60_000, throughput=None, model="llama-3.1-8b", input_tokens=1000, output_tokens=100)],
        hardware={"allow": ["h100-sxm-80gb"], "owned": [{"shape": "dgx-h100", "count": 1, "price": "$90/h"}]}
        | hardware,
    )
    said = line_of(api.solve(asked).document, "hardware.owned[0]")["text"]
    assert said == f"not used: too few for fleet alone; {rest}"


def test_what_owned_machines_come_too_late_for_is_no_cheaper_way() -> None:
    """One of two, there for the last 14 days, takes 14.1: it was told to cost less, what is shared keeping it away."""
    asked = scenario(
        [job("a", model="qwen2.5-7b", tokens="100B", start="2027-01-04", deadline="2027-02-01", sequence_length=4096,
             global_batch="2M tokens", recompute=["none", "selective", "full"], sharding=["none", "zero-1", "zero-3"])],
        begin="2027-01-04", periods="1 week", horizon="12 weeks",
        hardware={"allow": ["h100-sxm-80gb"], "providers": ["aws", "gcp", "hyperstack"],
                  "owned": [{"shape": "dgx-h100", "count": 2, "price": "$12/h", "from": "2027-01-18"}]},
    )  # fmt: skip
    (workload,) = api.solve(asked).document["workloads"]
    assert [(row["provider"], row["count"]) for row in workload["allocations"]] == [("owned", 2)]
    said = "fewer than 2 × onprem/dgx-h100 would be late from every period that they can start in"
    assert workload["because"][0] == said
    assert not any("alone it would take" in line for line in workload["because"])
    earlier = asked.with_({"hardware.owned[0].from": "2027-01-11"})
    (workload,) = api.solve(earlier).document["workloads"]
    assert [(row["provider"], row["count"]) for row in workload["allocations"]] == [("owned", 1)]


def test_what_waits_for_a_period_for_too_long_is_told_so() -> None:
    """Of 20 days, 11 pass until two weeks begin: a "search that was cut" was said to leave the cheap one out."""
    own = catalog([device()], [shape("north/one"), shape("north/two", devices=2)], [offer("north/two", 3.0)])
    asked = scenario(
        [job("d", tokens="200B", start="2027-01-04", deadline="2027-01-24")],
        begin="2027-01-01", horizon="10 weeks", periods="2 weeks",
        hardware={"owned": [{"shape": "north/one", "count": 1, "price": "$0.05/h"}], "providers": ["north"]},
    )  # fmt: skip
    document = api.solve(asked, own).document
    text = line_of(document, "hardware.owned[0]")["text"]
    assert "late from every period that it can start in: shorter ones (periods) begin nearer its start" in text
    assert any(one.startswith("d: it waits 11 days of its 20 days until a period") for one in document["warnings"])
    sooner = api.solve(asked.with_({"periods": "3 days"}), own).document
    assert not any("it waits" in one for one in sooner["warnings"])
    assert line_of(sooner, "hardware.owned[0]")["text"] == "used for d"


@pytest.mark.parametrize(("start", "waits"), [("48 h", False), ("50 h", True)])
def test_what_waits_for_a_period_that_nobody_gave_is_told_sooner(start: str, waits: bool) -> None:
    """Ten hours of four days went to periods of 34 hours without a word; of 365 in a year one begins on day 1."""
    known = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    year = {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.9/h", "max_shapes": 1}
    first = "40 h" if waits else "24 h"  # no period of 17 hours or more begins at both 40 and 50 hours
    days = [job(name, start=at, deadline="240 h", tokens="1B") for name, at in (("a", first), ("d", start))]
    asked = scenario(days, horizon="8760 h", hardware={"contracts": [year]})
    warnings = api.solve(asked, known).document["warnings"]
    assert any("it waits" in one for one in warnings) == waits


def test_owned_machines_that_a_fleet_outlasts_are_told_with_the_way_out() -> None:
    """Four days of ten at 5 cents: the job of a day uses them, the fleet rents at a dollar for all ten."""
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    owned = {"shape": "north/one", "count": 4, "price": "$0.05/h", "from": "2026-12-05", "until": "2026-12-09"}
    days = {"begin": "2026-12-01", "horizon": "10 days", "periods": "1 day", "hardware": {"owned": [owned]}}
    asked = scenario([job("d", tokens="10B", deadline="8 days")], [fleet("chat")], **days)
    document = api.solve(asked, own).document
    assert not api.verify(document, own)
    held = "a fleet holds its machines for the whole plan"
    there = "from 2026-12-05 until 2026-12-09"
    kept_out = f"chat: {held}, and these are there {there}"
    assert line_of(document, "hardware.owned[0]")["text"] == f"used for d; not for {kept_out}"
    (warning,) = (line for line in document["warnings"] if line.startswith("hardware.owned[0]"))
    assert warning.startswith("hardware.owned[0]: 4 × north/one are idle for 9")
    assert f"of their time, {there}: {held}, so that chat rents dearer ones" in warning
    assert "(begin: 2026-12-05, horizon: 4 days)" in warning
    alone = scenario([], [fleet("chat")], **days)
    assert line_of(api.solve(alone, own).document, "hardware.owned[0]")["text"] == f"not used: {kept_out}"
    there_throughout = alone.with_({"begin": "2026-12-05", "horizon": "4 days"})
    document = api.solve(there_throughout, own).document
    assert line_of(document, "hardware.owned[0]")["text"] == "used for chat"
    assert not any(line.startswith("hardware.owned[0]") for line in document["warnings"])


@pytest.mark.parametrize(
    "there",
    [{"until": "2026-11-01"}, {"from": "2027-01-01"}, {"from": "2026-12-03 06:00", "until": "2026-12-04 18:00"}],
)
def test_owned_machines_that_are_gone_before_the_plan_or_come_after_it_are_told_so(there: dict[str, str]) -> None:
    """They "would cost $368 alone", and their own number was said to leave them out."""
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    owned = {"shape": "north/one", "count": 4, "price": "$0.05/h", **there}
    days = {"begin": "2026-12-01", "horizon": "10 days", "periods": "1 day", "hardware": {"owned": [owned]}}
    window = " ".join(f"{word} {day}" for word, day in there.items())
    for limits in ({}, {"budget": "$1"}):
        asked = scenario([job("d", tokens="10B", deadline="8 days")], [fleet("chat")], **days, limits=limits)
        document = api.solve(asked, own).document
        assert not api.verify(document, own)
        said = line_of(document, "hardware.owned[0]")["text"]
        assert said == (
            f"not used: there {window}, and so for no whole period of 24 h of the plan, 2026-12-01 to 2026-12-11"
        )


@pytest.mark.parametrize("limits", [{}, {"budget": "$1"}])
def test_owned_machines_that_a_fleet_outlasts_are_none_of_its_other_ways(limits: dict[str, str]) -> None:
    """They were its next best way, "1 x north/two at $12 over the horizon", where they are there four days of ten."""
    shapes = [shape("north/one"), shape("north/two", "slow")]
    own = catalog([device(), device("slow")], shapes, [offer("north/one", 1.0)])
    owned = {"shape": "north/two", "count": 4, "price": "$5/h", "from": "2026-12-05", "until": "2026-12-09"}
    days = {"begin": "2026-12-01", "horizon": "10 days", "periods": "1 day", "limits": limits}
    asked = scenario([], [fleet("chat")], **days, hardware={"owned": [owned]})
    document = api.solve(asked, own).document
    assert not api.verify(document, own)
    (workload,) = document["workloads"]
    assert [one["device"] for one in workload["alternatives"]] == ["plain"]
    assert not any("slow" in line for line in workload["because"])
    del owned["from"], owned["until"]
    throughout = scenario([], [fleet("chat")], **days, hardware={"owned": [owned]})
    (workload,) = api.solve(throughout, own).document["workloads"]
    assert [one["device"] for one in workload["alternatives"]] == ["plain", "slow"]


def test_why_not_owned_machines_that_the_dates_rule_out_names_the_dates() -> None:
    """It was "within the limits that the workloads share", which no other workload and no limit had a part in."""
    shapes = [shape("north/one"), shape("north/two", "slow")]
    own = catalog([device(), device("slow")], shapes, [offer("north/one", 1.0)])
    days = {"begin": "2026-12-01", "horizon": "10 days", "periods": "1 day"}
    owned = {"shape": "north/two", "count": 4, "price": "$5/h", "from": "2026-12-05", "until": "2026-12-09"}
    work = [job("d", tokens="10B", deadline="8 days")], [fleet("chat")]
    run, held = api.why_not(scenario(*work, **days, hardware={"owned": [owned]}), "hardware.owned[0]", own)
    assert run["state"] == "dearer"
    assert held["state"] == "impossible"
    assert held["misses"] == [
        "a fleet holds its machines for the whole plan, and these are there from 2026-12-05 until 2026-12-09"
    ]
    later = owned | {"from": "2027-02-01", "until": "2027-03-01"}
    gone = "there from 2027-02-01 until 2027-03-01, and so for no whole period of 24 h of the plan, 2026-12-01 to "
    for told in api.why_not(scenario(*work, **days, hardware={"owned": [later]}), "hardware.owned[0]", own):
        assert told["misses"] == [gone + "2026-12-11"]


def test_why_not_owned_machines_that_come_after_a_deadline_names_the_dates() -> None:
    """Of a job it was "within the limits that the workloads share"; fleets alone had their dates told."""
    own = catalog([device(), device("slow")], [shape("north/one"), shape("north/two", "slow")], [offer("north/one")])
    days = {"begin": "2026-12-01", "horizon": "20 days", "periods": "1 day"}
    owned = {"shape": "north/two", "count": 4, "price": "$5/h", "from": "2026-12-10", "until": "2026-12-16"}
    asked = scenario([job("d", tokens="10B", deadline="8 days")], **days, hardware={"owned": [owned]})
    (told,) = api.why_not(asked, "hardware.owned[0]", own)
    assert told["state"] == "impossible"
    assert told["misses"] == [
        "these are there from 2026-12-10 until 2026-12-16, and no period from 2026-12-01 to 2026-12-09 leaves it in "
        "time"
    ]


def beyond(network_kind: str, nodes: int, validity: dict[str, tuple[float, float]], parameters: float) -> list[str]:
    """What is told of a job on machines of 8 devices and 1.6 Tbit/s, where constants stand on these sizes."""
    box = shape("north/box", devices=8, network_kind=network_kind, inter_node_bytes_per_s_per_device=25e9)
    families, fabrics = {"hopper": SimpleNamespace(validity=validity)}, load_catalog(None).fabrics
    powers = {"devices above": 1.2, "parameters above": 1.2, "pp above": 1.2, "cp above": 1.01}
    facts = SimpleNamespace(training_families=families, shapes={box.id: box}, fabrics=fabrics, training_beyond=powers)
    candidates: Any = SimpleNamespace(catalog=facts)
    workload: Any = {"name": "a", "parameters": parameters, "demand": {"sequence_length": 4096}}
    band = {"tier": "analytic", "family": "hopper", "tag": "calibrated", "time": {"p10": 0.8, "p90": 1.25}}
    row: Any = {"error_band": band, "device": "h200", "shape": "north/box",
                "devices": 8 * nodes, "jobs": 1, "count": nodes, "layout": {"pp": 16, "cp": 4, "ep": 1}}  # fmt: skip
    return list(_beyond(candidates, workload, row))


@pytest.mark.parametrize(("parameters", "outside"), [(671.02e9, False), (735e9, False), (745e9, True), (125e6, False)])
def test_what_lies_a_tenth_outside_the_measurements_is_no_warning(parameters: float, outside: bool) -> None:
    """ "671 B parameters (126 M to 671 B)" is read by nobody, nor is "6.74 B parameters (7.24 B to 406 B)"."""
    assert bool(beyond("infiniband", 1, {"parameters": (126e6, 671e9)}, parameters)) == outside


@pytest.mark.parametrize(("kind", "nodes", "told"), [("ethernet", 2, True), ("ethernet", 1, False), ("roce", 2, False)])
def test_a_network_that_no_step_was_measured_on_is_told_where_machines_talk(kind: str, nodes: int, told: bool) -> None:
    lines = beyond(kind, nodes, {}, 8e9)
    assert bool(lines) == told
    assert not told or "Ethernet of the host between machines (50 % of 1,600 Gbit/s a machine are counted)" in lines[0]


def test_a_split_that_no_step_was_measured_in_is_told_with_its_band() -> None:
    """Llama 3.1 405B on H100 in 64 stages, where rows have up to 8."""
    (line,) = beyond("infiniband", 1, {"pp": (1, 8), "cp": (1, 8), "ep": (1, 64)}, 8e9)
    assert "constants: 16 pipeline stages (1 to 8); so its times may be 0.80 to 1.25 of those" in line
    assert not beyond("infiniband", 1, {"pp": (1, 16)}, 8e9)


def test_what_widens_a_band_by_next_to_nothing_is_no_warning() -> None:
    """Rows of several ranks of context that no fit had seen erred as much as if it had."""
    assert not beyond("infiniband", 1, {"cp": (1, 2)}, 8e9)
    (line,) = beyond("infiniband", 1, {"cp": (1, 2), "pp": (1, 8)}, 8e9)
    assert "16 pipeline stages (1 to 8), 4 ranks of context (1 to 2);" in line


def test_where_one_size_was_measured_it_stands_once() -> None:
    """ "70.6 B parameters (8.03 B to 8.03 B)"."""
    (line,) = beyond("infiniband", 1, {"parameters": (8.03e9, 8.03e9)}, 70.6e9)
    assert "70.6 B parameters (8.03 B);" in line


def test_owned_machines_of_unknown_network_are_told_with_what_mends_it() -> None:
    asked = scenario(
        [job("train", model="llama-3.1-8b", tokens="20B", deadline="30 days")],
        hardware={"owned": [{**OWNED, "shape": "rtx-3090-x8"}], "allow": ["h100"]},
    )
    document = api.solve(asked).document
    line = line_of(document, "hardware.owned[0]")
    assert not line["used"]
    assert "deadline" in line["text"]
    assert "assume_inter_node" in line["text"]
    (warning,) = (text for text in document["warnings"] if text.startswith("hardware.owned[0]"))
    assert "unknown" in warning
    assert "hardware.assume_inter_node:" in warning
    mended = api.solve(asked.with_({"hardware.assume_inter_node": "400 Gbit/s"})).document
    assert not any(text.startswith("hardware.owned[0]") for text in mended["warnings"])


def world() -> Any:
    devices = [
        device(),
        device("slow", peak_flop_per_s={"bf16": 1e12}),
        device("small", memory_bytes=2**30),
        device("idle"),
    ]
    shapes = [shape(f"{where}/{name}", kind) for where, name, kind in (*PLACES, ("east", "sold-out", "plain"))]
    return catalog(
        devices, shapes, [offer(f"{where}/{name}", 1.0 + number) for number, (where, name, _) in enumerate(PLACES)]
    )


PLACES = (("north", "one", "plain"), ("south", "one", "plain"), ("north", "slow", "slow"), ("north", "small", "small"))


@pytest.mark.parametrize(
    ("pattern", "used", "text"),
    [
        ("plain", True, "used: 1 plain for train"),
        ("slow", False, "not used: deadline:"),
        ("small", False, "not used: memory: needs"),
        ("idle", False, "not used: no offer of the catalog"),
    ],
)
def test_a_device_that_is_named_is_used_or_a_line_says_why_not(pattern: str, used: bool, text: str) -> None:
    asked = scenario([job("train", deadline="2 hours")], hardware={"allow": ["plain", "slow", "small", "idle"]})
    document = api.solve(asked, world()).document
    (line,) = (one for one in document["named"] if one["name"] == pattern)
    assert line["used"] is used
    assert line["text"].startswith(text)


def test_why_owned_machines_run_nothing_is_told_in_words() -> None:
    """The name in the program of the reason stood before it: "not used: not-run: k80-12gb: vllm runs from ..."."""
    owned = [{"shape": "k80-12gb-x8", "count": 1, "price": "$1/h"}]
    asked = fleet(model="llama-3.2-1b", throughput=None, qpm=6)
    document = api.solve(scenario(serving=[asked], hardware={"allow": ["l4"], "owned": owned})).document
    said = line_of(document, "hardware.owned[0]")["text"]
    assert said.startswith("not used: k80-12gb: vllm runs from compute capability 7.5 on")


def test_a_provider_that_is_named_has_a_line_with_what_it_would_cost() -> None:
    quotas = [{"provider": "south", "max_devices": 8}, {"provider": "east", "max_devices": 8}]
    asked = scenario([job("train", deadline="2 hours")], hardware={"quotas": quotas})
    document = api.solve(asked, world()).document
    south, east = (line_of(document, f"hardware.quotas[{number}].provider") for number in range(2))
    assert south["text"].startswith("not used: the cheapest way, 1 × south/one for train, costs")
    assert "+" in south["text"]
    assert east["text"] == "not used: no offer of the catalog is from there"


def test_without_a_plan_the_lines_are_there_too() -> None:
    asked = scenario([job("train", deadline="1 minute")], [fleet()], hardware={"allow": ["plain", "slow"]})
    document = api.solve(asked, world()).document
    assert document["status"] == "infeasible"
    assert [one["used"] for one in document["named"]] == [False, False]


@pytest.mark.parametrize("change", ["used", "name", "gone"])
def test_a_line_that_says_otherwise_is_refused(change: str) -> None:
    asked = scenario([job("train", deadline="2 hours")], hardware={"allow": ["plain", "slow"]})
    document: Any = copy.deepcopy(api.solve(asked, world()).document)
    assert not api.verify(document, world())
    line = document["named"][1]
    if change == "gone":
        document["named"].remove(line)
    else:
        line[change] = {"used": True, "name": "other"}[change]
    found = api.verify(resealed(document), world())
    assert "wrong-named" in {problem.reference for problem in found}


def test_every_provider_that_may_sell_has_a_line() -> None:
    """One sells what is rented, one the same for more, one nothing that is allowed; a plan without them is refused."""
    asked = scenario(
        [job("train", deadline="1000 h")],
        hardware={"providers": ["north", "south", "west"], "allow": ["plain"], "exclude": ["east"]},
    )
    shapes = [shape(f"{name}/one") for name in ("north", "south", "east")] + [shape("west/one", "small")]
    offers = [offer(f"{name}/one", price) for name, price in (("north", 1.0), ("south", 2.0), ("west", 1.0))]
    wares = catalog(list(world().devices.values()), shapes, [*offers, offer("east/one", 0.5)])
    document: Any = api.solve(asked, wares).document
    places = [f"hardware.providers[{index}]" for index in range(3)]
    used, dearer, nothing = (line_of(document, place) for place in places)
    assert used["used"]
    assert "costs $" in dearer["text"]
    assert nothing["text"] == "not used: not in hardware.allow"
    assert not api.verify(document, wares)
    document["named"] = [one for one in document["named"] if one["place"] != places[1]]
    assert api.verify(resealed(document), wares)


@pytest.mark.parametrize(
    ("pattern", "near"), [("aple-*", "apple-*"), ("h100-sxn*", "h100-sxm-80gb"), ("mi300y", "mi300x")]
)
def test_a_pattern_that_matches_nothing_names_the_nearest(pattern: str, near: str) -> None:
    jobs = [{"name": "train", "model": "llama-2-7b", "tokens": "1B", "deadline": "30 days"}]
    with pytest.raises(InputError) as caught:
        api.solve(scenario(jobs, hardware={"allow": ["h100-sxm-80gb", pattern]}))
    (problem,) = caught.value.problems
    assert f"no device of the catalog matches '{pattern}'" in problem.message
    assert near in problem.hint
    assert problem.places


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("europe", "write eu, all countries of the European Union"),
        ("germany", "by their two letters: de"),
        ("eu-centrl-1", "did you mean eu-central-1"),
    ],
)
def test_the_beginning_of_regions_is_told_as_a_pattern(said: str, told: str) -> None:
    """Three regions of many were named, as if one of them had been meant."""
    with pytest.raises(InputError) as caught:
        api.solve(scenario(serving=[fleet()], hardware={"regions": [said]}))
    assert told in caught.value.problems[0].hint


def test_weights_wider_than_those_that_are_published_are_told() -> None:
    """DeepSeek-V3 in bf16, which nobody publishes, takes two nodes of eight H200; one holds its fp8."""
    for given, told in (
        ({}, False),
        ({"weights": "bf16"}, True),
        ({"weights": "fp8-block"}, False),
        ({"weights": "fp8"}, False),
    ):
        asked = fleet(model="deepseek-v3", throughput=None, qpm=60, input_tokens=1000, output_tokens=200, **given)
        found = api.solve(scenario([], [asked], estimator="analytic", hardware={"allow": ["h200-sxm"]})).document
        lines = [one for one in found["warnings"] if "is published in fp8-block, and bf16 takes 2 times" in one]
        assert bool(lines) is told
        assert all("--set serving.fleet.weights=fp8-block" in one for one in lines)


@pytest.mark.parametrize(("model", "told"), [("gemma-3-4b", True), ("llama-3.2-3b", False)])
def test_that_pictures_are_left_out_is_told(model: str, told: bool) -> None:
    """A fleet of Gemma 3 was planned without its encoder of pictures, and nothing said so."""
    asked = {**fleet(qpm=6), "model": model, "throughput": None}
    lines = api.solve(scenario([], [asked], hardware={"allow": ["h100-*"]})).document["assumed"]
    assert (f"fleet: the text part of {model} alone, and no pictures" in lines) == told


def test_lengths_beyond_the_positions_of_a_model_are_told() -> None:
    """Requests that no server takes, and sequences that make another model of it, were planned without a word."""
    jobs = [job(model="gpt2-xl", tokens="1B", deadline="30 days", sequence_length=8192)]
    fleets = [fleet(model="gpt2-xl", weights="fp16", qpm=60, input_tokens=4000, output_tokens=500)]
    warnings = api.solve(scenario(jobs, fleets, hardware={"allow": ["h100-sxm-80gb"]})).document["warnings"]
    assert any("sequences of 8,192 tokens are more than the 1,024 positions" in one for one in warnings)
    assert any("its requests (4,500 tokens on average) are longer than the 1,024 positions" in one for one in warnings)
    wide = {"input_tokens": {"mean": 500, "p95": 1200}, "output_tokens": 50, "throughput": None}
    spread = fleet(model="gpt2-xl", weights="fp16", qpm=60, slo={"ttft_p95": "5 s"}, **wide)
    found = api.solve(scenario([], [spread], hardware={"allow": ["h100-sxm-80gb"]})).document
    (told,) = (one for one in found["warnings"] if "positions of" in one)
    assert told.startswith("fleet: 8 % of its requests (1,")  # 550 tokens on average all together
    tight = {**spread, "slo": {"ttft_p95": "1 ms"}}
    none = api.solve(scenario([], [tight], hardware={"allow": ["h100-sxm-80gb"]})).document
    assert none["infeasible"]["workloads"]["fleet"][0].startswith("latency: ttft_p95")
    assert "8 % of its requests" in render_screen(none)


def test_a_cheaper_way_that_a_limit_rules_out_is_not_next_and_the_limit_is_named() -> None:
    """Two slow devices would cost less than the fast one, and emit more than there may be."""
    half = {name: peak / 2 for name, peak in device().peak_flop_per_s.items()}
    known = catalog(
        [device(), device("slow", peak_flop_per_s=half)],
        [shape(), shape("north/slow", device="slow")],
        [offer(), offer("north/slow", 0.1)],
        grids={("north", "r1"): (400.0, 1.2)},
    )
    asked = scenario([job("a", deadline="6000 s")], hardware={"allow": ["plain", "slow"]})
    free = api.solve(asked, known).document
    assert [row["device"] for row in free["workloads"][0]["allocations"]] == ["slow"]
    emitted_kg = free["workloads"][0]["allocations"][0]["carbon_kg"]
    document = api.solve(asked.with_({"limits.carbon": f"{0.6 * emitted_kg:.4f} kg"}), known).document
    (workload,) = document["workloads"]
    assert workload["allocations"][0]["device"] == "plain"
    (told,) = (line for line in workload["because"] if line.startswith("slow "))
    assert told.startswith("slow would cost less: 2 × ")
    assert told.endswith("; limits.carbon leaves it out")
    assert line_of(document, "hardware.allow[1]")["text"].endswith("; limits.carbon leaves it out")


def test_reasons_of_several_workloads_begin_with_whose_they_are() -> None:
    """A job called "a" was taken to be named by every sentence with an a in it."""
    workloads: Any = [{"name": name, "because": ["that is a reason"], "cost_microusd": 1} for name in ("a", "b")]
    document: Any = {"workloads": workloads, "plain": None}
    assert because_lines(document) == ["a: that is a reason", "b: that is a reason"]


def test_a_way_that_costs_less_is_left_out_for_what_comes_first() -> None:
    """Half as fast at a tenth of the price, or on a dirty grid: no layout and no search has left it out."""
    slow = {name: rate / 2 for name, rate in device().peak_flop_per_s.items()}
    devices = [device(), device("slow", peak_flop_per_s=slow)]
    shapes = [shape(), shape("south/slow", "slow")]
    world = catalog(devices, shapes, [offer(), offer("south/slow", 0.1, region="r2")],
                    grids={("north", "r1"): (100.0, 1.0), ("south", "r2"): (900.0, 1.0)})  # fmt: skip
    for first, worse in (("time", "finish later"), ("carbon", "emit more")):
        plan = api.solve(scenario([job(deadline="30000 s")], objective=first, hardware={"allow": ["*", "slow"]}), world)
        document = plan.document
        why = f"it would {worse}, and {first} comes first"
        assert why in " ".join(one["text"] for one in document["named"])
        (workload,) = document["workloads"]
        assert why in " ".join(workload["because"])
        assert "alone it would take" not in " ".join(workload["because"])
        emitted = sum(row["carbon_kg"] for row in workload["allocations"]) if first == "carbon" else None
        assert carbon_of(document) == (f"{emitted:,.0f} kg CO2e" if emitted else "")


def test_a_limit_of_the_site_of_ones_own_machines_holds_and_they_are_named_once() -> None:
    owned = [{"shape": "north/one", "count": 8, "price": "$0/h", "region": "rack-1"}]
    asked = {"deadline": "30000 s"}

    def rows(**site: Any) -> Any:
        limits = {"sites": [{"provider": "owned", **site}]}
        document = api.solve(scenario([job(**asked)], hardware={"owned": owned}, limits=limits), catalog()).document
        assert [one["place"] for one in document["named"]] == ["hardware.owned[0]"]
        return document["workloads"][0]["allocations"]

    assert [row["provider"] for row in rows(power="100 kW")] == ["owned"]
    assert [row["provider"] for row in rows(power="100 W")] == ["north"]  # one of its devices is rated 500 W
    with pytest.raises(InputError) as caught:
        rows(power="100 kW", region="rock-1")
    assert caught.value.problems[0].hint == "did you mean rack-1?"
    with pytest.raises(InputError, match="owned"):
        api.solve(scenario([job()], limits={"sites": [{"provider": "owned", "power": "1 kW"}]}), catalog())


def test_networks_of_sellers_that_are_left_out_are_no_warning() -> None:
    unknown = {"inter_node_bytes_per_s_per_device": None}
    shapes = [shape("north/one", **unknown), shape("south/one", **unknown)]
    world = catalog([device()], shapes, [offer(), offer("south/one", 1.5, region="r2")])
    for hardware, many, named in (
        ({}, "2 shapes", "north/one, south/one"),
        ({"exclude": ["south"]}, "1 shape", "north/one"),
    ):
        asked = scenario([job(deadline="30000 s")], hardware={"allow": ["pl*"], **hardware})
        (told,) = (one for one in api.solve(asked, world).document["warnings"] if "whose network is" in one)
        assert told.startswith(f"a job stays inside one machine of {many} whose network is unknown: hardware.assume_")
        assert told.endswith(f"({named})")


def test_terms_that_a_scenario_names_are_used_or_told_why_not() -> None:
    """A year's commitment was asked for in a plan of a month: it cannot pay, and nothing said so."""
    shapes, offers = [shape("north/one")], [offer("north/one", 1.0)]
    year = replace(offer("north/one", 0.5), id="north:year", price_model="commitment_1y")
    own = catalog([device()], shapes, [*offers, year])
    asked = scenario([], [fleet("chat")], hardware={"pricing": ["on_demand", "commitment_1y"]})
    document = api.solve(asked, own).document
    assert line_of(document, "hardware.pricing[1]")["text"].startswith(
        "not used: from $4,380 a shape for 12 months, paid for as a whole, and the plan is for 1 month"
    )
    long = api.solve(asked.with_({"horizon": "12 months"}), own).document
    assert line_of(long, "hardware.pricing[1]")["used"]
    assert line_of(long, "hardware.pricing[1]")["text"].startswith("used: 1 × north/one from ")
    for told in (document, long):
        assert api.verify(told, own) == []
        forged = copy.deepcopy(told)
        found = line_of(forged, "hardware.pricing[1]")
        found["used"] = not found["used"]
        assert "wrong-named" in {problem.reference for problem in api.verify(resealed(forged), own)}


def test_terms_whose_prices_are_from_memory_are_told_with_what_they_would_save() -> None:
    """A year at half the price was "no plan with it that costs less was found", while a dear one was looked at."""
    year = replace(offer("north/one", 0.5), id="north:year", price_model="commitment_1y")
    remembered = replace(year, provenance=replace(year.provenance, status="recalled"))
    dear = replace(year, id="north:dear", price_microusd_per_hour=2_000_000)
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0), remembered, dear])
    asked = scenario([], [fleet()], horizon="12 months", hardware={"pricing": ["on_demand", "commitment_1y"]})
    session = api.Session(asked, own)
    document = session.solve().document
    assert line_of(document, "hardware.pricing[1]")["text"] == (
        "not used: no plan with it that costs less was found (from $17,520 a shape for 12 months); "
        "1 offer more at prices from memory (hardware.allow_recalled)"
    )
    words = "terms whose prices are from memory, if their sellers confirm them, would save $4,380 (50 %)"
    assert (words, "hardware.allow_recalled=true") in advice(session, document, more=True).found
    assert api.verify(document, own) == []
    seen = api.Session(asked.with_("hardware.allow_recalled=true"), own)
    document = seen.solve().document
    assert line_of(document, "hardware.pricing[1]")["text"].startswith("used: 1 × north/one from ")
    assert "from memory" not in json.dumps([document["named"], advice(seen, document, more=True).found])


def test_contracts_of_ones_own_are_used_or_told_why_not() -> None:
    """A contract that was negotiated and is too dear vanished from the plan without a word."""
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    terms = {"shape": "north/one", "region": "r1", "price_model": "commitment_1y"}
    hardware = {"contracts": [{**terms, "price": "$2/h"}, {**terms, "price": "$0.40/h"}]}
    asked = scenario([], [fleet("chat")], horizon="12 months", hardware=hardware)
    document = api.solve(asked, own).document
    dear, cheap = (line_of(document, f"hardware.contracts[{index}]") for index in (0, 1))
    assert dear["name"] == "north/one, commitment_1y"
    assert dear["text"] == "not used: no plan with it that costs less was found (from $17,520 a shape for 12 months)"
    assert cheap["used"]
    assert api.verify(document, own) == []


@pytest.mark.parametrize("periods", [{"periods": "1 month", "begin": "2027-01-01"}, {}])
def test_fleets_share_nodes_with_and_without_a_calendar(periods: dict[str, Any]) -> None:
    """Two small fleets took two nodes in place of one; and were said to be so many for their errors."""
    small = {"model": "llama-3.1-8b", "input_tokens": 1500, "output_tokens": 300, "slo": {"ttft_p95": "1 s"}}
    fleets = [fleet(name, qpm=60, throughput=None, target_load=0.8, **small) for name in ("chat", "code")]
    owned = {"shape": "dgx-h100", "count": 3, "price": "$4/h"}
    document = api.solve(scenario([], fleets, hardware={"exclude": ["*"], "owned": [owned]}, **periods)).document
    assert [(one["offer"], one["count"]) for one in document["shared_nodes"]] == [("owned:0:onprem/dgx-h100", 1)]
    assert not any("are there for the error of the prediction" in text for text in document["warnings"])


def test_replicas_that_are_asked_for_by_number_are_there_for_no_error() -> None:
    """Seven replicas that `min_replicas` asks for were said to be there for the error of the prediction."""
    few = fleet("chat", qpm=1, throughput=None, target_load=0.8, model="llama-3.1-8b", slo={"ttft_p95": "1 s"})
    said = "are there for the error of the prediction"
    for asked in ({"min_replicas": 7}, {"spare_replicas": 6}):
        document = api.solve(scenario([], [few | asked], hardware={"allow": ["l4"]})).document
        assert sum(row["replicas"] for row in document["workloads"][0]["allocations"]) == 7
        assert not any(said in text for text in document["warnings"])


def test_jobs_alike_are_not_told_more_machines_than_are_owned() -> None:
    """Two on one machine that is owned were the cheapest way, and the next device."""
    machine = {"shape": "dgx-a100-80gb", "count": 1, "price": "$20/h"}
    jobs = {"name": "jobs", "model": "qwen2.5-7b", "tokens": "3B", "deadline": "14 days", "count": 2}
    hardware = {"allow": ["h200-*"], "providers": ["verda"], "owned": [machine]}
    document = api.solve(scenario([jobs], hardware=hardware)).document
    said = line_of(document, "hardware.owned[0]")["text"]
    assert said == "not used: too few for jobs alone; a part of it there would not lower the cost"
    (workload,) = document["workloads"]
    assert {one["device"] for one in workload["alternatives"]} == {"h200-sxm"}
    assert not any("a100" in text for text in workload["because"])
    enough = scenario([jobs], hardware=hardware | {"owned": [machine | {"count": 2}]})
    document = copy.deepcopy(dict(api.solve(enough).document))
    (workload,) = document["workloads"]
    assert "a100-sxm-80gb" in {one["device"] for one in workload["alternatives"]}
    document["scenario"]["hardware"]["owned"][0]["count"] = 1
    assert any("at once, there are 1" in problem.message for problem in api.verify(document))


@pytest.mark.parametrize(("key", "instead"), [("exclude", "deny"), ("providers", "allow")])
def test_a_device_among_providers_is_told_where_devices_are_named(key: str, instead: str) -> None:
    with pytest.raises(InputError) as error:
        api.solve(scenario([job("train")], hardware={key: ["slow"]}), world())
    (problem,) = error.value.problems
    assert problem.hint == f'that is a device, and here providers are named; devices: hardware.{instead}: ["slow"]'


@pytest.mark.parametrize("hardware", [{"deny": ["sl*"]}, {"allow": ["plain", "slow"], "deny": ["slow"]}])
def test_why_not_a_device_that_is_denied_tells_what_it_would_cost(hardware: dict[str, Any]) -> None:
    (told,) = api.why_not(scenario([job("train", deadline="30 days")], hardware=hardware), "slow", world())
    assert not told["allowed"]
    assert told["state"] in ("dearer", "as cheap", "cheaper")


def test_why_not_dear_owned_machines_is_the_same_with_a_calendar() -> None:
    """Those that a cheaper way on the same device stands for were "impossible within the limits that are shared"."""
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    hardware = {"owned": [{"shape": "north/one", "count": 2, "price": "$5/h"}]}
    days = {"horizon": "12 weeks", "periods": "1 week", "begin": "2026-12-07"}
    plain, planned = (
        api.why_not(scenario([job("train", deadline="20 days")], hardware=hardware, **more), "hardware.owned[0]", own)
        for more in ({"horizon": "12 weeks"}, days)
    )
    assert plain[0]["state"] == planned[0]["state"] == "dearer"
    assert planned[0]["regret_microusd"] == plain[0]["regret_microusd"] > 0


@pytest.mark.parametrize(("share", "warned"), [(None, True), (0, False), (1, False)])
def test_spot_that_a_fleet_may_not_stand_on_is_told_so(share: float | None, warned: bool) -> None:
    """It was said that nothing is sold so, of a batch of requests that costs a fifth on spot."""
    made = fleet("batch", qpm=600) | ({} if share is None else {"max_spot_share": share})
    hardware = {"pricing": ["spot", "on_demand"], "spot": {"interruptions": "0.05 /h"}}
    known = catalog([device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.2, price_model="spot")])
    document = api.solve(scenario([], [made], hardware=hardware), known).document
    said = line_of(document, "hardware.pricing[0]")
    assert said["used"] == bool(share)
    assert bool(share) or said["text"] == "not used: no fleet stands on spot that has no max_spot_share"
    assert any("serving.batch.max_spot_share=0.5" in line for line in document["warnings"]) == warned


def test_what_is_bought_ahead_is_named_on_the_first_screen() -> None:
    """It said "Buy 1 contract ahead": neither what, nor for how long."""
    known = catalog(
        [device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.2, price_model="commitment_1y")]
    )
    hardware = {"pricing": ["on_demand", "commitment_1y"]}
    document = api.solve(scenario([], [fleet()], hardware=hardware, horizon="12 months"), known).document
    (bought,) = document["contracts"]
    screen = " ".join(render_screen(document).split())
    assert f" Buy {bought['count']} × north/one in r1 for 1 year ahead." in screen


def test_where_no_grid_is_known_the_first_screen_says_that_carbon_is_in_the_way() -> None:
    """It named a grid that is unknown, and neither that carbon counts nor what would let the place in."""
    document = api.solve(scenario([], [fleet()], limits={"carbon": "1 t"}), catalog(
        [device(tdp_w=100)], [shape()], [offer("north/one", 1.0)]
    )).document  # fmt: skip
    assert document["status"] == "infeasible"
    screen = " ".join(render_screen(document).split())
    assert (
        "where carbon counts, 1 offer of regions whose grids are unknown is left out, and weighed without a limit"
        in screen
    )


def test_a_share_on_spot_that_nobody_may_sell_is_told() -> None:
    """Of max_spot_share beside prices on demand alone nothing was said."""
    asked = scenario([], [fleet("batch") | {"max_spot_share": 0.5}])
    known = catalog([device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.2, price_model="spot")])
    (said,) = [line for line in api.solve(asked, known).document["warnings"] if "max_spot_share" in line]
    assert said.startswith("batch: max_spot_share (0.5) does nothing while hardware.pricing names no spot")


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        ({"spot": {"interruptions": "0.05 /h"}}, "--set 'hardware.pricing=[on_demand, spot]'"),
        ({"flex": {"wait": "12 h"}}, "--set 'hardware.pricing=[on_demand, flex]'"),
        ({"spot": {"interruptions": "0.05 /h"}, "pricing": ["on_demand"]}, ""),  # chosen so
    ],
)
def test_terms_of_what_is_not_bought_are_told(hardware: dict[str, Any], said: str) -> None:
    """How often spot is taken away was stated, and nothing but prices on demand weighed, without a word."""
    known = catalog([device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.2, price_model="spot")])
    warnings = api.solve(scenario([job()], hardware=hardware), known).document["warnings"]
    told = [line for line in warnings if "does nothing while hardware.pricing, left out, is on demand alone" in line]
    assert [line.partition(": ")[2] for line in told] == [said] * bool(said)


def test_owned_machines_that_leave_too_soon_are_told_where_nothing_else_is_in_the_way() -> None:
    """The first screen said "cannot hold together, though any fewer of these can: chat must run", and no more."""
    own = catalog([device()], [shape("north/one")], [])
    owned = {"shape": "north/one", "count": 4, "price": "$5/h", "until": "2026-12-09"}
    days = {"begin": "2026-12-01", "horizon": "10 days", "periods": "1 day"}
    asked = scenario([], [fleet("chat")], **days, hardware={"kinds": ["owned"], "owned": [owned]})
    screen = " ".join(render_screen(api.solve(asked, own).document).split())
    assert "! cannot be met even by itself: chat must run" in screen
    assert "a fleet holds its machines for the whole plan, and these are there until 2026-12-09" in screen


def test_a_group_of_owned_machines_that_is_not_there_is_told_those_that_are() -> None:
    """A place beyond the last was "no device of the catalog"."""
    own = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    asked = scenario([], [fleet()], hardware={"owned": [{"shape": "north/one", "count": 2, "price": "$5/h"}]})
    with pytest.raises(InputError) as caught:
        api.why_not(asked, "hardware.owned[7]", own)
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == ("there is no hardware.owned[7]", "hardware.owned[0]: 2 × north/one")


def test_too_few_machines_of_ones_own_are_told_by_their_shape() -> None:
    """It was "quota: 25 shapes of owned:0:onprem/dgx-h100, 2 allowed", of a scenario without any quota."""
    text = """{schema: plan/v1, name: own, training: [
        {name: big, model: llama-3.1-8b, tokens: 100B, deadline: 1 day}],
      hardware: {allow: [h100-sxm-80gb], kinds: [owned, cloud],
        owned: [{shape: dgx-h100, count: 2, price: $10/h}]}}"""
    asked = parse_scenario(text, file="own.yaml")
    text = line_of(api.solve(asked).document, "hardware.owned[0]")["text"]
    assert re.fullmatch(r"not used: [0-9]+ shapes of dgx-h100 \(hardware\.owned\[0\]\), 2 allowed", text)


def test_a_seller_whose_allowed_devices_are_elsewhere_is_told_the_region() -> None:
    """Its other devices, which hardware.allow leaves out, are not why."""
    hardware = {"allow": ["h100-*"], "providers": ["lambda"], "regions": ["eu"]}
    jobs = [{"name": "train", "model": "llama-2-7b", "tokens": "1B", "deadline": "30 days"}]
    plan = api.solve(scenario(jobs, hardware=hardware)).document
    told = {row["name"]: row["text"] for row in plan["named"]}
    assert told["lambda"] == "not used: not in hardware.regions"
