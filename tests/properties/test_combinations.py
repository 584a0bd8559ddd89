"""Keys of a scenario in combinations that nobody wrote down: each is answered, or refused in words.

What a plan says must stand up to its own verifier, which `solve` asks; an error of our own ends the test. The first
one has failed: pools of a fleet beside fleets that share machines.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from planner import api
from planner.errors import InputError, StoppedError
from planner.scenario.load import parse_scenario
from tests.tiers import cases

LIMIT_S = 20.0
MODELS = (
    ("llama-3.1-8b", "20B"), ("llama-3.1-70b", "30B"), ("gpt2-xl", "5B"), ("mixtral-8x7b", "20B"),
    ("qwen3-30b-a3b", "20B"), ({"parameters": "7B"}, "20B"), ("gemma-2-9b", "5B"),
)  # fmt: skip
# key -> how often it stands, and what it may say
JOB: dict[str, tuple[float, list[Any]]] = {
    "sequence_length": (0.4, [2048, 4096, 8192]),
    "global_batch": (0.3, ["1M tokens", "4M tokens", {"min": "1M tokens", "max": "4M tokens"}]),
    "precision": (0.15, ["bf16", "fp8", "fp16"]),
    "optimizer": (0.2, ["adamw", "adamw-8bit", "adamw-megatron"]),
    "recompute": (0.2, ["none", "full", ["none", "selective"]]),
    "sharding": (0.2, ["zero-1", "zero-3", ["none", "zero-2"]]),
    "framework": (0.15, ["megatron", "fsdp", "torchtitan", "deepspeed"]),
    "mfu": (0.15, [{"h100-sxm-80gb": "42 %"}]),
    "count": (0.15, [2, 3]),
    "critical_batch": (0.1, ["8M tokens"]),
    "failures": (0.3, ["none", {"mtbf_per_device": "30000 h"}, {"checkpoint": "async", "stragglers": "1 %"},
                       {"scale_loss": "10 %"}, {"checkpoints_kept": 3, "storage_price": "$0.02/GB-month"}]),
    "checkpoint_every": (0.1, ["2 h"]),
    "lora": (0.15, [{"rank": 16}, {"rank": 16, "base": "nf4"}]),
    "offload": (0.12, ["optimizer", ["optimizer", "activations"]]),
    "mix_within_job": (0.15, [True]),
    "switch_within_job": (0.15, [True, False]),
    "progress": (0.15, ["3B"]),
    "gradient_compression": (0.1, [2]),
    "data": (0.1, [{"size": "5 TB", "at": "aws/us-west-2"}, {"size": "5 TB", "at": "gcp/us-central1"}]),
    "layout": (0.15, [{"tp": 8}, {"tp": 2, "pp": 1}, {"micro_batch": [1, 2]}, {"pp": 2}]),
}  # fmt: skip
FLEET: dict[str, tuple[float, list[Any]]] = {
    "weights": (0.4, ["fp8", "int4", "bf16"]),
    "kv_cache": (0.2, ["fp8"]),
    "target_load": (0.2, [0.5, 0.7]),
    "slo": (0.4, [{"ttft_p95": "2 s"}, {"tpot_p95": "60 ms"}, {"ttft_p95": "3 s", "tpot_p50": "50 ms"}]),
    "min_replicas": (0.15, [2]),
    "max_spot_share": (0.15, ["50 %", "100 %"]),
    "engine": (0.15, ["vllm", "sglang", "trt-llm"]),
    "prefix_cached": (0.15, ["30 %"]),
    "speculative": (0.1, [{"length": 3, "acceptance": "70 %"}]),
    "layout": (0.15, [{"tp": 2}, {"tp": 8}]),
    "confidence": (0.15, ["p50", "p90"]),
}
OF_RATES: dict[str, tuple[float, list[Any]]] = {
    "peak_factor": (0.2, [1, 3]),
    "integer_slices": (0.15, [True]),
    "disaggregated": (0.2, ["auto", "true"]),
    "arrival_variability": (0.1, [2]),
}
WHOLE: dict[str, tuple[float, list[Any]]] = {
    "errors": (0.3, ["p50", "p80", "p90", "p99"]),
    "confidence": (0.3, ["p50", "p80", "p90"]),
    "estimator": (0.15, ["rule", "analytic"]),
    "objective": (0.2, ["cost", "time", "carbon", ["cost", "carbon"], ["time", "cost"]]),
    "prefer": (0.2, ["plain", "cheapest"]),
    "plain_within": (0.15, ["1 %", "10 %"]),
    "horizon": (0.15, ["1 month", "26 weeks"]),
    "uncertainty": (0.12, [[{"name": "slow", "probability": "20 %", "set": {"errors": "p90"}}]]),
}
HARDWARE: dict[str, tuple[float, list[Any]]] = {
    "allow": (1.0, [["h100-*"], ["h100-*", "a100-*"], ["h100-*", "h200-*", "l40s"], ["a100-*", "tpu-v5*", "tpu-v6e"],
                    ["b200-*", "h100-*"], ["l4", "a10g", "a100-*"], ["mi300x*", "h100-*"]]),
    "pricing": (0.35, [["on_demand"], ["on_demand", "spot"], ["spot"], ["on_demand", "commitment_1y"]]),
    "providers": (0.3, [["aws"], ["gcp"], ["lambda", "coreweave"], ["aws", "gcp", "azure"]]),
    "regions": (0.2, [["us-*"]]),
    "discounts": (0.15, [[{"device": "h100-*", "fraction": "10 %"}]]),
    "owned": (0.15, [[{"shape": "hgx-h100", "count": 4, "price": "$1.20/h"}]]),
}  # fmt: skip
LIMITS: dict[str, tuple[float, list[Any]]] = {
    "budget": (0.15, ["$20000", "$1000000"]),
    "max_devices": (0.2, [64, 256]),
    "power": (0.1, ["200 kW"]),
    "carbon": (0.1, ["50 t"]),
}


def drawn(keys: dict[str, tuple[float, list[Any]]], rng: random.Random) -> dict[str, Any]:
    return {key: rng.choice(values) for key, (share, values) in keys.items() if rng.random() < share}


def job(number: int, rng: random.Random, *, calendar: bool) -> dict[str, Any]:
    model, tokens = rng.choice(MODELS)
    found = {"name": f"job-{number}", "model": model, "tokens": tokens, **drawn(JOB, rng)}
    found["deadline"] = rng.choice(["10 days", "30 days", "60 days", "100 days"])
    if calendar:
        found |= drawn({"schedule": (0.3, ["fixed", "elastic"]), "start": (0.2, ["2 weeks"])}, rng)
    return found


def fleet(number: int, rng: random.Random) -> dict[str, Any]:
    models = ["llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b", "mixtral-8x7b", "gpt-oss-20b"]
    found = {"name": f"fleet-{number}", "model": rng.choice(models), **drawn(FLEET, rng)}
    found["input_tokens"] = rng.choice([500, 2000, {"mean": 1500, "p95": 4000}])
    found["output_tokens"] = rng.choice([100, 400, {"mean": 300, "p95": 700}])
    found |= rng.choice([{}, {}, {"spare_replicas": 1}, {"availability": 0.999}])
    if rng.random() < 0.2:
        return found | {"users": rng.choice([200, 3000]), "think_time": "30 s"}
    return found | {"qpm": rng.choice([60, 120, 600, 3000])} | drawn(OF_RATES, rng)


def scenario(seed: int) -> dict[str, Any]:
    """A scenario of some jobs and fleets, each with some keys of the schema."""
    rng = random.Random(seed)
    found: dict[str, Any] = {"schema": "plan/v1", "name": f"case-{seed}", **drawn(WHOLE, rng)}
    calendar = rng.random() < 0.2
    if calendar:
        found |= {"periods": "1 week", "horizon": "16 weeks"}
    jobs, fleets = rng.choice([(1, 0), (1, 0), (0, 1), (1, 1), (2, 1), (0, 2)])
    makers: list[tuple[str, int, Callable[[int], dict[str, Any]]]] = [
        ("training", jobs, lambda number: job(number, rng, calendar=calendar)),
        ("serving", fleets, lambda number: fleet(number, rng)),
    ]
    found |= {key: [maker(number) for number in range(count)] for key, count, maker in makers if count}
    found["hardware"] = drawn(HARDWARE, rng)
    if "spot" in found["hardware"].get("pricing", ()):
        found["hardware"]["spot"] = {"interruptions": rng.choice(["0.5 /day", "0.02 /h"]), "warning": "2 min"}
    return found | {"limits": limits} if (limits := drawn(LIMITS, rng)) else found


POOLS_BESIDE_SHARED = """\
schema: plan/v1
name: case
errors: p99
serving:
  - {name: a, model: gpt-oss-20b, requests: 2 /s, input_tokens: 500, output_tokens: 400, slo: {tpot_p95: 60 ms},
     spare_replicas: 1, disaggregated: auto}
  - {name: b, model: gpt-oss-20b, qpm: 60, input_tokens: {mean: 1500, p95: 4000}, output_tokens: 100,
     slo: {ttft_p95: 2 s}, spare_replicas: 1, integer_slices: true}
hardware: {allow: ["h100-*", "a100-*"], regions: ["us-*"]}
"""


def texts() -> Iterator[str]:
    yield POOLS_BESIDE_SHARED
    for seed in range(3, cases(10, 24)):
        yield yaml.safe_dump(scenario(seed), sort_keys=False)


@pytest.mark.parametrize("text", list(texts()), ids=lambda text: text.split("name: ")[1].split()[0])
def test_a_combination_of_keys_is_answered_or_refused_in_words(text: str) -> None:
    try:
        plan = api.solve(parse_scenario(text, file="case.yaml"), time_limit_s=LIMIT_S)
    except (InputError, StoppedError):  # with file, line and a way out, as other tests hold
        return
    assert plan.document["status"] in ("optimal", "feasible", "infeasible", "stopped")
