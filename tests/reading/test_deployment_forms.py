"""Deployments as other charts, operators and versions write them: how many, of what, behind which settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source

MODEL = "Qwen/Qwen3-32B"


def read_of(folder: Path, text: str) -> Reading:
    (folder / "made.yaml").write_text(text)
    return read(Source(folder / "made.yaml"), Asked())


def fleets(reading: Reading) -> list[dict[str, Any]]:
    return list(reading.pieces[0].fragment["serving"])


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def workload(container: str, selector: str = "{}") -> str:
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat}}
spec:
  replicas: 2
  template:
    spec:
      nodeSelector: {selector}
      containers:
      - name: engine
{container}
"""


def test_a_variable_has_the_value_that_stands_beside_it(tmp_path: Path) -> None:
    text = f"""services:
  chat:
    image: vllm/vllm-openai:v0.9
    command: --model ${{MODEL:-{MODEL}}} --tensor-parallel-size ${{TP:-4}} --max-num-seqs ${{SEQS-32}}
  other:
    image: vllm/vllm-openai:v0.9
    command: --model ${{MODEL:-{MODEL}}} --tensor-parallel-size ${{TP}}
    environment: {{MODEL: google/gemma-3-27b-it}}
"""
    reading = read_of(tmp_path, text)
    first, second = fleets(reading)
    assert (first["model"], first["layout"]["tp"], first["limits"]) == ("qwen3-32b", 4, {"max_num_seqs": 32})
    assert second["model"] == "gemma-3-27b"
    assert "layout" not in second  # how many ranks nobody says
    assert any("the layout is free" in note for note in reading.notes)


def test_a_file_of_the_container_is_no_name_where_another_is_said(tmp_path: Path) -> None:
    text = f"""services:
  chat:
    image: ghcr.io/ggml-org/llama.cpp:server-cuda
    command: -m /models/a.gguf -hf {MODEL} -np 4
"""
    assert fleets(read_of(tmp_path, text))[0]["model"] == "qwen3-32b"


@pytest.mark.parametrize(
    ("image", "names"),
    [("ghcr.io/huggingface/text-generation-inference:3.0", ("MODEL_ID", "NUM_SHARD", "MAX_BATCH_SIZE")),
     ("ghcr.io/ggml-org/llama.cpp:server", ("LLAMA_ARG_HF_REPO", "TENSOR", "LLAMA_ARG_N_PARALLEL")),
     ("deepjavalibrary/djl-serving:lmi-vllm", ("HF_MODEL_ID", "OPTION_TENSOR_PARALLEL_DEGREE", "MAX_BATCH_SIZE"))],
)  # fmt: skip
def test_the_environment_speaks_for_engines_that_listen_to_it(
    image: str, names: tuple[str, ...], tmp_path: Path
) -> None:  # fmt: skip
    values = dict(zip(names, (MODEL, "2", "16")))
    env = "\n".join(f"        - {{name: {name}, value: '{value}'}}" for name, value in values.items())
    (fleet,) = fleets(read_of(tmp_path, workload(f"        image: {image}\n        env:\n{env}")))
    assert fleet["model"] == "qwen3-32b"
    if "llama" not in image:
        assert fleet["layout"]["tp"] == 2
    assert fleet["limits"] == {"max_num_seqs": 16}


def test_a_fraction_by_its_longest_name(tmp_path: Path) -> None:
    text = workload(f"""        image: nvcr.io/nvidia/tensorrt-llm/release:1.0
        command: [trtllm-serve, {MODEL}, --tp_size, "4", --kv_cache_free_gpu_memory_fraction, "0.8"]""")
    (fleet,) = fleets(read_of(tmp_path, text))
    assert (fleet["layout"]["tp"], fleet["limits"]) == (4, {"memory_fraction": 0.8})


@pytest.mark.parametrize(
    ("selector", "device"),
    [("{cloud.google.com/gke-accelerator: nvidia-tesla-a100}", "a100-sxm-40gb"),
     ("{cloud.google.com/gke-accelerator: nvidia-a100-80gb}", "a100-sxm-80gb"),
     ("{cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice}", "tpu-v6e")],
)  # fmt: skip
def test_labels_of_google_tell_the_device_and_its_memory(selector: str, device: str, tmp_path: Path) -> None:
    text = workload(f"        image: vllm/vllm-openai\n        args: [--model, {MODEL}]", selector)
    assert read_of(tmp_path, text).pieces[0].fragment["hardware"] == {"allow": [device]}


def test_replicas_of_the_stack_are_those_that_are_said(tmp_path: Path) -> None:
    text = f"""servingEngineSpec:
  modelSpec:
  - {{name: off, modelURL: {MODEL}, replicaCount: 0, requestGPU: 1}}
  - {{name: scaled, modelURL: {MODEL}, requestGPU: 1, keda: {{minReplicaCount: 2, maxReplicaCount: 4}}}}
  - name: wide
    modelURL: {MODEL}
    replicaCount: 3
    requestGPU: 2
    vllmConfig: {{tensorParallelSize: 2, pipelineParallelSize: 4}}
    raySpec: {{headNode: {{requestGPU: 2}}}}
"""
    reading = read_of(tmp_path, text)
    assert [fleet.get("min_replicas", 0) for fleet in fleets(reading)] == [0, 2, 1]
    assert figures(reading) == {"replicas": 3, "devices": 2 + 8}


