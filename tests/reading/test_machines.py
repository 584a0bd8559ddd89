"""Machines that clouds list, nodes of Ray, and what of other tools names devices or does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source


def read_text(folder: Path, text: str) -> Reading:
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    return read(Source(path), Asked())


def owned(reading: Reading) -> dict[str, int]:
    entries = reading.pieces[0].fragment["hardware"]["owned"] if reading.pieces else ()
    return {entry["shape"]: entry["count"] for entry in entries}


def ec2(kind: str, state: str) -> dict[str, Any]:
    return {"InstanceId": "i-1", "InstanceType": kind, "State": {"Code": 16, "Name": state}}


def google(kind: str, state: str, **more: Any) -> dict[str, Any]:
    return {"name": "a", "machineType": f"projects/p/zones/z/machineTypes/{kind}", "status": state,
            "selfLink": "projects/p/zones/z/instances/a", **more}  # fmt: skip


LISTS = {
    "aws": json.dumps({"Reservations": [
        {"Instances": [ec2("p5.48xlarge", "running"), ec2("p5.48xlarge", "running")]},
        {"Instances": [ec2("p5.48xlarge", "terminated"), ec2("t3.micro", "running")]}]}),
    "gcloud": json.dumps([google("a3-highgpu-8g", "RUNNING"), google("a3-highgpu-8g", "RUNNING"),
                          google("a3-highgpu-8g", "TERMINATED"), google("e2-medium", "RUNNING")]),
    "gcloud, printed": """NAME   ZONE           MACHINE_TYPE   PREEMPTIBLE  INTERNAL_IP  EXTERNAL_IP  STATUS
a      us-central1-a  a3-highgpu-8g               10.128.0.2   34.1.2.3     RUNNING
b      us-central1-a  a3-highgpu-8g  true         10.128.0.3                RUNNING
c      us-central1-a  a3-highgpu-8g  true         10.128.0.3                TERMINATED
web    us-central1-a  e2-medium                   10.128.0.4                RUNNING
""",
    "aws, printed": """-----------------------------------------
|           DescribeInstances           |
+------------+---------------+----------+
| InstanceId | InstanceType  |  State   |
+------------+---------------+----------+
|  i-1       |  p5.48xlarge  |  running |
|  i-2       |  p5.48xlarge  |  running |
|  i-3       |  p5.48xlarge  |  stopped |
|  i-4       |  t3.micro     |  running |
+------------+---------------+----------+
""",
    "azure": json.dumps([{"name": "a", "hardwareProfile": {"vmSize": kind}, "powerState": state} for kind, state in (
        ("Standard_ND96isr_H100_v5", "VM running"), ("Standard_ND96isr_H100_v5", "VM running"),
        ("Standard_ND96isr_H100_v5", "VM deallocated"), ("Standard_D2s_v3", "VM running"))]),
    "of the console": "Name,Instance ID,Instance state,Instance type\na,i-1,Running,p5.48xlarge\n"
                      "b,i-2,Running,p5.48xlarge\nc,i-3,Stopped,p5.48xlarge\nd,i-4,Running,t3.micro\n",
}  # fmt: skip


@pytest.mark.parametrize("form", LISTS)
def test_machines_that_run_are_counted_by_their_types(form: str, tmp_path: Path) -> None:
    reading = read_text(tmp_path, LISTS[form])
    shape = {"a": "aws/p5.48xlarge", "g": "gcp/a3-highgpu-8g", "o": "aws/p5.48xlarge"}[form[0]]
    shape = "azure/ND96isr_H100_v5" if form == "azure" else shape
    assert (reading.kind, reading.taken, owned(reading)) == ("instances", 2, {shape: 2})
    assert sorted(count for count, _ in reading.skipped.reasons.values()) == [1, 1]
    assert any("rented" in note for note in reading.notes)


def test_accelerators_that_are_attached_count_by_their_names(tmp_path: Path) -> None:
    card = {"acceleratorCount": 4, "acceleratorType": "projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4"}
    reading = read_text(tmp_path, json.dumps([google("n1-standard-32", "RUNNING", guestAccelerators=[card])] * 2))
    assert {each.label: each.value for each in reading.look}["of them t4"] == 8


STATUS = """======== Autoscaler status: 2025-09-01 08:00:00.123456 ========
Node status
---------------------------------------------------------------
Active:
 1 node_a
 2 gpu_worker

