# shellcheck shell=bash
# Formatters and linters. Every check runs even if an earlier one has failed; the exit status is 1 if any has.

our_files() { # our_files PATTERN...: tracked or new, not ignored
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- "$@" | while IFS= read -r -d '' file; do
      [ -f "$file" ] && printf '%s\0' "$file"
    done
  else
    local names=() pattern
    for pattern in "$@"; do names+=(-o -name "$pattern"); done
    find . \( -path ./build -o -path ./.deps -o -path ./dist \) -prune -o -type f \( "${names[@]:1}" \) -print0
  fi
}

lint() { # lint [--all]
  [ $# = 0 ] || [ "$*" = --all ] || die "lint: '$*' is not known; usage: ./dev lint [--all]"
  need build lint
  local failed=()
  check_format || failed+=(clang-format)
  check_comments || failed+=(comments)
  .deps/venv/bin/python dev.d/words.py || failed+=(words)
  .deps/venv/bin/python dev.d/links.py || failed+=(links)
  dev.d/check_includes.sh || failed+=(includes)
  check_python || failed+=(ruff)
  check_own_tests || failed+=("tests in dev.d")
  .deps/venv/bin/python bench/kernels/page.py --check || failed+=(bench/kernels/page.py)
  .deps/venv/bin/python bench/readme/page.py --check || failed+=(bench/readme/page.py)
  our_files dev '.ci/run' '*.sh' '*.bash' | xargs -0 -r shellcheck -x -S warning || failed+=(shellcheck)
  [ -n "${CUBIND_LINT_FAST:-}" ] || check_tidy "$@" || failed+=(clang-tidy)
  [ ${#failed[@]} = 0 ] || die "lint: ${failed[*]} found something (./dev format mends formatting)"
  say "lint: clean"
}

check_format() {
  local found
  found=$(our_files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r clang-format-16 --dry-run 2>&1 |
    sed -n 's/^\([^ ]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort | uniq -c)
  [ -z "$found" ] || { printf 'not formatted (places, file):\n%s\n' "$found"; return 1; }
}

# clang-format keeps its column limit where it breaks lines itself; it leaves comments as they are, because it takes grammars
# and tables for prose. Ruff looks at Python's comments (max-doc-length).
check_comments() {
  local found
  found=$(our_files '*.cpp' '*.hpp' | LC_ALL=C.UTF-8 xargs -0 -r grep -nHP '^(?=.{111})(|.*[\s;{},)])//' || true)
  [ -z "$found" ] || { printf '%s\n    rule: a comment ends by column 110\n' "$found"; return 1; }
}

# Python files, and the page of the docs that one of them makes.
check_python() { .deps/venv/bin/python dev.d/spec_reference.py --check && .deps/venv/bin/ruff check --quiet . && .deps/venv/bin/ruff format --check --quiet .; }

# What decides which files clang-tidy is run on, what the checks of pages find, when a run of tests fails, and what the tag of a
# wheel says.
check_own_tests() {
  local test
  for test in clang_tidy words links run_ctest; do .deps/venv/bin/python "dev.d/${test}_test.py" --quiet || return; done
  bash dev.d/wheel_test.sh
}

# Precompiled headers are g++'s and of no use to clang-tidy; with --all each file stands alone and must include what it uses.
check_tidy() {
  local preset=lint
  [ "${1:-}" != --all ] || preset=lint-all
  configure "$preset"
  mkdir -p "build/$preset/tests"
  ln -sfn ../../../tests/.clang-tidy "build/$preset/tests/.clang-tidy" # for the files there that include a batch of tests
  ninja -C "build/$preset" --quiet -j "$CUBIND_JOBS" cubind_proto_headers || return
  .deps/venv/bin/python dev.d/clang_tidy.py "$@" "build/$preset"
}

format_sources() {
  need lint
  our_files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r clang-format-16 -i
  .deps/venv/bin/ruff format --quiet .
  .deps/venv/bin/python dev.d/spec_reference.py
  .deps/venv/bin/python bench/kernels/page.py
  .deps/venv/bin/python bench/readme/page.py
  .deps/venv/bin/ruff check --quiet --fix .
}
