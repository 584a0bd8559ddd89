"""A SkyPilot task for one allocation: a service for the replicas of a fleet, a (managed) job for training."""

from __future__ import annotations

import math
from typing import Any

from planner.export import file_text
from planner.export.chosen_program import planned_server, training_command
from planner.export.file_text import Blank, Expand, Target, commented, header_lines
from planner.export.launch import ExportFile, Launch, Machine, NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.serving_command import HEALTH, PORT, Meeting, Server, routing_files, serving, start_s
from planner.export.skypilot_names import (
    BOUGHT,
    FABRICS,
    NODES,
    OWNED,
    PORTS,
    SPOTS,
    accelerators,
    cloud,
    fast_network,
    infra,
    instance_type,
    lacks,
    tpu_runtime,
)
from planner.export.trainer import command_lines, rendezvous_blanks

SKYPILOT = Target(
    name="SkyPilot", version="0.14.1", read="2026-11-21",
    source="skypilot-org/skypilot:sky/utils/schemas.py, sky/skylet/constants.py",
)  # fmt: skip
Part = dict[str, Any]  # of a task of SkyPilot, whose types are its own
MEETING = Meeting(rank=Expand('"$SKYPILOT_NODE_RANK"'), head=Expand('"$HEAD_ADDR"'))
HEAD = "HEAD_ADDR"
# sed reads to the end: a reader that leaves early ends the writer, and under pipefail the task
FIND_HEAD = HEAD + """="$(printf '%s\\n' "$SKYPILOT_NODE_IPS" | sed -n 1p)\""""
TOKEN = "HF_TOKEN"
PLAIN_DISK_GB = 256  # SkyPilot's own size of a disk
SYSTEM_DISK_GB = 100  # images and packages beside the weights
SPOT = ("spot",)


def files(launch: Launch) -> list[ExportFile]:
    """The task of one allocation.

    Raises
    ------
    NotExpressible
        SkyPilot, or the engine inside, has no words for it.
    """
    if isinstance(launch, ServingLaunch):
        fleet = serving(launch)
        if fleet.on is not None:
            raise NotExpressible(
                "SkyPilot gives every service nodes of its own", "write hardware: {share_nodes: false}"
            )
        _demand(fleet, PORTS, *([NODES] if fleet.nodes_per_replica > 1 else []))
        text = _service(fleet, planned_server(fleet, MEETING))
        return [ExportFile(name=f"{launch.stem}.sky.yaml", text=text), *routing_files(fleet, SKYPILOT)]
    assert isinstance(launch, TrainingLaunch)
    if launch.on is not None:
        raise NotExpressible("SkyPilot gives every job nodes of its own", "write hardware: {share_nodes: false}")
    _demand(launch, *([NODES] if launch.nodes_per_job > 1 else []))
    return [ExportFile(name=f"{launch.stem}.sky.yaml", text=_job(launch))]


def _demand(launch: Launch, *wanted: str) -> None:
    """Refuse what SkyPilot does not do on the cloud that was planned."""
    machine = launch.machine
    missing = lacks(machine, *wanted, *([SPOTS] if machine.price_model in SPOT else []))
    if missing:
        raise NotExpressible(f"SkyPilot {SKYPILOT.version} has no {' and no '.join(missing)} on {machine.provider}")


def _service(launch: ServingLaunch, server: Server) -> str:
    each = launch.nodes_per_replica
    lines = ["set -eu", *([FIND_HEAD] if each > 1 else []), *server.lines(MEETING if each > 1 else None)]
    task = {
        "name": file_text.object_name(launch.stem),
        "num_nodes": each,
        "resources": {**resources(launch.machine, _serving_disk_gb(launch)), **_network(launch, each), "ports": PORT},
        "service": _replicas(launch),
        **_asked(server.blanks, launch.model.hf_id),
        **({"setup": f"pip install {file_text.shell(server.package)}\n"} if server.package else {}),
        "run": "\n".join(lines) + "\n",
    }
    start = f"start it with: sky serve up {launch.stem}.sky.yaml{_options(task)}"
    setup = [] if server.package else [f"the nodes need {server.target.name}: add it as setup: or as image_id:"]
    notes = [start, server.made_for, *setup, *_place_notes(launch.machine), *_network_notes(launch, each)]
    notes += [*_autoscaling_notes(launch), *server.notes]
    return _written(launch, task, server.blanks, notes)


