#!/usr/bin/env bash
# Made by: plan export FORMAT trace.plan.json (plan 0.1.0)
# Plan: trace (scenarios/trace.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: agents, llama-3.1-70b on 4 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand
# For: vLLM 0.33.0 (options read on 2026-11-21 from vllm-project/vllm:vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   NODE_RANK which of the replica's nodes this is, from 0
#   MASTER_ADDR address of the replica's node 0
# Note: run this on each of 4 nodes: 2 nodes make one replica, 2 in all, 1 of them spare
# Note: a request of more than 117552 tokens, prompt and answer together, is refused by the server
set -eu
: "${NODE_RANK:?which of the replica's nodes this is, from 0}"
: "${MASTER_ADDR:?address of the replica's node 0}"
set --; [ "$NODE_RANK" = 0 ] || set -- --headless
exec vllm serve meta-llama/Llama-3.1-70B \
  --tensor-parallel-size 8 \
  --pipeline-parallel-size 2 \
  --nnodes 2 \
  --node-rank "$NODE_RANK" \
  --master-addr "$MASTER_ADDR" \
  --master-port 29500 \
  --max-model-len 117552 \
  --max-num-seqs 367 \
  --max-num-batched-tokens 8192 \
  --gpu-memory-utilization 0.9 \
  --dtype auto \
  --quantization fp8 \
  --kv-cache-dtype fp8 \
  --served-model-name llama-3.1-70b \
  --host 0.0.0.0 \
  --port 8000 \
  "$@"
