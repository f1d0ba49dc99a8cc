# shellcheck shell=bash
# The GPU tests. A machine with a GPU need not have what building takes: there a package made with --with-tests is run.

gpu_test() {
  local packages=()
  mapfile -t packages < <(find dist -maxdepth 3 -path '*/tests/run' 2>/dev/null | sort)
  if [ ${#packages[@]} -gt 0 ]; then
    exec bash "${packages[-1]}" "$@"
  fi
  build "${CUBIND_PRESET:-dev}" programs gpu_tests
  exec bash dev.d/gpu_test.sh "$CUBIND_ROOT/build/${CUBIND_PRESET:-dev}/tests" "$@"
}
