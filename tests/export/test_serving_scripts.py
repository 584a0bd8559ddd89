"""vLLM and SGLang: every fleet of the shipped scenarios, as a shell hands it to the engine's recorded options."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.architecture.load import load_model
from planner.export import ExportFile, Launch, NotExpressible, ServingLaunch, kubernetes, sglang, skypilot, vllm
from planner.export.engine import context_tokens
from planner.export.serving_command import SCRIPT_BLANKS
from planner.report.escape import file_stem, terminal
from tests.export.hostile import HOSTILE, PIECES, hostile
from tests.export.scripts import recorded_parser
from tests.export.shells import stub_folder, words_of
from tests.export.test_llama_server import words_of_all
from tests.tiers import cases

NAMES = HOSTILE[: cases(len(PIECES), 200)]

ENGINES = {"vllm": vllm, "sglang": sglang}
LISTS = {"vllm": f"vllm-{vllm.VLLM.version}", "sglang": f"sglang-{sglang.SGLANG.version}"}
ENV = {"NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1", "MODEL": "/weights", "DRAFT_MODEL": "/draft"}
Read = Callable[..., list[Launch]]


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    return stub_folder(tmp_path)


def fleets(launches: list[Launch]) -> list[ServingLaunch]:
    return [launch for launch in launches if isinstance(launch, ServingLaunch)]


def script_of(files: list[ExportFile]) -> str:
    (text,) = [file.text for file in files if file.name.endswith(".sh")]
    return text


def parsed(engine: str, scripts: list[str], stubs: Path, env: dict[str, str] = ENV) -> list[Any]:
    """Options of each script's command, by the parser of the recorded list."""
    parser, found = recorded_parser(LISTS[engine]), []
    for words in words_of(scripts, stubs, env):
        start = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"]}[engine]
        assert words[: len(start)] == start
        rest = words[len(start) :]
        model = rest.pop(0) if engine == "vllm" else None
        options = parser.parse_args(rest)
        found.append((model or options.model_path, options))
    return found


def changed(launch: ServingLaunch, **fields: Any) -> ServingLaunch:
    """A fleet with other wishes."""
    return replace(launch, fleet=launch.fleet.model_copy(update=fields))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_shipped_fleet_is_accepted_and_says_what_the_plan_says(
    engine: str, plans: dict[str, Any], launches: Read, stubs: Path
) -> None:
    made, refused = [], []
    for name in plans:
        for launch in fleets(launches(name)):
            try:
                made.append((launch, script_of(ENGINES[engine].files(launch))))
            except NotExpressible as error:
                refused.append((name, launch.machine.device, error.reason))
    assert len(made) >= 7
    assert all("v100" in device or "tpu" in device for _, device, _ in refused), refused
    for (launch, _), (model, options) in zip(made, parsed(engine, [text for _, text in made], stubs)):
        layout, memory = launch.layout, launch.memory
        assert model == launch.model.hf_id
        if engine == "vllm":
            tp, pp, dp = options.tensor_parallel_size, options.pipeline_parallel_size, options.data_parallel_size or 1
            longest, share, held = options.max_model_len, options.gpu_memory_utilization, memory.usable_bytes
            assert options.max_num_seqs * layout.dp >= launch.batch > (options.max_num_seqs - 1) * layout.dp
        else:
            tp, pp, dp = options.tp_size // layout.dp, options.pp_size, (options.attn_dp_size or options.dp_size or 1)
            longest, share = options.context_length, options.mem_fraction_static
            held = memory.usable_bytes - memory.workspace_bytes
            assert options.max_running_requests == int(launch.batch)
        together = max(launch.replicas_per_node, 1) if launch.nodes_per_replica == 1 else 1
        assert (tp, pp, dp) == (layout.tp, layout.pp, layout.dp * together)
        # a port serves the replicas of a node, and all ports together are the plan's replicas and devices
        ports = launch.machine.nodes // launch.nodes_per_replica
        assert ports * together == launch.replicas
        assert ports * tp * pp * dp == launch.machine.devices
        assert share == pytest.approx(held / launch.machine.memory_bytes, abs=5e-5)
        assert longest == context_tokens(launch)
        assert longest >= min(mean_tokens_sent(launch), launch.model.arch.max_positions)
        if launch.nodes_per_replica > 1:
            assert (options.nnodes, options.node_rank) == (launch.nodes_per_replica, 1)


