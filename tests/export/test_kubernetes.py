"""Kubernetes manifests: through the models of the client, with names, counts and budgets as the plan has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiClient, models

from planner.export import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch, export, kubernetes, vllm
from planner.export.kubernetes_pods import resource_name, selectors, tolerations, unexpanded
from planner.export.serving_command import SCRIPT
from tests.export.hostile import HOSTILE, PIECES, hostile
from tests.export.scripts import BLANKS, recorded_parser
from tests.export.shells import expanded, stub_folder, words_of, yaml_documents
from tests.export.test_skypilot import REFUSED
from tests.tiers import cases

NAMES = HOSTILE[: cases(len(PIECES), 200)]

Document = dict[str, Any]
Read = Callable[..., list[Launch]]
MODELS = {
    ("apps/v1", "Deployment"): "V1Deployment",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "V2HorizontalPodAutoscaler",
    ("batch/v1", "Job"): "V1Job",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
    ("v1", "Service"): "V1Service",
}
GROUP_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
# fields of LeaderWorkerSet v1, kubernetes-sigs/lws:api/leaderworkerset/v1/leaderworkerset_types.go@024af08, 2026-11-21
GROUP_SPEC = {"replicas", "leaderWorkerTemplate", "rolloutStrategy", "startupPolicy", "networkConfig"}
GROUP_TEMPLATE = {"leaderTemplate", "workerTemplate", "size", "restartPolicy", "subGroupPolicy", "volumeClaimTemplates",
                  "persistentVolumeClaimRetentionPolicy"}  # fmt: skip
RESTARTS = {"Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"}
STARTS = {"LeaderCreated", "LeaderReady"}
DNS_1035 = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
ENV = {**BLANKS, "LWS_WORKER_INDEX": "0", "LWS_LEADER_ADDRESS": "leader-0", "MODEL": "/weights", "HF_TOKEN": "secret"}


@pytest.fixture(scope="module")
def client() -> ApiClient:
    return ApiClient()


def manifests(files: list[ExportFile]) -> list[Document]:
    (text,) = [file.text for file in files if file.name.endswith(".k8s.yaml")]
    return yaml_documents(text)


def accept(document: Document, client: ApiClient) -> None:
    """The document through the client's model and back: a field that the model does not have would be lost."""
    kind = (document["apiVersion"], document["kind"])
    if kind == GROUP_SET:
        template = document["spec"]["leaderWorkerTemplate"]
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        assert set(document["spec"]) <= GROUP_SPEC
        assert set(template) <= GROUP_TEMPLATE
        assert template["restartPolicy"] in RESTARTS
        assert document["spec"]["startupPolicy"] in STARTS
        through(document["metadata"], "V1ObjectMeta", client)
        through(template["leaderTemplate"], "V1PodTemplateSpec", client)
        through(template["workerTemplate"], "V1PodTemplateSpec", client)
    else:
        through(document, MODELS[kind], client)
    for metadata in found_under(document, "metadata"):
        assert DNS_1035.fullmatch(metadata.get("name", "a"))
    for labels in (*found_under(document, "labels"), *found_under(document, "matchLabels")):
        assert all(LABEL.fullmatch(value) for value in labels.values())


def through(document: Document, model: str, client: ApiClient) -> None:
    read = getattr(models, model).from_dict(document)
    assert client.sanitize_for_serialization(read) == document


