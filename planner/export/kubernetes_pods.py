"""Pods of Kubernetes manifests: one container with its devices, share of the host, shared memory and probes.

A pod may use nodes with the device in its count, and with the labels of the machine that was planned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.export.file_text import Blank, object_name
from planner.export.launch import Machine, NotExpressible
from planner.export.serving_command import HEALTH, PORT

RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "google": "google.com/tpu"}
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
# providers whose managed Kubernetes labels nodes with the names of our shapes and regions
MANAGED = ("aws", "azure", "gcp", "oci")
INSTANCE_PREFIX = {"azure": "Standard_"}
SPOT_LABELS = {
    "aws": {"eks.amazonaws.com/capacityType": "SPOT"},
    "azure": {"kubernetes.azure.com/scalesetpriority": "spot"},
    "gcp": {"cloud.google.com/gke-spot": "true"},
}
# GKE's names of TPU generations; AI-Hypercomputer/xpk:src/xpk/core/system_characteristics.py, seen 2026-11-21
TPU_SLICES = {
    "tpu-v4": "tpu-v4-podslice",
    "tpu-v5e": "tpu-v5-lite-podslice",
    "tpu-v5p": "tpu-v5p-slice",
    "tpu-v6e": "tpu-v6e-slice",
}
# what NVIDIA's feature discovery calls a product; recalled, and memory clocks may vary the name: check a node's labels
PRODUCTS = {
    "a10": "NVIDIA-A10",
    "a10g": "NVIDIA-A10G",
    "a100-pcie-40gb": "NVIDIA-A100-PCIE-40GB",
    "a100-pcie-80gb": "NVIDIA-A100-80GB-PCIe",
    "a100-sxm-40gb": "NVIDIA-A100-SXM4-40GB",
    "a100-sxm-80gb": "NVIDIA-A100-SXM4-80GB",
    "b200-sxm": "NVIDIA-B200",
    "gb200-nvl72": "NVIDIA-GB200",
    "gb300-nvl72": "NVIDIA-GB300",
    "gh200-96gb": "NVIDIA-GH200-480GB",
    "h100-pcie-80gb": "NVIDIA-H100-PCIe",
    "h100-sxm-80gb": "NVIDIA-H100-80GB-HBM3",
    "h200-sxm": "NVIDIA-H200",
    "l4": "NVIDIA-L4",
    "l40": "NVIDIA-L40",
    "l40s": "NVIDIA-L40S",
    "p100-pcie-16gb": "Tesla-P100-PCIE-16GB",
    "rtx-6000-ada": "NVIDIA-RTX-6000-Ada-Generation",
    "rtx-a6000": "NVIDIA-RTX-A6000",
    "t4": "Tesla-T4",
    "v100-pcie-32gb": "Tesla-V100-PCIE-32GB",
    "v100-sxm2-16gb": "Tesla-V100-SXM2-16GB",
}


def resource_name(machine: Machine) -> str:
    """What a pod asks for to get the device: "nvidia.com/gpu", or one profile of its slices.

    Raises
    ------
    NotExpressible
        The device has no resource of Kubernetes, or the machine is a share of one.
    """
    if machine.shape_kind == "share":
        raise NotExpressible(f"{machine.shape_name} is a share of a device, which Kubernetes does not give out")
    if machine.shape_kind == "mig":
        profile = machine.shape_name.rpartition("-")[2]
        return f"nvidia.com/mig-{profile}"
    name = RESOURCES.get(machine.vendor)
    if name is None:
        raise NotExpressible(f"no resource of Kubernetes is known for {machine.device}")
    return name


def selectors(machine: Machine) -> dict[str, str]:
    """Labels of the nodes that were planned, where they are known."""
    labels: dict[str, str] = {}
    if machine.device_kind == "tpu":
        labels = _tpu_labels(machine)
    elif machine.provider in MANAGED:
        prefix = INSTANCE_PREFIX.get(machine.provider, "")
        name = machine.shape_name if machine.shape_name.startswith(prefix) else prefix + machine.shape_name
        labels = {"node.kubernetes.io/instance-type": name}
    elif machine.device in PRODUCTS:
        labels = {"nvidia.com/gpu.product": PRODUCTS[machine.device]}
    if machine.provider in MANAGED:
        labels["topology.kubernetes.io/region"] = machine.region
    if machine.price_model == "spot":
        labels |= SPOT_LABELS.get(machine.provider, {})
    return {key: value for key, value in labels.items() if _LABEL.fullmatch(value)}


def _tpu_labels(machine: Machine) -> dict[str, str]:
    slices = TPU_SLICES.get(machine.family, TPU_SLICES.get(machine.device))
    if slices is None or not machine.torus:
        raise NotExpressible(f"GKE has no slices of {machine.device}")
    return {
        "cloud.google.com/gke-tpu-accelerator": slices,
        "cloud.google.com/gke-tpu-topology": "x".join(map(str, machine.torus)),
    }


def tolerations(machine: Machine) -> list[dict[str, str]]:
    """Taints that nodes with the device usually carry."""
    keys = [RESOURCES.get(machine.vendor, "nvidia.com/gpu")]
    if machine.price_model == "spot" and machine.provider in SPOT_LABELS:
        keys += list(SPOT_LABELS[machine.provider])
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


_FABRICS = {  # what gives a pod the network between nodes, by the kind of it
    "efa": "vpc.amazonaws.com/efa, of the aws-efa-k8s-device-plugin",
    "infiniband": "rdma/..., of NVIDIA's network operator or an RDMA device plugin",
    "roce": "rdma/... or the RDMA networks of the cloud's own multi-network",
    "gpudirect-tcpx": "GKE's networks for GPUDirect and its plugin of NCCL",
}


def fabric_notes(machine: Machine, nodes: int) -> list[str]:
    """That pods do not see the fast network between the nodes of a job or a replica unless they ask for it."""
    if nodes < 2 or machine.network_kind not in _FABRICS:
        return []
    asked = _FABRICS[machine.network_kind]
    return [
        f"the plan counts on the {machine.network_kind} network between nodes: give the pods {asked}; without it NCCL "
        "takes the pods' own network, which is far slower"
    ]


def node_notes(machine: Machine) -> list[str]:
    """What of the plan a manifest cannot hold."""
    notes = []
    found = selectors(machine)
    if machine.shape_kind == "mig":
        notes.append(f"{resource_name(machine)} is what NVIDIA's device plugin calls a slice with migStrategy: mixed")
    if machine.provider not in MANAGED:
        where = "your own machines" if machine.price_model == "owned" else f"machines rented from {machine.provider}"
        notes.append(f"the cluster is yours to make: {machine.nodes} × {machine.shape_name}, {where}")
    if not found:
        notes.append(f"no label of nodes with {machine.device} is known: add a nodeSelector of your cluster")
    elif "nvidia.com/gpu.product" in found:
        notes.append(
            "the label nvidia.com/gpu.product comes from NVIDIA's feature discovery: compare with kubectl get nodes -L"
        )
    return notes


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
