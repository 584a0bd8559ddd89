"""Plans for export: of the shipped scenarios and of a fleet of two kinds of replica (samples)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.export import Launch, launches_of

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "export" / "plans"  # kept as they were: what is launched does not hang on prices
TWO_KINDS = ROOT / "tests" / "export" / "samples" / "two-kinds.json"  # one for each range of lengths
DOZEN = ROOT / "tests" / "export" / "dozen.yaml"
Document = dict[str, Any]
# Layouts that use more of the formats than those which the plans choose with today's constants.
LAYOUTS: dict[tuple[str, str], dict[str, Any]] = {
    ("under-way", "pretrain-70b"): {
        **{"dp": 6, "tp": 2, "pp": 9, "cp": 2, "sharding": "zero-3"},
        **{"global_batch_sequences": 510, "micro_batches": 85},
    },
    ("fleet", "finetune-70b"): {"dp": 1, "tp": 4, "pp": 1, "cp": 2, "sharding": "zero-3"},
    ("fleet", "small-runs"): {"sharding": "zero-3"},
}
NODES = {"under-way": 27}  # of eight devices


def whole_plan(path: Path) -> Document:
    """A golden plan with what goldens leave out because it changes from run to run; without a proof it is feasible."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    document["provenance"] |= {"planner": "0.1.0", "solver": "HiGHS", "modelling": "PuLP"}
    document["provenance"]["catalog"]["sha256"] = "c" * 64
    if document["status"] == "optimal":
        document["status"] = "feasible"
    return {**document, "certificate": None, "sha256": "5" * 64, "scenario_file": f"scenarios/{path.stem}.yaml"}


@pytest.fixture(scope="session")
def plans() -> dict[str, Document]:
    """Whole plan documents by scenario; those of which only the money is kept are not among them."""
    found = {path.stem: path for path in [*sorted(GOLDEN.glob("*.json")), TWO_KINDS]}
    plans = {name: whole_plan(path) for name, path in found.items() if "workloads" in path.read_text(encoding="utf-8")}
    for (name, workload), cells in LAYOUTS.items():
        for one in plans[name]["workloads"]:
            if one["name"] == workload:
                row = one["allocations"][0]
                row["layout"] |= cells
                nodes = NODES.get(name)
                if nodes:
                    row["count"], row["devices"] = nodes, 8 * nodes
    return plans


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
def launches(plans: dict[str, Document], catalog: Catalog) -> Callable[..., list[Launch]]:
    """`launches("llama")`: its allocations; keyword arguments of `change` alter the document first."""

    def read(name: str, change: Callable[[Document], Any] | None = None) -> list[Launch]:
        document = copy.deepcopy(plans[name])
        if change is not None:
            change(document)
        return launches_of(document, catalog, command=f"plan export FORMAT {name}.plan.json")

    return read


@pytest.fixture(scope="session")
def dozen(catalog: Catalog) -> list[Launch]:
    """Jobs of all kinds that programs differ in, solved with today's constants (dozen.yaml)."""
    found = api.solve(api.load_scenario(DOZEN), catalog)
    return launches_of(found.document, catalog, command="plan export FORMAT dozen.plan.json")
