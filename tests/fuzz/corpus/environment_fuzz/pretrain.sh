#!/bin/bash
# Pretrain a 7B-class model on two nodes.
set -euo pipefail

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_IB_TIMEOUT=22
export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-2}
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
CHECKPOINT_PATH=$1
DATA_PATH="/data/my corpus/text_document"
TP=2; PP=4
HIDDEN=4096

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr $MASTER_ADDR
    --rdzv_id "job-${SLURM_JOB_ID}"
)

GPT_MODEL_ARGS=(
    --num-layers 32            # trailing comment
    --hidden-size ${HIDDEN}
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 4096
    --max-position-embeddings 4096
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --position-embedding-type rope
)

MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size $TP
	--pipeline-model-parallel-size ${PP}
	--sequence-parallel
)

TRAINING_ARGS="
    --micro-batch-size 1
    --global-batch-size ${GBS:-256}
    --train-iters 500000
    --lr 6.0e-5
    --min-lr 6.0e-6
    --lr-decay-style cosine
    --bf16
    --use-distributed-optimizer
    --cuda-graph-impl local
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
"

if [ "$DEBUG" = 1 ]; then
  TRAINING_ARGS="$TRAINING_ARGS --log-interval 1"
fi

cat > /tmp/hostfile <<EOF
--this-is-not-an-argument 1
"unterminated in heredoc
EOF

echo "starting on $MASTER_ADDR --not-me"

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    "${MODEL_PARALLEL_ARGS[@]}" \
    $TRAINING_ARGS \
    --data-path "$DATA_PATH" \
    --save $CHECKPOINT_PATH --load $CHECKPOINT_PATH 2>&1 | tee log.txt
