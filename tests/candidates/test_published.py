"""Devices that only their vendor serves on: a rate that is published, or a refusal in words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from tests.worlds import scenario

OWNED = [{"shape": "sn40l-x16", "count": 8, "price": "$50/h"}]
ALONE = {"allow": ["sn40l"], "owned": OWNED}


def asked(model: str = "llama-3.1-8b", hardware: dict[str, Any] = ALONE, **changes: Any) -> Any:
    fleet = {"name": "chat", "model": model, "qpm": 6, "input_tokens": 1000, "output_tokens": 300}
    return scenario([], [{**fleet, **changes}], hardware=hardware)


def rows(answer: Any) -> list[Any]:
    return list(answer.document["workloads"][0]["allocations"])


@pytest.mark.parametrize(
    ("model", "tokens_per_s"), [("llama-3.1-8b", 1042), ("llama-3.1-70b", 457), ("llama-3.1-405b", 129)]
)
def test_a_published_rate_stands_as_it_was_published(model: str, tokens_per_s: int) -> None:
    """SambaNova, 10 September 2024, table 1: tokens per second of one user at 16 bits, as measured by others."""
    answer = api.solve(asked(model))
    (row,) = rows(answer)
    assert row["output_tokens_per_s_per_replica"] == pytest.approx(tokens_per_s, rel=1e-9)
    assert row["tpot_s"] == pytest.approx(1 / tokens_per_s, rel=1e-12)
    assert (row["tier"]["tier"], row["tier"]["engine"], row["batch"]) == ("measured", "sambastack", 1.0)
    assert row["devices_per_replica"] == 16
    assert row["point"] is None
    assert any("one user at a time, as published (2024-09-10, SambaNova" in line for line in answer.document["assumed"])
    assert not any("vllm" in line for line in answer.document["assumed"] + answer.document["warnings"])


def test_the_verifier_finds_the_rate_again_and_a_better_one_wrong() -> None:
    answer = api.solve(asked("llama-3.1-70b"))
    assert not api.verify(answer.document)
    altered: Any = copy.deepcopy(dict(answer.document))
    altered["workloads"][0]["allocations"][0]["output_tokens_per_s_per_replica"] *= 2
    found = api.verify(altered)
    assert any("output_tokens_per_s" in str(one) for one in found), found


def test_the_engine_of_the_vendor_may_be_named() -> None:
    answer = api.solve(asked(engine="sambastack"))
    assert rows(answer)[0]["tier"]["engine"] == "sambastack"
    assert not any("vllm" in line for line in answer.document["assumed"] + answer.document["warnings"])


def test_more_users_take_more_machines() -> None:
    """1,042 / 300 = 3.47 requests a second; a load of 80 % leaves 2.78; 5 a second want two machines."""
    (row,) = rows(api.solve(asked(qpm=150, peak_factor=2.0)))
    assert row["count"] == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "qwen2.5-7b"}, "of qwen2.5-7b in bf16 no rate is published"),
        ({"weights": "fp8"}, "of llama-3.1-8b in fp8 no rate is published"),
        ({"engine": "vllm"}, "vllm does not run on it, sambastack of sambanova does"),
        ({"slo": {"ttft_p95": "1 s"}}, "no time to a first token is published"),
        (
            {"hardware": {"allow": ["sn40l"], "owned": [{"shape": "sn40l-x8", "count": 8, "price": "$50/h"}]}},
            "is published of 16 in one machine",
        ),
    ],
)
def test_what_is_not_published_is_refused_with_a_way_out(changes: dict[str, Any], words: str) -> None:
    answer = api.solve(asked(**changes))
    assert answer.document["status"] == "infeasible"
    told = str(answer.document)
    assert words in told
    assert "throughput of the fleet" in told or "leave engine out" in told


def test_what_the_user_measured_is_served() -> None:
    answer = api.solve(asked("qwen2.5-7b", throughput="70 tokens/s"))
    assert {row["device"] for row in rows(answer)} == {"sn40l"}
    assert rows(answer)[0]["tier"]["engine"] == ""


def test_other_devices_are_not_touched() -> None:
    """Cheap H100s beside free RDUs of a model that is not published: served there, by the engine."""
    answer = api.solve(asked("qwen2.5-7b", hardware={"allow": ["sn40l", "h100-sxm-80gb"], "owned": OWNED}))
    assert {(row["device"], row["tier"]["engine"]) for row in rows(answer)} == {("h100-sxm-80gb", "vllm")}


def test_every_published_rate_has_a_source_a_date_and_a_preset() -> None:
    from planner.architecture.load import load_model

    for device in load_catalog().devices.values():
        assert bool(device.engine) == bool(device.published), device.id
        for rate in device.published:
            fact = device.facts[f"published.{rate.model}.{rate.weights}"]
            assert fact.as_of < "2026-11-23"
            assert len(fact.source) > 20
            assert fact.status == "measured"
            assert load_model(rate.model).name == rate.model
