#!/bin/bash
# Tests of symbol_version.py, libstdcxx.cpp and check_wheel.py, which need no wheel. Exit status 1: one failed.
set -euo pipefail
cd "$(dirname "$0")"
die() { echo "$*" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
versions_of() { objdump -T "$1" | sed -n 's/.*UND.*(\(GLIBCXX_[0-9.]*\)) \(.*\)/\1 \2/p'; }

cat >"$folder/waits.cpp" <<'CPP'
#include <condition_variable>
#include <mutex>
int main(int arguments, char**) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  if (arguments > 1) { condition.wait(lock); }
}
CPP
g++ -std=c++20 -o "$folder/waits" "$folder/waits.cpp"
g++ -std=c++20 -D_GLIBCXX_ASSERTIONS -include vector -o "$folder/asserts" -x c++ - <<CPP
#include "$folder/waits.cpp"
int third(const std::vector<int>& numbers) { return numbers[2]; }
CPP
cp "$folder/asserts" "$folder/untouched"
versions_of "$folder/waits" | grep -q '^GLIBCXX_3.4.30 .*condition_variable4wait' || die "this compiler's programs do not need it"
python3 symbol_version.py "$folder/waits" "$folder/asserts"

found=$(versions_of "$folder/waits" | grep condition_variable4wait)
[ "${found%% *}" = GLIBCXX_3.4.11 ] || die "the program needs $found"
! versions_of "$folder/waits" | grep -q 3.4.30 || die "the program still needs GLIBCXX_3.4.30"
"$folder/waits" || die "the loader refuses the program"
cmp -s "$folder/asserts" "$folder/untouched" || die "a program that needs another symbol of GLIBCXX_3.4.30 was changed"

# A process that is refused random numbers ends; one that is interrupted tries again. getrandom() is the test's own.
cat >"$folder/random.cpp" <<'CPP'
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstdint>
#include <sys/types.h>
extern "C" ssize_t getrandom(void*, size_t size, unsigned) {
  static int calls = 0;
  if (calls++ == 1) { return static_cast<ssize_t>(size); }
  errno = std::getenv("REFUSED") ? EPERM : EINTR;
  return -1;
}
extern "C" std::uint32_t arc4random() noexcept;
int main() { arc4random(); }
CPP
echo 'GLIBCXX_3.4.11 { global: _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE; local: *; };' >"$folder/versions.map"
g++ -std=c++20 -fuse-ld=bfd -o "$folder/random" "$folder/random.cpp" libstdcxx.cpp -Wl,--version-script="$folder/versions.map"
"$folder/random" || die "arc4random() does not try again after an interruption"
status=0
{ (ulimit -c 0; REFUSED=1 exec "$folder/random") || status=$?; } 2>/dev/null
[ $status = 134 ] || die "arc4random() without random numbers: exit status $status, not 134"

# The check of a wheel imports abi3info and pyelftools, which only `./dev wheel` installs.
python=$PWD/../.deps/venv/bin/python
if "$python" -c 'import abi3info, elftools' 2>/dev/null; then
  printf '#!/bin/sh\nkill -SEGV $$\n' >"$folder/dies"
  printf '#!/bin/sh\nexit 2\n' >"$folder/usage"
  chmod +x "$folder/dies" "$folder/usage"
  "$python" -B - "$folder" <<'PYTHON' || die "check_wheel.py does not tell a program that dies from one that starts"
import pathlib, sys
import check_wheel
folder = pathlib.Path(sys.argv[1])
assert "signal 11" in check_wheel.start_error(folder / "dies", folder)
assert check_wheel.start_error(folder / "usage", folder) == ""
PYTHON
fi
