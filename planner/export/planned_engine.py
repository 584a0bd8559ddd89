"""The server of the engine that a fleet was planned for; vLLM where the plan names another or none."""

from __future__ import annotations

from planner.export import sglang, vllm
from planner.export.launch import ServingLaunch
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
    return vllm.server(launch, meeting, together=together)
