"""Machines by what clusters tell of them, as hardware that is owned; jobs as a history of demand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.inventory import by_day, device_of
from planner.reading.kinds import Asked, Reading, kind_of, read
from planner.reading.piece_writing import write_into
from planner.reading.slurm_jobs import elapsed_s, gpus_of
from planner.reading.source import Source
from tests.reading.cluster_writers import (
    gpu_usage,
    node,
    nodes,
    pods,
    sacct,
    sinfo,
    smi_bare,
    smi_csv,
    smi_listed,
    smi_printed,
    smi_xml,
)

GIB = 2.0**30


def reading_of(folder: Path, *contents: str) -> Reading:
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"host-{number}")
        paths[-1].write_text(content)
    return read(Source(*paths))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def owned(reading: Reading) -> dict[str, int]:
    found = [piece.fragment["hardware"]["owned"] for piece in reading.pieces if piece.fragment]
    return {each["shape"]: each["count"] for entries in found for each in entries}


@pytest.mark.parametrize(
    ("name", "memory_bytes", "device"),
    [
        ("NVIDIA-A100-SXM4-40GB", None, "a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB", 81920 * 2.0**20, "a100-sxm-80gb"),
        ("A100", 40 * GIB, "a100-sxm-40gb"),  # the name alone means the one with 80 GB
        ("A100", None, "a100-sxm-80gb"),
        ("Tesla T4", 15360 * 2.0**20, "t4"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", None, "h100-sxm-80gb"),
        ("L40S", 48 * GIB, "l40s"),
        ("AMD_Instinct_MI300X_OAM", None, "mi300x"),
        ("T4", 80 * GIB, ""),  # no T4 has it
        ("Another GPU", None, ""),
        ("", None, ""),
    ],
)
def test_a_device_is_known_by_its_name_and_its_memory(name: str, memory_bytes: float | None, device: str) -> None:
    assert device_of(name, memory_bytes) == device


def test_nodes_that_can_be_used_are_owned_and_the_others_counted(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, nodes(
        node("n1"), node("n2", labels={"nvidia.com/gpu.memory": "81559"}), node("n1"), node("down", ready=False),
        node("kept", cordoned=True), node("cpu", "", 0), node("cut", mig=True), node("broken", free=0), 7,
        node("cloud", "NVIDIA-A100-SXM4-40GB", labels={"node.kubernetes.io/instance-type": "p4d.24xlarge"}),
    ))  # fmt: skip
    assert (reading.kind, reading.taken) == ("k8s-nodes", 3)
    assert owned(reading) == {"aws/p4d.24xlarge": 1, "onprem/dgx-h100": 2}
    assert {why: count for why, (count, _) in reading.skipped.reasons.items()} == {
        "a node that stands above": 1, "not ready": 1, "cordoned": 1, "no accelerator": 1, "cut into MIG slices": 1,
        "none of its accelerators can be allocated": 1, "JSON, but no node": 1,
    }  # fmt: skip
    assert reading.skipped.reasons["cordoned"] == (1, 5)
    assert figures(reading)["accelerators"] == 24


def test_a_device_that_is_shared_counts_once(tmp_path: Path) -> None:
    labels = {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "10"}
    reading = reading_of(tmp_path, nodes(node("n", "NVIDIA-L4-SHARED", 40, labels=labels)))
    assert owned(reading) == {"onprem/l4-x4": 1}


def test_what_the_catalog_has_not_is_said_with_the_nearest(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, nodes(node("n", gpus=7), node("m", "NVIDIA-GeForce-RTX-2080-SUPER", 1)))
    assert not owned(reading)
    assert reading.taken == 2
    few, other = sorted(reading.notes)
    assert "1 × 1 NVIDIA-GeForce-RTX-2080-SUPER: not in the catalog; nearest: rtx-" in few
    assert "no such shape; nearest: " in other
    assert "with 8 of them" in other


def test_owned_machines_are_counted_anew_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: plan/v1\nname: mine\nhardware:\n  allow: [l4]  # ours\n"
        "  owned:\n    - {shape: onprem/t4-x1, count: 3, price: $1/h}\n"
        "    - shape: onprem/l4-x4   # in the cellar\n      count: 7   # once\n      price: $2/h\n  # the end\n"
    )
    write_into(reading_of(tmp_path, smi_csv()), str(path), Asked())
    write_into(reading_of(tmp_path, smi_xml()), str(path), Asked())
    assert path.read_text() == (
        "schema: plan/v1\nname: mine\nhardware:\n  allow: [l4]  # ours\n"
        "  owned:\n    - {shape: onprem/t4-x1, count: 3, price: $1/h}\n"
        "    - shape: onprem/l4-x4   # in the cellar\n      count: 1   # once\n      price: $2/h\n"
        "    - shape: onprem/l40s-x2\n      count: 1\n      price: $0/h\n  # the end\n"
    )


@pytest.mark.parametrize(
    "owned",
    ["  owned: [{shape: onprem/l4-x4, count: 3, price: $1/h}]\n",
     "  owned:\n" + "    - {shape: onprem/l4-x4, count: 3, price: $1/h}\n" * 2,
     "  owned:\n    - {shape: onprem/l4-x4, price: $1/h}\n"],
)  # fmt: skip
def test_entries_that_cannot_be_counted_anew_are_refused(owned: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"schema: plan/v1\nname: mine\nhardware:\n  allow: [l4]\n{owned}")
    before = path.read_text()
    with pytest.raises(InputError, match="not edited"):
        write_into(reading_of(tmp_path, smi_csv()), str(path), Asked())
    assert path.read_text() == before


def test_pods_say_what_is_asked_for(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, pods())
    found = figures(reading)
    assert (found["accelerators of pods that are Running"], found["accelerators of pods that are Pending"]) == (4, 2)
    assert found["asked for in chat"] == 6
    assert reading.skipped.reasons == {"no accelerator": (1, 3)}


def test_rows_of_a_device_are_samples_and_each_file_is_a_machine(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, smi_csv(samples=3), smi_csv(), smi_csv(gpus=2))
    assert owned(reading) == {"onprem/l4-x4": 2, "onprem/l4-x2": 1}
    assert reading.skipped.reasons == {"a device that stands above: another sample of it": (8, 6)}


@pytest.mark.parametrize("text", [smi_csv("NVIDIA L4", "[N/A]"), smi_csv("NVIDIA L4", "23034")])
def test_memory_without_unit_or_value_leaves_the_name(tmp_path: Path, text: str) -> None:
    assert owned(reading_of(tmp_path, text)) == {"onprem/l4-x4": 1}


def test_xml_gives_whole_devices_and_says_what_is_cut(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, smi_xml(mig="Enabled"))
    assert (reading.taken, owned(reading)) == (2, {"onprem/l40s-x2": 1})
    assert reading.understood["driver_version"] == "550.1"
    assert any("2 of the devices are cut into MIG" in note for note in reading.notes)


def test_xml_that_ends_early_keeps_the_devices_before(tmp_path: Path) -> None:
    text = smi_xml(gpus=3)
    reading = reading_of(tmp_path, text[: text.rindex("<used>")])
    assert (reading.taken, owned(reading)) == (2, {"onprem/l40s-x2": 1})
    assert reading.skipped.count == 1


def test_xml_that_declares_entities_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("NVIDIA L4")
    for entity in (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', '<!ENTITY x "NVIDIA L4">'):
        text = smi_xml("&x;").replace('SYSTEM "nvsmi_device_v12.dtd"', f"[{entity}]")
        with pytest.raises(InputError, match="entities"):
            reading_of(tmp_path, text)


def test_xml_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="40 deep"):
        reading_of(tmp_path, smi_xml().replace("<driver_version>", "<a>" * 39 + "<driver_version>", 1))
    assert (
        reading_of(
            tmp_path, smi_xml().replace("<driver_version>", "<a>" * 38 + "</a>" * 38 + "<driver_version>", 1)
        ).taken
        == 2
    )


def test_a_training_log_that_prints_nvidia_smi_is_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    steps = [
        f" iteration {n}/ 90 | elapsed time per iteration (ms): 500.0 | global batch size: 8 |" for n in range(1, 60)
    ]
    path.write_text("\n".join(["starting"] * 300 + [smi_printed(), *steps]) + "\n")
    assert kind_of(Source(path))[0].name == "training-log"


def test_printed_devices_are_taken(tmp_path: Path) -> None:
    assert owned(reading_of(tmp_path, smi_printed())) == {"onprem/t4-x2": 1}


def test_jobs_become_gpu_hours_of_days(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, sacct())
    found = figures(reading)
    assert (reading.taken, found["jobs with GPUs"]) == (3, 2)
    assert found["GPU-hours"] == 8 * 30 + 4 * 0.5
    assert (found["first day"], found["last day"]) == ("2026-03-01", "2026-03-02")
    assert found["wait before a start, mean"] == pytest.approx((3600 + 10 + 0) / 3)
    assert found["jobs CANCELLED"] == 1
    assert reading.skipped.reasons == {"a step, which counts in its job": (1, 3)}
    assert reading.pieces[0].text.splitlines() == [
        "day,jobs_started,job_hours,gpu_hours", "2026-03-01,1,6,48", "2026-03-02,2,24.6666667,194",
    ]  # fmt: skip


def test_jobs_that_tell_too_little_or_twice_are_counted(tmp_path: Path) -> None:
    row = ("1", "p", "COMPLETED", "01:00:00", "Unknown", "Unknown", "gres/gpu=1")
    odd = [row, row, ("2", "p", "COMPLETED", "soon", "", "", ""), ("3", "p", "?", "01:00:00", "", "", ""),
           ("4", "p", "COMPLETED", "3661-00:00:00", "", "", ""), ("x", "p", "COMPLETED", "01:00:00", "", "", ""),
           ("5", "p")]  # fmt: skip
    reading = reading_of(tmp_path, sacct(*odd))
    assert reading.taken == 1
    assert set(reading.skipped.reasons) == {
        "a job that stands twice, by its number and times", "no time that it took", "no state of a job",
        "longer than 3660 days", "no number of a job", "more or fewer cells than columns",
    }  # fmt: skip
    assert any("1 jobs have no start" in note for note in reading.notes)


def test_a_quote_in_a_name_of_a_job_swallows_nothing(tmp_path: Path) -> None:
    rows = [(str(n), '"p' if n == 2 else "p", "COMPLETED", "01:00:00", "", "", "gres/gpu=1") for n in range(1, 5)]
    assert reading_of(tmp_path, sacct(*rows)).taken == 4


def test_times_and_resources_of_slurm() -> None:
    assert (elapsed_s("2-01:00:01"), elapsed_s("05:00"), elapsed_s("00:00:02.5")) == (176401, 300, 2)
    assert elapsed_s("tomorrow") is None
    assert gpus_of("cpu=4,gres/gpu=8,gres/gpu:a100=6") == {"": 8, "a100": 6}
    assert gpus_of("gpu:2") == {"": 2}
    assert gpus_of("gres/gpumem=80G") == {}


def test_days_of_a_job_add_up() -> None:
    from datetime import datetime

    parts = list(by_day(datetime(2024, 2, 28, 23, 0), 86_400 * 2 + 3600))
    assert [(begin.date().isoformat(), seconds) for begin, seconds in parts] == [
        ("2024-02-28", 3600), ("2024-02-29", 86_400), ("2024-03-01", 86_400),
    ]  # fmt: skip


def test_nodes_of_slurm_that_are_up_are_owned(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, sinfo())
    assert (reading.taken, owned(reading)) == (4, {"onprem/l40s-x4": 3})
    assert figures(reading)["nodes down"] == 1
    assert reading.skipped.reasons == {"a node that stands above (of another partition)": (1, 6)}


def test_devices_of_pods_by_hour_are_hours_and_machines(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, gpu_usage())
    assert figures(reading)["GPU-hours"] == pytest.approx(8 * 0.5)
    assert owned(reading) == {"onprem/l4-x2": 2}
    assert reading.pieces[0].text == "day,gpu_hours\n2026-05-01,2\n2026-05-02,2\n"


@pytest.mark.parametrize(
    "value", [None, [], {}, "x", 3, {"status": None}, {"status": {"allocatable": {"nvidia.com/gpu": "x"}}}]
)
def test_odd_nodes_are_counted(value: object, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, json.dumps(json.loads(nodes(node("n")))["items"] + [value]))
    assert (reading.taken, reading.skipped.count) == (1, 1)


def test_devices_without_a_first_line_of_names(tmp_path: Path) -> None:
    listed = reading_of(tmp_path, smi_listed())
    assert owned(listed) == {"onprem/l4-x2": 1}
    assert {why: count for why, (count, _) in listed.skipped.reasons.items()} == {
        "a MIG slice of the device above": 1, "a device that stands above: another sample of it": 1,
    }  # fmt: skip
    bare = reading_of(tmp_path, smi_bare())
    assert (bare.taken, bare.skipped.reasons) == (8, {"no name of a device": (1, 9)})
    assert figures(bare)["of them h100-sxm-80gb"] == 8
