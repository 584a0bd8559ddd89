"""LoRA, offloading and compression: they act, they are refused where they could not, hosts must hold what is moved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.estimate.resolve import HOST_MEMORY_SHARE
from planner.plan.document import digest_of
from planner.scenario.schema import Scenario
from tests.verified import errors
from tests.worlds import GIB, catalog, device, job, scenario, shape

Document = dict[str, Any]


def world(host_gib: int | None = 2048) -> Catalog:
    host = None if host_gib is None else host_gib * GIB
    return catalog(shapes=[shape("north/eight", devices=8, host_memory_bytes=host)])


FACTS = {"model": "llama-3.1-8b", "tokens": "200M", "deadline": "60 days", "sequence_length": 4096,
         "global_batch": "64 sequences", "sharding": ["zero-1", "zero-3"], "recompute": ["none", "full"],
         "failures": "none"}  # fmt: skip


def asked(**changes: Any) -> Scenario:
    return scenario([job(**{**FACTS, **changes})])


def solved(plan: Scenario, hardware: Catalog) -> Document:
    document: Document = json.loads(api.solve(plan, hardware).to_json())
    return document


def row(plan: Scenario, hardware: Catalog | None = None) -> Document:
    found: Document = solved(plan, hardware or world())["workloads"][0]["allocations"][0]
    return found


def test_adapters_take_less_time_memory_and_storage() -> None:
    balanced = catalog([device(memory_bandwidth_bytes_per_s=8e12)], [shape("north/eight", devices=8)])
    full, lora = row(asked(), balanced), row(asked(lora={"rank": 16}), balanced)
    assert lora["hours"] * lora["devices"] < full["hours"] * full["devices"]
    assert lora["memory"]["terms_bytes"]["optimizer"] < 0.05 * full["memory"]["terms_bytes"]["optimizer"]


def test_a_quantised_base_takes_less_memory() -> None:
    weights = [row(asked(lora={"rank": 16, "base": base}, sharding="none"))["memory"]["terms_bytes"]["weights"]
               for base in ("bf16", "nf4")]  # fmt: skip
    assert weights[1] < 0.4 * weights[0]


def test_an_offloaded_optimizer_leaves_the_device() -> None:
    assert row(asked(offload="optimizer"))["memory"]["terms_bytes"]["optimizer"] == 0.0


def test_hosts_must_hold_what_is_offloaded() -> None:
    """12 bytes of master weights and moments of 8e9 parameters are 96 GB: 128 GB hold them, 8 GB on 8 hosts do not."""
    assert solved(asked(offload="optimizer"), world(128))["status"] == "optimal"
    few = scenario([job(**{**FACTS, "offload": "optimizer"})], limits={"max_devices": 64})
    refused = solved(few, world(8))
    assert refused["status"] == "infeasible"
    assert "host-memory" in {reason["reason"] for reason in refused["rejected"]["job"]["reasons"]}
    assert HOST_MEMORY_SHARE < 1


def test_an_unknown_host_holds_nothing() -> None:
    refused = solved(asked(offload="optimizer"), world(None))
    reasons = {reason["reason"]: reason["nearest"] for reason in refused["rejected"]["job"]["reasons"]}
    assert "north/eight" in reasons["host-memory-unknown"]
    assert solved(asked(), world(None))["status"] == "optimal"


def test_the_verifier_asks_the_hosts_too() -> None:
    document = solved(asked(offload="optimizer"), world(128))
    small = world(8)
    assert "does-not-fit" in {problem.reference for problem in api.verify(document, small)}
    document["scenario"]["training"][0].pop("offload")
    document["sha256"] = digest_of(document)
    assert errors(document, world(128))


def test_compressed_gradients_never_take_longer() -> None:
    hours = [row(asked(gradient_compression=factor, sharding="none", lora={"rank": 64}))["hours"] for factor in (1, 4)]
    assert hours[1] <= hours[0]


@pytest.mark.parametrize("key", ["lora", "offload", "gradient_compression"])
@pytest.mark.parametrize(
    "other", [{"estimator": "rule"}, {"model": {"parameters": "8B"}}, {"mfu": {"plain": 0.4}}], ids=str
)
def test_keys_that_could_not_act_are_refused(key: str, other: dict[str, Any]) -> None:
    value = {"lora": {"rank": 8}, "offload": "optimizer", "gradient_compression": 4}[key]
    with pytest.raises(InputError) as caught:
        asked(**{key: value}, **other)
    assert [problem.reference for problem in caught.value.problems] == ["conflict"]
    assert caught.value.problems[0].places
    assert key in caught.value.problems[0].hint


@pytest.mark.parametrize(("held", "status"), [(None, "infeasible"), ("8 GB", "infeasible"), ("256 GB", "optimal")])
def test_who_owns_a_machine_says_what_its_hosts_hold(held: str | None, status: str) -> None:
    """Of no machine that one owns is the host's memory known: whatever is offloaded had no way out there."""
    there = {"shape": "north/eight", "count": 1, "price": "$1/h", **({"host_memory": held} if held else {})}
    plan = scenario([job(**FACTS, offload="optimizer")], hardware={"kinds": "owned", "owned": [there]})
    document = solved(plan, world(None))
    assert document["status"] == status
    assert errors(document, world(None)) == []
    told = "write host_memory: 512 GB, say, in hardware.owned[0]"
    assert any(told in line["text"] for line in document["named"]) == (held is None)
    if status == "optimal":
        document["scenario"]["hardware"]["owned"][0]["host_memory"] = "8 GB"
        document["sha256"] = digest_of(document)
        assert [problem.reference for problem in errors(document, world(None))] == ["does-not-fit"]
