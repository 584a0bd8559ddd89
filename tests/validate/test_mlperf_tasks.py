"""Tasks of MLPerf Inference: lengths and limits come from a table, and a task that is not in it gets no figure."""

from __future__ import annotations

import dataclasses

import pytest

from planner.catalog.load import load_catalog
from planner.validate.serving import ServingPrediction, predict_serving
from planner.validate.serving_rows import ServingRow, shipped_serving_rows
from planner.validate.serving_setup import mlperf_tasks, task_of

CATALOG = load_catalog()
ROW = ServingRow(
    model="llama2-70b-99.9", n_params_b=68.98, layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ffn_hidden=28672, vocab=32000, accelerator="H100-SXM-80GB", n_accel=8, engine="trt-llm", weight_precision="fp8",
    scenario="MLPerf v5.1 Offline closed",
)  # fmt: skip


def predicted(**changes: object) -> ServingPrediction:
    return predict_serving([dataclasses.replace(ROW, **changes)], CATALOG)[0]  # type: ignore[arg-type]


def test_every_shipped_row_has_its_task() -> None:
    rows = [row for row in shipped_serving_rows() if row.load == "mlperf"]
    assert {task.task for row in rows if (task := task_of(row.model))} == {task.task for task in mlperf_tasks()}
    for row in rows:
        task = task_of(row.model)
        assert task is not None
        assert task.limits(row.scenario or "") is not None
        assert (row.scenario or "").split()[1].removeprefix("v") in task.rounds.split()


def test_the_longest_name_decides() -> None:
    assert (task_of("llama3.1-8b-edge"), task_of("LLAMA3.1-8B")) == (task_of("llama3.1-8b"),) * 2
    assert task_of("llama3.1-80b") is None
    assert task_of(None) is None


def test_tighter_limits_carry_less() -> None:
    """A rate without limits, under those of a server, and under those of a conversation."""
    offline, server, interactive = (
        predicted(scenario=f"MLPerf v5.1 {name} closed").output_tokens_per_s
        for name in ("Offline", "Server", "Interactive")
    )
    assert offline is not None
    assert server is not None
    assert interactive is not None
    assert 0.5 * offline < server <= offline
    assert 0.2 * offline < interactive < 0.9 * server


def test_an_unknown_task_is_refused_with_those_that_are_known() -> None:
    said = predicted(model="llama9-1t-99")
    assert said.output_tokens_per_s is None
    assert "MLPerf task 'llama9-1t-99' is not known" in (said.skipped or "")
    assert "llama2-70b" in (said.skipped or "")


def test_a_scenario_without_limits_is_refused() -> None:
    said = predicted(model="mixtral-8x7b-99", scenario="MLPerf v5.1 Interactive closed", n_experts=None)
    assert said.skipped == "MLPerf task mixtral-8x7b has no limits for 'MLPerf v5.1 Interactive closed'"


@pytest.mark.parametrize("task", mlperf_tasks(), ids=lambda task: task.task)
def test_every_task_states_where_it_is_from(task) -> None:  # type: ignore[no-untyped-def]
    assert task.source
    assert task.lengths_source
    assert task.as_of
    assert task.status in ("seen", "recalled")
    assert set(task.rounds.split()) <= {"3.1", "4.0", "4.1", "5.0", "5.1"}
