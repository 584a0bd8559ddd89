"""What `plan solve` exits with and says, for each way in which a solver may end."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner import api  # noqa: F401 - parts of it are replaced
from planner.optimize import child, process
from tests.cli.conftest import ROOT, Run
from tests.faults import stand_in
from tests.tiers import sampled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and signals are those of POSIX")

# three jobs and two limits: what is cheapest for each alone does not fit together
SCENARIO = """\
schema: plan/v1
name: three-jobs
estimator: rule
training:
  - {name: a, model: {parameters: 8B}, tokens: 100B, deadline: 20 days, sequence_length: 4096, global_batch: 1M tokens}
  - {name: b, model: {parameters: 7B}, tokens: 150B, deadline: 20 days, sequence_length: 4096, global_batch: 1M tokens}
  - {name: c, model: {parameters: 3B}, tokens: 250B, deadline: 20 days, sequence_length: 4096, global_batch: 1M tokens}
hardware:
  allow: [h100-sxm-80gb, a100-sxm-80gb, h20-sxm-96gb]
  quotas:
    - {device: "h100-*", max_devices: 40}
limits:
  max_devices: 70
"""

# way: exit code and words, when no other solver is there and nothing but the solver finds plans
ALONE = {
    "optimal": (0, "optimal, proven"),
    "limit with an incumbent": (5, "the time limit ended the search"),
    "limit without an incumbent": (6, "the time limit ended the search"),
    "infeasible": (4, "nothing meets every limit"),
    "infeasible or unbounded": (4, "nothing meets every limit"),
    "unbounded": (6, "(unbounded) was refused"),
    "invalid point": (6, "not 1 jobs"),
    "point that is not whole": (6, "not whole"),
    "NaN": (6, "not numbers"),
    "empty": (6, "no point"),
    "wrong objective": (6, "reports the objective"),
    "crash": (6, "killed by signal 11"),
    "non-zero exit": (6, "exit status 3"),
    "truncated answer": (6, "exit status 0"),
    "hang": (6, "did not come back in time"),
}

Behaves = Callable[..., Path]


@pytest.fixture
def behaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Behaves]:
    """`behaves("hang", "alone")`: solver processes misbehave; the path of the scenario."""
    child.end()
    scenario = tmp_path / "three-jobs.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def stand(*arguments: str) -> Path:
        monkeypatch.setattr(child, "BOOT", stand_in.boot(*arguments))
        monkeypatch.setattr("planner.optimize.solve.greedy_plan", lambda scope, **_: None, raising=False)
        monkeypatch.setattr(process, "GRACE_S", 0.3)
        process.solvers()
        return scenario

    yield stand
    child.end()


def words(text: str) -> str:
    """Text without its line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize("way", sampled(ALONE, 6))
def test_each_ending_has_its_exit_code_and_words(way: str, behaves: Behaves, run: Run) -> None:
    code, said = ALONE[way]
    limit = ["--time-limit", "3s"] if way == "hang" else []
    answer = run("solve", str(behaves(way, "alone")), "-v", *limit)
    assert answer.code == code, answer.out + answer.err
    assert said in words(answer.out)
    assert "Traceback" not in answer.err
    plan = json.loads(Path(".plan/three-jobs.plan.json").read_text(encoding="utf-8"))
    assert (plan["summary"]["cost_microusd"] is not None) == (code in (0, 5))


@pytest.mark.parametrize("way", ["invalid point", "crash", "unbounded"])
def test_the_other_solver_steps_in_with_a_warning(way: str, behaves: Behaves, run: Run) -> None:
    answer = run("solve", str(behaves(way)), "-v")
    assert answer.code == 0, answer.out + answer.err
    assert ALONE[way][1] in words(answer.out)


@pytest.mark.parametrize("known", [False, True])
def test_ctrl_c_keeps_the_plan_that_is_known(
    known: bool, behaves: Behaves, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the solver is waited for: exit 5 with a plan that is called not proven, else 130 and no plan file."""
    scenario, real = behaves("hang with a point" if known else "hang", "alone"), process._take
    heard: list[str] = []

    def take(here: child.Child, until: float | None) -> process.Message:
        if ("point" if known else "relaxed") in heard:
            os.kill(os.getpid(), signal.SIGINT)
        message = real(here, until)
        heard.append(str(message[0].get("say")))
        return message

    monkeypatch.setattr(process, "_take", take)
    answer = run("solve", str(scenario), "-v")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert answer.code == (5 if known else 130), answer.out + answer.err
    assert Path(".plan/three-jobs.plan.json").exists() == known
    if known:
        assert "not proven" in answer.out
        assert "interrupted" in words(answer.out)
    else:
        assert answer.err.endswith("interrupted\n")
    assert not any(process.usable for process in child._current)


@pytest.mark.parametrize(
    "where",
    ["planner.api.sessions.build_document", "planner.api.sessions._verify", "planner.analysis.beside.median_cost"],
)
def test_ctrl_c_after_the_plan_was_found_leaves_it(
    where: str, behaves: Behaves, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is proven stays proven; only what would be worked out beside it is left out."""
    scenario = behaves("optimal")
    room, _, name = where.rpartition(".")
    real, times = getattr(sys.modules[room], name), iter([True])

    def broken_off(*arguments: object, **options: object) -> object:
        if next(times, False):
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(where, broken_off)
    answer = run("solve", str(scenario), "-v")
    assert answer.code == 0, answer.out + answer.err
    certified = "optimal, proven" if "beside" not in where else "optimal by HiGHS; it carries no certificate"
    assert certified in words(answer.out)
    assert ("interrupted after the plan was found" in words(answer.out)) == (name == "median_cost")
    assert Path(".plan/three-jobs.plan.json").exists()


def test_what_the_solver_alone_calls_infeasible_exits_as_the_table_says(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More replicas than there are devices, and no certificate of it: nothing meets the limits, which is not proven."""
    fleet = "{name: chat, model: llama-3.1-8b, qpm: 1e12, input_tokens: 800, output_tokens: 200}"
    hardware = "{allow: [h100-sxm-80gb], providers: [aws, lambda]}"
    (here / "f.yaml").write_text(f"schema: plan/v1\nname: f\nserving: [{fleet}]\nhardware: {hardware}\n")
    assert "Nothing meets every limit: that is proven" in run("solve", "f.yaml").out
    monkeypatch.setattr("planner.analysis.beside.certificate_of", lambda *given, **more: None)
    answer = run("solve", "f.yaml")
    assert answer.code == 4, answer.err
    assert "so says HiGHS: it is not proven" in answer.out
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert "| 4 | nothing meets every limit: proven, or said by the solver alone; the answer tells which |" in table
