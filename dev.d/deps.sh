# shellcheck shell=bash
# What the other commands need: Debian packages, and the Python packages of requirements/GROUP.txt in .deps. A command
# installs the groups that it needs, and only what is missing: a second run takes a fraction of a second.

declare -A PACKAGES=(
  [build]="ca-certificates openssl g++ cmake ninja-build ccache mold pkgconf python3 python3-dev python3-venv
    libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
    libprotozero-dev libsqlite3-dev nlohmann-json3-dev libspdlog-dev libcli11-dev libtomlplusplus-dev libcsv-dev
    prometheus-cpp-dev libcivetweb-dev libzstd-dev libssl-dev libseccomp-dev libpq-dev catch2 libvalijson-dev"
  [test]="python3 python3-venv systemd minisign skopeo chromium zsh postgresql-15"
  [lint]="clang-format-16 clang-tidy-16 shellcheck git python3 python3-venv"
  [clang]="clang-16 libclang-rt-16-dev llvm-16"
  [package]="patchelf binutils libstdc++-12-pic"
  [node]="nodejs npm"
  [slurm]="slurmctld slurmd slurm-client munge"
  [kubernetes]="python3 python3-venv"
  [triton]="python3 python3-venv"
  [torch]="python3 python3-venv"
  [notebook]="python3 python3-venv"
  [wheel]="binutils python3 python3-dev python3-venv"
)

# need GROUP...: all of these groups are installed afterwards, Debian's packages by one call of apt-get.
need() {
  need_packages "$@"
  local group
  for group in "$@"; do install_wheels "$group"; done
}

need_packages() {
  command -v dpkg-query >/dev/null || die "Debian 12 is needed here: there is no dpkg-query"
  local group wanted=() missing=()
  for group in "$@"; do
    [ "$group" != node ] || ! command -v npm >/dev/null || continue # any npm does
    # shellcheck disable=SC2206
    wanted+=(${PACKAGES[$group]})
  done
  [ ${#wanted[@]} != 0 ] || return 0
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
}

missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 2>/dev/null | sed -n 's/^ii //p' | sort -u)
}

install_packages() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and neither root nor sudo is available: $*"
    as_root=(sudo)
  fi
  say "installing $*"
  # Its package would start a server for all users; tests start one of their own.
  local folder=/etc/postgresql-common/createcluster.d
  if [[ " $* " == *" postgresql-15 "* ]]; then
    "${as_root[@]}" mkdir -p "$folder"
    echo "create_main_cluster = false" | "${as_root[@]}" tee "$folder/cubind.conf" >/dev/null
  fi
  local log status=0
  log=$(mktemp)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 || status=$?
  "${as_root[@]}" rm -f "$folder/cubind.conf"
  [ "$status" = 0 ] || tail -n 20 "$log" >&2
  rm -f "$log"
  [ "$status" = 0 ] || die "apt-get could not install these packages (Debian 12 has them all)"
}

# install_wheels GROUP: requirements/GROUP.txt into .deps/venv; .deps/cuda and .deps/cuda12 look like toolkits (include/
# and lib/).
install_wheels() {
  local group=$1 digest
  [ -f "requirements/$group.txt" ] || return 0
  digest=$(cat "requirements/$group"*.txt dev.d/deps.sh | sha256sum)
  [ "$(cat ".deps/venv/$group.stamp" 2>/dev/null)" != "$digest" ] || ! has_cuda "$group" || return 0
  say "installing the Python packages of requirements/$group.txt into .deps"
  mkdir -p .deps
  .deps/venv/bin/python -m pip --version >/dev/null 2>&1 || /usr/bin/python3 -m venv .deps/venv
  pip_install "$group" || die "pip could not install requirements/$group.txt"
  case $group in
    build) arrange_cuda ;;
    test) arrange_cuda12 ;;
    torch) install_torch ;;
  esac
  echo "$digest" >".deps/venv/$group.stamp"
}

pip_install() {
  .deps/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
    -r "requirements/$1.txt"
}

# PyPI has torch for GPUs alone.
install_torch() {
  ! pip_install torch_cpu >/dev/null 2>&1 || return 0
  say "pip is offered no torch for CPUs: installing PyPI's, with NVIDIA's libraries (2.4 GB)"
  pip_install torch_cuda || die "pip could not install requirements/torch_cuda.txt"
}

# Whether the toolkit that a group brings is still there.
has_cuda() {
  case $1 in
    build) [ -d .deps/cuda/include ] ;;
    test) [ -d .deps/cuda12/include/cub ] ;;
  esac
}

arrange_cuda() {
  local site
  site=$(echo .deps/venv/lib/python3*/site-packages/nvidia)
  [ -d "$site/cu13/include" ] || die "the NVIDIA wheels did not unpack to $site/cu13"
  ln -sfn "${site#.deps/}/cu13" .deps/cuda
}

# The wheels of CUDA 12 lie in a folder each; hard links put them side by side.
arrange_cuda12() {
  local site
  site=$(echo .deps/venv/lib/python3*/site-packages/nvidia)
  rm -rf .deps/cuda12
  mkdir .deps/cuda12
  cp -rl "$site"/cuda_nvrtc/{include,lib} "$site"/cuda_runtime/{include,lib} "$site"/cuda_cccl/include .deps/cuda12/
}

# start_wheels GROUP...: install_wheels while the next commands run. await_wheels prints what it said and ends where it failed.
start_wheels() {
  WHEELS_LOG=$(mktemp)
  (for group in "$@"; do install_wheels "$group"; done) >"$WHEELS_LOG" 2>&1 &
  WHEELS_JOB=$!
  trap 'wait "$WHEELS_JOB"' EXIT # no pip is left behind by a build that fails
}

await_wheels() {
  local status=0
  wait "$WHEELS_JOB" || status=$?
  cat "$WHEELS_LOG" >&2
  rm -f "$WHEELS_LOG"
  trap - EXIT
  [ "$status" = 0 ] || exit "$status"
}

install_deps() {
  [ $# -gt 0 ] || set -- build test lint clang package triton torch notebook wheel node
  local group
  for group in "$@"; do
    [ -n "${PACKAGES[$group]+known}" ] || die "'$group' is no group: build, test, lint, clang, package, slurm, kubernetes, triton, torch, notebook, wheel or node"
  done
  need "$@"
  say "everything is installed: $*"
}
