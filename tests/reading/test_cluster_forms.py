"""Machines and jobs as other versions and options of their tools write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.inventory import device_of
from planner.reading.kinds import Asked, Reading, read
from planner.reading.slurm_nodes import hosts_of
from planner.reading.source import Source
from tests.reading.cluster_writers import GPUSTAT, SHOWN, TOPO, bare_job, node, nodes


def reading_of(folder: Path, content: str) -> Reading:
    path = folder / "file"
    path.write_text(content)
    return read(Source(path))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def owned(reading: Reading) -> dict[str, int]:
    found = [piece.fragment["hardware"]["owned"] for piece in reading.pieces if piece.fragment]
    return {entry["shape"]: entry["count"] for entries in found for entry in entries}


def skips(reading: Reading) -> dict[str, int]:
    return {why: count for why, (count, _) in reading.skipped.reasons.items()}


MACHINE = "node.kubernetes.io/instance-type"


@pytest.mark.parametrize(
    ("labels", "gpus", "shape"),
    [
        ({MACHINE: "p5.48xlarge"}, 8, "aws/p5.48xlarge"),  # no label names the device
        ({MACHINE: "p4d.24xlarge", "karpenter.k8s.aws/instance-gpu-name": "a100",
          "karpenter.k8s.aws/instance-gpu-memory": "40960"}, 8, "aws/p4d.24xlarge"),
        ({"accelerator": "nvidia", MACHINE: "p4d.24xlarge"}, 8, "aws/p4d.24xlarge"),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, 8, "onprem/dgx-a100-40gb"),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4", MACHINE: "g2-standard-24",
          "cloud.google.com/gke-max-shared-clients-per-gpu": "4"}, 8, "gcp/g2-standard-24"),
        ({"gpu.nvidia.com/class": "H100_NVLINK_80GB", "gpu.nvidia.com/vram": "80"}, 8, "onprem/dgx-h100"),
        ({"gpu.nvidia.com/model": "A100_PCIE_40GB", "gpu.nvidia.com/vram": "40"}, 8, "onprem/a100-pcie-40gb-x8"),
    ],
)  # fmt: skip
def test_labels_of_clouds_name_the_device(labels: dict[str, str], gpus: int, shape: str, tmp_path: Path) -> None:
    assert owned(reading_of(tmp_path, nodes(node("n", "", gpus, labels=labels)))) == {shape: 1}


def test_slices_of_gke_are_no_machines(tmp_path: Path) -> None:
    labels = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
              "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}  # fmt: skip
    reading = reading_of(tmp_path, nodes(node("n", "", 7, labels=labels)))
    assert skips(reading) == {"cut into MIG slices": 1}


def test_devices_of_amd_are_named_by_a_count(tmp_path: Path) -> None:
    amd = node("n", "", 0, labels={"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8"})
    amd["status"]["capacity"]["amd.com/gpu"] = amd["status"]["allocatable"]["amd.com/gpu"] = "8"
    assert owned(reading_of(tmp_path, nodes(amd))) == {"onprem/mi300x-x8": 1}


@pytest.mark.parametrize(
    ("labels", "shape"),
    [({"amd.com/gpu.device-id": "74a1", "amd.com/gpu.vram": "191G"}, "onprem/mi300x-x8"),
     ({"beta.amd.com/gpu.device-id": "74b5"}, "onprem/mi300x-x8"),
     ({"beta.amd.com/gpu.device-id.74A5": "8"}, "onprem/mi325x-x8"),
     ({"amd.com/gpu.device-id": "0x75a3"}, "onprem/mi355x-x8")],
)  # fmt: skip
def test_devices_of_amd_are_known_by_their_ids_alone(labels: dict[str, str], shape: str, tmp_path: Path) -> None:
    """Without a product's name they were devices without one, and nothing was owned."""
    amd = node("n", "", 0, labels=labels)
    amd["status"]["capacity"]["amd.com/gpu"] = amd["status"]["allocatable"]["amd.com/gpu"] = "8"
    assert owned(reading_of(tmp_path, nodes(amd))) == {shape: 1}


