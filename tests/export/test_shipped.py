"""Plans of the shipped scenarios, no layout fixed: each allocation is launched, and rows cover its kind of layout.

What is asked for by name (`mix_within_job`, `disaggregated`) may lie beyond both; then the plan says so.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.estimate.serving_constants import demanded, layout_kind
from planner.export import Launch, TrainingLaunch, launches_of, launching
from planner.validate.rows import shipped_training_rows
from tests.export.test_referrals import follow
from tests.shipped import NAMES, plan
from tests.tiers import cases
from tests.worlds import scenario

SPLITS = ("tp", "pp", "vpp", "cp", "ep")
UNLAUNCHED = {"mixed-job": "no program that plan export writes for runs it as planned"}  # asks for mix_within_job
UNCOVERED = {"disaggregated": "no row covers prompts and answers in pools of their own"}  # asks for disaggregated
PLANS = [name for name in NAMES if name != "infeasible"]


def launches(name: str, catalog: Catalog) -> tuple[dict[str, Any], list[Launch]]:
    document = plan(name)
    return document, launches_of(document, catalog, command="plan export FORMAT")  # type: ignore[arg-type]


def is_asked_for(document: dict[str, Any], key: str) -> bool:
    """Whether a workload of the scenario, defaults left out, has a key that is off by itself."""
    workloads = [*document["scenario"].get("training", ()), *document["scenario"].get("serving", ())]
    return any(one.get(key) not in (None, False, "false") for one in workloads)


def kind_of_job(splits: Any) -> tuple[str, ...]:
    """Which dimensions a job is split in beside its data."""
    return tuple(name for name in SPLITS if (getattr(splits, name) or 1) > 1)


@pytest.fixture(scope="module")
def covered() -> set[tuple[str, ...]]:
    """Kinds of layouts of the shipped rows of training."""
    return {kind_of_job(row) for row in shipped_training_rows()}


@pytest.mark.parametrize("name", PLANS)
def test_each_allocation_is_launched(name: str, catalog: Catalog) -> None:
    document, found = launches(name, catalog)
    left = [launch.stem for launch in found if not launching(launch)]
    assert bool(left) == (name in UNLAUNCHED), left
    if left:
        assert is_asked_for(document, "mix_within_job")
        assert any(UNLAUNCHED[name] in text for text in document["warnings"])
    assert found


@pytest.mark.parametrize("name", PLANS)
def test_rows_cover_each_kind_of_layout(name: str, catalog: Catalog, covered: set[tuple[str, ...]]) -> None:
    document, found = launches(name, catalog)
    jobs = [launch for launch in found if isinstance(launch, TrainingLaunch)]
    assert {kind_of_job(launch.layout) for launch in jobs} <= covered
    kinds = {kind for row in serving_rows(document) if (kind := serving_kind(row, catalog))}
    left = {kind for kind in kinds if not demanded(catalog).traits["layout"][kind].rows}
    assert left == ({"disaggregated"} if name in UNCOVERED else set())
    if left:
        assert is_asked_for(document, "disaggregated")
        assert any(UNCOVERED[name] in text for text in document["warnings"])


@pytest.mark.parametrize("name", PLANS)
def test_each_refusal_leads_to_files(name: str, catalog: Catalog) -> None:
    """Every format is asked for every allocation of today's plans, and what its refusal names is followed.

    Of allocations of one model on one kind of machine, split alike, `make test` asks for the first.
    """
    alike: dict[Any, list[Launch]] = {}
    for launch in launches(name, catalog)[1]:
        same = (launch.model.name, launch.machine.provider, launch.machine.shape_name, launch.layout)
        alike.setdefault(same, []).append(launch)
    for some in alike.values():
        for launch in some[: cases(1, len(some))]:
            assert bool(follow(launch)) == (name not in UNLAUNCHED)


def serving_rows(document: dict[str, Any]) -> list[Any]:
    return [row for one in document["workloads"] for row in one["allocations"] if "role" in row]


def serving_kind(row: Any, catalog: Catalog) -> str:
    """The kind of layout of a row, by its shape of the catalog."""
    layout, shape = row["layout"], catalog.shapes[row["shape"]]
    link = catalog.devices[row["device"]].scale_up
    fast = max(shape.devices, shape.scale_up_devices) if link is not None else 1
    pcie = 0.0 if link is None else float(link.pattern == "pcie")
    devices = layout["tp"] * layout["pp"] * layout["dp"]
    return layout_kind(devices, layout["pp"], fast, pcie, apart=row["role"] != "whole")


def test_a_model_that_nothing_launches_is_said_to_be_so() -> None:
    job = {"name": "neox", "model": "pythia-1.4b", "tokens": "20B", "deadline": "60 days"}
    document: Any = api.solve(scenario([job], hardware={"allow": ["tpu-v6e"]})).document
    (row,) = document["workloads"][0]["allocations"]
    assert row["software"] == []
    assert any("MaxText 0.2.5 ships no model of the shape of pythia-1.4b" in text for text in document["warnings"])


@pytest.mark.parametrize("model", ["llama-2-13b", "llama-3.1-70b", "mixtral-8x7b"])
def test_jobs_on_tpus_are_planned_in_layouts_that_maxtext_has(model: str) -> None:
    """Gradients alone shared out (ZeRO-2) cost a little less there, and no program of TPUs does that."""
    job = {"name": "train", "model": model, "tokens": "20B", "deadline": "40 days"}
    document: Any = api.solve(scenario([job], hardware={"allow": ["tpu-v6e", "tpu-v5p"]})).document
    assert {tuple(row["software"]) for row in document["workloads"][0]["allocations"]} == {("maxtext",)}
    asked = {**job, "sharding": "zero-2"}
    asked_for: Any = api.solve(scenario([asked], hardware={"allow": ["tpu-v6e", "tpu-v5p"]})).document
    assert not any(row["software"] for row in asked_for["workloads"][0]["allocations"])  # what is asked for is planned
    assert any("MaxText has no zero-2" in text for text in asked_for["warnings"])
