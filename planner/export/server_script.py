"""A server as a script of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.export.command import Expand, command_line
from planner.export.header import commented, demand, header_lines
from planner.export.launch import ExportFile, Launch, ServingLaunch
from planner.export.routing import routing_files
from planner.export.server import (
    SCRIPT,
    SCRIPT_BLANKS,
    Meeting,
    Server,
    chosen_devices,
    port_of,
    replicas_together,
    serving,
    visible,
)

ServerOf = Callable[[ServingLaunch, Meeting], Server]


def script_files(
    launch: Launch, suffix: str, server_of: ServerOf, apart: Callable[[ServingLaunch], bool]
) -> list[ExportFile]:
    """An engine's script of one allocation, and its row of the routing table.

    Parameters
    ----------
    launch
        The allocation.
    suffix
        Of the script's name.
    server_of
        The engine's `server`.
    apart
        Whether each replica of a node is a server of its own, behind a port of its own.

    Raises
    ------
    NotExpressible
        The engine has no words for it.
    """
    fleet = serving(launch)
    server = server_of(fleet, SCRIPT)
    text = servers_apart(fleet, server) if apart(fleet) else script(fleet, server)
    return [ExportFile(name=f"{launch.stem}.{suffix}", text=text), *routing_files(fleet, server.target)]


def script(launch: ServingLaunch, server: Server) -> str:
    """The script: head, what to fill in, the command."""
    spans = launch.nodes_per_replica > 1
    blanks = (*server.blanks, *(SCRIPT_BLANKS if spans else ()))
    head = header_lines(launch, server.target, blanks, [*how_often(launch), *server.notes])
    asked = [demand(blank) for blank in SCRIPT_BLANKS] if spans else []
    body = ["set -eu", *asked, *chosen_devices(launch), *server.lines(SCRIPT if spans else None)]
    return "#!/usr/bin/env bash\n" + commented(head) + "\n".join(body) + "\n"


def servers_apart(launch: ServingLaunch, server: Server) -> str:
    """The script of a node whose replicas are a server each: `server` is that of one of them."""
    together, port = replicas_together(launch), port_of(launch)
    ports = f"a node has {together} servers, at ports {port} to {port + together - 1}: put a balancer in front"
    head = header_lines(launch, server.target, server.blanks, [*how_often(launch), *server.notes, ports])
    own = [("--port", Expand('"$2"')) if name == "--port" else (name, value) for name, value in server.arguments]
    serve = f'export {visible(launch)}="$1"\nexec {command_line(server.words, own)}'
    body = ["set -eu", *map(demand, server.blanks), *each_replica(launch, serve, str)]
    return "#!/usr/bin/env bash\n" + commented(head) + "\n".join(body) + "\n"


def how_often(launch: ServingLaunch) -> list[str]:
    """On how many nodes a script of one node runs, and what it makes."""
    nodes, replicas, spare = launch.machine.nodes, launch.replicas, launch.replicas - launch.replicas_needed
    each, together = launch.nodes_per_replica, replicas_together(launch)
    per = f"{each} nodes make one replica" if each > 1 else f"{together} replica{'s' * (together > 1)} a node"
    spares = f", {spare} of them spare" if spare else ""
    if launch.machine.shape_kind == "mig":  # a slice counts as a node
        slices = f"each of {nodes} slices" if nodes > 1 else "the one slice"
        own = " and, where they lie on one host, a port of its own" if nodes > 1 else ""
        return [
            f"run this for {slices}, {replicas} in all{spares}: CUDA_VISIBLE_DEVICES=MIG-..., as nvidia-smi -L names "
            f"it, gives a server its slice{own}"
        ]
    where = f"each of {nodes} nodes" if nodes > 1 else "the one node"
    if launch.on is not None:
        others = ", ".join(launch.on.others) or "other replicas of its own"
        where = f"node {launch.on.node + 1} of the {launch.on.nodes} that fleets share, beside {others}"
        per = f"devices {', '.join(map(str, launch.on.devices))} are its own there"
    return [f"run this on {where}: {per}, {replicas} in all{spares}"]


def each_replica(launch: ServingLaunch, serve: str, named: Callable[[int], str]) -> Iterator[str]:
    """Lines that start a server for each replica of a node; all of them end when one does.

    Parameters
    ----------
    launch
        The allocation, of several replicas a node.
    serve
        Lines that become one server, whose devices are "$1" and whose port is "$2".
    named
        A device of the node as the engine names it.
    """
    size, port = launch.devices_per_replica, port_of(launch)
    first = launch.on.devices[0] if launch.on is not None else 0
    yield "serve() { # its devices and its port"
    yield "  " + serve.replace("\n", "\n  ")
    yield "}"
    yield "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
    for number in range(replicas_together(launch)):
        own = range(first + number * size, first + (number + 1) * size)
        yield f"serve {','.join(map(named, own))} {port + number} &"
    yield "wait -n"
