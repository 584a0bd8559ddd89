"""Offers on which nothing that is exported runs: nobody rents them unasked."""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from tests.verified import errors

CLOUDS = {"providers": ["aws", "gcp", "azure"]}


def adapters(**hardware: Any) -> dict[str, Any]:
    """QLoRA of a 70B, which four chips of a TPU v6e would do for less than anything else."""
    job = {"name": "tune", "model": "llama-3.1-70b", "tokens": "200M", "lora": {"rank": 16, "base": "nf4"},
           "deadline": "2 days", "sequence_length": 4096}  # fmt: skip
    return {"schema": "plan/v1", "name": "x", "horizon": "1 month", "training": [job], "hardware": CLOUDS | hardware}


def small(**hardware: Any) -> dict[str, Any]:
    """A model that a quarter of an L4 holds."""
    fleet = {"name": "chat", "model": "qwen2.5-1.5b", "qpm": 60, "input_tokens": 300, "output_tokens": 20}
    aws = {"providers": "aws", "regions": "us-east-*", **hardware}
    return {"schema": "plan/v1", "name": "x", "horizon": "1 month", "serving": [fleet], "hardware": aws}


def device_of(plan: api.Plan) -> str:
    ((row,),) = (workload["allocations"] for workload in plan.document["workloads"])
    return str(row["device"])


def test_adapters_are_not_trained_on_tpus_unasked() -> None:
    session = api.session(adapters())
    plan = session.solve()
    assert not device_of(plan).startswith("tpu-")
    assert errors(plan.document) == []
    (told,) = [line for line in plan.document["assumed"] if "runs it on" in line]
    assert "tune: nothing that plan export writes for runs it on tpu-" in told
    (entry,) = session.why_not("tpu-v6e")
    assert (entry["unlaunched"], entry["state"]) == (True, "cheaper")
    (chosen,) = session.why_not(device_of(plan))
    assert "unlaunched" not in chosen


@pytest.mark.parametrize(
    "more",
    [{"allow": ["tpu-v6e", "h100-*"]}, {"allow": "tpu-*"}, {"allow": ["*", "tpu-v6e"]}],
    ids=["named", "nothing else", "beside all"],
)
def test_where_they_are_asked_for_they_count(more: dict[str, Any]) -> None:
    plan = api.solve(adapters(**more))
    assert device_of(plan).startswith("tpu-")
    assert any("no program that plan export writes for runs it" in line for line in plan.document["warnings"])


def test_no_fleet_stands_on_a_share_of_a_device_unasked() -> None:
    shapes = api.load_catalog().shapes
    plan, asked = api.solve(small()), api.solve(small(allow="l4-24gb"))
    kinds = [shapes[one.document["workloads"][0]["allocations"][0]["shape"]].kind for one in (plan, asked)]
    assert kinds[0] != "share"
    assert kinds[1] == "share"
    assert any("runs it on shares of devices" in line for line in plan.document["assumed"])