def mean_tokens_sent(launch: ServingLaunch) -> float:
    """Mean length of the requests that are sent to a row: of its buckets, or of the whole fleet."""
    sent = [bucket for bucket in launch.buckets if bucket.routed_requests_per_s > 0]
    if not sent:
        return launch.mean_input_tokens + launch.mean_output_tokens
    lengths = [(bucket.input_tokens or 0.0) + (bucket.output_tokens or 0.0) for bucket in sent]
    rates = [bucket.routed_requests_per_s for bucket in sent]
    return sum(length * rate for length, rate in zip(lengths, rates)) / sum(rates)


def test_only_the_first_node_of_a_replica_answers(launches: Read, stubs: Path) -> None:
    launch = fleets(launches("disaggregated"))[0]
    text = script_of(vllm.files(launch))
    first, second = (parsed("vllm", [text], stubs, {**ENV, "NODE_RANK": rank})[0][1] for rank in "01")
    assert not first.headless
    assert second.headless
    assert second.master_addr == "10.0.0.1"


def test_both_ends_move_the_cache_alike(launches: Read, stubs: Path) -> None:
    """vLLM's connector that asks for a cache takes none from a pipeline; the one that sends does, of prompts."""
    pools = fleets(launches("disaggregated"))
    assert {launch.role for launch in pools} == {"prefill", "decode"}
    for staged, mover in ((True, "NixlPushConnector"), (False, "NixlConnector")):
        asked = [replace(launch, staged_prefill=staged) for launch in pools]
        told = [one for _, one in parsed("vllm", [script_of(vllm.files(launch)) for launch in asked], stubs)]
        configs = [json.loads(one.kv_transfer_config) for one in told]
        assert {config["kv_connector"] for config in configs} == {mover}
        roles = {"prefill": "kv_producer", "decode": "kv_consumer"}
        assert [config["kv_role"] for config in configs] == [roles[launch.role] for launch in asked]
    assert {launch.staged_prefill for launch in pools} == {
        any(one.layout.pp > 1 for one in pools if one.role == "prefill")
    }
    answers = next(launch for launch in pools if launch.role == "decode")
    for module in (vllm, sglang):
        with pytest.raises(NotExpressible, match=r"answers in a pipeline.*layout: {pp: 1"):
            module.files(replace(answers, layout=replace(answers.layout, pp=2)))
    prompts = next(launch for launch in pools if launch.role == "prefill")
    hybrid = replace(prompts.model, arch=load_model("qwen3.5-35b-a3b"), hf_id="", checkpoint="")
    with pytest.raises(NotExpressible, match="moves no states of linear attention out of a pipeline"):
        vllm.files(replace(prompts, model=hybrid, layout=replace(prompts.layout, pp=2)))
    assert sglang.files(replace(prompts, model=hybrid, layout=replace(prompts.layout, pp=2)))
    sends = "export VLLM_SSM_CONV_STATE_LAYOUT=DS"  # else a server of a hybrid's pool stops as it starts
    flat = replace(prompts.layout, pp=1)
    assert sends in script_of(vllm.files(replace(prompts, model=hybrid, layout=flat)))
    assert sends not in script_of(vllm.files(replace(prompts, layout=flat)))
    assert sends not in script_of(vllm.files(replace(prompts, model=hybrid, role="whole", layout=flat)))
    with pytest.raises(NotExpressible, match=r"where all tensor ranks do, of models with MLA.*cp: 1"):
        vllm.files(replace(prompts, layout=replace(flat, tp=16, cp=2)))
    latent = replace(prompts.model, arch=load_model("deepseek-v3"), hf_id="", checkpoint="")
    assert vllm.files(replace(prompts, model=latent, layout=replace(flat, tp=8, cp=8)))


