"""Kubernetes manifests of one allocation: a Deployment or LeaderWorkerSet of replicas, or Jobs of training.

Objects of a fleet's allocation: pods of replicas, the service in front, the budget of what may be missing. Of training:
one Indexed Job a run, and the names by which its pods find the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.estimate.kernels import TPU_HOST_CHIPS
from planner.export import engine, file_text
from planner.export.chosen_program import planned_server, training_command
from planner.export.file_text import Blank, Expand, Target, commented, header_lines
from planner.export.kubernetes_pods import (
    TOKEN_NOTE,
    Manifest,
    container,
    fabric_notes,
    metadata,
    node_notes,
    pod,
    probes,
    settings_notes,
)
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.serving_command import PORT, Meeting, Server, routing_files, serving, start_s
from planner.export.trainer import RENDEZVOUS_PORT, Command, command_lines

IMAGE = Blank(name="TRAINER_IMAGE", meaning="the container image, which holds the trainer and PyTorch")
RETRIES_PER_NODE = 3  # a lost node ends the pods of all others too, and each pod that ends counts


def job_objects(launch: TrainingLaunch, command: Command) -> list[Manifest]:
    """A Job for each identical run, with a headless Service where its pods must find one another."""
    found: list[Manifest] = []
    for run in range(1, launch.jobs + 1):
        name = _name(launch, run)
        if launch.nodes_per_job > 1:
            found.append(_meeting_point(name, _run_labels(launch, run)))
        found.append(_job(launch, command, run))
    return found


def job_notes(launch: TrainingLaunch, command: Command) -> list[str]:
    """What the manifests need around them."""
    trainer = f"{command.target.name} {command.target.version}"
    notes = [f"apply it with: kubectl apply -f {launch.stem}.k8s.yaml"]
    notes += settings_notes(launch.stem, command.blanks)
    notes.append(f"put an image with {trainer} in place of {IMAGE.name}")
    notes.append("give the pods a volume that all of them see for data and checkpoints: the mounts here are empty")
    notes.append(TOKEN_NOTE)
    if launch.nodes_per_job > 1:
        notes.append("all pods of a run must start together: queue it with Kueue, Volcano or another gang scheduler")
    notes += fabric_notes(launch.machine, launch.nodes_per_job)
    return notes


def _name(launch: TrainingLaunch, run: int) -> str:
    name = file_text.object_name(launch.stem)
    return f"{name}-run-{run}" if launch.jobs > 1 else name


def _run_labels(launch: TrainingLaunch, run: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": _name(launch, run),
        "app.kubernetes.io/part-of": file_text.object_name(launch.workload),
    }


def _meeting_point(name: str, labels: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, labels),
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "rendezvous", "port": RENDEZVOUS_PORT, "targetPort": RENDEZVOUS_PORT}],
        },
    }


def _job(launch: TrainingLaunch, command: Command, run: int) -> Manifest:
    name, nodes = _name(launch, run), launch.nodes_per_job
    lines = ["set -euo pipefail", *_place(launch, run), *command_lines(launch, command)]
    one = container("trainer", IMAGE.name, lines, command.blanks, stem=launch.stem, token=True)
    spec = pod(launch.machine, one, devices=launch.machine.devices_per_node, restart="Never")
    if nodes > 1:
        spec["subdomain"] = name
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, _run_labels(launch, run)),
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            "backoffLimit": RETRIES_PER_NODE * nodes,
            "template": {"metadata": {"labels": _run_labels(launch, run)}, "spec": spec},
        },
    }


def _place(launch: TrainingLaunch, run: int) -> list[str]:
    """The address of the run's first pod, and which of the identical runs it is."""
    name = _name(launch, run)
    address = [f"export MASTER_ADDR={name}-0.{name}"] if launch.nodes_per_job > 1 else []
    return [*address, *([f"export RUN={run}"] if launch.jobs > 1 else [])]


MEETING = Meeting(rank=Expand('"$LWS_WORKER_INDEX"'), head=Expand('"$LWS_LEADER_ADDRESS"'))
SERVER_IMAGE = Blank(name="SERVER_IMAGE", meaning="the container image, which holds the engine")
LEADER = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
END_S = 120  # running requests may finish


