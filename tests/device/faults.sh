#!/usr/bin/env bash
# Training on a GPU from the config to the last checkpoint, and what happens when something breaks on the way: each case ends with the right exit
# code, one clear diagnostic, whole checkpoints, and within 10 seconds.
# usage: tests/device/faults.sh BIN_DIR RECIPES_DIR   (BIN_DIR holds capstan and capstan-run; needs one GPU)
set -u
bin=$(cd "${1:?usage: faults.sh BIN_DIR RECIPES_DIR}" && pwd)
recipes=$(cd "${2:?usage: faults.sh BIN_DIR RECIPES_DIR}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cp -r "$recipes/." .
failures=0

check() { # check NAME CONDITION...: runs the condition
  local name=$1
  shift
  if "$@"; then echo "pass  $name"; else
    echo "FAIL  $name"
    failures=$((failures + 1))
  fi
}
now() { date +%s%N; }
# plan FILE CONFIG [--set ...]
plan() {
  local out=$1 config=$2
  shift 2
  "$bin/capstan" compile "$config" -o "$out" --set execute.backend=cuda "$@" >compile.log 2>&1 || { cat compile.log; return 1; }
}
# train DIRECTORY PLAN [OPTION...]: exit code in $code, milliseconds in $ms, diagnostics in DIRECTORY.err
train() {
  local directory=$1 plan=$2 began
  shift 2
  began=$(now)
  "$bin/capstan-run" "$plan" --output "$directory" --quiet "$@" >"$directory.out" 2>"$directory.err"
  code=$?
  ms=$((($(now) - began) / 1000000))
}
losses() { sed 's/.*"step": \([0-9]*\).*"loss": \([^,]*\).*"grad_norm": \([^,]*\).*/\1 \2 \3/' "$1/metrics.jsonl"; }
checkpoint() { printf '%s/checkpoints/step-%08d.safetensors' "$1" "$2"; }
tensors() { # the tensors of a checkpoint, without the header that names its plan
  local size
  size=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
  tail -c +$((size + 9)) "$1" | sha256sum
}
says() { grep -q "$2" "$1.err" || { cat "$1.err"; return 1; }; }

echo "-- a run from the config, on the GPU"
"$bin/capstan" run tiny_text.toml --set execute.backend=cuda -- --output whole --export-graphs >whole.out 2>whole.err
check "capstan run exits with 0" test $? -eq 0
cat whole.out
check "every step is in the metrics" test "$(wc -l <whole/metrics.jsonl)" -ge 20
check "most steps were replayed" test "$(grep -c '"mode": "replay"' whole/metrics.jsonl)" -ge 18
check "the captured graph was written" test -s whole/graphs/segment-0.dot -a -s whole/graphs/segment-0.json
plan plan.json tiny_text.toml --set logger.log_interval=1 || exit 2
train replayed plan.json
train eager plan.json --eager
check "eager and replayed losses have the same bits (200 steps, dropout)" diff <(losses eager) <(losses replayed)
check "the report has the host's time of issuing a replay" grep -q '"host_issue_us": {' replayed/report.json
grep 'issued in' replayed.out eager.out
check "and leave the same weights" test "$(tensors "$(checkpoint eager 200)")" = "$(tensors "$(checkpoint replayed 200)")"
train verified plan.json --steps 12 --verify-replay 4
check "--verify-replay finds no difference" test $code -eq 0
train flipped plan.json --steps 12 --verify-replay 4 --inject flip:rng_counter
check "--verify-replay names a flipped bit: exit 5" test $code -eq 5
check "and the op" says flipped 'RN032.*dropout'

echo "-- resume"
train part plan.json --steps 90
train part plan.json --resume part
check "90 steps and a resumed run have the bits of 200 at once" cmp "$(checkpoint part 200)" "$(checkpoint replayed 200)"

echo "-- SIGTERM in the middle of a replay"
plan long.json tiny_text.toml --set logger.log_interval=1 --set train.train_iters=2000000 --set scheduler.lr_decay_iters=200 || exit 2
"$bin/capstan-run" long.json --output stopped --quiet >stopped.out 2>stopped.err &
pid=$!
for _ in $(seq 300); do [ "$(cat stopped/metrics.jsonl 2>/dev/null | wc -l)" -ge 50 ] && break; sleep 0.1; done
began=$(now)
kill -TERM $pid
wait $pid
code=$?
ms=$((($(now) - began) / 1000000))
check "exit code 143 (was $code)" test $code -eq 143
check "gone within 10 s (took $ms ms)" test $ms -lt 10000
check "says so" says stopped RN033
done_steps=$(sed -n 's/.*after step \([0-9]*\).*/\1/p' stopped.err | head -1)
train stopped long.json --resume stopped --steps $((done_steps + 20))
train straight long.json --steps $((done_steps + 20))
check "the checkpoint is whole: resumed at step $done_steps, the bits of a run without the signal" \
  cmp "$(checkpoint stopped $((done_steps + 20)))" "$(checkpoint straight $((done_steps + 20)))"

echo "-- NaN in step 31, attention captured, the check on"
plan nan.json tiny_text.toml --set logger.log_interval=1 --set model.cuda_graph_impl=transformer_engine --set 'model.cuda_graph_scope=["attn"]' \
  --set rerun_state_machine.check_for_nan_in_loss=true --set checkpoint.save_interval=10 || exit 2
train nan nan.json --inject nan:31
check "exit code 4 (was $code)" test $code -eq 4
check "names the step" says nan 'RN030.*step 31'
check "within 10 s ($ms ms)" test $ms -lt 10000
check "counts no step behind it" grep -q '"done": 31' nan/report.json
check "saves nothing after it" test "$(find nan/checkpoints -type f | wc -l)" -eq 3
train nan-before nan.json --steps 30
check "the checkpoint before it is whole" cmp "$(checkpoint nan 30)" "$(checkpoint nan-before 30)"

echo "-- a kernel that the device refuses in the middle of a capture"
plan fault.json tiny_text.toml --set logger.log_interval=1 --set checkpoint.save_interval=2 || exit 2
train fault fault.json --inject fault:25
check "exit code 4 (was $code)" test $code -eq 4
check "names the op" says fault 'RN022.*op 25'
check "within 10 s ($ms ms)" test $ms -lt 10000
train fault-before fault.json --steps 2
check "the checkpoint before it is whole" cmp "$(checkpoint fault 2)" "$(checkpoint fault-before 2)"

echo "-- a plan larger than the device"
plan large.json gpt2_124m.toml --set execute.data=random --set train.micro_batch_size=1024 --set train.global_batch_size=1024 || exit 2
train large large.json
check "exit code 4 (was $code)" test $code -eq 4
check "says planned peak and free memory" says large 'RN020.*bytes free'
check "within 10 s ($ms ms)" test $ms -lt 10000
check "nothing was made" test ! -e large
cat large.err

echo "-- a missing library"
CAPSTAN_CUBLASLT=/nowhere/libcublasLt.so train unlibraried plan.json
check "exit code 4 (was $code)" test $code -eq 4
check "named" says unlibraried 'RN025.*/nowhere/libcublasLt.so'

echo "-- GPT-2 124M: memory as planned, captured against eager"
"$bin/capstan" run gpt2_124m.toml --set execute.backend=cuda --set execute.data=random -- --output gpt2 --compare eager --rounds 8 >gpt2.out 2>gpt2.err
check "exits with 0" test $? -eq 0
cat gpt2.out
ratio=$(sed -n 's/.*"measured_over_planned": \([0-9.]*\).*/\1/p' gpt2/report.json)
check "measured peak within 5 % of the planned one ($ratio)" awk "BEGIN { exit !($ratio > 0.95 && $ratio < 1.05) }"
sed -n '/"comparison": {/,/^  }/p' gpt2/report.json | grep -v '^    "\(eager\|captured\)' | head -30

echo "$failures failures"
exit $((failures > 0))
