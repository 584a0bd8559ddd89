"""Plans of fleets by the analytic tier: targets are kept, mixes looked at, spares counted, and forgeries found."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.analysis import tighten
from planner.candidates.serving import ServingTable
from planner.catalog.model import Catalog
from planner.errors import InputError, PlanError
from planner.plan.document import digest_of
from planner.plan.rows.serving_point import Point
from planner.report.plan_formats import render_plan
from planner.scenario.schema import Scenario
from tests import shipped
from tests.tiers import sampled
from tests.verified import errors, follow_schema
from tests.worlds import catalog, scenario, shape

pytestmark = pytest.mark.usefixtures("listed_once")
Document = dict[str, Any]
ROOT = Path(__file__).parents[2]
CHAT = ROOT / "scenarios" / "chat-fleet.yaml"
SLO = {"ttft_p95": "1 s", "tpot_p95": "60 ms"}


@pytest.fixture(scope="module")
def world() -> Catalog:
    return api.load_catalog()


def fleet(**changes: Any) -> Scenario:
    """One fleet of an 8B model on a few devices."""
    facts: dict[str, Any] = {
        "name": "chat", "model": "llama-3.1-8b", "weights": "fp8", "qpm": 600, "input_tokens": 1000,
        "output_tokens": 300, "slo": SLO,
    }  # fmt: skip
    hardware = changes.pop("hardware", {"allow": ["h100-sxm-80gb", "l40s", "a100-sxm-80gb"]})
    top = {name: changes.pop(name) for name in ("estimator", "confidence") if name in changes}
    return scenario([], [{**facts, **changes}], hardware=hardware, **top)


def solved(asked: Scenario, world: Catalog) -> Document:
    document: Document = json.loads(api.solve(asked, world).to_json())
    return document


def rows(document: Document) -> list[Document]:
    found: list[Document] = document["workloads"][0]["allocations"]
    return found


def cost(document: Document) -> int:
    found: int = document["summary"]["cost_microusd"]
    return found


# ---- targets


def test_targets_are_kept_at_the_confidence_asked_for(world: Catalog) -> None:
    document = solved(fleet(), world)
    assert document["workloads"][0]["estimator"] == "analytic"
    for row in rows(document):
        assert [target["name"] for target in row["point"]["targets"]] == list(SLO)
        for target in row["point"]["targets"]:
            assert target["predicted_s"] <= target["at_confidence_s"] <= target["target_s"]
        assert row["tier"]["tag"] in ("calibrated", "inherited")
        assert row["tier"]["tpot"]["margin"] >= 1


def test_tighter_targets_and_more_confidence_cost_no_less(world: Catalog) -> None:
    loose = cost(solved(fleet(slo={"ttft_p95": "3 s", "tpot_p95": "100 ms"}), world))
    tight = cost(solved(fleet(slo={"ttft_p95": "400 ms", "tpot_p95": "30 ms"}), world))
    median = cost(solved(fleet(confidence="p50"), world))
    asked = cost(solved(fleet(), world))
    assert loose <= asked <= tight
    assert median <= asked <= cost(solved(fleet(confidence="p95"), world))


def test_a_target_that_nothing_keeps_is_told_with_the_nearest_miss(world: Catalog) -> None:
    document = solved(fleet(slo={"ttft_p95": "1 ms"}), world)
    assert document["status"] == "infeasible"
    told = next(entry for entry in document["rejected"]["chat"]["reasons"] if entry["reason"] == "latency")
    assert told["nearest"].startswith("ttft_p95 ")
    assert re.fullmatch(r"ttft_p95 [0-9.]+ m?s on an idle [a-z0-9-]+, 1 ms asked", told["nearest"])


def test_prefixes_found_in_the_cache_and_good_drafts_cost_no_more(world: Catalog) -> None:
    asked = cost(solved(fleet(qpm=6000), world))
    assert cost(solved(fleet(qpm=6000, prefix_cached="60 %"), world)) <= asked
    drafted = solved(fleet(qpm=6000, speculative={"length": 3, "acceptance": "90 %"}), world)
    assert cost(drafted) <= asked
    (told,) = (line for line in drafted["assumed"] if "draft" in line)
    assert told.endswith("3 % of a step of the model, and the draft the memory of one of its layers")


def test_a_draft_model_of_its_own_is_weighed_and_timed(world: Catalog) -> None:
    """A draft of eight billion parameters takes memory, and time that a head of one layer does not."""
    asked = {"model": "llama-3.1-70b", "hardware": {"allow": ["h100-sxm-80gb"]}}

    def drafted(**model: Any) -> Document:
        return solved(fleet(**asked, speculative={"length": 3, "acceptance": "70 %", **model}), world)

    head, small = drafted(), drafted(model="llama-3.1-8b")
    assert not [line for line in small["assumed"] if "draft" in line]
    (own, *_), (other, *_) = rows(head), rows(small)
    assert own["layout"] == other["layout"]
    assert own["memory"]["terms_bytes"]["weights"] < other["memory"]["terms_bytes"]["weights"]
    assert own["point"]["batch_limit"] > other["point"]["batch_limit"]
    assert cost(head) < cost(small)
    assert not api.verify(small, world)
    with pytest.raises(InputError, match="no model preset 'unheard-of'"):
        drafted(model="unheard-of")


@pytest.mark.parametrize(
    ("changes", "estimator"),
    [
        ({}, "analytic"),
        ({"estimator": "rule"}, "rule (roofline T1)"),
        ({"throughput": "2100 tokens/s"}, "measured (given throughput)"),
        ({"throughput": "2100 tokens/s", "estimator": "analytic"}, "measured (given throughput)"),
        ({"throughput": "2100 tokens/s", "estimator": "rule"}, "rule (given throughput)"),
    ],
)
def test_a_throughput_that_was_measured_wins_unless_the_rule_is_asked_for(
    changes: dict[str, Any], estimator: str, world: Catalog
) -> None:
    document = solved(fleet(**changes), world)
    assert document["workloads"][0]["estimator"] == estimator
    assert (rows(document)[0]["point"] is None) == (estimator != "analytic")
    unchecked = [line for line in document["warnings"] if "latency targets are not checked" in line]
    assert bool(unchecked) == (estimator != "analytic")


def test_an_engine_that_nobody_knows_is_told(world: Catalog) -> None:
    document = solved(fleet(engine="homegrown"), world)
    assert any("'homegrown' is not known" in line for line in document["warnings"])
    assert rows(document)[0]["tier"]["engine"] == "vllm"


# ---- mixes


def test_a_mix_of_devices_is_cheaper_than_any_one_kind(world: Catalog) -> None:
    """Large cards carry most, and small ones the rest."""
    two = ["hardware.allow=[h100-sxm-80gb, l4]", "serving.chat.requests=17 /s", "serving.chat.slo.ttft_p95=5 s"]
    document = solved(api.load_scenario(CHAT, settings=two), world)
    assert len({row["device"] for row in rows(document)}) > 1
    assert document["single_kind"]["dearer"] > 0.05
    large = document["workloads"][0]["alternatives"][0]
    assert any(
        f"{large['device']} alone is next: {large['count']} × " in line for line in document["workloads"][0]["because"]
    )
    assert (
        f"{large['device']}" in render_plan(document, "table").partition("Next best, alone")[2].partition("One kind")[0]
    )
    for bucket in range(12):
        sent = sum(row["routed_requests_per_s"][bucket] for row in rows(document))
        assert sent == pytest.approx(document["workloads"][0]["fleet"]["buckets"][bucket]["peak_requests_per_s"])
    assert all(target["margin"] >= 0 for row in rows(document) for target in row["point"]["targets"])


def test_a_mix_that_would_miss_a_target_is_planned_for_less(world: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short requests behind long ones: replicas that may not carry what their rates promise carry less."""
    asked = api.load_scenario(CHAT)
    before = shipped.plan("chat-fleet")
    first = rows(before)[0]
    most = 0.6 * first["point"]["requests_per_s"]

    def same(point: Point) -> bool:
        return (point.site.device.id, dict(point.site.split)) == (first["device"], first["layout"])

    monkeypatch.setattr(Point, "missed", lambda self: 0.1 if same(self) and self.requests_per_s > most * 1.001 else -1)
    monkeypatch.setattr(tighten, "_cut", lambda point: min(most / point.requests_per_s, tighten.LEAST_CUT))
    document = solved(asked, world)
    alike = [row for row in rows(document) if (row["device"], row["layout"]) == (first["device"], first["layout"])]
    assert all(row["point"]["requests_per_s"] <= most * 1.001 for row in alike)
    assert cost(document) >= cost(before)
    assert bool(alike) == any("since requests are mixed" in line for line in document["workloads"][0]["because"])


