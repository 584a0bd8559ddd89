"""The server of the engine that a fleet was planned for; vLLM where the plan names another or none."""

from __future__ import annotations

from planner.estimate.engines import engine_rules
from planner.export import sglang, vllm
from planner.export.launch import NotExpressible, ServingLaunch
from planner.export.server import Meeting, Server

SCRIPTS_ALONE = {"llama.cpp": "llama.cpp", "trt-llm": "TensorRT-LLM"}


def planned_server(launch: ServingLaunch, meeting: Meeting, *, together: int | None = None) -> Server:
    """The command of one port, as `vllm.server` and `sglang.server` make it.

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
        The engine has no words for it.
    """
    rules = engine_rules(launch.engine or launch.fleet.engine)
    name = rules.name if rules else ""
    if name == "sglang":
        return sglang.server(launch, meeting, together=together)
    if name in SCRIPTS_ALONE:
        raise NotExpressible(f"a server of {SCRIPTS_ALONE[name]} is exported as a script of its own alone")
    return vllm.server(launch, meeting, together=together)
