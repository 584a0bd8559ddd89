"""`trtllm-serve` of TensorRT-LLM for one allocation of a fleet: a script of one node, and the YAML that it reads.

What its command line has no option for stands in that file, and the cache's share of free memory too: a
`kv_cache_config` there takes the place of the one that the command line makes. Replicas of a node are servers of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.estimate.engines import ENGINES
from planner.estimate.kernels import left_behind
from planner.export import engine, file_text
from planner.export.file_text import Argument, Blank, Expand, Target, command_line, commented, demand, header_lines
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch
from planner.export.serving_command import (
    chosen_devices,
    each_replica,
    how_often,
    port_of,
    replicas_together,
    routing_files,
    serving,
    told,
)

TRTLLM = Target(
    name="TensorRT-LLM", version="commit 00209af", read="2026-11-25",
    source="NVIDIA/TensorRT-LLM:tensorrt_llm/commands/serve.py, tensorrt_llm/llmapi/llm_args.py",
)  # fmt: skip
# Of weights (NVIDIA/TensorRT-LLM:docs/source/features/quantization.md, read on 2026-11-25): a checkpoint holds them
# ready. A cache in 16 bits is that of the checkpoint.
CHECKPOINTS = ("fp8", "fp8-block", "int4", "mxfp4", "nvfp4")
CACHES = {"bf16": "auto", "fp16": "auto", "fp8": "fp8", "nvfp4": "nvfp4"}
PAIR_NOTE = (
    "the cache moves between pools by NIXL: put trtllm-serve disaggregated in front, whose file names the addresses of "
    "the prefill pool under context_servers and those of the decode pool under generation_servers"
)


def files(launch: Launch) -> list[ExportFile]:
    """The script of one allocation, its YAML of further options, and its row of the routing table.

    Raises
    ------
    NotExpressible
        TensorRT-LLM has no words for it.
    """
    assert isinstance(launch, ServingLaunch)
    _demand(launch)
    fleet, options = serving(launch), f"{launch.stem}.trtllm.yaml"
    model, blanks, notes = told(fleet, TRTLLM, (), PAIR_NOTE)
    head = header_lines(fleet, TRTLLM, blanks, [*how_often(fleet), *notes, *_notes(fleet, options)])
    body = "\n".join(["set -eu", *_lines(fleet, model, blanks, options)])
    script = f"#!/usr/bin/env bash\n{commented(head)}{body}\n"
    further = commented(header_lines(fleet, TRTLLM)) + file_text.yaml(further_options(fleet))
    return [
        ExportFile(name=f"{fleet.stem}.trtllm-serve.sh", text=script),
        ExportFile(name=options, text=further),
        *routing_files(fleet, TRTLLM),
    ]


def _demand(launch: ServingLaunch) -> None:
    """Refuse what it does not do."""
    fleet, layout, machine = launch.fleet, launch.layout, launch.machine
    if machine.vendor not in ENGINES["trt-llm"].vendors or left_behind("trt-llm", machine.family):
        raise NotExpressible(f"TensorRT-LLM does not run on {machine.device}")
    if fleet.weights not in (*engine.SIXTEEN_BITS, *CHECKPOINTS):
        raise NotExpressible(f"TensorRT-LLM has no checkpoints in {fleet.weights}", "write weights: bf16, fp8 or int4")
    if fleet.weights.startswith("fp8") and machine.formats and "fp8" not in machine.formats:
        raise NotExpressible(f"TensorRT-LLM does not serve fp8 weights on {machine.device}", "write weights: bf16")
    if fleet.kv_cache not in CACHES:
        raise NotExpressible(f"TensorRT-LLM has no cache in {fleet.kv_cache}", "write kv_cache: fp8 or bf16")
    if fleet.speculative:
        raise NotExpressible("TensorRT-LLM's options of draft models were not read", "leave speculative out")
    if layout.cp > 1:
        raise NotExpressible("the plan shares out the cache by decode context parallelism as vLLM does it")
    if min(layout.tp, layout.dp) > 1:
        raise NotExpressible(
            "TensorRT-LLM splits attention over all ranks of a stage or gives each its own requests",
            "write layout: {dp: 1}",
        )
    if launch.nodes_per_replica > 1:
        raise NotExpressible(
            "TensorRT-LLM joins the nodes of a replica by MPI, under a launcher of its own", "allow larger machines"
        )


def arguments(launch: ServingLaunch, options: str) -> list[Argument]:
    """Options of one replica's server, but for its address.

    Parameters
    ----------
    launch
        A fleet's allocation that TensorRT-LLM serves.
    options
        Name of the file of further options, beside the script.
    """
    layout, sequences, step = launch.layout, engine.sequences(launch), engine.step_tokens(launch, "trt-llm")
    found: list[Argument] = [
        ("--backend", "pytorch"),
        ("--tp_size", layout.tp * layout.dp),
        ("--pp_size", layout.pp),
    ]
    if layout.ep > 1:
        found.append(("--ep_size", layout.ep))
    if sequences is not None:
        found.append(("--max_batch_size", -(-sequences // layout.dp)))  # of one rank that has its own requests
    if step is not None:
        found.append(("--max_num_tokens", step))
    if engine.runs_own_code(launch):
        found.append(("--trust_remote_code", None))
    return [
        *found,
        ("--max_seq_len", engine.context_tokens(launch)),
        ("--enable_chunked_prefill", None),  # without it a prompt longer than a step is refused
        ("--extra_llm_api_options", Expand(f'"$(dirname "$0")"/{file_text.shell(options)}')),
        ("--host", "0.0.0.0"),
    ]


def further_options(launch: ServingLaunch) -> dict[str, Any]:
    """What stands in the YAML: number formats, the cache, attention by rank, and a pool's part."""
    cache: dict[str, Any] = {"dtype": CACHES[launch.fleet.kv_cache]}
    if launch.fleet.prefix_cached:
        cache["enable_block_reuse"] = True
    share = engine.free_share(launch, "trt-llm")
    if share is not None:
        cache["free_gpu_memory_fraction"] = share
    found: dict[str, Any] = {"dtype": engine.dtype(launch), "kv_cache_config": cache}
    if launch.layout.dp > 1:
        found["enable_attention_dp"] = True
    if launch.role != "whole":
        found["cache_transceiver_config"] = {"backend": "NIXL"}
    if launch.role == "prefill":
        found["disable_overlap_scheduler"] = True
    return found


def _lines(launch: ServingLaunch, model: object, blanks: tuple[Blank, ...], options: str) -> Iterator[str]:
    """The server; or a server for each replica of a node, all of which end when one does."""
    yield from map(demand, blanks)
    words, together = ("trtllm-serve", model), replicas_together(launch)
    if together == 1:
        yield from chosen_devices(launch)
        yield "exec " + command_line(words, [*arguments(launch, options), ("--port", port_of(launch))])
        return
    own = command_line(words, [*arguments(launch, options), ("--port", Expand('"$2"'))])
    yield from each_replica(launch, f'export CUDA_VISIBLE_DEVICES="$1"\nexec {own}', lambda device: str(device))


def _notes(launch: ServingLaunch, options: str) -> Iterator[str]:
    yield f"{options} belongs beside this script"
    if launch.fleet.weights not in engine.SIXTEEN_BITS and launch.fleet.kv_cache in engine.SIXTEEN_BITS:
        yield "a checkpoint that says fp8 of its cache has a smaller one than was planned"
    together, port = replicas_together(launch), port_of(launch)
    if together > 1:
        yield f"a node has {together} servers, at ports {port} to {port + together - 1}: put a balancer in front"
