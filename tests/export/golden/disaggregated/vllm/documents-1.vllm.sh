#!/usr/bin/env bash
# Made by: plan export FORMAT disaggregated.plan.json (plan 0.1.0)
# Plan: disaggregated (scenarios/disaggregated.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: documents, llama-3.1-70b on 16 × 2x-H100-149-1443 (2 × h100-sxm-80gb), hyperbolic default, on_demand
# For: vLLM 0.33.0 (options read on 2026-11-21 from vllm-project/vllm:vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   NODE_RANK which of the replica's nodes this is, from 0
#   MASTER_ADDR address of the replica's node 0
# Note: run this on each of 16 nodes: 4 nodes make one replica, 4 in all
# Note: the prefill pool of a disaggregated fleet: useless without its other pools
# Note: a request of more than 16800 tokens, prompt and answer together, is refused by the server: 4 times the mean, as the scenario gives no percentile of lengths
# Note: meta-llama/Llama-3.1-70B is a base model: it continues texts, and engines refuse chats where no template is; name its tuned version in the scenario (model) to serve those: the shape is the same
# Note: the cache moves between pools by NIXL: set VLLM_NIXL_SIDE_CHANNEL_HOST to an address that the other pool reaches, and put a proxy in front that asks a prefill server first and a decode server then
set -eu
: "${NODE_RANK:?which of the replica's nodes this is, from 0}"
: "${MASTER_ADDR:?address of the replica's node 0}"
set --; [ "$NODE_RANK" = 0 ] || set -- --headless
exec vllm serve meta-llama/Llama-3.1-70B \
  --tensor-parallel-size 2 \
  --pipeline-parallel-size 4 \
  --nnodes 4 \
  --node-rank "$NODE_RANK" \
  --master-addr "$MASTER_ADDR" \
  --master-port 29500 \
  --max-model-len 16800 \
  --max-num-seqs 693 \
  --max-num-batched-tokens 8192 \
  --gpu-memory-utilization 0.9 \
  --dtype auto \
  --quantization fp8 \
  --kv-cache-dtype fp8 \
  --kv-transfer-config '{"kv_connector": "NixlPushConnector", "kv_role": "kv_producer"}' \
  --served-model-name llama-3.1-70b \
  --host 0.0.0.0 \
  --port 8000 \
  "$@"
