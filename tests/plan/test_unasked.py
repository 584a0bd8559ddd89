"""Plans that rent what nobody asked for, without a certificate that would give them away: the rows alone do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.plan.document import digest_of
from tests.verified import errors
from tests.worlds import catalog, device, job, offer, scenario, shape

Document = dict[str, Any]


def moved(asked: Any, settings: dict[str, Any], *known: Catalog) -> list[str]:
    """What is found in the plan of one scenario that is told of another, with no certificate, under a new seal."""
    plan = copy.deepcopy(dict(api.solve(asked, *known).document))
    for name, value in settings.items():
        plan["scenario"].setdefault("hardware", {})[name] = value
    plan |= {"certificate": None, "status": "feasible"}
    plan["summary"] |= {"bound_microusd": None, "gap": None}
    del plan["sha256"]
    return [str(problem) for problem in errors({**plan, "sha256": digest_of(plan)}, *known)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"exclude": ["north"]}, "the scenario does not rent from north"),
        ({"providers": ["south"]}, "the scenario does not rent from north"),
    ],
    ids=["left out", "not named"],
)
def test_a_row_of_a_seller_that_is_not_asked_for_is_found(settings: dict[str, Any], said: str) -> None:
    """`plan verify` held rows to devices, regions and terms, and called a plan of an excluded provider ok."""
    known = catalog([device()], [shape(), shape("south/one")], [offer(), offer("south/one", 2.0)])
    assert not [line for line in moved(scenario([job()]), {}, known) if "not-allowed" in line]
    assert any(f"[not-allowed] job: {said}" in line for line in moved(scenario([job()]), settings, known))


def test_a_marketplace_counts_where_it_is_named_or_alone() -> None:
    """Of the catalog that ships: a 4090 is rented on a marketplace where nobody else sells it, an H100 is not."""
    tune = {"name": "tune", "model": "llama-3.1-8b", "tokens": "10M", "deadline": "9 days", "sequence_length": 2048,
            "lora": {"rank": 16}}  # fmt: skip
    asked = {"schema": "plan/v1", "name": "x", "training": [tune],
             "hardware": {"allow": ["h100-*"], "providers": ["vast"]}}  # fmt: skip
    assert not [line for line in moved(asked, {}) if "not-allowed" in line]
    found = moved(asked, {"providers": ["*"]})
    assert any("vast is a marketplace, which nobody asked for" in line for line in found)
    found = moved(asked, {"kinds": ["hyperscaler"]})
    assert any("vast is of none of the kinds that are allowed" in line for line in found)
    alone = {"providers": ["*"], "exclude": [name for name in api.load_catalog().providers if name != "vast"]}
    assert not [line for line in moved(asked, alone) if "not-allowed" in line]


def test_a_row_on_which_nothing_launches_is_found_where_something_else_runs_it() -> None:
    """Decision 0058 was a rule of the search alone: QLoRA on TPUs that nobody named passed `plan verify`."""
    tune = {"name": "tune", "model": "llama-3.1-70b", "tokens": "200M", "lora": {"rank": 16, "base": "nf4"},
            "deadline": "2 days", "sequence_length": 4096}  # fmt: skip
    asked = {"schema": "plan/v1", "name": "x", "training": [tune], "hardware": {"allow": ["tpu-*"]}}
    assert not [line for line in moved(asked, {}) if "not-allowed" in line]
    found = moved(asked, {"allow": ["*"]})
    assert any("[not-allowed] tune: nothing that plan export writes for runs it on gcp:" in line for line in found)
    chat = {"name": "chat", "model": "qwen2.5-1.5b", "qpm": 60, "input_tokens": 300, "output_tokens": 20}
    shares = {"schema": "plan/v1", "name": "x", "serving": [chat],
              "hardware": {"providers": "aws", "regions": "us-east-*", "allow": "l4-24gb"}}  # fmt: skip
    assert not [line for line in moved(shares, {}) if "not-allowed" in line]
    assert any("nothing that plan export writes for runs it" in line for line in moved(shares, {"allow": ["*"]}))
