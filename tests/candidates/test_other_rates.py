"""Other rates on the same machines: the program is the one that would be built anew."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner import api
from planner.candidates.search import program_of, with_tables
from planner.candidates.serving import ServingTable
from planner.candidates.serving_question import ServingQuestion

ROOT = Path(__file__).parents[2]


def test_a_program_with_other_rates_is_the_one_built_anew() -> None:
    """Layouts of a set differ in plainness, in what they hold and in their rates; machines and limits do not."""
    settings = ["hardware.allow=[h100-sxm-80gb, l4, l40s]", "limits.max_devices=64"]
    found = api.enumerate_candidates(api.load_scenario(ROOT / "scenarios" / "chat-fleet.yaml", settings=settings))
    table, question = found.tables["chat"], found.questions["chat"]
    assert isinstance(table, ServingTable)
    assert isinstance(question, ServingQuestion)
    open_rows = np.flatnonzero(table.open_rows)[:3].tolist()
    assert open_rows
    changed = with_tables(found, {"chat": table.exactly(question, open_rows)}, {"chat": 1})
    anew = program_of(found.scenario, found.catalog, changed.tables, found.questions, found.pools)
    assert (anew.program.capacity_micro_per_s != found.whole.capacity_micro_per_s).any()
    for field in fields(anew.program):
        assert alike(getattr(changed.whole, field.name), getattr(anew.program, field.name)), field.name


def alike(one: Any, other: Any) -> bool:
    """Whether two parts of a program hold the same."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if is_dataclass(one):
        return all(alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