def _replicas(launch: ServingLaunch) -> Part:
    """The service: as many replicas as planned, or between those of a quiet hour and those of the peak."""
    count = launch.machine.nodes // launch.nodes_per_replica
    probe = {"path": HEALTH, "initial_delay_seconds": start_s(launch)}
    if not launch.comes_and_goes:
        return {"readiness_probe": probe, "replicas": count}
    rate = launch.requests_per_s * launch.replicas / count
    least = -(-launch.replicas_always * count // launch.replicas)
    policy = {"min_replicas": least, "max_replicas": count, "target_qps_per_replica": round(rate, 4)}
    return {"readiness_probe": probe, "replica_policy": policy}


def _autoscaling_notes(launch: ServingLaunch) -> list[str]:
    return ["replicas come and go with the load, as planned"] if launch.comes_and_goes else []


def _serving_disk_gb(launch: ServingLaunch) -> int:
    """Room for a checkpoint of 16 or 32 bits beside the system."""
    width = 4 if launch.fleet.weights == "fp32" else 2
    return SYSTEM_DISK_GB + math.ceil(launch.model.parameters * width / 1e9)


def resources(machine: Machine, disk_gb: int = 0) -> Part:
    """The `resources:` of one node, as the plan rents it.

    Raises
    ------
    NotExpressible
        SkyPilot has no name for the device, or the machine is a share of one.
    """
    if machine.shape_kind in ("mig", "share"):
        raise NotExpressible(f"{machine.shape_name} is a part of a device, which SkyPilot does not rent", "")
    held = accelerators(machine)
    if held is None:
        raise NotExpressible(f"SkyPilot {SKYPILOT.version} has no name for {machine.device}")
    found: Part = {"accelerators": held}
    place, kind, runtime = infra(machine), instance_type(machine), tpu_runtime(machine)
    if runtime:
        found["accelerator_args"] = {"runtime_version": runtime}
    if place:
        found["infra"] = place
    if kind:
        found["instance_type"] = kind
    if machine.price_model in SPOT:
        found["use_spot"] = True
    elif place:
        found["use_spot"] = False
    if disk_gb > PLAIN_DISK_GB:
        found["disk_size"] = disk_gb
    return found


def _place_notes(machine: Machine) -> list[str]:
    """Where SkyPilot cannot rent what was planned."""
    if machine.price_model == OWNED:
        return ["the plan uses machines of your own: add them as an SSH node pool, then set infra: ssh/POOL"]
    if cloud(machine) is None:
        return [
            f"SkyPilot {SKYPILOT.version} cannot rent from {machine.provider}: it takes its cheapest cloud with the "
            f"device, at another price than the plan's {machine.usd_per_node_hour:g} USD per node and hour"
        ]
    if machine.funding == "reserved" or machine.price_model.startswith(BOUGHT):
        return [f"the price is of {machine.price_model}, which is bought apart: SkyPilot starts machines on demand"]
    return []


def _network(launch: Launch, nodes: int) -> Part:
    """That nodes which work together want their fast network, where SkyPilot brings it up."""
    wanted = nodes > 1 and launch.machine.network_kind in FABRICS
    return {"network_tier": "best"} if wanted and fast_network(launch.machine) else {}


def _network_notes(launch: Launch, nodes: int) -> list[str]:
    """What of the network between nodes SkyPilot leaves to do."""
    fabric = FABRICS.get(launch.machine.network_kind, "")
    if nodes < 2 or not fabric or cloud(launch.machine) is None:
        return []
    if not fast_network(launch.machine):
        return [
            f"the plan counts on {fabric} between nodes, which SkyPilot does not bring up on "
            f"{launch.machine.provider}: an image that does is yours to give (image_id:); without it NCCL takes the "
            "hosts' Ethernet, far slower"
        ]
    aws = cloud(launch.machine) == "aws"
    one = "one EFA interface of a node is used unless SkyPilot's configuration has aws: {use_internal_ips: true}"
    return [one] if aws else []


def _asked(blanks: tuple[Blank, ...], hf_id: str) -> Part:
    """Variables that must be given at the start; a token where the weights are on the hub."""
    found: Part = {}
    if blanks:
        found["envs"] = {blank.name: None for blank in blanks}
    return found | ({"secrets": {TOKEN: None}} if hf_id else {})


def _options(task: Part) -> str:
    """What to give on SkyPilot's command line."""
    variables = "".join(f" --env {name}=..." for name in task.get("envs", {}))
    return variables + "".join(f" --secret {name}" for name in task.get("secrets", {}))


def _written(launch: Launch, task: Part, blanks: tuple[Blank, ...], notes: list[str]) -> str:
    return commented(header_lines(launch, SKYPILOT, blanks, notes)) + file_text.yaml(task)


def _job(launch: TrainingLaunch) -> str:
    nodes = launch.nodes_per_job
    command = training_command(launch)
    run = [blank for blank in rendezvous_blanks(launch) if blank.name != "MASTER_ADDR"]
    head = [FIND_HEAD.replace(HEAD, "MASTER_ADDR"), "export MASTER_ADDR"] if nodes > 1 else []
    task = {
        "name": file_text.object_name(launch.stem),
        "num_nodes": nodes,
        "resources": _recovering({**resources(launch.machine), **_network(launch, nodes)}),
        **_asked((*command.blanks, *run), launch.model.hf_id if command.from_hub else ""),
        "run": "\n".join(["set -euo pipefail", *head, *command_lines(launch, command)]) + "\n",
    }
    start = f"start it with: sky jobs launch {launch.stem}.sky.yaml{_options(task)}"
    setup = f"the nodes need {command.target.name} {command.target.version}: add it as setup: or as image_id:"
    notes = [start, setup, *_place_notes(launch.machine), *_network_notes(launch, nodes), *command.notes]
    return _written(launch, task, (*command.blanks, *run), notes)


def _recovering(found: Part) -> Part:
    """A spot node that is taken away is replaced where the plan rents it."""
    return {**found, "job_recovery": {"strategy": "FAILOVER"}} if found.get("use_spot") else found
