"""What cubindctl does with a daemon, from Python: its commands run as programs."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from . import _tables, _wire, programs, tuning
from ._connection import Connection
from ._shapes import read_shapes
from .errors import (
    CubindError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)

_LONGEST = 1e6  # seconds, which cubindctl takes
_FOUND = 1  # the exit code of a command that checks, and of other failures
_ERRORS: dict[int, type[CubindError]] = {
    2: InvalidArgumentError,
    3: UnavailableError,
    4: NotFoundError,
    6: DeadlineExceededError,
}


class Commands:
    """The methods of Client that cubindctl carries out. Results are those of its --json."""

    address: str
    timeout: float
    _connection: Connection

    def explain(
        self,
        kernel: str,
        problem: str | Mapping[str, Any] | None = None,
        *,
        device: str | None = None,
        **named: Any,
    ) -> dict[str, Any]:
        """Why a problem's winner won: winner, finalists with their intervals, failures by reason.

        kernel, problem, named: as in get(). device: label of the device class; None: the only one.

        Raises NotFoundError without trials of the problem, CubindError."""
        asked = _wire.listed(_wire.parse_problem(problem, named))
        return self._json("explain", kernel, problem=asked, device=device)

    def trials(self, kernel: str) -> list[dict[str, Any]]:
        """Every configuration of the kernel that was tried, as export_table() has them: problem,
        configuration, outcome, time_us (a median, in microseconds), resources. Raises CubindError."""
        return _tables.trials(self._connection, kernel, self.timeout)

    def report(
        self,
        path: str | os.PathLike[str],
        kernel: str | None = None,
        *,
        job: str | None = None,
        device: str | None = None,
    ) -> None:
        """Writes a page to the file `path`: one file that needs no network. kernel: its records, trials and
        jobs; job: instead, what the job of this id tuned; None: the records of all kernels. device: only this
        device class. Raises CubindError, OSError."""
        target = str(pathlib.Path(path).absolute())
        every = kernel is None and job is None
        run(self.address, "report", kernel, all=every, output=target, job=job, device=device)

    def cover(
        self,
        shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str],
        *,
        kernel: str | None = None,
        device: str | None = None,
        accept: str | None = None,
    ) -> dict[str, Any]:
        """Which of the problems are answered by measurements, and why others are not.

        shapes, kernel: as in tune(). device: label of the device class. accept: departures that count as
        covered ("bucket+stale", "exact"); None: "bucket".

        Raises CubindError."""
        listed = read_shapes(shapes, kernel)
        if not listed:
            raise InvalidArgumentError("has no problem", "shapes")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for shape in listed:
                problem = _wire.parse_problem(None, shape.problem)
                file.write(json.dumps({"kernel": shape.kernel, **problem}) + "\n")
            file.flush()
            try:
                return self._json("cover", shapes=file.name, device=device, accept=accept)
            except CubindError as error:
                line = re.compile(re.escape(file.name) + r" line (\d+)")
                cause = line.sub(lambda found: listed[int(found[1]) - 1].where, error.cause)
                raise type(error)(cause, error.field) from None

    def audit(self, kernel: str, *, device: str | None = None) -> dict[str, Any]:
        """Checks the kernel's records before they are shipped: results, speed, freshness. device: only this
        device class. Raises CubindError."""
        return self._json("audit", kernel, device=device)

    def verify(
        self, kernel: str | None = None, *, device: str | None = None, fresh: bool = False
    ) -> dict[str, Any]:
        """Measures stale records again, and waits. kernel, device: only these. fresh: also those that are not
        stale. The GPU that this process uses is not lent. Raises CubindError."""
        return self._json("verify", kernel, timeout=None, device=device, all=fresh)

    def jobs(self, *, ended: bool = False) -> list[dict[str, Any]]:
        """The tuning jobs: id, kernel, problem, state, stage, configurations. ended: also those that have
        ended. Raises CubindError."""
        return self._json("jobs", all=ended)["jobs"]

    def watch(self, job: str, *, progress: bool = True) -> tuning.TuneResult:
        """Waits for a job's end. job: its id. progress: a bar, in notebooks too. Raises NotFoundError,
        CubindError."""
        return tuning.watch(self._connection, job, progress)

    def _judge_by_spec(self, request: Any, timeout: float | None) -> dict[str, Any]:
        """A v1.EvaluateRequest whose kernel is the path of a spec, for which cubindctl finds the files."""
        with tempfile.TemporaryDirectory(prefix="cubind-judge-") as folder:
            paths = [pathlib.Path(folder, file.path) for file in request.files]
            for path, file in zip(paths, request.files, strict=True):
                if path.parent != pathlib.Path(folder):
                    raise InvalidArgumentError(f"{file.path!a} is no name of a file", "headers")
                path.write_bytes(file.content)
            return self._json(
                "judge",
                str(pathlib.Path(request.kernel).absolute()),
                str(paths[0]),
                timeout=None,
                limit=min(timeout or _LONGEST, _LONGEST),
                header=list(map(str, paths[1:])),
                problem=[_wire.listed(_wire.problem_of(problem)) for problem in request.problems],
                grid=request.grid,
                block=request.block,
                shared_bytes=request.shared_bytes or None,
                baseline=",".join(f"{one.name}={one.value}" for one in request.baseline.values) or None,
                device=request.device.label or None,
                namespace=request.namespace or None,
                rounds=str(request.rounds) if request.rounds else None,
                keep=request.keep,
                deterministic=request.deterministic,
            )

    def _json(
        self, command: str, *subjects: str | None, timeout: float | None = 300.0, **options: Any
    ) -> dict[str, Any]:
        return json.loads(
            run(self.address, command, *subjects, timeout=timeout, may_find=True, json=True, **options)
        )


def run(
    address: str,
    command: str,
    *subjects: str | None,
    timeout: float | None = 300.0,
    may_find: bool = False,
    limit: float | None = None,
    **options: str | bool | Iterable[str] | None,
) -> str:
    """What cubindctl prints. subjects: its operands, which are no options even if they begin with "-".
    may_find: the command may end with 1 for what it has found. limit: its --timeout in seconds. options: by
    their names; True: one without a value, several values: repeated."""
    program = [str(programs.program("cubindctl")), "--address", address]
    program += [] if limit is None else ["--timeout", str(limit)]
    program += [command, *_options(options)]
    operands = [each for each in subjects if each is not None]
    try:
        done = subprocess.run(
            [*program, *(["--"] if operands else []), *operands],
            env=programs.environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineExceededError(f"cubindctl did not end in {timeout:.0f} s", command) from None
    if done.returncode and not (may_find and done.returncode == _FOUND and done.stdout):
        error = _ERRORS.get(done.returncode, FailedPreconditionError)
        cause = done.stderr.strip().removeprefix("cubindctl: ")
        raise error(cause or f"ended with {done.returncode}", f"cubindctl {command}")
    return done.stdout


def _options(given: Mapping[str, str | bool | Iterable[str] | None]) -> list[str]:
    found = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value == "":
            found += [option, ""]  # behind "=" it would be the next argument
        elif value is not None and value is not False:
            values = [value] if isinstance(value, (str, bool)) else value
            found += [option if each is True else f"{option}={each}" for each in values]
    return found
