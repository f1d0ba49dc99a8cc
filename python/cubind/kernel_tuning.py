"""Tuning a kernel from Python: a source, arrays and values."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import os
import pathlib
import shutil
import tempfile
import types
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from . import _commands, _defining, _kernel_definition, _wire
from ._host_arrays import HostArray
from ._kernel_definition import Definition
from .client import Client
from .errors import CubindError, FailedPreconditionError, InvalidArgumentError
from .kernel import Kernel
from .question import Question
from .tuning import TuneResult

_MOST_BYTES_SENT = 32 << 20  # of arrays: the daemon's limit
_LEAST_BYTES_SHARED = 1 << 20  # of an array that stays in memory
_PAGE_HEIGHT = 720  # pixels of a notebook


class _Files:
    """What a daemon is sent: contents, by their paths. large: the arrays that stay in memory as long as this
    lives. Raises InvalidArgumentError if they may not, and are too large."""

    def __init__(self, definition: Definition, may_share: bool) -> None:
        self.contents = dict(definition.files)
        self.large: dict[str, HostArray] = {}  # without their data
        self._memories: dict[str, int] = {}
        weakref.finalize(self, _close, self._memories)
        size = sum(len(array.data) for array in definition.arrays.values())
        if size > _MOST_BYTES_SENT and not may_share:
            raise InvalidArgumentError(
                f"the arrays have {size / (1 << 20):.0f} MiB together with the answers, at most 32 are sent",
                "arguments",
            )
        for path, array in definition.arrays.items():
            if size > _MOST_BYTES_SENT and len(array.data) >= _LEAST_BYTES_SHARED:
                self.contents[path], self._memories[path] = array.in_memory()
                self.large[path] = dataclasses.replace(array, data=memoryview(b""))
            else:
                self.contents[path] = array.npy()

    def write(self, folder: pathlib.Path) -> None:
        """Into files. A large array gets two: x.npy names x.npy.data."""
        for path, content in self.contents.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        for path, array in self.large.items():
            data = folder / f"{path}.data"
            shutil.copyfile(f"/proc/self/fd/{self._memories[path]}", data)
            (folder / path).write_bytes(array.elsewhere(str(data)))


def _close(memories: dict[str, int]) -> None:
    for memory in memories.values():
        os.close(memory)


class TunedKernel:
    """A kernel with the measurements of its configurations, as tune_kernel() returns it. A notebook shows its
    report.

    name: by which the daemon knows the kernel. problem: its sizes. device: label of the device class.
    winner: the values of the fastest correct configuration. time_us: its median in microseconds. notes: what
    was assumed of the arguments, and what the results were compared with. fresh: everything was measured by
    an earlier call. client: of the daemon that has it. tune_kernel() makes one.
    """

    def __init__(self, client: Client, definition: Definition, _files: _Files, result: TuneResult) -> None:
        self.client = client
        self.name = definition.name
        self.problem = definition.problem
        self.device = result.device
        self.winner = definition.values(result.configuration)
        self.time_us = result.time_us
        self.notes = definition.notes
        self.fresh = result.fresh
        self._definition = dataclasses.replace(definition, arrays={})  # which are the caller's
        self._files = _files

    @functools.cached_property
    def trials(self) -> list[dict[str, Any]]:
        """A dict for each configuration that was tried: its values, time_us (None if it was not timed),
        outcome ("correct", "compile", "launch", "wrong_result", ...), samples, and detail, the reason of a
        failure. The fastest first. Raises CubindError."""
        found = self.client.trials(self.name)
        return sorted(map(self._row, found), key=lambda row: (row["time_us"] is None, row["time_us"] or 0.0))

    @property
    def speedup(self) -> float | None:
        """The default configuration's time over the winner's; None if it was not timed."""
        default = self._definition.values(self._definition.spec["default"][0])
        times = [row["time_us"] for row in self.trials if default.items() <= row.items()]
        return times[0] / self.time_us if times and times[0] and self.time_us else None

    @functools.cached_property
    def kernel(self) -> Kernel:
        """Launches the winner on arrays in GPU memory, by the arguments' names; fractions are passed with
        each call. Raises CubindError at a call."""
        interface, problem = self._definition.interface(), dict(self.problem)
        return Kernel(self.client, self.name, interface, problem, Question(device=self.device))

    def values(self, configuration: Mapping[str, int]) -> dict[str, Any]:
        """A configuration of the daemon's, in which texts are numbered, in the values that were given."""
        return self._definition.values(configuration)

    def to_pandas(self) -> Any:
        """The trials as a frame. Raises ImportError without pandas."""
        import pandas as pd  # only for who asks for a frame

        return pd.DataFrame(self.trials)

    def explain(self) -> str:
        """Why the winner won: the finalists with their intervals, and the failures by reason, as
        `cubindctl explain` prints them. Raises CubindError."""
        problem = _wire.listed(self.problem)
        return _commands.run(self.client.address, "explain", self.name, problem=problem, device=self.device)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of `cubindctl report` to the file `path`. Raises CubindError, OSError."""
        self.client.report(path, self.name)

    def save(self, folder: str | os.PathLike[str], name: str | None = None) -> pathlib.Path:
        """Writes the kernel to `folder`/`name`: the spec with its sources and arrays, and in `tables` every
        trial. A daemon that is started with --kernels and the folder serves it; files of these names are
        replaced. Arrays that stayed in memory are read from where they are written: a folder that is moved is
        saved again.

        name: the kernel's from then on; None: that of its function.

        Returns the spec's path. Raises InvalidArgumentError for the name of another kernel and for what is no
        name, CubindError, OSError.
        """
        definition = self._definition.named(name or self._definition.stem)
        target = pathlib.Path(folder, definition.name).absolute()
        spec = target / f"{definition.name}.json"
        self._check_name(definition.name, spec)
        (target / "tables").mkdir(parents=True, exist_ok=True)
        self._files.write(target)
        table = self._table(definition.name)
        (target / "tables" / f"{definition.name}.json").write_text(table, encoding="utf-8")
        spec.write_bytes(definition.json())
        return spec

    def __repr__(self) -> str:
        time = "" if self.time_us is None else f", {self.time_us:.2f} us"
        return f"cubind.TunedKernel({self.name}, {_wire.listed(self.problem)}: {_wire.listed(self.winner)}{time})"

    def _repr_html_(self) -> str:
        """The report's page in a frame of its own, without network."""
        try:
            with tempfile.TemporaryDirectory(prefix="cubind-report-") as folder:
                path = pathlib.Path(folder, "report.html")
                self.report(path)
                page = path.read_text(encoding="utf-8")
        except (CubindError, OSError) as error:
            return "<pre>{}</pre>".format(html.escape(f"{self!r}: no report: {error}"))
        return (
            f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: {_PAGE_HEIGHT}px; border: 0" '
            f'title="{html.escape(repr(self))}"></iframe>'
        )

    def _check_name(self, name: str, spec: pathlib.Path) -> None:
        for kernel in self.client.kernels():
            if kernel["name"] == name and pathlib.Path(kernel["file"]).resolve() != spec.resolve():
                raise InvalidArgumentError(f'"{name}" is the name of {kernel["file"]}: pass another', "name")

    def _row(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **self._definition.values(trial["configuration"]),
            "time_us": trial.get("time_us"),
            "outcome": trial["outcome"],
            "samples": trial.get("samples", 0),
            "detail": trial.get("detail", ""),
        }

    def _table(self, name: str) -> str:
        """All that was measured, as a table of the kernel under another name."""
        printed = _commands.run(
            self.client.address, "export", kernel=self.name, all_trials=True, samples=True, replayed=True,
            provisional=True,
        )  # fmt: skip
        table = json.loads(printed)
        for each in (*table.get("records", []), *table.get("trials", [])):
            each["kernel"] = name
        return json.dumps(table, indent=1)


