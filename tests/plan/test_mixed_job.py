"""A job on several offers, from the scenario to the verified plan."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.api import enumerate_candidates, load_catalog, load_model, load_scenario, solve, verify
from planner.candidates.ledger import Ledger
from planner.candidates.mixed_space import MixSpace, mix_space
from planner.candidates.offers import sites_of
from planner.candidates.training_question import resolve_training
from planner.errors import InputError
from planner.estimate.mixed import Between, GroupFacts, group_step_terms, joined_run, synchronisation_s
from planner.estimate.run import run_figures
from planner.estimate.training import training_memory
from planner.estimate.training_spec import RunSpec
from planner.plan.document import digest_of
from planner.scenario.load import parse_scenario
from tests.verified import errors

SCENARIO = Path(__file__).parents[2] / "scenarios" / "mixed-job.yaml"
CATALOG = load_catalog()

Document = dict[str, Any]


@pytest.fixture(scope="module")
def plan() -> Document:
    return solve(load_scenario(str(SCENARIO)), CATALOG).document


def rows_of(document: Document) -> list[Document]:
    rows: list[Document] = document["workloads"][0]["allocations"]
    return rows


def space_of(text: str, between: Between | None = None) -> MixSpace:
    scenario = parse_scenario(text, file="mixed.yaml")
    job = scenario.training[0]
    question = resolve_training(job, load_model(job.model), scenario, CATALOG)
    ledger = Ledger(workload=job.name)
    space = mix_space(question, sites_of(scenario, CATALOG, ledger), ledger, between, question.spec.confidence)
    assert space is not None
    return space


def test_the_scenario_is_proven_and_shared_by_speed(plan: Document) -> None:
    assert plan["status"] == "optimal"
    rows = rows_of(plan)
    assert {row["device"] for row in rows} == {"h100-sxm-80gb", "tpu-v6e"}
    assert sum(row["layout"]["global_batch_sequences"] for row in rows) == 512
    assert sum(row["mix"]["share"] for row in rows) == pytest.approx(1.0, rel=1e-12)
    for row in rows:
        layout = row["layout"]
        assert layout["micro_batches"] * layout["dp"] * layout["micro_batch"] == layout["global_batch_sequences"]
        assert sum(row["time_terms_s"].values()) / 3600 == pytest.approx(row["hours"], rel=1e-9)
        # nobody waits longer than one least share of a faster group takes
        assert row["mix"]["group_step_s"] > 0.9 * row["mix"]["compute_s"]
    assert errors(plan, CATALOG) == []


def test_one_offer_alone_costs_more(plan: Document) -> None:
    alone = solve(load_scenario(str(SCENARIO), case="alone"), CATALOG).document
    assert all("mix" not in row for row in rows_of(alone))
    assert alone["summary"]["cost_microusd"] > 1.5 * plan["summary"]["cost_microusd"]


def test_the_margin_is_that_of_the_widest_group(plan: Document) -> None:
    candidates = enumerate_candidates(load_scenario(str(SCENARIO)), CATALOG)
    question = candidates.questions["pretrain-8b"]
    table = candidates.tables["pretrain-8b"]
    mixed = next(iter(table.mixes.values()))  # type: ignore[union-attr]
    margins = [question.band(group.site).time_margin(0.9) for group in mixed.groups]  # type: ignore[union-attr]
    assert mixed.time_margin == max(margins)
    for row in rows_of(plan):
        assert row["error_band"]["hours"]["at_confidence"] == pytest.approx(row["hours"] * max(margins), rel=1e-12)
        assert row["hours"] * max(margins) <= 9 * 24


def tampered(plan: Document, change: Any) -> list[str]:
    document = copy.deepcopy(plan)
    change(rows_of(document), document)
    document = {key: value for key, value in document.items() if key != "sha256"}
    return [f"{one.reference}: {one.message}" for one in verify({**document, "sha256": digest_of(document)}, CATALOG)]


def _set(path: str, value: Any) -> Any:
    def change(rows: list[Document], _: Document) -> None:
        *keys, last = path.split(".")
        place: Any = rows[0]
        for key in keys:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value

    return change


def _move_share(rows: list[Document], _: Document) -> None:
    """A micro-batch of the one group goes to the other, shares still sum to the batch."""
    one, other = rows
    moved = other["layout"]["dp"] * other["layout"]["micro_batch"]
    for row, delta in ((one, -moved), (other, moved)):
        row["layout"]["global_batch_sequences"] += delta
        row["layout"]["micro_batches"] = row["layout"]["global_batch_sequences"] // (
            row["layout"]["dp"] * row["layout"]["micro_batch"]
        )
        row["mix"]["sequences"] = row["layout"]["global_batch_sequences"]
        row["mix"]["share"] = row["mix"]["sequences"] / row["mix"]["batch_sequences"]


def _forbid(_: list[Document], document: Document) -> None:
    document["scenario"]["training"][0]["mix_within_job"] = False


def _rename(rows: list[Document], _: Document) -> None:
    """One name for all, of a mix that is another."""
    for row in rows:
        row["mix"]["name"] = row["mix"]["name"].replace("1 ×", "2 ×") + "x"


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        (_rename, "wrong-mix"),
        (_set("mix.share", 0.4), "wrong-share"),
        (_set("mix.sequences", lambda value: value + 8), "wrong-share"),
        (_set("mix.batch_sequences", 520), "wrong-share"),
        (_set("layout.global_batch_sequences", lambda value: value + 8), "wrong-share"),
        (_move_share, "wrong-time"),
        (_set("mix.group_step_s", lambda value: 0.9 * value), "wrong-mix"),
        (_set("mix.compute_s", lambda value: 0.9 * value), "wrong-mix"),
        (_set("mix.synchronisation_s", 0.0), "wrong-mix"),
        (_set("mix.traffic_microusd", 1), "wrong-mix"),
        (_set("time_terms_s.group_synchronisation", 0.0), "wrong-time"),
        (_set("run.expected_failures", 0.0), "wrong-run"),
        (_set("work.flop_count", lambda value: 2 * value), "wrong-time"),
        (_set("error_band.time", None), "wrong-band"),
        (_set("cost_microusd", lambda value: value - 1_000_000), "wrong-cost"),
        (_set("jobs", 2), "wrong-count"),
        (_forbid, "not-allowed"),
    ],
)
def test_tampering_is_seen(plan: Document, change: Any, reference: str) -> None:
    assert any(told.startswith(f"{reference}: ") for told in tampered(plan, change))


def test_a_mix_without_one_of_its_groups_is_seen(plan: Document) -> None:
    assert "wrong-mix: pretrain-8b: a mix takes 2 to 4 different offers" in tampered(plan, lambda rows, _: rows.pop())


def _rebatched(rows: list[Document], _: Document) -> None:
    """A batch further from what was asked for, shared in whole micro-batches, every cell of the mix right."""
    step = rows[0]["layout"]["dp"] * rows[0]["layout"]["micro_batch"]
    rows[0]["layout"]["global_batch_sequences"] += 8 * step
    batch = sum(row["layout"]["global_batch_sequences"] for row in rows)
    for row in rows:
        share = row["layout"]["global_batch_sequences"]
        row["layout"]["micro_batches"] = share // (row["layout"]["dp"] * row["layout"]["micro_batch"])
        row["mix"] |= {"batch_sequences": batch, "sequences": share, "share": share / batch}


def _smaller_share(rows: list[Document], _: Document) -> None:
    layout, mix = rows[0]["layout"], rows[0]["mix"]
    layout["global_batch_sequences"] -= layout["dp"] * layout["micro_batch"]
    mix |= {
        "sequences": layout["global_batch_sequences"],
        "share": layout["global_batch_sequences"] / mix["batch_sequences"],
    }


def _hastened(_: list[Document], document: Document) -> None:
    document["scenario"]["training"][0]["deadline"] = "1 day"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("jobs", 3), "the shapes of a group are not as many for each job"),
        (_set("hours", lambda value: value + 1), "the groups of a mix do not run together"),
        (_smaller_share, "the shares sum to "),
        (_rebatched, "are not the batch nearest to what was asked"),
        (_hastened, " h is after the deadline"),
    ],
)
def test_tampering_is_told_by_name(plan: Document, change: Any, words: str) -> None:
    assert any(words in told for told in tampered(plan, change))


def test_the_time_of_a_mix_is_worked_out_again(plan: Document) -> None:
    def both(rows: list[Document], _: Document) -> None:
        for row in rows:
            row["hours"] += 1.0

    assert any(" h stated, " in told and told.startswith("wrong-time") for told in tampered(plan, both))


TEXT = """
schema: plan/v1
name: m
training:
  - name: job
    model: {model}
    tokens: 100B
    deadline: 20 days
    sequence_length: 4096
    global_batch: 256 sequences
    estimator: {tier}
    mix_within_job: true
