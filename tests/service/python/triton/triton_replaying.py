"""A daemon whose agent compiles with a real Triton and plays a recorded table instead of a GPU."""

import hashlib
import json
import pathlib
import subprocess
import sys
import unittest.mock

import cubind
import python_found
import running
import triton_stub as stub
from cubind.client import Client
from triton_stub import grid, tuned

PROGRAM = pathlib.Path(__file__).with_name("triton_served_program.py")
TIMES = (20.0, 10.0)  # microseconds, of the configurations


def call(kernel):
    kernel[grid](stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0)


def spec():
    """Of the call."""
    found = stub.question_of(tuned(), stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0, grid=grid)
    return stub.spec_of(found)


class Replaying(running.Daemon):
    """Its agent compiles Triton kernels, and its table has some: a spec, and the times of its configurations
    in us, each."""

    def __init__(self, *recorded):
        self._recorded = recorded or [(spec(), TIMES)]
        super().__init__("--triton-python", sys.executable)

    def _tiny_arguments(self):
        arguments = super()._tiny_arguments()
        file = self.folder / "table.json"
        table = json.loads(file.read_text())
        like = table["trials"][0]
        table["trials"] = [
            _trial(like, spec, index, time)
            for spec, times in self._recorded
            for index, time in enumerate(times)
        ]
        file.write_text(json.dumps(table))
        return arguments


def serve(case, *recorded):
    """Starts such a daemon for a test. Returns a client of it, whose GPU is that of the table."""
    daemon = case.enterContext(Replaying(*recorded))
    client = case.enterContext(cubind.connect(daemon.address))
    case.enterContext(on_its_gpu(client))
    return client


def _trial(like, spec, index, time_us):
    """A row of a table: how long a configuration of the spec takes. like: another row."""
    problem = {"dims": spec.problem, "types": {}, "flags": {}, "scenario": ""}
    found = json.loads(json.dumps(like)) | {
        "kernel": spec.name,
        "problem": problem,
        "configuration": {"CONFIG": index},
        "trial": hashlib.sha256(f"{spec.name} {index}".encode()).hexdigest(),
    }
    for block in (*found["screening"], *found["finals"]):
        block["samples_us"] = [time_us * (1 + 0.001 * (i % 3)) for i in range(len(block["samples_us"]))]
    for verification in found.get("verifications", []):
        verification["problem"] = problem
    return found


def require():
    """Ends this test program as one that was not run, if the agents of this build compile no Triton."""
    told = subprocess.run([running.PROGRAMS / "cubind", "--help"], capture_output=True, text=True)
    if "--triton-python" not in told.stdout:
        print("the agent compiles no Triton kernels: these tests were not run", file=sys.stderr)
        sys.exit(python_found.SKIPPED)


def on_its_gpu(client):
    """Has this process' GPU be that of the table, within the context."""
    label = running.offered_device(client)
    describe = lambda client, device, gpu: setattr(device, "label", label)  # noqa: E731
    return unittest.mock.patch.object(Client, "_describe_gpu", describe)