def tune_kernel(
    kernel_name: str,
    kernel_source: str | os.PathLike[str],
    problem_size: Any,
    arguments: Sequence[Any] | Mapping[str, Any],
    tune_params: Mapping[str, Sequence[Any]],
    *,
    restrictions: Any = None,
    answer: Any = None,
    reference: Mapping[str, Any] | None = None,
    tolerance: float | Mapping[str, float] | None = None,
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    block_size_names: Sequence[str] | None = None,
    grid: Any = None,
    block: Any = None,
    shared_bytes: Any = 0,
    cmem_args: Mapping[str, Any] | None = None,
    compiler_options: Sequence[str] = (),
    default: Mapping[str, Any] | None = None,
    writes: Sequence[str] | None = None,
    max_trials: int | None = None,
    max_seconds: float | None = None,
    device: str | None = None,
    lend: bool | None = None,
    send_arrays: bool = False,
    progress: bool = True,
    client: Client | None = None,
) -> TunedKernel:
    """Finds the fastest values of a CUDA kernel for given arrays. Waits for the measurements.

    kernel_name: a __global__ function of the source, perhaps with template arguments: "scale<float>".
    kernel_source: the text, or the path of a file, which may include files of its folder.
    problem_size: a number, up to three, or a dict of them; or expressions of the tunables. Expressions name
        the numbers size; size_x, size_y, size_z; or by the dict's names.
    arguments: arrays and numbers in the order of the kernel's parameters, or by their names. Arrays are
        C-contiguous, below 8 GiB, of NumPy, CuPy, torch or with a buffer, and have the type of the
        parameter's elements. Above 32 MiB together they stay in this machine's memory, as long as the result
        lives.
    tune_params: the values of each tunable. The source has them as macros; "{NAME}" in kernel_name is
        replaced.
    restrictions: one or a list of conditions, as texts or functions of the tunables and sizes. See also
        docs/python.md.
    answer: what the kernel is to write: a list in the order of the arguments with None for the others, or a
        dict by name.
    reference: instead, a kernel with the same parameters that writes it: a dict of kernel_name, grid, block
        and perhaps kernel_source. With neither, the default's outputs are the measure.
    tolerance: the relative and absolute bound, or a dict of "rtol" and "atol"; None: those of the type;
        math.inf: nothing is compared, where configurations write different results by design.
    grid_div_x, grid_div_y, grid_div_z: what a size is divided by for the grid, rounded up: an expression or a
        list of factors; None: the block's size on that axis.
    block_size_names: the tunables that are the block's size; None: block_size_x, block_size_y, block_size_z.
    grid, block: instead, one to three expressions of tunables and sizes.
    shared_bytes: dynamic shared memory of a block in bytes, a number or an expression.
    cmem_args: arrays for __constant__ and __device__ variables by their names.
    compiler_options: of NVRTC, those that docs/kernel-spec.md lists, and -DNAME=VALUE.
    default: the values of the first configuration; None: the first that meet the restrictions.
    writes: the names of the arrays that the kernel writes; None: those whose parameters are not const.
    max_trials: the number of configurations to try; None: all of up to 600, else 300. max_seconds: the time
        after which no further one is started.
    device: label of a device class; None: the only class that agents offer. lend: as in Client.tune().
    send_arrays: sends the arrays to a daemon on another machine too.
    progress: prints what was assumed, and shows the progress.
    client: of the daemon to ask; None: cubind.connect().

    Raises InvalidArgumentError with the parameter's name, FailedPreconditionError if nothing could be
    measured (the message says why), and the errors of Client.tune().
    """
    asked = types.SimpleNamespace(**locals())
    if client is None:
        from . import connect

        client = connect()
    definition = _kernel_definition.define(asked, functools.partial(_defining.written, client._connection))
    is_here = client.address.startswith("unix:")
    if not send_arrays and not is_here:
        raise InvalidArgumentError(
            f"the daemon {client.address} may be on another machine: send_arrays=True sends the arrays there",
            "arguments",
        )
    files = _Files(definition, is_here)
    if progress:
        print("\n".join(definition.notes))
    _defining.define(client._connection, definition.json(), files.contents)
    (result,) = client.tune(
        [{"kernel": definition.name, **definition.problem}],
        max_trials=max_trials,
        max_seconds=max_seconds,
        device=device,
        lend=lend,
        progress=progress,
    )
    if result.state != "done":
        raise FailedPreconditionError(result.error or f"the job is {result.state}", definition.name)
    return TunedKernel(client, definition, files, result)
