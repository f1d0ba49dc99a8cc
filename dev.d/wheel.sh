# shellcheck shell=bash
# The Python wheel: the extension and the Python modules by scikit-build-core, the programs from the package folder. One wheel
# for CPython 3.11 and later; its tag says the oldest glibc that all of its binaries run with. The C++ runtime is the machine's:
# that of Debian 12 would need a newer glibc than everything else does.

wheel() {
  [ $# = 0 ] || die "wheel: '$1' is not known; usage: ./dev wheel"
  package
  need wheel
  local version package built platform
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/release/CMakeCache.txt)
  package=$CUBIND_ROOT/dist/cubind-$version-linux-x86_64
  built=$(mktemp -d)
  rm -f dist/cubind-*.whl
  check_runtime "$package"
  CMAKE_C_COMPILER_LAUNCHER=$(command -v ccache || true) CMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true) \
    .deps/venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$built" \
    --config-settings="cmake.define.CUBIND_PACKAGE=$package" ./python
  platform=manylinux_$(oldest_glibc "$built"/*.whl)_x86_64
  .deps/venv/bin/python -m wheel tags --remove --platform-tag "$platform" "$built"/*.whl >/dev/null
  mv "$built"/*.whl dist/
  rm -rf "$built"
  check_wheel dist/cubind-*.whl
}

# 2_34: the newest version of glibc's symbols that a binary of the wheel refers to.
oldest_glibc() {
  local folder
  folder=$(mktemp -d)
  .deps/venv/bin/python -m zipfile -e "$1" "$folder"
  newest_symbol "$folder" GLIBC_2 | tr . _
  rm -rf "$folder"
}

# What GCC 12 brings (Debian 12, Ubuntu 22.04) must suffice. The package has the machine's runtime beside it, the wheel has not.
check_runtime() {
  local newest
  newest=$(newest_symbol "$1" GLIBCXX_3.4 '-not -name libstdc++*')
  [ "${newest##*.}" -le 30 ] || die "the programs need GLIBCXX_$newest of the C++ runtime, GCC 12 has GLIBCXX_3.4.30"
}

# newest_symbol FOLDER PREFIX [FIND'S OPTIONS]: 2.34 for GLIBC_2. objdump fails for files that are no binaries.
newest_symbol() {
  local found
  # shellcheck disable=SC2086
  found=$({ find "$1" -type f ${3:-} -exec objdump -T {} + 2>/dev/null || true; } | grep -oE "$2\.[0-9]+" | sort -Vu | tail -n 1) ||
    die "no binary in $1 refers to $2"
  echo "${found#*_}"
}

check_wheel() {
  local size
  size=$(du -m --apparent-size "$1" | cut -f1)
  say "$1: $size MiB (limit 60 MiB)"
  [ "$size" -lt 60 ] || die "the wheel is too large"
}
