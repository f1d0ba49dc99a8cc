"""A sealed program trains on without its daemon, with token counts that it has not met.

    python3 bench/sealed [--steps 1000] [--subjects llama DeltaNet] [--fla DIR ...] --output FILE

Subjects: `llama`, a Llama of transformers with cubind's operators, and names of flash-linear-attention's
models under cubind.triton (`--fla`: folders for PYTHONPATH). Each warms up with a few lengths, calls
cubind.seal() and trains with lengths drawn at random; before the middle step the daemon is killed. What
Triton compiled and tuned after the seal is counted by its own hooks, what the daemon did by its status.

Needs the package `cubind` with its programs, torch, Triton, transformers and a GPU. Exit status 1: a step
failed, or anything was compiled or tuned after the seal.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import cubind
from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon

CHILD = pathlib.Path(__file__).with_name("child.py")
TUNED = "Triton autotuning for function "
# What a compile, a tuning or a job changes.
COUNTED = ("artifacts", "records", "trials", "jobs_queued", "jobs_running")


def counters(daemon):
    with cubind.connect(daemon.address, timeout=60) as client:
        status = client.status()
    return {name: int(status.get(name, 0)) for name in COUNTED}


def watch(process, daemon):
    """What the child says. At the seal and before the kill the daemon's counters are read."""
    found, sealed = {"tunings": []}, False
    for line in process.stdout:
        if line.startswith(TUNED) and sealed:
            found["tunings"].append(line.removeprefix(TUNED).strip().rstrip(","))
        elif line == "sealed\n":
            sealed, found["at_seal"] = True, counters(daemon)
        elif line == "middle\n":
            found["at_kill"] = counters(daemon)
            daemon.kill()
            process.stdin.write("go\n")
            process.stdin.flush()
        elif line.startswith("{"):
            found |= json.loads(line)
    return found


def measure(subject, arguments):
    start = time.monotonic()
    paths = [*map(str, arguments.fla), os.environ.get("PYTHONPATH", "")]
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TRITON_PRINT_AUTOTUNING": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with Daemon(programs.program("cubind").parent, ["--triton-python", sys.executable]) as daemon:
        process = subprocess.Popen(
            [sys.executable, CHILD, subject, str(arguments.steps)],
            env={**os.environ, **environment, "CUBIND_ADDRESS": daemon.address},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            found = watch(process, daemon)
        finally:
            process.kill()
            process.wait()
        return {"subject": subject, **found, "seconds": time.monotonic() - start}


def faults(result, steps):
    """What the sealed part must not have."""
    if len(result.get("losses", [])) != steps:
        return [
            f"{len(result.get('losses', []))} of {steps} steps: {result.get('error', 'the process ended')}"
        ]
    told = [f"Triton compiled {name}" for name in result["compiles"]]
    told += [f"Triton tuned {name}" for name in result["tunings"]]
    told += [
        f"the daemon's {name} changed"
        for name in COUNTED
        if result["at_seal"][name] != result["at_kill"][name]
    ]
    return told + ([f"{result['fallbacks']} calls were torch's own"] if result["fallbacks"] else [])


def line(result):
    median = sorted(result["steps_ms"])[len(result["steps_ms"]) // 2]
    slowest = max(result["steps_ms"])
    return (
        f"{result['subject']}: {len(result['losses'])} steps, {result['new_lengths']} lengths not met before; after the seal "
        f"{len(result['compiles'])} compiles, {len(result['tunings'])} tunings, {result['fallbacks']} of torch's own; "
        f"median {median:.1f} ms, slowest {slowest:.1f} ms"
    )


def main():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--subjects", nargs="+", default=["llama", "DeltaNet"])
    parser.add_argument("--fla", type=pathlib.Path, nargs="+", default=[], metavar="DIR")
    arguments = parser.parse_args()
    arguments.fla = [folder.resolve() for folder in arguments.fla]
    document, told = {"subjects": []}, []
    for subject in arguments.subjects:
        result = measure(subject, arguments)
        document["subjects"].append(result)
        found = faults(result, arguments.steps)
        told += [f"{subject}: {fault}" for fault in found]
        if result.get("steps_ms"):
            print(line(result), flush=True)
        command_line.write(document, arguments.output)
    from machine import toolchain  # noqa: PLC0415  opens the GPU: after the processes that measure

    document["toolchain"] = toolchain(arguments.commit)
    command_line.write(document, arguments.output)
    if told:
        sys.exit("\n".join(told))


if __name__ == "__main__":
    main()
