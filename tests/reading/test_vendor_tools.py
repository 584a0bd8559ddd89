"""Nodes of PBS, nodes of Slurm without a first line, and what the tools of AWS, Huawei and Intel print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.reading.kinds import Reading, read
from planner.reading.source import Source

NEURON_RULE = "+--------+--------+--------+---------------+---------+\n"
NEURON = (
    "instance-type: {machine}\ninstance-id: i-0123456789abcdef0\n" + NEURON_RULE
    + "| NEURON | NEURON | NEURON |   CONNECTED   |   PCI   |\n| DEVICE | CORES  | MEMORY |    DEVICES    |   BDF   |\n"
    + NEURON_RULE + "{rows}" + NEURON_RULE)  # fmt: skip
ASCEND_HEAD = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
"""
ASCEND = """\
| {n}     910B3               | {health:<13} | 95.6        45                0    / 0             |
| 0                         | 0000:C{n}:00.0  | 0           0    / 0          3351 / 65536         |
+===========================+===============+====================================================+
"""
ASCEND_END = """\
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 12345         | python                   | 60123                   |
+===========================+===============+====================================================+
"""
GAUDI_HEAD = """\
+-----------------------------------------------------------------------------+
| HL-SMI Version:                              hl-1.17.0-fw-51.1.0.1          |
| Driver Version:                                     1.17.0-28a11ca          |
|-------------------------------+----------------------+----------------------+
| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |
|===============================+======================+======================|
"""
GAUDI = """\
|   {n}  {name:<8}            N/A  | 0000:3{n}:00.0     N/A |                   0  |
| N/A   24C   N/A    92W / 600W |    768MiB / {mib}MiB |     1%           N/A |
|-------------------------------+----------------------+----------------------+
"""
PBS = """\
{name}
     Mom = {name}.site
     ntype = PBS
     state = {state}
     pcpus = 64
     jobs = 123.pbs01/0
     resources_available.arch = linux
     resources_available.ncpus = 64
     resources_available.ngpus = 8
     resources_available.gputype = {kind}
     resources_assigned.ngpus = 0
     last_state_change_time = Thu Nov 26 08:12:11 2026

"""
TORQUE = """\
{name}
     state = {state}
     np = 24
     ntype = cluster
     status = opsys=linux,sessions=1,totmem=131072kb,ncpus=24,state=free
     gpus = 2
     gpu_status = gpu[1]=gpu_id=0000:82:00.0;gpu_product_name=Tesla V100-PCIE-32GB;gpu_memory_total=32510 MB;\
gpu_state=Unallocated,gpu[0]=gpu_id=0000:02:00.0;gpu_product_name=Tesla V100-PCIE-32GB;gpu_memory_total=32510 MB

"""


def read_text(folder: Path, text: str) -> Reading:
    path = folder / "told.txt"
    path.write_text(text)
    return read(Source(path))


def owned(reading: Reading) -> dict[str, int]:
    entries = [piece.fragment["hardware"]["owned"] for piece in reading.pieces if piece.fragment]
    return {each["shape"]: each["count"] for each in entries[0]} if entries else {}


def neuron_rows(count: int, memory: str = "32 GB") -> str:
    return "".join(f"| {n:<6} | 2      | {memory:<6} | 12, 3, 4, 1   | 10:1c.{n} |\n" for n in range(count))


@pytest.mark.parametrize(("machine", "count", "memory", "shape"), [
    ("trn1.32xlarge", 16, "32 GB", "aws/trn1.32xlarge"), ("inf2.48xlarge", 12, "32 GB", "onprem/inferentia2-x12"),
    ("trn2.48xlarge", 16, "96 GB", "aws/trn2.48xlarge"),
])  # fmt: skip
def test_neuron_ls_names_its_machine(machine: str, count: int, memory: str, shape: str, tmp_path: Path) -> None:
    reading = read_text(tmp_path, NEURON.format(machine=machine, rows=neuron_rows(count, memory)))
    assert (reading.kind, reading.taken, owned(reading)) == ("neuron-ls", count, {shape: 1})


def test_lines_of_further_processes_are_no_devices(tmp_path: Path) -> None:
    rows = neuron_rows(16).replace("10:1c.0 |\n", "10:1c.0 |\n|        |        |        |               | 23531   |\n")
    assert read_text(tmp_path, NEURON.format(machine="trn1.32xlarge", rows=rows)).taken == 16


def neuron_json(count: int, gibibytes: int = 32) -> str:
    return json.dumps([{"neuron_device": n, "bdf": f"00:{n:02x}.0", "connected_to": None, "nc_count": 2,
                        "memory_size": gibibytes * 2**30, "neuron_processes": []} for n in range(count)])  # fmt: skip


def test_the_json_of_neuron_ls_is_told_apart_by_how_many_devices_there_are(tmp_path: Path) -> None:
    reading = read_text(tmp_path, neuron_json(16))
    assert {each.label: each.value for each in reading.look}["of them trainium1"] == 16
    one = read_text(tmp_path, neuron_json(1))
    assert not owned(one)
    assert any("inferentia2 or trainium1" in note for note in one.notes)


