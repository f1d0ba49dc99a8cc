#!/bin/bash
# cubind from nothing to a served cubin, in a folder of its own that is removed at the end.
#
#   demo.sh [BIN_DIR]       BIN_DIR holds the programs; default: ../bin, as in the package
#
# With a GPU it tunes RMSNorm for four shapes and checks what it serves on the GPU. Without one, or with
# CUBIND_DEMO_REPLAY=1, the daemon plays recorded measurements of a GPU for two shapes, and every line says "replayed".
# CUBIND_DEMO_TABLE names another recorded table. The report that it writes stays.
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

find_table() {
  local table
  for table in "${CUBIND_DEMO_TABLE:-}" "$here/rmsnorm.json" "$here/../../tests/golden/replay/rmsnorm.json"; do
    if [ -f "$table" ]; then
      printf '%s\n' "$table"
      return
    fi
  done
  die "this machine has no GPU, and there is no recorded table to play (CUBIND_DEMO_TABLE names one)"
}

# The problems that a table has trials of, one JSON object a line: a canonical table has one trial a line.
problems_of() {
  sed -n '/"outcome":/s/^{"kernel":"'$kernel'","problem":{"dims":{\([^}]*\)},"types":{\([^}]*\)}.*/{\1,\2}/p' "$1" |
    sort -u
}

start_daemon() {
  "$bin/cubind" --db "$folder/store.db" --socket "$folder/cubind.sock" "$@" >"$folder/daemon.log" 2>&1 &
  daemon=$!
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    kill -0 "$daemon" 2>/dev/null || die "the daemon has ended"
    if "$bin/cubindctl" devices --json 2>/dev/null | grep -q '"offered": true'; then
      return
    fi
    sleep 0.1
  done
  die "no agent has offered a GPU within a minute"
}

# {"N":4096,"D":4096,"T":"bf16"} becomes --problem N=4096,D=4096,T=bf16.
problem_arguments() { tr -d '{}"' | tr ':' '=' | sed 's/^/--problem /' | tr '\n' ' '; }

if [ -n "$replay" ]; then
  table=$(find_table)
  problems_of "$table" | sed -n '1,2p' >"$folder/problems"
  [ -s "$folder/problems" ] || die "$table has no trials of $kernel"
  start_daemon --replay "$table"
else
  printf '{"N":%s,"D":%s,"T":"bf16"}\n' 1024 8192 4096 4096 16384 4096 65536 1024 >"$folder/problems"
  start_daemon
fi
printf '{"kernel":"%s","problems":[\n%s\n]}\n' "$kernel" "$(paste -sd , <"$folder/problems" | sed 's/},/},\n/g')" \
  >"$folder/shapes.json"
read -ra problems <<<"$(problem_arguments <"$folder/problems")"

say "The daemon listens on $CUBIND_ADDRESS. Its devices:"
"$bin/cubindctl" devices | label

say ""
say "Tuning $(wc -l <"$folder/problems") problems of $kernel: cubindctl tune --shapes shapes.json"
SECONDS=0
"$bin/cubindctl" tune --shapes "$folder/shapes.json" | label
say "Tuned in $SECONDS s."

say ""
say "What the daemon serves now, asked over gRPC: cubindctl get $kernel --problem ..."
"$bin/cubindctl" get "$kernel" "${problems[@]}" --tune never | label

# The answers for a GPU that is not here come from the shipped table. Their cubins may still be compiling.
imported() {
  local tries status=1
  for ((tries = 0; tries < 30; ++tries)); do
    status=0
    "$bin/cubindctl" get "$kernel" "${problems[@]}" --tune never --device "$shipped" >"$folder/imported" 2>&1 || status=$?
    [ "$status" = 3 ] || break
    sleep 1
  done
  cat "$folder/imported"
  return "$status"
}
# Labels of GPUs that only shipped tables know.
shipped=$("$bin/cubindctl" devices --json | sed -n 's/.*"label": "\(nvidia-[^"]*\)".*/\1/p' | head -n 1)
if [ -n "$replay" ] && [ -n "$shipped" ]; then
  say ""
  { echo "For a real GPU, from the table that comes with cubind: cubindctl get --device $shipped" && imported; } |
    sed 's/^/not replayed: /'
fi

say ""
"$bin/cubindctl" export ${replay:+--replayed} -o "$folder/table.json" 2>&1 | label
say "The exported table, which goes with the demo's folder, begins with:"
head -c 160 "$folder/table.json" | head -n 2 | label

say ""
"$bin/cubindctl" report "$kernel" -o "$(mktemp "${TMPDIR:-/tmp}/cubind-demo.XXXXXX.html")" | label

if [ -z "$replay" ] && [ -x "$bin/rmsnorm-example" ]; then
  say ""
  say "The example program fetches each winner, launches it and checks every element: rmsnorm-example"
  "$bin/rmsnorm-example" "${problems[@]}"
fi

say ""
if ! stop_daemon; then
  die "the daemon did not end cleanly"
fi
say "The daemon has stopped. Done."
