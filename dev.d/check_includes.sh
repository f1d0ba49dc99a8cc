#!/bin/bash
# Which folder may include which. CMake's private links keep most of this; a header that needs no library is only caught here.
# Prints each line that breaks a rule with the rule; exit status 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# forbid RULE PATTERN FOLDER...: no file of the folders, but those matching the regular expression in $except, includes
# what matches the pattern (an extended regular expression over what stands after #include).
forbid() {
  local rule=$1 pattern=$2 folder found folders=()
  shift 2
  for folder in "$@"; do [ -d "$folder" ] && folders+=("$folder"); done
  [ ${#folders[@]} -gt 0 ] || return 0
  found=$(grep -rnE --include='*.hpp' --include='*.cpp' --include='*.h' "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]($pattern)" \
    "${folders[@]}" | grep -vE "^(${except:-^$}):" || true)
  [ -z "$found" ] || { printf '%s\n    rule: %s\n' "$found" "$rule"; status=1; }
}

cuda='(cuda|cuda_[a-z0-9_]+|cupti[a-z0-9_]*|nvrtc|nvml)\.h'
# The NVRTC tests hold device code in string literals, the stand-ins are device code; a fake libcupti has its types.
except='(tuner/worker|tests/nvrtc|tuner/includes/stand_ins)/.*|tests/unit/device_worker/fake_cupti.cpp' forbid 'CUDA headers are for tuner/worker alone; others use cuda_api' "$cuda" \
  base cuda_api plan launch tuner server client python tests
except='server/service/verdict.cpp' forbid 'server knows schemas, cuda_api and the tuner below its agent; never the workers or the agent' \
  'tuner/(worker|agent|search|measure|verify|space|toolchain|sandbox)/' server
# The folders of the server stand on each other: none includes one above it, nor the files above all of them.
above='daemon|fsck|metrics_page|metric_families|tls_credentials|prebuild|listener|user_watch|own_process|config|main'
except='' forbid 'server/access stands on access and base alone' \
  '(server/([a-z_]+\.hpp|(store|table|lookup|jobs|answer|convert|service)/)|tuner/|schemas/|cuda_api/)' server/access
except='' forbid 'server/store stands below the rest of the server' "server/([a-z_]+\.hpp|(table|lookup|jobs|answer|convert|service)/)" server/store
except='' forbid 'server/table and server/lookup stand on server/store alone' "server/([a-z_]+\.hpp|(jobs|answer|convert|service)/)" \
  server/table server/lookup
except='' forbid 'server/lookup knows no tables' 'server/table/' server/lookup
except='' forbid 'server/jobs stands on lookup, store and the kernel library' \
  "server/(($above|fleet|strand)\.hpp|(table|answer|convert|service)/)" server/jobs
except='' forbid 'server/answer stands on jobs, lookup, store and the fleet' "server/(($above)\.hpp|(table|convert|service)/)" server/answer
except='' forbid 'server/convert stands below the service' "server/(($above)\.hpp|(table|service)/)" server/convert
except='' forbid 'the service knows nothing of the daemon around it' "server/($above)\.hpp" server/service
except='' forbid 'client knows schemas, base, cuda_api, the launch plan and expressions; never server, agent or workers' \
  '(server/|tuner/(worker|agent|verify)/)' client
except='' forbid 'the Python extension is the client without its messages: never gRPC, protobuf or what stands on them' \
  '(server/|schemas/|google/|grpc|plan/([a-z_]*wire|facts/)|client/((answer|client|connection|kernel|request)\.hpp|cubindctl/))' python/extension
except='' forbid 'of the tuner the Python extension knows launch plans and expressions alone' \
  'tuner/(agent|worker|search|measure|verify|spec|space|table|includes|toolchain)/' python/extension
except='' forbid 'CPython stays in the extension' 'Python\.h' base cuda_api plan launch tuner server client
except='' forbid 'the tuner does not know the server or the client' '(server|client)/' tuner
except='' forbid 'base stands below everything' '(access|connect|cuda_api|plan|launch|tuner|server|client|schemas)/' base
except='' forbid 'access and connect stand on base alone' '(cuda_api|plan|launch|tuner|server|client|schemas)/' access connect
except='' forbid 'trust stands on base and access' '(connect|cuda_api|plan|launch|bundle|tuner|server|client|schemas)/' trust
except='' forbid 'bundles stand on trust, specs and tables' \
  '(connect|cuda_api|launch|server|client|schemas|tuner/(agent|worker|search|measure|verify))/' bundle
except='' forbid 'cuda_api stands on base alone' '(plan|launch|tuner|server|client|schemas)/' cuda_api
except='' forbid 'launch stands on base, cuda_api and the launch plan, without messages' \
  '(server|client|schemas|google|tuner/(agent|worker|search|measure|verify|spec|space|table|includes|toolchain)|plan/([a-z_]*wire|facts/))' launch
except='tuner/worker/.*' forbid 'launching is for the device worker and clients' 'launch/' tuner server
except='' forbid 'specs and sources stand below search, agent and workers' \
  'tuner/(search|measure|verify|agent|worker)/' tuner/space tuner/spec tuner/includes tuner/toolchain tuner/table
except='' forbid 'plans stand on base and the messages alone' '(access|connect|trust|cuda_api|launch|bundle|tuner|server|client)/' plan
except='' forbid 'expressions stand on base alone' '(schemas|plan/[a-z_]+\.hpp)' plan/expr
except='' forbid 'the sandbox stands on base alone' '(access|connect|cuda_api|plan|launch|schemas|tuner/[a-rt-z])' tuner/sandbox
except='' forbid 'search, measure and verify are pure: below agent and worker' 'tuner/(agent|worker)/' \
  tuner/search tuner/measure tuner/verify
except='' forbid 'agent and worker meet only in messages' 'tuner/worker/' tuner/agent
except='' forbid 'agent and worker meet only in messages' 'tuner/agent/' tuner/worker
except='client/(cubindctl|web)/.*' forbid 'specs, tables and the rules of the choice are for cubindctl and the pages alone' \
  'tuner/(spec|table|space|includes|toolchain|search|measure)/' client

grpc='(grpcpp/|grpc/|schemas/[a-z_]+\.grpc\.pb\.h)'
except='server/(service|convert)/.*|server/(main|daemon|tls_credentials|grpc_limits)\.[ch]pp|connect/.*|tuner/agent/[a-z_/]*(transport|connection|channel|stream|main)[a-z_]*\.[ch]pp|client/[a-z_/]*(transport|channel|connection)[a-z_]*\.[ch]pp' \
  forbid 'gRPC types stay in service, convert and transport files' "$grpc" base access connect cuda_api plan launch server client tuner
except='' forbid 'workers speak protobuf over a socketpair, not gRPC' "$grpc" tuner/worker
except='tuner/sandbox/.*' forbid 'libseccomp stays in tuner/sandbox' 'seccomp\.h' base access connect cuda_api plan launch server client tuner
except='server/store/sqlite/.*' forbid 'SQLite stays in server/store/sqlite' 'sqlite3\.h' base cuda_api plan launch server client tuner python bench
except='server/store/postgresql/.*' forbid 'libpq stays in server/store/postgresql' 'libpq' base cuda_api plan launch server client tuner python bench
except='server/metric[a-z_]*\.[ch]pp' forbid 'the library of Prometheus stays in the files of the metrics' 'prometheus/' \
  base cuda_api plan launch server client tuner python
except='client/web/http_server.cpp' forbid 'CivetWeb stays in client/web/http_server.cpp' 'civetweb' base cuda_api plan launch server client tuner python
except='client/reply_check.cpp' forbid 'protozero stays in client/reply_check' 'protozero/' base cuda_api plan launch server client tuner python bench
except='.*\.cpp' forbid 'heavy headers stay out of headers' '(valijson/|CLI/|toml\+\+/)' base cuda_api plan launch server client tuner python bench tests

[ $status = 0 ] && echo "include rules: kept"
exit $status
