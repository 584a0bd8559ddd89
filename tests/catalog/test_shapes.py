"""Instances, owned machines, slices of cards, TPU slices."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Shape
from planner.errors import InputError

GBIT = 1e9 / 8


def test_every_shape_stands_on_a_device(catalog: Catalog) -> None:
    for shape in catalog.shapes.values():
        device = catalog.devices[shape.device]
        assert shape.scale_up_devices >= 1, shape.id
        if shape.scale_up_devices > shape.devices:  # trays of a rack
            assert shape.device in ("gb200-nvl72", "gb300-nvl72"), shape.id
            assert shape.scale_up_devices % shape.devices == 0, shape.id
        assert 0 < shape.compute_share <= 1
        assert 0 < shape.bandwidth_share <= 1
        assert (shape.memory_bytes_per_device or 0) <= device.memory_bytes, shape.id
        assert shape.facts["devices"].source, shape.id
        if device.scale_up and shape.kind != "slice":
            assert shape.scale_up_devices <= device.scale_up.max_devices, shape.id


def test_network_is_known_only_when_a_source_says_so(catalog: Catalog) -> None:
    for shape in catalog.shapes.values():
        fact = shape.facts.get("inter_node_bytes_per_s_per_device")
        if shape.inter_node_bytes_per_s_per_device is not None:
            assert fact is not None, shape.id
            assert fact.status in ("seen", "inferred"), shape.id
            assert fact.source, shape.id
        elif fact is not None:
            assert fact.status == "recalled", shape.id


@pytest.mark.parametrize(
    ("name", "gbit", "cluster"),
    [
        ("aws/p5.48xlarge", 400, True),
        ("aws/p4d.24xlarge", 50, True),  # two GPUs share one 100G card
        ("aws/p5.4xlarge", 100, True),
        ("aws/trn2.48xlarge", 200, True),  # 3,200 over 16 chips
        ("gcp/a3-highgpu-8g", 100, True),  # the headline 1,000 holds a host NIC
        ("gcp/a3-megagpu-8g", 200, True),
        ("gcp/a3-ultragpu-8g", 400, True),
        ("gcp/a2-megagpu-16g", 6.25, False),
        ("azure/ND96isr_H100_v5", 400, True),  # not the 80 of the front end
        ("oci/BM.GPU4.8", 200, True),
        ("runpod/8x_L40S_SECURE", 0.0125, False),  # 0.1 Gbit/s between pods: never the cluster's figure
    ],
)
def test_network_of_known_shapes(catalog: Catalog, name: str, gbit: float, cluster: bool) -> None:
    shape = catalog.shapes[name]
    assert shape.inter_node_bytes_per_s_per_device == pytest.approx(gbit * GBIT)
    assert shape.cluster_required is cluster


@pytest.mark.parametrize(
    "name",
    [
        "azure/ND96asr_v4",  # recalled
        "lambda/gpu_8x_h100_sxm5",  # unknown; the 1-Click Cluster is another product
        "verda/8B200.240V",
        "mithril/h100-80gb.sxm.8x",
        "gcp/tpu-v3-2048",
        "aws/g6f.2xlarge",  # a fraction of a GPU
        "gcp/n1-standard-4+t4",
    ],
)
def test_no_network_without_a_source(catalog: Catalog, name: str) -> None:
    assert catalog.shapes[name].inter_node_bytes_per_s_per_device is None


def test_cluster_products_stand_beside_the_machines(catalog: Catalog) -> None:
    cluster = catalog.shapes["runpod/Instant-Cluster-8x-H100"]
    assert cluster.inter_node_bytes_per_s_per_device == 400 * GBIT
    assert cluster.max_shapes_per_job == 8
    assert catalog.shapes["lambda/1-Click-Cluster-8x-H100"].inter_node_bytes_per_s_per_device == 400 * GBIT
    assert catalog.shapes["azure/ND128isr_GB300_v6"].max_shapes_per_job == 25_000


def test_fractions_have_their_own_share(catalog: Catalog) -> None:
    quarter, half, sixth = (catalog.shapes[n] for n in ("aws/g6f.2xlarge", "aws/gr6f.4xlarge", "azure/NV6ads_A10_v5"))
    assert {quarter.kind, half.kind, sixth.kind} == {"share"}
    assert (quarter.compute_share, half.compute_share) == (0.25, 0.5)
    assert sixth.compute_share == pytest.approx(1 / 6)
    assert (quarter.memory_bytes_per_device, half.memory_bytes_per_device) == (6 * 2**30, 12 * 2**30)
    assert sixth.memory_bytes_per_device == 4 * 2**30


def test_host_memory_and_cpus(catalog: Catalog) -> None:
    p5 = catalog.shapes["aws/p5.48xlarge"]
    assert (p5.vcpus, p5.host_memory_bytes) == (192, 2048 * 2**30)
    # one type with two host memories in the price list: the smaller one is safe
    assert catalog.shapes["hyperstack/n3-H100-SXM5x8"].host_memory_bytes == 960 * 2**30


def test_form_factor_is_not_read_from_the_marketing_name(catalog: Catalog) -> None:
    assert catalog.shapes["azure/NC40ads_H100_v5"].device == "h100-nvl-94gb"
    assert catalog.shapes["azure/NC24ads_A100_v4"].device == "a100-pcie-80gb"
    assert catalog.shapes["hyperstack/n3-A100x8-NVLink"].device == "a100-pcie-80gb"
    assert catalog.shapes["lambda/gpu_8x_a100"].device == "a100-sxm-40gb"


# What one profile of an A100 yields: fraction of the 108 multiprocessors, of the memory, how many per card.
MIG = [
    ("1g.10gb", 14, Fraction(1, 8), 7),
    ("1g.20gb", 14, Fraction(2, 8), 4),
    ("2g.20gb", 28, Fraction(2, 8), 3),
    ("3g.40gb", 42, Fraction(4, 8), 2),
    ("4g.40gb", 56, Fraction(4, 8), 1),
    ("7g.80gb", 98, Fraction(8, 8), 1),
]


@pytest.mark.parametrize(("profile", "processors", "memory", "most"), MIG)
def test_slices_of_an_a100(catalog: Catalog, profile: str, processors: int, memory: Fraction, most: int) -> None:
    big = catalog.shapes[f"mig/a100-sxm-80gb-{profile}"]
    small_name = profile.split("g.")[0] + f"g.{int(profile.split('.')[1][:-2]) // 2}gb"
    small = catalog.shapes[f"mig/a100-sxm-40gb-{small_name}"]
    for slice_ in (big, small):
        card = catalog.devices[slice_.device].memory_bytes
        assert slice_.kind == "mig"
        assert slice_.devices == slice_.scale_up_devices == 1  # no copies between slices
        assert slice_.inter_node_bytes_per_s_per_device is None
        assert slice_.compute_share == pytest.approx(processors / 108)
        assert slice_.bandwidth_share == float(memory)
        assert slice_.slices_per_device == most
        assert slice_.memory_bytes_per_device is not None
        assert 0.93 * memory < slice_.memory_bytes_per_device / card <= memory
        assert most * slice_.compute_share <= 98 / 108 + 1e-12
        assert most * slice_.bandwidth_share <= 1


def test_owned_machines(catalog: Catalog) -> None:
    assert find_shape(catalog, "dgx-a100-80gb").id == "onprem/dgx-a100-80gb"
    assert find_shape(catalog, "dgx-h100").inter_node_bytes_per_s_per_device == 400 * GBIT
    for name, device in (
        ("dgx-1-v100-16gb", "v100-sxm2-16gb"),
        ("dgx-1-p100", "p100-sxm2-16gb"),
        ("rtx-3090-x4", "rtx-3090"),
        ("rtx-4090-x1", "rtx-4090"),
        ("t4-x4", "t4"),
        ("k80-12gb-x2", "k80-12gb"),
        ("sn40l-x16", "sn40l"),
    ):
        assert find_shape(catalog, name).device == device
    assert find_shape(catalog, "sn40l-x16").scale_up_devices == 1  # no fact on its links
    assert find_shape(catalog, "h100-nvl-94gb-x8").scale_up_devices == 2  # bridges join pairs


def test_a_name_with_its_memory_finds_the_machine_of_that_name_first(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="did you mean onprem/dgx-h100 or "):  # letters of dgx-a100-80gb are nearer
        find_shape(catalog, "dgx-h100-80gb")


def slices(catalog: Catalog, device: str) -> dict[int, Shape]:
    return {s.devices: s for s in catalog.shapes.values() if s.kind == "slice" and s.device == device}


def test_slices_are_products_of_their_topology(catalog: Catalog) -> None:
    found = [shape for shape in catalog.shapes.values() if shape.kind == "slice"]
    assert len(found) > 200
    for shape in found:
        assert math.prod(shape.torus) == shape.devices == shape.scale_up_devices, shape.id
        assert len(shape.wraparound) == len(shape.torus)
        number = int(shape.name.rsplit("-", 1)[1])
        cores = 1 if shape.device in ("tpu-v5e", "tpu-v6e") else 2
        assert number == cores * shape.devices, shape.id


def test_boards_and_pods_of_the_founding_text(catalog: Catalog) -> None:
    board, pod = catalog.shapes["gcp/tpu-v3-8"], catalog.shapes["gcp/tpu-v3-2048"]
    memory = catalog.devices["tpu-v3"].memory_bytes
    assert board.devices == 4
    assert board.devices * memory == 128 * 2**30  # "128 GB HBM"
    assert pod.devices == 1024
    assert pod.devices * memory == 32 * 2**40  # "32 TB HBM"
    assert pod.torus == (32, 32)
    assert pod.wraparound == (True, True)
    assert pod.devices * catalog.devices["tpu-v3"].peak_flop_per_s["bf16"] > 100e15  # "100+ petaflops"


@pytest.mark.parametrize(
    ("name", "torus", "closed"),
    [
        ("gcp/tpu-v5p-8", (2, 2, 1), False),
        ("gcp/tpu-v5p-64", (2, 4, 4), False),
        ("gcp/tpu-v5p-128", (4, 4, 4), True),
        ("gcp/tpu-v5p-11776", (8, 8, 92), True),
        ("gcp/tpu-v5p-12288", (16, 16, 24), True),
        ("gcp/tpu-v4-8192", (16, 16, 16), True),
    ],
)
def test_cubes_close(catalog: Catalog, name: str, torus: tuple[int, ...], closed: bool) -> None:
    shape = catalog.shapes[name]
    assert shape.torus == torus
    assert set(shape.wraparound) == {closed}


def test_flat_slices_close_on_full_axes(catalog: Catalog) -> None:
    for device in ("tpu-v5e", "tpu-v6e"):
        flat = slices(catalog, device)
        assert sorted(flat) == [1, 4, 8, 16, 32, 64, 128, 256]
        assert flat[64].wraparound == (False, False)
        assert flat[128].wraparound == (False, True)  # the long axis only
        assert flat[256].wraparound == (True, True)


def test_what_people_own_can_be_named(catalog: Catalog) -> None:
    """Macs, cards of desks and boards of H20 had measurements and no machine: `hardware.owned` refused their names."""
    used = {name for name, device in catalog.devices.items() if device.uses}
    without = used - {shape.device for shape in catalog.shapes.values()}
    assert without == {"mi455x", "rubin-sxm", "trainium3"}  # announced, and rented out by one cloud
    for device in catalog.devices.values():
        if device.vendor == "apple":
            assert find_shape(catalog, f"{device.id}-x1").devices == 1


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("dgx-*", "'dgx-*' is a pattern, and what is asked for is one machine", "dgx-a100-40gb and 6 more"),
        ("groq-lpu-v1", "there is no shape 'groq-lpu-v1'", "of which the catalog has no machine: shapes/onprem.yaml"),
        ("m4-max", "there is no shape 'm4-max'", "that is a device: machines of it are m4-max-128gb-x1"),
        ("my-own-tower", "there is no shape 'my-own-tower'", "plan catalog show DEVICE lists the machines of a device"),
    ],
)
def test_a_machine_that_is_not_there_is_told_with_those_that_are(
    catalog: Catalog, name: str, message: str, hint: str
) -> None:
    """A Mac was answered with "did you mean gcp/a2-ultragpu-2g", others with a list in which no such machine is."""
    with pytest.raises(InputError) as caught:
        find_shape(catalog, name)
    (problem,) = caught.value.problems
    assert (problem.reference, problem.message) == ("unknown-shape", message)
    assert hint in problem.hint


def test_between_slices(catalog: Catalog) -> None:
    assert catalog.shapes["gcp/tpu-v5p-128"].inter_node_bytes_per_s_per_device == 50 * GBIT
    assert catalog.shapes["gcp/tpu-v5p-12288"].max_shapes_per_job == 3
    assert catalog.shapes["gcp/tpu-v6e-256"].inter_node_bytes_per_s_per_device == 100 * GBIT
    assert catalog.shapes["gcp/tpu-v6e-8"].inter_node_bytes_per_s_per_device == 25 * GBIT
    assert catalog.shapes["gcp/tpu-v2-8"].inter_node_bytes_per_s_per_device is None
    assert max(slices(catalog, "tpu-v5p")) == 6144
    assert max(slices(catalog, "tpu-v7x")) == 9216
