#!/usr/bin/env python3
"""Runs clang-tidy over our files in parallel and remembers what was clean.

usage: clang_tidy.py BUILD_FOLDER [FILE...]

BUILD_FOLDER has compile_commands.json and the generated headers. Without FILEs every file of ours in it is checked.
A file is clean for good under a key of everything that decides the verdict: clang-tidy's version, the settings, the compile
command and the text of the file and of all headers of ours that it reaches. Exit status 1 if anything was found.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TIDY = "clang-tidy-16"
ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = (
    pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "cubind" / "clang-tidy"
)
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Keys:
    """The cache keys of source files. Reads each file once."""

    def __init__(self, build: pathlib.Path):
        self._build = build
        self._includes: dict[pathlib.Path, tuple[bytes, list[pathlib.Path]]] = {}
        settings = [ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy"]
        version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
        self._common = version + b"".join(path.read_bytes() for path in settings)

    def key(self, source: pathlib.Path, command: str) -> str:
        digest = hashlib.sha256(self._common)
        digest.update(command.replace(str(self._build), "<build>").replace(str(ROOT), "<root>").encode())
        for path in sorted(self._closure(source)):
            digest.update(
                str(path).replace(str(self._build), "<build>").replace(str(ROOT), "<root>").encode()
            )
            digest.update(self._read(path)[0])
        return digest.hexdigest()

    def _closure(self, source: pathlib.Path) -> set[pathlib.Path]:
        seen, todo = set(), [source]
        while todo:
            path = todo.pop()
            if path not in seen:
                seen.add(path)
                todo.extend(self._read(path)[1])
        return seen

    def _read(self, path: pathlib.Path) -> tuple[bytes, list[pathlib.Path]]:
        if path not in self._includes:
            text = path.read_bytes()
            found = (self._resolve(path, name.decode()) for name in INCLUDE.findall(text))
            self._includes[path] = (hashlib.sha256(text).digest(), [header for header in found if header])
        return self._includes[path]

    def _resolve(self, source: pathlib.Path, name: str) -> pathlib.Path | None:
        candidates = (source.parent / name, ROOT / name, self._build / "generated" / name)
        return next((path for path in candidates if path.is_file()), None)


def check(build: pathlib.Path, source: pathlib.Path, key: str) -> bool:
    run = subprocess.run(
        [TIDY, "--quiet", "-p", str(build), str(source)], capture_output=True, text=True, check=False
    )
    if run.returncode == 0:
        (CACHE / key).touch()
        return True
    sys.stdout.write(run.stdout or run.stderr)
    sys.stdout.flush()
    return False


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    CACHE.mkdir(parents=True, exist_ok=True)
    keys = Keys(build)
    todo, clean = [], 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if (
            not source.is_relative_to(ROOT)
            or source.is_relative_to(build)
            or (wanted and source not in wanted)
        ):
            continue
        key = keys.key(source, entry["command"])
        if (CACHE / key).exists():
            clean += 1
        else:
            todo.append((source, key))
    with ThreadPoolExecutor(int(os.environ.get("CUBIND_JOBS", os.cpu_count() or 1))) as pool:
        verdicts = list(pool.map(lambda item: check(build, *item), todo))
    bad = verdicts.count(False)
    print(f"clang-tidy: {clean} files were clean before, {len(todo)} checked, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
