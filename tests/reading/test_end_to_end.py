"""What was read goes on: rows into validation and calibration, logs into plans; and all of it without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.main import ROOMS, app_of
from planner.scenario.shipped import find_scenario
from tests.reading.writers import vllm_bench

RUNS = {1: (8.0, 40.0, 150.0), 4: (9.0, 60.0, 60.0), 16: (12.0, 120.0, 25.0), 64: (22.0, 400.0, 15.0)}
REQUESTS = Path(find_scenario("llama").path).parent / "requests.csv"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of a folder of results, one a load."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for clients, (tpot_ms, ttft_ms, seconds) in RUNS.items():
        rates = {"output_throughput": 12800 / seconds, "total_token_throughput": 115200 / seconds,
                 "request_throughput": 100 / seconds, "duration": seconds}  # fmt: skip
        text = vllm_bench(clients, median_tpot_ms=tpot_ms, median_ttft_ms=ttft_ms, **rates)
        (tmp_path / "runs" / f"{clients}.json").write_text(text)
    run(
        "read",
        "runs",
        "--accelerator",
        "h100-sxm-80gb",
        "--devices",
        "1",
        "--model",
        "llama-3.1-8b",
        "--out",
        "rows.csv",
    )
    return tmp_path / "rows.csv"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app_of(*ROOMS), arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_validation_takes_the_rows_of_a_folder_of_results(rows: Path) -> None:
    said = run("validate", "serving", "--data", str(rows))
    assert "4 of 4 rows predicted" in said
    assert "h100-sxm-80gb" in said


def test_calibration_takes_them_and_its_constants_are_a_catalog_s(rows: Path) -> None:
    run("calibrate", "serving", "--data", str(rows), "--out", "serving.yaml")
    assert "burst" in Path("serving.yaml").read_text()


def test_the_shipped_requests_become_a_plan_in_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("read", str(REQUESTS), "--into", "mine.yaml", "--model", "llama-3.1-8b")
    assert "requests" in run("solve", "mine.yaml")


WITHOUT = """
import sys
sys.modules["pandas"] = None
import planner
from planner.errors import PlanError
from planner.cli.main import main
plan = planner.solve(sys.argv[1])
assert plan.document["summary"]["cost_microusd"] > 0
try:
    plan.to_frame()
except PlanError as error:
    print("to_frame:", error.problems[0].message, error.problems[0].hint)
sys.argv = ["plan", "read", sys.argv[2]]
main()
"""


def test_without_pandas_plans_are_made_and_what_needs_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "schema: plan/v1\nname: mine\ntraining:\n  - {name: job, model: llama-3.2-1b, tokens: 1B, deadline: 9 days}\n"
        "hardware: {allow: h100-sxm-80gb}\n"
    )
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "mine.yaml"), str(REQUESTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "to_frame:" in done.stdout, done.stderr
    assert "pandas" in done.stdout
    assert "pip install" in done.stdout
    assert done.returncode == 2
    assert "plan read needs pandas" in done.stderr
    assert "pip install pandas" in done.stderr
    assert "Traceback" not in done.stderr
