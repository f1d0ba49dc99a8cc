"""What the tests of the Python package share: a daemon that replays a recorded table, the fake driver, arrays
in no memory."""

import collections
import concurrent.futures
import contextlib
import ctypes
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import unittest.mock

import cubind
from cubind import _asking, _core, _sealing, _wire

SOURCE = pathlib.Path(__file__).resolve().parents[4]
TINY_FILES = os.environ["CUBIND_TINY_FILES"]  # the program that writes the tiny kernel and its table
PROGRAMS = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
# For programs that shall not take the fake driver for a GPU.
WITHOUT_DRIVER = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
PATIENCE = 60.0  # seconds: many tests may share two cores
_PACKAGE = str(pathlib.Path(cubind.__file__).parent)

messages = _wire.messages  # the module of those that clients and daemons exchange


def bench(name):
    """The module that `./dev bench NAME` runs."""
    file = SOURCE / "bench" / name / "__main__.py"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cubindctl(address, *arguments, check=True):
    """Its result, with texts."""
    command = [PROGRAMS / "cubindctl", "--address", address, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE)
    return succeeded(result) if check else result


def succeeded(result):
    """The result of a program that has to end well."""
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


class Daemon(contextlib.AbstractContextManager):
    """A daemon of its own in a folder of its own, with the tiny kernel "scale" and its replayed table;
    `address` is its socket. scale: y = K * x for N elements, with buckets of N that end at powers of two;
    N=4096 with K=2 or 3 can be tuned."""

    def __init__(self, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-python-"))
        self.address = f"unix://{self.folder}/cubind.sock"
        command = [PROGRAMS / "cubind", "--socket", self.folder / "cubind.sock"]
        command += ["--db", self.folder / "store.db"]
        self.log = (self.folder / "log").open("w")
        self.process = subprocess.Popen(
            [*command, *self._tiny_arguments(), *arguments],
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
            env=WITHOUT_DRIVER | self._faulty_worker(),
        )
        try:
            cubindctl(self.address, "health", "--wait", "30")
        except (AssertionError, subprocess.TimeoutExpired):
            self.__exit__()
            raise

    def _tiny_arguments(self):
        subprocess.run([TINY_FILES, self.folder], check=True)
        files = {"--kernels": "kernels", "--replay": "table.json"}
        return [part for option, file in files.items() for part in (option, self.folder / file)]

    def _faulty_worker(self):
        """Its replay device takes time and holds a lock, as faults.json says."""
        worker = pathlib.Path(TINY_FILES).parent / "faulty" / "cubind-worker"
        return {"CUBIND_WORKER": str(worker), "CUBIND_REPLAY_FAULTS": str(self.folder / "faults.json")}

    def connect(self):
        """A client that waits for it as long as the tests do."""
        return cubind.connect(self.address, timeout=PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def entry_points(folder):
    """What an installed wheel tells of itself."""
    project = tomllib.loads((SOURCE / "python/pyproject.toml").read_text())["project"]
    group, points = next(iter(project["entry-points"].items()))
    info = pathlib.Path(folder, "cubind-0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cubind\nVersion: 0\n")
    text = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{text}")


def run_installed(folder, arguments, **environment):
    """Python in the folder, where an installed wheel's entry points are (entry_points())."""
    environment["PYTHONPATH"] = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
    return run_python_for_both(["-B", *arguments], check=False, cwd=folder, **environment)


class FakeArray:
    """An array in GPU memory that does not exist: the fake driver reads no memory."""

    def __init__(self, address, shape, typestr="<f4", strides=None):
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": typestr, "strides": strides, "version": 3,
        }  # fmt: skip


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
        ("stream", ctypes.c_uint64),
        ("parameters", ctypes.c_uint64 * 24),
        ("attributes", ctypes.c_uint32 * 4 * 4),
    )


class _Copy(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("to", "source", "bytes", "stream")]


class FakeDriver:
    """The launches, and the copies within device memory, that the fake driver has seen."""

    def __init__(self, parameters):
        self._library = ctypes.CDLL("libcuda.so.1")
        self._library.fake_launch_count.restype = ctypes.c_size_t
        self._library.fake_module_count.restype = ctypes.c_size_t
        self._library.fake_row_bytes.restype = ctypes.c_uint64
        self._library.fake_parameters(ctypes.c_size_t(parameters))

    def modules(self):
        return self._library.fake_module_count()

    def row_bytes(self, buffer):
        """Of the last tensor map of the buffer."""
        return self._library.fake_row_bytes(ctypes.c_uint64(buffer))

    def copies(self):
        """As (to, from, bytes, stream)."""
        found, copy = [], _Copy()
        while self._library.fake_copy(ctypes.c_size_t(len(found)), ctypes.byref(copy)):
            found.append((copy.to, copy.source, copy.bytes, copy.stream))
        return found

    def settings(self):
        """Of functions, as (attribute, value)."""
        found, setting = [], (ctypes.c_int32 * 2)()
        while self._library.fake_setting(ctypes.c_size_t(len(found)), setting):
            found.append(tuple(setting))
        return found

    def fail_launches(self, result):
        """Until the next FakeDriver is made."""
        self._library.fake_launch_result(result)

    def launches(self):
        found = []
        for index in range(self._library.fake_launch_count()):
            launch = _Launch()
            self._library.fake_launch(ctypes.c_size_t(index), ctypes.byref(launch))
            found.append(launch)
        return found


