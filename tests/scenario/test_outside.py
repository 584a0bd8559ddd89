"""Files that a scenario or a plan names stay in its folder, links followed, unless more is allowed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import files
from planner.catalog.own_prices import OwnPrices
from planner.errors import InputError
from planner.plan.plan_files import catalog_of_plan, read_plan, scenario_of
from planner.scenario.load import load_scenario, parse_scenario
from tests.export.conftest import GOLDEN, whole_plan

CONFIG = json.dumps({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100})
TRACE = (
    "timestamp,input_tokens,output_tokens\n"
    "2026-11-02T00:05:47Z,10,10\n2026-11-02T00:15:47Z,10,10\n2026-11-02T02:05:47Z,10,10\n"
)
FLEET = "schema: plan/v1\nname: x\nserving:\n  - {name: f, model: gpt2, peak_factor: 1, %s: PATH}\n"
KEYS = {
    "model.config": "schema: plan/v1\nname: x\ntraining:\n"
    "  - {name: t, model: {config: PATH}, tokens: 1B, deadline: 5 days}\n",
    "hardware.catalog": "schema: plan/v1\nname: x\nhardware: {catalog: PATH}\ntraining:\n"
    "  - {name: t, model: gpt2, tokens: 1B, deadline: 5 days}\n",
    "trace": FLEET % "trace",
    "histogram": FLEET % "qpm: 5, histogram",
    "profile": FLEET % "qpm: 5, input_tokens: 5, output_tokens: 5, profile",
    "load_profile": FLEET % "qpm: 5, input_tokens: 5, output_tokens: 5, load_profile",
}
WAYS = ("climbing", "absolute", "link", "link to a folder", "link to a link", "circle", "device", "home")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder inside another one that holds what nobody here may name."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    for folder in (own, other):
        (folder / "config.json").write_text(CONFIG)
        (folder / "trace.csv").write_text(TRACE)
    monkeypatch.chdir(own)
    return own


def leading_out(way: str, here: Path) -> str:
    """A path by which a file beside the working folder is named."""
    secret = here.parent / "other" / "trace.csv"
    if way == "link":
        (here / "link").symlink_to(secret)
    elif way == "link to a folder":
        (here / "down").symlink_to(secret.parent)
    elif way == "link to a link":
        (here / "first").symlink_to(here / "second")
        (here / "second").symlink_to(secret)
    elif way == "circle":
        (here / "circle").symlink_to(here / "circle")
    return {
        "climbing": "../other/trace.csv",
        "absolute": str(secret),
        "link": "link",
        "link to a folder": "down/trace.csv",
        "link to a link": "first",
        "circle": "circle",
        "device": "/dev/zero",
        "home": "sub/../../other/trace.csv",
    }[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", KEYS)
def test_a_scenario_names_nothing_outside_of_its_folder(key: str, way: str, here: Path) -> None:
    text = KEYS[key].replace("PATH", leading_out(way, here))
    (here / "scenario.yaml").write_text(text)
    for read in (lambda: load_scenario("scenario.yaml"), lambda: parse_scenario(text, file="scenario.yaml")):
        with pytest.raises(InputError) as caught:
            read()
        problem = next(one for one in caught.value.problems if one.reference == "unsafe-path")
        assert problem.places
        assert "--allow-outside" in problem.hint


@pytest.mark.parametrize("path", ["trace.csv", "sub/../trace.csv", "inner"])
def test_what_lies_inside_is_read(path: str, here: Path) -> None:
    (here / "inner").symlink_to(here / "trace.csv")
    (here / "sub").mkdir()
    (here / "scenario.yaml").write_text(KEYS["trace"].replace("PATH", path))
    assert load_scenario("scenario.yaml").serving[0].traffic.buckets


def test_a_pipe_does_not_block(here: Path) -> None:
    os.mkfifo(here / "pipe")
    (here / "scenario.yaml").write_text(KEYS["trace"].replace("PATH", "pipe"))
    with pytest.raises(InputError, match="not a regular file"):
        load_scenario("scenario.yaml")


def test_it_may_be_allowed(here: Path) -> None:
    (here / "scenario.yaml").write_text(KEYS["trace"].replace("PATH", "../other/trace.csv"))
    with files.outside_allowed():
        assert load_scenario("scenario.yaml").serving
    with files.outside_allowed(), files.outside_allowed(False):  # what was allowed stays so further in
        assert load_scenario("scenario.yaml").serving
    with pytest.raises(InputError):
        load_scenario("scenario.yaml")


def test_the_folder_of_a_scenario_may_be_anywhere(here: Path) -> None:
    """Who names the scenario on the command line trusts it; what it names lies beside it."""
    (here.parent / "other" / "scenario.yaml").write_text(KEYS["trace"].replace("PATH", "trace.csv"))
    assert load_scenario("../other/scenario.yaml").serving


def plan(here: Path, **changes: Any) -> dict[str, Any]:
    text = KEYS["trace"].replace("PATH", "trace.csv")
    (here / "scenario.yaml").write_text(text)
    (here.parent / "other" / "scenario.yaml").write_text(text)
    resolved = load_scenario("scenario.yaml").resolved
    return {"scenario": resolved, "scenario_file": "scenario.yaml", "case": None, "provenance": {}} | changes


def test_a_plan_names_no_scenario_outside_of_the_working_folder(here: Path) -> None:
    assert scenario_of(plan(here)) is not None
    assert scenario_of(plan(here, scenario_file=str(here / "scenario.yaml"))) is not None
    for file in ("../other/scenario.yaml", str(here.parent / "other" / "scenario.yaml"), "/dev/zero", "a\0b"):
        foreign = plan(here, scenario_file=file)
        assert scenario_of(foreign) is None
    with files.outside_allowed():
        assert scenario_of(plan(here, scenario_file="../other/scenario.yaml")) is not None


@pytest.mark.parametrize("file", ["../other/scenario.yaml", "/etc/x.yaml", "down/x.yaml", "/dev/zero"])
def test_a_plan_has_no_file_read_of_another_folder(file: str, here: Path) -> None:
    """The copy of a scenario names files from where the scenario was, and that a plan may say as it likes."""
    (here / "down").symlink_to(here.parent / "other")
    asked = plan(here, scenario_file=file)
    foreign = whole_plan(GOLDEN / "gpt2-xl.json") | {key: asked[key] for key in ("scenario", "scenario_file")}
    (here / "p.json").write_text(json.dumps(foreign))
    with pytest.raises(InputError) as caught:
        read_plan("p.json")
    assert caught.value.problems[0].reference == "unsafe-path"
    (here / "p.json").write_text(json.dumps(foreign | {"scenario": {"include": "base.yaml"}}))
    with pytest.raises(InputError, match="outside"):
        read_plan("p.json")
    (here / "p.json").write_text(json.dumps(foreign | {"scenario": {"serving": [{"trace": None}]}}))
    assert read_plan("p.json")["scenario_file"] == file
    (here / "p.json").write_text(json.dumps(foreign | {"scenario_file": "shipped:gpt2-xl"}))
    assert read_plan("p.json")


@pytest.mark.parametrize("file", ["../other/prices.csv", "/etc/passwd", "/dev/zero"])
def test_a_plan_names_no_prices_outside_of_the_working_folder(file: str, here: Path) -> None:
    document = plan(here, provenance={"catalog": {"own_prices": [f"--prices {file}"]}})
    with pytest.raises(InputError) as caught:
        catalog_of_plan(document)
    assert caught.value.problems[0].reference == "unsafe-path"
    assert not OwnPrices.from_flags([]).files


def test_the_command_line_asks_for_it(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from planner.cli.main import main

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["plan", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    call: Callable[..., int] = run
    (here / "scenario.yaml").write_text(KEYS["trace"].replace("PATH", "../other/trace.csv"))
    assert call("solve", "scenario.yaml") == 3
    assert "hint: move it there, or allow it: --allow-outside" in capsys.readouterr().err
    assert call("candidates", "scenario.yaml", "--allow-outside") == 0
