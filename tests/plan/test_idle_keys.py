"""A key that does nothing beside the others is told, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.notes.idle_keys import idle_keys
from planner.scenario.load import with_settings
from tests.worlds import catalog, fleet, job, scenario

ON_DEMAND = "hardware.pricing=on_demand"


def told(settings: list[str], **parts: Any) -> list[str]:
    asked = scenario(**{"training": [job("j")], "serving": [fleet("f")], **parts})
    return list(idle_keys(with_settings(asked, settings), catalog()))


@pytest.mark.parametrize(
    ("given", "beside", "acts"),
    [
        ("plain_within=5%", ["prefer=cheapest"], ["prefer=plain"]),
        ("hardware.assume_between_zones={bandwidth: 10 Gbit/s, price: $0/GB}", [], ["training.j.mix_within_job=true"]),
        ("hardware.beyond_horizon=prorate", [], ["hardware.pricing=[on_demand, commitment_1y]"]),
        ("training.j.switch_within_job=true", [],
         ["hardware.spot={interruptions: 0.05 /h}", "hardware.pricing=[on_demand, spot]"]),
        ("training.j.stack={attention: eager}", ["training.j.model={parameters: 8B}"],
         ["training.j.model=llama-3.1-8b"]),
        ("serving.f.integer_slices=true", [], None),
        ("serving.f.slo={ttft_p95: 1 s, spread: 2}", [], None),
        ("serving.f.disaggregated=true", ["serving.f.estimator=rule"], None),
        ("serving.f.disaggregated=true", ["serving.f.throughput=2000 tokens/s"], None),
        ("hardware.owned=[{shape: north/one, count: 1, price: $1/h, host_memory: 1 TB}]", [],
         ["training.j.model=llama-3.1-8b", "training.j.offload=optimizer"]),
        ("hardware.spot={interruptions: 0.05 /h}", [ON_DEMAND], ["hardware.pricing=[on_demand, spot]"]),
        ("hardware.flex={wait: 12 h}", [ON_DEMAND], ["hardware.pricing=[on_demand, flex]"]),
        ("hardware.quotas=[{price_model: spot, max_devices: 4}]", [ON_DEMAND],
         ["hardware.quotas=[{max_devices: 4}]"]),
    ],
)  # fmt: skip
def test_what_does_nothing_is_told(given: str, beside: list[str], acts: list[str] | None) -> None:
    """Each was taken without a word."""
    name = given.partition("=")[0].rpartition(".")[2]
    (said,) = told([*beside, given])
    assert " does nothing" in said
    assert name in said.partition(" does nothing")[0]
    if acts is not None:
        assert told([*acts, given] if acts[0].partition("=")[0] != given.partition("=")[0] else acts) == []


def test_boot_of_no_job() -> None:
    assert told(["hardware.boot=10 min"], training=[]) == [
        "hardware.boot does nothing: it is paid for before a job runs, and there is none"
    ]
    assert told(["hardware.boot=10 min"]) == []
