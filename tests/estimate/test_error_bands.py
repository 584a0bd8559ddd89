"""Error bands: which one a prediction has, what it takes to hold, what plans say of it; forgeries are found."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest

from planner import api
from planner.candidates.ledger import Ledger
from planner.candidates.offers import sites_of
from planner.candidates.training import training_tables
from planner.candidates.training_question import resolve_training
from planner.catalog.model import Band, Catalog, RuleError, TrainingFamily, TrainingPart
from planner.equations.bands import band_quantile
from planner.estimate.bands import beyond, beyond_power, error_band, margin, rule_band
from planner.estimate.binding import RESOURCE, bound_by
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.sources import time_equations
from planner.estimate.step import STEP_TERMS
from planner.plan.document import digest_of
from planner.plan.rows.bands import tie
from planner.report.plan_formats import render_plan
from planner.scenario.schema import Scenario
from tests.tiers import sampled
from tests.verified import errors, follow_schema
from tests.worlds import SEEN, catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
WIDE = Band(p10=0.8, p50=1.0, p90=1.25, rows=40, sources=5, median_error=0.1, mean_error=0.12, p90_error=0.25)
NARROW = Band(p10=0.95, p50=1.0, p90=1.05, rows=20, sources=3, median_error=0.02, mean_error=0.03, p90_error=0.05)
RULE = RuleError(
    device="plain", runs=23, median=0.18, mean=0.2, max=0.43, bias=0.0, elsewhere="20 % to 40 %", provenance=SEEN,
    family="half", elsewhere_mean=0.3,
)  # fmt: skip


HALF = device("wide", family="half")


def family(name: str, time: Band = WIDE, memory: Band = NARROW, **changes: Any) -> TrainingFamily:
    facts: dict[str, Any] = {
        "family": name, "constants": {"gemm": 0.8}, "constants_id": "abcd1234", "inherited_from": "", "time_band": time,
        "expert_time_band": replace(time, p90=time.p90 * 1.2), "memory_band": memory, "by_source": {}, "validity": {},
        "provenance": SEEN,
    }  # fmt: skip
    return TrainingFamily(**{**facts, **changes})


def banded(world: Catalog, *families: TrainingFamily, rule: RuleError | None = RULE) -> Catalog:
    return replace(world, training_families={one.family: one for one in families}, rule_error=rule)


def two_families() -> Catalog:
    """Two devices alike but for their family and its band; the wide one is cheaper by a tenth."""
    world = catalog(
        [device("wide", family="half"), device("narrow", family="other")],
        [shape("north/wide", "wide", devices=8), shape("south/narrow", "narrow", devices=8)],
        [offer("north/wide", 9.0), offer("south/narrow", 10.0, region="r2")],
    )
    return banded(world, family("half"), family("other", NARROW))


def small(**changes: Any) -> dict[str, Any]:
    """A job with layers: the analytic tier predicts it."""
    facts = {
        "model": "llama-3.2-1b", "tokens": "2B", "sequence_length": 4096, "sharding": ["none", "zero-3"],
        "recompute": ["none", "full"], "deadline": "100 h", "global_batch": "64 sequences",
    }  # fmt: skip
    return job(**{**facts, **changes})


def solved(plan: Scenario, world: Catalog) -> Document:
    document: Document = json.loads(api.solve(plan, world).to_json())
    follow_schema(document)
    return document


def row_of(document: Document) -> Document:
    row: Document = document["workloads"][0]["allocations"][0]
    return row


# ---- quantiles


@pytest.mark.parametrize("confidence", [0.5, 0.6, 0.75, 0.9, 0.95, 0.99])
def test_quantiles_follow_a_log_normal_upper_half(confidence: float) -> None:
    sigma = math.log(1.25) / NormalDist().inv_cdf(0.9)
    expected = math.exp(sigma * NormalDist().inv_cdf(confidence))
    assert band_quantile(1.0, 1.25, confidence) == pytest.approx(expected)


def test_stored_quantiles_come_back() -> None:
    assert band_quantile(0.97, 1.2, 0.5) == pytest.approx(0.97)
    assert band_quantile(0.97, 1.2, 0.9) == pytest.approx(1.2)


def test_a_margin_is_never_below_one() -> None:
    """A band of a model that is always too slow does not let a plan miss its own deadline."""
    fast = replace(WIDE, p10=0.7, p50=0.8, p90=0.95)
    assert margin(fast, 0.9) == 1.0
    assert margin(None, 0.99) == 1.0
    assert margin(WIDE, 0.5) == 1.0


def timed(**changes: Any) -> dict[str, Any]:
    """A job whose step was timed on one machine of eight, in a layout that is given whole."""
    layout = {"dp": 8, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "sharding": "zero-3",
              "recompute": "none"}  # fmt: skip
    step = {"measured": "3 s", "shape": "north/wide", "count": 1, "layout": layout}
    same = {"layout": layout} if changes.get("layout") == "same" else {}
    return small(step_time=step, tokens="4B", **{**changes, **same})


def test_a_run_goes_on_as_timed_for_sure_and_in_another_layout_at_the_band() -> None:
    """Both were told without a range, and the other one was planned to the last minute before its deadline."""
    world, one = two_families(), {"allow": ["wide"], "quotas": [{"device": "*", "max_devices": 8}]}
    goes_on = row_of(solved(scenario([timed(layout="same")], hardware=one), world))
    assert (goes_on["error_band"]["time"], goes_on["error_band"]["tag"]) == (None, "measured")
    moved = row_of(solved(scenario([timed()], hardware=one), world))
    band = moved["error_band"]
    assert (band["tag"], band["time"]["p90"], band["time"]["rows"]) == ("measured", 1.25, 0)
    assert band["hours"]["at_confidence"] == pytest.approx(1.25 * moved["hours"])
    tight = f"{1.1 * moved['hours']} h"
    assert solved(scenario([timed(deadline=tight)], hardware=one), world)["status"] == "infeasible"
    tight = f"{1.01 * goes_on['hours']} h"
    assert solved(scenario([timed(layout="same", deadline=tight)], hardware=one), world)["status"] == "optimal"


# ---- which band


def test_the_tier_decides_the_band() -> None:
    world = banded(catalog(), family("half"))
    assert error_band(world, HALF, "analytic").time == WIDE
    assert error_band(world, HALF, "analytic").constants_id == "abcd1234"
    assert error_band(world, HALF, "analytic", kind="experts").time.p90 == pytest.approx(1.5)  # type: ignore[union-attr]
    assert error_band(world, HALF, "measured").time is None
    assert error_band(world, HALF, "rule").time == rule_band(RULE, "half")
    for tier in ("rule", "analytic", "measured"):  # memory is estimated alike in all
        assert error_band(world, HALF, tier).memory == NARROW


def test_a_measured_step_leaves_open_what_layouts_differ_by() -> None:
    """Times scaled by one measured step had no error at all, in whatever layout and on whatever network."""
    known = replace(family("half"), parts={"wide": TrainingPart(work=1.0, expert_work=1.0, bands={"dense": NARROW})})
    tags = {"wide": "calibrated", "other": "unfitted"}
    other, wide = device("other", family="other"), replace(WIDE, p10=0.5, p50=0.9, p90=1.8, tag="unfitted")
    world = banded(catalog([HALF, other], [shape()]), known, family("other", wide))
    assert {one.id: error_band(world, one, "analytic").tag for one in (HALF, other)} == tags
    for one in (HALF, other):  # what a device has rows of, or else as much as one that has
        band = error_band(world, one, "analytic", measured="another")
        assert band.time == replace(NARROW, rows=0, sources=0)
        assert band.tag == "measured"
    same = error_band(world, other, "analytic", measured="same")
    assert (same.time, same.tag) == (None, "measured")
    assert error_band(world, HALF, "rule", measured="another").time == rule_band(RULE, "half")


def test_the_rule_errs_more_where_no_run_was_published() -> None:
    own, other = rule_band(RULE, "half"), rule_band(RULE, "another")
    assert own is not None
    assert other is not None
    assert own.p90 == pytest.approx(math.exp(NormalDist().inv_cdf(0.9) * 0.2 * math.sqrt(math.pi / 2)))
    assert other.p90 > own.p90 > 1.0
    assert own.p10 == pytest.approx(1 / own.p90)
    assert (own.rows, other.rows) == (23, 0)


def test_a_coarse_model_is_predicted_by_the_rule_whatever_is_asked() -> None:
    document = solved(scenario([job(deadline="9000 s", estimator="analytic")]), banded(catalog(), family("half")))
    assert document["workloads"][0]["estimator"] == "rule"
    assert row_of(document)["error_band"]["tier"] == "rule"
    assert any("rule of thumb" in line for line in document["warnings"])


def test_a_measured_speed_has_no_band_of_time() -> None:
    document = solved(scenario([small(mfu={"wide": 0.4, "narrow": 0.4})]), two_families())
    band = row_of(document)["error_band"]
    assert band["tier"] == "measured"
    assert band["time"] is None
    assert band["hours"]["p10"] == band["hours"]["p90"] == row_of(document)["hours"]
    assert band["memory"]["p90"] == NARROW.p90


# ---- what holds


def finish_s(world: Catalog, **changes: Any) -> float:
    return row_of(solved(scenario([small(**changes)], confidence="p50"), world))["hours"] * 3600.0


def test_a_deadline_holds_at_the_quantile() -> None:
    """One machine, one count: the deadline is met exactly when time x 1.25 fits."""
    world = banded(catalog(), family("half"))
    alone = {"limits": {"max_devices": 1}}
    seconds = row_of(solved(scenario([small()], **alone), world))["hours"] * 3600.0  # of what fits at the quantile
    fits, late = f"{seconds * 1.2501:.3f} s", f"{seconds * 1.2499:.3f} s"
    assert solved(scenario([small(deadline=fits)], **alone), world)["status"] == "optimal"
    missed = solved(scenario([small(deadline=late)], **alone), world)
    assert missed["status"] == "infeasible"
    assert missed["infeasible"]["median_cost_usd"] > 0
    assert "p50" in render_plan(missed, "table")
    assert solved(scenario([small(deadline=late)], confidence="p89", **alone), world)["status"] == "optimal"


def test_memory_holds_at_the_quantile() -> None:
    """What needs 100 % of the usable memory at its prediction does not fit a p90 of 1.05."""
    world = banded(catalog(), family("half"))
    needed = row_of(solved(scenario([small(recompute="none")]), world))["memory"]["needed_bytes"]

    def with_usable(size: float) -> Document:
        card = device(memory_bytes=round(size), reserved_memory_bytes=0)
        tight = banded(catalog([card]), family("half"))
        found = solved(scenario([small(recompute="none")], limits={"max_devices": 1}), tight)
        return found if found["status"] == "infeasible" else row_of(found)

    assert with_usable(needed * 1.0501)["memory"]["needed_bytes"] <= needed
    squeezed = with_usable(needed * 1.0499)
    assert squeezed.get("status") == "infeasible" or squeezed["memory"]["needed_bytes"] < needed


CONFIDENCES = ("p50", "p60", "p75", "p90", "p95", "p99")


@pytest.mark.parametrize("deadline", sampled(["6 h", "3 h", "12 h", "100 h"], 1))
def test_higher_confidence_is_never_cheaper(deadline: str) -> None:
    world, costs = two_families(), []
    for confidence in CONFIDENCES:
        document = solved(scenario([small(deadline=deadline)], confidence=confidence), world)
        costs.append(document["summary"]["cost_microusd"] or math.inf)
        margins = document["summary"]["margins"]
        if margins:
            assert margins["margins_microusd"] >= 0
            assert margins["median_cost_microusd"] == costs[0]
    assert costs == sorted(costs)


def test_a_job_may_ask_for_more_than_the_scenario() -> None:
    world = two_families()
    document = solved(scenario([small(name="sure", confidence="p99"), small(name="usual")], confidence="p75"), world)
    shares = {w["name"]: w["error_band"]["confidence"] for w in document["workloads"]}
    assert shares == {"sure": 0.99, "usual": 0.75}
    assert document["summary"]["margins"]["confidence"] == 0.99


def test_bands_scale_what_is_predicted() -> None:
    row = row_of(solved(scenario([small()]), two_families()))
    band = row["error_band"]
    for name in ("p10", "p50", "p90"):
        assert band["hours"][name] == pytest.approx(row["hours"] * band["time"][name])
        assert band["cost_usd"][name] == pytest.approx(row["cost_usd"] * band["time"][name])
        assert band["needed_bytes"][name] == pytest.approx(row["memory"]["needed_bytes"] * band["memory"][name])
    assert band["hours"]["at_confidence"] == pytest.approx(row["hours"] * band["time"]["margin"])


def test_both_tables_come_from_one_evaluation() -> None:
    """At the median at least as much is kept; every way kept at the confidence asked for is no slower there."""
    world, asked = two_families(), scenario([small(deadline="1700 s")])
    ledger = Ledger(workload="job")
    arch = api.load_model("llama-3.2-1b")
    question = resolve_training(asked.training[0], arch, asked, world)
    firm, median = training_tables(question, sites_of(asked, world, ledger), ledger)
    likely = {(site.offer.id, int(n)): s for site, n, s in zip(median.sites, median.nodes, median.finish_s)}
    assert len(firm) < len(median)
    for site, nodes, seconds in zip(firm.sites, firm.nodes, firm.finish_s):
        assert likely[site.offer.id, int(nodes)] <= seconds
        assert seconds * question.band(site).time_margin(0.9) <= 1700


# ---- sums and ties


def test_sums_are_of_quantiles_never_of_squares() -> None:
    document = solved(scenario([small(name="a"), small(name="b", tokens="3B")], [fleet()]), two_families())
    rows = [row for w in document["workloads"] for row in w["allocations"] if row.get("error_band")]
    serving = document["workloads"][2]["cost_usd"]
    for name in ("p10", "p90"):
        expected = sum(row["error_band"]["cost_usd"][name] for row in rows) + serving
        assert document["summary"]["cost_band"][name] == pytest.approx(expected)
    assert document["workloads"][2]["error_band"] is None


def test_a_budget_that_may_not_hold_is_warned_of() -> None:
    free = solved(scenario([small()]), two_families())["summary"]
    between = (free["cost_usd"] + free["cost_band"]["at_confidence"]) / 2
    document = solved(scenario([small()], limits={"budget": f"${between:.2f}"}), two_families())
    assert sum("the budget of" in line for line in document["warnings"]) == 1
    ample = solved(scenario([small()], limits={"budget": "$9999"}), two_families())
    assert not any("the budget of" in line for line in ample["warnings"])


def test_ties_are_between_families_only() -> None:
    world = two_families()
    wide, narrow = error_band(world, HALF, "analytic"), error_band(world, device("narrow", family="other"), "analytic")
    assert tie(100.0, wide, 120.0, narrow)
    assert tie(120.0, narrow, 100.0, wide)
    reach = math.exp(math.hypot(math.log(1.25), math.log(1 / 0.95)))
    assert tie(100.0, wide, 100.0 * reach * 0.999, narrow)
    assert not tie(100.0, wide, 100.0 * reach * 1.001, narrow)
    assert not tie(100.0, wide, 100.1, wide)  # the same error on both sides
    assert tie(100.0, wide, 100.0, wide)


def test_a_tie_is_marked_where_alternatives_are_shown() -> None:
    document = solved(scenario([small()]), two_families())
    job_ = document["workloads"][0]
    other = next(one for one in job_["alternatives"] if one["device"] != row_of(document)["device"])
    assert other["tie"]
    assert "a tie within the error bands" in " ".join(job_["because"])
    assert "tie" in render_plan(document, "table").split("Next best")[1].split("\n\n")[0]


# ---- binding and sources


def test_every_term_has_a_resource_and_an_equation() -> None:
    for tier, names in (("analytic", (*STEP_TERMS, "large_batch")), ("rule", ())):
        equations = time_equations(tier)
        assert set(names) | set(RUN_TERMS) <= set(equations)
        assert set(equations) <= set(RESOURCE)


def test_shares_of_resources_add_up() -> None:
    row = row_of(solved(scenario([small()]), two_families()))
    assert sum(row["binds"].values()) == pytest.approx(1.0)
    assert list(row["binds"].values()) == sorted(row["binds"].values(), reverse=True)
    assert bound_by({}) == {}


# ---- warnings


def test_a_job_beyond_the_measurements_is_warned_of() -> None:
    seen = family("half", validity={"devices": (64.0, 512.0), "parameters": (1e8, 1e11)})
    world = banded(catalog(), seen)
    document = solved(scenario([small()], limits={"max_devices": 8}), world)
    warned = [line for line in document["warnings"] if "outside the measurements" in line]
    assert len(warned) == 1
    assert "devices (64 to 512)" in warned[0]
    assert "parameters" not in warned[0]


# ---- outside of what rows cover


SIZES = {"devices": 64.0, "pp": 8.0, "cp": 1.0, "ep": 1.0, "parameters": 8e9, "sequence_length": 4096.0}


@pytest.mark.parametrize(
    ("changed", "strange", "power"),
    [
        ({}, False, 1.0),
        ({"devices": 128.0}, False, 1.3),
        ({"devices": 69.0}, False, 1.0),  # a tenth beyond is as good as within
        ({"devices": 4.0}, False, 1.1),
        ({"pp": 16.0}, False, 1.2),
        ({"devices": 128.0, "pp": 16.0}, False, 1.3),  # of several the one that errs most
        ({}, True, 1.3),  # a network that no row used, as more devices than any had
        ({"cp": 16.0}, False, 1.0),  # nothing is known to err more there
    ],
)
def test_a_band_is_wider_outside_of_what_rows_cover(changed: dict[str, float], strange: bool, power: float) -> None:
    seen = {"devices": (8.0, 64.0), "pp": (1.0, 8.0), "cp": (1.0, 8.0)}
    world = banded(catalog(), family("half", validity=seen))
    world = replace(world, training_beyond={"devices above": 1.3, "devices below": 1.1, "pp above": 1.2})
    outside = beyond(world, "half", {**SIZES, **changed}, strange_network=strange)
    assert float(beyond_power(world, outside)) == power
    own = error_band(world, HALF, "analytic").widened(power)
    assert own.time is not None
    assert (own.time.p10, own.time.p90) == pytest.approx((0.8**power, 1.25**power))
    assert own.time.rows == WIDE.rows
    assert own.time_margin(0.9) == pytest.approx(1.25**power)
    (margin_of_rows,) = error_band(world, HALF, "analytic").time_margins(0.9, [power])
    assert margin_of_rows == pytest.approx(own.time_margin(0.9))
    assert error_band(world, HALF, "analytic").time_margins(0.5, power) == 1.0


def test_a_plan_holds_its_deadline_at_the_band_of_its_own_corner() -> None:
    """The job fits the deadline on few devices at the band of its family, and needs more where no row is as large."""
    hours, counts, bands = [], [], []
    alone = row_of(solved(scenario([small()]), banded(catalog(), family("half"))))
    deadline = 1.3 * float(alone["hours"])  # above it at a margin of 1.25, below at one of 1.4
    for validity, powers in (({}, {}), ({"parameters": (1e8, 2e8)}, {"parameters above": 1.5})):
        world = replace(banded(catalog(), family("half", validity=validity)), training_beyond=powers)
        document = solved(scenario([small(deadline=f"{deadline} h")]), world)
        row = row_of(document)
        assert not errors(document, world)
        hours.append(row["hours"])
        counts.append(row["count"])
        bands.append(row["error_band"]["time"])
        assert row["hours"] * row["error_band"]["time"]["margin"] <= deadline
    assert bands[0]["margin"] == pytest.approx(1.25)
    assert bands[1]["margin"] == pytest.approx(1.25**1.5)
    assert bands[1]["p10"] == pytest.approx(0.8**1.5)
    assert hours[0] * 1.25**1.5 > deadline  # what was chosen before is late at the band of the corner
    assert counts[1] > counts[0]


# ---- the verifier


@pytest.fixture(scope="module")
def plan() -> Document:
    return solved(scenario([small(deadline="12 h")], [fleet()]), two_families())


def edit(*path: str | int, to: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        node: Any = document
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = to(node[path[-1]]) if callable(to) else to

    return apply


ROW = ("workloads", 0, "allocations", 0)
BAND = (*ROW, "error_band")
FORGERIES = [
    ("no band", edit(*BAND, to=None)),
    ("confidence", edit(*BAND, "confidence", to=0.5)),
    ("tier", edit(*BAND, "tier", to="rule")),
    ("constants", edit(*BAND, "constants", to="ffffffff")),
    ("family", edit(*BAND, "family", to="other-one")),
    ("quantile", edit(*BAND, "time", "p90", to=lambda value: value * 0.99)),
    ("margin", edit(*BAND, "time", "margin", to=1.0)),
    ("error", edit(*BAND, "time", "mean_error", to=0.01)),
    ("memory", edit(*BAND, "memory", "p90", to=1.0)),
    ("hours", edit(*BAND, "hours", "p90", to=lambda value: value * 0.99)),
    ("cost", edit(*BAND, "cost_usd", "p10", to=lambda value: value * 1.01)),
    ("needed", edit(*BAND, "needed_bytes", "at_confidence", to=lambda value: value * 0.99)),
    ("workload", edit("workloads", 0, "error_band", "cost_usd", "p90", to=lambda value: value * 0.99)),
    ("no workload band", edit("workloads", 0, "error_band", to=None)),
    ("band of a fleet", edit("workloads", 1, "error_band", to={"confidence": 0.9})),
    ("total", edit("summary", "cost_band", "p90", to=lambda value: value * 0.99)),
    ("margins", edit("summary", "margins", "margins_microusd", to=lambda value: value + 1)),
    ("binds", edit(*ROW, "binds", "compute", to=lambda value: value * 0.99)),
]


@pytest.mark.parametrize(("name", "forge"), FORGERIES, ids=[name for name, _ in FORGERIES])
def test_forged_bands_are_found(name: str, forge: Callable[[Document], None], plan: Document) -> None:
    world = two_families()
    assert errors(plan, world) == []
    forged = copy.deepcopy(plan)
    forge(forged)
    forged["sha256"] = digest_of(forged)
    assert errors(forged, world) != []


def test_a_plan_that_holds_at_the_median_only_is_late(plan: Document) -> None:
    """The same row under a deadline between its prediction and its p90."""
    world = two_families()
    row = row_of(plan)
    between = (row["hours"] + row["error_band"]["hours"]["at_confidence"]) / 2
    forged = copy.deepcopy(plan)
    forged["scenario"]["training"][0]["deadline"] = f"{between:.6f} h"
    forged["sha256"] = digest_of(forged)
    assert "late" in {problem.reference for problem in api.verify(forged, world)}
