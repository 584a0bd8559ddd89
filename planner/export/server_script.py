"""A server as a script of one node."""

from __future__ import annotations

from collections.abc import Callable

from planner.export.header import commented, demand, header_lines
from planner.export.launch import ExportFile, Launch, ServingLaunch
from planner.export.routing import routing_files
from planner.export.server import SCRIPT, SCRIPT_BLANKS, Meeting, Server, chosen_devices, replicas_together, serving

ServerOf = Callable[[ServingLaunch, Meeting], Server]


def script_files(launch: Launch, suffix: str, server_of: ServerOf) -> list[ExportFile]:
    """An engine's script of one allocation, and its row of the routing table.

    Parameters
    ----------
    launch
        The allocation.
    suffix
        Of the script's name.
    server_of
        The engine's `server`.

    Raises
    ------
    NotExpressible
        The engine has no words for it.
    """
    fleet = serving(launch)
    server = server_of(fleet, SCRIPT)
    text = script(fleet, server)
    return [ExportFile(name=f"{launch.stem}.{suffix}", text=text), *routing_files(fleet, server.target)]


def script(launch: ServingLaunch, server: Server) -> str:
    """The script: head, what to fill in, the command."""
    spans = launch.nodes_per_replica > 1
    blanks = (*server.blanks, *(SCRIPT_BLANKS if spans else ()))
    head = header_lines(launch, server.target, blanks, [*how_often(launch), *server.notes])
    asked = [demand(blank) for blank in SCRIPT_BLANKS] if spans else []
    body = ["set -eu", *asked, *chosen_devices(launch), *server.lines(SCRIPT if spans else None)]
    return "#!/usr/bin/env bash\n" + commented(head) + "\n".join(body) + "\n"


def how_often(launch: ServingLaunch) -> list[str]:
    """On how many nodes a script of one node runs, and what it makes."""
    nodes, replicas, spare = launch.machine.nodes, launch.replicas, launch.replicas - launch.replicas_needed
    each, together = launch.nodes_per_replica, replicas_together(launch)
    per = f"{each} nodes make one replica" if each > 1 else f"{together} replica{'s' * (together > 1)} a node"
    spares = f", {spare} of them spare" if spare else ""
    where = f"each of {nodes} nodes" if nodes > 1 else "the one node"
    if launch.on is not None:
        others = ", ".join(launch.on.others) or "other replicas of its own"
        where = f"node {launch.on.node + 1} of the {launch.on.nodes} that fleets share, beside {others}"
        per = f"devices {', '.join(map(str, launch.on.devices))} are its own there"
    return [f"run this on {where}: {per}, {replicas} in all{spares}"]
