#!/usr/bin/env bash
# compute-sanitizer over the op tests on a GPU: memcheck on all of them, reads and teardown; racecheck on each. Ends with 1 when memcheck finds an error,
# when racecheck names a kernel of this tree, or when a test fails. Hazards inside NVIDIA's own kernels (cuBLASLt's `nvjet_*`, cuDNN's `cudnn_*`) and tests
# in which the tool itself fails on such a kernel are counted and named beside the verdict.
# usage: tests/device/sanitize.sh DEVICE_TEST [LOG_DIR]   (DEVICE_TEST: build/release/tests/device_test; needs one GPU)
set -u
program=${1:?usage: sanitize.sh DEVICE_TEST [LOG_DIR]}
logs=${2:-$(mktemp -d)}
mkdir -p "$logs" || exit 2
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not on the PATH" >&2; exit 2; }
export CAPSTAN_GEMM_TUNING=off # trying algorithms out is slow under the tool and checks nothing of ours
failures=0

report() { # report VERDICT NAME TEXT
  echo "$1  $2  $3"
  [ "$1" != FAIL ] || failures=$((failures + 1))
}

timeout 300 compute-sanitizer --tool memcheck "$program" --gtest_filter='DeviceOps.*:DeviceTraining.AReadGives*:DeviceTraining.TearDown*' >"$logs/memcheck.log" 2>&1
code=$?
summary=$(grep -o 'ERROR SUMMARY: .*' "$logs/memcheck.log" | tail -1)
if [ $code -eq 0 ] && [ "$summary" = "ERROR SUMMARY: 0 errors" ]; then verdict=pass; else verdict=FAIL; fi
report $verdict memcheck "$summary, $(grep -o 'PASSED.*' "$logs/memcheck.log" | tail -1)"

for name in $("$program" --gtest_list_tests --gtest_filter='DeviceOps.*' | sed -n 's/^  \([^ ]*\).*/\1/p'); do
  log=$logs/racecheck_$name.log
  timeout 120 compute-sanitizer --tool racecheck "$program" --gtest_filter="DeviceOps.$name" >"$log" 2>&1
  code=$?
  races=$(grep -cE '^=+ (Error|Warning):.*(Race|hazard)' "$log")
  ours=$(grep -E '^=+ .*(access at|hazard)' "$log" | grep -cvE 'nvjet_|cudnn_|RACECHECK SUMMARY')
  if [ "$ours" -ne 0 ]; then
    report FAIL "racecheck $name" "$ours lines name kernels of this tree, see $log"
  elif grep -q 'Internal Sanitizer Error' "$log"; then
    report tool "racecheck $name" "the tool fails on a kernel of NVIDIA's ($(grep -o 'Internal Sanitizer Error.*' "$log" | head -1))"
  elif ! grep -q 'PASSED  ] 1 test' "$log"; then
    report FAIL "racecheck $name" "the test did not pass, exit code $code, see $log"
  elif [ "$races" -ne 0 ]; then
    report theirs "racecheck $name" "$races hazards, all in kernels of NVIDIA's: $(grep -oE '(nvjet|cudnn)_[a-z0-9_]*' "$log" | sort -u | head -3 | cut -c1-60 | tr '\n' ' ')"
  else
    report pass "racecheck $name" "$(grep -o 'RACECHECK SUMMARY: .*' "$log" | tail -1)"
  fi
done
echo "$failures failures; logs in $logs"
[ $failures -eq 0 ]
