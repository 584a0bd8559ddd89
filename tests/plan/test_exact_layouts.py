"""Every rule of a legal layout, as the verifier has it: one within its bound, at it, and one beyond it.

Llama 3.1 8B has 32 layers, 32 heads over 8 key-value heads and a width of 14336; Mixtral 8x7B has 8 experts in each of
as many layers.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture.load import load_model
from planner.checks.layout import serving_layout_findings, training_layout_findings
from planner.estimate.engines import cut_block, no_split
from planner.scenario.schema import ServingFleet
from tests.worlds import fleet, job, scenario, shape

DENSE, EXPERTS = "llama-3.1-8b", "mixtral-8x7b"
EIGHT = shape("north/eight", devices=8)
PLAIN = {"dp": 1, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "global_batch_sequences": 64}


def training(
    asked: dict[str, Any] | None = None, *, model: str = DENSE, framework: str | None = None, **split: Any
) -> list[str]:
    """What is illegal about a split; its devices and micro-batches follow from it unless they are given."""
    plain = {"sharding": ["none", "zero-1", "zero-2", "zero-3"], "recompute": ["none", "full"]}
    one = scenario([job(model=model, **{**plain, **(asked or {})})]).training[0]
    one = one.model_copy(update={"framework": framework})  # one that no scenario may name, too
    sizes = {**PLAIN, "sharding": "none", "recompute": "none", **split}
    if "micro_batches" not in sizes:
        sizes["micro_batches"] = sizes["global_batch_sequences"] // (sizes["dp"] * sizes["micro_batch"])
    devices = sizes.pop("devices", None) or sizes["dp"] * sizes["tp"] * sizes["pp"] * sizes["cp"]
    found = list(training_layout_findings(one, load_model(model), sizes, EIGHT, devices))
    assert {each.reference for each in found} <= {"illegal-layout"}
    return [each.message.removeprefix("job: ") for each in found]


def asked_of(engine: str, **changes: Any) -> ServingFleet:
    """A fleet that is served by an engine."""
    return scenario(serving=[fleet(engine=engine, **changes)]).serving[0]


def serving(model: str = DENSE, engine: str = "vllm", **split: Any) -> list[str]:
    sizes = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, **split}
    found = list(serving_layout_findings(asked_of(engine), load_model(model), sizes, EIGHT))
    assert {each.reference for each in found} <= {"illegal-layout"}
    return [each.message.removeprefix("fleet: ") for each in found]


@pytest.mark.parametrize("name", ["dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "micro_batches"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None])
def test_sizes_are_positive_whole_numbers(name: str, value: Any) -> None:
    split = {"micro_batches": 64, "devices": 1, name: value}
    assert training(**split) == ["a size is not a positive whole number"]


@pytest.mark.parametrize("name", ["tp", "pp", "dp", "ep", "cp"])
def test_sizes_of_replicas_are_positive_whole_numbers(name: str) -> None:
    assert serving(**{name: 0}) == ["a size is not a positive whole number"]
    assert serving(**{name: 1}) == []


@pytest.mark.parametrize(("devices", "found"), [(7, 1), (8, 0), (9, 1)])
def test_the_devices_are_the_product(devices: int, found: int) -> None:
    told = [f"dp·tp·pp·cp = 8, not {devices} devices"] * found
    assert training(dp=2, tp=2, pp=2, devices=devices) == told


def test_sharding_and_recomputation_are_among_what_is_asked() -> None:
    assert training({"sharding": ["zero-1"]}, sharding="zero-1") == []
    assert training({"sharding": ["zero-1"]}) == ["sharding none is not among ('zero-1',)"]
    assert training({"recompute": ["full"]}) == ["recompute none is not among ('full',)"]


@pytest.mark.parametrize(("sharding", "told"), [("none", []), ("zero-1", []), ("zero-2", ["llm.c has no zero-2"])])
def test_stages_of_a_framework(sharding: str, told: list[str]) -> None:
    assert training(framework="llm.c", sharding=sharding, dp=2) == told
    assert training(framework="llm.c", sharding=sharding) == []  # one device has nothing to share


def test_a_short_sequence_and_experts_both_split_are_asked_for() -> None:
    told = ["a short sequence and experts both split on few devices, which no layout asks for"]
    split = {"model": "qwen3-30b-a3b", "dp": 2, "cp": 2, "ep": 2}
    short: dict[str, Any] = {"sequence_length": 8192, "global_batch": "64 sequences"}
    assert training(short, **split) == told
    assert training(short, framework="megatron", **split) == told
    assert training({**short, "sequence_length": 16384}, **split) == []
    for size in ({"cp": 2}, {"ep": 2}, {"pp": 1}):
        assert training({**short, "layout": size}, **split) == []
    assert training(short, **{**split, "dp": 64}) == []


def test_a_framework_without_a_pipeline() -> None:
    assert training(framework="llm.c", pp=1) == []
    assert training(framework="llm.c", pp=2) == ["llm.c has no pipeline"]


@pytest.mark.parametrize(("sharding", "found"), [("zero-1", 0), ("zero-2", 1), ("zero-3", 1)])
def test_deepspeed_shards_no_gradients_under_a_pipeline(sharding: str, found: int) -> None:
    told = ["deepspeed shards no gradients under a pipeline"] * found
    own = {"layout": {"pp": 2}}  # a class of the user's own model
    unasked = "a pipeline that DeepSpeed's configuration does not make, and no layout asks for"
    assert training(own, framework="deepspeed", sharding=sharding, pp=2) == told
    assert training(framework="deepspeed", sharding=sharding, pp=2) == [*told, unasked]
    assert training(own, framework="deepspeed", sharding=sharding, pp=2, vpp=2) == [*told, unasked]
    assert training(framework="deepspeed", sharding=sharding, pp=1) == []


def test_deepspeed_splits_sequences_and_experts_by_code_alone() -> None:
    long: dict[str, Any] = {"sequence_length": 16384, "global_batch": "64 sequences"}
    split = {"model": "qwen3-30b-a3b", "framework": "deepspeed", "dp": 2, "cp": 2, "ep": 2}
    told = [f"{size} 2, which DeepSpeed has by code alone, and no layout asks for" for size in ("cp", "ep")]
    assert training(long, **split) == told
    assert training({**long, "layout": {"cp": 2}}, **split) == told[1:]
    assert training({**long, "layout": {"cp": 2, "ep": 2}}, **split) == []
    assert training(long, **{**split, "framework": "megatron"}) == []


@pytest.mark.parametrize(("tp", "found"), [(4, 0), (8, 0), (16, 1)])
def test_tensor_parallelism_stays_in_the_fast_domain(tp: int, found: int) -> None:
    told = [f"tp {tp} leaves the fast domain of north/eight"] * found
    assert training(tp=tp) == told
    assert serving(tp=tp) == told


def test_the_fast_domain_may_be_larger_than_a_shape() -> None:
    one = scenario([job(model=DENSE)]).training[0]
    split = {**PLAIN, "tp": 8, "micro_batches": 64, "sharding": "none", "recompute": "none"}
    for domain, found in ((8, 0), (4, 1)):
        small = shape("north/four", devices=4, scale_up_devices=domain)
        assert len(list(training_layout_findings(one, load_model(DENSE), split, small, 8))) == found


def test_tensor_parallelism_divides_heads_and_widths() -> None:
    assert training(tp=7) == ["tp 7 does not divide heads and widths"]
    assert serving(tp=6) == ["tp 6 does not divide heads and widths"]


@pytest.mark.parametrize(("pp", "found"), [(31, 0), (32, 0), (33, 1)])
def test_stages_are_at_most_as_many_as_layers(pp: int, found: int) -> None:
    assert training(pp=pp) == [f"{pp} × 1 stages, 32 layers"] * found
    assert serving(pp=pp) == [f"{pp} stages, 32 layers"] * found


@pytest.mark.parametrize(
    ("pp", "vpp", "micro_batches", "told"),
    [
        (16, 2, 64, ""),
        (18, 2, 64, "18 × 2 stages, 32 layers"),
        (4, 2, 64, ""),
        (4, 3, 64, "3 chunks of 4 stages want chunks of nearly one size and micro-batches in multiples of 4"),
        (4, 2, 66, "2 chunks of 4 stages want chunks of nearly one size and micro-batches in multiples of 4"),
        (1, 2, 64, "2 chunks of 1 stages want chunks of nearly one size and micro-batches in multiples of 1"),
    ],
)
def test_interleaved_stages(pp: int, vpp: int, micro_batches: int, told: str) -> None:
    assert training(pp=pp, vpp=vpp, global_batch_sequences=micro_batches) == ([told] if told else [])


@pytest.mark.parametrize(("tokens", "found"), [(4096, 0), (4100, 0), (4098, 1), (4099, 1)])
def test_context_ranks_have_two_chunks_each(tokens: int, found: int) -> None:
    told = [f"{tokens} tokens do not make two chunks for each of 2 context ranks"] * found
    assert training({"sequence_length": tokens}, cp=2) == told
    assert training({"sequence_length": tokens}, cp=1) == []


@pytest.mark.parametrize(
    ("model", "ep", "dp", "found"),
    [(EXPERTS, 4, 8, 0), (EXPERTS, 8, 8, 0), (EXPERTS, 16, 16, 1), (EXPERTS, 4, 6, 1), (DENSE, 2, 2, 1)],
)
def test_experts_are_divided(model: str, ep: int, dp: int, found: int) -> None:
    told = [f"ep {ep} does not divide the experts and the {dp} ranks that share them"] * found
    asked = {"global_batch": f"{dp * 10} sequences"}
    assert training(asked, model=model, ep=ep, dp=dp, global_batch_sequences=dp * 10) == told
    assert [each for each in serving(model, ep=ep, dp=dp) if each.startswith("ep")] == told


def test_replicas_of_dense_models_are_not_spread() -> None:
    assert serving(EXPERTS, dp=2, ep=2) == []
    assert serving(dp=1) == []
    assert serving(dp=2) == ["attention is spread over data-parallel ranks only beside experts"]


@pytest.mark.parametrize(("cp", "found"), [(1, 0), (2, 0), (4, 1)])
def test_context_ranks_are_among_the_copies_of_a_cache(cp: int, found: int) -> None:
    """16 tensor ranks hold 8 key-value heads twice."""
    wide = shape("north/wide", devices=16)
    sizes = {"tp": 16, "pp": 1, "dp": 1, "ep": 1, "cp": cp}
    told = [one.message for one in serving_layout_findings(asked_of("vllm", name="f"), load_model(DENSE), sizes, wide)]
    assert told == [f"f: cp {cp}, but only 2 ranks hold the same heads"] * found


def test_an_engine_that_does_not_share_out_a_cache() -> None:
    wide = shape("north/wide", devices=16)
    sizes = {"tp": 16, "pp": 1, "dp": 1, "ep": 1, "cp": 2}
    told = [
        one.message for one in serving_layout_findings(asked_of("sglang", name="f"), load_model(DENSE), sizes, wide)
    ]
    assert told == ["f: sglang does not share out the tokens of a cache"]


@pytest.mark.parametrize(("batch", "found"), [(57, 1), (58, 0), (64, 0), (70, 0), (71, 1)])
def test_one_batch_is_kept_to_a_tenth(batch: int, found: int) -> None:
    told = [f"batch {batch} is too far from 64 to 64 sequences"] * found
    assert training(global_batch_sequences=batch) == told


@pytest.mark.parametrize(("batch", "found"), [(63, 1), (64, 0), (128, 0), (129, 1)])
def test_a_range_of_batches_is_kept_to(batch: int, found: int) -> None:
    asked = {"global_batch": {"min": "64 sequences", "max": "128 sequences"}}
    told = [f"batch {batch} is too far from 64 to 128 sequences"] * found
    assert training(asked, global_batch_sequences=batch) == told


@pytest.mark.parametrize(("micro_batches", "found"), [(7, 1), (8, 0), (9, 1)])
def test_micro_batches_make_the_batch(micro_batches: int, found: int) -> None:
    told = [f"batch 64 is not {micro_batches} × 8"] * found
    assert training(dp=4, micro_batch=2, micro_batches=micro_batches) == told


def test_a_batch_is_a_multiple_of_its_ranks() -> None:
    assert training(dp=3, global_batch_sequences=64, micro_batches=21) == ["batch 64 is not 21 × 3"]


@pytest.mark.parametrize(
    ("rate", "layout", "found"), [(12.5e9, None, 0), (12.4e9, None, 1), (12.4e9, "pp2", 0), (None, None, 0)]
)
def test_a_replica_spans_machines_over_a_network_that_is_made_for_it(
    rate: float | None, layout: str | None, found: int
) -> None:
    """100 Gbit/s of a device, or what the scenario says: a rate of its own, or the stages."""
    asked = asked_of("vllm", layout=layout) if layout else asked_of("vllm")
    pair = shape("north/pair", devices=2, inter_node_bytes_per_s_per_device=rate)
    sizes = {"tp": 2, "pp": 2, "dp": 1, "ep": 1, "cp": 1}
    told = [one.message for one in serving_layout_findings(asked, load_model(DENSE), sizes, pair)]
    assert told == ["fleet: a replica over several north/pair, at 99.2 Gbit/s a device"] * found


@pytest.mark.parametrize(
    ("pp", "stage", "asked", "found"),
    [(2, "zero-1", {}, 0), (2, "zero-3", {}, 1), (1, "zero-3", {}, 0), (2, "zero-3", {"layout": "pp2"}, 0)],
)
def test_weights_are_shared_out_under_a_pipeline_only_when_asked_for(
    pp: int, stage: str, asked: dict[str, Any], found: int
) -> None:
    text = "zero-3 under a pipeline, which neither framework nor layout asks for"
    assert training(asked, pp=pp, dp=2, sharding=stage) == [text] * found


@pytest.mark.parametrize(
    ("engine", "model", "split", "legal"),
    [
        ("vllm", "qwen3-235b-a22b", {"tp": 4}, True),  # 1536 / 4 is three blocks, 1536 / 8 one and a half
        ("vllm", "qwen3-235b-a22b", {"tp": 8}, False),
        ("vllm", "qwen3-235b-a22b", {"tp": 4, "dp": 2}, False),
        ("vllm", "qwen3-235b-a22b", {"tp": 8, "ep": 8}, True),
        ("trt-llm", "qwen3-235b-a22b", {"tp": 8}, True),  # not read
        ("vllm", "qwen2.5-72b", {"tp": 1}, True),
        ("vllm", "qwen2.5-72b", {"tp": 2}, False),  # a width of 231 blocks
        ("vllm", "deepseek-v3", {"tp": 4, "dp": 8, "ep": 32}, True),
        ("sglang", "deepseek-v3", {"tp": 4, "dp": 8, "ep": 32}, False),  # its dense layers are cut into 32
        ("sglang", "deepseek-v3", {"tp": 2, "dp": 8}, True),
    ],
)
def test_ranks_hold_whole_blocks_of_weights(engine: str, model: str, split: dict[str, int], legal: bool) -> None:
    """As the engines refuse to start otherwise; the search and the verifier say the same, each by itself."""
    sizes = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, **split}
    arch, wide = load_model(model), shape("north/rack", devices=32)
    told = list(serving_layout_findings(asked_of(engine, weights="fp8-block"), arch, sizes, wide))
    assert [one.message for one in told] == (
        [] if legal else [f"fleet: {engine} loads whole blocks of 128 x 128 weights, and this split cuts them"]
    )
    assert (cut_block(engine, arch, "fp8-block", sizes) == "") is legal
    assert not list(serving_layout_findings(asked_of(engine, weights="fp8"), arch, sizes, wide))
    stored = asked_of(engine, weights="fp8", model="minimax-m2.5")  # whose repository holds blocks
    assert bool(list(serving_layout_findings(stored, arch, sizes, wide))) is not legal


@pytest.mark.parametrize(
    ("engine", "model", "dp", "legal"),
    [("sglang", "mixtral-8x22b", 8, False), ("sglang", "mixtral-8x22b", 1, True), ("vllm", "mixtral-8x22b", 8, True),
     ("sglang", "qwen3-30b-a3b", 4, True), ("sglang", "gpt-oss-120b", 8, True)],
)  # fmt: skip
def test_models_whose_code_gathers_no_tokens_have_one_attention_rank(
    engine: str, model: str, dp: int, legal: bool
) -> None:
    """SGLang's Mixtral splits attention over all ranks, whosever requests they have: eight of them were planned."""
    arch = load_model(model)
    told = serving(model, engine, dp=dp)
    assert told == ([] if legal else ["sglang runs no attention ranks for models of mixtral"])
    sizes = {"tp": 1, "pp": 1, "dp": dp, "ep": 1, "cp": 1}
    reason, way = no_split(engine, sizes, machine_devices=8, joined_devices=8, vendor="nvidia", family=arch.family,
                           kv_cache="bf16")  # fmt: skip
    assert (reason == "", way) == (legal, "" if legal else "write layout: {dp: 1}")