def server_of(launch: ServingLaunch) -> Server:
    """The server of one pod: a replica, or a whole slice of TPUs, which pods cannot share."""
    return planned_server(launch, MEETING, together=None if launch.machine.device_kind == "tpu" else 1)


def fleet_objects(launch: ServingLaunch, server: Server) -> list[Manifest]:
    """Replicas, service, and where they apply the autoscaler and the disruption budget."""
    name, labels = file_text.object_name(launch.stem), _labels(launch)
    spans = launch.nodes_per_replica > 1
    replicas = _group_set(launch, server) if spans else _deployment(launch, server)
    found = [replicas, _service(name, {**labels, **(LEADER if spans else {})})]
    if launch.comes_and_goes:
        found.append(_autoscaler(launch, replicas, server.running_metric))
    if launch.fleet.spare_replicas:
        found.append(_budget(launch))
    return found


def fleet_notes(launch: ServingLaunch, server: Server) -> list[str]:
    """What the manifests need around them."""
    notes = [f"apply it with: kubectl apply -f {launch.stem}.k8s.yaml", *settings_notes(launch.stem, server.blanks)]
    if launch.nodes_per_replica > 1:
        notes.append("replicas of several nodes need the LeaderWorkerSet controller in the cluster")
    notes += fabric_notes(launch.machine, launch.nodes_per_replica)
    if launch.comes_and_goes:
        notes.append(
            f"replicas come and go with the load: a metrics adapter must serve {server.running_metric} of pods"
        )
    if not server.image:
        notes.append(f"put an image with {server.target.name} {server.target.version} in place of {SERVER_IMAGE.name}")
    notes.append(TOKEN_NOTE)
    return notes


def shared_notes(launch: ServingLaunch | TrainingLaunch) -> list[str]:
    """That the nodes are planned to be shared, and what that asks of the cluster."""
    if launch.on is None:
        return []
    others = ", ".join(launch.on.others) or "other replicas of its own"
    return [
        f"planned for a node that {others} run on too: apply the manifests with the most devices a pod first, on no "
        f"more than {launch.on.nodes} such nodes, so that pods fill them"
    ]


def pods_of(launch: ServingLaunch) -> tuple[int, int]:
    """How many pods (or groups of pods) there are, and the devices of each pod."""
    machine = launch.machine
    if machine.device_kind == "tpu":
        return machine.nodes, machine.devices_per_node
    if launch.nodes_per_replica > 1:
        return launch.replicas, machine.devices_per_node
    return launch.replicas, launch.devices_per_replica


def _labels(launch: ServingLaunch) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": file_text.object_name(launch.stem),
        "app.kubernetes.io/part-of": file_text.object_name(launch.workload),
    }


def _template(launch: ServingLaunch, server: Server, *, leader: bool) -> Manifest:
    """A pod of a replica; the first of several answers, the others only compute."""
    _, devices = pods_of(launch)
    spans = launch.nodes_per_replica > 1
    lines = ["set -eu", *server.lines(MEETING if spans else None)]
    own_ip = "VLLM_NIXL_SIDE_CHANNEL_HOST" if launch.role != "whole" else ""
    image = server.image or SERVER_IMAGE.name
    one = container("server", image, lines, server.blanks, stem=launch.stem, token=True, own_ip=own_ip)
    if leader:
        one |= probes(start_s(launch))
    spec = {**pod(launch.machine, one, devices=devices), "terminationGracePeriodSeconds": END_S}
    part = "server" if leader else "worker"
    return {"metadata": {"labels": {**_labels(launch), "app.kubernetes.io/component": part}}, "spec": spec}


def _deployment(launch: ServingLaunch, server: Server) -> Manifest:
    name, labels = file_text.object_name(launch.stem), _labels(launch)
    count, _ = pods_of(launch)
    rolling = {"maxSurge": 0, "maxUnavailable": max(launch.fleet.spare_replicas, 1)}  # no devices are idle to surge on
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, labels),
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": _template(launch, server, leader=True),
        },
    }


