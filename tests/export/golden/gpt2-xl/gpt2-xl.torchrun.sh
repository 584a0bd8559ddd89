#!/usr/bin/env bash
# Made by: plan export FORMAT gpt2-xl.plan.json (plan 0.1.0)
# Plan: gpt2-xl (scenarios/gpt2-xl.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; no price of the catalog is in it
# Workload: gpt2-xl, gpt2-xl on 1 × v100-pcie-32gb-x1 (1 × v100-pcie-32gb), owned, owned
# For: Megatron-LM commit 000c4ac (options read on 2026-11-21 from NVIDIA/Megatron-LM:megatron/training/arguments.py@000c4ac)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   MEGATRON_DIR folder of the Megatron-LM checkout
#   DATA_PATH prefix of the tokenised data (tools/preprocess_data.py)
#   TOKENIZER tokenizer: a Hugging Face name or folder
#   CHECKPOINT_DIR folder of checkpoints, seen by all nodes
#   LEARNING_RATE peak learning rate, for example 3e-4
# Note: predicted 39.3 days of wall time, 48.4 days at p90 of the error band; 281,250 steps of 32,000 tokens
# Note: step time and memory were predicted for fsdp; with other software both differ
# Note: learning-rate schedule, dropout and data split are placeholders: set those of your recipe
# Note: Megatron-LM pads the vocabulary to a multiple of 128 times the tensor-parallel size
# Note: Transformer Engine does not run on these devices: Apex supplies the fused kernels of the local layers
# Note: this config of the model leaves out layer_norm_epsilon (--norm-epsilon): to go on from a checkpoint, take them from there
set -euo pipefail
: "${MEGATRON_DIR:?folder of the Megatron-LM checkout}"
: "${DATA_PATH:?prefix of the tokenised data (tools/preprocess_data.py)}"
: "${TOKENIZER:?tokenizer: a Hugging Face name or folder}"
: "${CHECKPOINT_DIR:?folder of checkpoints, seen by all nodes}"
: "${LEARNING_RATE:?peak learning rate, for example 3e-4}"
export CUDA_DEVICE_MAX_CONNECTIONS=1
exec torchrun \
  --nnodes 1 \
  --nproc-per-node 1 \
  --standalone \
  "$MEGATRON_DIR/pretrain_gpt.py" \
  --num-layers 48 \
  --hidden-size 1600 \
  --ffn-hidden-size 6400 \
  --num-attention-heads 25 \
  --kv-channels 64 \
  --seq-length 1000 \
  --max-position-embeddings 1024 \
  --vocab-size 50257 \
  --make-vocab-size-divisible-by 128 \
  --position-embedding-type learned_absolute \
  --normalization LayerNorm \
  --tensor-model-parallel-size 1 \
  --pipeline-model-parallel-size 1 \
  --context-parallel-size 1 \
  --overlap-grad-reduce \
  --micro-batch-size 2 \
  --global-batch-size 32 \
  --train-iters 281250 \
  --fp16 \
  --transformer-impl local \
  --no-rope-fusion \
  --cross-entropy-loss-fusion \
  --recompute-granularity full \
  --recompute-method uniform \
  --recompute-num-layers 1 \
  --optimizer adam \
  --data-path "$DATA_PATH" \
  --split 100,0,0 \
  --eval-iters 0 \
  --tokenizer-type HuggingFaceTokenizer \
  --tokenizer-model "$TOKENIZER" \
  --lr "$LEARNING_RATE" \
  --lr-decay-style cosine \
  --attention-dropout 0 \
  --hidden-dropout 0 \
  --save "$CHECKPOINT_DIR" \
  --load "$CHECKPOINT_DIR" \
  --save-interval 5186 \
  --ckpt-format torch_dist \
  --log-interval 10 \
  --log-throughput \
  --exit-signal-handler
