"""The physics of the shipped devices: provenance, bounds, order of generations, known traps."""

from __future__ import annotations

import re

import pytest

from planner.catalog.load import find_device, match_devices
from planner.catalog.model import Catalog
from planner.catalog.names import one_device
from planner.errors import InputError
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import device_of

T, G = 1e12, 1e9

# The 62 rows of the hardware table this catalog was transcribed from, by the ids used there.
TABLE = """
a100-sxm-80gb a100-sxm-40gb a100-pcie-80gb a100-pcie-40gb a30 v100-sxm2-16gb v100-sxm3-32gb v100-pcie-32gb
p100-sxm2-16gb p100-pcie-16gb k80-24gb t4 a10 a10g a40 rtx-a6000 l4 l40 l40s rtx-3090 rtx-4090 rtx-5090 rtx-6000-ada
rtx-pro-6000-server h100-sxm h100-pcie h100-nvl h200-sxm h200-nvl gh200-96gb b200-sxm gb200-nvl72 b300-sxm gb300-nvl72
rubin-sxm mi100 mi210 mi250 mi250x mi300x mi325x mi350x mi355x mi455x gaudi2 gaudi3 arc-pro-b60 tpu-v2 tpu-v3 tpu-v4
tpu-v5e tpu-v5p tpu-v6e tpu-v7x trainium1 inferentia2 trainium2 trainium3 sn40l groq-lpu-v1 cerebras-wse3 cerebras-wse2
"""
# Devices of published serving measurements, by the class that their rows name, and as the rows write them.
MEASURED = {
    "RTX-3070": "3070 8GB",
    "RTX-3080-Ti": "3080 Ti 12GB",
    "RTX-4070-Ti": "4070 Ti 12GB",
    "M1-Max": "M1 Max 32\u2011Core GPU 64GB",
    "M2-Ultra": "M2 Ultra 76-Core GPU 192GB",
    "Jetson-AGX-Orin": "Jetson AGX Orin 64G",
}
# Consumer and workstation devices that models are served on: alias, and as rows of benchmark tables write them.
SERVED = {
    "RTX-2080-Ti": "GeForce RTX 2080 Ti",
    "RTX-3060": "3060 12GB",
    "RTX-3080": "3080 10GB",
    "RTX-3090-Ti": "NVIDIA GeForce RTX 3090 Ti (24 GB)",
    "RTX-4060-Ti": "4060 Ti 16GB",
    "RTX-4070": "RTX-4070 x2",
    "RTX-4070-Ti-Super": "RTX 4070 Ti SUPER",
    "RTX-4080": "4080 16GB",
    "RTX-4080-Super": "RTX 4080 SUPER",
    "RTX-5070-Ti": "RTX 5070 Ti",
    "RTX-5080": "RTX5080",
    "RTX-A4000": "RTX-A4000",
    "RTX-A4500": "NVIDIA RTX A4500",
    "RTX-A5000": "RTX-A5000",
    "RTX-4000-Ada": "RTX 4000 Ada 20GB",
    "RTX-5000-Ada": "RTX 5000 Ada 32GB",
    "Quadro-RTX-6000": "Quadro RTX 6000",
    "Quadro-RTX-8000": "Quadro RTX 8000 48GB",
    "H20": "NVIDIA H20 SXM",
    "GB10": "DGX Spark (GB10)",
    "RX-7900-XTX": "AMD Radeon RX 7900 XTX",
    "W7900": "Radeon PRO W7900",
    "Strix-Halo": "Ryzen AI Max+ 395",
    "Arc-A770": "Intel Arc A770 16GB",
    "Max-1550": "Intel Data Center GPU Max 1550",
    "M1": "M1 7\u2011Core GPU 8GB",
    "M1-Pro": "Apple M1 Pro",
    "M1-Ultra": "M1 Ultra 64-Core GPU 128GB",
    "M2": "Apple M2",
    "M2-Pro": "M2-Pro",
    "M2-Max": "Apple M2 Max 96GB",
    "M3": "Apple-M3",
    "M3-Pro": "M3 Pro 18-Core",
    "M3-Max": "M3 Max 40\u2011Core GPU 64GB",
    "M3-Ultra": "Mac Studio M3 Ultra",
    "M4": "Apple M4",
    "M4-Pro": "M4 Pro",
    "M4-Max": "MacBook Pro M4 Max",
}


