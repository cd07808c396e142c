#!/bin/bash
#SBATCH --nodes=2 --gres=gpu:h100:8
export A="b $C" # x
ARGS=(
 --x 1 \
 --y "z"
)
if true; then B=1; fi
torchrun t.py ${ARGS[@]} $B <<EOF
x
EOF
