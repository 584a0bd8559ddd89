#!/usr/bin/env bash
# Made by: plan export FORMAT llama.plan.json (plan 0.1.0)
# Plan: llama (scenarios/llama.yaml, feasible: not proven), sha256 5555555555555555555555555555555555555555555555555555555555555555
# Catalog: shipped, 2026-11-21, sha256 cccccccccccccccc; prices as of 2026-11-21
# Workload: pretrain-8b, llama-3.1-8b on 2 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand
# For: Megatron-LM commit 000c4ac (options read on 2026-11-21 from NVIDIA/Megatron-LM:megatron/training/arguments.py@000c4ac)
# Check before use: predicted, not tried on this hardware.
# The plan does not know these; set them before use:
#   MASTER_ADDR address of the first node, the same on all nodes
#   MEGATRON_DIR folder of the Megatron-LM checkout
#   DATA_PATH prefix of the tokenised data (tools/preprocess_data.py)
#   TOKENIZER tokenizer: a Hugging Face name or folder
#   CHECKPOINT_DIR folder of checkpoints, seen by all nodes
#   LEARNING_RATE peak learning rate, for example 3e-4
# Note: predicted 17.8 days of wall time, 21.4 days at p90 of the error band; 49,222 steps of 4,063,232 tokens
# Note: learning-rate schedule, dropout and data split are placeholders: set those of your recipe
# Note: zero-2 is Megatron-FSDP's optim_grads
# Note: this config of the model leaves out rms_norm_eps (--norm-epsilon), rope_scaling (--use-rope-scaling): to go on from a checkpoint, take them from there
# Note: start it on each of the 2 nodes of a job
set -euo pipefail
: "${MASTER_ADDR:?address of the first node, the same on all nodes}"
: "${MEGATRON_DIR:?folder of the Megatron-LM checkout}"
: "${DATA_PATH:?prefix of the tokenised data (tools/preprocess_data.py)}"
: "${TOKENIZER:?tokenizer: a Hugging Face name or folder}"
: "${CHECKPOINT_DIR:?folder of checkpoints, seen by all nodes}"
: "${LEARNING_RATE:?peak learning rate, for example 3e-4}"
export CUDA_DEVICE_MAX_CONNECTIONS=8
exec torchrun \
  --nnodes 2 \
  --nproc-per-node 8 \
  --rdzv-backend c10d \
  --rdzv-endpoint "$MASTER_ADDR:${MASTER_PORT:-29500}" \
  --rdzv-id pretrain-8b \
  "$MEGATRON_DIR/pretrain_gpt.py" \
  --num-layers 32 \
  --hidden-size 4096 \
  --ffn-hidden-size 14336 \
  --num-attention-heads 32 \
  --kv-channels 128 \
  --group-query-attention \
  --num-query-groups 8 \
  --seq-length 8192 \
  --max-position-embeddings 131072 \
  --vocab-size 128256 \
  --make-vocab-size-divisible-by 128 \
  --position-embedding-type rope \
  --rotary-base 500000 \
  --normalization RMSNorm \
  --swiglu \
  --disable-bias-linear \
  --untie-embeddings-and-output-weights \
  --tensor-model-parallel-size 1 \
  --pipeline-model-parallel-size 1 \
  --context-parallel-size 1 \
  --use-distributed-optimizer \
  --use-megatron-fsdp \
  --data-parallel-sharding-strategy optim_grads \
  --no-gradient-accumulation-fusion \
  --overlap-grad-reduce \
  --overlap-param-gather \
  --micro-batch-size 1 \
  --global-batch-size 496 \
  --train-iters 49222 \
  --bf16 \
  --cross-entropy-loss-fusion \
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
  --save-interval 805 \
  --ckpt-format fsdp_dtensor \
  --log-interval 10 \
  --log-throughput \
  --exit-signal-handler