def test_a_mix_that_nothing_carries_is_not_called_infeasible(world: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Point, "missed", lambda self: 0.1)
    monkeypatch.setattr(Point, "capacity_per_s", lambda self: 0.0)
    document = solved(fleet(hardware={"allow": ["h100-sxm-80gb"]}), world)
    assert document["status"] == "stopped"
    assert any("no routing was found" in line for line in document["warnings"])


@pytest.mark.parametrize(
    ("devices", "limits", "qpm", "sellers"),
    [
        ("l4", {"providers": "gcp", "regions": ["us-central1", "us-east4"]}, 300, ""),
        ("h100-sxm-80gb", {"providers": ["lambda", "nebius"]}, 2500, "limits.max_providers: 1 with "),
    ],
)
def test_a_fleet_at_several_places_is_told_what_keeps_it_in_one(
    devices: str, limits: dict[str, Any], qpm: int, sellers: str, world: Catalog
) -> None:
    """One seller has several regions: "limits.max_providers: 1" was told there, which the plan held to already."""
    quotas = [{"region": name, "max_devices": 8} for name in ("us-central1", "us-east4")]
    quotas += [{"provider": name, "max_devices": 4} for name in ("lambda", "nebius")]
    document = solved(fleet(qpm=qpm, hardware={"allow": devices, "quotas": quotas, **limits}), world)
    dearest = max(rows(document), key=lambda row: row["cost_microusd"])
    (told,) = (line for line in document["warnings"] if "runs at 2 places (" in line)
    assert told.endswith(f"; {sellers}--set serving.chat.regions={dearest['region']} keeps it in one")


