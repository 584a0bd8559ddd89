"""SGLang's server for one allocation of a fleet: a script that starts what runs on one node."""

from __future__ import annotations

from planner.export import engine
from planner.export.command import Argument, Expand
from planner.export.header import Blank, Target
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch
from planner.export.routing import routing_files
from planner.export.server import (
    GROUP_PORT,
    PORT,
    SCRIPT,
    Meeting,
    Server,
    model_word,
    replicas_together,
    served_name,
    serving,
)
from planner.export.server_script import script

SGLANG = Target(
    name="SGLang", version="0.5.23", read="2026-11-21",
    source="sgl-project/sglang:python/sglang/srt/server_args.py, python/sglang/srt/arg_groups/fields",
)  # fmt: skip
FP8_CAPABILITY = 8.0  # least; python/sglang/srt/layers/quantization/fp8.py
ONLINE = {"fp8": "fp8"}  # quantised from a 16-bit checkpoint while it loads
CACHES = {"bf16": "bfloat16", "fp16": "auto", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
PAIR_NOTE = "the cache moves between pools by NIXL; put SGLang's router in front, with --pd-disaggregation"


def files(launch: Launch) -> list[ExportFile]:
    """The script of one allocation.

    Raises
    ------
    NotExpressible
        SGLang has no words for it.
    """
    fleet = serving(launch)
    text = script(fleet, server(fleet, SCRIPT))
    return [ExportFile(name=f"{launch.stem}.sglang.sh", text=text), *routing_files(fleet, SGLANG)]


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
        SGLang has no words for it.
    """
    if launch.machine.device_kind == "tpu":
        raise NotExpressible("SGLang's own package does not run on TPUs", "use vllm")
    engine.refuse_old_fp8(launch, SGLANG, FP8_CAPABILITY)
    if launch.layout.cp > 1:
        raise NotExpressible("the plan shares out the cache by decode context parallelism as vLLM does it", "use vllm")
    together = replicas_together(launch) if together is None else together
    model, model_blanks, model_notes = model_word(launch, (*engine.SIXTEEN_BITS, *ONLINE))
    draft = (Blank(name="DRAFT_MODEL", meaning="the draft model"),) if launch.fleet.speculative else ()
    pair = (PAIR_NOTE,) if launch.role != "whole" else ()
    return Server(
        target=SGLANG,
        words=("python3", "-m", "sglang.launch_server"),
        arguments=(
            ("--model-path", model),
            *_split(launch, meeting, together),
            *_limits(launch),
            *_formats(launch),
            *_ways(launch),
        ),
        follower="",
        blanks=(*model_blanks, *draft),
        notes=(*engine.engine_notes(launch, "sglang"), *model_notes, *pair),
        image=f"lmsysorg/sglang:v{SGLANG.version}",
        package=f"sglang=={SGLANG.version}",
        running_metric="sglang_num_running_reqs",
    )


def _split(launch: ServingLaunch, meeting: Meeting, together: int) -> list[Argument]:
    layout, nodes = launch.layout, launch.nodes_per_replica
    found: list[Argument] = [("--tp-size", layout.tp * layout.dp), ("--pp-size", layout.pp)]
    if layout.dp > 1 and together > 1:
        raise NotExpressible("SGLang takes replicas of a node or attention ranks of a replica, not both", "use vllm")
    if layout.dp > 1:
        found.append(("--attn-dp-size", layout.dp))
    if together > 1:
        found.append(("--dp-size", together))
    if layout.ep > 1:
        found.append(("--ep-size", layout.ep))
    if nodes > 1:
        address = Expand(f"{meeting.head}:{GROUP_PORT}")
        found += [("--nnodes", nodes), ("--node-rank", meeting.rank), ("--dist-init-addr", address)]
    return found


def _limits(launch: ServingLaunch) -> list[Argument]:
    sequences, tokens, share = engine.sequences(launch), engine.step_tokens(launch), engine.static_share(launch)
    found: list[Argument] = [("--context-length", engine.context_tokens(launch))]
    if sequences is not None:
        found.append(("--max-running-requests", sequences))
    if tokens is not None:
        found.append(("--chunked-prefill-size", tokens))
    if share is not None:
        found.append(("--mem-fraction-static", share))
    return found


def _formats(launch: ServingLaunch) -> list[Argument]:
    fleet = launch.fleet
    if fleet.kv_cache not in CACHES:
        raise NotExpressible(f"SGLang has no cache in {fleet.kv_cache}", "write kv_cache: fp8 or bf16, or use vllm")
    cache = CACHES[fleet.kv_cache]
    sixteen = engine.dtype(launch)
    if cache == "bfloat16" and sixteen == "float16":
        cache = "auto"  # the device has no bf16: the cache is kept as the rest is
    found: list[Argument] = [("--dtype", sixteen)]
    if fleet.weights in ONLINE:
        found.append(("--quantization", ONLINE[fleet.weights]))
    return [*found, ("--kv-cache-dtype", cache)]


def _ways(launch: ServingLaunch) -> list[Argument]:
    fleet = launch.fleet
    found: list[Argument] = []
    if fleet.speculative:
        length = fleet.speculative.length
        found += [
            ("--speculative-algorithm", "STANDALONE"),
            ("--speculative-draft-model-path", Expand('"$DRAFT_MODEL"')),
            ("--speculative-num-steps", length),
            ("--speculative-eagle-topk", 1),
            ("--speculative-num-draft-tokens", length + 1),
        ]
    if launch.role != "whole":
        found += [("--disaggregation-mode", launch.role), ("--disaggregation-transfer-backend", "nixl")]
    return [
        *found,
        ("--enable-metrics", None),
        ("--served-model-name", served_name(launch)),
        ("--host", "0.0.0.0"),
        ("--port", PORT),
    ]
