"""Small deployments as Helm, KServe, Dynamo, compose and Kueue write them; none is a copy."""

from __future__ import annotations

MODEL = "meta-llama/Llama-3.1-70B-Instruct"


def production_stack() -> str:
    """Two models, one of which asks for two devices a replica."""
    return f"""servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      modelURL: {MODEL}
      replicaCount: 3
      requestGPU: 2
      requestGPUType: NVIDIA-H100-80GB-HBM3
      vllmConfig:
        tensorParallelSize: 2
        maxNumSeqs: 128
        extraArgs: ["--quantization", "fp8", "--kv-cache-dtype=fp8_e4m3", "--enforce-eager"]
    - name: small
      modelURL: Qwen/Qwen2.5-7B-Instruct
      replicaCount: 1
      requestGPU: 1
routerSpec: {{replicaCount: 1}}
"""


def llm_d() -> str:
    """Prompts and answers in pools of their own, split alike."""
    pool = """
  replicas: {replicas}
  parallelism: {{tensor: 4}}
  acceleratorTypes: {{labelKey: nvidia.com/gpu.product, labelValues: [NVIDIA-H200]}}
  containers:
    - name: vllm
      modelCommand: vllmServe
      args: ["--max-num-batched-tokens", "16384"]
"""
    return (
        f"modelArtifacts:\n  name: {MODEL}\n  uri: hf://{MODEL}\n"
        f"decode:{pool.format(replicas=2)}prefill:{pool.format(replicas=1)}"
    )


def kserve() -> str:
    """A service and the runtime that it names, as two documents."""
    return """apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat}
spec:
  predictor:
    minReplicas: 2
    maxReplicas: 6
    model:
      modelFormat: {name: vLLM}
      runtime: ours
      storageUri: hf://openai/gpt-oss-120b
      args: ["--gpu-memory-utilization=$(SHARE)"]
      env: [{name: SHARE, value: "0.85"}]
      resources: {limits: {nvidia.com/gpu: "1"}}
    nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}
---
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: ours}
spec:
  containers:
    - image: vllm/vllm-openai
      args: ["--max-num-seqs=64", "--gpu-memory-utilization=0.5"]
"""


def dynamo() -> str:
    """A worker over two nodes whose settings stand in a ConfigMap, and a frontend."""
    return """apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: graph}
spec:
  backendFramework: trtllm
  services:
    Frontend: {componentType: frontend, replicas: 1}
    worker:
      componentType: worker
      replicas: 3
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "4"}}
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.trtllm]
          args: [--model-path, deepseek-ai/DeepSeek-R1, --extra-engine-args, /config/engine.yaml]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  engine.yaml: |
    tensor_parallel_size: 8
    max_batch_size: 256
    enable_attention_dp: true
    moe_expert_parallel_size: 8
    kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.8}
"""


def compose() -> str:
    """One engine, its command as a script, beside a database."""
    return """services:
  engine:
    image: lmsysorg/sglang:latest
    command: >
      python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-72B-Instruct-AWQ
      --tp 2 --dp 2 --mem-fraction-static 0.8 --host 0.0.0.0
    deploy:
      resources: {reservations: {devices: [{driver: nvidia, count: 4, capabilities: [gpu]}]}}
  cache:
    image: redis
"""


def kueue() -> str:
    """Quotas of two flavours."""
    return """apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  resourceGroups:
    - coveredResources: [cpu, nvidia.com/gpu]
      flavors:
        - name: h100
          resources: [{name: cpu, nominalQuota: 64}, {name: nvidia.com/gpu, nominalQuota: "16"}]
        - name: l4
          resources: [{name: cpu, nominalQuota: 64}, {name: nvidia.com/gpu, nominalQuota: 8}]
"""