# ---- pools


def test_pools_are_taken_when_they_are_cheaper(world: Catalog) -> None:
    hardware = {"allow": ["h100-sxm-80gb", "a100-sxm-80gb"], "assume_inter_node": "400 Gbit/s"}
    facts = {"input_tokens": 4000, "output_tokens": 200, "slo": {"ttft_p95": "2 s", "tpot_p95": "15 ms"}}
    costs, found = {}, {}
    for split in ("false", "auto", "true"):
        document = solved(fleet(disaggregated=split, hardware=dict(hardware), **facts), world)
        costs[split], found[split] = cost(document), {row["role"] for row in rows(document)}
    assert costs["auto"] <= min(costs["false"], costs["true"])
    assert found["false"] == {"whole"}
    assert found["true"] == {"prefill", "decode"}


def test_without_a_known_network_there_are_no_pools() -> None:
    def roles(rate: float | None) -> set[int]:
        own = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=rate)])
        asked = fleet(model="llama-3.2-1b", disaggregated="auto", hardware={"allow": ["plain"]})
        found = api.enumerate_candidates(asked, own).tables["chat"]
        assert isinstance(found, ServingTable)
        return set(found.role.tolist())

    assert roles(None) == {0}
    assert roles(1e10) == {0, 1, 2}


# ---- levels of load, spot, slices


