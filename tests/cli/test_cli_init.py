"""`plan init` and `plan` alone: a first scenario that loads and solves, and what to do next."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import files
from planner.architecture.load import list_presets
from planner.plan.references import loader_of
from planner.scenario.load import parse_scenario
from planner.scenario.starter import DEFAULTS, MODELINE, Answers, answer_problems, model_reference, starter_text
from tests.cli.conftest import ROOT, Run
from tests.tiers import settings

SUGGESTION = re.compile(r"^( *)# ([a-z_]+: .*)$", re.MULTILINE)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> object:
    """A person at a terminal who types these lines."""

    def sit_down(*lines: str) -> None:
        stream = io.StringIO("".join(f"{line}\n" for line in lines))
        stream.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", stream)
        monkeypatch.setattr(sys.stdout.__class__, "isatty", lambda _: True, raising=False)

    return sit_down


# ---- the text


models = st.sampled_from(
    ["llama-3.1-8b", "deepseek-v3", "gpt2", "8B", "1.5 B parameters", "models/own", "../x/config.json"]
)
amounts = st.sampled_from(["1", "600", "1.5k", "200B", "2T tokens", "1e9", "15.6e12"])
answers = st.builds(
    Answers,
    name=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True),
    train=models | st.just(""),
    serve=models,
    tokens=amounts,
    deadline=st.sampled_from(["30 days", "2 weeks", "1e3 h", "1 months", "90 min"]),
    qpm=st.sampled_from(["0.5", "600", "1.5k", "1e9"]),
    input_tokens=amounts,
    output_tokens=amounts,
    budget=st.sampled_from(["", "$60000", "$ 1.5", "2e6 USD"]),
    allow=st.lists(st.sampled_from(["*", "h100-*", "l40s", "tpu-v5e", "[ab]*", "H100"]), min_size=1, unique=True).map(
        tuple
    ),
)


@settings(max_examples=25)
@given(answers)
def test_any_answers_make_a_file_that_loads(given_answers: Answers) -> None:
    with files.outside_allowed():  # a model may lie anywhere
        scenario = parse_scenario(starter_text(given_answers), file="scenario.yaml")
    assert len(scenario.workloads) == 1 + bool(given_answers.train)
    assert scenario.name == given_answers.name
    assert scenario.hardware.allow == given_answers.allow
    assert (scenario.limits.budget_microusd is None) == (not given_answers.budget)


@settings(max_examples=40)
@given(st.sampled_from([key for key in Answers.__dataclass_fields__ if key != "allow"]), st.text(max_size=30))
def test_any_text_is_an_answer_or_refused_never_a_crash(key: str, text: str) -> None:
    """Whatever is typed: it becomes that one value and no other line of the file, or it is refused with a reason."""
    problems = answer_problems(key, text) if text else []
    assert all(problem.message for problem in problems)
    if not problems and text and key not in ("train", "serve"):
        scenario = parse_scenario(starter_text(replace(DEFAULTS, **{key: text})), file="scenario.yaml")
        assert [workload.name for workload in scenario.workloads] == ["train", "serve"]


@pytest.mark.parametrize("chosen", [DEFAULTS, replace(DEFAULTS, serve="", budget="$9000"), replace(DEFAULTS, train="")])
def test_every_suggestion_holds(chosen: Answers) -> None:
    """A commented line without its '# ' is part of a scenario that loads; all of them together, too."""
    text = starter_text(chosen)
    found = list(SUGGESTION.finditer(text))
    assert len(found) >= 6
    for match in found:
        one = text[: match.start()] + match.expand(r"\1\2") + text[match.end() :]
        parse_scenario(one, file="scenario.yaml")
    parse_scenario(SUGGESTION.sub(r"\1\2", text), file="scenario.yaml")
    for case in parse_scenario(text).document.data.get("scenarios", {"cautious": 0, "burst": 0}):
        if (case == "cautious" and chosen.train) or (case == "burst" and chosen.serve):
            assert parse_scenario(text, case=case).case == case


def test_the_text_tells_what_a_reader_needs() -> None:
    text = starter_text(DEFAULTS)
    assert text.startswith(f"{MODELINE}\n")
    assert max(map(len, text.splitlines())) <= 120
    for said in ("a month is 730 h", "mean", "plan solve scenario.yaml", "plan models list", "plan schema"):
        assert said in text


# ---- the command


def test_init_writes_a_starter_that_the_editor_knows(run: Run, empty: Path) -> None:
    answer = run("init")
    assert (answer.code, answer.err) == (0, "")
    assert "plan solve scenario.yaml" in answer.out
    schema = json.loads((empty / ".plan/scenario.schema.json").read_text())
    assert schema == json.loads((ROOT / "planner/scenario/scenario.schema.json").read_text())
    text = (empty / "scenario.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=.plan/scenario.schema.json\n")
    jsonschema.validate(parse_scenario(text).resolved, schema)
    solved = run("solve", "-o", "json")  # finds it
    assert solved.code == 0, solved.err
    assert json.loads(solved.out)["status"] == "optimal"


def test_flags_solve_without_a_question(run: Run, empty: Path) -> None:
    made = run("init", "mine.yaml", "--serve", "gpt-oss-20b", "--qpm", "60", "--allow", "h100-*", "--allow", "h200-*")
    assert made.code == 0, made.err
    document = json.loads(run("solve", "mine.yaml", "-o", "json").out)
    assert document["name"] == "mine"
    assert document["status"] == "optimal"
    assert [workload["name"] for workload in document["workloads"]] == ["serve"]


def test_a_model_of_ones_own_is_named_from_the_scenario(run: Run, empty: Path) -> None:
    preset = json.loads((ROOT / "planner/architecture/presets/qwen3-0.6b.json").read_text())
    (empty / "models").mkdir()
    (empty / "models/config.json").write_text(json.dumps(preset["config"]))
    asked = ("init", "plans/own.yaml", "--train", "models/config.json", "--tokens", "1B", "--deadline", "7 days")
    refused = run(*asked)  # what the file names would not be read again without being allowed
    assert (refused.code, "--allow-outside" in refused.err) == (2, True)
    assert not (empty / "plans/own.yaml").exists()
    answer = run(*asked, "--allow-outside")
    assert answer.code == 0, answer.err
    text = (empty / "plans/own.yaml").read_text()
    assert "model: {config: ../models/config.json}" in text
    with files.outside_allowed():
        scenario = parse_scenario(text, file="plans/own.yaml")
    assert loader_of(scenario)(scenario.training[0].model).layer_count == preset["config"]["num_hidden_layers"]


def test_nothing_is_overwritten_without_force(run: Run, empty: Path) -> None:
    (empty / "scenario.yaml").write_text("mine\n")
    refused = run("init")
    assert refused.code == 2
    assert "error[file-exists]" in refused.err
    assert (empty / "scenario.yaml").read_text() == "mine\n"
    assert run("init", "--force").code == 0
    assert (empty / "scenario.yaml").read_text() == starter_text(DEFAULTS)


def test_stdout_takes_the_text_alone(run: Run, empty: Path) -> None:
    assert run("init", "-").out == starter_text(DEFAULTS)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "reference"),
    [
        (("--train", "llama-3.1-8"), "unknown-model"),
        (("--serve", "nowhere/config.json"), "file-not-found"),
        (("--serve", "70B"), "shape-unknown"),
        (("--train", "8B", "--tokens", "2t"), "ambiguous-suffix"),
        (("--deadline", "30"), "missing-unit"),
        (("--deadline", "80 GB"), "wrong-dimension"),
        (("--budget", "60000"), "missing-unit"),
        (("--qpm", "0"), "out-of-range"),
        (("--name", "My plan"), "unsafe-name"),
        (("--allow", "b999"), "unknown-device"),
        (("--serve", "gpt2", "--tokens", "1B"), "missing-option"),
        (("plan.txt",), "not-a-scenario"),
    ],
    ids=" ".join,
)
def test_flags_are_refused_with_a_way_out(run: Run, empty: Path, flags: tuple[str, ...], reference: str) -> None:
    answer = run("init", *flags)
    assert answer.code == 2
    assert f"error[{reference}] " in answer.err
    assert "hint: " in answer.err
    assert list(empty.iterdir()) == []


def test_questions_check_each_answer_at_once(run: Run, empty: Path, typing) -> None:  # type: ignore[no-untyped-def]
    typing("llama-3.1-8", "qwen2.5-7b", "2t", "2T", "30", "60 days", "-", "$90000", "h100-*, h200-*")
    answer = run("init", "mine.yaml")
    assert answer.code == 0, answer.err
    assert "no model preset 'llama-3.1-8'" in answer.err
    assert 'did you mean "2T"' in answer.err
    assert 'write "30 days" or "720 h"' in answer.err
    scenario = parse_scenario((empty / "mine.yaml").read_text())
    assert [job.model.preset for job in scenario.training] == ["qwen2.5-7b"]
    assert (scenario.training[0].tokens, scenario.training[0].deadline_s) == (2e12, 60 * 86400)
    assert scenario.serving == ()
    assert scenario.limits.budget_microusd == 90_000 * 10**6
    assert scenario.hardware.allow == ("h100-*", "h200-*")


def test_a_size_is_enough_to_train_not_to_serve(run: Run, empty: Path, typing) -> None:  # type: ignore[no-untyped-def]
    typing("8B", "1B", "", "", *[""] * 5)
    assert run("init").code == 0
    scenario = parse_scenario((empty / "scenario.yaml").read_text())
    assert scenario.training[0].model.parameters == 8 * 10**9
    assert scenario.serving[0].model is not None
    assert scenario.serving[0].model.preset == DEFAULTS.serve


def test_enter_takes_the_defaults(run: Run, empty: Path, typing) -> None:  # type: ignore[no-untyped-def]
    typing(*[""] * 9)
    assert run("init").code == 0
    assert (empty / "scenario.yaml").read_text() == starter_text(DEFAULTS)


def test_neither_is_asked_again_and_the_end_of_input_leaves_nothing(run: Run, empty: Path, typing) -> None:  # type: ignore[no-untyped-def]
    typing("-", "-")
    answer = run("init")
    assert answer.code == 130
    assert "something has to stand here" in answer.err
    assert list(empty.iterdir()) == []


def test_yes_asks_nothing_on_a_terminal(run: Run, empty: Path, typing) -> None:  # type: ignore[no-untyped-def]
    typing()
    assert run("init", "--yes").code == 0


# ---- plan alone


def test_plan_alone_says_what_is_next(run: Run, empty: Path) -> None:
    nothing = run()
    assert nothing.code == 0
    assert "plan init" in nothing.out
    run("init", "--yes")
    assert "plan solve scenario.yaml" in run().out
    for name in ("a", "b"):
        (empty / f".plan/{name}.plan.json").write_text("{}")
    os.utime(empty / ".plan/a.plan.json", (2e9, 2e9))
    found = run().out
    assert "2 plans here" in found
    assert "plan explain .plan/a.plan.json" in found  # the newest
    (empty / "compose.yaml").write_text("services: {}\n")
    run("init", "mine.yaml", "--yes")
    assert "2 scenarios here: mine.yaml, scenario.yaml" in run().out


def test_the_only_scenario_of_a_folder_need_not_be_named(run: Run, empty: Path) -> None:
    assert "hint: plan init" in run("solve").err
    run("init", "mine.yaml", "--yes")
    answer = run("solve")
    assert answer.code == 0
    assert answer.out.startswith("mine\n")
    run("init", "other.yaml", "--yes")
    assert run("solve").code == 2


def test_what_is_next_exists(run: Run, empty: Path) -> None:
    """Every command that is named is one, and those about a folder without anything run as they stand."""
    for line in re.findall(r"^  (plan [a-z].*?)   ", run().out, re.MULTILINE):
        if "init" not in line:
            assert run(*shlex.split(line)[1:]).code == 0, line


def test_every_preset_is_written_by_its_bare_name() -> None:
    assert [model_reference(name, "scenario.yaml") for name in list_presets()] == list(list_presets())
