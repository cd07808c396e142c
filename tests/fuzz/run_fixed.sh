#!/bin/sh
# run_fixed.sh PROGRAM RUNS CORPUS: the same inputs every time. The seed is fixed, the corpus is read in the order of
# its names, and addresses are not random where the system lets a process ask for that: libFuzzer's choice of what to
# try next follows the depth of the stack, and the comparisons that it watches hold addresses (so they are not
# watched). Time only caps the runs, on a machine much slower than any that tests should run on.
set -eu
program=$1 runs=$2 corpus=$3
seeds=$(find "$corpus" -type f | LC_ALL=C sort | paste -s -d , -)
fixed_addresses=
if setarch -R true 2>/dev/null; then fixed_addresses="setarch -R"; fi
exec $fixed_addresses "$program" -seed=1 -runs="$runs" -max_total_time=60 -max_len=4096 -timeout=30 -use_cmp=0 \
  -seed_inputs="$seeds"
