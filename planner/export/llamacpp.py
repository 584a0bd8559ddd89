"""`llama-server` of llama.cpp for one allocation of a fleet: a script that starts what runs on one node.

A slot holds the longest request that is sent, so that no answer ends because others took its room: the context is as
many slots as the memory that the plan left for the cache holds, at most those that were planned at once. Tensors are
split by `--split-mode tensor`, stages by `layer`; several replicas of a node are several servers, a port each.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.equations.serving_memory import LOCAL_STEP_TOKENS
from planner.estimate.engines import ENGINES, no_split, runs_on
from planner.estimate.serving_step import sequence_cache_bytes
from planner.export import engine
from planner.export.file_text import Argument, Blank, Expand, Target, command_line, commented, demand, header_lines
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch
from planner.export.serving_command import (
    each_replica,
    how_often,
    port_of,
    replicas_together,
    routing_files,
    served_name,
)

LLAMACPP = Target(
    name="llama.cpp", version="commit 00dc805", read="2026-11-23",
    source="ggml-org/llama.cpp:tools/server/README.md, docs/multi-gpu.md",
)  # fmt: skip
CACHES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "int8": "q8_0", "int4": "q4_0",
          **{name: name for name in ("q8_0", "q5_0", "q4_1", "q4_0")}}  # fmt: skip
# ggml-org/llama.cpp issue 28455 and pull request 28456, read on 2026-11-30; of AMD's nothing was read
CACHES_BUILT_APART = frozenset({"q4_1", "q5_0"})
BACKENDS = {"nvidia": "CUDA", "amd": "ROCm", "intel": "SYCL", "huawei": "CANN"}  # and numbers: names of its devices


def files(launch: Launch) -> list[ExportFile]:
    """The script of one allocation, and its row of the routing table.

    Raises
    ------
    NotExpressible
        llama.cpp has no words for it.
    """
    assert isinstance(launch, ServingLaunch)
    _demand(launch)
    together = replicas_together(launch)
    model = Blank(name="MODEL", meaning=f"the weights: a GGUF file in {launch.fleet.weights}, the first of several")
    notes = [*how_often(launch), *_notes(launch, together)]
    head = commented(header_lines(launch, LLAMACPP, (model,), notes))
    body = ["set -eu", demand(model), *_lines(launch, together)]
    text = "#!/usr/bin/env bash\n" + head + "\n".join(body) + "\n"
    return [ExportFile(name=f"{launch.stem}.llama-server.sh", text=text), *routing_files(launch, LLAMACPP)]


def _demand(launch: ServingLaunch) -> None:
    """Refuse what it does not do."""
    fleet, layout, machine = launch.fleet, launch.layout, launch.machine
    rules = ENGINES["llama.cpp"]
    if not runs_on(rules, machine.vendor, machine.device_kind):
        raise NotExpressible(f"llama.cpp has no backend for {machine.device}")
    if machine.shape_kind == "share":
        raise NotExpressible(f"{machine.shape_name} is a share of a device, of which engines have no notion")
    if fleet.weights not in rules.formats:
        raise NotExpressible(f"llama.cpp has no files in {fleet.weights}", "write weights: q4_k_m, or bf16")
    if fleet.kv_cache not in CACHES:
        raise NotExpressible(f"llama.cpp has no cache in {fleet.kv_cache}", "write kv_cache: fp16")
    if launch.role != "whole":
        raise NotExpressible("llama.cpp works on prompts and answers in one pool", "write disaggregated: false")
    split = {name: getattr(layout, name) for name in ("tp", "pp", "dp", "ep", "cp")}
    family = launch.model.arch.family if launch.model.arch else ""
    reason, way = no_split(
        "llama.cpp", split, machine_devices=machine.devices_per_node, joined_devices=machine.devices_per_node,
        vendor=machine.vendor, family=family, kv_cache=fleet.kv_cache,
    )  # fmt: skip
    if reason:
        raise NotExpressible(reason, way)
    if fleet.speculative:
        raise NotExpressible("llama.cpp's options of speculative decoding were not read", "leave speculative out")


def slots(launch: ServingLaunch) -> int:
    """Requests at once for the longest of which the cache has room: at most those that were planned.  [count]"""
    planned = engine.sequences(launch) or 1
    memory, arch = launch.memory, launch.model.arch
    if memory is None or arch is None or not arch.layers:
        return planned
    longest, layout = engine.context_tokens(launch), launch.layout
    each = float(sequence_cache_bytes(arch, launch.fleet.kv_cache, longest, layout.tp)) / layout.pp
    return max(min(planned, int(memory.cache_room_bytes // each)), 1)


def arguments(launch: ServingLaunch) -> list[Argument]:
    """Options of one replica's server, but for its devices and its port.

    Parameters
    ----------
    launch
        A fleet's allocation that llama.cpp serves.
    """
    layout, cache, step = launch.layout, CACHES[launch.fleet.kv_cache], engine.step_tokens(launch, "llama.cpp")
    size = layout.tp * layout.pp
    found: list[Argument] = [
        ("--n-gpu-layers", "all"),
        ("--split-mode", "tensor" if layout.tp > 1 else "layer" if layout.pp > 1 else "none"),
    ]
    if size > 1:
        found.append(("--tensor-split", ",".join(["1"] * size)))
    found += [("--ctx-size", slots(launch) * engine.context_tokens(launch)), ("--parallel", slots(launch))]
    found.append(("--no-kv-unified", None))  # a slot keeps its own share of the context
    if step is not None:
        found += [("--batch-size", step), ("--ubatch-size", min(step, int(LOCAL_STEP_TOKENS)))]
    return [
        *found,
        ("--cache-type-k", cache),
        ("--cache-type-v", cache),
        ("--flash-attn", "on"),
        ("--fit", "off"),  # nothing is changed to make it fit: the plan says that it does
        ("--metrics", None),
        ("--alias", served_name(launch)),
        ("--host", "0.0.0.0"),
    ]


def _lines(launch: ServingLaunch, together: int) -> Iterator[str]:
    """The server; or a server for each replica of a node, all of which end when one does."""
    words = ("llama-server", "--model", Expand('"$MODEL"'))
    backend = BACKENDS.get(launch.machine.vendor, "GPU")
    if together == 1:
        own = ",".join(f"{backend}{device}" for device in launch.on.devices) if launch.on is not None else ""
        chosen: list[Argument] = [("--device", own)] if own else []
        yield "exec " + command_line(words, [*arguments(launch), *chosen, ("--port", port_of(launch))])
        return
    more: list[Argument] = [("--device", Expand('"$1"')), ("--port", Expand('"$2"'))]
    serve = "exec " + command_line(words, [*arguments(launch), *more])
    yield from each_replica(launch, serve, lambda device: f"{backend}{device}")


def _notes(launch: ServingLaunch, together: int) -> Iterator[str]:
    yield from engine.engine_notes(launch, LLAMACPP.name)
    planned, held = engine.sequences(launch) or 1, slots(launch)
    if held < planned:
        yield (
            f"each slot has room for the longest request: {held} at once in place of the {planned} of mean length that "
            "the plan counts on"
        )
    port = port_of(launch)
    if together > 1:
        yield f"a node has {together} servers, at ports {port} to {port + together - 1}: put a balancer in front"
    if launch.machine.vendor == "nvidia" and CACHES[launch.fleet.kv_cache] in CACHES_BUILT_APART:
        yield (
            f"built as it is by default llama.cpp attends over a cache in {launch.fleet.kv_cache} on the processor of "
            "the host, many times slower: build it with -DGGML_CUDA_FA_ALL_QUANTS=ON"
        )
    if launch.layout.tp > 1:
        yield "splitting tensors is experimental in llama.cpp: hold its answers against those of one device"
    if launch.fleet.weights not in engine.SIXTEEN_BITS:
        yield f"llama-quantize makes a file in {launch.fleet.weights} of one in 16 bits"