# Devices that public measurements name and the table lacks, by an alias, as rows write them.
NAMED = {
    "H20-3e": "NVIDIA H20-3e 141GB",
    "H800": "H800 SXM 80GB",
    "H800-PCIe": "H800 PCIe",
    "A800": "NVIDIA A800-SXM4-80GB",
    "A800-PCIe": "A800 PCIe 80GB",
    "V100S": "Tesla V100S-PCIE-32GB",
    "GH200-144GB": "GH200 Grace Hopper Superchip 144GB",
    "L20-48GB": "NVIDIA L20",
    "P40": "Tesla P40",
    "Ascend-910B": "Ascend 910B",
    "H100-NVL": "NVIDIA H100 NVL",
    "H200-NVL": "H200 NVL 141GB",
    "B60-Dual": "[MAXSUN] MS-Intel Arc Pro B60 Dual 48G Turbo",
}


def test_every_row_of_the_table_is_one_device(catalog: Catalog) -> None:
    found = {find_device(catalog, name).id for name in TABLE.split()}
    assert len(TABLE.split()) == 62
    assert found | {find_device(catalog, name).id for name in MEASURED | SERVED | NAMED} == set(catalog.devices)


@pytest.mark.parametrize(("name", "written"), (MEASURED | SERVED).items())
def test_measured_rows_find_their_device(catalog: Catalog, name: str, written: str) -> None:
    row = MeasuredRow(accelerator=written)
    device = device_of(row, catalog)
    assert device is find_device(catalog, name)
    assert device.uses == ("serving",)
    assert device.refusals


@pytest.mark.parametrize(("name", "written"), NAMED.items())
def test_devices_of_public_measurements_are_found(catalog: Catalog, name: str, written: str) -> None:
    assert device_of(MeasuredRow(accelerator=written), catalog) is find_device(catalog, name)


def test_every_fact_has_source_date_and_status(catalog: Catalog) -> None:
    for device in catalog.devices.values():
        needed = {"memory_bytes"} | {f"peak_flop_per_s.{name}" for name in device.peak_flop_per_s}
        needed |= {f"measured_matmul_flop_per_s.{name}" for name in device.measured_matmul_flop_per_s}
        for field in ("memory_bandwidth_bytes_per_s", "host_link_bytes_per_s", "tdp_w"):
            needed |= {field} if getattr(device, field) is not None else set()
        if device.scale_up:
            needed |= {"scale_up.one_way", "scale_up.one_way_pair", "scale_up.max_devices"}
        assert needed <= set(device.facts), device.id
        for name, fact in device.facts.items():
            assert len(fact.source) > 8, (device.id, name)
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", fact.as_of), (device.id, name)
            assert fact.status in ("seen", "measured", "recalled", "inferred"), (device.id, name)


def test_what_was_only_recalled_says_so(catalog: Catalog) -> None:
    def status(name: str, fact: str) -> str:
        return find_device(catalog, name).facts[fact].status

    assert status("t4", "peak_flop_per_s.fp16") == "recalled"
    assert status("sn40l", "peak_flop_per_s.bf16") == "recalled"
    assert status("rtx-3090", "memory_bandwidth_bytes_per_s") == "recalled"
    assert status("tpu-v3", "peak_flop_per_s.bf16") == "recalled"
    assert status("k80-12gb", "peak_flop_per_s.fp32") == "inferred"  # half of the card's
    assert status("a100-sxm-40gb", "memory_bytes") == "inferred"  # a label, read as GiB
    assert status("a100-sxm-80gb", "memory_bytes") == "seen"
    assert status("h100-sxm-80gb", "peak_flop_per_s.bf16") == "seen"
    assert status("h100-sxm-80gb", "measured_matmul_flop_per_s.bf16") == "measured"


def test_bounds_of_physics(catalog: Catalog) -> None:
    for device in catalog.devices.values():
        for name, peak in device.peak_flop_per_s.items():
            assert 2 * T <= peak <= 40_000 * T, (device.id, name)
        for name, measured in device.measured_matmul_flop_per_s.items():
            assert 0.45 * device.peak_flop_per_s[name] < measured <= device.peak_flop_per_s[name], device.id
        if device.kind not in ("lpu", "wafer"):
            assert 8 * 2**30 <= device.memory_bytes <= 512 * 2**30, device.id
            assert device.memory_bandwidth_bytes_per_s is not None
            assert 68 * G <= device.memory_bandwidth_bytes_per_s <= 25_000 * G, device.id
        if device.tdp_w is not None and device.kind != "wafer":
            assert 39 <= device.tdp_w <= 1500, device.id


