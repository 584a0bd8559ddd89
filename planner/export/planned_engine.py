"""The server of the engine that a fleet was planned for; vLLM where the plan names another or none."""

from __future__ import annotations

from planner.export import sglang, vllm
from planner.export.launch import NotExpressible, ServingLaunch
from planner.export.server import Meeting, Server


def planned_server(launch: ServingLaunch, meeting: Meeting, *, together: int | None = None) -> Server:
    """The command of one port, as `vllm.server` and `sglang.server` make it.

    Raises
    ------
    NotExpressible
        The engine has no words for it.
    """
    asked = (launch.engine or launch.fleet.engine or "").lower()
    if asked in ("sglang", "sgl"):
        return sglang.server(launch, meeting, together=together)
    if asked in ("llama.cpp", "llamacpp", "llama-cpp"):
        raise NotExpressible("a server of llama.cpp is exported as a script of its own alone")
    return vllm.server(launch, meeting, together=together)
