"""Small files of clusters and bills, written for the tests of `planner/reading/`; none is a copy."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def node(name: str, product: str = "NVIDIA-H100-80GB-HBM3", gpus: int = 8, **more: Any) -> dict[str, Any]:
    """A node of Kubernetes; `labels`, `ready`, `cordoned`, `free` (allocatable) and `mig` as they are given."""
    labels = {"kubernetes.io/hostname": name}
    if product:
        labels["nvidia.com/gpu.product"] = product
    capacity: dict[str, Any] = {"cpu": "96", "memory": "1143808Mi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    if more.get("mig"):
        capacity["nvidia.com/mig-1g.10gb"] = "7"
    free = dict(capacity) | ({"nvidia.com/gpu": str(more["free"])} if "free" in more else {})
    return {
        "kind": "Node", "metadata": {"name": name, "labels": labels | more.get("labels", {})},
        "spec": {"unschedulable": True} if more.get("cordoned") else {},
        "status": {"capacity": capacity, "allocatable": free,
                   "conditions": [{"type": "Ready", "status": str(more.get("ready", True))}]},
    }  # fmt: skip


def nodes(*items: Any) -> str:
    """As kubectl prints a list."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}, indent=1)


def pods() -> str:
    """A pod that runs on 4 devices, one that waits for 2, one without any."""

    def pod(name: str, phase: str, gpus: int) -> dict[str, Any]:
        limits = {"cpu": "4"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
        return {"metadata": {"name": name, "namespace": "chat"}, "status": {"phase": phase},
                "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": limits}}]}}  # fmt: skip

    return json.dumps(
        {"kind": "PodList", "items": [pod("a", "Running", 4), pod("b", "Pending", 2), pod("c", "Running", 0)]}
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], separator: str = ",") -> str:
    """A table."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def smi_csv(name: str = "NVIDIA L4", memory: str = "23034 MiB", gpus: int = 4, samples: int = 1) -> str:
    """A query of nvidia-smi, so many times."""
    lines = ["index, uuid, name, memory.total [MiB], utilization.gpu [%]"]
    lines += [f"{n}, GPU-{n:04d}, {name}, {memory}, {7 * n} %" for _ in range(samples) for n in range(gpus)]
    return "\n".join(lines) + "\n"


def smi_xml(name: str = "NVIDIA L40S", memory: str = "46068 MiB", gpus: int = 2, mig: str = "N/A") -> str:
    """nvidia-smi -q -x, in the parts that matter."""
    parts = [f'<gpu id="0000:0{n}"><product_name>{name}</product_name>'
             f"<mig_mode><current_mig>{mig}</current_mig></mig_mode>"
             f"<fb_memory_usage><total>{memory}</total><used>1 MiB</used></fb_memory_usage>"
             f"<bar1_memory_usage><total>1 MiB</total></bar1_memory_usage></gpu>" for n in range(gpus)]  # fmt: skip
    return ('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
            f"<driver_version>550.1</driver_version>{''.join(parts)}</nvidia_smi_log>\n")  # fmt: skip


def smi_listed() -> str:
    """nvidia-smi -L, with a slice of the second device and the first again."""
    gpu = "GPU {n}: NVIDIA L4 (UUID: GPU-{n})\n"
    return gpu.format(n=0) + gpu.format(n=1) + "  MIG 1g.5gb     Device  0: (UUID: MIG-1)\n" + gpu.format(n=0)


def smi_bare() -> str:
    """--query-gpu=index,name,memory.total,uuid --format=csv,noheader."""
    return "".join(f"{n}, NVIDIA H100 80GB HBM3, 81559 MiB, GPU-{n}\n" for n in range(8)) + "Unable to determine\n"


def focus_json() -> str:
    """FOCUS as JSON lines."""
    lines = [{"BilledCost": 0.1, "EffectiveCost": "0.1", "BillingCurrency": "USD", "ChargeCategory": "Usage",
              "ChargePeriodStart": "2026-05-01T00:00:00Z", "ProviderName": "AWS", "ServiceName": "EC2",
              "Tags": {"a": "b"}},
             {"BilledCost": 0.2, "BillingCurrency": "USD", "ChargeCategory": "Usage",
              "ChargePeriodStart": "2026-05-02T00:00:00Z", "ProviderName": "AWS", "ServiceName": None}]  # fmt: skip
    return "\n".join(map(json.dumps, lines)) + '\n{"BilledCost": 7, "Bill'


def smi_printed() -> str:
    """The table that it prints."""
    return """Mon Jan  5 10:00:00 2026
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07    Driver Version: 550.90.07    CUDA Version: 12.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla T4            On   | 00000000:00:1E.0 Off |                    0 |
| N/A   40C    P8     9W /  70W |      0MiB / 15360MiB |      0%      Default |
|   1  Tesla T4            On   | 00000000:00:1F.0 Off |                    0 |
| N/A   40C    P8     9W /  70W |      0MiB / 15360MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""


SACCT = ["JobID", "Partition", "State", "Elapsed", "Submit", "Start", "AllocTRES"]