def test_a_script_stops_until_its_blanks_are_filled(launches: Read, stubs: Path) -> None:
    launch = fleets(launches("disaggregated"))[0]
    text = script_of(vllm.files(launch))
    for blank in SCRIPT_BLANKS:
        env = {key: value for key, value in ENV.items() if key != blank.name}
        with pytest.raises(AssertionError, match=blank.name):
            words_of([text], stubs, env)
        assert f"#   {blank.name}" in text


def test_pools_of_a_disaggregated_fleet_know_their_part(launches: Read, stubs: Path) -> None:
    pools = fleets(launches("disaggregated"))
    made = parsed("vllm", [script_of(vllm.files(pool)) for pool in pools], stubs)
    roles = [json.loads(options.kv_transfer_config)["kv_role"] for _, options in made]
    assert roles == ["kv_producer", "kv_consumer", "kv_producer"]
    made = parsed("sglang", [script_of(sglang.files(pool)) for pool in pools], stubs)
    assert [options.disaggregation_mode for _, options in made] == ["prefill", "decode", "prefill"]


def test_experts_and_attention_ranks(launches: Read, stubs: Path) -> None:
    (launch,) = fleets(launches("trace"))
    layout = replace(launch.layout, tp=2, pp=1, dp=8, ep=16)
    launch = replace(launch, layout=layout, devices_per_replica=16, batch=100.0)
    (_, of_vllm), (_, of_sglang) = (
        parsed(engine, [script_of(module.files(launch))], stubs)[0] for engine, module in ENGINES.items()
    )
    assert of_vllm.enable_expert_parallel
    assert (of_vllm.tensor_parallel_size, of_vllm.data_parallel_size, of_vllm.nnodes) == (2, 8, 8)
    assert of_vllm.data_parallel_address == of_vllm.master_addr == "10.0.0.1"
    assert of_vllm.max_num_seqs == 13  # of each of eight ranks
    of_vllm_step = of_vllm.max_num_batched_tokens
    full = replace(launch, batch=80_000.0)  # more at once than the step has tokens, where all ranks share them
    (_, of_vllm), (_, other) = (
        parsed(engine, [script_of(module.files(full))], stubs)[0] for engine, module in ENGINES.items()
    )
    assert (of_vllm.max_num_seqs, of_vllm.max_num_batched_tokens) == (10_000, 10_000)
    assert other.chunked_prefill_size == other.max_running_requests == 80_000
    assert (of_vllm_step, of_sglang.chunked_prefill_size) == (8192, 8 * 8192)
    assert (of_sglang.tp_size, of_sglang.attn_dp_size, of_sglang.ep_size) == (16, 8, 16)
    assert of_sglang.max_running_requests == 100  # of all ranks: SGLang divides
    assert of_sglang.dist_init_addr == "10.0.0.1:29500"


