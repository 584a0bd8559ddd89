"""SGLang's server for one allocation of a fleet: a script that starts what runs on one node."""

from __future__ import annotations

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

SGLANG = Target(
    name="SGLang", version="0.5.23", read="2026-11-21",
    source="sgl-project/sglang:python/sglang/srt/server_args.py, python/sglang/srt/arg_groups/fields",
)  # fmt: skip
ROCM_NOTE = (
    f"on AMD devices SGLang is its build for ROCm: an image of lmsysorg/sglang-rocm, whose tags name the release "
    f"({SGLANG.version}), ROCm and the device; pip install sglang is that for CUDA"
)
# Tokens that a rank may send at once, without which SGLang does not start (of MoRI: a chunk of a prompt, 4,096 by
# default) or stops at a larger batch (of DeepEP: answers, 128): sglang 0.5.23, srt/environ.py and
# srt/arg_groups/moe_hook.py, read on 2026-12-01
SENT_TOKENS = {
    "DeepEP": "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
    "MoRI": "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
}
ONLINE = {"fp8": "fp8"}  # quantised from a 16-bit checkpoint while it loads
CACHES = {"bf16": "bfloat16", "fp16": "auto", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
PAIR_NOTE = "the cache moves between pools by NIXL; put SGLang's router in front, with --pd-disaggregation"


def files(launch: Launch) -> list[ExportFile]:
    """The script of one allocation; NotExpressible where SGLang has no words for it."""
    return script_files(launch, "sglang.sh", _of_script, _apart)


def _apart(launch: ServingLaunch) -> bool:
    """Whether replicas have attention ranks of their own: one server takes those, or several replicas."""
    return replicas_together(launch) > 1 and launch.layout.dp > 1


def _of_script(launch: ServingLaunch, meeting: Meeting) -> Server:
    return server(launch, meeting, together=1 if _apart(launch) else None)


def server(launch: ServingLaunch, meeting: Meeting, *, together: int | None = None) -> Server:
    """The command of one port, as `vllm.server` makes it.

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
        raise NotExpressible("SGLang's own package does not run on TPUs")
    engine.refuse_old(launch, SGLANG, "sglang")
    engine.refuse_cut_blocks(launch, "sglang")
    engine.refuse_splits(launch, "sglang")
    if launch.layout.cp > 1:
        raise NotExpressible("the plan shares out the cache by decode context parallelism as vLLM does it")
    together = replicas_together(launch) if together is None else together
    model, blanks, notes = told(launch, SGLANG, tuple(ONLINE), PAIR_NOTE)
    amd = launch.machine.vendor == "amd"
    return Server(
        target=SGLANG,
        words=("python3", "-m", "sglang.launch_server"),
        arguments=(
            ("--model-path", model),
            *_split(launch, meeting, together),
            *_limits(launch),
            *format_arguments(launch, SGLANG, ONLINE, CACHES),
            *_ways(launch),
        ),
        follower="",
        blanks=blanks,
        notes=(*notes, ROCM_NOTE) if amd else notes,
        image="" if amd else f"lmsysorg/sglang:v{SGLANG.version}",
        package="" if amd else f"sglang=={SGLANG.version}",
        running_metric="sglang_num_running_reqs",
        environment=_sent_tokens(launch),
    )


def _split(launch: ServingLaunch, meeting: Meeting, together: int) -> list[Argument]:
    layout, nodes = launch.layout, launch.nodes_per_replica
    found: list[Argument] = [("--tp-size", layout.tp * layout.dp), ("--pp-size", layout.pp)]
    if layout.dp > 1 and together > 1:
        raise NotExpressible("SGLang takes replicas of a node or attention ranks of a replica, not both")
    if layout.dp > 1:
        found.append(("--attn-dp-size", layout.dp))
    if together > 1:
        found.append(("--dp-size", together))
    if layout.ep > 1:
        found.append(("--ep-size", layout.ep))
    if sent := engine.exchange(launch):  # by default all tokens are gathered on all ranks
        found.append(("--moe-a2a-backend", sent.lower()))
        if sent == "DeepEP" and not _few(launch):  # more than its kernels for answers take
            found.append(("--deepep-mode", "normal"))
    if nodes > 1:
        address = Expand(f"{meeting.head}:{GROUP_PORT}")
        found += [("--nnodes", nodes), ("--node-rank", meeting.rank), ("--dist-init-addr", address)]
    return found


def _few(launch: ServingLaunch) -> bool:
    return (engine.answered_tokens(launch) or FEW_TOKENS + 1) <= FEW_TOKENS


def _sent_tokens(launch: ServingLaunch) -> tuple[tuple[str, str], ...]:
    """Variables that say how many tokens a rank sends at once."""
    sent, answers = engine.exchange(launch), engine.answered_tokens(launch)
    if not sent or answers is None or (sent == "DeepEP" and not _few(launch)):
        return ()
    chunk = -(-(engine.step_tokens(launch, "sglang") or 0) // launch.layout.dp) if sent == "MoRI" else 0
    return ((SENT_TOKENS[sent], f"{max(answers, chunk)}"),)


def _limits(launch: ServingLaunch) -> list[Argument]:
    sequences, tokens = engine.sequences(launch), engine.step_tokens(launch, "sglang")
    share = engine.static_share(launch, "sglang")
    found: list[Argument] = [("--context-length", engine.context_tokens(launch))]
    if sequences is not None:
        found.append(("--max-running-requests", sequences))
    if tokens is not None:
        found.append(("--chunked-prefill-size", tokens))
    if share is not None:
        found.append(("--mem-fraction-static", share))
    return found


def _ways(launch: ServingLaunch) -> list[Argument]:
    fleet = launch.fleet
    found: list[Argument] = []
    if engine.runs_own_code(launch):
        found.append(("--trust-remote-code", None))
    if engine.text_alone(launch):
        found.append(("--language-model-only", None))
    if fleet.speculative:
        length = fleet.speculative.length
        other = [
            ("--speculative-algorithm", "STANDALONE" if fleet.speculative.model else "EAGLE3"),
            ("--speculative-draft-model-path", engine.draft_repository(launch) or Expand('"$DRAFT_MODEL"')),
        ]
        found += [
            *([("--speculative-algorithm", "EAGLE")] if engine.predicts_ahead(launch) else other),
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
        ("--port", port_of(launch)),
    ]