def sacct(*rows: Sequence[str]) -> str:
    """sacct --parsable2; two jobs with a step where no rows are given."""
    rows = rows or (
        ("11", "h100", "COMPLETED", "1-06:00:00", "2026-03-01T17:00:00", "2026-03-01T18:00:00",
         "billing=16,cpu=64,gres/gpu=8,gres/gpu:h100=8,node=1"),
        ("11.batch", "", "COMPLETED", "1-06:00:00", "2026-03-01T18:00:00", "2026-03-01T18:00:00", "cpu=64,gres/gpu=8"),
        ("12", "h100", "CANCELLED by 1000", "00:30:00", "2026-03-02T00:00:00", "2026-03-02T00:00:10",
         "gres/gpu:h100=4"),
        ("13", "cpu", "FAILED", "00:10:00", "2026-03-02T00:00:00", "2026-03-02T00:00:00", "cpu=4,node=1"),
    )  # fmt: skip
    return "\n".join("|".join(row) for row in [SACCT, *rows]) + "\n"


def sinfo() -> str:
    """Nodes with devices, one of them down."""
    lines = (f"n{n}|{'down*' if n == 3 else 'mixed'}|gpu:l40s:4(S:0-1)\n" for n in range(4))
    return ("NODELIST|STATE|GRES\n" + "".join(lines)
            + "n0|mixed|gpu:l40s:4(S:0-1)\n")  # fmt: skip


FOCUS = ["BilledCost", "BillingCurrency", "ChargeCategory", "ChargePeriodStart", "EffectiveCost", "ProviderName",
         "ServiceName", "Tags"]  # fmt: skip


def focus(*rows: Sequence[object]) -> str:
    """Lines in the form of FOCUS; a tag holds an end of a line."""
    rows = rows or (
        ("0.1", "USD", "Usage", "2026-05-01T00:00:00Z", "0.1", "AWS", "EC2", '{"a":\n"b"}'),
        ("0.2", "USD", "Usage", "2026-05-01 07:00:00", "0.3", "AWS", "EC2", "NULL"),
        ("-0.05", "USD", "Credit", "2026-05-02T00:00:00Z", "0", "AWS", "S3", ""),
    )
    return table(FOCUS, rows)


def aws() -> str:
    """Cost and usage report; a line of it stands twice."""
    columns = ["identity/LineItemId", "identity/TimeInterval", "lineItem/LineItemType", "lineItem/UsageStartDate",
               "lineItem/ProductCode", "lineItem/CurrencyCode", "lineItem/UnblendedCost"]  # fmt: skip
    row = ("a1", "i", "Usage", "2026-05-01T00:00:00.000Z", "AmazonEC2", "USD", "1.5")
    return table(columns, [row, row, ("a2", "i", "Tax", "2026-05-02T00:00:00Z", "AmazonEC2", "USD", "3.0E-1")])


def azure_bill() -> str:
    """A localised export: semicolons, decimal commas, days first."""
    columns = ["MeterId", "MeterCategory", "Date", "BillingCurrencyCode", "CostInBillingCurrency", "ChargeType"]
    return table(columns, [("m", "Storage", "13/02/2026", "EUR", "1.000,25", "Usage"),
                           ("m", "Storage", "03/02/2026", "EUR", "0,75", "Usage")], ";")  # fmt: skip


def gcp() -> str:
    """Google's, with a credit."""
    columns = ["service.description", "sku.description", "usage_start_time", "cost", "currency", "credits", "cost_type"]
    credit = '[{"name": "cud", "amount": -0.25}]'
    return table(columns, [("Compute Engine", "A3", "2026-05-01T00:00:00", "2.5", "USD", credit, "regular"),
                           ("Compute Engine", "A3", "2026-05-01T01:00:00", "2.5", "USD", "[]", "regular")])  # fmt: skip


def opencost() -> str:
    """Two windows of a day, and a null where a window had nothing."""

    def each(day: int, cost: float) -> dict[str, Any]:
        return {"name": "chat", "start": f"2026-05-0{day}T00:00:00Z", "end": f"2026-05-0{day + 1}T00:00:00Z",
                "cpuCost": 0.5, "ramCost": 0.25, "gpuCost": cost - 0.75, "gpuHours": 8, "totalCost": cost}  # fmt: skip

    return json.dumps({"code": 200, "data": [{"chat": each(1, 10.0), "idle": None}, {"chat": each(2, 20.5)}]})


def opencost_table() -> str:
    """OpenCost's export: a total, one of parts alone, a day that is none."""
    columns = ["Date", "Namespace", "Pod", "GPUs", "CPUCost", "RAMCost", "GPUCost", "TotalCost"]
    return table(columns, [("2026-05-01", "chat", "p", 2, 0.5, 0.25, 9.25, 10.0),
                           ("2026-05-02", "chat", "p", 2, 0.5, 0.25, 4.25, ""),
                           ("soon", "chat", "p", 2, 0.5, 0.25, 4.25, 5.0)])  # fmt: skip