Resources
---------------------------------------------------------------
Usage:
 12.0/96.0 CPU
 4.0/16.0 GPU
 0.0/2.0 accelerator_type:H100
"""


@pytest.mark.parametrize("text", [
    STATUS,
    json.dumps([{"NodeID": str(n), "Alive": n < 2, "Resources": {"CPU": 96.0, "GPU": 8.0, "accelerator_type:H100": 1.0}}
                for n in range(3)]),
    json.dumps([{"node_id": str(n), "state": "ALIVE", "resources_total": {"GPU": 8.0, "accelerator_type:H100": 1.0}}
                for n in range(2)]),
])  # fmt: skip
def test_nodes_of_ray(text: str, tmp_path: Path) -> None:
    reading = read_text(tmp_path, text)
    assert (reading.kind, reading.taken, owned(reading)) == ("ray", 2, {"onprem/dgx-h100": 2})


def test_a_cluster_of_ray_with_devices_of_two_kinds_says_what_is_not_told(tmp_path: Path) -> None:
    reading = read_text(tmp_path, STATUS + " 0.0/1.0 accelerator_type:A100\n")
    assert not reading.pieces
    assert any("is not told" in note for note in reading.notes)


def test_the_table_of_amd_smi(tmp_path: Path) -> None:
    row = "| 0000:{n}c:00.0    AMD Instinct MI300X | 0 %      42 °C   0          137/750 W  |\n" \
          "|   {n}       0       7       SPX/NPS1  | 0 %        N/A           285/196592 MB |\n"  # fmt: skip
    text = "| AMD-SMI 26.0.0      amdgpu version: 6.14.14  ROCm version: 7.0.0    |\n"
    reading = read_text(tmp_path, text + "".join(row.format(n=n) for n in range(8)))
    assert (reading.taken, owned(reading)) == (8, {"onprem/mi300x-x8": 1})


@pytest.mark.parametrize("text", [
    "==== ROCm System Management Interface ====\n==== Concise Info ====\nDevice  Node  IDs\n0  2  0x74a1,  28851\n",
    json.dumps({"card0": {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "297558016"}}),
    "device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,206141652992,297558016\n",
    "GPU  POWER  PWR_CAP   GPU_T\n  0  139 W    750 W   42 °C\n",
])  # fmt: skip
def test_what_names_no_device_of_amd_says_what_does(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no accelerator") as caught:
        read_text(tmp_path, text)
    assert "rocm-smi --showproductname" in caught.value.problems[0].hint


def test_devices_on_the_bus(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "".join(
        f"{n}8:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n" for n in range(1, 9)
    ))  # fmt: skip
    assert (reading.taken, owned(reading)) == (8, {"onprem/dgx-h100": 1})


def test_a_node_that_does_not_answer_has_a_state(tmp_path: Path) -> None:
    node = "NodeName=g{n} Gres=gpu:h100:8(S:0-1) State={state} CfgTRES=cpu=224,gres/gpu=8\n"
    text = node.format(n=1, state="IDLE") + node.format(n=2, state="DOWN*+DRAIN") + node.format(n=3, state="IDLE+")
    reading = read_text(tmp_path, text)
    assert (reading.taken, reading.skipped.count, owned(reading)) == (3, 0, {"onprem/dgx-h100": 2})


def test_records_that_texts_hold_are_looked_into(tmp_path: Path) -> None:
    events = [{"timestamp": 1_756_713_600_000 + 7000 * n, "message": json.dumps(
        {"requestId": str(n), "input": {"inputTokenCount": 800}, "output": {"outputTokenCount": 100}})}
        for n in range(30)]  # fmt: skip
    reading = read_text(tmp_path, json.dumps({"events": events, "searchedLogStreams": []}))
    assert (reading.kind, reading.taken) == ("requests-json", 30)


@pytest.mark.parametrize("name", ["requestLength", "request_length", "requestLength_d"])
def test_bytes_of_a_web_server_are_no_tokens(name: str, tmp_path: Path) -> None:
    row = {"time": "2025-09-01T08:00:00Z", name: 3000, name.replace("request", "response"): 1200}
    with pytest.raises(InputError):
        read_text(tmp_path, "\n".join([",".join(row), *[",".join(map(str, row.values()))] * 9]) + "\n")
    with pytest.raises(InputError):
        read_text(tmp_path, "\n".join([json.dumps({"time": row["time"], "properties": json.dumps(row)})] * 9))
