#!/usr/bin/env bash
# Made by: plan export FORMAT llama.plan.json (plan 0.1.0)
# Plan: llama (scenarios/llama.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: pretrain-8b, llama-3.1-8b on 2 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand
# For: torchtitan 0.2.2 (options read on 2026-11-21 from pytorch/torchtitan:torchtitan/config/job_config.py@v0.2.2)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   MASTER_ADDR address of the first node, the same on all nodes
#   DATASET_PATH folder or name of the data set, for the loader named by DATASET
#   DATASET name of a registered data set, for example c4
#   HF_ASSETS folder of the tokenizer (scripts/download_hf_assets.py)
#   CHECKPOINT_DIR folder of checkpoints, seen by all nodes
#   LEARNING_RATE peak learning rate, for example 3e-4
# Note: predicted 17.8 days of wall time, 21.4 days at p90 of the error band; 49,222 steps of 4,063,232 tokens
# Note: step time and memory were predicted for megatron; with other software both differ
# Note: 0.2.2 is the last torchtitan that reads job files in TOML
# Note: zero-2 is fsdp_reshard_after_forward never: parameters stay whole between forward and backward
# Note: start it on each of the 2 nodes of a job
set -euo pipefail
: "${MASTER_ADDR:?address of the first node, the same on all nodes}"
: "${DATASET_PATH:?folder or name of the data set, for the loader named by DATASET}"
: "${DATASET:?name of a registered data set, for example c4}"
: "${HF_ASSETS:?folder of the tokenizer (scripts/download_hf_assets.py)}"
: "${CHECKPOINT_DIR:?folder of checkpoints, seen by all nodes}"
: "${LEARNING_RATE:?peak learning rate, for example 3e-4}"
exec torchrun \
  --nnodes 2 \
  --nproc-per-node 8 \
  --rdzv-backend c10d \
  --rdzv-endpoint "$MASTER_ADDR:${MASTER_PORT:-29500}" \
  --rdzv-id pretrain-8b \
  -m torchtitan.train \
  --job.config_file "$(dirname "$0")"/pretrain-8b.torchtitan.toml \
  --training.dataset "$DATASET" \
  --training.dataset_path "$DATASET_PATH" \
  --model.hf_assets_path "$HF_ASSETS" \
  --checkpoint.folder "$CHECKPOINT_DIR" \
  --optimizer.lr "$LEARNING_RATE"