def test_machines_of_a_slice_of_tpus_are_one_slice(tmp_path: Path) -> None:
    """Sixteen chips that are linked were four slices of four."""
    labels = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
              "cloud.google.com/gke-tpu-topology": "4x4", MACHINE: "ct5lp-hightpu-4t"}  # fmt: skip
    parts = [node(f"n{n}", "", 0, labels=labels) for n in range(9)]
    for part in parts:
        part["status"]["capacity"]["google.com/tpu"] = part["status"]["allocatable"]["google.com/tpu"] = "4"
    reading = reading_of(tmp_path, nodes(*parts))
    assert owned(reading) == {"gcp/tpu-v5litepod-16": 2}
    assert "9 machines of 4 chips are no whole number of slices of 16: 4 chips are left out" in reading.notes
    assert owned(reading_of(tmp_path, nodes(*parts[:3]))) == {}


def test_a_list_of_machines_counts_those_that_are_in_use(tmp_path: Path) -> None:
    rows = [("n1", "up"), ("n2", "down"), ("n3", "Drained"), ("n4", "active"), ("n5", "NotReady"), ("n6", "")]
    text = "hostname,gpu_model,gpus,state\n" + "".join(f"{name},NVIDIA H200,8,{state}\n" for name, state in rows)
    reading = reading_of(tmp_path, text)
    assert (reading.taken, skips(reading)) == (3, {"out of use, as its state says": 3})
    assert owned(reading) == {"onprem/dgx-h200": 3}


def test_a_name_of_several_devices_says_which_was_taken(tmp_path: Path) -> None:
    vague = reading_of(tmp_path, nodes(node("n", "A100")))
    assert "A100 is taken as a100-sxm-80gb: it may be a100-pcie-40gb or a100-pcie-80gb or a100-sxm-40gb, nothing " \
           "tells" in vague.notes  # fmt: skip
    assert not reading_of(tmp_path, nodes(node("n", "NVIDIA-H100-80GB-HBM3"))).notes


def test_nodes_as_yaml_or_a_line_each(tmp_path: Path) -> None:
    item = """- apiVersion: v1
  kind: Node
  metadata:
    name: {}
    labels:
      nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
  status:
    allocatable:
      nvidia.com/gpu: "8"
    capacity:
      nvidia.com/gpu: "8"
"""
    listed = "apiVersion: v1\nitems:\n" + item.format("a") + item.format("b") + 'kind: List\nmetadata:\n  x: ""\n'
    assert owned(reading_of(tmp_path, listed)) == {"onprem/dgx-h100": 2}
    alone = "\n".join(line[2:] for line in item.format("a").splitlines())
    assert owned(reading_of(tmp_path, alone + "\n---\n" + alone.replace("name: a", "name: b"))) == {
        "onprem/dgx-h100": 2}  # fmt: skip
    lines = json.dumps(node("a")) + "\n" + json.dumps(node("b")) + "\n"
    assert owned(reading_of(tmp_path, lines)) == {"onprem/dgx-h100": 2}


def test_nodes_as_kubectl_prints_them(tmp_path: Path) -> None:
    described = """Name:               a
Roles:              <none>
Labels:             kubernetes.io/hostname=a
                    nvidia.com/gpu.memory=81559
                    nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
Unschedulable:      {}
Conditions:
  Type     Status  Reason
  Ready    True    KubeletReady
Capacity:
  nvidia.com/gpu:  8
Allocatable:
  nvidia.com/gpu:  8
Allocated resources:
  nvidia.com/gpu   4            4
"""
    text = described.format("false") + "\n\n" + described.format("true").replace("  a\n", "  b\n")
    reading = reading_of(tmp_path, text)
    assert (owned(reading), skips(reading)) == ({"onprem/dgx-h100": 1}, {"cordoned": 1})
    columns = """NAME   STATUS                     ROLES    AGE   VERSION   GPU.PRODUCT             GPU.COUNT
a      Ready                      <none>   3d    v1.30.1   NVIDIA-H100-80GB-HBM3   8
b      Ready,SchedulingDisabled   <none>   3d    v1.30.1   NVIDIA-H100-80GB-HBM3   8
c      Ready                      <none>   3d    v1.30.1
"""
    reading = reading_of(tmp_path, columns)
    assert (owned(reading), skips(reading)) == ({"onprem/dgx-h100": 1}, {"cordoned": 1, "no accelerator": 1})
    plain = "\n".join(line[:57] for line in columns.splitlines())
    with pytest.raises(InputError, match="lists nodes without their devices"):
        reading_of(tmp_path, plain)


