"""The machine of a measured row: the catalog's device, and the network that the row or its generation has."""

from __future__ import annotations

import re

from planner.catalog.model import Catalog, Device
from planner.estimate.device_constants import CLOCK_EXPONENT
from planner.validate.rows import MeasuredRow

# One way, per device: what the vendor's reference system of the generation has (DGX-1 4 x 100 Gbit/s, DGX A100
# 8 x 200, DGX H100 and later 8 x 400; TPU: data-centre network per chip, JAX "How to Scale Your Model").
REFERENCE_NETWORK_BYTES_PER_S = {
    "volta": 6.25e9,
    "ampere": 25e9,
    "hopper": 50e9,
    "blackwell": 50e9,
    "tpu-v4": 6.25e9,
    "tpu-v5e": 3.125e9,
    "tpu-v5p": 6.25e9,
    "tpu-v6e": 12.5e9,
}
_OTHER_NETWORK_BYTES_PER_S = 25e9
_OMNI_PATH_BYTES_PER_S = 12.5e9
# Networks that rows name without a rate, of a node: GCP a3-highgpu-8g, 4 x 200 Gbit/s for devices; AWS trn1n.32xlarge,
# 1,600 Gbit/s (hardware/shapes)
_NAMED_NETWORKS = ((r"TCPX", 100e9), (r"trn1n", 200e9))

# Names as publishers write them; the catalog's aliases come first.
_DEVICES = (
    (r"GB300", "gb300-nvl72"),
    (r"GB200", "gb200-nvl72"),
    (r"GH200.*144", "gh200-144gb"),
    (r"GH200", "gh200-96gb"),
    (r"B300", "b300-sxm"),
    (r"B200", "b200-sxm"),
    (r"H200.*NVL", "h200-nvl"),
    (r"H200", "h200-sxm"),
    (r"H20[- ]?(3e|141)|H20.*141", "h20-3e-141gb"),
    (r"H20(?![0-9])", "h20-sxm-96gb"),
    (r"GB10(?!\d)|DGX.?Spark", "dgx-spark-gb10"),
    (r"H100.*PCIe", "h100-pcie-80gb"),
    (r"H100.*NVL", "h100-nvl-94gb"),
    (r"H100", "h100-sxm-80gb"),
    (r"H800.*PCIe", "h800-pcie-80gb"),
    (r"H800", "h800-sxm-80gb"),
    (r"A100.*PCIe.*40", "a100-pcie-40gb"),
    (r"A100.*PCIe", "a100-pcie-80gb"),
    (r"A100.*40", "a100-sxm-40gb"),
    (r"A100", "a100-sxm-80gb"),
    (r"A800.*PCIe", "a800-pcie-80gb"),
    (r"A800", "a800-sxm-80gb"),
    (r"V100S", "v100s-pcie-32gb"),
    (r"V100.*16", "v100-sxm2-16gb"),
    (r"V100", "v100-sxm3-32gb"),
    (r"B60.*Dual", "arc-pro-b60-dual"),
    (r"910[ -]?B", "ascend-910b-64gb"),
    (r"TPU-?v4", "tpu-v4"),
    (r"TPU-?v5e", "tpu-v5e"),
    (r"TPU-?v5p", "tpu-v5p"),
    (r"TPU-?v6e|Trillium", "tpu-v6e"),
    (r"TPU-?v?7|Ironwood", "tpu-v7x"),
)
# Parts that are sold under the name of a device but are not it: memory bandwidth and power, as their publishers say.
_VARIANTS = (
    (r"H100.*HBM2e", {"memory_bandwidth_bytes_per_s": 2.4e12, "power_share": 500.0 / 700.0}),
    (r"B200.*power", {"power_share": 750.0 / 1000.0}),
)
_SHORTEST_ALIAS = 4  # letters: 'T4' is inside too many names


