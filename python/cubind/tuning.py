"""Tuning from Python: jobs, their progress and results."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _wire
from ._connection import Connection
from .errors import InvalidArgumentError

_ENDED = ("done", "failed", "cancelled")


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """What became of one problem.

    kernel, problem, device: what was measured, and the label of the device class. state: "done", "failed" or
    "cancelled". configuration: the winner's tunables; {} without one. time_us: its median in microseconds;
    None without one. fresh: it had been measured before, and nothing was done. error: why the job failed.
    """

    kernel: str
    problem: dict[str, int | str]
    device: str
    state: str
    configuration: dict[str, int]
    time_us: float | None
    fresh: bool
    error: str


def tune(
    connection: Connection,
    shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str],
    kernel: str | None,
    device: str | None,
    retune: bool,
    progress: bool,
    namespace: str,
) -> list[TuneResult]:
    """As Client.tune() says."""
    messages = _wire.messages()
    results: list[TuneResult] = []
    by_kernel = _by_kernel(read_shapes(shapes), kernel)
    with _progress(sum(map(len, by_kernel.values())), progress) as show:
        for name, problems in by_kernel.items():
            request = messages.TuneRequest(kernel=name, retune=retune, namespace=namespace)
            if device is not None:
                request.device.label = device
            for problem in problems:
                _wire.set_problem(_wire.parse_problem(None, problem), request.problems.add())
            for event in connection.stream("Tune", request, messages.TuneEvent, None):
                result = _result(event)
                show(event, result is not None)
                if result is not None:
                    results.append(result)
    return results


def read_shapes(shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str]) -> list[Mapping[str, Any]]:
    """The problems of a .json or .jsonl shape list, or the given ones."""
    if not isinstance(shapes, (str, os.PathLike)):
        return list(shapes)
    path = pathlib.Path(shapes)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if path.suffix == ".json":
        listed = json.loads(text)
        named = {"kernel": listed["kernel"]} if "kernel" in listed else {}
        return [{**named, **problem} for problem in listed["problems"]]
    raise InvalidArgumentError("a shape list ends in .json or .jsonl", str(path))


def _by_kernel(shapes: list[Mapping[str, Any]], kernel: str | None) -> dict[str, list[dict[str, Any]]]:
    by_kernel: dict[str, list[dict[str, Any]]] = {}
    for index, shape in enumerate(shapes):
        problem = dict(shape)
        name = problem.pop("kernel", kernel)
        if not name:
            raise InvalidArgumentError('has no "kernel", and none is given', f"shapes[{index}]")
        by_kernel.setdefault(name, []).append(problem)
    return by_kernel


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
        time_us=event.provenance.median_us if event.provenance.samples else None,
        fresh=event.already_fresh,
        error=job.error,
    )


@contextlib.contextmanager
def _progress(total: int, wanted: bool) -> Iterator[Callable[[Any, bool], None]]:
    if not wanted:
        yield lambda event, ended: None
        return
    try:
        from tqdm.auto import tqdm  # where installed
    except ImportError:
        yield _print_end
        return
    with tqdm(total=total, unit="problem") as bar:

        def show(event: Any, ended: bool) -> None:
            bar.set_postfix_str(f"{event.job.kernel} {event.job.phase}", refresh=True)
            bar.update(1 if ended else 0)

        yield show


def _print_end(event: Any, ended: bool) -> None:
    if ended:
        problem = ",".join(f"{name}={value}" for name, value in _wire.problem_of(event.job.problem).items())
        time = (
            f"{event.provenance.median_us:.2f} us"
            if event.provenance.samples
            else event.job.error or "no winner"
        )
        print(f"{event.job.kernel} {problem}: {time}", file=sys.stderr)
