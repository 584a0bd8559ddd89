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


DAY = """
schema: plan/v1
name: day
horizon: 12 months
serving:
  - name: chat
    model: llama-3.1-70b
    weights: fp8
    requests: 10 /s
    load_profile: day.csv
    autoscaling: {start_up: 10 min}
    input_tokens: {mean: 1500, p95: 4000}
    output_tokens: {mean: 400, p95: 1000}
    slo: {ttft_p95: 1.5 s, tpot_p95: 50 ms}
hardware:
  allow: [tpu-v6e, h100-sxm-80gb, l40s]
  providers: [gcp, aws, azure]
  pricing: [on_demand, commitment_1y]
"""


def test_columns_are_told_as_they_were_listed(tmp_path: Path) -> None:
    """Exact rates leave fewer columns of a calendar: a new plan told of those, and its own check refused it."""
    weights = "".join(f"{hour},{0.2 + hour % 12 / 8:.3f}\n" for hour in range(24))
    (tmp_path / "day.csv").write_text(f"hour,weight\n{weights}")
    (tmp_path / "day.yaml").write_text(DAY)
    found = api.enumerate_candidates(api.load_scenario(tmp_path / "day.yaml"))
    table, question = found.tables["chat"], found.questions["chat"]
    assert isinstance(table, ServingTable)
    assert isinstance(question, ServingQuestion)
    changed = with_tables(found, {"chat": table.exactly(question, np.flatnonzero(table.open_rows)[:120].tolist())}, {})
    assert changed.whole.column_count < found.whole.column_count
    assert changed.columns_before == found.columns_before


def alike(one: Any, other: Any) -> bool:
    """Whether two parts of a program hold the same."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if is_dataclass(one):
        return all(alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
