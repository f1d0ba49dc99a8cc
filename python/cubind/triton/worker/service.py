"""The service: one hello, then one reply per request, in order, until the peer closes the stream.

A request's header has `architecture` ("sm_90"), `triton` (the version that made the TTIR) and `options`; its
bytes are the TTIR. The reply's header has `outcome`, `log` and, for "correct", `launch` and `resources`; its
bytes are the cubin.

outcome: "correct"; "compile", the compiler refused it, or ended by a fault; "timeout"; "out_of_memory". A
compile that was killed from outside is repeated once: killed twice, it is "out_of_memory", which is why the
kernel kills.

Each compile runs in a child, forked from this process: it begins with Triton imported, and whatever it does
to itself ends with it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any

from . import framing, sandbox, toolchain
from .compile import compile_here, read_resources
from .folder import temporary_folder
from .request import MAX_TTIR_BYTES, Request, RequestError, read_request

_MAX_REQUEST_BYTES = MAX_TTIR_BYTES + (1 << 20)
_MAX_CUBIN_BYTES = 256 << 20
_MAX_LOG_BYTES = 64 << 10
_MAX_TASKS = 64 + 2 * (os.cpu_count() or 1)  # of one compile: MLIR has a thread for each core
_TIMES = re.compile(r".*info *: Compile time = .*\n")  # a log is the same each time
_KILLED = "killed"  # an outcome that no reply has
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "cannot allocate memory", "memory allocation fail")


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of one compile. seconds: of the clock; a child above it is killed. calls: the filter of its system
    calls, an array of sock_filter; none where it is empty."""

    seconds: float
    cpu_seconds: int
    memory_bytes: int
    calls: bytes


def main(arguments: list[str]) -> int:
    """Serve on the given descriptor. 0: the peer has closed the stream."""
    options = _parse(arguments)
    stream = socket.socket(fileno=options.fd)
    network = sandbox.leave_network()
    try:
        with temporary_folder(options.folder) as folder:
            return _serve_in(folder, stream, options, network)
    except framing.FrameError as error:
        print(f"cubind/triton/worker: {error}", file=sys.stderr)
        return 1
    except (BrokenPipeError, ConnectionResetError):
        return 0  # no one waits for the reply


def _serve_in(folder: pathlib.Path, stream: socket.socket, options: argparse.Namespace, network: str) -> int:
    _forget_environment(folder)
    sandbox.adopt_orphans()
    addresses = sandbox.fix_addresses()
    try:
        tools = toolchain.load()
    except (ImportError, toolchain.ToolchainError) as error:
        framing.send(stream, {"error": f"{sys.executable}: {error}"})
        return 1
    limits = Limits(options.seconds, options.cpu_seconds, options.memory_mib << 20, options.seccomp)
    framing.send(stream, _hello(tools, addresses, _lacks(network, limits)))
    _serve(stream, tools, limits, folder)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cubind/triton/worker")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--cpu-seconds", type=int, default=120)
    parser.add_argument("--memory-mib", type=int, default=8192)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--seccomp", type=bytes.fromhex, default=b"", metavar="HEX")
    return parser.parse_args(arguments)


def _forget_environment(folder: pathlib.Path) -> None:
    """Triton reads many variables, and each may change what it compiles."""
    os.environ.clear()
    os.environ.update(
        HOME=str(folder),
        TMPDIR=str(folder),
        TRITON_HOME=str(folder),
        TRITON_DISABLE_LINE_INFO="1",
        TRITON_DUMP_PTXAS_LOG="1",
        PATH="/usr/bin:/bin",
    )
    tempfile.tempdir = None


def _lacks(network: str, limits: Limits) -> list[str]:
    """What the kernel of this host does not give. Where no socket can be made no network is reached."""
    calls = sandbox.why_calls_are_open(limits.calls)
    return [lack for lack in (network if calls else "", calls, sandbox.why_files_are_open()) if lack]


def _hello(tools: toolchain.Toolchain, addresses: str, lacks: list[str]) -> framing.Header:
    ptxas = {f"sm_{architecture}": version for architecture, version in tools.ptxas.items()}
    notes = [addresses] if addresses else []
    return {"triton": tools.triton, "ptxas": ptxas, "notes": notes, "lacks": lacks, "error": ""}