def test_whole_experts_on_many_ranks_are_sent_their_tokens(launches: Read, stubs: Path) -> None:
    """By default engines gather all tokens on all ranks: on 32 of them four times what was planned."""
    (launch,) = fleets(launches("trace"))
    model = replace(launch.model, arch=load_model("deepseek-v3"), hf_id="deepseek-ai/DeepSeek-V3", checkpoint="")
    split = replace(launch.layout, tp=1, pp=1, dp=32, ep=32, cp=1)
    wide = replace(launch, model=model, layout=split, devices_per_replica=32, batch=3200.0)
    narrow = replace(wide, layout=replace(split, dp=8, ep=8), devices_per_replica=8)
    for asked, told in ((wide, ("deepep_v2", "deepep")), (narrow, (None, None))):
        texts = [script_of(module.files(asked)) for module in ENGINES.values()]
        (_, options), (_, other) = (parsed(engine, [text], stubs)[0] for engine, text in zip(ENGINES, texts))
        assert (options.all2all_backend, other.moe_a2a_backend) == told
        assert all(("DeepEP" in text) == bool(told[0]) for text in texts)
    rocm = replace(wide.machine, vendor="amd", device="mi300x", family="cdna3")  # whose DeepEP is MoRI
    asked = replace(wide, machine=rocm, layout=replace(split, dp=16, ep=16), devices_per_replica=16)
    texts = [script_of(module.files(asked)) for module in ENGINES.values()]
    (_, options), (_, other) = (parsed(engine, [text], stubs)[0] for engine, text in zip(ENGINES, texts))
    assert (options.all2all_backend, other.moe_a2a_backend) == ("mori_high_throughput", "mori")
    assert all("by MoRI, as planned" in text and "DeepEP" not in text for text in texts)
    assert "\nexport VLLM_ROCM_USE_AITER=1\n" in texts[0]
    assert "MORI_SHMEM_HEAP_SIZE" in texts[0]
    assert "export VLLM_ROCM_USE_AITER=1" in kubernetes.files(asked)[0].text
    chunk = other.chunked_prefill_size // 16  # SGLang divides it, and stops where a rank may not send as many
    assert f"\nexport SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK={chunk}\n" in texts[1]


@pytest.mark.parametrize(
    ("role", "batch", "backend", "step"),
    [
        ("decode", 3200.0, "deepep_low_latency", 100),
        ("decode", 64_000.0, "deepep_v2", 8192),  # more of each rank than the kernels for answers take
        ("prefill", 3200.0, "deepep_high_throughput", 8192),
    ],
)
def test_buffers_of_what_is_sent_are_no_larger_than_what_is(
    role: str, batch: float, backend: str, step: int, launches: Read, stubs: Path
) -> None:
    """For 8,192 tokens of 256 experts the kernels for answers take 120 GB of a device: no server started."""
    (launch,) = fleets(launches("trace"))
    model = replace(launch.model, arch=load_model("deepseek-v3"), hf_id="deepseek-ai/DeepSeek-V3", checkpoint="")
    split = replace(launch.layout, tp=1, pp=1, dp=32, ep=32, cp=1)
    asked = replace(launch, model=model, layout=split, devices_per_replica=32, batch=batch, role=role)
    text = script_of(vllm.files(asked))
    ((_, options),) = parsed("vllm", [text], stubs)
    assert (options.all2all_backend, options.max_num_batched_tokens) == (backend, step)
    assert ("NCCL 2.30.4" in text) == (backend == "deepep_v2")
    other = script_of(sglang.files(asked))
    few = batch == 3200.0
    assert ("\nexport SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=100\n" in other) == few
    assert ("--deepep-mode normal" in other) != few


