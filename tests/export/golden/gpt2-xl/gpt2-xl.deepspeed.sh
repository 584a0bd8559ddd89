#!/usr/bin/env bash
# Made by: plan export FORMAT gpt2-xl.plan.json (plan 0.1.0)
# Plan: gpt2-xl (scenarios/gpt2-xl.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; no price of the catalog is in it
# Workload: gpt2-xl, gpt2-xl on 1 × v100-pcie-32gb-x1 (1 × v100-pcie-32gb), owned, owned
# For: DeepSpeed 0.19 (options read on 2026-11-21 from deepspeedai/DeepSpeed:docs/_pages/config-json.md@00376da, deepspeed/runtime/zero/config.py@1b88ac3)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   TRAIN_SCRIPT your script, which calls deepspeed.initialize with --deepspeed_config
#   CHECKPOINT_DIR folder of checkpoints, seen by all nodes
# Note: predicted 39.3 days of wall time, 48.4 days at p90 of the error band; 281,250 steps of 32,000 tokens
# Note: step time and memory were predicted for fsdp; with other software both differ
# Note: the model, its data and options such as --steps are your script's; the learning rate here is a placeholder
# Note: the plan recomputes each layer: your script turns that on, these settings say how it is kept
set -euo pipefail
: "${TRAIN_SCRIPT:?your script, which calls deepspeed.initialize with --deepspeed_config}"
: "${CHECKPOINT_DIR:?folder of checkpoints, seen by all nodes}"
exec torchrun \
  --nnodes 1 \
  --nproc-per-node 1 \
  --standalone \
  "$TRAIN_SCRIPT" \
  --deepspeed_config "$(dirname "$0")"/gpt2-xl.deepspeed.json \
  --checkpoint-dir "$CHECKPOINT_DIR" \
  --sequence-length 1000 \
  --steps 281250 \
  --save-interval 5186 \
  --gradient-checkpointing full