hardware:
  allow: [a100-sxm-80gb, h100-sxm-80gb]
  regions: [us-ashburn-1]
  quotas: [{{max_devices: 32}}]
"""


@pytest.mark.parametrize("tier", ["analytic", "rule"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_the_time_of_a_share_is_linear_from_the_second_one_on(tier: str, model: str) -> None:
    """What the search takes for granted of every tier, and that memory never falls with the share."""
    space = space_of(TEXT.format(tier=tier, model=model))
    question, job = space.question, space.job
    source = job.sources[0]
    site = space.sites[source.site]
    spec, machine = question.spec_on(site), question.machine(site)
    for block in source.blocks:
        for pace in block.paces[:6]:
            before = 0.0
            for units in (1, 2, 3, 5, 8, 13):
                layout = space.layout_of(pace, units)
                whole = float(group_step_terms(question.arch, spec, layout, machine).total[0])
                assert pace.step_s(units) == pytest.approx(whole, rel=1e-9)
                needed = float(training_memory(question.arch, question.spec, layout, site.device.family).total[0])
                assert needed >= before * (1 - 1e-12)
                before = needed


def facts(devices: int, hosts: int, run: RunSpec | None, *, spot: bool = False, zone: str = "a") -> GroupFacts:
    return GroupFacts(
        devices=devices, hosts=hosts, shapes=hosts, spot=spot, zone=("p", "r", zone), network_bytes_per_s=1e9 * hosts,
        network_scale=0.0, gradient_bytes=16e9, run=run,
    )  # fmt: skip


def test_two_halves_fail_as_the_whole_does() -> None:
    """Groups that differ in nothing are one job of all their devices."""
    run = RunSpec(
        mtbf_per_device_s=1.8e8, restart_s=600, checkpoint_bandwidth_bytes_per_s=2e9, straggler_sigma=0.005,
        scale_loss=0.06, preemptions_per_s=1e-6, preemption_restart_s=300.0,
    )  # fmt: skip
    joined = joined_run([facts(64, 8, run, spot=True), facts(64, 8, run, spot=True)])
    assert joined is not None
    for mine, whole in zip(
        (np.asarray(x) for x in _figures(joined)), (np.asarray(x) for x in _figures(run)), strict=True
    ):
        assert mine == pytest.approx(whole, rel=1e-12)


def _figures(run: RunSpec) -> tuple[Any, ...]:
    found = run_figures(1e6, 128, 1e11, run)
    return found.goodput, found.mtbf_s, found.interval_s, found.failures, found.useful_s


def test_an_unknown_network_is_not_a_fast_one() -> None:
    one, other, far = facts(8, 1, None), facts(16, 2, None), facts(16, 2, None, zone="b")
    assert synchronisation_s([one, other], None) == pytest.approx(16.0 + 2 * 25e-6)  # 2 (G-1)/G n = 16e9 B at 1e9 B/s
    assert synchronisation_s([one, far], None) == np.inf
    between = Between(bytes_per_s_per_shape=5e8, latency_s=0.05, usd_per_byte=0.0)
    assert synchronisation_s([one, far], between) == pytest.approx(32.0 + 0.1)


@pytest.mark.parametrize(
    "line", ["periods: 1 week", "objective: time"]
)  # what mixes are not planned with is refused, not ignored
def test_what_is_not_planned_with_mixes_is_refused(line: str) -> None:
    text = TEXT.format(tier="analytic", model="llama-3.1-8b") + line + "\n"
    with pytest.raises(InputError, match="mixes within a job are not planned together with"):
        enumerate_candidates(parse_scenario(text, file="m.yaml"), CATALOG)


def test_zones_are_mixed_over_the_network_that_is_given() -> None:
    """Two regions, one node each: without a network between them there is no plan, with one its traffic is paid."""
    text = """