@pytest.mark.parametrize(("engine", "program"), [("vllm", "vllm"), ("sglang", "python3")])
def test_mixtures_of_which_a_node_has_several_are_a_server_each(
    engine: str, program: str, launches: Read, stubs: Path
) -> None:
    """Two replicas of a Qwen3 30B on a node were refused by the engine that they were planned for.

    Behind one port their experts would lie on all devices of the node: another layout than was planned.
    """
    (launch,) = fleets(launches("trace"))
    experts = replace(launch.model, arch=load_model("qwen3-30b-a3b"), hf_id="Qwen/Qwen3-30B-A3B", checkpoint="")
    split = replace(launch.layout, tp=1, pp=1, dp=4, ep=1, cp=1)
    eight = replace(launch.machine, devices_per_node=8)
    two = replace(launch, machine=eight, model=experts, layout=split, devices_per_replica=4)
    text = script_of(ENGINES[engine].files(two))
    assert "a node has 2 servers, at ports 8000 to 8001: put a balancer in front" in text
    parser, found = recorded_parser(LISTS[engine]), {}
    seen = text.replace("wait -n", "wait").replace(f"exec {program}", f'exec {program} "$CUDA_VISIBLE_DEVICES"')
    for words in words_of_all(seen, stubs, program=program):
        options = parser.parse_args(words[4:])
        found[words[1]] = options.port
        ranks = options.data_parallel_size if engine == "vllm" else options.attn_dp_size
        assert (ranks, options.pp_size if engine == "sglang" else options.tensor_parallel_size) == (4, 1)
    assert found == {"0,1,2,3": 8000, "4,5,6,7": 8001}
    unknown = replace(two, machine=replace(two.machine, vendor="acme"))
    with pytest.raises(NotExpressible, match="told apart"):
        ENGINES[engine].files(unknown)


@pytest.mark.parametrize(
    ("name", "config_path", "alone"),
    [("gemma-3-27b", "", True), ("gemma-3-27b", "config.json", False), ("gemma-2-27b", "", False)],
)
def test_the_text_part_of_a_model_that_sees_is_served_without_pictures(
    name: str, config_path: str, alone: bool, launches: Read, stubs: Path
) -> None:
    """Engines kept room for pictures and loaded their encoder, of which the plan counts nothing."""
    (launch,) = fleets(launches("trace"))
    model = replace(launch.model, arch=load_model(name), config_path=config_path)
    texts = [script_of(module.files(replace(launch, model=model))) for module in ENGINES.values()]
    for engine, text in zip(ENGINES, texts):
        ((_, options),) = parsed(engine, [text], stubs)
        assert options.language_model_only is alone


def test_speculation_prefixes_and_shared_caches(launches: Read, stubs: Path) -> None:
    (launch,) = fleets(launches("llama"))
    wish = launch.fleet.speculative or type(launch.fleet).model_fields["speculative"].annotation.__args__[0]
    launch = replace(launch, layout=replace(launch.layout, pp=1))
    asked = changed(launch, speculative=wish.model_validate({"length": 3, "acceptance": 0.7}), prefix_cached=0.5)
    (_, options), (_, other) = (
        parsed(engine, [script_of(module.files(asked))], stubs)[0] for engine, module in ENGINES.items()
    )
    assert (options.spec_model, options.spec_tokens, options.enable_prefix_caching) == ("/draft", 3, True)
    assert (other.speculative_num_steps, other.speculative_num_draft_tokens) == (3, 4)
    assert other.speculative_draft_model_path == "/draft"
    assert other.speculative_algorithm == "EAGLE3"  # one layer made for the model, as is planned where none is named
    named = wish.model_validate({"length": 3, "acceptance": 0.7, "model": {"preset": "llama-3.2-1b"}})
    texts = [script_of(module.files(changed(launch, speculative=named))) for module in ENGINES.values()]
    (_, options), (_, other) = (parsed(engine, [text], stubs)[0] for engine, text in zip(ENGINES, texts))
    drafts = (options.spec_model, other.speculative_draft_model_path)
    assert (*drafts, other.speculative_algorithm) == ("meta-llama/Llama-3.2-1B",) * 2 + ("STANDALONE",)
    assert all("DRAFT_MODEL" not in text for text in texts)
    ahead = {"config": {**(asked.model.config or {}), "num_nextn_predict_layers": 1}}  # as DeepSeek-V3: no other drafts
    own = replace(asked, model=replace(asked.model, **ahead))
    texts = [script_of(module.files(own)) for module in ENGINES.values()]
    (_, options), (_, other) = (parsed(engine, [text], stubs)[0] for engine, text in zip(ENGINES, texts))
    assert (options.spec_method, options.spec_model, options.spec_tokens) == ("mtp", None, 3)
    assert (other.speculative_algorithm, other.speculative_draft_model_path) == ("EAGLE", None)
    assert (other.speculative_num_steps, other.speculative_num_draft_tokens) == (3, 4)
    assert all("DRAFT_MODEL" not in text and "a layer of its own" in text for text in texts)
    staged = replace(asked, layout=replace(asked.layout, pp=2))
    assert vllm.files(staged)
    assert vllm.files(changed(staged, speculative=named))
    other = replace(staged, model=replace(staged.model, arch=load_model("gemma-3-27b")))  # whose stages hand nothing on
    for module, fleet in ((sglang, staged), (vllm, other)):
        with pytest.raises(NotExpressible, match=r"drafts no tokens .*in a pipeline.*layout: {pp: 1}"):
            module.files(fleet)
    shared = replace(launch, layout=replace(launch.layout, tp=16, pp=1, cp=2), devices_per_replica=16)
    ((_, options),) = parsed("vllm", [script_of(vllm.files(shared))], stubs)
    assert options.decode_context_parallel_size == 2
    with pytest.raises(NotExpressible, match="context parallelism"):
        sglang.files(shared)