def test_machines_of_one_replica_are_counted(tmp_path: Path) -> None:
    text = f"""modelArtifacts: {{name: {MODEL}, uri: "hf://{MODEL}"}}
decode:
  replicas: 3
  extraConfig: {{nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}}}
  parallelism: {{tensor: 1, data: 16, dataLocal: 8, expert: true}}
  containers:
  - {{name: vllm, resources: {{limits: {{nvidia.com/gpu: "8"}}}}}}
"""
    reading = read_of(tmp_path, text)
    assert figures(reading)["devices"] == 48
    assert reading.pieces[0].fragment["hardware"] == {"allow": ["h100-sxm-80gb"]}
    assert not any("are asked for" in note for note in reading.notes)
    text = f"""apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: wide}}
spec:
  predictor:
    model: {{storageUri: "hf://{MODEL}", modelFormat: {{name: vllm}}, resources: {{limits: {{nvidia.com/gpu: "8"}}}}}}
    workerSpec: {{pipelineParallelSize: 2, tensorParallelSize: 8}}
"""
    reading = read_of(tmp_path, text)
    assert figures(reading)["devices"] == 16
    assert not any("are asked for" in note for note in reading.notes)


def test_pools_of_one_service_are_both_told(tmp_path: Path) -> None:
    text = f"""apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {{name: chat}}
spec:
  model: {{uri: "hf://{MODEL}", name: {MODEL}}}
  replicas: 2
  parallelism: {{tensor: 2}}
  template: {{containers: [{{name: main}}]}}
  prefill: {{replicas: 1, parallelism: {{tensor: 2}}, template: {{containers: [{{name: main}}]}}}}
"""
    assert {"chat-decode", "chat-prefill"} <= set(read_of(tmp_path, text).understood)


def test_limits_are_those_of_the_pool_that_answers(tmp_path: Path) -> None:
    worker = """
  - name: {role}
    type: {role}
    podTemplate:
      spec:
        containers:
        - {{image: ai-dynamo/vllm-runtime, args: [--model, {model}, --max-num-seqs, "{batch}"]}}"""
    parts = "".join(worker.format(role=role, model=MODEL, batch=n) for role, n in (("prefill", 8), ("decode", 256)))
    text = f"""apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {{name: graph}}
spec:
  components:{parts}
"""
    reading = read_of(tmp_path, text)
    assert fleets(reading)[0]["limits"] == {"max_num_seqs": 256}
    assert any("those of decode are taken" in note for note in reading.notes)


def test_a_graph_of_dynamo_before_it_was_a_resource(tmp_path: Path) -> None:
    text = f"""Common: {{model: {MODEL}, block-size: 64}}
Frontend: {{port: 8000}}
VllmWorker:
  tensor-parallel-size: 2
  ServiceArgs: {{workers: 1, resources: {{gpu: 2}}}}
  common-configs: [model]
PrefillWorker:
  tensor-parallel-size: 2
  ServiceArgs: {{workers: 2, resources: {{gpu: 2}}}}
  common-configs: [model]
"""
    reading = read_of(tmp_path, text)
    (fleet,) = fleets(reading)
    assert (fleet["model"], fleet["layout"]["tp"], fleet["min_replicas"]) == ("qwen3-32b", 2, 3)
    assert (fleet["disaggregated"], figures(reading)["devices"]) == ("true", 6)
    assert reading.skipped.reasons == {"Frontend: no worker": (1, 1)}


def ray(indent: str) -> str:
    lines = f"""applications:
- name: llms
  args:
    llm_configs:
    - elsewhere.yaml
    - model_loading_config: {{model_id: chat, model_source: {MODEL}}}
      accelerator_type: H100
      deployment_config: {{autoscaling_config: {{min_replicas: 2, max_replicas: 4}}}}
      engine_kwargs: {{tensor_parallel_size: 2, max_num_seqs: 64}}"""
    return "\n".join(indent + line for line in lines.splitlines())


def test_models_of_ray(tmp_path: Path) -> None:
    service = f"kind: RayService\nmetadata: {{name: a}}\nspec:\n  serveConfigV2: |\n{ray('    ')}\n"
    alone = f"model_loading_config: {{model_id: chat, model_source: {MODEL}}}\naccelerator_type: H100\n"
    alone += "deployment_config: {num_replicas: 2}\nengine_kwargs: {tensor_parallel_size: 2, max_num_seqs: 64}\n"
    for text, skipped in ((ray(""), 1), (service, 1), (alone, 0)):
        reading = read_of(tmp_path, text)
        assert reading.pieces[0].fragment["hardware"] == {"allow": ["h100-sxm-80gb"]}
        assert fleets(reading) == [{"name": "chat", "model": "qwen3-32b", "engine": "vllm", "min_replicas": 2,
                                    "limits": {"max_num_seqs": 64}, "layout": {"tp": 2, "pp": 1}}]  # fmt: skip
        assert reading.skipped.count == skipped


