#!/usr/bin/env bash
# Made by: plan export FORMAT disaggregated.plan.json (plan 0.1.0)
# Plan: disaggregated (scenarios/disaggregated.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: documents, llama-3.1-70b on 16 × 2x-H100-149-1443 (2 × h100-sxm-80gb), hyperbolic default, on_demand
# For: SGLang 0.5.23 (options read on 2026-11-21 from sgl-project/sglang:python/sglang/srt/server_args.py, python/sglang/srt/arg_groups/fields)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   NODE_RANK which of the replica's nodes this is, from 0
#   MASTER_ADDR address of the replica's node 0
# Note: run this on each of 16 nodes: 4 nodes make one replica, 4 in all
# Note: capacity and latencies were predicted for vllm, not for SGLang
# Note: the prefill pool of a disaggregated fleet: useless without its other pools
# Note: a request of more than 16800 tokens, prompt and answer together, is refused by the server: 4 times the mean, as the scenario gives no percentile of lengths
# Note: meta-llama/Llama-3.1-70B is a base model: it continues texts, and engines refuse chats where no template is; name its tuned version in the scenario (model) to serve those: the shape is the same
# Note: the cache moves between pools by NIXL; put SGLang's router in front, with --pd-disaggregation
set -eu
: "${NODE_RANK:?which of the replica's nodes this is, from 0}"
: "${MASTER_ADDR:?address of the replica's node 0}"
exec python3 -m sglang.launch_server \
  --model-path meta-llama/Llama-3.1-70B \
  --tp-size 2 \
  --pp-size 4 \
  --nnodes 4 \
  --node-rank "$NODE_RANK" \
  --dist-init-addr "$MASTER_ADDR":29500 \
  --context-length 16800 \
  --max-running-requests 693 \
  --chunked-prefill-size 8192 \
  --mem-fraction-static 0.8275 \
  --dtype auto \
  --quantization fp8 \
  --kv-cache-dtype fp8_e4m3 \
  --disaggregation-mode prefill \
  --disaggregation-transfer-backend nixl \
  --enable-metrics \
  --served-model-name llama-3.1-70b \
  --host 0.0.0.0 \
  --port 8000
