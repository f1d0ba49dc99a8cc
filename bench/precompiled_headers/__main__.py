#!/usr/bin/env python3
"""What precompiled headers save where configurations of a kernel are compiled, without a GPU.

usage: ./dev bench precompiled_headers [--configurations N] [--processes P] [SPEC NAME=VALUE...]

Compiles the first N configurations that are valid on an H200 in P sandboxed processes of an agent, once
without precompiled headers and once with them, and compares the cubins. The times include making the
headers; processor time also includes starting the processes. NAME=VALUE are the dims of the problem. The
default is block_scan.json, which uses CUB.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BIN = HERE.parent.parent / "build" / "release" / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("--configurations", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, help=argparse.SUPPRESS)
    parser.add_argument("spec", nargs="?", default=str(HERE / "block_scan.json"))
    parser.add_argument("dims", nargs="*", default=["N=1048576"])
    asked = parser.parse_args()
    counts = [str(asked.configurations), str(asked.processes)]
    programs = asked.bin.resolve()
    command = [programs / "compile_all", programs / "cubind-worker", asked.spec, *counts, *asked.dims]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
