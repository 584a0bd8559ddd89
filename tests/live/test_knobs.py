"""Knobs come from the scenario, and what is turned is asked as --set asks it."""

from __future__ import annotations

import pytest

from planner import api
from planner.errors import InputError, UsageError
from planner.live.knobs import MOST_CHANGES, Knob, groups_of, path_of, settings_of, slider_of
from planner.scenario.load import parse_scenario, with_settings

LLAMA = api.load_scenario("llama")


def knobs() -> dict[str, Knob]:
    return {knob.path: knob for group in groups_of(LLAMA) for knob in group.knobs}


def test_every_workload_and_all_of_it_can_be_turned() -> None:
    assert [group.title for group in groups_of(LLAMA)] == ["pretrain-8b", "assistant", "All of it"]
    paths = {"training.pretrain-8b.deadline", "training.pretrain-8b.tokens", "serving.assistant.qpm", "price"}
    paths |= {"serving.assistant.slo.ttft_p95", "serving.assistant.input_tokens", "confidence", "limits.max_devices"}
    assert paths <= knobs().keys()


def test_a_fleet_of_users_is_turned_by_its_users_and_their_time_to_think() -> None:
    groups = groups_of(api.load_scenario("users"))
    paths = {knob.path for group in groups for knob in group.knobs}
    assert {"serving.assistant.users", "serving.assistant.think_time"} <= paths
    assert "serving.assistant.qpm" not in paths


@pytest.mark.parametrize("name", ["llama", "chat-fleet", "fleet", "infeasible", "portfolio", "under-way", "users"])
def test_what_a_knob_shows_at_the_start_changes_nothing(name: str) -> None:
    scenario = api.load_scenario(name)
    for group in groups_of(scenario):
        texts = {knob.path: knob.text for knob in group.knobs if knob.text and knob.path != "price"}
        for path, text in texts.items():
            changed = with_settings(scenario, settings_of(scenario, {path: text}))
            if path != "confidence":  # p90 holds where a scenario says nothing
                assert changed.resolved == scenario.resolved, path
        for switch in group.switches:
            changed = with_settings(scenario, settings_of(scenario, {switch.path: switch.texts[switch.on]}))
            assert changed.hardware == scenario.hardware


@pytest.mark.parametrize(
    ("text", "low", "high", "step"),
    [
        ("30 days", 8, 120, 1), ("200B", 50, 800, 10), ("1.5 s", 0.4, 6, 0.1), ("$60000", 15_000, 240_000, 1_000),
        ("4", 1, 16, 1), ("8 /s", 2, 32, 0.1), ("0.05 /h", 0.02, 0.2, 0.01),
    ],
)  # fmt: skip
def test_sliders_go_from_a_quarter_to_four_times(text: str, low: float, high: float, step: float) -> None:
    slider = slider_of(text)
    assert slider is not None
    assert (slider.low, slider.high, slider.step) == pytest.approx((low, high, step))
    assert ((slider.number - slider.low) / slider.step) % 1 == pytest.approx(0, abs=1e-6)
    assert f"{slider.before}{slider.number:g}{slider.after}" == text


@pytest.mark.parametrize("text", ["2027-01-01", "", "0", "[1, 2]", "-5 s", "1e3", "{mean: 3}"])
def test_what_is_no_plain_amount_has_no_slider(text: str) -> None:
    assert slider_of(text) is None


def test_prices_go_up_on_top_of_discounts() -> None:
    given = "[{provider: aws, fraction: 20%}]"
    scenario = with_settings(LLAMA, [f"hardware.discounts={given}"])
    changed = with_settings(scenario, settings_of(scenario, {"price": "+10%"}))
    one, other = changed.hardware.discounts
    assert (one.provider, one.fraction) == ("aws", pytest.approx(1 - 0.8 * 1.1))
    assert (other.provider, other.fraction) == (None, pytest.approx(-0.1))


def test_problems_are_told_at_the_change_that_they_are_of() -> None:
    changes = {"training.pretrain-8b.deadline": "3 das", "serving.assistant.qpm": "700", "confidence": "p12"}
    with pytest.raises(InputError) as caught:
        with_settings(LLAMA, settings_of(LLAMA, changes))
    assert {path_of(problem, changes) for problem in caught.value.problems} == {
        "training.pretrain-8b.deadline",
        "confidence",
    }
    with pytest.raises(InputError) as caught:
        settings_of(LLAMA, {"price": "cheap"})
    assert [path_of(problem, {"price": "cheap"}) for problem in caught.value.problems] == ["price"]


def test_names_and_numbers_are_bounded() -> None:
    for changes in (
        {f"x{number}": "1" for number in range(MOST_CHANGES + 1)},
        {"x": "1" * 10_000},
        {"x" * 1_000: "1"},
        {"x": ["a"] * 1_000},
        {"x": ["a" * 1_000]},
    ):
        with pytest.raises(UsageError):
            settings_of(LLAMA, changes)


def test_names_of_workloads_with_dots_and_hours_in_place_of_deadlines() -> None:
    text = """
    schema: plan/v1
    name: x
    training: [{name: a.b, model: gpt2, tokens: 1B, hours: 48}]
    """
    scenario = parse_scenario(text)
    path = groups_of(scenario)[0].knobs[0].path
    assert path == "training.a.b.hours"
    assert with_settings(scenario, settings_of(scenario, {path: "24"})).training[0].deadline_s == 24 * 3600
