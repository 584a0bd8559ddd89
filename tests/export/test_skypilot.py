"""SkyPilot tasks: valid by SkyPilot's own schema, and the machines, replicas and commands of the plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.export import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch, skypilot, vllm
from planner.export.serving_command import SCRIPT
from planner.export.skypilot_names import (
    ACCELERATORS,
    CLOUDS,
    OTHER_NAMES,
    PORTS,
    accelerators,
    infra,
    instance_type,
    lacks,
)
from tests.export.hostile import HOSTILE, PIECES, hostile
from tests.export.scripts import BLANKS, recorded_parser
from tests.export.shells import stub_folder, words_of, yaml_documents
from tests.export.skypilot_schema import installed_version, task_schemas
from tests.tiers import cases

NAMES = HOSTILE[: cases(len(PIECES), 200)]

Read = Callable[..., list[Launch]]
Validators = dict[str, jsonschema.Draft202012Validator]
# allocations of the shipped scenarios that no task can launch, each for a reason that is told
REFUSED = {
    ("mixed-job", "pretrain-8b-1"),  # one job over unequal machines
    ("mixed-job", "pretrain-8b-2"),
    ("tpu", "bert-sized"),  # a GPT-NeoX, which MaxText does not have
}
NODES = {"SKYPILOT_NODE_RANK": "0", "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", "MODEL": "/weights"}


@pytest.fixture
def launches(launches: Read) -> Read:
    """The kept plans, but fleets at a cloud without open ports stand at another: such refusals have their own tests."""

    def read(name: str, *change: Any) -> list[Launch]:
        return [_with_ports(launch) for launch in launches(name, *change)]

    return read


def _with_ports(launch: Launch) -> Launch:
    if not isinstance(launch, ServingLaunch) or not lacks(launch.machine, PORTS):
        return launch
    return replace(launch, machine=replace(launch.machine, provider="nebius", region="eu-north1"))


@pytest.fixture(scope="module")
def schemas() -> Validators:
    if installed_version() is None:
        pytest.skip("SkyPilot is not installed: pip install --no-deps skypilot")
    assert installed_version() == skypilot.SKYPILOT.version
    return {name: jsonschema.Draft202012Validator(schema) for name, schema in task_schemas().items()}


def task_of(files: list[ExportFile]) -> dict[str, Any]:
    """The task as SkyPilot reads it."""
    (text,) = [file.text for file in files if file.name.endswith(".sky.yaml")]
    (found,) = yaml_documents(text)
    assert isinstance(found, dict)
    return found


def validate(task: dict[str, Any], schemas: Validators) -> None:
    schemas["task"].validate(task)
    schemas["resources"].validate(task["resources"])
    if "service" in task:
        schemas["service"].validate(task["service"])


def all_launches(plans: dict[str, Any], launches: Read) -> list[tuple[str, Launch]]:
    return [(name, launch) for name in plans for launch in launches(name)]


def test_every_shipped_plan_is_accepted_by_skypilots_schema(
    plans: dict[str, Any], launches: Read, schemas: Validators
) -> None:
    refused = set()
    for name, launch in all_launches(plans, launches):
        try:
            task = task_of(skypilot.files(launch))
        except NotExpressible:
            refused.add((name, launch.stem))
            continue
        validate(task, schemas)
        nodes = task["num_nodes"]
        if isinstance(launch, ServingLaunch):
            assert nodes == launch.nodes_per_replica
            assert nodes * task["service"]["replicas"] == launch.machine.nodes
        else:
            assert isinstance(launch, TrainingLaunch)
            assert nodes * launch.jobs == launch.machine.nodes
        (held,) = task["resources"]["accelerators"].values()
        assert held == launch.machine.devices_per_node or launch.machine.device_kind == "tpu"
        assert task["resources"].get("use_spot", False) == (launch.machine.price_model == "spot")
    assert refused == REFUSED


def test_the_schema_is_the_real_one_and_refuses(schemas: Validators, launches: Read) -> None:
    (launch,) = [launch for launch in launches("llama") if isinstance(launch, ServingLaunch)]
    task = task_of(skypilot.files(launch))
    for wrong in ({"node_count": 2}, {"num_nodes": "2"}, {"run": ["a"]}, {"envs": {"a b": "c"}}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**task, **wrong}, schemas)
    for wrong in ({"infra": "hyperstack/CANADA-1"}, {"accelerators": 8}, {"spot": True}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**task, "resources": {**task["resources"], **wrong}}, schemas)
    with pytest.raises(jsonschema.ValidationError):
        validate({**task, "service": {"replica": 2}}, schemas)


def test_the_clouds_are_those_of_this_version(schemas: Validators) -> None:
    known = set(schemas["resources"].schema["properties"]["cloud"]["case_insensitive_enum"])
    assert set(CLOUDS.values()) <= known
    sold = {offer.provider for offer in load_catalog().offers}
    assert {"hyperstack", "crusoe", "coreweave"} <= sold - set(CLOUDS)  # whose offers are said to be none of SkyPilot's
    assert "hyperstack" not in known


def test_names_of_accelerators_are_those_that_the_importer_reads(catalog: Catalog) -> None:
    """Read back through the aliases of devices, as the importer does, a name is the same chip or one of its builds."""
    named = {**{(None, device): name for device, name in ACCELERATORS.items()}, **OTHER_NAMES}
    for (_, device), name in named.items():
        assert device in catalog.devices
        read = catalog.aliases.get(name.lower())
        if read is not None:
            assert read.split("-")[0] == device.split("-")[0], (device, name, read)


def test_a_fleet_runs_the_same_command_as_its_vllm_script(launches: Read, tmp_path: Path) -> None:
    stubs = stub_folder(tmp_path)
    for name in ("llama", "trace", "chat-fleet", "tpu"):
        launch = next(launch for launch in launches(name) if isinstance(launch, ServingLaunch))
        task = task_of(skypilot.files(launch))
        script = "\n".join(vllm.server(launch, SCRIPT).lines(SCRIPT if launch.nodes_per_replica > 1 else None))
        env = {**NODES, "NODE_RANK": "0", "MASTER_ADDR": "10.0.0.1"}
        theirs, ours = words_of([task["run"], script], stubs, env)
        assert theirs == ours
        assert theirs[:2] == ["vllm", "serve"]
        assert task["setup"].startswith("pip install vllm")


def test_nodes_of_a_job_find_the_first(launches: Read, tmp_path: Path) -> None:
    (launch,) = [launch for launch in launches("under-way") if isinstance(launch, TrainingLaunch)]
    task = task_of(skypilot.files(launch))
    env = {**BLANKS, **NODES, "MASTER_ADDR": "wrong"}
    (words,) = words_of([task["run"]], stub_folder(tmp_path), env)
    assert words[0] == "torchrun"
    launcher, _ = recorded_parser("torchrun").parse_known_args(words[1:])
    assert launcher.rdzv_endpoint == "10.0.0.1:29500"
    assert int(launcher.nnodes) == task["num_nodes"] == launch.nodes_per_job
    assert set(task["envs"]) <= set(BLANKS) | {"RUN"}
    assert all(value is None for value in task["envs"].values())


def test_spot_jobs_are_managed_and_come_back(launches: Read, schemas: Validators) -> None:
    launch = next(launch for launch in launches("llama") if isinstance(launch, TrainingLaunch))
    launch = replace(launch, machine=replace(launch.machine, provider="nebius", region="eu-north1", price_model="spot"))
    (file,) = skypilot.files(launch)
    task = task_of([file])
    validate(task, schemas)
    assert task["resources"]["use_spot"] is True
    assert task["resources"]["job_recovery"] == {"strategy": "FAILOVER"}
    assert f"sky jobs launch {launch.stem}.sky.yaml --env" in file.text


def test_what_skypilot_cannot_rent_is_said(launches: Read) -> None:
    launch = next(launch for launch in launches("llama") if isinstance(launch, TrainingLaunch))
    (file,) = skypilot.files(launch)
    assert "SkyPilot 0.14.1 cannot rent from hyperstack" in file.text
    assert "19.2 USD per node and hour" in file.text
    assert "infra" not in task_of([file])["resources"]
    owned = next(launch for launch in launches("old-cards") if isinstance(launch, ServingLaunch))
    assert "SSH node pool" in skypilot.files(owned)[0].text
    kept = replace(launch, machine=replace(launch.machine, provider="aws", price_model="commitment_1y"))
    assert "commitment_1y, which is bought apart" in skypilot.files(kept)[0].text
    for wrong in ({"shape_kind": "mig"}, {"device": "sn40l"}):
        with pytest.raises(NotExpressible):
            skypilot.files(replace(launch, machine=replace(launch.machine, **wrong)))


@pytest.mark.parametrize(
    ("provider", "region", "zone", "shape", "device", "place", "kind", "held"),
    [
        ("aws", "us-east-1", "use1-az1", "p5.48xlarge", "h100-sxm-80gb", "aws/us-east-1", "p5.48xlarge", {"H100": 8}),
        ("gcp", "us-central1", "us-central1-a", "a3-highgpu-8g", "h100-sxm-80gb", "gcp/us-central1/us-central1-a",
         "a3-highgpu-8g", {"H100": 8}),
        ("gcp", "us-east5", "us-east5-a", "a3-megagpu-8g", "h100-sxm-80gb", "gcp/us-east5/us-east5-a",
         "a3-megagpu-8g", {"H100-MEGA": 8}),
        ("azure", "eastus", "", "ND96isr_H100_v5", "h100-sxm-80gb", "azure/eastus", "Standard_ND96isr_H100_v5",
         {"H100": 8}),
        ("digitalocean", "tor1", "", "gpu-h100x8-640gb", "h100-sxm-80gb", "do/tor1", "gpu-h100x8-640gb", {"H100": 8}),
        ("lambda", "us-east-1", "", "gpu_8x_a6000", "rtx-a6000", "lambda/us-east-1", "gpu_8x_a6000", {"A6000": 8}),
        ("coreweave", "US-EAST", "", "x", "h100-sxm-80gb", None, None, {"H100": 8}),
        ("runpod", "any", "", "8x_L4_SECURE", "l4", "runpod", "8x_L4_SECURE", {"L4": 8}),  # no region of RunPod's
        ("aws", "a/b", "", "p5.48xlarge", "h100-sxm-80gb", "aws", "p5.48xlarge", {"H100": 8}),
    ],
)  # fmt: skip
def test_places_and_machines_in_skypilots_words(
    provider: str, region: str, zone: str, shape: str, device: str, place: str, kind: str, held: dict[str, int],
    launches: Read,
) -> None:  # fmt: skip
    machine = next(launch for launch in launches("llama") if isinstance(launch, TrainingLaunch)).machine
    machine = replace(machine, provider=provider, region=region, zone=zone, shape_name=shape, device=device)
    assert (infra(machine), instance_type(machine), accelerators(machine)) == (place, kind, held)


def test_tpu_slices_are_accelerators(launches: Read, schemas: Validators) -> None:
    v6e, v5e = (launch for launch in launches("tpu") if isinstance(launch, ServingLaunch))
    for launch, held, runtime in (
        (v6e, "tpu-v6e-4", "v2-alpha-tpuv6e"),
        (v5e, "tpu-v5litepod-4", "v2-alpha-tpuv5-lite"),  # SkyPilot itself would take the v5p's
    ):
        task = task_of(skypilot.files(launch))
        validate(task, schemas)
        assert task["resources"]["accelerators"] == {held: 1}
        assert task["resources"]["accelerator_args"] == {"runtime_version": runtime}
        assert "instance_type" not in task["resources"]
        assert task["setup"] == "pip install vllm-tpu==0.32.0\n"


def test_replicas_that_come_with_the_load(launches: Read, schemas: Validators) -> None:
    launch = next(launch for launch in launches("llama") if isinstance(launch, ServingLaunch))
    task = task_of(skypilot.files(replace(launch, replicas_always=2)))
    validate(task, schemas)
    assert task["service"]["replica_policy"] == {
        "min_replicas": 2,
        "max_replicas": 6,
        "target_qps_per_replica": pytest.approx(launch.requests_per_s, abs=1e-4),
    }
    assert task_of(skypilot.files(launch))["service"]["replicas"] == 6


@pytest.mark.parametrize(("always", "least"), [(0, 0), (1, 1), (2, 1), (3, 2), (6, 3)])
def test_replicas_that_share_nodes_come_node_by_node(launches: Read, always: int, least: int) -> None:
    """Six replicas on three nodes: three that always run take two nodes, of which one is half in use."""
    launch = next(launch for launch in launches("llama") if isinstance(launch, ServingLaunch))
    machine = replace(launch.machine, nodes=3, devices_per_node=2 * launch.devices_per_replica)
    shared = replace(launch, machine=machine, replicas=6, replicas_always=always)
    service = task_of(skypilot.files(shared))["service"]
    if always == 6:
        assert service["replicas"] == least
        return
    assert service["replica_policy"] == {
        "min_replicas": least,
        "max_replicas": 3,
        "target_qps_per_replica": pytest.approx(2 * launch.requests_per_s, abs=1e-4),
    }


def test_levels_of_an_autoscaled_fleet_are_one_launch(launches: Read) -> None:
    def with_levels(document: dict[str, Any]) -> None:
        (workload,) = [one for one in document["workloads"] if one["kind"] == "serving"]
        (row,) = workload["allocations"]
        more = {
            "count": 3,
            "devices": 6,
            "replicas": 3,
            "replicas_needed": 3,
            "level": 2,
            "routed_requests_per_s": [10.0],
        }
        workload["allocations"] = [{**row, **more}, row, {**row, **more, "offer": "another"}]

    first, other = (one for one in launches("llama", with_levels) if isinstance(one, ServingLaunch))
    assert (first.replicas, first.replicas_always, first.machine.nodes, first.machine.devices) == (9, 6, 9, 18)
    assert first.buckets[0].routed_requests_per_s == 30.0
    assert (other.replicas, other.replicas_always) == (3, 0)
    assert first.comes_and_goes
    (plain,) = (one for one in launches("llama") if isinstance(one, ServingLaunch))
    assert plain.replicas_always == plain.replicas
    assert not plain.comes_and_goes


@pytest.mark.parametrize(
    ("facts", "tier", "note"),
    [
        ({"provider": "aws", "shape_name": "p5.48xlarge", "network_kind": "efa"}, "best", "one EFA interface"),
        ({"provider": "gcp", "shape_name": "a3-highgpu-8g", "network_kind": "gpudirect-tcpx"}, "best", ""),
        ({"provider": "gcp", "shape_name": "a3-megagpu-8g", "network_kind": "gpudirect-tcpx"}, None, "not bring up"),
        ({"provider": "nebius", "device": "h100-sxm-80gb", "network_kind": "infiniband"}, "best", ""),
        ({"provider": "azure", "shape_name": "ND96isr_H100_v5", "network_kind": "infiniband"}, None, "not bring up"),
        ({"provider": "hyperstack", "network_kind": "ethernet"}, None, ""),
    ],
)
def test_nodes_of_a_job_have_the_network_that_was_planned(
    launches: Read, schemas: Validators, facts: dict[str, Any], tier: str | None, note: str
) -> None:
    """Planned at the rate of EFA and InfiniBand, started on the Ethernet of the hosts."""
    (launch,) = [one for one in launches("llama") if isinstance(one, TrainingLaunch)]
    (file,) = skypilot.files(replace(launch, machine=replace(launch.machine, **facts)))
    task = task_of([file])
    validate(task, schemas)
    assert task["num_nodes"] > 1
    assert task["resources"].get("network_tier") == tier
    assert ("EFA interface" in file.text or "not bring up" in file.text) == bool(note)
    assert note in file.text


def test_large_models_get_a_disk_for_their_checkpoint(launches: Read) -> None:
    launch = next(launch for launch in launches("llama") if isinstance(launch, ServingLaunch))
    large = replace(launch, model=replace(launch.model, parameters=405 * 10**9))
    assert "disk_size" not in task_of(skypilot.files(launch))["resources"]
    assert task_of(skypilot.files(large))["resources"]["disk_size"] == 910


def test_hostile_names_stay_text(launches: Read, schemas: Validators, tmp_path: Path) -> None:
    launch = next(launch for launch in launches("trace") if isinstance(launch, ServingLaunch))
    training = next(launch for launch in launches("llama") if isinstance(launch, TrainingLaunch))
    plain, runs, names = task_of(skypilot.files(launch)), [], set()
    for number, name in enumerate(NAMES):
        tasks = [task_of(skypilot.files(hostile(launch, name)))]
        names.add(tasks[0]["name"])
        assert set(tasks[0]) <= set(plain) | {"envs"}
        if number % 4 == 0:  # jobs take the same names the same way
            tasks.append(task_of(skypilot.files(hostile(training, name))))
        for task in tasks:
            validate(task, schemas)
            assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", task["name"])
            runs.append(task["run"])
    assert len(names) == len({hostile(launch, name).stem for name in NAMES})
    for words in words_of(runs, stub_folder(tmp_path), {**BLANKS, **NODES}):
        assert words[0] in ("vllm", "torchrun")
