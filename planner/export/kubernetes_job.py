"""Objects of a training allocation: one Indexed Job a run, and the names by which its pods find the first."""

from __future__ import annotations

from planner.export import quoting
from planner.export.header import Blank
from planner.export.kubernetes_nodes import fabric_notes
from planner.export.kubernetes_pods import TOKEN_NOTE, Manifest, container, metadata, pod, settings_notes
from planner.export.launch import TrainingLaunch
from planner.export.trainer import PORT, Command, command_lines

IMAGE = Blank(name="TRAINER_IMAGE", meaning="the container image, which holds the trainer and PyTorch")
RETRIES_PER_NODE = 3  # a lost node ends the pods of all others too, and each pod that ends counts


def job_objects(launch: TrainingLaunch, command: Command) -> list[Manifest]:
    """A Job for each identical run, with a headless Service where its pods must find one another."""
    found: list[Manifest] = []
    for run in range(1, launch.jobs + 1):
        name = _name(launch, run)
        if launch.nodes_per_job > 1:
            found.append(_meeting_point(name, _labels(launch, run)))
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
    name = quoting.object_name(launch.stem)
    return f"{name}-run-{run}" if launch.jobs > 1 else name


def _labels(launch: TrainingLaunch, run: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": _name(launch, run),
        "app.kubernetes.io/part-of": quoting.object_name(launch.workload),
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
            "ports": [{"name": "rendezvous", "port": PORT, "targetPort": PORT}],
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
        "metadata": metadata(name, _labels(launch, run)),
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            "backoffLimit": RETRIES_PER_NODE * nodes,
            "template": {"metadata": {"labels": _labels(launch, run)}, "spec": spec},
        },
    }


def _place(launch: TrainingLaunch, run: int) -> list[str]:
    """The address of the run's first pod, and which of the identical runs it is."""
    name = _name(launch, run)
    address = [f"export MASTER_ADDR={name}-0.{name}"] if launch.nodes_per_job > 1 else []
    return [*address, *([f"export RUN={run}"] if launch.jobs > 1 else [])]