@pytest.mark.parametrize(
    ("weights", "model", "quantization", "dtype"),
    [
        ("bf16", "meta-llama/Llama-3.1-70B", None, "bfloat16"),
        ("fp16", "meta-llama/Llama-3.1-70B", None, "float16"),
        ("fp32", "meta-llama/Llama-3.1-70B", None, "float32"),
        ("fp8", "meta-llama/Llama-3.1-70B", "fp8", "auto"),
        ("int4", "/weights", None, "auto"),
        ("nvfp4", "/weights", None, "auto"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_weights_come_from_the_hub_or_from_a_checkpoint_of_that_format(
    engine: str, weights: str, model: str, quantization: str | None, dtype: str, launches: Read, stubs: Path
) -> None:
    (launch,) = fleets(launches("llama"))
    text = script_of(ENGINES[engine].files(changed(launch, weights=weights)))
    ((found, options),) = parsed(engine, [text], stubs)
    assert (found, options.quantization, options.dtype) == (model, quantization, dtype)
    assert ("MODEL" in text) == (model == "/weights")


def test_devices_without_bf16_compute_and_cache_in_fp16(launches: Read, stubs: Path) -> None:
    (launch,) = fleets(launches("old-cards"))
    assert "bf16" not in launch.machine.formats
    launch = changed(launch, weights="bf16", kv_cache="bf16")
    for engine, module in ENGINES.items():
        ((_, options),) = parsed(engine, [script_of(module.files(launch))], stubs)
        assert (options.dtype, options.kv_cache_dtype) == ("float16", "auto")
    assert "compute capability 6.0" in script_of(vllm.files(launch))


def test_what_an_engine_cannot_do_is_refused_with_a_way_out(launches: Read) -> None:
    chat = fleets(launches("chat-fleet"))
    old = replace(chat[0], machine=replace(chat[0].machine, family="volta", device="v100-sxm2-16gb"))
    with pytest.raises(NotExpressible, match=r"capability 7.0, and that begins at 7.5; .*deny: \[v100-sxm2-16gb\]"):
        vllm.files(old)  # a fleet whose speed was measured with something else may stand there
    turing = replace(chat[0], machine=replace(chat[0].machine, family="turing", device="t4"))
    with pytest.raises(NotExpressible, match=r"mxfp4 weights on t4: .*capability 7.5, and that begins at 8.0"):
        vllm.files(changed(turing, weights="mxfp4"))
    (tpu, _) = fleets(launches("tpu"))
    with pytest.raises(NotExpressible, match="TPU"):
        sglang.files(tpu)
    with pytest.raises(NotExpressible, match="several hosts"):
        vllm.files(replace(tpu, machine=replace(tpu.machine, devices_per_node=16)))
    with pytest.raises(NotExpressible, match="cache in int4"):
        sglang.files(changed(chat[0], kv_cache="int4"))
    arch, blocks = load_model("deepseek-v3"), {"checkpoint": "fp8-block", "hf_id": "deepseek-ai/DeepSeek-V3"}
    wide = replace(chat[0], model=replace(chat[0].model, arch=arch, **blocks), layout=replace(chat[0].layout, tp=32))
    for weights, way in (("fp8", "weights: fp8-block"), ("fp8-block", "layout: {ep: …}")):
        with pytest.raises(NotExpressible, match=rf"width of 18432 over 32 ranks is 576.*{way}"):
            sglang.files(changed(replace(wide, layout=replace(wide.layout, tp=16, dp=2)), weights=weights))
    half = replace(chat[0], machine=replace(chat[0].machine, shape_kind="share"))
    with pytest.raises(NotExpressible, match="share"):
        vllm.files(half)


def at_nebius(launch: ServingLaunch) -> ServingLaunch:
    """The same at a cloud on which SkyPilot opens ports."""
    return replace(launch, machine=replace(launch.machine, provider="nebius", region="eu-north1"))


def test_the_engine_of_the_plan_runs_in_tasks_and_pods(launches: Read) -> None:
    launch = at_nebius(*fleets(launches("llama")))
    for form in (skypilot, kubernetes):
        assert "vllm serve" in form.files(launch)[0].text
        other = form.files(replace(launch, engine="sglang"))[0].text
        assert "sglang.launch_server" in other
        assert "vllm" not in other
    assert "predicted for trt-llm, not for vLLM" in vllm.files(replace(launch, engine="trt-llm"))[0].text


@pytest.mark.parametrize(("planned", "share"), [("vllm", 0.98), ("trt-llm", 0.9)])
def test_another_engine_fills_no_more_than_it_does_by_itself(launches: Read, planned: str, share: float) -> None:
    """What TensorRT-LLM was planned to fill (98 % of a device) left vLLM no room for its own graphs and buffers."""
    (launch,) = fleets(launches("llama"))
    memory = replace(launch.memory, usable_bytes=0.98 * launch.machine.memory_bytes)
    (text,) = (file.text for file in vllm.files(replace(launch, engine=planned, memory=memory)))
    assert f"--gpu-memory-utilization {share} " in text


def test_a_fleet_of_which_only_rates_are_known_is_asked_for_its_model(launches: Read, stubs: Path) -> None:
    launch = at_nebius(*fleets(launches("llama")))
    unknown = replace(launch.model, hf_id="", arch=None, config=None, parameters=0)
    bare = replace(launch, model=unknown, memory=None, batch=None, limits=None, buckets=())
    for engine, module in ENGINES.items():
        ((model, options),) = parsed(engine, [script_of(module.files(bare))], stubs)
        assert model == "/weights"
        assert options.gpu_memory_utilization is None if engine == "vllm" else options.mem_fraction_static is None
    for form in (skypilot, kubernetes):
        assert "MODEL" in form.files(bare)[0].text


def test_lengths_become_a_limit_that_the_plan_has_room_for(launches: Read) -> None:
    (launch,) = fleets(launches("llama"))
    assert context_tokens(launch) == 7600  # four means of 1900, a whole number of pages
    assert context_tokens(replace(launch, batch=1.0)) == 1904  # the cache holds no more than one request
    lengths = type(launch.fleet.input_length)
    spread = changed(launch, input_length=lengths(mean=1500, p95=4000))
    moments = spread.fleet.input_length.moments
    sigma = math.sqrt(moments.second_moment - moments.mean**2)
    p99 = moments.mean * math.exp(2.3263478740408408 * moments.sigma - moments.sigma**2 / 2)
    assert 0 <= context_tokens(spread) - max(1900 + 3 * sigma, p99 + 400) < 16
    classes = [{"tokens": 200, "share": 0.99}, {"tokens": 20_000, "share": 0.01}]
    rare = changed(launch, input_length=lengths.model_validate({"histogram": classes}))
    assert context_tokens(rare) == 20_400  # a rare long prompt is taken: three deviations end at 6,300
    assert "the longest classes" in vllm.files(rare)[0].text
    (long,) = fleets(launches("trace"))
    assert context_tokens(long) == 117_552  # the edges of the longest bucket, 113525/4027, in pages
    ours = replace(launch, buckets=(replace(long.buckets[0], name="200000/1", routed_requests_per_s=1.0),))
    assert context_tokens(ours) == launch.model.arch.max_positions


def test_the_routing_table_sends_every_request_somewhere(launches: Read) -> None:
    pools = fleets(launches("two-kinds"))
    tables = []
    for pool in pools:  # the second pool's script is refused: its part of the table is the plan's all the same
        if pool.machine.device.startswith("v100"):
            pool = changed(pool, weights="fp16")
        (text,) = [file.text for file in vllm.files(pool) if file.name.endswith(".json")]
        tables.append(json.loads(text))
    shares = zip(*([bucket["share"] for bucket in table["buckets"]] for table in tables))
    assert all(math.fsum(share) == pytest.approx(1.0, abs=1e-6) for share in shares)
    assert [table["pool"] for table in tables] == [pool.stem for pool in pools]
    (alone,) = fleets(launches("llama"))
    assert len(vllm.files(alone)) == 1  # one kind of request, one pool: nothing to route


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names_stay_words(engine: str, launches: Read, stubs: Path) -> None:
    (launch,) = fleets(launches("trace"))
    made = [ENGINES[engine].files(hostile(launch, name)) for name in NAMES]
    options = parsed(engine, [script_of(files) for files in made], stubs)
    plain = commands(script_of(ENGINES[engine].files(launch)))
    for name, files, (model, found) in zip(NAMES, made, options):
        assert found.served_model_name == (terminal(name).strip() or file_stem(name).lower())
        assert model in ("/weights", name)  # a name that is a repository's, else one to fill in
        assert len(commands(script_of(files))) == len(plain) + (model == "/weights")  # the line that asks for it
        for file in files:
            assert file.text.replace("\n", "").isprintable() or file.name.endswith(".json")
            assert not file.name.startswith((".", "-"))
            assert "/" not in file.name
            if file.name.endswith(".json"):
                json.loads(file.text)


def commands(script: str) -> list[str]:
    """Lines of a script that are no comments."""
    return [line for line in script.splitlines() if not line.startswith("#")]


def test_memory_is_what_the_plan_file_says(plans: dict[str, Any], launches: Read) -> None:
    for name, document in plans.items():
        rows = [row for workload in document["workloads"] if workload["kind"] == "serving"
                for row in workload["allocations"]]  # fmt: skip
        for row, launch in zip(rows, fleets(launches(name)), strict=True):
            terms = row["memory"]["terms_bytes"]
            assert launch.memory is not None
            assert launch.memory.usable_bytes == row["memory"]["usable_bytes"]
            assert launch.memory.workspace_bytes == terms["workspace"] + terms["overhead"]
            assert launch.memory.usable_bytes - launch.memory.workspace_bytes >= terms["weights"] + terms["kv_cache"]
            assert [bucket.routed_requests_per_s for bucket in launch.buckets] == row["routed_requests_per_s"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_base_model_is_said_to_refuse_chats(engine: str, launches: Read) -> None:
    launch = fleets(launches("llama"))[0]
    tuned = replace(launch, model=replace(launch.model, hf_id="meta-llama/Llama-3.1-70B-Instruct"))
    base, chats = (script_of(ENGINES[engine].files(one)) for one in (launch, tuned))
    assert "meta-llama/Llama-3.1-70B is a base model" in base.replace("\n# ", " ").replace("  ", " ")
    assert "base model" not in chats