def test_lists_of_nodes_are_names(tmp_path: Path) -> None:
    assert list(hosts_of("gpu[08-10,3],login,r[1-2]n[0-1]")) == [
        "gpu08", "gpu09", "gpu10", "gpu3", "login", "r1n0", "r1n1", "r2n0", "r2n1"]  # fmt: skip
    text = """PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up 7-00:00:00      2    mix gpu[01-02]
long         up   infinite      3   idle gpu[02-04]
"""
    reading = reading_of(tmp_path, text)
    assert (figures(reading)["nodes"], figures(reading)["nodes mix"]) == (4, 2)
    assert skips(reading) == {"a node that stands above (of another partition)": 1}


@pytest.mark.parametrize(
    "text",
    [
        "PARTITION|GRES|STATE|NODELIST\nh|gpu:h100:8|mixed|h[01-02]\nh|gpu:h100:8|down*|h3\n",
        "Wed Jan 15 10:00:00 2025\nNODELIST  GRES  STATE\nh01 gpu:h100:8(S:0-1) mixed\nh02  gpu:h100:8  idle~\n"
        "h3 (null) idle\n",
        "NODELIST   CPUS  GRES\nh[01-02]   96    gpu:h100:8\nh3 96 (null)\n",
        "NodeName=h01 Arch=x86_64\n   Gres=gpu:h100:8(S:0-1)\n   State=MIXED\n\nNodeName=h02\n   Gres=(null)\n"
        "   State=IDLE+PLANNED\n   CfgTRES=cpu=4,gres/gpu=8,gres/gpu:h100=8\n\nNodeName=h3\n   Gres=gpu:h100:8\n"
        "   State=IDLE+DRAIN\n",
        json.dumps({"nodes": [{"architecture": "x86_64", "hostname": name, "name": name, "gres": "gpu:h100:8",
                               "state": ["IDLE", *more]} for name, more in (("h1", []), ("h2", []), ("h3", ["DRAIN"]))]
                    }, indent=1),
    ],
)  # fmt: skip
def test_nodes_of_slurm_in_other_forms(text: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, text)
    assert (figures(reading)["nodes"], owned(reading)) == (3, {"onprem/dgx-h100": 2})


def test_slices_among_the_devices_of_a_node_are_left_out(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, "NODELIST GRES STATE\na gpu:l40s:4,gpu:a100_1g.5gb:14 idle\n")
    assert owned(reading) == {"onprem/l40s-x4": 1}
    assert any("slices of MIG" in note for note in reading.notes)


COLUMNS = """JobID           JobName      State    Elapsed              Submit               Start           AllocTRES
------------ ---------- ---------- ---------- ------------------- ------------------- -------------------
11             my train  COMPLETED 1-06:00:00 2026-03-01T17:00:00 2026-03-01T18:00:00 cpu=4,gres/gpu=8
11.batch          batch  COMPLETED 1-06:00:00 2026-03-01T18:00:00 2026-03-01T18:00:00 cpu=4,gres/gpu=8
12                   sh CANCELLED+   00:30:00 2026-03-01T18:00:00 2026-03-01T18:00:00 cpu=64,mem=100G,no+
"""
JOBS = {"jobs": [
    {"job_id": 11, "state": {"current": state}, "partition": "h",
     "time": {"elapsed": 108_000, "start": 1_772_388_000, "submission": 1_772_384_400},
     "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "gres", "name": "gpu", "count": 8}]},
     "steps": []} for state in (["COMPLETED"],)]}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS,
        json.dumps(JOBS, indent=1),
        json.dumps(JOBS).replace('["COMPLETED"]', '"COMPLETED"'),
        "JobID|State|ElapsedRaw|Submit|Start|AllocTRES\n11|COMPLETED|108000|1772384400|1772388000|gres/gpu=8\n",
        "JobID|State|Submit|Start|End|AllocTRES\n"
        "11|COMPLETED|2026-03-01T17:00:00|2026-03-01T18:00:00|2026-03-03T00:00:00|gres/gpu=8\n",
        "id_job,state,time_submit,time_start,time_end,gres_used,tres_alloc\n"
        '11,3,1772384400,1772388000,1772496000,gpu:volta:8,"1=4,4=1"\n',
        "JOBID|ST|TIME|SUBMIT_TIME|START_TIME|NODES|TRES_PER_NODE\n"
        "11|CD|1-06:00:00|2026-03-01T17:00:00|2026-03-01T18:00:00|2|gres:gpu:4\n",
    ],
)
def test_jobs_of_slurm_in_other_forms(text: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, text)
    there = figures(reading)
    assert (reading.kind, there["GPU-hours"], there["wait before a start, mean"]) == ("sacct", 240.0, 3600.0)
    assert there["GPU-hours of the busiest day"] == 192.0
    history = reading.pieces[0].text
    assert history.splitlines()[1:] == ["2026-03-01,1,6,48", "2026-03-02,0,24,192"]


