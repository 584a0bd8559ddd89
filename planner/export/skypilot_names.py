"""What SkyPilot calls our clouds, machines and devices; what it does not know is said, never guessed.

The machines of our price lists carry SkyPilot's own names (hardware/README.md), so that an instance type tells exactly
what was planned; the name of its accelerator is that of SkyPilot's catalog, which differs by cloud here and there.
"""

from __future__ import annotations

from planner.catalog.importers.tool_lists import SKYPILOT_FOLDERS
from planner.export.launch import Launch, Machine

# clouds of SkyPilot 0.14.1: sky/skylet/constants.py, ALL_CLOUDS; those whose prices and machines our catalog knows
CLOUDS = {
    **{name: name for name in ("aws", "azure", "gcp", "hyperbolic", "lambda", "mithril", "nebius", "oci",
                               "primeintellect", "runpod", "verda")},
    **{ours: theirs for theirs, ours in SKYPILOT_FOLDERS.items()},
}  # fmt: skip
ZONED = ("gcp",)  # our zones are SkyPilot's there; AWS's are ids of zones, which differ by account
INSTANCE_PREFIX = {"azure": "Standard_"}
OWNED = "owned"
BOUGHT = ("commitment", "reserved", "block", "calendar", "flex", "auction")

# What SkyPilot 0.14.1 does not do on its clouds, of what a plan may ask for: sky/clouds/*.py in the wheel, seen
# 2026-11-23 (Verda joins nodes behind a switch of its environment that is off)
PORTS, NODES, SPOTS = "open ports", "several nodes", "spot machines"
LACKS: dict[str, tuple[str, ...]] = {
    "do": (SPOTS,),
    "hyperbolic": (PORTS, NODES, SPOTS),
    "lambda": (SPOTS,),
    "mithril": (PORTS,),
    "primeintellect": (NODES,),
    "runpod": (NODES,),
    "verda": (PORTS, NODES),
}
# Where `network_tier: best` brings up the network between nodes: sky/clouds/aws.py (_EFA_INSTANCE_TYPE_PREFIXES),
# sky/provision/gcp/constants.py and sky/provision/nebius/constants.py in the wheel of 0.14.1, seen 2026-11-29
FABRICS = {"efa": "EFA", "infiniband": "InfiniBand", "roce": "RoCE", "gpudirect-tcpx": "GPUDirect-TCPX"}
EFA_PREFIXES = ("g4dn.", "g5.", "g6.", "gr6.", "g6e.", "g7e.", "p4d.", "p4de.", "p5.", "p5e.", "p5en.", "p6-b200.",
                "p6-b300.")  # fmt: skip
TCPX_MACHINES = ("a3-edgegpu-8g", "a3-highgpu-8g")
INFINIBAND_DEVICES, INFINIBAND_COUNT = ("h100-sxm-80gb", "h200-sxm", "b200-sxm", "b300-sxm"), 8  # on Nebius

# accelerators by device, as in skypilot-org/skypilot-catalog, catalogs/v8, seen 2026-11-21
ACCELERATORS = {
    "a10": "A10",
    "a10g": "A10G",
    "a100-pcie-40gb": "A100",
    "a100-pcie-80gb": "A100-80GB",
    "a100-sxm-40gb": "A100",
    "a100-sxm-80gb": "A100-80GB",
    "b200-sxm": "B200",
    "b300-sxm": "B300",
    "gb200-nvl72": "GB200",
    "gb300-nvl72": "GB300",
    "gh200-96gb": "GH200",
    "h100-pcie-80gb": "H100",
    "h100-sxm-80gb": "H100",
    "h200-sxm": "H200",
    "k80-12gb": "K80",
    "l4": "L4",
    "l40": "L40",
    "l40s": "L40S",
    "mi300x": "MI300X",
    "mi355x": "MI355X",
    "p100-pcie-16gb": "P100",
    "rtx-3090": "RTX3090",
    "rtx-4090": "RTX4090",
    "rtx-6000-ada": "RTX6000-Ada",
    "rtx-a6000": "RTXA6000",
    "rtx-pro-6000-server": "RTXPRO6000",
    "t4": "T4",
    "trainium1": "Trainium",
    "trainium2": "Trainium2",
    "v100-pcie-32gb": "V100-32GB",
    "v100-sxm2-16gb": "V100",
    "v100-sxm3-32gb": "V100-32GB",
}
# systems of TPU machines by generation: Google Cloud document "TPU software versions", seen 2026-11-21. SkyPilot's own
# choice for a v5e is that of the v5p.
TPU_RUNTIMES = {"tpu-v5e": "v2-alpha-tpuv5-lite", "tpu-v5p": "v2-alpha-tpuv5", "tpu-v6e": "v2-alpha-tpuv6e"}
OLD_TPU_RUNTIME = "tpu-ubuntu2204-base"  # v4 and older
OLD_TPUS = ("tpu-v2", "tpu-v3", "tpu-v4")
OTHER_NAMES = {
    ("lambda", "rtx-a6000"): "A6000",
    ("verda", "rtx-6000-ada"): "RTX-6000-Ada",
    ("verda", "rtx-pro-6000-server"): "RTX-PRO-6000",
}


