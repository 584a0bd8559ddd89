"""What is saved is a scenario that asks the same, and takes no file's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import api
from planner.errors import InputError, OutputError
from planner.live.knobs import default_name, save

ROOT = Path(__file__).parents[2]


def test_a_changed_scenario_is_written_beside_its_own(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text((ROOT / "scenarios/llama.yaml").read_text())
    scenario = api.load_scenario(own)
    changes = {"training.pretrain-8b.deadline": "20 days", "price": "-10%", "hardware.deny": ["h200-sxm", "tpu-*"]}
    told = save(scenario, changes, default_name(scenario))
    written = api.load_scenario(tmp_path / "llama-live.yaml")
    assert told == f"wrote {tmp_path / 'llama-live.yaml'}: plan solve {tmp_path / 'llama-live.yaml'}"
    assert written.training[0].deadline_s == 20 * 86_400
    assert written.hardware.deny == ("h200-sxm", "tpu-*")
    assert written.hardware.discounts[0].fraction == pytest.approx(0.1)
    assert written.name == "llama-live"
    with pytest.raises(OutputError, match="is there already"):
        save(scenario, {}, default_name(scenario))


def test_one_that_ships_is_written_here_with_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = save(api.load_scenario("chat-fleet"), {"serving.chat.requests": "9 /s"}, "mine.yaml")
    assert "chat.csv" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat.csv", "mine.yaml"]
    assert api.load_scenario("mine.yaml").serving[0].qpm == pytest.approx(540)


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/b", "..", "", "x\0y", ".hidden"])
def test_names_lead_nowhere_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    save(api.load_scenario("gpt2-xl"), {}, name)
    assert [path.parent for path in tmp_path.rglob("*.yaml")] == [inside]


@pytest.mark.parametrize("changes", [{"training.gpt2-xl.deadline": "soon"}, {"title": '"600"'}], ids=str)
def test_what_cannot_be_read_is_not_written(
    changes: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what could not be read again: 600 would be a number, where it stands in a file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        save(api.load_scenario("gpt2-xl"), changes, "mine")
    assert list(tmp_path.iterdir()) == []