def gpu_usage() -> str:
    """Devices of pods by hour."""
    columns = ["interval_start", "node", "namespace", "pod", "gpu_uuid", "gpu_model_name", "gpu_memory_capacity_mib",
               "gpu_pod_uptime", "mig_profile"]  # fmt: skip
    rows = [(f"2026-05-0{day} 00:00:00 +0000 UTC", f"n{gpu // 2}", "chat", "p", f"GPU-{gpu}", "L4", 23034, 1800, "")
            for day in (1, 2) for gpu in range(4)]  # fmt: skip
    return table(columns, rows)


SHOWN = """JobId=1001 ArrayJobId=1000 ArrayTaskId=1 JobName=train RunTime
   UserId=u(1000) GroupId=g(1000) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=1-06:00:00 TimeLimit=2-00:00:00 TimeMin=N/A
   SubmitTime=2025-03-01T00:00:00 EligibleTime=2025-03-01T00:00:00
   StartTime=2025-03-01T01:00:00 EndTime=2025-03-03T01:00:00 Deadline=N/A
   Partition=gpu AllocNode:Sid=login:1
   NumNodes=2 NumCPUs=128 NumTasks=16 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=128,mem=2T,node=2,billing=128,gres/gpu=99
   AllocTRES=cpu=128,mem=2T,node=2,billing=128,gres/gpu=16
   Command=/home/u/JobState=FAILED

JobId=1002 JobName=next
   JobState=PENDING Reason=Priority Dependency=(null)
   RunTime=00:00:00 TimeLimit=2-00:00:00 TimeMin=N/A
   SubmitTime=2025-03-01T00:00:00 EligibleTime=2025-03-01T00:00:00
   StartTime=2025-03-09T01:00:00 EndTime=2025-03-11T01:00:00 Deadline=N/A
   Partition=gpu NumNodes=1-1
   ReqTRES=cpu=128,mem=2T,node=1,billing=128,gres/gpu=8
   AllocTRES=(null)
"""


GPUSTAT = """\x1b[1m\x1b[37mgpu01  \x1b[m  Sat Mar  1 01:00:00 2025  550.54.15
[0] NVIDIA H100 80GB HBM3 | 35'C,  99 % | 70000 / 81559 MB | user(70000M)
[1] NVIDIA H100 80GB HBM3 | 35'C,   0 %,  70 /  700 W |     4 / 81559 MB |
"""


TOPO = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tmlx5_1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tSYS\tSYS\tPIX\tNODE\t0-55\t0
GPU1\tNV4\t X \tSYS\tSYS\tNODE\tPIX\t0-55\t0
GPU2\tSYS\tSYS\t X \tNV4\tSYS\tSYS\t56-111\t1
GPU3\tSYS\tSYS\tNV4\t X \tSYS\tSYS\t56-111\t1
NIC0\tPIX\tNODE\tSYS\tSYS\t X \tNODE

Legend:

  X    = Self
"""


def bare_job(number: int, **change: str) -> str:
    """As sacct -n -P -o JobID,JobName,State,Elapsed,Timelimit,Submit,Start,End,AllocTRES,NNodes prints it."""
    cells = {"id": str(number), "name": "2025-03-01", "state": "COMPLETED", "elapsed": "1-02:03:04",
             "limit": "2-00:00:00", "submit": "2025-03-01T00:00:00", "start": "2025-03-01T01:00:00",
             "end": "2025-03-02T03:03:04", "tres": "cpu=64,gres/gpu:h100=8,gres/gpu=8", "nodes": "1"}  # fmt: skip
    return "|".join((cells | change).values()) + "\n"


# name -> kind, and how a file of it is made
SMALL: Mapping[str, tuple[str, Callable[[], str | bytes]]] = {
    "nodes.json": ("k8s-nodes", lambda: nodes(node("n1"), node("n2"), node("c1", "", 0))),
    "pods.json": ("k8s-pods", pods),
    "gpu_usage.csv": ("k8s-gpu-usage", gpu_usage),
    "smi.csv": ("nvidia-smi", smi_csv),
    "gpustat.txt": ("gpustat", lambda: GPUSTAT),
    "topo.txt": ("nvidia-smi-topo", lambda: TOPO),
    "scontrol_jobs.txt": ("sacct", lambda: SHOWN),
    "sacct_bare.txt": ("sacct", lambda: "".join(map(bare_job, range(12)))),
    "smi.xml": ("nvidia-smi-xml", smi_xml),
    "smi.txt": ("nvidia-smi-printed", smi_printed),
    "smi_l.txt": ("nvidia-smi-bare", smi_listed),
    "smi_bare.csv": ("nvidia-smi-bare", smi_bare),
    "focus.jsonl": ("bill", focus_json),
    "sacct.csv": ("sacct", sacct),
    "sinfo.txt": ("sinfo", sinfo),
    "focus.csv": ("bill", focus),
    "aws.csv": ("bill", aws),
    "azure_bill.csv": ("bill", azure_bill),
    "gcp.csv": ("bill", gcp),
    "opencost.json": ("allocations", opencost),
    "opencost.csv": ("allocations-table", opencost_table),
}
