"""A compile worker, for tests."""

import contextlib
import pathlib
import socket
import subprocess
import sys

import cubind.triton
from cubind.triton.worker import framing

FOLDER = pathlib.Path(cubind.triton.__file__).with_name("worker")
MAX_FRAME = 1 << 28


class Worker(contextlib.AbstractContextManager):
    """`hello` is what it said first."""

    def __init__(self, *arguments, python=sys.executable, environment=None):
        self.stream, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [python, "-I", "-B", FOLDER, "--fd", str(other.fileno()), *arguments],
                pass_fds=[other.fileno()],
                env=environment,
            )
        self.stream.settimeout(120)
        self.hello, _ = framing.receive(self.stream, MAX_FRAME)

    def compile(self, ttir, architecture="sm_90", options=None, **others):
        """The reply's header, and the cubin."""
        header = {"architecture": architecture, "triton": self.hello["triton"], "options": options or {}}
        framing.send(self.stream, header | others, ttir)
        return framing.receive(self.stream, MAX_FRAME)

    def __exit__(self, *_):
        self.stream.close()
        self.process.wait(60)
