# shellcheck shell=bash
# The Python wheel: the extension and the Python modules by scikit-build-core, the programs from the package folder. One wheel
# for CPython 3.10 and later, and for the systems of WHEEL_PLATFORM: glibc 2.34 and the C++ runtime of GCC 11, which RHEL 9,
# Debian 12 and Ubuntu 22.04 have.

WHEEL_PLATFORM=manylinux_2_34_x86_64

wheel() {
  [ $# = 0 ] || die "wheel: '$1' is not known; usage: ./dev wheel"
  package
  need wheel
  local version package built
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/release/CMakeCache.txt)
  package=$CUBIND_ROOT/dist/cubind-$version-linux-x86_64
  built=$(mktemp -d)
  rm -f dist/cubind-*.whl
  CMAKE_C_COMPILER_LAUNCHER=$(command -v ccache || true) CMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true) \
    .deps/venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$built" \
    --config-settings="cmake.define.CUBIND_PACKAGE=$package" ./python
  .deps/venv/bin/python -m wheel tags --remove --platform-tag "$WHEEL_PLATFORM" "$built"/*.whl >/dev/null
  .deps/venv/bin/python dev.d/check_wheel.py "$built"/*.whl || die "the wheel does not keep what its name promises: $built"
  mv "$built"/*.whl dist/
  rm -rf "$built"
}
