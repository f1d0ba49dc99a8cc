#!/bin/bash
# Tests of symbol_version.py, which needs no wheel. Exit status 1: one failed.
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
