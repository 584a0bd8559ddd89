#!/usr/bin/env bash
# Made by: plan export FORMAT two-kinds.plan.json (plan 0.1.0)
# Plan: chat-fleet (scenarios/two-kinds.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: chat, llama-3.1-8b on 1 × 1x_RTX4090_SECURE (1 × rtx-4090), runpod US-CA-1, on_demand
# For: vLLM 0.33.0 (options read on 2026-11-21 from vllm-project/vllm:vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py)
# Check before use: predicted, not tried on this hardware.
# Note: run this on the one node: 1 replica a node, 1 in all
# Note: a request of more than 656 tokens, prompt and answer together, is refused by the server: the longest bucket that is sent here
# Note: meta-llama/Llama-3.1-8B is a base model: it continues texts, and engines refuse chats where no template is; name its tuned version in the scenario (model) to serve those: the shape is the same
set -eu
exec vllm serve meta-llama/Llama-3.1-8B \
  --tensor-parallel-size 1 \
  --pipeline-parallel-size 1 \
  --max-model-len 656 \
  --max-num-seqs 256 \
  --max-num-batched-tokens 2048 \
  --gpu-memory-utilization 0.9 \
  --dtype auto \
  --quantization fp8 \
  --kv-cache-dtype bfloat16 \
  --served-model-name llama-3.1-8b \
  --host 0.0.0.0 \
  --port 8000
