#!/usr/bin/env bash
# Made by: plan export FORMAT llama.plan.json (plan 0.1.0)
# Plan: llama (scenarios/llama.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: assistant, llama-3.1-70b on 6 × 2x-H100-149-1443 (2 × h100-sxm-80gb), hyperbolic default, on_demand
# For: vLLM 0.33.0 (options read on 2026-11-21 from vllm-project/vllm:vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py)
# Check before use: predicted, not tried on this hardware.
# Note: run this on each of 6 nodes: 1 replica a node, 6 in all, 1 of them spare
# Note: a request of more than 7600 tokens, prompt and answer together, is refused by the server: 4 times the mean, as the scenario gives no percentile of lengths
# Note: meta-llama/Llama-3.1-70B is a base model: it continues texts, and engines refuse chats where no template is; name its tuned version in the scenario (model) to serve those: the shape is the same
set -eu
exec vllm serve meta-llama/Llama-3.1-70B \
  --tensor-parallel-size 1 \
  --pipeline-parallel-size 2 \
  --max-model-len 7600 \
  --max-num-seqs 238 \
  --max-num-batched-tokens 8192 \
  --gpu-memory-utilization 0.9 \
  --dtype auto \
  --quantization fp8 \
  --kv-cache-dtype fp8 \
  --served-model-name llama-3.1-70b \
  --host 0.0.0.0 \
  --port 8000
