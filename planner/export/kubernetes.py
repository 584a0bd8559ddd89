"""Kubernetes manifests of one allocation: a Deployment or LeaderWorkerSet of replicas, or Jobs of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.estimate.kernels import TPU_HOST_CHIPS
from planner.export import quoting
from planner.export.header import Blank, Target, commented, header_lines
from planner.export.kubernetes_fleet import SERVER_IMAGE, fleet_notes, fleet_objects, server_of, shared_notes
from planner.export.kubernetes_job import IMAGE, job_notes, job_objects
from planner.export.kubernetes_nodes import node_notes
from planner.export.kubernetes_pods import Manifest
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.routing import routing_files
from planner.export.server import serving
from planner.export.trainers import training_command

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
    command = training_command(launch)
    notes = [*job_notes(launch, command), *node_notes(launch.machine), *command.notes]
    text = _written(launch, job_objects(launch, command), (IMAGE, *command.blanks), notes)
    return [ExportFile(name=f"{launch.stem}.k8s.yaml", text=text)]


def _written(launch: Launch, objects: Sequence[Manifest], blanks: Sequence[Blank], notes: Sequence[str]) -> str:
    """Head and documents of one file."""
    head = commented(header_lines(launch, KUBERNETES, blanks, notes))
    return head + "---\n".join(quoting.yaml(document) for document in objects)