def test_resources_that_are_cut_short_are_not_taken_for_none(tmp_path: Path) -> None:
    assert skips(reading_of(tmp_path, COLUMNS)) == {
        "a step, which counts in its job": 1,
        "resources that are cut short: sacct --parsable2 gives all of them": 1,
    }


def test_the_list_of_squeue(tmp_path: Path) -> None:
    text = """ JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
  1234       gpu    train    alice  R 1-02:00:00      2 gpu[01-02]
  1235       gpu    train      bob PD       0:00      4 (Nodes required are down)
"""
    there = figures(reading_of(tmp_path, text))
    assert (there["jobs RUNNING"], there["jobs PENDING"], there["hours of all jobs"]) == (1, 1, 26.0)


def test_slices_of_jobs_are_said(tmp_path: Path) -> None:
    text = "JobID|State|ElapsedRaw|AllocTRES\n1|COMPLETED|3600|gres/gpu:h100_1g.10gb=1,gres/gpu=1\n"
    assert "some jobs hold slices of MIG: each slice counts as a GPU" in reading_of(tmp_path, text).notes


QUERIED = """
==============NVSMI LOG==============

Driver Version                            : 535.104.05
Attached GPUs                             : 2
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    MIG Mode
        Current                           : Disabled
    FB Memory Usage
        Total                             : 40960 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB

"""


def test_devices_of_the_long_text_of_nvidia_smi(tmp_path: Path) -> None:
    more = QUERIED[QUERIED.index("GPU 0") :]
    text = QUERIED + "".join(more.replace("07:", f"{bus:02x}:") for bus in (7, *range(8, 15)))
    reading = reading_of(tmp_path, text)
    assert owned(reading) == {"onprem/dgx-a100-40gb": 1}
    assert skips(reading) == {"a device that stands above: another sample of it": 1}


@pytest.mark.parametrize("text", ["0, NVIDIA A100-SXM4-40GB, 40960\n" * 8, "NVIDIA A100-SXM4-40GB\n" * 8])
def test_devices_without_names_of_columns_or_units(text: str, tmp_path: Path) -> None:
    lines = (line.replace("0,", f"{number},", 1) for number, line in enumerate(text.splitlines(keepends=True)))
    assert owned(reading_of(tmp_path, "".join(lines))) == {"onprem/dgx-a100-40gb": 1}