def test_roles_that_run_together(tmp_path: Path) -> None:
    role = """
  - name: {role}
    replicas: {count}
    template:
      spec:
        containers:
        - image: lmsysorg/sglang
          args: [--model-path, {model}, --tp, "2", --disaggregation-mode, {role}]
          resources: {{limits: {{nvidia.com/gpu: 2}}}}"""
    roles = "".join(role.format(role=name, count=n, model=MODEL) for name, n in (("prefill", 2), ("decode", 1)))
    group = f"apiVersion: x/v1\nkind: RoleBasedGroup\nmetadata: {{name: chat}}\nspec:\n  roles:{roles}\n"
    deeper = roles.replace("\n", "\n    ")
    twice = "apiVersion: x/v1\nkind: StormService\nmetadata: {name: chat}\nspec:\n  replicas: 2\n"
    twice += f"  template:\n    spec:\n      roles:{deeper}\n"
    for text, times in ((group, 1), (twice, 2)):
        reading = read_of(tmp_path, text)
        (fleet,) = fleets(reading)
        assert (fleet["disaggregated"], fleet["min_replicas"]) == ("true", 3 * times)
        assert figures(reading)["devices"] == 6 * times


def test_a_service_of_nim_is_told_by_its_image(tmp_path: Path) -> None:
    text = """apiVersion: apps.nvidia.com/v1alpha1
kind: NIMService
metadata: {name: chat}
spec:
  image: {repository: nvcr.io/nim/meta/llama-3.1-8b-instruct, tag: 1.3}
  replicas: 2
  resources: {limits: {nvidia.com/gpu: 1}}
"""
    reading = read_of(tmp_path, text)
    assert (fleets(reading)[0]["model"], figures(reading)["devices"]) == ("llama-3.1-8b", 2)


def test_workloads_that_kubectl_lists_are_no_pods(tmp_path: Path) -> None:
    container = {"image": "vllm/vllm-openai", "args": ["--model", MODEL], "resources": {}}
    item = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [container]}}}}  # fmt: skip
    reading = read_of(tmp_path, json.dumps({"apiVersion": "v1", "items": [item], "kind": "List"}))
    assert fleets(reading)[0]["min_replicas"] == 3
    pod = {"metadata": {"name": "a", "ownerReferences": [{"kind": "StatefulSet", "name": "chat"}]},
           "spec": {"containers": [container], "nodeName": "n"}, "status": {"phase": "Running"}}  # fmt: skip
    assert read_of(tmp_path, json.dumps([pod])).kind == "k8s-pods"


def test_a_resource_of_kubernetes_is_no_device_and_terms_name_one(tmp_path: Path) -> None:
    text = f"""servingEngineSpec:
  modelSpec:
  - name: a
    modelURL: {MODEL}
    replicaCount: 1
    requestGPU: 1
    requestGPUType: nvidia.com/gpu
    nodeSelectorTerms:
    - matchExpressions: [{{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H200]}}]
  - {{name: b, modelURL: {MODEL}, replicaCount: 1, requestGPU: 1, requestGPUType: nvidia.com/gpu}}
"""
    notes = " ".join(read_of(tmp_path, text).notes)
    assert "is no device of the catalog" not in notes
    assert "which devices are those of b:" in notes


@pytest.mark.parametrize("told", ["env: [{name: STORAGE_URI, value: hf://Qwen/Qwen3-8B}]",
                                  "env: [{name: X, value: y}]"])  # fmt: skip
def test_what_is_mounted_has_the_name_of_where_it_is_fetched_or_of_how_it_is_served(told: str, tmp_path: Path) -> None:
    text = f"""apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: q}}
spec:
  predictor:
    containers:
    - image: vllm/vllm-openai
      args: [--model, /mnt/models, --served-model-name, qwen3-8b]
      {told}
      resources: {{limits: {{nvidia.com/gpu: "1"}}}}
"""
    (fleet,) = fleets(read_of(tmp_path, text))
    assert fleet["model"].lower().endswith("qwen3-8b")


@pytest.mark.parametrize("values", [
    "image: {repository: vllm/vllm-openai, tag: v0.9, command: [vllm, serve, Qwen/Qwen3-8B, -tp, '2']}\n"
    "replicaCount: 3\nresources: {limits: {nvidia.com/gpu: 2}}\ngpuModels: [NVIDIA-L4]\n",
    "model: {id: Qwen/Qwen3-8B}\nimage:\n  repository: ghcr.io/huggingface/text-generation-inference\n"
    "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}\nreplicaCount: 3\nresources: {limits: {nvidia.com/gpu: 2}}\n",
])  # fmt: skip
def test_values_of_a_chart_for_one_engine(values: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, values)
    (fleet,) = fleets(reading)
    assert (fleet["min_replicas"], fleet["model"]) == (3, "qwen3-8b")
    assert figures(reading)["devices"] == 6
    assert reading.pieces[0].fragment["hardware"] == {"allow": ["l4"]}