schema: plan/v1
name: far
training:
  - {name: job, model: llama-3.1-8b, tokens: 100B, deadline: 12 days, sequence_length: 4096, mix_within_job: true}
hardware:
  allow: [h100-sxm-80gb]
  regions: [us-east-2, us-west-2]
  quotas:
    - {device: h100-sxm-80gb, region: us-east-2, max_devices: 8}
    - {device: h100-sxm-80gb, region: us-west-2, max_devices: 8}
  assume_between_zones: {bandwidth: 100 Gbit/s, latency: 20 ms, price: $0.0002/GB}
"""
    near = parse_scenario(text.replace("  assume_between", "  # assume_between"), file="near.yaml")
    assert len(enumerate_candidates(near, CATALOG).tables["job"]) == 0
    document = solve(parse_scenario(text, file="far.yaml"), CATALOG).document
    rows = rows_of(document)
    assert {row["region"] for row in rows} == {"us-east-2", "us-west-2"}
    # 8.03e9 parameters, gradients reduced in 4 bytes; two groups send all of them once in each of the steps
    steps = 100e9 / (rows[0]["mix"]["batch_sequences"] * 4096)
    dollars = steps * 8.03e9 * 4 / 1e9 * 0.0002
    assert all(row["mix"]["traffic_microusd"] == pytest.approx(dollars * 1e6, rel=0.01) for row in rows)
    assert errors(document, CATALOG) == []
