"""Workloads listed in processes beside each other: the ways and the plan of one process, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.api import listing
from planner.errors import StoppedError, UsageError
from planner.sweeps.question import Answered, lost
from tests.api.test_session import differences

TEXT = """\
schema: plan/v1
name: beside
hardware: {allow: [h100-sxm-80gb, a100-sxm-80gb], providers: [lambda, aws]}
training:
  - {name: tune, model: llama-3.2-1b, tokens: 2B, epochs: 1, deadline: 20 days}
serving:
  - {name: chat, model: llama-3.1-8b, qpm: 60, input_tokens: 500, output_tokens: 100}
  - {name: guard, model: llama-3.1-8b, qpm: 90, input_tokens: 300, output_tokens: 20}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "beside.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_two_processes_list_what_one_lists(scenario: Path) -> None:
    alone, beside = api.session(scenario), api.session(scenario, workers=2)
    assert differences(alone.candidates, beside.candidates) == []
    assert list(beside.candidates.ways) == ["tune", "chat", "guard"]
    known = {id(offer) for offer in beside.candidates.catalog.offers} | {id(one) for one in beside.catalog.offers}
    assert set(beside.candidates.recall._found) == set(alone.candidates.recall._found)  # for whoever asks next
    tables = beside.candidates.tables.values()
    assert all(id(site.offer) in known for table in tables for site in table.sites)
    assert alone.solve().to_json() == beside.solve().to_json()
    change = {"serving.chat.qpm": 70}
    assert alone.with_(change).solve().to_json() == beside.with_(change).solve().to_json()


def test_a_process_that_dies_ends_the_listing_in_words(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        def __init__(self, *_: Any) -> None:
            pass

        def __enter__(self) -> Dying:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __call__(self, questions: Any) -> Iterator[tuple[int, Answered]]:
            for number, _ in questions:
                yield number, Answered(row=lost("worker-died", "it ended twice", ""))

    monkeypatch.setattr(listing, "Processes", Dying)
    with pytest.raises(StoppedError) as told:
        api.session(scenario, workers=2)
    assert told.value.problems[0].reference == "worker-died"
    assert "--workers" in told.value.problems[0].hint


@pytest.mark.parametrize("workers", [0, 2000])
def test_there_cannot_be_as_many(scenario: Path, workers: int) -> None:
    with pytest.raises(UsageError):
        api.session(scenario, workers=workers)
