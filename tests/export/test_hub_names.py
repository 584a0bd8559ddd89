"""A model named as on Hugging Face is launched under that very name, tuned or not, with the shape of its preset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import api
from planner.architecture.card import preset_card
from planner.architecture.load import PRESETS
from tests.worlds import fleet, scenario


def test_a_plan_of_a_name_of_the_hub_launches_that_name() -> None:
    name = "meta-llama/Llama-3.1-8B-Instruct"
    fleets = [fleet("chat", model=name, qpm=60, input_tokens=500, output_tokens=100)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["h100-sxm-80gb"]}))
    texts = [file.text for file in plan.export("vllm").files if file.name.endswith(".sh")]
    assert texts
    assert all(name in text for text in texts)


def test_the_card_of_a_name_is_its_presets_or_the_config_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert preset_card("meta-llama/Llama-3.1-8B-Instruct").config == preset_card("llama-3.1-8b").config
    folder = tmp_path / "models--nobody--strange-8b" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    config = json.loads((PRESETS / "llama-3.1-8b.json").read_text())["config"]
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    card = preset_card("nobody/strange-8b")
    assert (card.hf_id, card.config["hidden_size"]) == ("nobody/strange-8b", 4096)
