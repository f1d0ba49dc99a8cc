#!/bin/bash
# Tests of wheel.sh that need no wheel: newest_symbol among binaries and other files. Exit status 1: one failed.
set -euo pipefail
cd "$(dirname "$0")"
die() { echo "$*" >&2; exit 1; }
# shellcheck source=/dev/null
source ./wheel.sh

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "GLIBC_2.99 in a file that is no binary" >"$folder/text"
! (newest_symbol "$folder" GLIBC_2) >/dev/null 2>&1 || die "a text file was taken for a binary"
cp -L /bin/bash "$folder/program"
expected=$(objdump -T /bin/bash | grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -n 1)
[ "GLIBC_$(newest_symbol "$folder" GLIBC_2)" = "$expected" ] || die "expected $expected of /bin/bash beside a text file"
! (newest_symbol "$folder" GLIBC_2 '-not -name program') >/dev/null 2>&1 || die "the left out file was read"
