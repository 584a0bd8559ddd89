#!/usr/bin/env bash
# Made by: plan export FORMAT llama.plan.json (plan 0.1.0)
# Plan: llama (scenarios/llama.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: pretrain-8b, llama-3.1-8b on 2 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand
# For: DeepSpeed 0.19 (options read on 2026-11-21 from deepspeedai/DeepSpeed:docs/_pages/config-json.md@00376da, deepspeed/runtime/zero/config.py@1b88ac3)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   MASTER_ADDR address of the first node, the same on all nodes
#   TRAIN_SCRIPT your script, which calls deepspeed.initialize with --deepspeed_config
#   CHECKPOINT_DIR folder of checkpoints, seen by all nodes
# Note: predicted 17.8 days of wall time, 21.4 days at p90 of the error band; 49,222 steps of 4,063,232 tokens
# Note: step time and memory were predicted for megatron; with other software both differ
# Note: the model, its data and options such as --steps are your script's; the learning rate here is a placeholder
# Note: start it on each of the 2 nodes of a job
set -euo pipefail
: "${MASTER_ADDR:?address of the first node, the same on all nodes}"
: "${TRAIN_SCRIPT:?your script, which calls deepspeed.initialize with --deepspeed_config}"
: "${CHECKPOINT_DIR:?folder of checkpoints, seen by all nodes}"
exec torchrun \
  --nnodes 2 \
  --nproc-per-node 8 \
  --rdzv-backend c10d \
  --rdzv-endpoint "$MASTER_ADDR:${MASTER_PORT:-29500}" \
  --rdzv-id pretrain-8b \
  "$TRAIN_SCRIPT" \
  --deepspeed_config "$(dirname "$0")"/pretrain-8b.deepspeed.json \
  --checkpoint-dir "$CHECKPOINT_DIR" \
  --sequence-length 8192 \
  --steps 49222 \
  --save-interval 805
