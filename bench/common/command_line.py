"""The options that several benchmarks have, and where their results go."""

import argparse
import json
import pathlib

OPTIONS = {
    "bin": {"type": pathlib.Path, "help": "folder of cubind and cubindctl"},
    "output": {"type": pathlib.Path, "help": "file for the results"},
    "commit": {"help": "what to record as the commit; default: git's HEAD"},
}


def make_parser(description, required=(), optional=()):
    """`description`: of the benchmark, as it is printed. `required` and `optional`: of OPTIONS."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in (*required, *optional):
        parser.add_argument(f"--{name}", required=name in required, **OPTIONS[name])
    return parser


def write(document, file):
    """`file`: None if none was named."""
    if file is not None:
        file.write_text(json.dumps(document, indent=1) + "\n")


def print_and_write(document, file):
    print(json.dumps(document, indent=1))
    write(document, file)
