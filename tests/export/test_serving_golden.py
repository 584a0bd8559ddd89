"""Launch files of shipped scenarios, letter by letter; PLAN_UPDATE_GOLDEN=1 writes the files anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.export import Launch, export

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    ("vllm", "llama"),  # one pool, a spare
    ("vllm", "two-kinds"),  # a mix of devices, routed by length
    ("vllm", "disaggregated"),  # replicas over several nodes
    ("sglang", "disaggregated"),  # two pools of one fleet
    ("skypilot", "llama"),  # a job; the fleet is at a cloud without open ports
    ("kubernetes", "llama"),  # Deployment, Service, budget of disruption, Job
    ("kubernetes", "disaggregated"),  # LeaderWorkerSet
]


@pytest.mark.parametrize(("form", "scenario"), CASES)
def test_files_are_as_kept(launches: Callable[..., list[Launch]], form: str, scenario: str) -> None:
    folder = GOLDEN / scenario / form
    written = {file.name: file.text for file in export(form, launches(scenario)).files}
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    kept = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == kept
