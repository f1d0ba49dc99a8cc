# shellcheck shell=bash
# What the other commands need. Installs only what is missing, so a second run takes a fraction of a second.

declare -A PACKAGES=(
  [build]="ca-certificates g++ cmake ninja-build ccache mold pkgconf python3 python3-venv
    libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
    libsqlite3-dev libsqlitecpp-dev nlohmann-json3-dev libvalijson-dev libspdlog-dev libcli11-dev
    libzstd-dev libssl-dev libbenchmark-dev catch2"
  [lint]="clang-format-16 clang-tidy-16 shellcheck"
  [clang]="clang-16 libclang-rt-16-dev llvm-16"
  [package]="patchelf binutils"
)

# need GROUP...: the packages of these groups are installed afterwards.
need() {
  command -v dpkg-query >/dev/null || die "Debian 12 is needed here: there is no dpkg-query"
  local group missing=()
  for group in "$@"; do
    # shellcheck disable=SC2086
    mapfile -t -O "${#missing[@]}" missing < <(missing_packages ${PACKAGES[$group]})
  done
  [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
}

missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 2>/dev/null | sed -n 's/^ii //p' | sort -u)
}

install_packages() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and neither root nor sudo is at hand: $*"
    as_root=(sudo)
  fi
  say "installing $*"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install these packages (Debian 12 has them all)"
  fi
  rm -f "$log"
}

# .deps/venv from requirements.txt; .deps/cuda and .deps/cuda12 look like toolkits (include/ and lib/).
install_wheels() {
  local digest
  digest=$(cat requirements.txt dev.d/deps.sh | sha256sum)
  [ "$(cat .deps/stamp 2>/dev/null)" != "$digest" ] || return 0
  say "installing the Python packages of requirements.txt into .deps"
  mkdir -p .deps
  [ -x .deps/venv/bin/pip ] || /usr/bin/python3 -m venv .deps/venv
  .deps/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.txt
  local site
  site=$(echo .deps/venv/lib/python3*/site-packages/nvidia)
  [ -d "$site/cu13/include" ] || die "the NVIDIA wheels did not unpack to $site/cu13"
  ln -sfn "${site#.deps/}/cu13" .deps/cuda
  # The wheels of CUDA 12 lie in a folder each; hard links put them side by side.
  rm -rf .deps/cuda12
  mkdir .deps/cuda12
  cp -rl "$site"/cuda_nvrtc/{include,lib} "$site"/cuda_runtime/{include,lib} .deps/cuda12/
  echo "$digest" >.deps/stamp
}

install_deps() {
  [ $# -gt 0 ] || set -- build lint clang package
  local group
  for group in "$@"; do
    [ -n "${PACKAGES[$group]:-}" ] || die "'$group' is no group: build, lint, clang or package"
  done
  need "$@"
  if [[ " $* " =~ \ (build|lint)\  ]]; then need build; install_wheels; fi
  say "everything is installed: $*"
}