@pytest.mark.parametrize(
    ("engine", "model", "pp", "legal"),
    [("sglang", "gemma-3-27b", 2, False), ("sglang", "gemma-3-27b", 1, True), ("vllm", "gemma-3-27b", 2, True),
     ("sglang", "llama-3.1-70b", 2, True), ("sglang", "mixtral-8x22b", 2, True), ("sglang", "phi-4", 2, True)],
)  # fmt: skip
def test_models_whose_code_takes_no_stage_are_not_cut_into_stages(
    engine: str, model: str, pp: int, legal: bool
) -> None:
    """SGLang asserts as it starts that the code of the model knows pipelines: a Qwen3 Next was planned in four."""
    arch = load_model(model)
    told = serving(model, engine, pp=pp)
    assert told == ([] if legal else ["sglang runs no stages of models of gemma3_text"])
    sizes = {"tp": 1, "pp": pp, "dp": 1, "ep": 1, "cp": 1}
    reason, way = no_split(engine, sizes, machine_devices=8, joined_devices=8, vendor="nvidia", family=arch.family,
                           kv_cache="bf16")  # fmt: skip
    assert (reason == "", way) == (legal, "" if legal else "write layout: {pp: 1}")


@pytest.mark.parametrize(
    ("engine", "model", "weights", "split", "legal"),
    [
        (
            "vllm",
            "qwen2.5-14b",
            "int4",
            {"tp": 4},
            True,
        ),  # 13824 / 4 is 27 groups of 128, 13824 / 8 thirteen and a half
        ("vllm", "qwen2.5-14b", "int4", {"tp": 8}, False),
        ("sglang", "qwen2.5-14b", "int4", {"tp": 8}, False),
        ("trt-llm", "qwen2.5-14b", "int4", {"tp": 8}, True),  # not read
        ("vllm", "qwen2.5-14b", "int4-g32", {"tp": 8}, True),
        ("vllm", "qwen2.5-14b", "fp8", {"tp": 8}, True),
        ("vllm", "qwen2.5-0.5b", "int4", {"tp": 2}, False),  # 14 heads of 64: three groups and a half on each of two
        ("vllm", "qwen2.5-72b", "int4", {"tp": 8}, True),  # published with its 29568 filled up to 29696
        ("vllm", "llama-2-7b", "int4", {"tp": 4}, False),
        ("vllm", "qwen3-235b-a22b", "int4", {"tp": 8}, True),  # of experts engines make smaller groups
        ("vllm", "deepseek-v2-lite", "int4", {"tp": 8}, False),  # 1408 / 8 is five and a half of 32
        ("vllm", "deepseek-v2-lite", "int4", {"tp": 8, "ep": 8}, True),
        ("vllm", "kimi-k2.5", "int4-g32", {"tp": 16}, True),
    ],
)
def test_ranks_hold_whole_groups_of_weights(
    engine: str, model: str, weights: str, split: dict[str, int], legal: bool
) -> None:
    """What shares a scale is on one rank: engines stop as they load a matrix that is cut elsewhere."""
    sizes = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, **split}
    arch, wide = load_model(model), shape("north/rack", devices=32)
    told = list(serving_layout_findings(asked_of(engine, weights=weights), arch, sizes, wide))
    assert [one.message for one in told] == (
        [] if legal else [f"fleet: {engine} loads whole groups of 4-bit weights, and this split cuts them"]
    )
    assert (cut_block(engine, arch, weights, sizes) == "") is legal
