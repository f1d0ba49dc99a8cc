#!/bin/bash
# Runs every GPU test: gpu_test.sh [FOLDER] [CATCH ARGUMENTS]. FOLDER (default: where this script lies) holds the test
# executables gpu_*. Prints one closing line of the form "N passed, M failed"; exit status 1 if any failed or none ran.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ] && [ -d "$1" ]; then
  folder=$1
  shift
fi
passed=0 failed=0
for test in "$folder"/gpu_*; do
  [ -x "$test" ] && [ -f "$test" ] || continue
  # One process per test case: a sticky CUDA error of one must not fail the next.
  while IFS= read -r name; do
    [ -n "$name" ] || continue
    # Catch reads commas and brackets in a name as a filter.
    pattern=$(sed 's/[],[]/\\&/g' <<<"$name")
    started=$SECONDS
    if timeout --kill-after=10 "${CUBIND_GPU_TEST_TIMEOUT:-300}" "$test" "$pattern" -w NoTests "$@" </dev/null >"/tmp/gpu_test.$$" 2>&1; then
      passed=$((passed + 1))
      printf 'ok     %s: %s (%d s)\n' "$(basename "$test")" "$name" $((SECONDS - started))
    else
      failed=$((failed + 1))
      printf 'FAILED %s: %s (%d s)\n' "$(basename "$test")" "$name" $((SECONDS - started))
      cat "/tmp/gpu_test.$$"
    fi
  done < <("$test" --list-test-names-only || true)
done
rm -f "/tmp/gpu_test.$$"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
