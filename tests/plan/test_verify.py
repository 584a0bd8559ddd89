"""A plan that was tampered with is caught, with its seal made anew or not; one that was not is left alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner import api
from planner.candidates.search import enumerate_candidates
from planner.catalog.model import Catalog
from planner.errors import InputError, Problem
from planner.optimize.solve import optimize
from planner.plan.document import build_document, digest_of
from planner.plan.plan_files import read_document
from planner.scenario.schema import Scenario
from tests.tiers import cases, first_and_last, sampled, settings
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

pytestmark = pytest.mark.usefixtures("rated_once")
Document = dict[str, Any]
ROOT = Path(__file__).parents[2]


def solved(plan: Scenario, world: Catalog) -> Document:
    """A plan as it is written to disk and read again."""
    document: Document = json.loads(api.solve(plan, world).to_json())
    return document


def problems(document: Document, world: Catalog) -> list[Problem]:
    try:
        return api.verify(document, world)
    except InputError as error:  # what is not even of the types of a plan
        return list(error.problems)


def references(document: Document, world: Catalog) -> set[str]:
    return {problem.reference for problem in problems(document, world)}


@pytest.fixture(scope="module")
def world() -> Catalog:
    return api.load_catalog()


@pytest.fixture(scope="module")
def plan(world: Catalog) -> Document:
    """A job of two copies on A100s and a fleet with a spare on an L40S or so, under limits that nearly bind."""
    asked = scenario(
        [job("train", model="llama-3.1-8b", tokens="2B", deadline="10 days", sequence_length=8192, count=2,
             global_batch="64 sequences", sharding=["none", "zero-1", "zero-3"], recompute=["none", "full"])],
        [{"name": "chat", "model": "qwen2.5-7b", "weights": "fp8", "qpm": 60, "input_tokens": 500,
          "output_tokens": 200, "spare_replicas": 1, "min_replicas": 2}],
        title="A plan to tamper with",
        hardware={"allow": ["a100-sxm-80gb", "h100-sxm-80gb", "l40s"],
                  "quotas": [{"device": "a100-*", "max_devices": 64}]},
        limits={"budget": "$20000", "max_devices": 96, "max_providers": 3},
    )  # fmt: skip
    return solved(asked, world)


def sealed(document: Document) -> Document:
    """With a seal that fits its content."""
    return {**document, "sha256": digest_of(document)}


def row_of(document: Document, workload: int) -> Document:
    row: Document = document["workloads"][workload]["allocations"][0]
    return row


# ---- tampering: (name, what to do, the references of which one must be found)

TRAIN, CHAT = 0, 1


def edit_row(workload: int, **changes: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        row = row_of(document, workload)
        for name, value in changes.items():
            row[name] = value(row[name]) if callable(value) else value

    return apply


def edit(*path: str | int, to: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        node: Any = document
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = to(node[path[-1]]) if callable(to) else to

    return apply


def scale_row(workload: int, factor: int) -> Callable[[Document], None]:
    """More shapes, with everything that follows from them kept consistent: only limits can tell."""

    def apply(document: Document) -> None:
        row = row_of(document, workload)
        for name in ("count", "devices", "cost_microusd", "device_hours", "power_w", "cost_usd"):
            row[name] = row[name] * factor
        if row["carbon_kg"] is not None:
            row["carbon_kg"] *= factor
        if "jobs" in row:
            row["jobs"] *= factor
            document["scenario"]["training"][0]["count"] = row["jobs"]
            document["workloads"][workload]["count"] = row["jobs"]
        else:
            row["replicas"] *= factor
            row["replicas_needed"] = row["replicas"] - document["workloads"][workload]["demand"]["spare_replicas"]
            row["load_at_peak"] /= factor
            for name in ("usd_per_million_output_tokens_mean",):
                row[name] *= factor
        add_up(document)

    return apply


def add_up(document: Document) -> None:
    """All totals anew, as a careful forger would."""
    for workload in document["workloads"]:
        workload["cost_microusd"] = sum(row["cost_microusd"] for row in workload["allocations"])
        workload["cost_usd"] = workload["cost_microusd"] / 1e6
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    summary = document["summary"]
    summary["cost_microusd"] = summary["bound_microusd"] = sum(row["cost_microusd"] for row in rows)
    summary["cost_usd"] = summary["bound_usd"] = summary["cost_microusd"] / 1e6
    summary["devices"] = sum(row["devices"] for row in rows)
    summary["device_hours"] = sum(row["device_hours"] for row in rows)
    for kind in ("training", "serving"):
        cost = sum(w["cost_microusd"] for w in document["workloads"] if w["kind"] == kind)
        summary[f"{kind}_usd"] = cost / 1e6


def cheaper(document: Document) -> None:
    """A dollar less an hour, with every sum worked out again."""
    row = row_of(document, TRAIN)
    share = (row["price_microusd_per_hour"] - 1_000_000) / row["price_microusd_per_hour"]
    row["price_microusd_per_hour"] -= 1_000_000
    row["cost_microusd"] = round(row["cost_microusd"] * share)
    row["cost_usd"] = row["cost_microusd"] / 1e6
    add_up(document)


def drop_workload(document: Document) -> None:
    del document["workloads"][CHAT]
    add_up(document)


def drop_rows(document: Document) -> None:
    document["workloads"][TRAIN]["allocations"] = []
    add_up(document)


def one_job_less(document: Document) -> None:
    row = row_of(document, TRAIN)
    shapes = row["count"] // row["jobs"]
    for name in ("cost_microusd", "device_hours", "power_w"):
        row[name] = row[name] * (row["jobs"] - 1) / row["jobs"]
    row["cost_microusd"] = round(row["cost_microusd"])
    row["cost_usd"] = row["cost_microusd"] / 1e6
    row["jobs"] -= 1
    row["count"] -= shapes
    row["devices"] = row["count"] * row["devices_per_shape"]
    add_up(document)


def one_shape_less(document: Document) -> None:
    """A fleet without its spare, in every cell."""
    row = row_of(document, CHAT)
    shapes, replicas = row["count"], row["replicas"]
    row["count"] = shapes - 1
    row["replicas"] = replicas * (shapes - 1) // shapes
    row["replicas_needed"] = row["replicas"] - 1
    row["devices"] = row["count"] * row["devices_per_shape"]
    for name in ("cost_microusd", "device_hours", "power_w"):
        row[name] = row[name] * (shapes - 1) / shapes
    row["cost_microusd"] = round(row["cost_microusd"])
    row["cost_usd"] = row["cost_microusd"] / 1e6
    row["load_at_peak"] *= replicas / row["replicas"]
    row["usd_per_million_output_tokens_mean"] *= (shapes - 1) / shapes
    add_up(document)


def drop_infeasible(document: Document) -> None:
    document["status"] = "infeasible"
    document["summary"]["cost_microusd"] = None


TAMPERINGS: list[tuple[str, Callable[[Document], None], set[str]]] = [
    ("count", edit_row(TRAIN, count=lambda n: n + 2), {"wrong-count", "illegal-layout"}),
    ("count of a fleet", edit_row(CHAT, count=lambda n: n - 1), {"wrong-count"}),
    ("devices", edit_row(TRAIN, devices=lambda n: n - 1), {"wrong-count"}),
    ("price", edit_row(TRAIN, price_microusd_per_hour=lambda n: n - 1), {"wrong-price"}),
    ("price and every sum", cheaper, {"wrong-price"}),
    ("offer that does not exist", edit_row(TRAIN, offer="moon:sea:rock:on_demand"), {"unknown-offer"}),
    ("offer of another price", edit_row(CHAT, offer="aws:us-east-1:p5.48xlarge:block"), {"wrong-offer", "not-allowed"}),
    ("region", edit_row(CHAT, region="nowhere"), {"wrong-offer"}),
    ("layout product", edit("workloads", TRAIN, "allocations", 0, "layout", "dp", to=lambda n: n + 1),
     {"illegal-layout"}),
    ("chunks", edit("workloads", TRAIN, "allocations", 0, "layout", "vpp", to=2), {"illegal-layout"}),
    ("experts", edit("workloads", TRAIN, "allocations", 0, "layout", "ep", to=2), {"illegal-layout"}),
    ("a sharding that was not allowed", edit("workloads", TRAIN, "allocations", 0, "layout", "sharding", to="zero-2"),
     {"illegal-layout"}),
    ("a recomputation that was not allowed",
     edit("workloads", TRAIN, "allocations", 0, "layout", "recompute", to="selective"), {"illegal-layout"}),
    ("micro-batch", edit("workloads", TRAIN, "allocations", 0, "layout", "micro_batch", to=lambda n: n * 2),
     {"illegal-layout"}),
    ("batch", edit("workloads", TRAIN, "allocations", 0, "layout", "global_batch_sequences", to=lambda n: n * 2),
     {"illegal-layout"}),
    ("split of a replica", edit("workloads", CHAT, "allocations", 0, "layout", "pp", to=lambda n: n * 2),
     {"illegal-layout", "wrong-count"}),
    ("memory needed", edit("workloads", TRAIN, "allocations", 0, "memory", "needed_bytes", to=lambda x: x * 0.9),
     {"wrong-memory"}),
    ("memory usable", edit("workloads", CHAT, "allocations", 0, "memory", "usable_bytes", to=lambda x: x * 2),
     {"wrong-memory"}),
    ("memory term", edit("workloads", TRAIN, "allocations", 0, "memory", "terms_bytes", "optimizer", to=1.0),
     {"wrong-memory"}),
    ("hours", edit_row(TRAIN, hours=lambda x: x * 0.99), {"wrong-time"}),
    ("finish", edit_row(TRAIN, finish_hours=lambda x: x - 1), {"wrong-time"}),
    ("deadline of the row", edit_row(TRAIN, deadline_hours=lambda x: x - 1), {"wrong-time"}),
    ("time term", edit("workloads", TRAIN, "allocations", 0, "time_terms_s", "products", to=0.0), {"wrong-time"}),
    ("speed of a device", edit_row(TRAIN, mfu=0.9), {"wrong-time"}),
    ("speed of a replica", edit_row(CHAT, replica_requests_per_s=lambda x: x * 1.1), {"wrong-speed"}),
    ("latency", edit_row(CHAT, tpot_s=lambda x: x / 2), {"wrong-speed"}),
    ("load", edit_row(CHAT, load_at_peak=lambda x: x / 2), {"wrong-load"}),
    ("planned rate", edit_row(CHAT, planned_requests_per_s=lambda x: x * 2), {"wrong-load"}),
    ("power", edit_row(TRAIN, power_w=lambda x: x / 2), {"wrong-energy"}),
    ("cost row", edit_row(TRAIN, cost_microusd=lambda n: n - 1), {"wrong-cost"}),
    ("cost row of a fleet", edit_row(CHAT, cost_microusd=lambda n: n - 1), {"wrong-cost"}),
    ("dollars of a row", edit_row(TRAIN, cost_usd=lambda x: x - 1), {"wrong-total"}),
    ("total", edit("summary", "cost_microusd", to=lambda n: n - 1), {"wrong-total", "wrong-proof"}),
    ("total in dollars", edit("summary", "cost_usd", to=lambda x: x - 1), {"wrong-total"}),
    ("training in dollars", edit("summary", "training_usd", to=lambda x: x - 1), {"wrong-total"}),
    ("device-hours", edit("summary", "device_hours", to=lambda x: x * 0.5), {"wrong-total"}),
    ("bound below", edit("summary", "bound_microusd", to=lambda n: n - 1), {"wrong-proof"}),
    ("bound above", edit("summary", "bound_microusd", to=lambda n: n + 1), {"wrong-proof"}),
    ("no bound", edit("summary", "bound_microusd", to=None), {"wrong-proof", "malformed-plan"}),
    ("gap", edit("summary", "gap", to=0.01), {"wrong-proof"}),
    ("status", edit("status", to="infeasible"), {"wrong-proof"}),
    ("status and cost", drop_infeasible, {"wrong-proof"}),
    ("unknown status", edit("status", to="splendid"), {"malformed-plan"}),
    ("catalog", edit("provenance", "catalog", "sha256", to="0" * 64), {"other-catalog"}),
    ("date of the catalog", edit("provenance", "catalog", "as_of", to="2031-01-01"), {"other-catalog"}),
    ("shorter deadline", edit("scenario", "training", 0, "deadline", to="1 h"), {"late"}),
    ("longer deadline", edit("scenario", "training", 0, "deadline", to="100 days"), {"wrong-time"}),
    ("more tokens", edit("scenario", "training", 0, "tokens", to="3B"), {"wrong-time"}),
    ("another model", edit("scenario", "training", 0, "model", to="llama-3.1-70b"), {"wrong-workload"}),
    ("more requests", edit("scenario", "serving", 0, "qpm", to=60_000), {"demand-unmet"}),
    ("fewer requests", edit("scenario", "serving", 0, "qpm", to=6), {"wrong-workload"}),
    ("more spares", edit("scenario", "serving", 0, "spare_replicas", to=40), {"demand-unmet"}),
    ("more replicas asked for", edit("scenario", "serving", 0, "min_replicas", to=40), {"demand-unmet"}),
    ("devices not allowed", edit("scenario", "hardware", "allow", to=["t4"]), {"not-allowed"}),
    ("regions not allowed", edit("scenario", "hardware", "regions", to=["antarctica-*"]), {"not-allowed"}),
    ("budget", edit("scenario", "limits", "budget", to="$1"), {"limit-exceeded"}),
    ("fewer devices allowed", edit("scenario", "limits", "max_devices", to=1), {"limit-exceeded"}),
    ("power limit", edit("scenario", "limits", "power", to="1 W"), {"limit-exceeded"}),
    ("spend limit", edit("scenario", "limits", "spend", to="$0.01/h"), {"limit-exceeded"}),
    ("carbon limit", edit("scenario", "limits", "carbon", to="1 g"), {"limit-exceeded"}),
    ("quota", edit("scenario", "hardware", "quotas", to=[{"provider": "*", "max_devices": 1}]), {"limit-exceeded"}),
    ("quota of shapes", edit("scenario", "hardware", "quotas", to=[{"provider": "*", "max_shapes": 1}]),
     {"limit-exceeded"}),
    ("counts beyond the limits, all sums right", scale_row(TRAIN, 100), {"limit-exceeded"}),
    ("a fleet beyond the limits, all sums right", scale_row(CHAT, 100), {"limit-exceeded"}),
    ("too few replicas, all sums right", one_shape_less, {"demand-unmet"}),
    ("one job less, all sums right", one_job_less, {"wrong-count"}),
    ("no rows for a job, all sums right", drop_rows, {"wrong-count"}),
    ("a workload missing, all sums right", drop_workload, {"missing-workload"}),
    ("a workload twice", lambda d: d["workloads"].append(d["workloads"][CHAT]), {"missing-workload"}),
    ("a workload renamed", edit("workloads", TRAIN, "name", to="other"), {"missing-workload"}),
    ("jobs", edit_row(TRAIN, jobs=1), {"wrong-count", "illegal-layout"}),
    ("replicas", edit_row(CHAT, replicas=lambda n: n * 2), {"wrong-count"}),
    ("schema", edit("schema", to="plan/result/v2"), {"unknown-schema"}),
    ("title", edit("title", to="Another title"), {"wrong-workload"}),
]  # fmt: skip


def test_the_plan_to_tamper_with_is_sound(plan: Document, world: Catalog) -> None:
    assert plan["status"] == "optimal"
    assert problems(plan, world) == []
    assert problems(sealed(plan), world) == []
    assert row_of(plan, TRAIN)["jobs"] == 2
    assert row_of(plan, CHAT)["count"] > 1


@pytest.mark.parametrize(("name", "tamper", "expected"), TAMPERINGS, ids=[name for name, _, _ in TAMPERINGS])
def test_tampering_is_caught_under_a_new_seal(
    name: str, tamper: Callable[[Document], None], expected: set[str], plan: Document, world: Catalog
) -> None:
    forged = copy.deepcopy(plan)
    tamper(forged)
    found = references(sealed(forged), world)
    assert found & expected, found
    assert "changed-plan" not in found


@pytest.mark.parametrize(("name", "tamper"), sampled([(name, tamper) for name, tamper, _ in TAMPERINGS], 10))
def test_tampering_breaks_the_seal(
    name: str, tamper: Callable[[Document], None], plan: Document, world: Catalog
) -> None:
    forged = copy.deepcopy(plan)
    tamper(forged)
    assert references(forged, world) & {"changed-plan", "malformed-plan", "unknown-schema"}


def test_a_new_seal_alone_is_caught(plan: Document, world: Catalog) -> None:
    assert references({**plan, "sha256": "0" * 64}, world) == {"changed-plan"}
    unsealed = {key: value for key, value in plan.items() if key != "sha256"}
    assert references(unsealed, world) == {"malformed-plan"}


def test_reasons_are_covered_by_the_seal(plan: Document, world: Catalog) -> None:
    forged = copy.deepcopy(plan)
    forged["workloads"][0]["because"] = ["it is the best"]
    assert references(forged, world) == {"changed-plan"}


def cells(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from cells(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from cells(value, (*path, index))
    else:
        yield path, node


def test_every_number_of_every_row_and_of_the_summary_is_checked(plan: Document, world: Catalog) -> None:
    """One per cent on a float, one on an integer: nothing that people read can be changed alone; a third by default."""
    missed, listed = [], dict(cells(plan))
    numbers = [path for path, value in listed.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    shown = [path for path in numbers if path[0] == "summary" or (path[0] == "workloads" and path[2] in READ)]
    kept = first_and_last(shown)
    for path in [path for path in shown if path in kept][:: cases(3, 1)]:
        value = listed[path]
        forged = copy.deepcopy(plan)
        edit(*path, to=value + 1 if isinstance(value, int) else value * 1.01 + (value == 0) * 1e4)(forged)
        if not problems(sealed(forged), world):
            missed.append(".".join(map(str, path)))
    assert missed == []


READ = ("allocations", "error_band", "cost_microusd", "cost_usd", "demand", "count", "parameters", "active_parameters")


# ---- sound plans


def test_windows_that_do_not_meet_share_a_limit_and_windows_that_do_may_not() -> None:
    """Two jobs of one device each, one after the other, under a limit of one device."""
    small = catalog()
    apart = scenario([job("a", deadline="2 h"), job("b", deadline="2 h", start="2 h")], limits={"max_devices": 1})
    document = solved(apart, small)
    assert document["status"] == "optimal"
    forged = copy.deepcopy(document)
    forged["scenario"]["training"][1]["start"] = "1 h"
    assert "limit-exceeded" in references(sealed(forged), small)


def test_owned_shapes_are_bound_by_their_count() -> None:
    owned = [{"shape": "north/one", "count": 2, "price": "$0.10/h"}]
    small = catalog()
    document = solved(scenario([job(deadline="3500 s", sharding="zero-1")], hardware={"owned": owned}), small)
    assert row_of(document, 0)["offer"] == "owned:0:north/one"
    forged = copy.deepcopy(document)
    forged["scenario"]["hardware"]["owned"][0]["count"] = 1
    assert "limit-exceeded" in references(sealed(forged), small)
    forged["scenario"]["hardware"]["owned"][0]["price"] = "$0.20/h"
    assert "wrong-price" in references(sealed(forged), small)


@pytest.mark.parametrize("grams", [0.0, 400.0])
def test_carbon_limits_are_worked_out_from_the_grid(grams: float) -> None:
    """A grid without carbon is no unknown grid."""
    small = catalog(grids={("north", "r1"): (grams, 1.2)})
    document = solved(scenario([job(deadline="2 h")], [fleet()], limits={"carbon": "1 t"}), small)
    assert document["status"] == "optimal"
    assert problems(document, small) == []
    expected = 0.5 * row_of(document, 0)["device_hours"] * 1.2 * grams / 1000
    assert row_of(document, 0)["carbon_kg"] == pytest.approx(expected)
    forged = copy.deepcopy(document)
    for workload in forged["workloads"]:
        workload["allocations"][0]["carbon_kg"] = 0.0
    forged["scenario"]["limits"]["carbon"] = "1 g"
    found = references(sealed(forged), small)
    assert ("limit-exceeded" in found) == ("wrong-energy" in found) == (grams > 0)


def test_a_unit_rounded_to_a_milligram_is_not_held_against_the_plan() -> None:
    """Twenty jobs of 50.4 mg are 20 x 50 mg for the optimiser, a limit of a gram: the check allows for it."""
    # 500 W for 1 h 40 min at 1.2 x 50.4e-6 g/Wh x 1000
    milligrams = 50.4
    grams_per_kwh = milligrams / 1000 / (0.5 * 6000 / 3600)
    small = catalog(grids={("north", "r1"): (grams_per_kwh, 1.0)})
    asked = scenario([job(deadline="2 h", count=20)], limits={"carbon": "1 g"})
    document = solved(asked, small)
    assert document["status"] == "optimal"
    assert problems(document, small) == []


def test_unknown_networks_and_frameworks_are_caught() -> None:
    known = catalog()
    document = solved(scenario([job(deadline="3500 s", sharding="zero-1")]), known)
    assert row_of(document, 0)["count"] > 1
    unknown = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=None)])
    assert "network-unknown" in references(document, unknown)
    forged = copy.deepcopy(document)
    forged["scenario"]["training"][0]["framework"] = "jax"
    assert "not-allowed" in references(sealed(forged), known)


def test_shapes_that_connect_only_so_many_are_caught() -> None:
    document = solved(scenario([job(deadline="3500 s", sharding="zero-1")]), catalog())
    tight = catalog(shapes=[shape(max_shapes_per_job=1)])
    assert "limit-exceeded" in references(document, tight)
    assert "limit-exceeded" in references(document, catalog(offers=[offer(max_shapes=1)]))


def test_another_catalog_is_caught(plan: Document) -> None:
    assert "other-catalog" in references(plan, catalog())


def test_a_plan_that_stopped_early_says_so() -> None:
    """Feasible, without a certificate and so without a bound; one that is stated all the same is none."""
    small, asked = catalog(), scenario([job(deadline="2 h")])
    candidates = enumerate_candidates(asked, small, api.load_model)
    document = {**build_document(candidates, optimize(candidates.program)), "status": "feasible"}
    assert references(sealed(document), small) == {"not-proven"}
    cost = document["summary"]["cost_microusd"]
    stated = {**document["summary"], "bound_microusd": cost // 2, "bound_usd": (cost // 2) / 1e6}
    assert "wrong-proof" in references(sealed({**document, "summary": stated}), small)
    gap = {**document["summary"], "gap": 0.5}
    assert "wrong-proof" in references(sealed({**document, "summary": gap}), small)


# ---- garbage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, few=60)
@given(garbage=JSON)
def test_what_is_no_plan_is_an_input_error(garbage: Any) -> None:
    with pytest.raises(InputError, match="not-a-plan"):
        read_document(garbage)


@settings(max_examples=250, few=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_changes_never_raise(data: st.DataObject, plan: Document, world: Catalog) -> None:
    forged = copy.deepcopy(plan)
    places = [path for path, _ in cells(plan) if path[0] not in ("rejected", "provenance")]
    for _ in range(data.draw(st.integers(min_value=1, max_value=3))):
        path = data.draw(st.sampled_from(places))
        depth = data.draw(st.integers(min_value=1, max_value=len(path)))
        value = data.draw(
            st.sampled_from([0, -1, 10**30, 1e308, float("nan"), float("inf"), "", "x" * 30, None, [], {}, True]) | JSON
        )
        try:
            edit(*path[:depth], to=value)(forged)
        except (LookupError, TypeError):  # an earlier change took the place away
            continue
    for document in (forged, {**forged, "sha256": "0" * 64}):
        assert all(isinstance(problem, Problem) for problem in problems(document, world))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 1e308, 10**400])
@pytest.mark.parametrize(
    "path",
    [("summary", "cost_usd"), ("workloads", 0, "allocations", 0, "cost_usd"),
     ("workloads", 0, "allocations", 0, "hours"), ("workloads", 1, "allocations", 0, "replicas"),
     ("workloads", 1, "allocations", 0, "replica_requests_per_s"), ("summary", "bound_microusd")],
)  # fmt: skip
def test_numbers_out_of_range_are_findings(
    path: tuple[str | int, ...], number: float, plan: Document, world: Catalog
) -> None:
    forged = copy.deepcopy(plan)
    edit(*path, to=number)(forged)
    found = references(forged, world)
    assert found == {"malformed-plan"} or found > {"changed-plan"}


@pytest.mark.parametrize("document", [{}, {"schema": "plan/result/v1"}, {"status": "optimal"}])
def test_documents_of_another_kind(document: Any) -> None:
    assert problems(document, catalog())


def test_deep_documents_are_refused_not_followed(plan: Document, world: Catalog) -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert references({**plan, "notes": deep}, world) == {"malformed-plan"}


def test_a_format_that_the_engine_has_no_kernels_for_is_caught() -> None:
    for family, weights in (("volta", "fp8"), ("turing", "mxfp4")):
        there = catalog([device(family=family)])
        document = solved(scenario([], [fleet(model="llama-3.2-1b", weights=weights)]), there)
        assert references(document, there) == set()
        document["scenario"]["serving"][0].pop("throughput")
        assert "no-kernels" in references(sealed(document), there)
