"""Pods of Kubernetes manifests: one container with its devices, share of the host, shared memory and probes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.export.header import Blank
from planner.export.kubernetes_nodes import resource_name, selectors, tolerations
from planner.export.launch import Machine
from planner.export.quoting import object_name
from planner.export.server import HEALTH, PORT

Manifest = dict[str, Any]  # an object of Kubernetes, whose types are its own
HOST_SHARE = 0.9  # of a node's processors and memory; the rest is the system's
SHARED_MEMORY = "16Gi"  # of the processes of one pod among themselves
GIB = 1024**3
PROBE_S = 10
TOKEN_SECRET = "hf-token"
TOKEN_NOTE = f"for gated models: kubectl create secret generic {TOKEN_SECRET} --from-literal=token=..."
CACHE = "/cache"  # of models, and of what engines compile


def pod(machine: Machine, container: Manifest, *, devices: int, restart: str | None = None) -> Manifest:
    """A pod's `spec:`; `container` has its name, image and script, and gets devices and mounts here.

    Parameters
    ----------
    machine
        What was rented: its resource, labels and taints, and the size of a host.
    container
        As `container` makes it, with probes or without.
    devices
        That the pod gets, of one node; processors and memory of the host go by its share of them.
    restart
        The pod's `restartPolicy`; None = that of Kubernetes.

    Raises
    ------
    NotExpressible
        Kubernetes has no resource for the device, or GKE no slices of it.
    """
    whole = {**container, "resources": _resources(machine, devices), "volumeMounts": _mounts()}
    spec: Manifest = {"containers": [whole], "volumes": _volumes(), "tolerations": tolerations(machine)}
    labels = selectors(machine)
    if labels:
        spec["nodeSelector"] = labels
    if restart:
        spec["restartPolicy"] = restart
    return spec


def container(
    name: str,
    image: str,
    lines: Sequence[str],
    blanks: Sequence[Blank],
    *,
    stem: str,
    token: bool = False,
    own_ip: str = "",
) -> Manifest:
    """A container that runs lines of a shell; it waits until the ConfigMap with what it must be told is there.

    Parameters
    ----------
    name, image, lines, blanks
        Its name and image, the script, and the variables that must be filled in.
    stem
        Of the launch, by which the ConfigMap is called.
    token
        Whether it may need a token of the hub.
    own_ip
        The variable that is to hold the pod's address; "" none.
    """
    env: list[Manifest] = [{"name": "XDG_CACHE_HOME", "value": CACHE}]  # hubs and engines keep models under it
    for blank in blanks:
        held_by = {"name": settings_name(stem), "key": blank.name}
        env.append({"name": blank.name, "valueFrom": {"configMapKeyRef": held_by}})
    if token:
        held = {"name": TOKEN_SECRET, "key": "token", "optional": True}
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": held}})
    if own_ip:
        env.append({"name": own_ip, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    found: Manifest = {"name": name, "image": image, "command": ["/bin/bash", "-c"]}
    found["args"] = [unexpanded("\n".join(lines) + "\n")]
    return found | {"env": env}


def settings_name(stem: str) -> str:
    """The ConfigMap of what the plan does not know.

    Examples
    --------
    >>> settings_name("Pre train")
    'pre-train-settings'
    """
    return f"{object_name(stem)}-settings"


def settings_notes(stem: str, blanks: Sequence[Blank]) -> list[str]:
    """How to make that ConfigMap, where anything is to be filled in."""
    if not blanks:
        return []
    given = " ".join(f"--from-literal={blank.name}=..." for blank in blanks)
    return [f"first: kubectl create configmap {settings_name(stem)} {given}; without it the pods wait"]


def unexpanded(text: str) -> str:
    """Text that reaches the shell as it is: Kubernetes itself expands $(NAME) in arguments, and reads $$ as $.

    Examples
    --------
    >>> unexpanded('echo "$HOME" $(HF_TOKEN) $$')
    'echo "$HOME" $$(HF_TOKEN) $$$$'
    """
    return re.sub(r"\$+(?=\()|\${2,}", lambda found: found[0] * 2, text)


def probes(start_s: int) -> Manifest:
    """The server's port, and when it counts as started (in so many seconds at most), ready and alive."""
    asked = {"httpGet": {"path": HEALTH, "port": PORT}, "periodSeconds": PROBE_S}
    return {
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": {**asked, "failureThreshold": -(-start_s // PROBE_S)},
        "readinessProbe": asked,
        "livenessProbe": {**asked, "failureThreshold": 6, "timeoutSeconds": 5},
    }


def metadata(name: str, labels: Mapping[str, str]) -> Manifest:
    """Name and labels of an object."""
    return {"name": name, "labels": dict(labels)}


def _resources(machine: Machine, devices: int) -> Manifest:
    """The devices, and the part of the host that goes with them."""
    held = {resource_name(machine): str(devices)}  # quantities are text
    part = HOST_SHARE * devices / machine.devices_per_node
    asked: Manifest = dict(held)
    if machine.vcpus:
        asked["cpu"] = str(max(int(machine.vcpus * part), 1))
    if machine.host_memory_bytes:
        asked["memory"] = f"{max(int(machine.host_memory_bytes * part / GIB), 1)}Gi"
    return {"requests": asked, "limits": held}


def _mounts() -> list[Manifest]:
    return [{"name": "shared-memory", "mountPath": "/dev/shm"}, {"name": "cache", "mountPath": CACHE}]


def _volumes() -> list[Manifest]:
    shared = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
    return [{"name": "shared-memory", "emptyDir": shared}, {"name": "cache", "emptyDir": {}}]