_ANYWHERE = "any"  # region of the catalog's offers that name none; SkyPilot has no region of that name


def cloud(machine: Machine) -> str | None:
    """SkyPilot's name of the provider; None where it cannot rent there, or nothing is rented."""
    return None if machine.price_model == OWNED else CLOUDS.get(machine.provider)


def lacks(machine: Machine, *wanted: str) -> tuple[str, ...]:
    """What SkyPilot does not do on a machine's cloud, of what is wanted; nothing where it does not rent at all."""
    name = cloud(machine) or ""
    missing = [*LACKS.get(name, ()), *([NODES] if machine.device_kind == "tpu" else [])]  # slices are not joined
    return tuple(one for one in wanted if one in missing)


def fast_network(machine: Machine) -> bool:
    """Whether SkyPilot brings up the network between a machine's nodes when it is asked for the best."""
    name = cloud(machine)
    if name == "aws":
        return machine.shape_name.startswith(EFA_PREFIXES)
    if name == "gcp":
        return machine.shape_name in TCPX_MACHINES
    return name == "nebius" and machine.device in INFINIBAND_DEVICES and machine.devices_per_node == INFINIBAND_COUNT


def infra(machine: Machine) -> str | None:
    """Where SkyPilot is to rent, "gcp/us-central1/us-central1-a"; None where it cannot."""
    name, region = cloud(machine), "" if machine.region == _ANYWHERE else machine.region
    parts = [region, machine.zone] if machine.provider in ZONED else [region]
    while parts and not parts[-1]:
        parts.pop()
    if name is None or any("/" in part or not part for part in parts):
        return name
    return "/".join([name, *parts])


def instance_type(machine: Machine) -> str | None:
    """SkyPilot's name of the machine; None for slices of TPUs, which are accelerators there, and for what is owned."""
    if cloud(machine) is None or machine.device_kind == "tpu":
        return None
    prefix = INSTANCE_PREFIX.get(machine.provider, "")
    return machine.shape_name if machine.shape_name.startswith(prefix) else prefix + machine.shape_name


def tpu_runtime(machine: Machine) -> str | None:
    """The system of a slice's machines; None of what is no TPU, or too new to be known."""
    return OLD_TPU_RUNTIME if machine.device in OLD_TPUS else TPU_RUNTIMES.get(machine.device)


def accelerators(machine: Machine) -> dict[str, int] | None:
    """What one node holds in SkyPilot's words; None where it has none for the device.

    Google's H100 machines come in two kinds, and those for many nodes have a name of their own.
    """
    if machine.device_kind == "tpu":
        return {machine.shape_name: 1}
    name = OTHER_NAMES.get((machine.provider, machine.device), ACCELERATORS.get(machine.device))
    if name == "H100" and machine.shape_name.startswith("a3-megagpu"):
        name = "H100-MEGA"
    return None if name is None else {name: machine.devices_per_node}


def rents(launch: Launch) -> bool:
    """Whether SkyPilot rents the machines that were planned, by a price model that it starts by itself."""
    machine = launch.machine
    return cloud(machine) is not None and machine.funding != "reserved" and not machine.price_model.startswith(BOUGHT)
