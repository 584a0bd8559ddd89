"""Every command shows two examples in its help, and every example runs."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from planner.live.desk import Desk
from planner.report.text import cells
from tests import shipped
from tests.cli.conftest import Run, without_price_age
from tests.docs.test_inline_commands import mistake

pytestmark = pytest.mark.usefixtures("answered_once", "brief")

COMMANDS = [
    ("init",), ("help",),
    ("solve",), ("explain",), ("report",), ("export",),
    ("frontier",), ("sweep",), ("reserve",), ("candidates",), ("memory",), ("traffic",), ("read",), ("verify",),
    ("schema",), ("live",),
    ("catalog", "list"), ("catalog", "show"), ("catalog", "check"), ("catalog", "diff"), ("catalog", "freeze"),
    ("compare",), ("scenarios",), ("catalog", "refresh"),
    ("catalog", "import", "skypilot"), ("catalog", "import", "gpuhunt"), ("models", "list"), ("models", "show"),
    ("validate", "training"), ("validate", "serving"), ("validate", "totals"),
    ("calibrate", "training"), ("calibrate", "serving"),
]  # fmt: skip


def examples(run: Run, command: tuple[str, ...]) -> list[str]:
    answer = run(*command, "--help")
    assert answer.code == 0
    return re.findall(r"^ {4}(plan .*)$", answer.out.split("Examples:")[1], flags=re.MULTILINE)


def test_no_command_is_forgotten() -> None:
    from planner.cli import calibrate, catalog, facts, validate
    from planner.cli.main import ROOMS, app_of

    groups = {"catalog": catalog.app, "models": facts.models, "validate": validate.app, "calibrate": calibrate.app}
    known = {(entry.name,) for entry in app_of(*ROOMS).registered_commands}
    known |= {(name, entry.name) for name, group in groups.items() for entry in group.registered_commands}
    known |= {("catalog", "import", entry.name) for entry in catalog.imports.registered_commands}
    assert known == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_two_examples(run: Run, command: tuple[str, ...]) -> None:
    shown = examples(run, command)
    assert len(shown) == 2
    for example in shown:
        assert shlex.split(example)[1 : 1 + len(command)] == list(command)
        assert mistake(example) == ""


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that the examples of verify and explain speak of."""
    path = tmp_path_factory.mktemp("plan") / "llama.plan.json"
    path.write_text(shipped.plan_text("llama"), encoding="utf-8")
    return path


# of two that take seconds the second, in the long tier
DEAR = (("candidates",), ("compare",), ("catalog", "diff"), ("reserve",))


@pytest.mark.parametrize(
    ("command", "number"),
    [
        pytest.param(command, number, marks=pytest.mark.campaign if number and command in DEAR else ())
        for command in COMMANDS
        for number in (0, 1)
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_example_runs(
    run: Run, here: Path, plan_file: Path, command: tuple[str, ...], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / ".plan").mkdir()
    (here / ".plan/llama.plan.json").write_bytes(plan_file.read_bytes())
    _price_lists(here)
    if command == ("live",):
        pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[live]'")
        monkeypatch.setattr(Desk, "run", lambda self: None)  # as if it was ended at once
    answer = run(*shlex.split(examples(run, command)[number])[1:])
    assert answer.code == 0, answer.err
    assert answer.out or "--out" in examples(run, command)[number]


def _price_lists(here: Path) -> None:
    """Two lists of other tools, and catalogs to hold against each other."""
    (here / "catalogs/v8/lambda").mkdir(parents=True)
    head = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region"
    row = "gpu_1x_a10,A10,1,1.29,,us-east-1"
    (here / "catalogs/v8/lambda/vms.csv").write_text(f"{head}\n{row}\n", encoding="utf-8")
    (here / "catalog").mkdir()
    head = "instance_name,location,price,gpu_count,gpu_name,spot"
    (here / "catalog/lambdalabs.csv").write_text(f"{head}\ngpu_1x_a10,us-east-1,1.29,1,A10,False\n", encoding="utf-8")
    item = {"skuName": "ND96isrH100v5", "region": "eastus", "pricePerHour": 91.0, "currency": "EUR"}
    (here / "azure.json").write_text(json.dumps([item]), encoding="utf-8")
    for name in ("hardware", "my-hardware"):
        shutil.copytree(Path(__file__).parents[2] / "hardware", here / name)


PRINTING = [
    ("solve", "scenarios/gpt2-xl.yaml"),
    ("solve", "scenarios/infeasible.yaml"),
    ("explain", ".plan/llama.plan.json"),
    ("explain", ".plan/llama.plan.json", "--rejected"),
    ("explain", "scenarios/infeasible.yaml"),
    ("report", ".plan/llama.plan.json"),
    ("report", "scenarios/infeasible.yaml"),
    ("frontier", "scenarios/gpt2-xl.yaml", "--over", "budget"),
    ("reserve", "scenarios/gpt2-xl.yaml", "--term", "commitment_1y", "--no-otherwise"),
    ("compare", "scenarios/gpt2-xl.yaml", "--set", "training.gpt2-xl.deadline=5 days"),
    ("candidates", "scenarios/gpt2-xl.yaml"),
    ("memory", "mixtral-8x7b", "--per-layer"),
    ("memory", "mixtral-8x7b", "--serve", "--per-layer"),
    ("traffic", "scenarios/requests.csv"),
    ("verify", ".plan/llama.plan.json"),
    ("catalog", "list", "--device", "tpu-*"),
    ("catalog", "show", "h100-sxm-80gb"),
    ("catalog", "check"),
    ("catalog", "freeze"),
    ("models", "list"),
    ("models", "show", "mixtral-8x7b"),
    ("validate", "training", "--family", "V100"),
    ("validate", "serving", "--engine", "vllm"),
    ("validate", "totals"),
    ("calibrate", "training", "--family", "TPU-v4"),
    ("calibrate", "serving", "--engine", "vllm-tpu"),
]


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_every_command_prints_every_format(
    run: Run, here: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], form: str
) -> None:
    (here / ".plan").mkdir()
    (here / ".plan/llama.plan.json").write_bytes(plan_file.read_bytes())
    monkeypatch.setenv("COLUMNS", "80")
    answer = run(*arguments, "-o", form)
    assert answer.code == (4 if "scenarios/infeasible.yaml" in arguments else 0), answer.err
    assert without_price_age(answer.err) == ""
    if form == "json":
        json.loads(answer.out, parse_constant=pytest.fail)
    elif form == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(answer.out))}
        assert len(widths) == 1
    elif form == "table":
        assert max(map(cells, answer.out.splitlines())) <= 80 or arguments[:2] == ("catalog", "check")
    assert answer.out.endswith("\n")


def test_a_tampered_plan_is_caught(run: Run, here: Path, plan_file: Path) -> None:
    document = json.loads(plan_file.read_text(encoding="utf-8"))
    document["workloads"][0]["allocations"][0]["count"] -= 1
    (here / "p.json").write_text(json.dumps(document), encoding="utf-8")
    answer = run("verify", "p.json")
    assert answer.code == 3
    assert "error[" in answer.out