def device_of(row: MeasuredRow, catalog: Catalog) -> Device | None:
    """The catalog's device of a row; None when no name fits."""
    name = row.accelerator or ""
    if found := catalog.aliases.get(name.lower()):
        return catalog.devices[found]
    for pattern, device in _DEVICES:
        if re.search(pattern, name, re.IGNORECASE) and device in catalog.devices:
            return catalog.devices[device]
    plain = _plain(name)
    inside = [(len(_plain(alias)), device) for alias, device in catalog.aliases.items() if _plain(alias) in plain]
    longest = max((pair for pair in inside if pair[0] >= _SHORTEST_ALIAS), default=None)
    return catalog.devices[longest[1]] if longest else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def slices_of(row: MeasuredRow) -> int:
    """TPU slices that the data-centre network joins; 1 when none are named."""
    found = re.search(r"(\d+)\s*slice", row.interconnect or "")
    return int(found[1]) if found else 1


def network_bytes_per_s(row: MeasuredRow, device: Device) -> float:
    """One device's share of the network between nodes  [B/s]."""
    text, per_node = row.interconnect or "", row.accel_per_node or 8
    if found := re.search(r"(\d+)\s*Gb(?:ps|/s|it/s)?[^,;]*per (?:GPU|device|chip)", text):
        return float(found[1]) * 1e9 / 8
    if found := re.search(r"(\d+)\s*Gb(?:ps|/s|it/s)?\s*(?:/|per )\s*node", text):
        return float(found[1]) * 1e9 / 8 / per_node
    if found := re.search(r"(\d+)x Omni-Path per node", text):
        return float(found[1]) * _OMNI_PATH_BYTES_PER_S / per_node
    for pattern, of_node in _NAMED_NETWORKS:
        if re.search(pattern, text):
            return of_node / per_node
    return REFERENCE_NETWORK_BYTES_PER_S.get(device.family, _OTHER_NETWORK_BYTES_PER_S)


def machine_of_row(row: MeasuredRow, device: Device) -> dict[str, float]:
    """Fields of `Machine`  [FLOP/s, B/s, B, count]."""
    variant = next((own for pattern, own in _VARIANTS if re.search(pattern, row.accelerator or "")), {})
    clock = variant.get("power_share", 1.0) ** CLOCK_EXPONENT
    peak = device.peak_flop_per_s.get("bf16") or device.peak_flop_per_s.get("fp16") or 0.0
    domain, node = _domains(row, device)
    link = device.scale_up
    bandwidth = variant.get("memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s or 0.0)
    return {
        "peak_flop_per_s": peak * clock,
        "linear_flop_per_s": device.peak_flop_per_s.get(low_precision(row, device), peak) * clock,
        "mfu": 1.0,
        "multiprocessors": float(device.multiprocessors or 0),
        "memory_bytes": float(device.memory_bytes),
        "memory_bandwidth_bytes_per_s": bandwidth,
        "pair_bytes_per_s": link.one_way_pair_bytes_per_s if link else 0.0,
        "all_bytes_per_s": link.one_way_bytes_per_s if link else 0.0,
        "scale_up_devices": domain,
        "node_devices": node,
        "host_bytes_per_s": device.host_link_bytes_per_s or _OTHER_NETWORK_BYTES_PER_S,
        "inter_node_bytes_per_s": network_bytes_per_s(row, device),
    }


def low_precision(row: MeasuredRow, device: Device) -> str:
    """fp8, fp4 or int8 where the linear products run in it on hardware that is faster in it; else ''.

    A device whose peak is no higher than in 16 bits (TPU v6e in fp8) emulates the format.
    """
    text = (row.precision or "").lower()
    named = next((name for name in ("fp8", "fp4", "int8") if name in text), "")
    name = "int8" if named == "int8" else row.precision_class or named
    if name not in ("fp8", "fp4", "int8"):
        return ""
    wide = device.peak_flop_per_s.get("bf16") or device.peak_flop_per_s.get("fp16") or 0.0
    return name if device.peak_flop_per_s.get(name, 0.0) > wide else ""


def _domains(row: MeasuredRow, device: Device) -> tuple[float, float]:
    """Devices of the fast domain, and of a node."""
    devices, per_node = float(row.n_accel or 8), float(row.accel_per_node or 8)
    if device.kind == "tpu":
        return devices / slices_of(row), devices / slices_of(row)
    most = float(device.scale_up.max_devices) if device.scale_up else 1.0
    return (most if most > per_node and most >= 16 and "nvl" in device.id else per_node), per_node
