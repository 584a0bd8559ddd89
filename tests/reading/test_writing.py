"""What was read goes into a scenario that is there: comments and other workloads stay, what it replaces goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import InputError, OutputError
from planner.reading.kinds import Asked, Piece, Reading
from planner.reading.piece_writing import merged, still_wanted, write_into

SCENARIO = """\
schema: plan/v1
name: mine   # ours
serving:
  - name: chat
    model: qwen2.5-7b   # stays
    qpm: 600
    input_tokens: {mean: 1000, p95: 3000}
    slo:
      ttft_p95: 2 s
  - name: other
    model: llama-3.1-8b
    qpm: 5

hardware:
  allow: ["h100-*"]
"""
FLEET = {"serving": [{"name": "chat", "model": "llama-3.1-8b", "trace": "log.trace.csv", "prefix_cached": "30 %"}]}


def test_a_fleet_takes_the_trace_and_loses_what_it_replaces() -> None:
    text = merged(SCENARIO, FLEET, "mine.yaml")
    chat, other = text.split("  - name: other")
    assert "model: qwen2.5-7b   # stays" in chat
    assert "trace: log.trace.csv" in chat
    assert 'prefix_cached: "30 %"' in chat or "prefix_cached: 30 %" in chat
    assert "qpm" not in chat
    assert "input_tokens" not in chat
    assert "ttft_p95: 2 s" in chat
    assert other.endswith(SCENARIO.split("  - name: other")[1])


def test_a_fleet_of_users_has_a_rate_from_now_on() -> None:
    users = SCENARIO.replace("qpm: 600", "users: 200\n    think_time: 30 s")
    for read in (FLEET, {"serving": [{"name": "chat", "qpm": 60.0}]}):
        chat = merged(users, read, "mine.yaml").split("  - name: other")[0]
        assert "users" not in chat
        assert "think_time" not in chat


def test_a_fleet_of_another_name_is_added() -> None:
    text = merged(SCENARIO, {"serving": [{**FLEET["serving"][0], "name": "third"}]}, "mine.yaml")
    assert text.count("- name:") == 3
    assert text.index("- name: third") < text.index("hardware:")


def test_the_name_on_the_command_line_wins() -> None:
    text = merged(SCENARIO, FLEET, "mine.yaml", "other")
    assert "qpm: 5" not in text
    assert "qpm: 600" in text


def test_twice_is_once() -> None:
    once = merged(SCENARIO, FLEET, "mine.yaml")
    assert merged(once, FLEET, "mine.yaml") == once


@pytest.mark.parametrize("text", ["serving: [{name: chat, model: qwen2.5-7b}]\n", "serving:\n  - {name: chat}\n"])
def test_what_stands_in_braces_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(InputError, match="not edited"):
        merged(text, FLEET, "mine.yaml", "")


CONFIG = Reading(kind="", title="", source="in.json", pieces=[
    Piece(what="card", name="mine.config.json", text="new"),
    Piece(what="scenario", name="scenario.yaml", fragment={"serving": [{"name": "mine", "model": "llama-3.1-8b"}]}),
])  # fmt: skip


def test_a_file_beside_the_scenario_is_not_replaced_unasked(tmp_path: Path) -> None:
    beside, scenario = tmp_path / "mine.config.json", tmp_path / "mine.yaml"
    beside.write_text("old")
    with pytest.raises(OutputError, match="holds something else") as caught:
        write_into(CONFIG, str(scenario), Asked())
    assert "--name" in caught.value.problems[0].hint
    assert "--force" in caught.value.problems[0].hint
    assert (beside.read_text(), scenario.exists()) == ("old", False)
    beside.write_text("new")  # the same again is no loss
    assert write_into(CONFIG, str(scenario), Asked()) == [str(beside), str(scenario)]
    beside.write_text("old")
    write_into(CONFIG, str(scenario), Asked(), force=True)
    assert beside.read_text() == "new"


def test_what_was_read_is_never_replaced(tmp_path: Path) -> None:
    beside = tmp_path / "mine.config.json"
    beside.write_text("old")
    reading = replace(CONFIG, source=str(beside))
    with pytest.raises(OutputError, match="read from it"):
        write_into(reading, str(tmp_path / "mine.yaml"), Asked(), force=True)
    assert beside.read_text() == "old"


def test_what_a_scenario_still_wants_is_said_with_its_line(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(SCENARIO)
    assert [each.partition(",")[0] for each in still_wanted(str(scenario))] == [
        "'output_tokens' is missing in serving", "'input_tokens' is missing in serving",
        "'output_tokens' is missing in serving",
    ]  # fmt: skip
    whole = SCENARIO.replace("    qpm: 5\n", "    qpm: 5\n    input_tokens: 9\n    output_tokens: 9\n")
    scenario.write_text(whole.replace("    slo:", "    output_tokens: 9\n    slo:"))
    assert still_wanted(str(scenario)) == []


def test_a_model_that_is_none_is_still_wanted(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    known = SCENARIO.replace("    qpm: ", "    output_tokens: 100\n    input_tokens: 5\n    qpm: ")
    known = known.replace("    input_tokens: {mean: 1000, p95: 3000}\n", "")
    path.write_text(known)
    assert still_wanted(str(path)) == []
    path.write_text(known.replace("llama-3.1-8b", "llama-3.1-9b"))
    (wanted,) = still_wanted(str(path))
    assert wanted.startswith("no model preset 'llama-3.1-9b': ")
