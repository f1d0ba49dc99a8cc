"""cubind from nothing to a served kernel, in about half a minute: python -m cubind.demo

With a GPU it tunes RMSNorm for four problems, fetches the winners and checks what they compute. Without one,
or with --replay, the daemon plays recorded measurements of a GPU for two problems, and every line says
"replayed". The daemon, its store and its socket lie in a folder that is removed at the end; the report that
it writes stays."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from . import Answer, Client, CubindError, TuneResult, UnavailableError, _core, _wire, programs
from .embedded import DaemonFiles, start_daemon

_KERNEL = "rmsnorm_forward"
_TABLE = pathlib.Path(__file__).parent / "_demo" / "rmsnorm.json"
_MEASURED = ((1024, 8192), (4096, 4096), (16384, 4096), (65536, 1024))  # N, D
_REPLAYED = ((1024, 8192), (16384, 4096))  # of the table
_PATIENCE = 60.0  # seconds until the daemon offers its device
_COMPILE_PATIENCE = 60.0  # seconds until an answer of the shipped table is compiled


class DemoError(Exception):
    """The demo cannot go on: why, and what to do."""


class _Output:
    """Prints lines, which say "replayed" where nothing is measured."""

    def __init__(self, replayed: bool) -> None:
        self._mark = "replayed: " if replayed else ""

    def say(self, text: str = "", mark: str | None = None) -> None:
        for line in text.splitlines() or [""]:
            print(f"{self._mark if mark is None else mark}{line}".rstrip(), flush=True)


class _Daemon(contextlib.AbstractContextManager["_Daemon"]):
    """A daemon of its own in a folder of its own. It ends with this object, and with this process, however it
    ends: the daemon lives as long as the process holds a lock.

    Ctrl-C and SIGTERM end the daemon, and so the call under way; then the process exits with 128 plus the
    signal's number. An exception out of a call of gRPC may find its locks held."""

    def __init__(self, folder: pathlib.Path, arguments: list[str]) -> None:
        files = DaemonFiles(
            folder / "cubind.sock", folder / "store.db", folder / "users.lock", folder / "cubind.log"
        )
        self._log = files.log
        self._lock = files.users.open("a")
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self._process = start_daemon(files, arguments)
        self.client = Client(f"unix://{files.socket}")
        self._ended_by = 0
        self._handlers = {n: signal.signal(n, self._end) for n in (signal.SIGINT, signal.SIGTERM)}

    def _end(self, number: int, _: object) -> None:
        self._ended_by = number
        self._process.terminate()

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lock.close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._ended_by:
            sys.exit(128 + self._ended_by)

    def started(self) -> dict[str, Any]:
        """The status once the daemon's agent has said which devices and compilers it has."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(UnavailableError):
                status = self.client.status()
                if status["agents"] and (_offered(status) or status["no_device_because"]):
                    return status
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise DemoError(f"the daemon offers no device. The end of its log:\n{self._log.read_text()[-2000:]}")


def _offered(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [device for device in status["devices"] if device["offered"]]


def _shipped_device(status: dict[str, Any]) -> dict[str, Any] | None:
    """A GPU that only the tables which come with cubind answer for."""
    return next((device for device in status["devices"] if not device["offered"]), None)


def _wheels(gpu: dict[str, dict[str, Any]] | None) -> list[str]:
    """NVIDIA's wheels with NVRTC and its headers: the newest release whose cubins the driver loads."""
    names = ["nvidia-cuda-nvrtc", "nvidia-cuda-runtime"]
    if gpu is None:
        return [f"{name}>=13,<14" for name in names]
    major, minor = divmod(gpu["driver"]["cuda"] // 10, 100)
    if major < 13:
        return [f"{name}-cu12<12.{minor + 1}" for name in names]
    return [f"{name}>=13,<{major}.{minor + 1}" for name in names]


@contextlib.contextmanager
def _daemon_with_nvrtc(
    arguments: list[str], gpu: dict[str, dict[str, Any]] | None
) -> Iterator[tuple[Client, dict[str, Any]]]:
    """A client of a started daemon that can compile, and its status."""
    with (
        tempfile.TemporaryDirectory(prefix="cubind-demo-") as folder,
        _Daemon(pathlib.Path(folder), arguments) as daemon,
    ):
        status = daemon.started()
        if not status["toolchains"]:
            quoted = " ".join(f"'{wheel}'" for wheel in _wheels(gpu))
            raise DemoError(
                "NVRTC, NVIDIA's run-time compiler, is not in this Python's environment or in /usr/local/cuda: "
                f"install it with `pip install {quoted}`, and run the demo again"
            )
        yield daemon.client, status


def _problem_text(problem: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in problem.items())


def _gains(table: str, device: str) -> dict[str, float]:
    """How many times as fast as the default the winner of each problem is, on one device."""
    found = {}
    for record in _wire.table_rows(table):
        if record["device"] == device:
            problem = {**record["problem"]["dims"], **record["problem"]["types"]}
            found[_problem_text(problem)] = record.get("gain_over_default", 0.0)
    return found


def _show_tuned(result: TuneResult, gains: dict[str, float], output: _Output) -> None:
    problem = _problem_text(result.problem)
    if result.time_us is None:
        raise DemoError(f"{problem}: {result.state}: {result.error or 'no winner'}")
    output.say(
        f"  {problem}: {result.time_us:.2f} us, {gains[problem]:.2f} times as fast as the default configuration\n"
        f"    {_problem_text(result.configuration)}"
    )


def _show_answer(answer: Answer, output: _Output, mark: str | None = None) -> None:
    time_text = "" if answer.time_us is None else f", {answer.time_us:.2f} us"
    output.say(
        f"  {_problem_text(answer.problem)}: {answer.match}, {answer.evidence}{time_text}, "
        f"cubin of {len(answer.cubin)} bytes, sha256 {answer.digest[:12]}",
        mark,
    )


def _shipped(client: Client, problem: dict[str, Any], device: str) -> Answer:
    """The shipped table's answer. The daemon may still be compiling it."""
    until = time.monotonic() + _COMPILE_PATIENCE
    while True:
        try:
            return client.get(_KERNEL, problem, device=device, tune=False)
        except UnavailableError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _check_on_gpu(client: Client, problems: list[dict[str, Any]], output: _Output) -> None:
    """The example program launches each winner and checks every element."""
    options: list[str] = []
    for problem in problems:
        options += ["--problem", _wire.listed(problem)]
    output.say("\nThe example program launches each winner and checks every element: rmsnorm-example")
    command = [programs.program("rmsnorm-example"), "--address", client.address, *options]
    status = subprocess.run(command, env=programs.environment()).returncode
    if status != 0:
        raise DemoError(f"rmsnorm-example failed with exit status {status}")


def _show(client: Client, status: dict[str, Any], replayed: bool, output: _Output) -> None:
    if not _offered(status):
        raise DemoError(f"no GPU can be used: {'; '.join(status['no_device_because'])}")
    device, gpu = _offered(status)[0]["label"], _offered(status)[0]["facts"]["name"]
    sizes = _REPLAYED if replayed else _MEASURED
    problems = [{"N": N, "D": D, "T": "bf16"} for N, D in sizes]
    played = f", which plays the measurements of an {gpu}" if replayed else ""
    output.say(
        f"cubind {status['version']} with {', '.join(status['toolchains'])}. Its device: {device}{played}."
    )

    output.say(f"\nTuning {_KERNEL} for {len(problems)} problems: client.tune([...])")
    began = time.monotonic()
    shapes = [{"kernel": _KERNEL, **problem} for problem in problems]
    results = client.tune(shapes, device=device, progress=False)
    gains = _gains(client.export_table(kernel=_KERNEL, replayed=replayed), device)
    for result in results:
        _show_tuned(result, gains, output)
    output.say(f"Tuned in {time.monotonic() - began:.1f} s.")

    output.say(f'\nWhat the daemon serves now: client.get("{_KERNEL}", N=..., D=..., T="bf16")')
    for problem in [*problems, {**problems[0], "N": problems[0]["N"] - 24}]:
        _show_answer(client.get(_KERNEL, problem, device=device, tune=False), output)
    output.say(f"{len(problems) + 1} answers took {client.calls} calls: a rule answers the rest of a bucket.")

    if not replayed:
        _check_on_gpu(client, problems, output)
    elif known := _shipped_device(status):
        mark, label = "not replayed: ", known["label"]
        output.say(
            f"\nFor a real {known['facts']['name']}, from the table that comes with cubind: "
            f'client.get(..., device="{label}")',
            mark,
        )
        for problem in problems:
            _show_answer(_shipped(client, problem, label), output, mark)


def _write_report(client: Client) -> str:
    """The name of a page on what was tuned."""
    handle, page = tempfile.mkstemp(prefix="cubind-demo.", suffix=".html")
    os.close(handle)
    client.report(page, _KERNEL)
    return page


def _show_next(page: str, replayed: bool, output: _Output) -> None:
    N, D = _REPLAYED[0]
    problem = f"{_KERNEL} --problem N={N},D={D},T=bf16"
    table = ' --replay "$(python -m cubind.demo --table)"' if replayed else ""
    output.say(
        f"\nThe daemon has stopped. Done. The report is {page}. To go on, with a daemon that stays:\n"
        f"  cubind{table} --web 7680 &      # pages at http://127.0.0.1:7680/\n"
        f"  cubindctl tune {problem}\n"
        f"  cubindctl explain {problem}"
    )


def _gpu() -> dict[str, dict[str, Any]] | None:
    try:
        return _core.gpu()
    except CubindError:
        return None


def _run(options: argparse.Namespace) -> None:
    gpu = None if options.replay else _gpu()
    output = _Output(replayed=gpu is None)
    arguments = ["--replay", str(_TABLE)] if gpu is None else []
    if gpu is None:
        output.say("There is no GPU to measure on." if not options.replay else "No GPU is used.")
    with _daemon_with_nvrtc(arguments, gpu) as (client, status):
        _show(client, status, gpu is None, output)
        page = _write_report(client)
    _show_next(page, gpu is None, output)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cubind.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--replay", action="store_true", help="use no GPU, even if there is one")
    parser.add_argument(
        "--table", action="store_true", help="print the file of the recorded measurements, and end"
    )
    options = parser.parse_args()
    if options.table:
        print(_TABLE)
        return 0
    # SIGTERM ends the demo as Ctrl-C does: the daemon stops, and the folder is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        _run(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (DemoError, CubindError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
