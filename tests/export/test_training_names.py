"""200 hostile names through every format of training: nothing of them becomes a word, a line, a key or a table."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.model import Catalog
from planner.export import Launch, TrainingLaunch, export, launches_of
from planner.export.file_text import dns_label
from planner.report.escape import file_stem
from tests.export.hostile import HOSTILE, PIECES, hostile
from tests.export.scripts import torchrun_words
from tests.tiers import cases

NAMES = HOSTILE[: cases(len(PIECES), 200)]

TRAINING = ("torchrun", "torchtitan", "deepspeed", "slurm")
Read = Callable[..., list[Launch]]


@pytest.fixture
def job(launches: Read) -> TrainingLaunch:
    launch = launches("llama")[0]
    assert isinstance(launch, TrainingLaunch)
    return launch


def active(text: str) -> list[str]:
    """Lines that are no comments: what a shell, Slurm or a TOML reader acts on."""
    return [line for line in text.splitlines() if not line.startswith("#") or line.startswith(("#SBATCH", "#!"))]


@pytest.mark.parametrize("form", ["torchrun", "slurm"])
def test_scripts_act_as_those_of_a_plain_name(job: TrainingLaunch, form: str) -> None:
    for name in NAMES:
        launch = hostile(job, name)
        plain = replace(job, stem=launch.stem, model=replace(job.model, name="plain"))
        (file,), (wanted,) = export(form, [launch]).files, export(form, [plain]).files
        assert active(file.text) == active(wanted.text), name
        assert file.text.count("\n") == wanted.text.count("\n"), name
        assert Path(file.name).name == file.name


def test_a_shell_finds_the_same_words(job: TrainingLaunch, tmp_path: Path) -> None:
    scripts = [export("torchrun", [hostile(job, name)]).files[0].text for name in NAMES]
    plain = torchrun_words([export("torchrun", [job]).files[0].text], tmp_path)[0]
    at = plain.index("--rdzv-id") + 1
    for name, words in zip(NAMES, torchrun_words(scripts, tmp_path), strict=True):
        assert words == [*plain[:at], file_stem(name).lower(), *plain[at + 1 :]], name


def test_documents_hold_names_as_text(job: TrainingLaunch) -> None:
    plain = {file.name: file.text for file in export("torchtitan", [job]).files + export("deepspeed", [job]).files}
    toml, ds = tomllib.loads(plain["pretrain-8b.torchtitan.toml"]), json.loads(plain["pretrain-8b.deepspeed.json"])
    for name in NAMES:
        files = export("torchtitan", [hostile(job, name)]).files + export("deepspeed", [hostile(job, name)]).files
        texts = {file.name.split(".torchtitan.")[-1].split(".deepspeed.")[-1]: file.text for file in files}
        text = name.encode("utf-8", "replace").decode("utf-8")
        found = tomllib.loads(texts["toml"])
        assert found.pop("job") == {"description": f"{text} of plan {text}"}
        assert found == {key: value for key, value in toml.items() if key != "job"}
        document = json.loads(texts["json"])
        assert all(isinstance(line, str) for line in document.pop("_comment"))
        assert document == {key: value for key, value in ds.items() if key != "_comment"}


def test_hostile_plan_documents(plans: dict[str, Any], catalog: Catalog) -> None:
    """The same names where a plan file holds them; files keep their folder, and no two share a name."""
    for name in NAMES:
        document = json.loads(json.dumps(plans["llama"]))
        document.update(name=name, title=name, scenario_file=name.replace("/", "_"))
        row = document["workloads"][0]["allocations"][0]
        row.update(offer=name, provider=name, region=name, zone=name, shape=name, device=name)
        found = [
            launch for launch in launches_of(document, catalog, command=name) if isinstance(launch, TrainingLaunch)
        ]
        assert found[0].machine.shape_kind == ""
        files = [
            file for form in ("torchrun", "torchtitan", "deepspeed", "slurm") for file in export(form, found).files
        ]
        assert not any("\n" + name in file.text for file in files if name.startswith(("$", "`", "rm")))
        assert len({file.name for file in files}) == len(files)


def test_stems_are_safe_and_differ(plans: dict[str, Any], catalog: Catalog) -> None:
    names = ["a/b", "a b", "A-B", "..", "", "a-b-1", "CON", "é", "😀"]
    document = json.loads(json.dumps(plans["llama"]))
    workload, entry = document["workloads"][0], document["scenario"]["training"][0]
    document["workloads"] = [{**workload, "name": f"{name}"} for name in names]
    document["scenario"]["training"] = [{**entry, "name": f"n{number}"} for number in range(len(names))]
    stems = _stems_of(document)
    assert len(set(stems)) == len(names)
    assert all(stem and "/" not in stem and not stem.startswith(".") for stem in stems)
    assert all(dns_label(stem) for stem in stems)


def _stems_of(document: dict[str, Any]) -> list[str]:
    from planner.export.from_plan import _stems

    return _stems([workload["name"] for workload in document["workloads"]])
