"""Which nodes of a cluster a pod may use: the device, its count, and the labels of the machine that was planned."""

from __future__ import annotations

import re

from planner.export.launch import Machine, NotExpressible

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
