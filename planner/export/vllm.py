"""`vllm serve` for one allocation of a fleet: a script that starts what runs on one node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import MappingProxyType

from planner.estimate.serving import FEW_TOKENS
from planner.export import engine
from planner.export.file_text import Argument, Expand, Target
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch
from planner.export.serving_command import (
    GROUP_PORT,
    Meeting,
    Server,
    format_arguments,
    port_of,
    replicas_together,
    script_files,
    served_name,
    told,
)

VLLM = Target(
    name="vLLM", version="0.33.0", read="2026-11-21",
    source="vllm-project/vllm:vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py",
)  # fmt: skip
TPU_VERSION = "0.32.0"  # of vllm-tpu, the newest on 2026-11-21
TPU_NOTE = f"on TPUs vLLM is the package vllm-tpu, whose newest release is {TPU_VERSION}"
# the project's own image of a release for ROCm has the same tag; what pip installs by that name is for CUDA
ROCM_IMAGE = f"vllm/vllm-openai-rocm:v{VLLM.version}"
ROCM_NOTE = f"on AMD devices vLLM is its build for ROCm: the image {ROCM_IMAGE}; pip install vllm is that for CUDA"
# docs/getting_started/installation/gpu.xpu.inc.md of vllm-project/vllm, read on 2026-11-29
XPU_NOTE = "on GPUs of Intel vLLM is its build for XPU, from wheels of its own; pip install vllm is that for CUDA"
ONLINE = {"fp8": "fp8", "fp8-block": "fp8_per_block"}  # quantised from a 16-bit checkpoint while it loads
CACHES = {"bf16": "bfloat16", "fp16": "float16", "fp8": "fp8", "nvfp4": "nvfp4",
          "int8": "int8_per_token_head", "int4": "int4_per_token_head"}  # fmt: skip
# Whoever holds the cache: asked for it, or sending it. Only what sends takes a pipeline, and only of prompts
# (vllm-project/vllm pull request 45880, issue 52913; read on 2026-11-23): both ends must agree.
CACHE_PULLED, CACHE_PUSHED = "NixlConnector", "NixlPushConnector"
CACHE_ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
CACHE_MOVER_NOTE = (
    "the cache moves between pools by NIXL: set VLLM_NIXL_SIDE_CHANNEL_HOST to an address that the other pool reaches, "
    "and put a proxy in front that asks a prefill server first and a decode server then"
)


# Of tokens and whole experts: of prompts alone, of answers alone, of both; left out, all tokens are gathered on all
# ranks. Buffers of the kernels for answers hold a whole step for every expert, 120 GB of 8,192 tokens of DeepSeek-V3,
# and those for prompts turn CUDA graphs off (vllm 0.33.0: config/compilation.py, config/parallel.py and
# distributed/device_communicators/all2all.py, read on 2026-12-01)
EXCHANGES = {
    "DeepEP": {"prefill": "deepep_high_throughput", "decode": "deepep_low_latency", "whole": "deepep_v2"},
    "MoRI": {"prefill": "mori_high_throughput", "decode": "mori_low_latency", "whole": "mori_high_throughput"},
}
V2_NOTE = (
    "DeepEP's second version wants NCCL 2.30.4 or newer and network cards that the devices drive themselves (GIN): "
    "tools/ep_kernels of vLLM says how it is built"
)
HEAP_NOTE = (
    "MoRI keeps what ranks send in a heap of 2 GB: set MORI_SHMEM_HEAP_SIZE, as 12G, to more than a step of all ranks "
    "takes"
)
# beside which experts are computed by AITER, AMD's own kernels (vllm-project/vllm pull requests 28664 and 37529)
AITER = ("VLLM_ROCM_USE_AITER", "1")
# without which states of linear attention are not sent between pools: the server stops (vllm 0.33.0:
# distributed/kv_transfer/kv_connector/v1/nixl/base_worker.py)
SENT_STATES = ("VLLM_SSM_CONV_STATE_LAYOUT", "DS")
# Families of models whose class this version has no longer, and the last release that had it: it stops as it starts
# (vllm 0.33.0: model_executor/models/registry.py, read on 2026-12-01)
LEFT_MODELS = MappingProxyType(
    {"baichuan": "0.23.0", "bamba": "0.23.0", "dots1": "0.23.0", "internlm": "0.23.0", "minimax": "0.23.0",
     "minimax_m1": "0.23.0", "minimax_text_01": "0.23.0", "qwen": "0.23.0", "xverse": "0.23.0", "grok-1": "0.24.0",
     "mpt": "0.28.0"}
)  # fmt: skip


def files(launch: Launch) -> list[ExportFile]:
    """The script of one allocation; NotExpressible where vLLM has no words for it."""
    return script_files(launch, "vllm.sh", _of_script, _apart)


def _apart(launch: ServingLaunch) -> bool:
    """Whether replicas of one port would share experts out among each other, which the plan keeps apart."""
    return replicas_together(launch) > 1 and launch.model.arch is not None and launch.model.arch.is_moe


def _of_script(launch: ServingLaunch, meeting: Meeting) -> Server:
    return server(launch, meeting, together=1 if _apart(launch) else None)


def server(launch: ServingLaunch, meeting: Meeting, *, together: int | None = None) -> Server:
    """The command of one port.

    Parameters
    ----------
    launch
        The fleet's allocation.
    meeting
        How the nodes of a replica find each other, where there are several.
    together
        Replicas behind the port; default: those that share a node.

    Raises
    ------
    NotExpressible
        vLLM has no words for it.
    """
    engine.refuse_old(launch, VLLM, "vllm")
    _refuse_left(launch)
    engine.refuse_cut_blocks(launch, "vllm")
    engine.refuse_splits(launch, "vllm")
    together = replicas_together(launch) if together is None else together
    if together > 1 and launch.model.arch is not None and launch.model.arch.is_moe:
        raise NotExpressible(
            "vLLM spreads the experts over replicas that share a port, and the plan puts "
            f"{together} whole replicas on each node",
        )
    model, blanks, notes = told(launch, VLLM, tuple(ONLINE), CACHE_MOVER_NOTE)
    tpu, amd = launch.machine.device_kind == "tpu", launch.machine.vendor == "amd"
    image, package, own = f"vllm/vllm-openai:v{VLLM.version}", f"vllm=={VLLM.version}", []
    if tpu:
        image, package, own = f"vllm/vllm-tpu:v{TPU_VERSION}", f"vllm-tpu=={TPU_VERSION}", [TPU_NOTE]
    if amd:
        image, package, own = ROCM_IMAGE, "", [ROCM_NOTE]
    if launch.machine.vendor == "intel":
        package, own = "", [XPU_NOTE]
    sent = engine.exchange(launch)
    if sent == "MoRI":
        own.append(HEAP_NOTE)
    elif sent and _exchange(launch, sent) == EXCHANGES[sent]["whole"]:
        own.append(V2_NOTE)
    return Server(
        target=VLLM,
        words=("vllm", "serve", model),
        arguments=(
            *_split(launch, meeting, together),
            *_limits(launch),
            *format_arguments(launch, VLLM, ONLINE, CACHES),
            *_ways(launch),
        ),
        follower="--headless" if launch.nodes_per_replica > 1 else "",
        blanks=blanks,
        notes=(*notes, *own),
        image=image,
        package=package,
        running_metric="vllm_num_requests_running",
        environment=tuple(_environment(launch, sent)),
    )


def _refuse_left(launch: ServingLaunch) -> None:
    family = launch.model.arch.family if launch.model.arch else ""
    if last := LEFT_MODELS.get(family):
        raise NotExpressible(
            f"vLLM {VLLM.version} does not serve models of {family} any more: {last} was the last release that did",
            f"plan again with another engine, or serve with vllm=={last} what the plan says",
        )


def _environment(launch: ServingLaunch, sent: str) -> Iterator[tuple[str, str]]:
    if sent == "MoRI":
        yield AITER
    arch = launch.model.arch
    if launch.role in CACHE_ROLES and arch is not None and any(group.attention == "linear" for group in arch.layers):
        yield SENT_STATES


def _split(launch: ServingLaunch, meeting: Meeting, together: int) -> list[Argument]:
    layout, nodes = launch.layout, launch.nodes_per_replica
    found: list[Argument] = [
        ("--tensor-parallel-size", layout.tp),
        ("--pipeline-parallel-size", layout.pp),
    ]
    if layout.dp * together > 1:
        found.append(("--data-parallel-size", layout.dp * together))
    if layout.ep > 1:
        found.append(("--enable-expert-parallel", None))
    if sent := engine.exchange(launch):
        found.append(("--all2all-backend", _exchange(launch, sent)))
    if layout.cp > 1:
        found.append(("--decode-context-parallel-size", layout.cp))
    if nodes > 1:
        found += [("--nnodes", nodes), ("--node-rank", meeting.rank), ("--master-addr", meeting.head)]
        found.append(("--master-port", GROUP_PORT))
    if nodes > 1 and layout.dp > 1:
        found.append(("--data-parallel-address", meeting.head))
    return found


def _exchange(launch: ServingLaunch, sent: str) -> str:
    """The kernels by which tokens reach their experts: those for answers where a step holds few enough."""
    few = (engine.answered_tokens(launch) or FEW_TOKENS + 1) <= FEW_TOKENS
    return EXCHANGES[sent][launch.role if few or launch.role != "decode" else "whole"]


def _step_tokens(launch: ServingLaunch) -> int | None:
    """As planned, but where buffers are made for a whole step, and it has answers alone."""
    sent = engine.exchange(launch)
    if sent and _exchange(launch, sent) == EXCHANGES[sent]["decode"]:
        return engine.answered_tokens(launch)
    return engine.step_tokens(launch, "vllm")


def _limits(launch: ServingLaunch) -> list[Argument]:
    sequences, tokens, share = (
        engine.sequences(launch),
        _step_tokens(launch),
        engine.memory_share(launch, "vllm"),
    )
    found: list[Argument] = [("--max-model-len", engine.context_tokens(launch))]
    if sequences is not None:
        found.append(("--max-num-seqs", -(-sequences // launch.layout.dp)))  # of one data-parallel rank
    if tokens is not None:
        found.append(("--max-num-batched-tokens", tokens))
    if share is not None:
        found.append(("--gpu-memory-utilization", share))
    return found


def _ways(launch: ServingLaunch) -> list[Argument]:
    fleet = launch.fleet
    found: list[Argument] = []
    if engine.runs_own_code(launch):
        found.append(("--trust-remote-code", None))
    if engine.text_alone(launch):
        found.append(("--language-model-only", None))
    if fleet.prefix_cached:
        found.append(("--enable-prefix-caching", None))
    if fleet.speculative:
        other = ("--spec-model", engine.draft_repository(launch) or Expand('"$DRAFT_MODEL"'))
        own = ("--spec-method", "mtp")
        found += [own if engine.predicts_ahead(launch) else other, ("--spec-tokens", fleet.speculative.length)]
    if launch.role in CACHE_ROLES:
        mover = CACHE_PUSHED if launch.staged_prefill else CACHE_PULLED
        told = json.dumps({"kv_connector": mover, "kv_role": CACHE_ROLES[launch.role]})
        found.append(("--kv-transfer-config", told))
    return [*found, ("--served-model-name", served_name(launch)), ("--host", "0.0.0.0"), ("--port", port_of(launch))]
