"""Tuning from Python: jobs, their progress and results."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _wire
from ._connection import Connection
from ._shapes import Shape, read_shapes
from ._text import printable
from .comparison import Comparison
from .errors import CubindError, UnavailableError

_ENDED = ("done", "failed", "cancelled")


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """The result for one problem.

    kernel, problem, device: what was measured, and the label of the device class. state: "done", "failed" or
    "cancelled". configuration: the winner's tunables; {} without a winner. time_us: its median in
    microseconds; None without a winner. fresh: the problem was measured before, so nothing was done. error:
    why the job failed. over_library: the comparison with torch's function, from cubind.torch.tune(); None:
    not compared.
    """

    kernel: str
    problem: dict[str, int | str]
    device: str
    state: str
    configuration: dict[str, int]
    time_us: float | None
    fresh: bool
    error: str
    over_library: Comparison | None = None


def tune(
    connection: Connection,
    shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str],
    kernel: str | None,
    options: Any,
    progress: bool,
) -> list[TuneResult]:
    """See Client.tune(). options: a v1.TuneRequest without kernel and problems."""
    results: list[TuneResult] = []
    by_kernel: dict[str, list[Shape]] = {}
    for shape in read_shapes(shapes, kernel):
        by_kernel.setdefault(shape.kernel, []).append(shape)
    with _progress(sum(map(len, by_kernel.values())), progress) as show:
        for name, problems in by_kernel.items():
            request = _wire.messages().TuneRequest(kernel=name)
            request.MergeFrom(options)
            for shape in problems:
                _wire.set_problem(_wire.parse_problem(None, shape.problem), request.problems.add())
            with _with_locations(problems):
                for event in connection.stream("Tune", request, None):
                    result = _result(event)
                    show(event, result is not None)
                    if result is not None:
                        results.append(result)
    return results


def watch(connection: Connection, job: str, progress: bool) -> TuneResult:
    """See Client.watch()."""
    request = _wire.messages().WatchJobRequest(id=job)
    with _progress(1, progress) as show:
        for event in connection.stream("WatchJob", request, None):
            result = _result(event)
            show(event, result is not None)
            if result is not None:
                return result
    raise UnavailableError("the daemon ended the stream before the job", f"job {job}")


@contextlib.contextmanager
def _with_locations(problems: list[Shape]) -> Iterator[None]:
    """Replaces the number by which the daemon names a problem by its place in the caller's list."""
    try:
        yield
    except CubindError as error:
        numbered = re.match(r"problems\[(\d+)\]", error.field)
        if numbered is None:
            raise
        raise type(error)(error.cause, problems[int(numbered[1])].where) from None


def _result(event: Any) -> TuneResult | None:
    job = event.job
    state = _wire.messages().Job.State.Name(job.state).lower()
    if state not in _ENDED and not event.already_fresh:
        return None
    return TuneResult(
        kernel=job.kernel,
        problem=_wire.problem_of(job.problem),
        device=job.device,
        state="done" if event.already_fresh else state,
        configuration={value.name: value.value for value in event.winner.values},
        time_us=event.provenance.timing.median_us if event.provenance.timing.samples else None,
        fresh=event.already_fresh,
        error=job.error,
    )


@contextlib.contextmanager
def _progress(total: int, wanted: bool) -> Iterator[Callable[[Any, bool], None]]:
    if not wanted:
        yield lambda event, ended: None
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a notebook without widgets, whose bar is text
            from tqdm.auto import tqdm  # where installed
    except ImportError:
        yield _line_printer()
        return
    alone = total == 1  # then its configurations are counted
    with tqdm(total=None if alone else total, unit="trial" if alone else "problem") as bar:

        def show(event: Any, ended: bool) -> None:
            if alone:
                bar.total = event.job.configurations or None
                bar.n = event.job.configurations_done
            bar.set_postfix_str(
                printable(f"{event.job.kernel} {_wait(event.job) or event.job.stage}"), refresh=True
            )
            bar.update(1 if ended and not alone else 0)

        yield show


def _wait(job: Any) -> str:
    """The reason why the job waits; "" if it does not."""
    state = _wire.messages().Job.State.Name(job.state)
    return {
        "NO_DEVICE": f"waits: no agent offers {job.device}" + (f" ({job.note})" if job.note else ""),
        "WAITING_FOR_IDLE_GPU": f"waits: {job.note or 'another process uses the GPU'}",
    }.get(state, "")


def _line_printer() -> Callable[[Any, bool], None]:
    told: set[tuple[str, str]] = set()  # each wait of a job is printed once

    def show(event: Any, ended: bool) -> None:
        text = _end(event) if ended else _wait(event.job)
        if not text or (event.job.id, text) in told:
            return
        told.add((event.job.id, text))
        problem = _wire.listed(_wire.problem_of(event.job.problem))
        print(printable(f"{event.job.kernel} {problem}: {text}"), file=sys.stderr)

    return show


def _end(event: Any) -> str:
    if event.provenance.timing.samples:
        return f"{event.provenance.timing.median_us:.2f} us"
    error: str = event.job.error
    return error or "no winner"
