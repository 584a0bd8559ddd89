"""`plan export` at the command line: where files go, what is told, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.catalog.load import load_catalog
from planner.cli.export import Target
from planner.export import FORMATS
from tests.cli.conftest import ROOT, Run, without_price_age

pytestmark = pytest.mark.usefixtures("answered_once")


@pytest.fixture
def plan(here: Path) -> Path:
    """The kept plan of scenarios/llama.yaml, as `plan solve` would have saved it."""
    document = json.loads((ROOT / "tests/export/plans/llama.json").read_text(encoding="utf-8"))
    document["provenance"] |= {"planner": "0.1.0", "solver": "HiGHS", "modelling": "PuLP"}
    document["provenance"]["catalog"]["sha256"] = load_catalog().digest  # as if it were of today
    path = here / "llama.plan.json"
    path.write_text(
        json.dumps({**document, "certificate": None, "sha256": "5" * 64, "scenario_file": "scenarios/llama.yaml"})
    )
    return path


def edit(plan: Path, **changes: Any) -> None:
    document = json.loads(plan.read_text())
    document["provenance"]["catalog"].update(changes.pop("catalog", {}))
    plan.write_text(json.dumps({**document, **changes}))


def test_the_command_knows_every_format(run: Run) -> None:
    assert [target.value for target in Target] == list(FORMATS)
    text = " ".join(run("export", "--help").out.split())
    assert all(name in text for name in FORMATS)


def test_one_file_goes_to_the_screen(run: Run, here: Path) -> None:
    solved = run("solve", "scenarios/gpt2-xl.yaml")
    assert solved.code == 0, solved.err
    answer = run("export", "torchrun", ".plan/gpt2-xl.plan.json", "--workload", "gpt2-xl")
    assert answer.code == 0
    assert without_price_age(answer.err) == ""
    assert answer.out.startswith("#!/usr/bin/env bash\n")
    assert "plan export torchrun .plan/gpt2-xl.plan.json --workload gpt2-xl" in answer.out
    assert "not proven" not in answer.out


def test_a_plan_that_proves_nothing_says_so_in_its_files(run: Run, plan: Path) -> None:
    answer = run("export", "torchrun", str(plan), "--workload", "pretrain-8b")
    assert answer.code == 0
    assert answer.err.startswith("warning[not-proven] feasible, not proven: the plan does not hold")
    assert "(scenarios/llama.yaml, feasible: not proven)" in answer.out


def test_what_is_left_out_is_told(run: Run, plan: Path) -> None:
    answer = run("export", "torchrun", str(plan))
    assert answer.code == 0
    assert "not exported: assistant: torchrun launches training, and this is serving; use vllm" in answer.err


def test_several_files_are_named(run: Run, plan: Path) -> None:
    answer = run("export", "deepspeed", str(plan), "--workload", "pretrain-8b")
    assert answer.code == 0
    assert "# ==> pretrain-8b.deepspeed.json <==" in answer.out
    assert "2 files: --out DIR writes them" in answer.err


def test_out_writes_a_file_or_a_folder(run: Run, plan: Path, here: Path) -> None:
    assert run("export", "slurm", str(plan), "--out", "job.sbatch").code == 0
    assert (here / "job.sbatch").read_text().startswith("#!/usr/bin/env bash\n#SBATCH ")
    assert run("export", "slurm", str(plan), "--out", "jobs/").code == 0
    assert (here / "jobs/pretrain-8b.sbatch").is_file()
    answer = run("export", "torchtitan", str(plan), "--out", "titan")
    assert answer.code == 0
    assert sorted(path.name for path in (here / "titan").iterdir()) == [
        "pretrain-8b.torchtitan.sh",
        "pretrain-8b.torchtitan.toml",
    ]
    assert "wrote titan/pretrain-8b.torchtitan.toml" in answer.err


def test_files_stay_in_their_folder(run: Run, plan: Path, here: Path) -> None:
    outside = here / "outside"
    outside.write_text("mine")
    (here / "jobs").mkdir()
    (here / "jobs/pretrain-8b.sbatch").symlink_to(outside)
    answer = run("export", "slurm", str(plan), "--out", "jobs")
    assert answer.code == 3
    assert "error[unsafe-path]" in answer.err
    assert outside.read_text() == "mine"


def test_a_file_in_the_way_of_a_folder(run: Run, plan: Path, here: Path) -> None:
    (here / "taken").write_text("mine")
    answer = run("export", "deepspeed", str(plan), "--out", "taken")
    assert answer.code == 8
    assert (here / "taken").read_text() == "mine"


def test_nothing_to_write_is_an_error_with_every_reason(run: Run, plan: Path) -> None:
    answer = run("export", "torchrun", str(plan), "--workload", "assistant")
    assert answer.code == 2
    assert "error[not-expressible]" in answer.err
    assert "use vllm" in answer.err
    answer = run("export", "torchrun", str(plan), "--workload", "nobody")
    assert answer.code == 2
    assert "it runs pretrain-8b, assistant" in answer.err


def test_a_stale_plan_is_refused_unless_allowed(run: Run, plan: Path) -> None:
    edit(plan, catalog={"sha256": "0" * 64})
    answer = run("export", "slurm", str(plan))
    assert answer.code == 3
    assert "error[stale-plan]" in answer.err
    answer = run("export", "slurm", str(plan), "--allow-stale")
    assert answer.code == 0
    assert "warning[stale-plan]" in answer.err
    assert "--allow-stale" in answer.out


def test_an_edited_scenario_makes_a_plan_stale(run: Run, plan: Path, here: Path) -> None:
    file = here / "scenarios/llama.yaml"
    file.write_text(file.read_text().replace("deadline: 30 days", "deadline: 20 days"))
    answer = run("export", "slurm", str(plan))
    assert answer.code == 3
    assert "training.pretrain-8b.deadline" in answer.err


def test_no_plan_is_not_exported(run: Run, plan: Path) -> None:
    edit(plan, status="infeasible")
    answer = run("export", "slurm", str(plan))
    assert answer.code == 4
    edit(plan, status="stopped")
    assert run("export", "slurm", str(plan)).code == 6


def test_a_scenario_is_solved_first(run: Run, here: Path) -> None:
    answer = run("export", "torchrun", "scenarios/gpt2-xl.yaml", "--set", "training.gpt2-xl.tokens=1B")
    assert answer.code == 0
    assert "--set training.gpt2-xl.tokens=1B" in answer.out
    assert "--train-iters 31250 " in answer.out


def test_own_prices_are_part_of_the_command(run: Run, here: Path) -> None:
    wanted = "--price 'a100-sxm-40gb=$2.00/h'"
    answer = run("export", "slurm", "scenarios/gpt2-xl.yaml", "--price", "a100-sxm-40gb=$2.00/h")
    assert answer.code == 0, answer.err
    assert wanted in answer.out


def test_settings_want_a_scenario(run: Run, plan: Path) -> None:
    answer = run("export", "slurm", str(plan), "--set", "limits.budget=$1")
    assert answer.code == 2


@pytest.mark.parametrize("key", ["workloads", "provenance", "scenario"])
def test_a_broken_plan_file_is_told(run: Run, plan: Path, key: str) -> None:
    document = json.loads(plan.read_text())
    document[key] = {"workloads": [{}], "provenance": {"catalog": {"sha256": "", "name": "", "as_of": ""}}}.get(key, {})
    plan.write_text(json.dumps(document))
    answer = run("export", "slurm", str(plan), "--allow-stale")
    assert answer.code == 3, answer.err
    assert "Traceback" not in answer.err


def test_files_of_a_cluster_are_one_stream(run: Run, plan: Path) -> None:
    """Between two files there was no mark of a document: a Job and a Deployment became one, and the Job was lost."""
    stream = list(yaml.safe_load_all(run("export", "kubernetes", str(plan)).out))
    kinds = [one["kind"] for one in stream if one]
    assert {"Job", "Deployment"} <= set(kinds)
    run("export", "kubernetes", str(plan), "--out", "apart/")
    apart = [list(yaml.safe_load_all(path.read_text())) for path in Path("apart").iterdir()]
    assert sorted(kinds) == sorted(one["kind"] for file in apart for one in file if one)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("megatron", "torchrun"), ("trtllm", "trt-llm"), ("k8s", "kubernetes"), ("fsdp", "torchtitan"), ("vlm", "vllm")],
)
def test_a_format_by_another_name_is_told_the_one_that_is_meant(run: Run, plan: Path, typed: str, meant: str) -> None:
    """All thirteen formats were listed, none of which is called Megatron-LM."""
    result = run("export", typed, str(plan))
    assert result.code == 2
    assert f"Did you mean {meant}?" in " ".join(result.err.split())
