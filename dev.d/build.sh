# shellcheck shell=bash
# Configuring, building, testing, and what runs on a build.

# configure PRESET [CMAKE ARGUMENTS]: makes build/PRESET if it is missing or older than the presets; ninja keeps it
# current with the CMakeLists afterwards.
configure() {
  local preset=$1
  shift
  # shellcheck disable=SC2046
  need $(groups_of "$preset")
  [ ! "build/$preset/build.ninja" -nt CMakePresets.json ] || return 0
  local log
  log=$(mktemp)
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log" "build/$preset/CMakeCache.txt"
    die "cmake --preset $preset failed"
  fi
  rm -f "$log"
}

# The groups of packages that a preset builds with.
groups_of() {
  case $1 in
    clang | asan | tsan) echo build clang ;;
    *) echo build ;;
  esac
}

build() {
  local preset=${1:-dev}
  shift || true
  configure "$preset"
  ninja -C "build/$preset" -j "$CUBIND_JOBS" "$@"
}

# CTest's summary is the last thing printed: a reader of only the end of the output sees the verdict.
# CUBIND_TARGETS builds only those targets, for a run of one label.
run_tests() {
  local preset=${CUBIND_PRESET:-dev}
  # shellcheck disable=SC2046
  need_packages $(groups_of "$preset") test
  install_wheels build
  start_wheels test triton torch notebook
  # shellcheck disable=SC2086
  build "$preset" ${CUBIND_TARGETS:-}
  await_wheels
  sanitizer_options
  local without=gpu
  [[ " $* " == *slow* ]] || without='gpu|slow'
  # Compilers of jobs that no caller waits for run in the scheduler's idle class. So do all tests, or those compilers would get
  # nothing of the cores next to other tests.
  exec chrt --idle 0 python3 dev.d/run_ctest.py "build/$preset" -LE "$without" --no-tests=error --output-on-failure -j 5 "$@"
}

# A finding ends the program that made it, child processes included.
sanitizer_options() {
  local symbols=external_symbolizer_path=/usr/bin/llvm-symbolizer-16
  export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:$symbols}"
  export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1:$symbols}"
  export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:$symbols:suppressions=$CUBIND_ROOT/tests/thread_sanitizer.supp}"
}

# client/demo/demo.sh BIN_DIR: BIN_DIR holds the programs.
demo() {
  [ $# = 0 ] || die "demo: '$1' is not known; usage: ./dev demo"
  local preset=${CUBIND_PRESET:-dev}
  [ -f client/demo/demo.sh ] || die "client/demo/demo.sh is missing: this checkout has no demo"
  local targets=(cubind cubind-agent cubind-worker cubind-web cubindctl)
  if command -v nvidia-smi >/dev/null || [ -e /dev/nvidia0 ]; then targets+=(rmsnorm-example); fi
  build "$preset" "${targets[@]}"
  exec bash client/demo/demo.sh "$CUBIND_ROOT/build/$preset/bin"
}

# pictures [FOLDER]: those of the pages, in README and docs.
pictures() {
  local preset=${CUBIND_PRESET:-dev}
  need test
  build "$preset" cubind cubind-agent cubind-worker cubind-web cubindctl
  exec python3 bench/pages/pictures.py "$CUBIND_ROOT/build/$preset/bin" "$@"
}

# bench/NAME/__main__.py
bench() {
  [ $# -gt 0 ] || die "which benchmark? bench/ has: $(list_benches)"
  local name=$1
  shift
  [ -f "bench/$name/__main__.py" ] || die "'$name' is no benchmark; bench/ has: $(list_benches)"
  exec "${CUBIND_PYTHON:-python3}" "bench/$name" "$@"
}

list_benches() { find bench -mindepth 2 -maxdepth 2 -name __main__.py -printf '%h\n' | xargs -n 1 basename | sort | paste -sd ' '; }