def day(folder: Path) -> str:
    """A profile whose busiest hours have 1.8 times the mean, its quietest 0.2 times."""
    lines = [f"{hour},{(0.2, 1, 1.8, 1)[hour // 6]}" for hour in range(24)]
    (folder / "day.csv").write_text("hour,weight\n" + "\n".join(lines) + "\n")
    return "day.csv"


def test_autoscaling_without_a_load_to_follow_says_what_is_left_of_it(world: Catalog) -> None:
    told = " ".join(solved(fleet(autoscaling={"start_up": "10 min"}, availability="99.9 %"), world)["warnings"])
    assert "follows no load over the day, for none is known; its start-up is how long a repair takes" in told


def test_an_autoscaled_fleet_carries_every_level_and_costs_no_more(
    world: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = {"qpm": 3000, "load_profile": day(tmp_path), "spare_replicas": 1}
    still = solved(fleet(**facts), world)
    moving = solved(fleet(autoscaling={"start_up": "10 min"}, **facts), world)
    slow = solved(fleet(autoscaling={"start_up": "23 h"}, **facts), world)
    assert cost(moving) < cost(still)
    assert cost(slow) == cost(still)  # whoever starts that slowly is there for the peak all day
    levels = moving["workloads"][0]["fleet"]["levels"]
    assert levels[0]["hours_at_least"] == pytest.approx(730)
    assert levels[-1]["requests_per_s"] == pytest.approx(3000 / 60 * 1.8, rel=1e-3)
    for row in rows(moving):
        assert row["hours"] == pytest.approx(levels[row["level"]]["hours_at_least"])
    forged = copy.deepcopy(moving)
    late = max(rows(forged), key=lambda one: one["level"])
    assert late["level"] > 0
    late["level"] = 0
    assert references(forged, world) - {"changed-plan"}


def test_spot_serves_up_to_its_share(world: Catalog) -> None:
    hardware = {"allow": ["h100-sxm-80gb", "a100-sxm-80gb", "l40s"], "pricing": ["on_demand", "spot"],
                "spot": {"interruptions": "0.05 /h"}}  # fmt: skip
    none = solved(fleet(qpm=6000, hardware=dict(hardware)), world)
    half = solved(fleet(qpm=6000, max_spot_share="50 %", hardware=dict(hardware)), world)
    assert all(row["price_model"] == "on_demand" for row in rows(none))
    assert any(row["price_model"] == "spot" for row in rows(half))
    assert cost(half) < cost(none)
    forged = copy.deepcopy(half)
    forged["scenario"]["serving"][0]["max_spot_share"] = "10 %"
    assert "limit-exceeded" in references(forged, world)


def test_slices_are_sent_whole(world: Catalog) -> None:
    def parted(document: Document) -> list[float]:
        """Slices of buckets that are sent in part."""
        buckets = [bucket["peak_requests_per_s"] for bucket in document["workloads"][0]["fleet"]["buckets"]]
        slices = [
            8 * sent / peak for row in rows(document) for sent, peak in zip(row["routed_requests_per_s"], buckets)
        ]
        return [each for each in slices if each != pytest.approx(round(each), abs=1e-4)]

    two = ["hardware.allow=[h100-sxm-80gb, l4]", "serving.chat.requests=17 /s", "serving.chat.slo.ttft_p95=5 s"]
    free = solved(api.load_scenario(CHAT, settings=two), world)
    whole = solved(api.load_scenario(CHAT, settings=[*two, "serving.chat.integer_slices=true"]), world)
    assert parted(free)
    assert not parted(whole)
    assert cost(whole) >= cost(free)


# ---- spares and prices


def test_an_availability_asks_for_the_fewest_spares_that_hold_it(world: Catalog) -> None:
    document = solved(fleet(availability="99.999 %", qpm=6000), world)
    cells = document["workloads"][0]["fleet"]
    replicas = sum(row["replicas"] for row in rows(document))
    up, spares = cells["availability"]["replica"], cells["spare_replicas"]

    def within(k: int) -> float:
        return float(sum(comb(replicas, i) * (1 - up) ** i * up ** (replicas - i) for i in range(k + 1)))

    assert spares >= 1
    assert within(spares) >= 0.99999 > within(spares - 1)
    assert cells["availability"]["time_within_spares"] == pytest.approx(within(spares), rel=1e-12)


def test_an_api_price_stands_beside_ours_with_the_load_at_which_both_cost_the_same(world: Catalog) -> None:
    document = solved(fleet(api_price="$0.90 /1M output tokens"), world)
    api_cells = document["workloads"][0]["fleet"]["api"]
    assert api_cells["usd_per_request"] == pytest.approx(300 * 0.9e-6)
    assert api_cells["cost_usd"] == pytest.approx(10 * 730 * 3600 * 300 * 0.9e-6)
    even = api_cells["break_even_requests_per_s"] * 730 * 3600 * 300 * 0.9e-6
    assert even == pytest.approx(document["summary"]["cost_usd"])


# ---- forgeries


@pytest.fixture(scope="module")
def plan(world: Catalog) -> Document:
    return sound(solved(fleet(spare_replicas=1, api_price="$0.90 /1M output tokens"), world), world)


@pytest.fixture(scope="module")
def mix(world: Catalog) -> Document:
    return sound(shipped.plan("chat-fleet"), world)


def sound(document: Document, world: Catalog) -> Document:
    """What a forger starts from, looked at once."""
    assert references(document, world) == set()
    return document


def sealed(document: Document) -> Document:
    return {**document, "sha256": digest_of(document)}


def references(document: Document, world: Catalog) -> set[str]:
    return {problem.reference for problem in api.verify(sealed(document), world)}


def at(document: Document, path: str) -> tuple[Any, Any]:
    """The container of a cell and its key."""
    node: Any = document["workloads"][0]
    *steps, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for step in steps:
        node = node[step]
    return node, last


ROW = "allocations.0"
FORGED: list[tuple[str, Callable[[Any], Any]]] = [
    (f"{ROW}.bucket_requests_per_s.0", lambda value: value * 1.01),
    (f"{ROW}.routed_requests_per_s.0", lambda value: value + 0.1),
    (f"{ROW}.role", lambda value: "decode"),
    (f"{ROW}.point.sequences", lambda value: value + 1),
    (f"{ROW}.point.prefill_share", lambda value: value * 0.5),
    (f"{ROW}.point.ttft_s.p95", lambda value: value * 0.999),
    (f"{ROW}.point.tpot_s.mean", lambda value: value * 0.999),
    (f"{ROW}.point.e2e_s.p99", lambda value: value * 0.999),
    (f"{ROW}.point.itl_p99_s", lambda value: value * 0.999),
    (f"{ROW}.point.targets.0.margin", lambda value: value + 0.01),
    (f"{ROW}.point.targets.0.target_s", lambda value: value * 2),
    (f"{ROW}.point.capacity_requests_per_s", lambda value: value * 2),
    (f"{ROW}.point.sized_by", lambda value: "the weather"),
    (f"{ROW}.point.batch_limit", lambda value: value + 1),
    (f"{ROW}.tier.tag", lambda value: "measured"),
    (f"{ROW}.tier.constants", lambda value: "better ones"),
    (f"{ROW}.tier.tpot.median_error", lambda value: 0.001),
    ("fleet.spare_replicas", lambda value: value + 1),
    ("fleet.availability.time_within_spares", lambda value: 0.5),
    ("fleet.buckets.0.share", lambda value: 0.5),
    ("fleet.usd_per_million_output_tokens_mean", lambda value: value * 0.9),
    ("fleet.api.break_even_requests_per_s", lambda value: value * 0.9),
    ("demand.targets_s.ttft_p95", lambda value: value * 2),
]


@pytest.mark.usefixtures("rated_once")
@pytest.mark.parametrize(
    ("which", "path", "forge"),
    [("plan", *cell) for cell in FORGED] + sampled([("mix", *cell) for cell in FORGED], 3),
)
def test_a_forged_cell_is_found(
    which: str, path: str, forge: Callable[[Any], Any], request: pytest.FixtureRequest, world: Catalog
) -> None:
    document = copy.deepcopy(request.getfixturevalue(which))
    node, key = at(document, path)
    node[key] = forge(node[key])
    found = references(document, world)
    assert found - {"changed-plan"}, path


def test_targets_of_the_scenario_are_those_that_count(plan: Document, world: Catalog) -> None:
    forged = copy.deepcopy(plan)
    forged["scenario"]["serving"][0]["slo"]["ttft_p95"] = "30 ms"
    assert references(forged, world) & {"target-missed", "demand-unmet", "wrong-speed"}


def test_fewer_replicas_do_not_carry_the_peak(mix: Document, world: Catalog) -> None:
    forged = copy.deepcopy(mix)
    row = max(rows(forged), key=lambda one: one["replicas"])
    row["replicas"] = row["replicas_needed"] = 1
    assert "demand-unmet" in references(forged, world)


# ---- simulation


def test_a_simulation_stands_beside_the_formulas_and_repeats(world: Catalog) -> None:
    asked = fleet()
    first, again = (api.solve(asked, world, simulate=True, seed=1).document for _ in range(2))
    assert first["sha256"] == again["sha256"]
    assert errors(first, world) == []
    follow_schema(first)
    one = first["simulation"][0]
    row = next(row for row in rows(first) if row["offer"] == one["offer"])
    assert one["tpot_s"]["mean"] == pytest.approx(row["point"]["tpot_s"]["mean"], rel=0.15)
    assert one["ttft_s"]["p50"] == pytest.approx(row["point"]["ttft_s"]["p50"], rel=0.35)
    assert "simulation" not in api.solve(asked, world).document


def test_pools_of_a_fleet_lie_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefill in Virginia and decode in Canada saved 6 %, with 17 PB of caches a month between them, unpriced."""
    rows = api.solve("disaggregated").document["workloads"][0]["allocations"]
    assert {row["role"] for row in rows} == {"prefill", "decode"}  # type: ignore[typeddict-item]
    assert len({(row["provider"], row["region"]) for row in rows}) == 1
    monkeypatch.setattr("planner.candidates.search._places", lambda facts, role: 0 * role)
    with pytest.raises(PlanError, match=r"pools lie in \d places"):
        api.solve("disaggregated")
    monkeypatch.setattr("planner.api.sessions._verify", lambda *_, **__: [])  # as of futures, which lack the rule
    assert any(re.search(r"its pools lie in \d places", one) for one in api.solve("disaggregated").document["warnings"])


def test_caches_leave_no_pipelines_that_do_not_move_them() -> None:
    """Prompts of a Qwen3 Next were planned in four stages, out of which vLLM moves no states of linear attention."""
    lengths = {"input_tokens": 12_000, "output_tokens": 300, "slo": {"ttft_p95": "6 s", "tpot_p95": "40 ms"}}
    asked = {"name": "documents", "model": "qwen3-next-80b-a3b", "qpm": 1200, "disaggregated": True, **lengths}
    hardware = {"allow": ["h100-sxm-80gb"], "providers": ["hyperstack"]}
    document: Any = api.solve(scenario(serving=[asked], hardware=hardware)).document
    rows = document["workloads"][0]["allocations"]
    assert {(row["role"], row["layout"]["pp"]) for row in rows} == {("prefill", 1), ("decode", 1)}
    dropped = {one["reason"]: one["nearest"] for one in document["rejected"]["documents"]["reasons"]}
    assert "in a pipeline" in dropped["unmoved"] or "out of a pipeline" in dropped["unmoved"]
    assert not api.verify(document)
    for number, row in enumerate(rows):
        forged = copy.deepcopy(document)
        forged["workloads"][0]["allocations"][number]["layout"] |= {"pp": 2, "dp": row["layout"]["dp"] // 2}
        told = f"no cache is moved by a {row['role']} pool in stages"
        assert any(told in problem.message for problem in api.verify(forged)), row["role"]
