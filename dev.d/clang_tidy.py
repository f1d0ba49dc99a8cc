#!/usr/bin/env python3
"""Runs clang-tidy over our files in parallel and remembers what was clean.

usage: clang_tidy.py [--all] BUILD_FOLDER [FILE...]

BUILD_FOLDER has compile_commands.json and the generated headers. Without FILEs those of our files are checked
that differ from a base, and after them those that include a file that does. The base: the commit
CUBIND_TIDY_BASE, else the last one that HEAD shares with origin's main, else (where that is HEAD itself) the
newest one that is older than twelve hours.
--all, a shallow clone or a tree without git: every file.
Where BUILD_FOLDER compiles several sources as one file, that file is checked in their place: most of the time
goes into headers that they share. A file is clean for good under a key of everything that decides the
verdict: clang-tidy's version, the settings, the compile command and the text of the file and of all headers
of ours that it reaches. The keys lie in CUBIND_CACHE. After CUBIND_TIDY_SECONDS no other file is begun; the
last line says how many are left. Exit status 1 if anything was found.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TIDY = "clang-tidy-16"
ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("CUBIND_CACHE", pathlib.Path.home() / ".cache" / "cubind")) / "clang-tidy"
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Sources:
    """Our files and what they include. Reads each file once."""

    def __init__(self, root: pathlib.Path, build: pathlib.Path):
        self._root = root
        self._build = build
        self._includes: dict[pathlib.Path, tuple[bytes, list[pathlib.Path]]] = {}

    def closure(self, source: pathlib.Path) -> set[pathlib.Path]:
        seen, todo = set(), [source]
        while todo:
            path = todo.pop()
            if path not in seen:
                seen.add(path)
                todo.extend(self._read(path)[1])
        return seen

    def key(self, common: bytes, source: pathlib.Path, command: str) -> str:
        digest = hashlib.sha256(common)
        digest.update(self._portable(command))
        for path in sorted(self.closure(source)):
            digest.update(self._portable(str(path)))
            digest.update(self._read(path)[0])
        return digest.hexdigest()

    def reaches(self, source: pathlib.Path, changed: set[str]) -> bool:
        """Whether the file or what it includes is among the changed ones, named relative to the root."""
        return any(not self._origins(path).isdisjoint(changed) for path in self.closure(source))

    def holds(self, source: pathlib.Path, changed: set[str]) -> bool:
        """Whether the file itself, or a source of its batch, is among the changed ones."""
        parts = [source, *(path for path in self._read(source)[1] if path.suffix == ".cpp")]
        return any(not self._origins(path).isdisjoint(changed) for path in parts)

    def _origins(self, path: pathlib.Path) -> set[str]:
        """The files of the repository that decide what a file holds: those of a generated header are named as
        it is."""
        generated = self._build / "generated"
        if not path.is_relative_to(generated):
            return {str(path.relative_to(self._root))}
        name = str(path.relative_to(generated))
        if name.endswith(".pb.h"):  # the protos import each other
            return {str(proto.relative_to(self._root)) for proto in self._root.glob("schemas/*.proto")}
        stem = name.removesuffix(".hpp")
        return {f"{stem}.{ending}" for ending in ("sql", "schema.json", "json", "ptx", "cu")}

    def _portable(self, text: str) -> bytes:
        return text.replace(str(self._build), "<build>").replace(str(self._root), "<root>").encode()

    def _read(self, path: pathlib.Path) -> tuple[bytes, list[pathlib.Path]]:
        if path not in self._includes:
            text = path.read_bytes()
            found = (self._resolve(path, name.decode()) for name in INCLUDE.findall(text))
            self._includes[path] = (hashlib.sha256(text).digest(), [header for header in found if header])
        return self._includes[path]

    def _resolve(self, source: pathlib.Path, name: str) -> pathlib.Path | None:
        candidates = (source.parent / name, self._root / name, self._build / "generated" / name)
        return next((path for path in candidates if path.is_file()), None)


def git(root: pathlib.Path, *arguments: str) -> str | None:
    """What git prints; None if it fails or is missing."""
    try:
        run = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def find_base(root: pathlib.Path) -> str | None:
    """The commit that clang-tidy is taken to have passed; none where there is no telling."""
    head = git(root, "rev-parse", "HEAD")
    if head is None or git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    named = os.environ.get("CUBIND_TIDY_BASE")
    if named:
        base = git(root, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}")
        if base is None:
            sys.exit(f"clang-tidy: CUBIND_TIDY_BASE is '{named}', which is no commit here")
        return base
    shared = git(root, "merge-base", "HEAD", "origin/main")
    if shared and shared != head:
        return shared
    parent = git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    return (parent and git(root, "rev-list", "-1", "--first-parent", "--before=12 hours ago", parent)) or None


def changed_since(root: pathlib.Path, base: str) -> set[str] | None:
    """The files that differ between the commit and the working tree, new ones included; nothing where git
    cannot tell."""
    differing = git(root, "diff", "-z", "--relative", "--name-only", "--no-renames", base)
    new = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return None if differing is None or new is None else set(f"{differing}\0{new}".split("\0")) - {""}


def select(root: pathlib.Path, sources: Sources, files: list[pathlib.Path]) -> tuple[list[pathlib.Path], str]:
    """The files to check, and in words why these."""
    base = find_base(root)
    if base is None:
        return files, "all files, since git names no commit to compare with"
    changed = changed_since(root, base)
    if changed is None:
        return files, f"all files, since git does not say what differs from {base[:12]}"
    files = sorted(files, key=lambda file: not sources.holds(file, changed))  # what has changed itself first
    if any(name.endswith((".hpp", ".cuh")) and not (root / name).exists() for name in changed):
        return files, f"all files, since a header of {base[:12]} is gone"
    if any(name.endswith(".clang-tidy") for name in changed):
        return files, f"all files, since the settings have changed since {base[:12]}"
    reached = [file for file in files if sources.reaches(file, changed)]
    return reached, f"what has changed since {base[:12]}"


def check(build: pathlib.Path, source: pathlib.Path, key: str, end: float) -> bool | None:
    """Whether the file is clean; None: the time was over."""
    if time.monotonic() > end:
        return None
    run = subprocess.run(
        [TIDY, "--quiet", "-p", str(build), str(source)], capture_output=True, text=True, check=False
    )
    if run.returncode == 0:
        (CACHE / key).touch()
        return True
    sys.stdout.write(run.stdout or run.stderr)
    sys.stdout.flush()
    return False


def our_commands(build: pathlib.Path) -> dict[pathlib.Path, str]:
    """The compile command of each source file of ours, or of the file that stands for a batch of them."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if source.parent.name == "batches" or (
            source.is_relative_to(ROOT) and not source.is_relative_to(build)
        ):
            commands[source] = entry["command"]
    return commands


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("files", nargs="*", type=lambda name: pathlib.Path(name).resolve())
    arguments = parser.parse_args()
    build = arguments.build
    CACHE.mkdir(parents=True, exist_ok=True)
    sources = Sources(ROOT, build)
    commands = our_commands(build)
    if arguments.files:
        files, why = [file for file in commands if file in arguments.files], "the named files"
    elif arguments.all:
        files, why = list(commands), "all files"
    else:
        files, why = select(ROOT, sources, list(commands))
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    settings = (ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy")
    common = version + b"".join(path.read_bytes() for path in settings)
    keys = {file: sources.key(common, file, commands[file]) for file in files}
    todo = [(file, key) for file, key in keys.items() if not (CACHE / key).exists()]
    print(
        f"clang-tidy: {why}: {len(files)} of {len(commands)} files, {len(files) - len(todo)} were clean before",
        flush=True,
    )
    end = time.monotonic() + float(os.environ.get("CUBIND_TIDY_SECONDS", "inf"))
    with ThreadPoolExecutor(int(os.environ.get("CUBIND_JOBS", os.cpu_count() or 1))) as pool:
        verdicts = list(pool.map(lambda item: check(build, *item, end), todo))
    bad, left = verdicts.count(False), verdicts.count(None)
    late = f", {left} left since the time was over" if left else ""
    print(f"clang-tidy: {len(todo) - left} checked, {bad} with findings{late}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