def test_devices_of_huawei(tmp_path: Path) -> None:
    cards = "".join(ASCEND.format(n=n, health="OK") for n in range(8))
    reading = read_text(tmp_path, ASCEND_HEAD + cards + ASCEND_END)
    assert (reading.kind, reading.version, reading.taken) == ("npu-smi", "24.1.rc2", 8)
    assert owned(reading) == {"onprem/ascend-910b-64gb-x8": 1}


def test_a_device_that_is_not_well_is_left_out_and_counted(tmp_path: Path) -> None:
    cards = "".join(ASCEND.format(n=n, health="Alarm" if n == 3 else "OK") for n in range(8))
    reading = read_text(tmp_path, ASCEND_HEAD + cards)
    assert reading.taken == 7
    assert reading.skipped.count == 1


@pytest.mark.parametrize(("name", "mib", "shape"), [
    ("HL-225", 98304, "onprem/gaudi2-x8"), ("HL-225H", 98304, "onprem/gaudi2-x8"),
    ("HL-325L", 131072, "onprem/gaudi3-x8"),
])  # fmt: skip
def test_devices_of_intel(name: str, mib: int, shape: str, tmp_path: Path) -> None:
    reading = read_text(tmp_path, GAUDI_HEAD + "".join(GAUDI.format(n=n, name=name, mib=mib) for n in range(8)))
    assert (reading.kind, reading.version, reading.taken) == ("hl-smi", "hl-1.17.0-fw-51.1.0.1", 8)
    assert owned(reading) == {shape: 1}


def test_a_machine_of_which_no_device_is_well_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no accelerator of") as caught:
        read_text(tmp_path, ASCEND_HEAD + ASCEND.format(n=0, health="Critical"))
    assert "npu-smi info > FILE" in caught.value.problems[0].hint


def test_long_lines_take_no_time_to_tell(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_text(tmp_path, ("a-" * 1900 + " !idle\n") * 100)


def test_nodes_of_pbs_by_state(tmp_path: Path) -> None:
    states = ["free", "job-busy", "job-exclusive,busy", "offline", "down,offline", "state-unknown"]
    text = "".join(PBS.format(name=f"x{n}", state=state, kind="H100") for n, state in enumerate(states))
    reading = read_text(tmp_path, text)
    shown = {each.label: each.value for each in reading.look}
    assert (reading.kind, reading.taken, owned(reading)) == ("pbsnodes", 6, {"onprem/dgx-h100": 3})
    assert (shown["nodes free"], shown["nodes down+offline"]) == (1, 1)


def test_nodes_of_torque_show_their_devices(tmp_path: Path) -> None:
    text = "".join(TORQUE.format(name=f"node{n}", state="down" if n == 2 else "free") for n in range(3))
    assert owned(read_text(tmp_path, text)) == {"onprem/v100-pcie-32gb-x2": 2}


def test_nodes_of_pbs_as_json(tmp_path: Path) -> None:
    def node(state: str) -> dict[str, object]:
        held = {"arch": "linux", "ncpus": 64, "ngpus": 8, "gputype": "H100"}
        return {"Mom": "g", "ntype": "PBS", "state": state, "resources_available": held, "resources_assigned": {}}

    nodes = {"g1": node("free"), "g2": node("offline"), "g3": "broken"}
    reading = read_text(tmp_path, json.dumps({"timestamp": 1, "pbs_version": "2022.1.1", "nodes": nodes}))
    assert (reading.taken, owned(reading), reading.skipped.count) == (2, {"onprem/dgx-h100": 1}, 1)


def test_devices_without_a_kind_are_told(tmp_path: Path) -> None:
    bare = PBS.format(name="x1", state="free", kind="H100").replace("     resources_available.gputype = H100\n", "")
    assert any("devices without a name" in note for note in read_text(tmp_path, bare).notes)
    without = bare.replace("     resources_available.ngpus = 8\n", "")
    assert any("gputype says which" in note for note in read_text(tmp_path, without).notes)


def test_pbs_without_a_state_is_refused_in_words(tmp_path: Path) -> None:
    text = PBS.format(name="x1", state="free", kind="H100").replace("     state = free\n", "")
    path = tmp_path / "told.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="could be taken") as caught:
        read(Source(path), named="pbsnodes")
    assert "pbsnodes -a" in caught.value.problems[0].hint


@pytest.mark.parametrize("text", [
    "gpu01 gpu:h100:8 idle\ngpu02 gpu:h100:8 mixed\ngpu[03-04] gpu:h100:8(S:0-1) drained*\ncpu01 (null) idle\n",
    "gpu01|gpu:h100:8|mix|224|2063000\ngpu02|gpu:h100:8|idle|224|2063000\ngpu03|gpu:h100:8|drain*|224|2063000\n",
    "224,mix,gpu:h100:8,gpu01\n224,idle,gpu:h100:8,gpu02\n224,down,gpu:h100:8,gpu03\n",
])  # fmt: skip
def test_nodes_of_slurm_without_a_first_line_stand_in_any_order(text: str, tmp_path: Path) -> None:
    reading = read_text(tmp_path, text)
    assert (reading.kind, owned(reading)) == ("sinfo", {"onprem/dgx-h100": 2})