def offered_device(client):
    """The label of the GPU that the client's daemon offers, once it does."""

    def labels():
        return [device["label"] for device in client.status()["devices"] if device["offered"]]

    eventually(labels)
    return labels()[0]


def add_kernel(daemon, client, source, spec):
    """Writes the kernel's files and waits until the daemon knows it."""
    name = spec["name"]
    (daemon.folder / "kernels" / f"{name}.cu").write_text(source)
    (daemon.folder / "kernels" / f"{name}.json").write_text(json.dumps(spec))
    known = eventually(lambda: name in [kernel["name"] for kernel in client.kernels()])
    assert known, "the daemon does not see the kernel"


def run_python(code, *arguments, fake_driver=True, **environment):
    """Runs a program of its own. Its output as text; fails the test where it fails."""
    return run_python_for_both(["-c", code, *arguments], fake_driver, **environment).stdout


def run_python_for_both(arguments, fake_driver=True, check=True, cwd=None, **environment):
    """The same by Python's own arguments; the result has stdout and stderr. check: False: it may fail."""
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**(os.environ if fake_driver else WITHOUT_DRIVER), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
    )
    return succeeded(result) if check else result


def forget_warnings():
    """Each is given once in a process: from now on once more."""
    _asking._warned.clear()


def using_gpu(**process):
    """Meanwhile that process (uuid of the GPU, pid, host) makes this one's calls."""
    return unittest.mock.patch.object(_core, "synchronized", lambda *_: process)


def unseal():
    """As at the start of a program."""
    _sealing.program._mode, _sealing.program.accept = "", "bucket+stale"


@contextlib.contextmanager
def calls():
    """How often this thread calls each of the package's functions meanwhile, by name."""
    found = collections.Counter()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            found[frame.f_code.co_name] += 1

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def waits(asker):
    """The seconds for which this thread waits meanwhile for answers of a cubind._asking.Asker, each wait no
    longer than it was to be: what goes beyond is the machine's."""
    changed, found, thread = asker._changed, [], threading.current_thread()
    wait_for = changed.wait_for

    def timed(predicate, timeout):
        start = time.monotonic()
        result = wait_for(predicate, timeout)
        if threading.current_thread() is thread:
            found.append(min(time.monotonic() - start, timeout))
        return result

    with unittest.mock.patch.object(changed, "wait_for", timed):
        yield found


def eventually(question, seconds=PATIENCE):
    """Asks again until it is true or the time has passed; says which."""
    until = time.monotonic() + seconds
    while not question():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def together(function, arguments):
    """What it returns for each of them, each on a thread of its own."""
    with concurrent.futures.ThreadPoolExecutor(len(arguments)) as pool:
        return [*pool.map(function, arguments)]


def unexplained(name, thing):
    """The functions of a public name without a docstring, and their parameters that it does not name:
    ["Client.get: job"]. The docstring of a class may name those of its methods."""
    if not inspect.getdoc(thing):
        return [name]
    if not inspect.isclass(thing):
        return _unnamed(name, thing, inspect.getdoc(thing))
    found = []
    for member, value in vars(thing).items():
        made = member == "__init__" and "makes one" not in inspect.getdoc(thing)
        if inspect.isfunction(value) and (made or not member.startswith("_")):
            own = value.__doc__ or ""
            if not own and member != "__init__":
                found.append(f"{name}.{member}")
            found += _unnamed(f"{name}.{member}", value, own + inspect.getdoc(thing))
    return found


def _unnamed(name, function, text):
    if not callable(function):
        return []
    parameters = [p for p in inspect.signature(function).parameters if p != "self" and not p.startswith("_")]
    return [f"{name}: {p}" for p in parameters if not re.search(rf"\b{p}\b", text)]


def make_certificate(certificate, key):
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", "/CN=cubind", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)


def team_files(folder, *new):
    """The certificate and a token for a daemon with TLS, in the folder, and the daemon's options for them.
    new: further arguments of `cubindctl token new`."""
    certificate, key, tokens, token = (
        folder / name for name in ("daemon.pem", "key", "tokens.json", "token")
    )
    make_certificate(certificate, key)
    command = [PROGRAMS / "cubindctl", "token", "new", "alice", "--file", tokens, *new]
    token.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    return certificate, token, ["--tls-cert", certificate, "--tls-key", key, "--tokens", tokens]