STATIC = [{"gpu": n, "asic": {"market_name": "AMD Instinct MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}
          for n in range(8)]  # fmt: skip
CARD = {"Card Series": "AMD Instinct MI300X OAM", "Card Model": "0x74a1", "VRAM Total Memory (B)": "206141652992"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(STATIC),
        json.dumps({"gpu_data": STATIC}),
        json.dumps({f"card{n}": CARD for n in range(8)} | {"system": {"Driver version": "6.7.0"}}),
        "device,Card series,Card model,VRAM Total Memory (B)\n"
        + "".join(f"card{n},AMD Instinct MI300X OAM,0x74a1,206141652992\n" for n in range(8)),
        "gpu,market_name,vendor_id,type,size\n" + "".join(f"{n},AMD Instinct MI300X,0x1002,HBM,196592\n"
                                                         for n in range(8)),
        "=== ROCm System Management Interface ===\n" + "".join(
            f"GPU[{n}]\t\t: Card Series: \t\tAMD Instinct MI300X OAM\nGPU[{n}]\t\t: Card Model: \t\t0x74a1\n"
            for n in range(8)),
        "".join(f"GPU: {n}\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n    VRAM:\n        SIZE: 196592 MB\n"
                for n in range(8)),
    ],
)  # fmt: skip
def test_devices_of_the_tools_of_amd(text: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, text)
    assert (reading.taken, owned(reading)) == (8, {"onprem/mi300x-x8": 1})


def test_a_card_without_a_name_is_counted(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, json.dumps({"card0": CARD, "card1": {"Card Series": "0x74a1"}}))
    assert (reading.taken, skips(reading)) == (1, {"no name of a device": 1})
    with pytest.raises(InputError, match="no accelerator of"):
        reading_of(tmp_path, json.dumps({"card1": {"Card Series": ""}}))


@pytest.mark.parametrize(
    "text",
    [
        "hostname, index, name, memory.total [MiB]\n"
        + "".join(f"h{n // 4}, {n % 4}, NVIDIA L4, 23034 MiB\n" for n in range(8)),
        "".join(f"h{n // 4}: GPU {n % 4}: NVIDIA L4 (UUID: GPU-{n})\n" for n in range(8)),
    ],
)
def test_devices_of_several_hosts_in_one_file_are_several_machines(text: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, text)
    assert (reading.taken, owned(reading)) == (8, {"onprem/l4-x4": 2})


def test_a_device_that_fails_is_one_of_its_machine_or_counted(tmp_path: Path) -> None:
    text = "index, name, memory.total [MiB]\n0, NVIDIA L4, 23034 MiB\n1, NVIDIA L4, [GPU requires reset]\n" \
           "2, [Unknown Error], [Unknown Error]\n"  # fmt: skip
    reading = reading_of(tmp_path, text)
    assert (owned(reading), skips(reading)) == ({"onprem/l4-x2": 1}, {"no name of a device": 1})


def test_replicas_of_devices_are_counted_once_without_their_number(tmp_path: Path) -> None:
    labels = {"nvidia.com/gpu.replicas": "10"}
    reading = reading_of(tmp_path, nodes(node("n", "NVIDIA-L4-SHARED", 40, labels=labels)))
    assert owned(reading) == {"onprem/l4-x4": 1}


def test_nodes_of_sinfo_as_json_or_in_quotes(tmp_path: Path) -> None:
    group = {"node": {"state": ["IDLE"]}, "nodes": {"nodes": ["a", "b"]}, "gres": {"total": "gpu:h100:8"}}
    kept = group | {"node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"nodes": ["c"]}}
    assert owned(reading_of(tmp_path, json.dumps({"sinfo": [group, kept]}))) == {"onprem/dgx-h100": 2}
    text = 'NODELIST,STATE,GRES\n"h[01-02]",idle,"gpu:h100:8(S:0-1)"\n'
    assert owned(reading_of(tmp_path, text)) == {"onprem/dgx-h100": 2}


@pytest.mark.parametrize("text", ["h[" + "9" * 5000 + "]", "h[x-1,]", "h" + "[1]" * 3000])
def test_lists_of_nodes_that_are_odd_end_soon(text: str) -> None:
    assert len(list(hosts_of(text))) <= 1


def test_endless_numbers_of_slurm_are_counted(tmp_path: Path) -> None:
    text = (
        f"JobID|State|ElapsedRaw|Start|AllocTRES\n1|{'9' * 5000}|1|1|gres/gpu=1\n2|FAILED|1|{'9' * 5000}|gres/gpu=1\n"
    )
    assert skips(reading_of(tmp_path, text)) == {"no state of a job": 1}


def test_a_memory_that_no_device_has_is_of_none(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, nodes(node("n", "NVIDIA-L4", labels={"nvidia.com/gpu.memory": "1e300"})))
    assert not owned(reading)


@pytest.mark.parametrize("form", ["lines", "one line"])
def test_jobs_that_scontrol_shows(form: str, tmp_path: Path) -> None:
    """A pending job has no day: the start that is told is the scheduler's guess."""
    text = SHOWN if form == "lines" else SHOWN.replace("\n   ", " ").replace("\n\n", "\n")
    reading = reading_of(tmp_path, text)
    there = figures(reading)
    assert (reading.kind, reading.taken) == ("sacct", 2)
    assert (there["GPU-hours"], there["jobs RUNNING"], there["jobs PENDING"]) == (16 * 30.0, 1, 1)
    assert (there["last day"], there["wait before a start, mean"]) == ("2025-03-02", 3600.0)
    assert there["GPUs of a job, median"] == 12.0


def controller(*jobs: dict[str, Any], **more: Any) -> str:
    """What scontrol and squeue answer with --json."""
    return json.dumps({"jobs": list(jobs), "meta": {"slurm": {"release": "24.05.4"}}, "errors": [], **more})


def is_set(number: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


@pytest.mark.parametrize("newer", [True, False])
def test_jobs_of_the_controller_as_json(newer: bool, tmp_path: Path) -> None:
    """One that runs has run until the answer; its end, and the start of one that waits, are guesses."""
    begin = 1740800000

    def job(number: int, state: str, start: int, end: int, gpus: int) -> dict[str, Any]:
        told = is_set if newer else int
        return {"job_id": number, "job_state": [state] if newer else state, "submit_time": told(begin),
                "start_time": told(start), "end_time": told(end), "partition": "gpu",
                "tres_alloc_str": "" if state == "PENDING" else f"cpu=8,gres/gpu={gpus},gres/gpu:h100={gpus}",
                "tres_req_str": f"cpu=8,gres/gpu={gpus}"}  # fmt: skip

    text = controller(
        job(1, "RUNNING", begin + 3600, begin + 720_000, 16),
        job(2, "PENDING", begin + 900_000, 0, 8),
        job(3, "COMPLETED", begin, begin + 3600, 4),
        last_update=(is_set if newer else int)(begin + 7200),
    )
    reading = reading_of(tmp_path, text)
    there = figures(reading)
    assert (reading.kind, reading.taken, there["GPU-hours"]) == ("sacct", 3, 16 * 1.0 + 4 * 1.0)
    assert (there["jobs RUNNING"], there["jobs PENDING"], there["last day"]) == (1, 1, "2025-03-01")
    reading = reading_of(tmp_path, controller(job(1, "RUNNING", begin, begin + 9, 16), job(2, "PENDING", 0, 0, 8)))
    assert skips(reading) == {"no time that it took": 1}


def test_jobs_whose_requests_alone_are_told(tmp_path: Path) -> None:
    """They counted as jobs without devices."""
    text = "JobID|State|Elapsed|Start|ReqTRES\n1|COMPLETED|10:00:00|2025-03-01T01:00:00|cpu=8,gres/gpu=8\n"
    reading = reading_of(tmp_path, text)
    assert figures(reading)["GPU-hours"] == 80.0
    assert any("asked for" in note for note in reading.notes)


SAMPLES_OF_ONE = """timestamp, name, memory.total [MiB], utilization.gpu [%]
2025/03/01 01:00:00.101, NVIDIA A100-SXM4-40GB, 40960 MiB, 3 %
2025/03/01 01:00:00.103, NVIDIA A100-SXM4-40GB, 40960 MiB, 3 %
"""


def test_samples_that_tell_no_device_are_not_counted_as_devices(tmp_path: Path) -> None:
    """A loop of nvidia-smi over one device came out as a machine of many."""
    assert figures(reading_of(tmp_path, SAMPLES_OF_ONE))["accelerators"] == 2
    later = SAMPLES_OF_ONE.splitlines()[1].replace("01:00:00", "01:00:01")
    with pytest.raises(InputError, match="do not tell which device"):
        reading_of(tmp_path, SAMPLES_OF_ONE + later + "\n")


def test_machines_of_gpustat(tmp_path: Path) -> None:
    eight = GPUSTAT + "".join(GPUSTAT.splitlines(keepends=True)[2].replace("[1]", f"[{at}]") for at in range(2, 8))
    reading = reading_of(tmp_path, eight + eight.replace("gpu01", "gpu02") + GPUSTAT)
    assert (reading.kind, reading.taken, owned(reading)) == ("gpustat", 16, {"onprem/dgx-h100": 2})
    assert skips(reading) == {"a device that stands above: another sample of it": 2}
    devices = [{"index": at, "name": "NVIDIA H200", "memory.total": 143771} for at in range(8)]
    whole = {"hostname": "gpu03", "query_time": "2025-03-01T01:00:00", "gpus": [*devices, {"index": 9}, 3]}
    reading = reading_of(tmp_path, json.dumps(whole))
    assert (reading.kind, reading.taken, owned(reading)) == ("gpustat", 8, {"onprem/dgx-h200": 1})
    assert skips(reading) == {"no name of a device": 2}


@pytest.mark.parametrize("form", ["gpustat", "-L", "cards"])
def test_devices_beyond_what_is_read_are_told(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were left out without a word."""
    monkeypatch.setattr("planner.reading.nvidia_smi._MOST_GPUS", 2)
    row = GPUSTAT.splitlines(keepends=True)[2]
    card = "|   {}  NVIDIA H100 80GB HBM3          On  | 00000000:0{}:00.0 Off |                    0 |\n"
    text = {
        "gpustat": GPUSTAT + row.replace("[1]", "[2]"),
        "-L": "".join(f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-0000000{at}-a)\n" for at in range(3)),
        "cards": "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n"
        "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |\n"
        + "".join(card.format(at, at) for at in range(3)),
    }[form]
    reading = reading_of(tmp_path, text)
    assert (reading.taken, skips(reading)) == (2, {"more than 2 devices": 1})


def test_links_between_devices(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, TOPO)
    there = figures(reading)
    assert (reading.kind, reading.taken, reading.pieces) == ("nvidia-smi-topo", 4, [])
    assert (there["pairs joined by 4 NVLinks"], there["pairs joined over PCIe (SYS)"]) == (2, 4)
    assert there["network cards beside them"] == 2
    assert any("others are not" in note for note in reading.notes)


RUNS = bare_job(9, id="9.batch") + bare_job(7, state="RUNNING", end="Unknown")
KILLED = bare_job(8, state="CANCELLED by 1000", elapsed="00:00:00", start="None", end="2025-03-01T00:00:00", tres="")


@pytest.mark.parametrize("seconds", ["1-02:03:04", "93784"])
def test_jobs_without_names_of_columns(seconds: str, tmp_path: Path) -> None:
    """Start and end are told by what lies between them; a limit looks as a time that a job took."""
    text = bare_job(9, elapsed=seconds) + RUNS.replace("1-02:03:04", seconds) + KILLED
    reading = reading_of(tmp_path, text)
    there = figures(reading)
    assert (reading.kind, reading.taken, there["GPU-hours"]) == ("sacct", 3, pytest.approx(2 * 8 * 93784 / 3600))
    assert (there["wait before a start, mean"], there["first day"]) == (3600.0, "2025-03-01")
    assert reading.understood["columns"].startswith("by what they hold")


@pytest.mark.parametrize("change", [{"elapsed": "2-01:00:00"}, {"nodes": "cpu=8,gres/gpu=9"}, {"tres": "8"}])
def test_jobs_whose_columns_are_left_open_are_refused(change: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sacct without -n"):
        reading_of(tmp_path, bare_job(9, **change))


def test_of_two_starts_the_surer_one_counts(tmp_path: Path) -> None:
    """Most jobs that did not wait could have begun when they were submitted."""
    at_once = "".join(bare_job(number, submit="2025-03-01T01:00:00") for number in range(20))
    there = figures(reading_of(tmp_path, at_once + bare_job(20)))
    assert there["wait before a start, mean"] == pytest.approx(3600 / 21)


@pytest.mark.parametrize("form", ["plain", "csv", "with times"])
def test_samples_of_dmon_are_figures_of_devices_that_it_does_not_name(form: str, tmp_path: Path) -> None:
    rows = ["# gpu    pwr  gtemp     sm    mem     fb", "# Idx      W      C      %      %     MB",
            "    0    100     40     50     20  70000", "    1    300     50    100     40  70100",
            "# gpu    pwr  gtemp     sm    mem     fb", "# Idx      W      C      %      %     MB",
            "    0    200     40      -     20  70000", "    1    300"]  # fmt: skip
    if form == "csv":
        rows = [", ".join(row.replace("# ", "#").split()) for row in rows]
    elif form == "with times":
        before = {"# g": "#Date Time", "# I": "#YYYYMMDD HH:MM:SS"}
        rows = [f"{before.get(row[:3], ' 20250301 10:00:01')} {row.lstrip('# ')}" for row in rows]
    reading = reading_of(tmp_path, "\n".join(rows) + "\n")
    there = figures(reading)
    assert (reading.kind, reading.taken, there["accelerators"]) == ("nvidia-smi-dmon", 3, 2)
    assert (there["power, mean"], there["power, most"], there["busy, mean"]) == (200.0, 300.0, 75.0)
    assert there["memory in use, most"] == 70100.0
    assert list(skips(reading).values()) == [1]
    assert not reading.pieces


@pytest.mark.parametrize(
    ("name", "device"),
    [("H100 80GB SXM", "h100-sxm-80gb"), ("8x H100 (80 GB SXM5)", "h100-sxm-80gb"), ("A10 (24 GB PCIe)", "a10"),
     ("V100 32GB SXM2", "v100-sxm3-32gb"), ("MI300X 192 GB HBM3", "mi300x"), ("A100 PCIe 40 GB", "a100-pcie-40gb"),
     ("H100 SXM5 64GB", ""), ("A100-SXM-64GB", ""), ("H100 80GB MIG 1g.10gb", "")],
)  # fmt: skip
def test_words_of_a_device_stand_in_any_order(name: str, device: str) -> None:
    assert device_of(name) == device


@pytest.mark.parametrize("table", [
    "host,gpu_type,gpu_count\na,H100 80GB SXM,8\nb,H100 80GB SXM,8\n",
    "Rechner;GPU;Anzahl\na;H100 SXM;8\nb;H100 SXM;8\n",
    "node,device,count\na,H100 SXM,8\nb,H100 SXM,8\n",
    "NAME    GPU\nnode-a   8\nnode-b   8\n",
])  # fmt: skip
def test_lists_of_machines_as_people_write_them(table: str, tmp_path: Path) -> None:
    path = tmp_path / "machines.txt"
    path.write_text(table)
    reading = read(Source(path), Asked(accelerator="h100-sxm-80gb"))
    (piece,) = reading.pieces
    assert [(each["shape"], each["count"]) for each in piece.fragment["hardware"]["owned"]] == [("onprem/dgx-h100", 2)]


def test_devices_without_a_name_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("NAME    GPU\nnode-a   8\n")
    assert any("--accelerator says which" in note for note in read(Source(tmp_path / "n")).notes)


def test_a_machine_with_a_device_less_is_told_with_its_nearest(tmp_path: Path) -> None:
    one = node("x", "", 8, free=7, labels={"node.kubernetes.io/instance-type": "p5.48xlarge"})
    (tmp_path / "n").write_text(nodes(one))
    (note,) = [each for each in read(Source(tmp_path / "n")).notes if each.startswith("1 × 7")]
    assert "h100-sxm-80gb: the catalog has the device" in note


def test_jobs_of_slurm_written_anew_by_commas(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("JobIDRaw,Start,End,ElapsedRaw,State,AllocTRES\n"
                    '7,2025-06-01T00:00:00,2025-06-01T01:00:00,3600,COMPLETED,"cpu=8,gres/gpu=2,node=1"\n')  # fmt: skip
    reading = read(Source(path))
    assert (reading.taken, {each.label: each.value for each in reading.look}["GPU-hours"]) == (1, 2.0)


def test_printed_nodes_without_their_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("NODE     STATUS   ROLES    AGE   VERSION   GPU-PRODUCT             GPU-COUNT\n"
                                "gpu-1    Ready    <none>   10d   v1.30     NVIDIA-H100-80GB-HBM3   8\n")  # fmt: skip
    assert read(Source(tmp_path / "n")).taken == 1


def test_slurm_conf_tells_what_is_meant_to_be_there(tmp_path: Path) -> None:
    nodes_of = "ClusterName=c\nNodeName=h[001-016] CPUs=192 Gres=gpu:h100:8 State=UNKNOWN\n"
    nodes_of += "NodeName=d1 Gres=gpu:h100:8 State=DOWN\nNodeName=h17 Gres=gpu:h100:8\n"
    (tmp_path / "slurm.conf").write_text(nodes_of)
    reading = read(Source(tmp_path / "slurm.conf"))
    (piece,) = reading.pieces
    assert [(each["shape"], each["count"]) for each in piece.fragment["hardware"]["owned"]] == [("onprem/dgx-h100", 17)]
    assert any("slurm.conf" in note for note in reading.notes)
