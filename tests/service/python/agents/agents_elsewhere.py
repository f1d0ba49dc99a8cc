"""Agents that connect to a daemon over TCP, and what the tests of their faults look at."""

import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections import Counter

from running import PATIENCE, PROGRAMS, TINY_FILES, WITHOUT_DRIVER, Daemon, cubindctl

PACE_US = 3000  # of each sample: a job takes seconds, so that a fault meets it


class Site(contextlib.AbstractContextManager):
    """A daemon without an agent of its own that listens on TCP. Its agents' replay device takes its time and
    notes each block that it measures."""

    def __init__(self, *arguments):
        self.daemon = Daemon("--no-local-agent", "--listen", "127.0.0.1:0", *(arguments or ["--insecure"]))
        self.folder = self.daemon.folder
        self.port = int(re.search(r"listening on 127.0.0.1:(\d+)", self.log())[1])
        self.blocks = self.folder / "blocks"
        self.agents = []

    def agent_environment(self, name, pace_us=PACE_US):
        """For the worker with a replay device of a machine of its own, each sample of which takes so long."""
        locks, file = self.folder / f"{name}.locks", self.folder / f"{name}.json"
        locks.mkdir(exist_ok=True)
        file.write_text(
            json.dumps({"lock": str(locks), "log": str(self.blocks), "pace_us": pace_us, "faults": []})
        )
        worker = pathlib.Path(TINY_FILES).parent / "faulty" / "cubind-worker"
        return {"CUBIND_WORKER": str(worker), "CUBIND_REPLAY_FAULTS": str(file)}

    def log(self):
        return (self.folder / "log").read_text()

    def agent(self, name, *arguments, port=None, wait=True):
        agent = Agent(self, name, port or self.port, arguments)
        self.agents.append(agent)
        if wait:
            until(lambda: "works for the daemon" in agent.log(), agent.log)
        return agent

    def ctl(self, *arguments, check=True):
        return cubindctl(self.daemon.address, *arguments, check=check).stdout

    def submit(self):
        self.ctl("tune", "scale", "--problem", "N=4096,K=2,T=f32", "--detach")

    def job(self):
        return json.loads(self.ctl("jobs", "--all", "--json"))["jobs"][-1]

    def wait_for_blocks(self, count):
        until(lambda: len(self.measured()) >= count, self.log)

    def wait_for_end(self):
        until(lambda: self.job()["state"] in ("done", "failed", "cancelled"), self.log)
        return self.job()

    def measured(self):
        """Each measured block as `trial key, stage, first sample`."""
        lines = self.blocks.read_text().splitlines() if self.blocks.exists() else []
        return [tuple(line.split()[:3]) for line in lines]

    def repeated(self):
        return sum(count - 1 for count in Counter(self.measured()).values())

    def trials(self):
        table = json.loads(self.ctl("export", "--all-trials", "--replayed", "--samples", "--kernel", "scale"))
        return table["trials"]

    def __exit__(self, *_):
        for agent in self.agents:
            agent.kill()
        self.daemon.__exit__()


class Agent:
    """`cubind-agent` on the tiny kernel's replay device."""

    def __init__(self, site, name, port, arguments):
        self._file = site.folder / f"{name}.log"
        command = [PROGRAMS / "cubind-agent", "--address", f"127.0.0.1:{port}", "--id", name]
        command += ["--replay", site.folder / "table.json", "--compile-jobs", "2", *arguments]
        with self._file.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=WITHOUT_DRIVER | site.agent_environment(name),
            )

    def log(self):
        return self._file.read_text()

    def send(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(PATIENCE)


class Proxy(contextlib.AbstractContextManager):
    """Passes bytes on until it is cut; then connections stay open and nothing comes through them."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._cut = threading.Event()
        self._ended = threading.Event()
        self._peers = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self):
        self._cut.set()

    def _run(self):
        while not self._ended.is_set():
            if self._cut.is_set():
                self._ended.wait(0.05)
                continue
            for ready in select.select([self._listener, *self._peers], [], [], 0.05)[0]:
                self._accept() if ready is self._listener else self._pass_on(ready)

    def _accept(self):
        near = self._listener.accept()[0]
        far = socket.create_connection(("127.0.0.1", self._port))
        self._peers |= {near: far, far: near}

    def _pass_on(self, ready):
        other = self._peers.get(ready)
        try:
            data = ready.recv(1 << 16) if other else b""
            if data and not self._cut.is_set():
                other.sendall(data)
        except OSError:
            data = b""
        if not data and other:
            for end in (ready, other):
                self._peers.pop(end, None)
                end.close()

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        for end in [self._listener, *self._peers]:
            end.close()


def until(condition, log, patience=2 * PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come to that:\n" + log()[-4000:])
        time.sleep(0.05)