def _group_set(launch: ServingLaunch, server: Server) -> Manifest:
    count, _ = pods_of(launch)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata(file_text.object_name(launch.stem), _labels(launch)),
        "spec": {
            "replicas": count,
            "leaderWorkerTemplate": {
                "size": launch.nodes_per_replica,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _template(launch, server, leader=True),
                "workerTemplate": _template(launch, server, leader=False),
            },
            "startupPolicy": "LeaderCreated",
        },
    }


def _service(name: str, chosen: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, {key: value for key, value in chosen.items() if key not in LEADER}),
        "spec": {"selector": chosen, "ports": [{"name": "http", "port": PORT, "targetPort": PORT}]},
    }


def _autoscaler(launch: ServingLaunch, replicas: Manifest, metric: str) -> Manifest:
    name, most = file_text.object_name(launch.stem), replicas["spec"]["replicas"]
    running = int((engine.sequences(launch) or 1) * launch.fleet.target_load)
    target: Manifest = {"type": "AverageValue", "averageValue": str(max(running, 1))}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(name, _labels(launch)),
        "spec": {
            "scaleTargetRef": {"apiVersion": replicas["apiVersion"], "kind": replicas["kind"], "name": name},
            "minReplicas": max(launch.replicas_always * most // launch.replicas, 1),
            "maxReplicas": most,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": metric}, "target": target}}],
        },
    }


def _budget(launch: ServingLaunch) -> Manifest:
    """What drains and upgrades may take from the whole fleet: its spares. Each allocation's file holds the same."""
    whole = {"app.kubernetes.io/part-of": file_text.object_name(launch.workload)}
    answering = {**whole, "app.kubernetes.io/component": "server"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(f"{file_text.object_name(launch.workload)}-spares", whole),
        "spec": {"maxUnavailable": launch.fleet.spare_replicas, "selector": {"matchLabels": answering}},
    }


KUBERNETES = Target(
    name="Kubernetes", version="1.37, LeaderWorkerSet v1", read="2026-11-21",
    source="kubernetes-client/python:kubernetes/client/models, kubernetes-sigs/lws:api/leaderworkerset/v1",
)  # fmt: skip


def files(launch: Launch) -> list[ExportFile]:
    """The manifests of one allocation, in the order in which they are applied.

    Raises
    ------
    NotExpressible
        Kubernetes, or the program inside, has no words for it.
    """
    if isinstance(launch, ServingLaunch):
        fleet = serving(launch)
        notes = shared_notes(fleet)
        fleet = replace(fleet, on=None)  # pods have devices of their own, whoever else is on the node
        server = server_of(fleet)
        notes += [*fleet_notes(fleet, server), server.made_for, *node_notes(fleet.machine), *server.notes]
        blanks = server.blanks if server.image else (SERVER_IMAGE, *server.blanks)
        text = _written(fleet, fleet_objects(fleet, server), blanks, notes)
        return [ExportFile(name=f"{launch.stem}.k8s.yaml", text=text), *routing_files(fleet, KUBERNETES)]
    assert isinstance(launch, TrainingLaunch)
    if launch.machine.device_kind == "tpu" and launch.machine.devices_per_node > TPU_HOST_CHIPS:
        raise NotExpressible(f"{launch.machine.shape_name} has several hosts, one pod each, which JobSet starts")
    if launch.machine.device_kind == "tpu" and launch.nodes_per_job > 1:
        raise NotExpressible(
            f"{launch.nodes_per_job} slices are one job by what JobSet or XPK tells them of each other"
        )
    notes = shared_notes(launch)
    launch = replace(launch, on=None)  # as for a fleet
    command = training_command(launch)
    notes += [*job_notes(launch, command), *node_notes(launch.machine), *command.notes]
    text = _written(launch, job_objects(launch, command), (IMAGE, *command.blanks), notes)
    return [ExportFile(name=f"{launch.stem}.k8s.yaml", text=text)]


def _written(launch: Launch, objects: Sequence[Manifest], blanks: Sequence[Blank], notes: Sequence[str]) -> str:
    """Head and documents of one file."""
    head = commented(header_lines(launch, KUBERNETES, blanks, notes))
    return head + "---\n".join(file_text.yaml(document) for document in objects)
