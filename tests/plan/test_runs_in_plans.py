"""Failures, checkpoints, progress and a measured step time, from the scenario to the plan and its verifier."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.estimate import resolve_run as defaults
from planner.estimate.resolve import training_spec
from planner.estimate.resolve_run import run_spec
from planner.plan.document import digest_of
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.verified import errors, follow_schema
from tests.worlds import catalog, fleet, job, offer, scenario, shape

Document = dict[str, Any]
HOUR_S = 3600.0
NOISY = {"mtbf_per_device": "100 h", "checkpoint_bandwidth": "14 GB/s", "restart": "10 min", "stragglers": 0}


def solved(plan: Scenario, world: Catalog) -> Document:
    """A verified plan as it is written to disk."""
    document: Document = json.loads(api.solve(plan, world).to_json())
    follow_schema(document)
    return document


ONE = {"quotas": [{"device": "plain", "max_devices": 1}]}


def one_device(**changes: Any) -> Scenario:
    """A job that gets one plain device."""
    return scenario([job(**changes)], hardware=ONE)


def row(plan: Scenario, world: Catalog | None = None) -> Document:
    found: Document = solved(plan, world or catalog())["workloads"][0]["allocations"][0]
    return found


def assumed(plan: Scenario, world: Catalog | None = None) -> str:
    return " | ".join(solved(plan, world or catalog())["assumed"])


# ---- failures


def test_failures_by_hand() -> None:
    """6000 busy seconds, one device, a failure every 100 h; 14 GB are saved in a second every 1000 s."""
    plan = one_device(deadline="3 h", failures=NOISY, checkpoint_every="1000 s")
    found = row(plan)
    wall_s = 6000 * (1 + 1 / 1000) / (1 - (500 + 600) / (100 * HOUR_S))
    assert found["hours"] * HOUR_S == pytest.approx(wall_s)
    terms = found["time_terms_s"]
    assert terms["compute"] == pytest.approx(6000)
    assert (terms["stragglers"], terms["checkpoints"]) == (0, pytest.approx(6))
    assert terms["lost_work"] == pytest.approx(wall_s * 500 / (100 * HOUR_S))
    assert terms["restarts"] == pytest.approx(wall_s * 600 / (100 * HOUR_S))
    run = found["run"]
    assert run["goodput"] == pytest.approx(6000 / wall_s)
    assert (run["checkpoint_bytes"], run["checkpoint_s"]) == (14e9, pytest.approx(1))
    assert (run["checkpoint_every_s"], run["mtbf_hours"]) == (1000, pytest.approx(100))
    assert run["expected_failures"] == pytest.approx(wall_s / (100 * HOUR_S))
    assert (run["storage_bytes"], run["storage_usd"]) == (3 * 14e9, None)


def test_the_rule_of_thumb_pays_for_failures_already() -> None:
    found = row(one_device())
    assert found["run"] == {"modelled": False, "goodput": 1.0}
    assert found["hours"] * HOUR_S == pytest.approx(6000)
    assert "restarts included" in assumed(scenario([job()]))


def test_none_is_none_whatever_predicts() -> None:
    measured = job(mfu={"plain": 0.5}, failures="none")
    assert row(scenario([measured]))["run"]["modelled"] is False
    assert "Llama" not in assumed(scenario([measured]))


def test_a_measured_speed_knows_no_failures_so_the_defaults_come_on_top() -> None:
    plan = scenario([job(mfu={"plain": 0.5}, deadline="3 h")])
    assert row(plan)["run"]["modelled"] is True
    assert "failures as at Llama 3 405B, one in 50,000 h of a device" in assumed(plan)


def test_what_is_not_given_of_failures_takes_its_default() -> None:
    run = run_spec(scenario([job(failures={"restart": "20 min"})]).training[0], shape())
    assert run is not None
    assert (run.restart_s, run.mtbf_per_device_s) == (1200, defaults.DEFAULT_MTBF_PER_DEVICE_S)
    assert run.checkpoint_bandwidth_bytes_per_s == defaults.DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    assert run.straggler_sigma == defaults.DEFAULT_STRAGGLER_SIGMA


def test_the_default_rate_is_the_published_one() -> None:
    """419 unexpected stops in 54 days on 16,384 devices."""
    assert pytest.approx(54 * 24 * 16384 / 419 * HOUR_S, rel=0.02) == defaults.DEFAULT_MTBF_PER_DEVICE_S


def test_checkpoints_without_failures_cost_their_writing() -> None:
    found = row(one_device(failures="none", checkpoint_every="600 s", deadline="3 h"))
    assert found["time_terms_s"]["checkpoints"] == pytest.approx(6000 / 600 * 14e9 / 2e9)
    assert found["run"]["mtbf_hours"] is None
    assert found["run"]["expected_failures"] == 0


def test_more_failures_cost_more_and_can_miss_the_deadline() -> None:
    hours = [row(scenario([job(deadline="9 h", failures={**NOISY, "mtbf_per_device": mtbf})]))["hours"]
             for mtbf in ("1000 h", "100 h", "10 h", "1 h")]  # fmt: skip
    assert hours == sorted(hours)
    late = solved(scenario([job(failures={**NOISY, "mtbf_per_device": "20 h"}, deadline="6000 s")],
                           hardware={"quotas": [{"device": "plain", "max_devices": 1}]}), catalog())  # fmt: skip
    assert late["status"] == "infeasible"


def test_a_job_that_never_ends_is_dropped_for_its_failures() -> None:
    world = catalog()
    plan = scenario([job(deadline="100 h", failures={"mtbf_per_device": "5 min", "restart": "10 min"})])
    document = solved(plan, world)
    reasons = {reason["reason"] for reason in document["rejected"]["job"]["reasons"]}
    assert document["status"] == "infeasible"
    assert "failures" in reasons
    assert "network-unknown" not in reasons


def test_stored_checkpoints_have_a_price_beside_the_cost() -> None:
    priced = {**NOISY, "storage_price": "$0.10/GB-month", "checkpoints_kept": 4}
    found = row(scenario([job(deadline="3 h", failures=priced, count=2)]))
    assert found["run"]["storage_bytes"] == 5 * 14e9 * found["jobs"]
    assert found["run"]["storage_usd"] == pytest.approx(70 * found["jobs"] * 0.10 * found["hours"] / 730)
    plain = row(scenario([job(deadline="3 h", failures=NOISY, count=2)]))
    assert found["cost_microusd"] == plain["cost_microusd"]


def test_hosts_write_at_once() -> None:
    """Two shapes of eight devices are two writers; one device is one."""
    world = catalog(shapes=[shape("north/eight", devices=8)])
    plan = scenario([job(deadline="405 s", tokens="1B", failures=NOISY, sharding="zero-1")])
    found = row(plan, world)
    assert found["devices"] == 16
    assert found["run"]["checkpoint_s"] == pytest.approx(0.5)


def test_scale_loss_is_for_speeds_from_benchmarks_unless_it_is_given() -> None:
    asked = scenario([job(failures=NOISY), job("given", failures={**NOISY, "scale_loss": "5 %"})]).training
    losses = [
        run.scale_loss if (run := run_spec(one, shape(), from_benchmarks=benchmarks)) else None
        for one in asked
        for benchmarks in (False, True)
    ]
    assert losses == [0.0, defaults.DEFAULT_SCALE_LOSS, 0.05, 0.05]


def test_scale_loss_counts_hosts_in_the_plan() -> None:
    world = catalog(shapes=[shape("north/eight", devices=8)])
    given = {**NOISY, "scale_loss": "10 %"}
    found = row(scenario([job(deadline="470 s", failures=given, sharding="zero-1")]), world)
    assert found["devices"] == 16
    assert found["time_terms_s"]["scale_loss"] == pytest.approx(0.05 * 6000 / 16)  # one of two hosts


# ---- progress and the step time of a run under way


def test_progress_leaves_the_rest_to_train() -> None:
    whole, rest = row(scenario([job()])), row(scenario([job(progress="400M")]))
    assert rest["hours"] == pytest.approx(0.6 * whole["hours"])
    assert rest["cost_microusd"] < whole["cost_microusd"]
    assert "60.0% of the tokens are left" in assumed(scenario([job(progress="400M")]))


def test_progress_counts_all_epochs() -> None:
    assert row(one_device(tokens="500M", epochs=2, progress="750M"))["hours"] * HOUR_S == pytest.approx(1500)


def under_way(**changes: Any) -> Scenario:
    """A run on one plain device: 6000 s for 1e9 tokens are 0.393 s for a step of 65,536."""
    given = {"measured": "0.6 s", "shape": "north/one", "count": 1, **changes.pop("given", {})}
    return scenario([job(step_time=given, failures="none", **changes)], hardware=ONE)


STEP_S = 6000 * 64 * 1024 / 1e9


def test_a_measured_step_time_holds_where_it_was_measured() -> None:
    document = solved(under_way(deadline="10000 s"), catalog())
    found, stated = document["workloads"][0]["allocations"][0], document["workloads"][0]["under_way"]
    steps = 1e9 / (64 * 1024)
    assert found["hours"] * HOUR_S == pytest.approx(steps * 0.6)
    assert stated["predicted_step_s"] == pytest.approx(STEP_S)
    assert stated["ratio"] == found["step_time_ratio"] == pytest.approx(0.6 / STEP_S)
    assert (stated["device"], stated["shape"], stated["count"]) == ("plain", "north/one", 1)
    assert document["workloads"][0]["estimator"] == "measured where step_time is given, else rule"


def test_a_measured_step_time_scales_other_counts_of_the_device_and_no_other_device() -> None:
    world = catalog(
        [*catalog().devices.values(), next(iter(catalog().devices.values())).__class__(
            **{**_fields(catalog().devices["plain"]), "id": "other"})],
        [shape("north/one"), shape("south/other", "other")],
        [offer("north/one", 1.0), offer("south/other", 1.2)],
    )  # fmt: skip
    given = {"measured": "0.6 s", "shape": "north/one", "count": 1}
    both = solved(scenario([job(step_time=given, failures="none", deadline="5000 s")]), world)
    by_device = {entry["device"]: entry for entry in both["workloads"][0]["alternatives"]}
    ratio = 0.6 / STEP_S
    assert by_device["plain"]["hours"] * HOUR_S * by_device["plain"]["devices"] == pytest.approx(6000 * ratio)
    assert by_device["other"]["hours"] * HOUR_S * by_device["other"]["devices"] == pytest.approx(6000)


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}


def test_a_bare_step_time_was_measured_on_what_is_owned() -> None:
    plan = scenario([job(step_time="0.6 s", failures="none", deadline="10000 s")],
                    hardware={"owned": [{"shape": "north/one", "count": 1, "price": "$0.10/h"}]})  # fmt: skip
    document = solved(plan, catalog())
    assert document["workloads"][0]["under_way"]["shape"] == "north/one"
    assert document["workloads"][0]["allocations"][0]["price_model"] == "owned"


def test_a_count_alone_is_of_what_is_owned() -> None:
    """As the reference says of it: of the two machines one was in use. With several kinds it is asked which."""
    owned = {"shape": "north/one", "count": 2, "price": "$0.10/h"}
    ran = job(step_time={"measured": "0.6 s", "count": 1}, failures="none", deadline="10000 s")
    document = solved(scenario([ran], hardware={"owned": [owned]}), catalog())
    assert [document["workloads"][0]["under_way"][name] for name in ("shape", "count")] == ["north/one", 1]
    for hardware, step in (({"owned": [owned, owned]}, {"count": 1}), ({"owned": [owned]}, {"shape": "north/one"})):
        with pytest.raises(InputError, match="is missing in step_time"):
            scenario([{**ran, "step_time": {"measured": "0.6 s", **step}}], hardware=hardware)


def test_a_run_under_way_is_not_taken_for_one_that_nobody_advises() -> None:
    """Weights shared out under a pipeline may be fastest by the equations; that counts where the scenario says it."""
    stages = {}
    for name, layout in (("open", {"tp": 8, "pp": 2}), ("said", {"tp": 8, "pp": 2, "sharding": "zero-3"})):
        step = {"measured": "42 s", "shape": "gcp/a3-megagpu-8g", "count": 16, "layout": layout}
        jobs = [
            {
                "name": "train", "model": "llama-3.1-70b", "tokens": "210B", "deadline": "30 days",
                "sequence_length": 8192, "global_batch": "512 sequences", "sharding": ["zero-1", "zero-3"],
                "step_time": step,
            }
        ]  # fmt: skip
        document: Any = api.solve(scenario(jobs, hardware={"allow": ["h100-sxm-80gb"]})).document
        assert not api.verify(document)
        stages[name] = document["workloads"][0]["under_way"]["layout"]["sharding"]
    assert stages == {"open": "zero-1", "said": "zero-3"}


def test_the_layout_of_the_run_under_way_may_be_given() -> None:
    document = solved(under_way(deadline="20000 s", given={"layout": {"micro_batch": 2}}), catalog())
    assert document["workloads"][0]["under_way"]["layout"]["micro_batch"] == 2


def test_an_impossible_layout_is_refused_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        api.solve(under_way(given={"layout": {"tp": 64}}), catalog())
    problem = caught.value.problems[0]
    assert problem.reference == "no-layout"
    assert problem.places
    assert "step_time" in problem.hint


@pytest.mark.parametrize(("lora", "passes"), [({}, 3), ({"lora": {"rank": 8}}, 2)])
def test_a_step_that_is_faster_than_the_peak_is_refused(lora: Document, passes: int) -> None:
    """25 s for 4M tokens of a 70B on 32 H100 were taken, and 218 % of the peak planned: they are of half the batch."""
    batch = 480 if lora else 488  # sequences of 8,192 that the fastest layout takes
    least_s = passes * 2 * 69.503e9 * batch * 8192 / (32 * 989.4e12)
    given = {"name": "train", "model": "llama-3.1-70b", "tokens": "100B", "deadline": "90 days", **lora,
             "sequence_length": 8192, "global_batch": "4M tokens"}  # fmt: skip
    hardware = {"owned": [{"shape": "dgx-h100", "count": 4, "price": "$10/h"}], "kinds": ["owned"]}
    with pytest.raises(InputError) as caught:
        api.solve(scenario([{**given, "step_time": f"{least_s - 0.2} s"}], hardware=hardware))
    (problem,) = caught.value.problems
    assert problem.reference == "step-too-fast"
    assert f"the products of {batch * 8192:,} tokens alone take {least_s:.1f} s" in problem.message
    assert problem.places
    assert api.solve(scenario([{**given, "step_time": f"{least_s + 0.2} s"}], hardware=hardware)).status == "optimal"


def test_an_unknown_shape_under_step_time_is_refused_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        api.solve(under_way(given={"shape": "north/none"}), catalog())
    assert caught.value.problems[0].places


def test_progress_and_a_measured_step_time_plan_the_remainder() -> None:
    found = row(under_way(deadline="10000 s", progress="250M"))
    assert found["hours"] * HOUR_S == pytest.approx(0.75 * 1e9 / (64 * 1024) * 0.6)


# ---- spot


def spot_world() -> Catalog:
    """The plain device on demand at $1 and on spot at 40 cents."""
    return catalog(offers=[offer(dollars=1.0), offer(dollars=0.4, price_model="spot")])


def on_spot(interruptions: str, **changes: Any) -> Scenario:
    spot = {"interruptions": interruptions, "restart": "5 min", **changes.pop("spot", {})}
    return scenario([job(**{"deadline": "6 h", "failures": "none", **changes})],
                    hardware={**ONE, "pricing": ["on_demand", "spot"], "spot": spot})  # fmt: skip


def test_a_preempted_run_by_hand() -> None:
    """A shape is taken once in 10 h; 14 GB at 2 GB/s take 7 s, every 1000 s; 300 s until it runs again."""
    found = row(on_spot("0.1 /h", checkpoint_every="1000 s"), spot_world())
    wall_s = 6000 * (1 + 7 / 1000) / (1 - (500 + 300) / (10 * HOUR_S))
    assert found["price_model"] == "spot"
    assert found["hours"] * HOUR_S == pytest.approx(wall_s)
    assert found["run"]["mtbf_hours"] == pytest.approx(10)
    assert found["run"]["expected_failures"] == pytest.approx(wall_s / (10 * HOUR_S))


def test_a_long_warning_keeps_the_work() -> None:
    found = row(on_spot("0.1 /h", checkpoint_every="1000 s", spot={"warning": "30 s"}), spot_world())
    assert found["hours"] * HOUR_S == pytest.approx(6000 * (1 + 7 / 1000) / (1 - (7 + 300) / (10 * HOUR_S)))


def test_spot_is_taken_while_its_useful_hour_is_cheaper() -> None:
    models = [row(on_spot(rate), spot_world())["price_model"] for rate in ("0.01 /h", "1 /h", "11 /h", "30 /h")]
    assert models == ["spot", "spot", "on_demand", "on_demand"]


def test_the_plan_says_what_a_useful_hour_on_spot_costs() -> None:
    document = solved(on_spot("0.5 /h"), spot_world())
    assert any("40 an hour are $0.4" in line for line in document["workloads"][0]["because"])


def test_preemptions_add_to_failures() -> None:
    both = row(on_spot("0.1 /h", failures=NOISY), spot_world())
    assert both["run"]["mtbf_hours"] == pytest.approx(1 / (0.1 + 0.01))


def test_spot_offers_do_not_serve() -> None:
    plan = scenario([], [fleet()], hardware={"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.01 /h"}})
    document = solved(plan, spot_world())
    assert document["workloads"][0]["allocations"][0]["price_model"] == "on_demand"
    assert "spot" in {reason["reason"] for reason in document["rejected"]["fleet"]["reasons"]}


def test_a_forged_spot_row_is_caught() -> None:
    document = solved(on_spot("0.1 /h"), spot_world())
    document["scenario"]["hardware"]["spot"]["interruptions"] = "0.2 /h"
    document["sha256"] = digest_of(document)
    assert errors(document, spot_world())


# ---- what else a job may name reaches the physics


def test_a_job_is_spelled_out_for_the_physics() -> None:
    spec = training_spec(scenario([job(failures=NOISY)]).training[0], api.load_model("gpt2-xl"))
    assert (spec.tier, spec.confidence, spec.progress_tokens, spec.lora_rank, spec.offload) == (
        "analytic",
        0.9,
        0,
        None,
        (),
    )
    measured = training_spec(
        scenario([job(mfu={"plain": 0.5}, estimator="measured")]).training[0],
        api.load_model("gpt2-xl"),
        catalog().devices["plain"],
    )
    assert (measured.tier, measured.measured_mfu) == ("measured", True)


# ---- the verifier


@pytest.fixture(scope="module")
def plan_under_way() -> Document:
    return solved(
        scenario(
            [job(step_time={"measured": "0.6 s", "shape": "north/one", "count": 1}, progress="250M", failures=NOISY,
                 deadline="10000 s")]),
        catalog(),
    )  # fmt: skip


def edit(*path: str | int, to: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        node: Any = document["workloads"][0]
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = to(node[path[-1]]) if callable(to) else to

    return apply


ROW = ("allocations", 0)
FORGED = {
    "goodput": edit(*ROW, "run", "goodput", to=1.0),
    "interval": edit(*ROW, "run", "checkpoint_every_s", to=lambda value: value * 2),
    "failures": edit(*ROW, "run", "expected_failures", to=0.0),
    "storage": edit(*ROW, "run", "storage_bytes", to=0.0),
    "not modelled": edit(*ROW, "run", to={"modelled": False, "goodput": 1.0}),
    "lost work": edit(*ROW, "time_terms_s", "lost_work", to=0.0),
    "a term too many": edit(*ROW, "time_terms_s", "luck", to=-1.0),
    "no ratio": edit(*ROW, "step_time_ratio", to=None),
    "another ratio": edit("under_way", "ratio", to=0.5),
    "another prediction": edit("under_way", "predicted_step_s", to=1.2),
    "another layout": edit("under_way", "layout", "micro_batch", to=4),
    "more machines": edit("under_way", "count", to=2),
    "no run under way": edit("under_way", to=None),
    "no progress": edit("demand", "progress_tokens", to=0.0),
}


def test_the_plan_under_way_holds(plan_under_way: Document) -> None:
    assert errors(plan_under_way, catalog()) == []


@pytest.mark.parametrize("name", sorted(FORGED))
def test_forged_runs_are_caught(name: str, plan_under_way: Document) -> None:
    forged = copy.deepcopy(plan_under_way)
    FORGED[name](forged)
    forged["sha256"] = digest_of(forged)
    assert errors(forged, catalog()), name


def test_a_pin_that_the_run_under_way_is_not_laid_out_as_is_told() -> None:
    """What was measured was split in four: with tensors pinned to two no layout is left, which is no bug of ours."""
    shipped = api.load_scenario("under-way")
    with pytest.raises(InputError) as refused:
        api.solve(with_settings(shipped, ["training.pretrain-70b.layout={tp: 2}"]))
    assert {problem.reference for problem in refused.value.problems} == {"no-layout"}
