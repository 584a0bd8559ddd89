"""The largest shipped scenario in every format; its plan is kept here, cut to what exports read.

To make it anew: solve scenarios/portfolio.yaml and keep of each allocation the keys that samples/portfolio.json has.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiClient

from planner.catalog.model import Catalog
from planner.export import FORMATS, Launch, TrainingLaunch, export, launches_of
from tests.export.scripts import syntax_error
from tests.export.shells import yaml_documents
from tests.export.test_kubernetes import accept, devices_of
from tests.export.test_skypilot import Validators, schemas, validate  # noqa: F401 - a fixture

SAMPLE = Path(__file__).parent / "samples" / "portfolio.json"


@pytest.fixture(scope="module")
def portfolio(catalog: Catalog) -> list[Launch]:
    return launches_of(json.loads(SAMPLE.read_text(encoding="utf-8")), catalog, command="plan export")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_launches_what_it_can(form: str, portfolio: list[Launch]) -> None:
    made = export(form, portfolio)
    told = {refusal.stem for refusal in made.refusals}
    launched = {launch.stem for launch in portfolio if any(file.name.startswith(launch.stem) for file in made.files)}
    assert launched | told == {launch.stem for launch in portfolio}
    scripts = [file.text for file in made.files if file.name.endswith((".sh", ".sbatch"))]
    assert not any(syntax_error(text) for text in scripts)
    for file in made.files:
        if file.name.endswith(".json"):
            json.loads(file.text)
        elif file.name.endswith(".toml"):
            tomllib.loads(file.text)


def test_its_tasks_and_manifests_are_valid(portfolio: list[Launch], schemas: Validators) -> None:  # noqa: F811
    client, tasks, manifests = ApiClient(), export("skypilot", portfolio), export("kubernetes", portfolio)
    assert len(tasks.refusals) == len(manifests.refusals) == 0
    by_name: dict[str, Any] = {file.name: yaml_documents(file.text) for file in (*tasks.files, *manifests.files)
                               if file.name.endswith(".yaml")}  # fmt: skip
    for launch in portfolio:
        (task,), documents = by_name[f"{launch.stem}.sky.yaml"], by_name[f"{launch.stem}.k8s.yaml"]
        validate(task, schemas)
        each = launch.jobs if isinstance(launch, TrainingLaunch) else task["service"]["replicas"]
        assert task["num_nodes"] * each == launch.machine.nodes
        for document in documents:
            accept(document, client)
        assert devices_of(documents, launch) == launch.machine.devices
    names = [document["metadata"]["name"] for found in by_name.values() for document in found if "kind" in document]
    kinds = [document["kind"] for found in by_name.values() for document in found if "kind" in document]
    budgets = kinds.count("PodDisruptionBudget")
    assert len({*zip(kinds, names)}) >= len(kinds) - budgets  # only a fleet's budget stands in several files