def found_under(document: Any, key: str) -> Iterator[Any]:
    """Every value of a key, however deep."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key and isinstance(value, dict):
                yield value
            yield from found_under(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from found_under(value, key)


def containers(document: Document) -> list[Document]:
    """Containers of all pods of an object."""
    return [one for spec in found_under(document, "spec") for one in spec.get("containers", [])]


def fleet(launches: list[Launch]) -> ServingLaunch:
    return next(launch for launch in launches if isinstance(launch, ServingLaunch))


def job(launches: list[Launch]) -> TrainingLaunch:
    return next(launch for launch in launches if isinstance(launch, TrainingLaunch))


def test_every_shipped_plan_is_accepted_and_takes_the_devices_of_the_plan(
    plans: dict[str, Any], launches: Read, client: ApiClient
) -> None:
    refused = set()
    for name in plans:
        for launch in launches(name):
            try:
                documents = manifests(kubernetes.files(launch))
            except NotExpressible:
                refused.add((name, launch.stem))
                continue
            for document in documents:
                accept(document, client)
            assert devices_of(documents, launch) == launch.machine.devices
    assert refused == REFUSED | {("tpu", "gemma-9b")}  # sixteen chips, which are two hosts


def devices_of(documents: list[Document], launch: Launch) -> int:
    """Devices that all pods ask for together."""
    total = 0
    for document in documents:
        asked = [int(one["resources"]["limits"][resource_name(launch.machine)]) for one in containers(document)]
        spec = document["spec"]
        if document["kind"] == "LeaderWorkerSet":
            leader, worker = asked
            total += spec["replicas"] * (leader + worker * (spec["leaderWorkerTemplate"]["size"] - 1))
        elif asked:
            total += asked[0] * spec.get("replicas", spec.get("parallelism"))
    return total


def test_an_unknown_field_is_seen(launches: Read, client: ApiClient) -> None:
    deployment = manifests(kubernetes.files(fleet(launches("llama"))))[0]
    accept(deployment, client)
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(AssertionError):
        accept(deployment, client)


def test_a_fleet_on_single_nodes_is_a_deployment_with_its_spares(launches: Read) -> None:
    launch = fleet(launches("llama"))
    deployment, service, budget = manifests(kubernetes.files(launch))
    assert deployment["spec"]["replicas"] == launch.replicas == 6
    assert budget["spec"]["maxUnavailable"] == launch.fleet.spare_replicas == 1
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert budget["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] == pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    assert pod["spec"]["volumes"][0]["emptyDir"]["medium"] == "Memory"  # what the ranks share
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(pod["spec"]["containers"][0])
    asked = pod["spec"]["containers"][0]["resources"]["requests"]
    assert int(asked["cpu"]) <= launch.machine.vcpus
    assert int(asked["memory"].removesuffix("Gi")) * 2**30 <= launch.machine.host_memory_bytes


def test_a_replica_of_several_nodes_is_a_group(launches: Read) -> None:
    launch = fleet(launches("disaggregated"))
    groups, service, _ = manifests(kubernetes.files(launch))
    assert groups["kind"] == "LeaderWorkerSet"
    assert groups["spec"]["replicas"] == launch.replicas == 4
    assert groups["spec"]["leaderWorkerTemplate"]["size"] == launch.nodes_per_replica == 4
    assert service["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"  # only leaders answer
    leader, worker = containers(groups)
    assert "readinessProbe" in leader
    assert "readinessProbe" not in worker
    assert leader["args"] == worker["args"]


def test_pods_run_the_command_of_the_vllm_script(launches: Read, tmp_path: Path) -> None:
    for name in ("llama", "trace", "disaggregated"):
        launch = fleet(launches(name))
        one = containers(manifests(kubernetes.files(launch))[0])[0]
        assert one["command"] == ["/bin/bash", "-c"]
        spans = launch.nodes_per_replica > 1
        script = "\n".join(vllm.server(launch, SCRIPT).lines(SCRIPT if spans else None))
        env = {**ENV, "NODE_RANK": "0", "MASTER_ADDR": "leader-0"}
        theirs, ours = words_of([expanded(one["args"][0], ENV), script], stub_folder(tmp_path), env)
        assert theirs == ours
        assert theirs[0] == "vllm"


def test_pools_tell_each_other_their_address(launches: Read) -> None:
    for launch in launches("disaggregated"):
        one = containers(manifests(kubernetes.files(launch))[0])[0]
        held = {entry["name"]: entry for entry in one["env"]}
        assert held["VLLM_NIXL_SIDE_CHANNEL_HOST"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_a_run_on_several_nodes_is_an_indexed_job_that_meets_at_its_first_pod(launches: Read, tmp_path: Path) -> None:
    launch = job(launches("under-way"))
    service, run = manifests(kubernetes.files(launch))
    assert service["spec"]["clusterIP"] == "None"
    spec = run["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 27, 27)
    pod = spec["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    assert pod["restartPolicy"] == "Never"
    (one,) = pod["containers"]
    env = {**{entry["name"]: "/blank" for entry in one["env"]}, **BLANKS, "MASTER_ADDR": "wrong"}
    (words,) = words_of([expanded(one["args"][0], env)], stub_folder(tmp_path), env)
    launcher, _ = recorded_parser("torchrun").parse_known_args(words[1:])
    name = run["metadata"]["name"]
    assert launcher.rdzv_endpoint == f"{name}-0.{name}:29500"
    assert int(launcher.nnodes) == 27


def test_identical_runs_are_jobs_of_their_own(launches: Read) -> None:
    launch = next(one for one in launches("fleet") if isinstance(one, TrainingLaunch) and one.jobs > 1)
    documents = manifests(kubernetes.files(launch))
    assert len(documents) == launch.jobs == 4
    assert len({document["metadata"]["name"] for document in documents}) == 4
    assert ["export RUN=1" in containers(document)[0]["args"][0] for document in documents] == [True, *[False] * 3]


def test_replicas_that_come_with_the_load_have_an_autoscaler(launches: Read, client: ApiClient) -> None:
    launch = fleet(launches("llama"))
    assert not any(document["kind"] == "HorizontalPodAutoscaler" for document in manifests(kubernetes.files(launch)))
    documents = manifests(kubernetes.files(replace(launch, replicas_always=2)))
    (scaler,) = [document for document in documents if document["kind"] == "HorizontalPodAutoscaler"]
    accept(scaler, client)
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, launch.replicas)
    assert scaler["spec"]["scaleTargetRef"]["name"] == documents[0]["metadata"]["name"]
    target = scaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"]
    assert int(target) == int(launch.batch * launch.fleet.target_load)


def test_a_fleet_is_never_scaled_to_nothing(launches: Read) -> None:
    """A fleet that sleeps at night keeps one replica: the autoscaler counts the requests of replicas that run."""
    launch = replace(fleet(launches("llama")), replicas_always=0)
    (scaler,) = [one for one in manifests(kubernetes.files(launch)) if one["kind"] == "HorizontalPodAutoscaler"]
    assert scaler["spec"]["minReplicas"] == 1


@pytest.mark.parametrize(("spares", "at_once"), [(0, 1), (1, 1), (2, 2)])
def test_a_fleet_can_be_rolled_out_without_devices_to_spare(launches: Read, spares: int, at_once: int) -> None:
    """No devices are idle to surge on, so that some replica must stop: as many as are spare, or one."""
    launch = fleet(launches("llama"))
    frame = launch.fleet.model_copy(update={"spare_replicas": spares})
    rolling = manifests(kubernetes.files(replace(launch, fleet=frame)))[0]["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 0, "maxUnavailable": at_once}


@pytest.mark.parametrize(
    ("provider", "model", "keys"),
    [
        ("gcp", "spot", ["nvidia.com/gpu", "cloud.google.com/gke-spot"]),
        ("gcp", "on_demand", ["nvidia.com/gpu"]),
        ("gcp", "commitment_1y", ["nvidia.com/gpu"]),
        ("nebius", "spot", ["nvidia.com/gpu"]),
    ],
)
def test_only_what_is_planned_on_spot_runs_there(launches: Read, provider: str, model: str, keys: list[str]) -> None:
    machine = replace(fleet(launches("llama")).machine, provider=provider, price_model=model)
    assert [one["key"] for one in tolerations(machine)] == keys


def test_slices_of_tpus_are_whole_pods(launches: Read) -> None:
    shared, whole = (one for one in launches("tpu") if isinstance(one, ServingLaunch))
    for launch, topology in ((shared, "2x2"), (whole, "2x2")):
        deployment = manifests(kubernetes.files(launch))[0]
        pod = deployment["spec"]["template"]["spec"]
        assert deployment["spec"]["replicas"] == launch.machine.nodes
        assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "4"}
        assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == topology
    assert "--data-parallel-size 2" in containers(manifests(kubernetes.files(shared))[0])[0]["args"][0]


@pytest.mark.parametrize(
    ("change", "resource", "label"),
    [
        ({}, "nvidia.com/gpu", ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")),
        ({"provider": "aws", "shape_name": "p5.48xlarge"}, "nvidia.com/gpu",
         ("node.kubernetes.io/instance-type", "p5.48xlarge")),
        ({"provider": "azure", "shape_name": "ND96isr_H100_v5"}, "nvidia.com/gpu",
         ("node.kubernetes.io/instance-type", "Standard_ND96isr_H100_v5")),
        ({"provider": "gcp", "price_model": "spot"}, "nvidia.com/gpu", ("cloud.google.com/gke-spot", "true")),
        ({"vendor": "amd", "device": "mi300x"}, "amd.com/gpu", None),
        ({"shape_kind": "mig", "shape_name": "a100-sxm-80gb-3g.40gb"}, "nvidia.com/mig-3g.40gb", None),
    ],
)  # fmt: skip
def test_nodes_are_chosen_by_what_was_planned(
    change: dict[str, Any], resource: str, label: tuple[str, str] | None, launches: Read
) -> None:
    machine = replace(fleet(launches("llama")).machine, **change)
    assert resource_name(machine) == resource
    assert tolerations(machine)[0]["key"] == ("amd.com/gpu" if "amd" in resource else "nvidia.com/gpu")
    if label:
        assert selectors(machine)[label[0]] == label[1]


def test_shares_of_devices_are_refused(launches: Read) -> None:
    launch = fleet(launches("llama"))
    for wrong in ({"shape_kind": "share"}, {"vendor": "intel"}):
        with pytest.raises(NotExpressible):
            kubernetes.files(replace(launch, machine=replace(launch.machine, **wrong)))


@pytest.mark.parametrize("text", ["$", "$$", "$$$", "$(A)", "$$(A)", "$$$(A)", "a$", "$(A", "${A}", "$(B) $$(A) $A"])
def test_kubernetes_hands_arguments_over_as_they_were(text: str) -> None:
    assert expanded(unexpanded(text), {"A": "secret"}) == text


def test_hostile_names_stay_text(launches: Read, client: ApiClient, tmp_path: Path) -> None:
    served, trained = fleet(launches("llama")), job(launches("llama"))
    kinds = [document["kind"] for document in manifests(kubernetes.files(served))]
    scripts, names = [], set()
    for number, name in enumerate(NAMES):
        documents = manifests(kubernetes.files(hostile(served, name)))
        assert [document["kind"] for document in documents] == kinds
        names.add(documents[0]["metadata"]["name"])
        if number % 4 == 0:  # jobs take the same names the same way
            documents += manifests(kubernetes.files(hostile(trained, name)))
        for document in documents:
            accept(document, client)
            scripts += [expanded(one["args"][0], ENV) for one in containers(document)]
    assert len(names) == len({hostile(served, name).stem for name in NAMES})  # different stems, different objects
    for words in words_of(scripts, stub_folder(tmp_path), ENV):
        assert words[0] in ("vllm", "torchrun")
        assert "secret" not in words


def test_pods_of_several_nodes_are_told_of_their_network(dozen: list[Launch]) -> None:
    """NCCL in a pod sees InfiniBand or EFA only where the pod asks for it."""
    job = next(launch for launch in dozen if launch.stem == "70b")
    assert job.machine.nodes > 1
    for kind, wanted in (("infiniband", "rdma/"), ("efa", "vpc.amazonaws.com/efa"), ("ethernet", "")):
        (file,) = export("kubernetes", [replace(job, machine=replace(job.machine, network_kind=kind))]).files
        told = "the plan counts on the" in file.text
        assert told == bool(wanted)
        assert wanted in file.text