def test_links_count_one_direction(catalog: Catalog) -> None:
    for device in catalog.devices.values():
        link = device.scale_up
        if link is None:
            continue
        assert link.both_ways_bytes_per_s is not None
        assert link.one_way_bytes_per_s * 2 == pytest.approx(link.both_ways_bytes_per_s, rel=1e-3), device.id
        assert 0 < link.one_way_pair_bytes_per_s <= link.one_way_bytes_per_s, device.id
        if link.pattern == "switched" and device.id != "trainium3":
            assert link.one_way_pair_bytes_per_s == link.one_way_bytes_per_s, device.id


def test_lower_precision_is_never_slower_except_where_known(catalog: Catalog) -> None:
    # Tensor cores of B300 and GB300 gave INT8 up; Gaudi 2 has none listed.
    for device in catalog.devices.values():
        peaks = device.peak_flop_per_s
        for high, low in (("fp32", "fp16"), ("fp16", "fp8"), ("bf16", "fp8"), ("fp8", "fp4")):
            if high in peaks and low in peaks:
                assert peaks[low] >= peaks[high], (device.id, high, low)


@pytest.mark.parametrize(
    "older_to_newer",
    [
        ["k80-12gb", "p100-sxm2-16gb", "v100-sxm2-16gb", "a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm"],
        ["t4", "l4", "l40s"],
        ["mi100", "mi250x-gcd-64gb", "mi300x", "mi355x"],
        ["tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5p", "tpu-v6e", "tpu-v7x"],
        ["trainium1", "trainium2", "trainium3"],
    ],
)
def test_generations_rise(catalog: Catalog, older_to_newer: list[str]) -> None:
    def best_training_peak(name: str) -> float:
        peaks = catalog.devices[name].peak_flop_per_s
        return max(peaks.get(precision, 0.0) for precision in ("fp32", "fp16", "bf16"))

    peaks = [best_training_peak(name) for name in older_to_newer]
    assert peaks == sorted(peaks)
    assert len(set(peaks)) == len(peaks)


# name, field, value: the founding figures that mislead, with what must stand instead
TRAPS = [
    ("a100-sxm-80gb", "bf16", 312 * T),  # not 624, which is sparse
    ("h100-sxm-80gb", "bf16", 989 * T),  # not 1,979
    ("gh200-96gb", "bf16", 989 * T),  # one public list has 1,979
    ("gaudi3", "bf16", 1677 * T),  # not 1,835: shipped parts run at 1,600 MHz
    ("v100-sxm2-16gb", "fp16", 125 * T),  # the founding 149 is an A40's
    ("mi100", "int8", 184.6 * T),  # one public list doubles it
    ("tpu-v3", "bf16", 123 * T),  # not 420, which is a board of four
    ("h20", "fp8", 296 * T),
    ("rtx-5080", "fp4", 900.4 * T),  # not 1,801, which is sparse
    ("rtx-a4000", "fp16", 76.8 * T),  # not 153.4, which is sparse
    ("rtx-4070-ti", "int8", 320.7 * T),  # not 641, which is sparse
    ("jetson-agx-orin", "int8", 85 * T),  # not 275, which is sparse and counts two more engines
]


@pytest.mark.parametrize(("name", "precision", "peak"), TRAPS)
def test_peaks_are_dense(catalog: Catalog, name: str, precision: str, peak: float) -> None:
    assert find_device(catalog, name).peak_flop_per_s[precision] == peak


MEMORY = [
    ("a10", 22.5),  # 24 less what ECC takes; one public list says 28
    ("v100-sxm2-16gb", 16),  # one public list says 32
    ("mi325x", 256),  # one public list says 288
    ("k80-12gb", 12),  # a die, not the card
    ("mi250x-gcd-64gb", 64),  # a GCD, not the module
    ("tpu-v3", 32),  # a chip, not the board
    ("a100-sxm-40gb", 40),
    ("rtx-3090", 24),
    ("rtx-3080-ti-12gb", 12),
    ("m2-ultra", 192),
]


@pytest.mark.parametrize("name", ["dgx-h100", "onprem/dgx-h100", "aws/p5.48xlarge", "p5.48xlarge"])
def test_a_machine_that_is_asked_for_as_a_device_is_told_its_device(catalog: Catalog, name: str) -> None:
    with pytest.raises(InputError) as caught:
        one_device(catalog, name)
    (problem,) = caught.value.problems
    assert problem.message == f"'{name}' is a machine, and what is asked for is a device"
    assert problem.hint.startswith("write h100-sxm-80gb, the device of it")


