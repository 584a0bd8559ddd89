"""Commands that people are told to type: followed in the same folder, each asks the question that it was told of."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from planner.report.next_words import asking, asking_report, next_steps
from planner.report.text import wrap_command
from planner.scenario.shipped import name_here
from tests.cli.conftest import Run

OURS = """schema: catalog/v1
extends: default
offers: [{provider: aws, device: h100-sxm-80gb, price_model: on_demand, price_per_device: $1.10/h, as_of: 2026-11-20}]
"""
CHAT = """schema: plan/v1
name: chat
serving:
  - {name: chat, model: llama-3.1-8b, qpm: 600, input_tokens: 500, output_tokens: 200, slo: {ttft_p95: 1 s}}
"""
OPTIONS: dict[str, tuple[str, ...]] = {
    "hardware": ("--hardware", "ours"),
    "outside": ("--hardware", "../ours of others"),
    "frozen": ("--hardware", "ours.json"),
    "price": ("--hardware", "ours", "--price", "l4=$0.30/h"),
    "suspect": ("--allow-suspect",),
    "tie": ("--tie-tolerance", "0.05%"),
    "gap": ("--gap", "5%"),
    "set": ("--set", "serving.chat.slo={ttft_p95: 2 s}", "--hardware", "ours"),
    "others": ("--best", "2", "--within", "5%", "--simulate"),
}
OTHERS = ("decisions", "near_optimal")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    here = tmp_path / "here"
    for place in (here / "ours", tmp_path / "ours of others"):
        place.mkdir(parents=True)
        (place / "catalog.yaml").write_text(OURS, encoding="utf-8")
    (here / "chat.yaml").write_text(CHAT, encoding="utf-8")
    monkeypatch.chdir(here)
    assert run("catalog", "freeze", "--hardware", "ours", "--out", "ours.json").code == 0
    return here


def told(text: str) -> list[list[str]]:
    """The commands of a screen as a shell takes them that is given its lines."""
    joined = re.sub(r"\\\n\s*", "", text)
    found = re.findall(r"(?:^|: )\s*(plan (?:solve|explain|report|export|live) .*)$", joined, flags=re.MULTILINE)
    return [shlex.split(command)[1:] for command in found]


def question(plan: dict[str, Any]) -> dict[str, Any]:
    """What a plan was asked."""
    certificate, others = plan["certificate"], plan.get("others")
    return {
        "scenario": {**plan["scenario"], "limits": None},
        "catalog": plan["provenance"]["catalog"]["sha256"],
        "gap": plan["provenance"]["gap_asked"],
        "suspect": certificate and certificate["allow_suspect"],
        "ties": plan.get("ties", {}).get("tolerance"),
        "simulated": "simulation" in plan,
        "others": others and [one and one.get("asked", one.get("share")) for one in map(others.get, OTHERS)],
    }


@pytest.mark.parametrize("limits", [(), ("--set", "limits.budget=$300")], ids=["plan", "no plan"])
@pytest.mark.parametrize("asked", OPTIONS)
def test_each_told_command_asks_the_same_question(run: Run, folder: Path, asked: str, limits: tuple[str, ...]) -> None:
    answer = run("solve", "chat.yaml", *OPTIONS[asked], *limits)
    assert answer.code == (4 if limits else 0), answer.err
    plan = json.loads((folder / ".plan/chat.plan.json").read_text(encoding="utf-8"))
    commands = told(answer.out)
    verbs = [command[0] for command in commands]
    assert {"solve", "explain", "live"} <= set(verbs)
    assert ({"report", "export"} <= set(verbs)) == (not limits)
    for verb, *words in commands:
        if verb in ("solve", "live"):
            words = [word for word in words if word != "-v"]
            ties = {"ties": 1e-6} if verb == "solve" else {"gap": 0.0, "simulated": False, "others": None}
            again = run("solve", *words, "-o", "json")
            found = question(json.loads(again.out))
            changed = {key: found[key] for key in found if found[key] != question(plan)[key]}
            ways_out = limits and words[:-1] and words[-1].partition("=")[0] in ("serving.chat.qpm", "limits.budget")
            changed = changed if verb == "live" else {key: one for key, one in changed.items() if key != "scenario"}
            assert changed.items() <= ties.items() or ways_out, (verb, words, changed)
            assert found["catalog"] == question(plan)["catalog"]
            assert found["suspect"] == question(plan)["suspect"]
        else:
            done = run(verb, *words)
            assert done.code == 0, (verb, words, done.err)
            assert "not-proven" not in done.err


@pytest.mark.parametrize("limits", [(), ("--set", "limits.budget=$300")], ids=["plan", "no plan"])
def test_commands_of_a_scenario_that_reads_elsewhere_say_so(
    run: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory, limits: tuple[str, ...]
) -> None:
    """They left --allow-outside out: followed, `plan solve` was refused, and the plan was "not proven"."""
    model = tmp_path_factory.mktemp("elsewhere") / "config.json"
    shutil.copy(Path(__file__).parents[2] / "docs/generate/examples/config.json", model)
    (folder / "far.yaml").write_text(
        CHAT.replace("model: llama-3.1-8b", f"model: {{config: '{model}'}}"), encoding="utf-8"
    )
    answer = run("solve", "far.yaml", "--allow-outside", *limits)
    for verb, *words in told(answer.out):
        assert "--allow-outside" in words, (verb, words)
        if verb not in ("live", "export"):
            done = run(verb, *words)
            assert "unsafe-path" not in done.err
            assert "not-proven" not in done.err
    assert "--allow-outside" not in run("solve", "chat.yaml", *limits).out


def test_a_way_out_of_ones_own_catalog_comes_true(run: Run, folder: Path) -> None:
    """It was told without the catalog: followed, it cost another sum, of the shipped prices."""
    run("solve", "chat.yaml", "--hardware", "ours", "--set", "limits.budget=$300")
    answer = run("solve", "chat.yaml", "--hardware", "ours", "--set", "limits.budget=$300")
    way = next(command for command in told(answer.out) if command[-1].startswith("limits.budget="))
    promised = re.search(r"then (\$[0-9,]+)", answer.out)
    assert promised is not None
    assert run(*way, "-q").out.startswith(f"{promised[1]},")


def test_a_plan_file_is_held_against_the_catalog_that_was_named(run: Run, folder: Path) -> None:
    assert run("solve", "chat.yaml", "--hardware", "ours", "--out", "in.json").code == 0
    assert run("solve", "chat.yaml", "--hardware", "../ours of others", "--out", "out.json").code == 0
    assert run("verify", "in.json").code == 0
    assert run("explain", "in.json", "--why-not", "l40s").code == 0
    refused = run("verify", "out.json")  # what a plan names is not followed out of the working folder
    assert (refused.code, "error[other-catalog]" in refused.out) == (3, True)
    assert "--hardware '../ours of others'" in run("report", "out.json").err
    assert run("verify", "out.json", "--allow-outside").code == 0
    assert run("explain", "out.json", "--hardware", "../ours of others", "--why-not", "l40s").code == 0
    (folder / "ours/catalog.yaml").write_text(OURS.replace("$1.10", "$1.20"), encoding="utf-8")
    assert "--hardware DIR" in run("report", "in.json").err  # not the folder that was read, which is another by now
    (folder / "ours/catalog.yaml").unlink()
    (folder / "ours").rmdir()
    assert run("verify", "in.json").code == 3


def test_the_catalog_that_a_scenario_names_is_not_named_again(run: Run, folder: Path) -> None:
    (folder / "own.yaml").write_text(CHAT + "hardware: {catalog: ours}\n", encoding="utf-8")
    assert "--hardware" not in run("solve", "own.yaml").out
    assert "--hardware ours.json" in run("solve", "own.yaml", "--hardware", "ours.json").out


def test_a_page_says_what_makes_it_again(run: Run, folder: Path) -> None:
    run("solve", "chat.yaml", "--hardware", "ours", "--out", "before.json")
    for flags in (("--hardware", "ours", "--gap", "1%"), ("--hardware", "ours", "--previous", "before.json")):
        run("solve", "chat.yaml", *flags, "--set", "serving.chat.qpm=700", "--out", "p.json")
        plan = json.loads((folder / "p.json").read_text(encoding="utf-8"))
        page = html.unescape(run("report", "p.json", "-o", "html", "--out", "-").out)
        command = asking_report(plan, "-o", "html")
        assert command in page
        for part in command.split(" && "):
            assert run(*shlex.split(part)[1:]).code == 0
        if " && " in command:
            again = json.loads((folder / "again.plan.json").read_text(encoding="utf-8"))
            assert again["sha256"] == plan["sha256"]


def test_a_plan_to_stay_with_is_named_again(run: Run, folder: Path) -> None:
    run("solve", "chat.yaml", "--out", "before.json")
    flags = ("--set", "serving.chat.qpm=900", "--previous", "before.json", "--move-cost", "$12.34")
    run("solve", "chat.yaml", *flags, "--out", "p.json")
    plan = json.loads((folder / "p.json").read_text(encoding="utf-8"))
    again = run(*shlex.split(asking(plan))[1:], "-o", "json")
    assert json.loads(again.out)["sha256"] == plan["sha256"]


def test_a_frontier_without_a_point_tells_the_question_whole(run: Run, folder: Path) -> None:
    answer = run("frontier", "chat.yaml", "--over", "carbon", "--hardware", "ours", "--set", "limits.budget=$40")
    assert answer.code == 4
    ((verb, *words),) = told(answer.out)
    again = run(verb, *words, "-o", "json")
    assert again.code == 4
    plan = json.loads(again.out)
    assert plan["provenance"]["catalog"]["hardware"] == "ours"
    assert plan["scenario"]["limits"]["budget"] == "$40"


def test_a_scenario_that_ships_keeps_its_mark_where_a_file_has_its_name(folder: Path) -> None:
    """Told as "llama", it was the file of the folder that was solved."""
    assert name_here("shipped:llama") == "llama"
    assert name_here("mine.yaml") == "mine.yaml"
    (folder / "llama.yaml").write_text(CHAT, encoding="utf-8")
    assert name_here("shipped:llama") == "shipped:llama"


def test_files_with_blanks_are_quoted() -> None:
    catalog = {"name": "shipped", "as_of": "2026-11-21", "sha256": "0"}
    plan: Any = {"provenance": {"catalog": catalog}}
    steps = next_steps(plan, "my plan.json", "vllm", planned=True)
    assert [shlex.split(step)[-1] for step in steps[::2]] == ["my plan.json"] * 2
    assert steps[1] == "plan report 'my plan.json' -o html"


@pytest.mark.parametrize("width", range(40, 130, 3))
def test_a_command_that_is_broken_into_lines_is_one_command(width: int) -> None:
    """Words longer than a line ended in the middle, and where they were broken within quotes they were other words."""
    command = """plan solve 'a b.yaml' --set 'limits.budget=$1,453' --price 'h100=$9/h' --set "x=['y z']" --gap 5% -v"""
    command += f" --hardware {40 * 'long/'} --previous " + shlex.quote(20 * "a  folder's ")
    for head in ("", "16 assumptions; all of it: "):
        lines = wrap_command(head + command, width, indent="  ")
        assert max(map(len, lines)) <= width
        joined = "\n".join(lines).replace("\\\n", "")
        assert shlex.split(joined[joined.index("plan solve") :]) == shlex.split(command)
    assert wrap_command(command, 999) == [command]
