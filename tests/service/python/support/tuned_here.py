"""A kernel with its arrays, like those of a notebook, and a daemon that replays a table for it."""

import itertools
import json
import pathlib
import types

import cubind
import fake_daemon
import numpy as np
import running

SOURCE = """
extern "C" __global__ void add_arrays(float* c, const float* a, const float* b, int n) {
  const int first = (blockIdx.x * block_size_x + threadIdx.x) * per_thread;
  for (int i = first; i < first + per_thread && i < n; ++i) c[i] = a[i] + b[i];
}
"""
N = 1000
A, B = (np.random.default_rng(seed).standard_normal(N, dtype=np.float32) for seed in (1, 2))
VALUES = {"block_size_x": [64, 128, 256], "per_thread": [1, 2, 4]}


def call(**changed):
    """The arguments of tune_kernel() for it."""
    return {
        "kernel_name": "add_arrays",
        "kernel_source": SOURCE,
        "problem_size": N,
        "arguments": [np.zeros_like(A), A, B, np.int32(N)],
        "tune_params": VALUES,
        "grid_div_x": ["block_size_x", "per_thread"],
        "restrictions": ["block_size_x * per_thread <= 512"],
        "answer": [A + B, None, None, None],
        **changed,
    }


def definition(**changed):
    """What a daemon gets of the call, as defined() returns it."""
    return defined(lambda client: cubind.tune_kernel(**call(**changed), client=client, progress=False))


def defined(tune):
    """What a daemon gets from a call of tune_kernel() by `tune`, which is given the client: name, spec, files
    and problem, with the notes of the result. Raises what `tune` does; then nothing was sent."""
    done = fake_daemon.pb.TuneEvent(job={"state": "DONE"}, already_fresh=True)
    with fake_daemon.FakeDaemon(events=[done]) as daemon, cubind.connect(daemon.address) as client:
        try:
            result = tune(client)
        except cubind.CubindError:
            assert not daemon.defined
            raise
        ((parts,),), (request,) = daemon.defined.values(), daemon.tuned
    files = {}
    for file in itertools.chain.from_iterable(part.files for part in parts):
        files[file.path] = files.get(file.path, b"") + file.content
    problem = {one.name: one.value for one in request.problems[0].dims}
    spec = json.loads(parts[0].spec_json)
    return types.SimpleNamespace(
        name=spec["name"], spec=spec, files=files, problem=problem, notes=getattr(result, "notes", ())
    )


def samples_us(values):
    """256 threads that add two elements each are the fastest."""
    time = 10 + abs(values["block_size_x"] - 256) / 64 + abs(values["per_thread"] - 2)
    return [time, time * 1.001, time * 0.999]


def recorded(path):
    """The samples of a file that has a configuration in each line, as samples_us() returns them."""
    rows = map(json.loads, path.read_text().splitlines())
    samples = {tuple(row["configuration"].items()): row["samples_us"] for row in rows}
    return lambda values: samples.get(tuple(values.items()), [1e6])


class Daemon(running.Daemon):
    """Replays samples for the kernels of `definitions`, for all combinations of their values."""

    def __init__(self, *definitions, samples_us=samples_us):
        self._definitions = definitions
        self._samples_us = samples_us
        super().__init__()

    def _tiny_arguments(self):
        arguments = super()._tiny_arguments()
        path = pathlib.Path(self.folder, "table.json")
        table = json.loads(path.read_text())
        pattern = table["trials"][0]
        table["trials"] += [
            trial for each in self._definitions for trial in _trials(each, pattern, self._samples_us)
        ]
        path.write_text(json.dumps(table))
        return arguments


def _trials(definition, pattern, samples_us):
    tunables = definition.spec["tunables"]
    for number, values in enumerate(itertools.product(*tunables.values())):
        configuration = dict(zip(tunables, values, strict=True))
        samples = samples_us(configuration)
        yield {
            **pattern,
            "kernel": definition.name,
            "problem": {"dims": definition.problem, "types": {}},
            "configuration": configuration,
            "trial": f"{number:064x}",
            "screening": [{"samples_us": samples[:3], "sm_mhz": 1980}],
            "finals": [{"samples_us": list(itertools.islice(itertools.cycle(samples), 400)), "sm_mhz": 1980}],
        }