@pytest.mark.parametrize(
    ("name", "kind", "setting"),
    [("lambda", "provider", "hardware.providers=lambda"), ("GCP", "provider", "hardware.providers=gcp"),
     ("us-east-2", "region", "hardware.regions=us-east-2"), ("canada-1", "region", "hardware.regions=CANADA-1"),
     ("spot", "price model", "hardware.pricing=spot --set 'hardware.spot={interruptions: 0.05 /h}'")],
)  # fmt: skip
def test_what_is_asked_for_as_a_device_and_is_none_is_told_where_it_is_asked(
    catalog: Catalog, name: str, kind: str, setting: str
) -> None:
    """Of a provider, a region or a price model it was said that all devices are listed."""
    with pytest.raises(InputError) as caught:
        one_device(catalog, name)
    (problem,) = caught.value.problems
    assert problem.message == f"'{name}' is a {kind}, and what is asked for is a device"
    assert problem.hint.startswith(f"plan compare SCENARIO --set {setting} ")


@pytest.mark.parametrize(("name", "gib"), MEMORY)
def test_memory_of_one_device(catalog: Catalog, name: str, gib: float) -> None:
    assert find_device(catalog, name).memory_bytes == gib * 2**30


def test_links_of_known_devices(catalog: Catalog) -> None:
    def rates(name: str) -> tuple[float, float]:
        link = catalog.devices[name].scale_up
        assert link is not None
        return link.one_way_bytes_per_s / G, link.one_way_pair_bytes_per_s / G

    assert rates("a100-sxm-80gb") == (300, 300)  # the founding 600 is both ways
    assert rates("mi300x") == (448, 64)  # two devices see a seventh
    assert rates("trainium3") == (352, 64)
    assert rates("gaudi2") == (262.5, 37.5)
    assert rates("tpu-v5p") == (540, 90)
    assert rates("tpu-v3") == (400, 100)


def test_old_cards_support_what_they_support(catalog: Catalog) -> None:
    assert set(catalog.devices["k80-12gb"].peak_flop_per_s) == {"fp32"}
    for name in ("v100-sxm2-16gb", "p100-pcie-16gb", "t4"):
        assert "bf16" not in catalog.devices[name].peak_flop_per_s
        assert "fp16" in catalog.devices[name].peak_flop_per_s
    for name in ("a100-sxm-80gb", "a10g"):
        assert "fp8" not in catalog.devices[name].peak_flop_per_s


def test_unknown_power_is_absent(catalog: Catalog) -> None:
    for name in ("sn40l", "tpu-v4", "tpu-v5e", "tpu-v5p", "trainium2", "rubin-sxm"):
        assert catalog.devices[name].tdp_w is None


def test_refusals_give_a_reason(catalog: Catalog) -> None:
    for device in catalog.devices.values():
        assert set(device.uses).isdisjoint(device.refusals)
        assert set(device.uses) | set(device.refusals) == {"training", "serving"}, device.id
        assert all(len(reason) > 20 for reason in device.refusals.values())
    assert catalog.devices["sn40l"].uses == ("serving",)
    assert any("10x faster" in claim for claim in catalog.devices["sn40l"].claims)
    assert catalog.devices["groq-lpu-v1"].uses == ()
    assert catalog.devices["cerebras-wse3"].peak_flop_per_s == {}  # no dense figure is published


def test_frameworks(catalog: Catalog) -> None:
    for name in ("tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5p", "tpu-v7x"):
        assert {"jax", "tensorflow"} <= set(catalog.devices[name].frameworks)
        assert "megatron" not in catalog.devices[name].frameworks
    assert "megatron" in catalog.devices["a100-sxm-80gb"].frameworks
    assert "neuron" in catalog.devices["trainium2"].frameworks


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("H100", "h100-sxm-80gb"),
        ("h100-sxm", "h100-sxm-80gb"),
        ("A100-80GB", "a100-sxm-80gb"),
        ("V100", "v100-sxm2-16gb"),
        ("K80", "k80-12gb"),
        ("tpu-v5litepod", "tpu-v5e"),
        ("MI300X", "mi300x"),
    ],
)
def test_common_names(catalog: Catalog, name: str, device: str) -> None:
    assert find_device(catalog, name).id == device


def test_patterns(catalog: Catalog) -> None:
    def ids(pattern: str) -> set[str]:
        return {device.id for device in match_devices(catalog, pattern)}

    assert ids("a100-*") == {"a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "a100-pcie-40gb"}
    assert ids("a100-sxm") == {"a100-sxm-80gb", "a100-sxm-40gb"}
    assert ids("l40") == {"l40"}
    assert ids("tpu-v5*") == {"tpu-v5e", "tpu-v5p"}
    assert {"h100-sxm-80gb", "h100-pcie-80gb", "h100-nvl-94gb"} == ids("H100")
    assert len(ids("*")) == 62 + len(MEASURED) + len(SERVED) + len(NAMED) - 2
    assert ids("no-such") == set()
