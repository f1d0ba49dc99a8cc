#!/bin/bash
# cubind from nothing to a served cubin, in a folder of its own that is removed at the end.
#
#   demo.sh [BIN_DIR]       BIN_DIR holds the programs; default: ../bin, as in the package
#
# With a GPU it tunes RMSNorm for four shapes and checks what it serves on the GPU. Without one, or with
# CUBIND_DEMO_REPLAY=1, the daemon plays recorded measurements of a GPU for two shapes, and every line says "replayed".
# The report that it writes stays.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
bin=$(readlink -f "${1:-$here/../bin}")
kernel=rmsnorm_forward

has_gpu() {
  [ -z "${CUBIND_DEMO_REPLAY:-}" ] || return 1
  nvidia-smi -L 2>/dev/null | grep -q GPU || { [ -e /dev/nvidia0 ] && ldconfig -p | grep -q 'libcuda\.so\.1'; }
}

replay=
has_gpu || replay=1
# Prefixes what does not say it by itself.
label() { if [ -n "$replay" ]; then sed -u '/^replayed: /!s/^/replayed: /'; else cat; fi; }
say() { printf '%s\n' "$*" | label; }
die() { say "demo: $*" >&2; exit 1; }

for program in cubind cubindctl; do
  [ -x "$bin/$program" ] || die "$bin holds no $program; usage: demo.sh BIN_DIR"
done

folder=$(mktemp -d "${TMPDIR:-/tmp}/cubind-demo.XXXXXX")
export CUBIND_ADDRESS=unix://$folder/cubind.sock
daemon=

stop_daemon() {
  [ -n "$daemon" ] || return 0
  kill -TERM "$daemon" 2>/dev/null || true
  local status=0
  wait "$daemon" || status=$?
  daemon=
  return "$status"
}

finish() {
  local status=$?
  stop_daemon || true
  if [ "$status" != 0 ] && [ -f "$folder/daemon.log" ]; then
    say "demo: failed; the end of the daemon's log:" >&2
    tail -n 20 "$folder/daemon.log" | label >&2
  fi
  rm -rf "$folder"
}
trap finish EXIT

start_daemon() {
  "$bin/cubind" --db "$folder/store.db" --socket "$folder/cubind.sock" "$@" >"$folder/daemon.log" 2>&1 &
  daemon=$!
  "$bin/cubindctl" health --wait 60 >/dev/null || die "the daemon does not serve"
}

problems=(--problem "N=1024,D=8192,T=bf16" --problem "N=16384,D=4096,T=bf16")
if [ -n "$replay" ]; then
  table=$here/rmsnorm.json
  [ -f "$table" ] || table=$(readlink -f "$here/../../tests/golden/replay/rmsnorm.json")
  start_daemon --replay "$table"
else
  problems+=(--problem "N=4096,D=4096,T=bf16" --problem "N=65536,D=1024,T=bf16")
  start_daemon
fi

say "The daemon listens on $CUBIND_ADDRESS. Its devices:"
"$bin/cubindctl" devices | label

say ""
say "Tuning $kernel: cubindctl tune $kernel ${problems[*]}"
SECONDS=0
"$bin/cubindctl" tune "$kernel" "${problems[@]}" ${replay:+--max-trials 20} | label
say "Tuned in $SECONDS s."

say ""
say "What the daemon serves now, asked over gRPC: cubindctl get $kernel --problem ..."
"$bin/cubindctl" get "$kernel" "${problems[@]}" --tune never | label

say ""
"$bin/cubindctl" export ${replay:+--replayed} -o "$folder/table.json" 2>&1 | label
say "The exported table, which goes with the demo's folder, begins with:"
head -c 160 "$folder/table.json" | head -n 2 | label

say ""
say "A page that shows what was tuned, to open in a browser: cubindctl report $kernel"
page=$(mktemp "${TMPDIR:-/tmp}/cubind-demo.XXXXXX.html")
"$bin/cubindctl" report "$kernel" -o "$page" | label

if [ -z "$replay" ] && [ -x "$bin/rmsnorm-example" ]; then
  say ""
  say "The example program fetches each winner, launches it and checks every element: rmsnorm-example"
  "$bin/rmsnorm-example" "${problems[@]}"
fi

say ""
if ! stop_daemon; then
  die "the daemon did not end cleanly"
fi
say "The daemon has stopped. Done. The report is $page. To go on, with a daemon that stays:"
say "  cubind${replay:+ --replay $table} --web 7680 &      # pages at http://127.0.0.1:7680/"
say "  cubindctl tune $kernel ${problems[*]:0:2}"
say "  cubindctl explain $kernel ${problems[*]:0:2}"