def _serve(stream: socket.socket, tools: toolchain.Toolchain, limits: Limits, folder: pathlib.Path) -> None:
    while (message := framing.receive(stream, _MAX_REQUEST_BYTES)) is not None:
        header, ttir = message
        try:
            request = read_request(header, ttir, tools.triton, [*tools.ptxas])
        except RequestError as error:
            framing.send(stream, {"outcome": "compile", "log": str(error)})
            continue
        for _ in range(2):
            private = pathlib.Path(tempfile.mkdtemp(dir=folder))
            try:
                reply, cubin = _compile(request, tools, limits, private, stream.fileno())
            finally:
                shutil.rmtree(private, ignore_errors=True)
            if reply["outcome"] != _KILLED:
                break
        else:
            reply["outcome"] = "out_of_memory"
        framing.send(stream, reply, cubin)


# ---- In the service ----


def _compile(
    request: Request,
    tools: toolchain.Toolchain,
    limits: Limits,
    private: pathlib.Path,
    stream: int,
) -> tuple[framing.Header, bytes]:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(stream)
        _be_child(request, tools, limits, private)  # does not return
    status = _wait(child, limits.seconds)
    _end_orphans()
    log = _read(private / "log", _MAX_LOG_BYTES, cut=True).decode("utf-8", "replace")
    log = _TIMES.sub("", log.replace(f"{private}/", "").replace(str(private), "."))
    answer = _answer(private)
    if status == 0 and answer is not None:
        cubin = _read(private / "kernel.cubin", _MAX_CUBIN_BYTES)
        if cubin:
            header = {"outcome": "correct", "log": log, "launch": answer}
            return header | {"resources": read_resources(log)}, cubin
        log += f"\nthe cubin is missing, or has more than {_MAX_CUBIN_BYTES} bytes"
    return {"outcome": _failure(status, log), "log": _with_end(status, log, limits)}, b""


def _wait(child: int, seconds: float) -> int | None:
    """The child's exit status as of waitpid; None: it was killed when the time was over."""
    handle = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        in_time = bool(poll.poll(1e3 * seconds))
    finally:
        os.close(handle)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return status if in_time else None


def _end_orphans() -> None:
    """A ptxas outlives a child that was killed."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        # Without it the kernel does not list children; then the limits end them.
        listed = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
        for orphan in listed.read_text().split() if listed.exists() else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(orphan), signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def _read(path: pathlib.Path, most: int, cut: bool = False) -> bytes:
    """A regular file's content, b"" where there is none, or more than `most` of it unless it may be cut."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(opened, "rb") as file:
        content = file.read(most + 1)
    return content if len(content) <= most else content[:most] if cut else b""


def _answer(private: pathlib.Path) -> dict[str, Any] | None:
    try:
        found = json.loads(_read(private / "launch.json", 1 << 20))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _failure(status: int | None, log: str) -> str:
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return "timeout"
    if f"error code -{signal.SIGXCPU:d}" in log:  # of ptxas, in Triton's words
        return "timeout"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return _KILLED
    if f"error code -{signal.SIGKILL:d}" in log:
        return _KILLED
    if any(words in log.lower() for words in _OUT_OF_MEMORY):
        return "out_of_memory"
    return "compile"


def _with_end(status: int | None, log: str, limits: Limits) -> str:
    """The log, and how the compiler ended where it did not say it."""
    if status is None:
        end = f"the compiler was ended after {limits.seconds:g} s"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        end = f"the compiler ended by {name} (limits: {limits.cpu_seconds} s of CPU time, "
        end += f"{limits.memory_bytes >> 20} MiB)"
    else:
        return log
    return f"{log}\n{end}".lstrip("\n")


# ---- In the child ----


def _be_child(request: Request, tools: toolchain.Toolchain, limits: Limits, private: pathlib.Path) -> None:
    code = 1
    try:
        sandbox.end_with_parent()
        os.chdir(private)
        log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "TRITON_HOME", "TRITON_CACHE_DIR"), str(private)))
        tempfile.tempdir = str(private)
        sandbox.limit(limits.memory_bytes, limits.cpu_seconds, _MAX_CUBIN_BYTES)
        sandbox.limit_tasks(_MAX_TASKS)
        sandbox.restrict_files(private, tools.folder, tools.programs)
        sandbox.restrict_calls(limits.calls)
        facts, cubin = compile_here(request, private)
        pathlib.Path("kernel.cubin").write_bytes(cubin)
        pathlib.Path("launch.json").write_text(json.dumps(facts))
        code = 0
    except MemoryError:
        os.write(2, b"out of memory\n")
    except BaseException as error:
        with contextlib.suppress(BaseException):
            os.write(2, f"{type(error).__name__}: {error}\n".encode()[:_MAX_LOG_BYTES])
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)
