"""A device for Triton where there is no GPU: Triton compiles for sm_90 and launches into a list. With it
tensors in no memory, and a daemon in memory."""

import dataclasses
import itertools
import unittest.mock
import warnings
from typing import ClassVar

import cubind.triton
import running
import triton
import triton.language as tl
from cubind.triton import _bound, _daemon, _install, _own, _roles, _row_questions, _spec, _variant_calls
from cubind.triton import _triton_private as private
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.driver import driver

Own, StaysOwnError = _own.Own, _own.StaysOwnError
spec_of = _spec.spec_of
MOST_CONFIGURATIONS = _spec._MAX_CONFIGURATIONS

_addresses = itertools.count(1 << 20, 1 << 20)


@dataclasses.dataclass
class Tensor:
    """All that Triton asks of a tensor."""

    shape: tuple
    dtype: str = "float32"
    address: int = dataclasses.field(default_factory=lambda: next(_addresses))

    def data_ptr(self):
        return self.address

    def stride(self):
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.insert(0, strides[0] * size)
        return tuple(strides[: len(self.shape)])

    def clone(self):
        return Tensor(self.shape, self.dtype)

    def zero_(self):
        Driver.events.append("zero")

    def copy_(self, other):
        Driver.events.append("restore")


class _Utils:
    def load_binary(self, name, kernel, shared, device):
        return None, name, 32, 0, 1024

    def get_device_properties(self, device):
        return {"max_shared_mem": 232448}


class Driver:
    """`launches` has the grid and the kernel's metadata of each launch; `times` is what the benchmarker says
    of each configuration in turn."""

    launches: ClassVar = []
    events: ClassVar = []
    times: ClassVar = []
    benchmarked = 0
    utils = _Utils()

    def launcher_cls(self, source, metadata):
        def launch(x, y, z, stream, function, packed, launch_metadata, enter, leave, *arguments):
            Driver.launches.append(((x, y, z), metadata))

        return launch

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_benchmarker(self):
        def benchmark(kernel_call, quantiles):
            Driver.benchmarked += 1
            kernel_call()
            return [Driver.times.pop(0) if Driver.times else float(Driver.benchmarked)] * 3

        return benchmark


def start():
    """Has Triton use this device."""
    driver.set_active(Driver())


def forget():
    """Before a test."""
    Driver.launches.clear()
    Driver.events.clear()
    Driver.times.clear()
    Driver.benchmarked = 0


@dataclasses.dataclass
class Waiting:
    found: object
    known: _own.Known = dataclasses.field(default_factory=_own.Known)

    def answer(self):
        return self.found


class Daemon:
    """Answers every question with `answer`, or with what it raises, and keeps what it got. It knows a
    definition by its hint. None: Triton chooses."""

    def __init__(self, answer=None):
        self.answer = Own("is not for this daemon", is_said=True) if answer is None else answer
        self.asked = []
        self.definitions = {}
        self.known = _own.Known()

    def ask(self, question):
        self.asked.append(question.hint)
        if question.hint not in self.definitions:
            self.definitions[question.hint] = question.definition
        if isinstance(self.answer, Exception):
            raise self.answer
        return Waiting(self.answer, self.known)

    def close(self):
        pass


def install(daemon, artifacts=None):
    """Instead of cubind.triton.install()."""
    _install.put_in(daemon, artifacts)


def install_client(client, waits=True, timeout=60.0, patience=0.05):
    """Instead of cubind.triton.install(client): Triton compiles. Returns what asks the daemon."""
    asking = _daemon.CubindDaemon(client, waits, timeout, patience)
    _install.put_in(asking)
    return asking


def patch():
    """What is in Triton's place."""
    return _install._installed.patch


def limit(name, value):
    """Meanwhile a limit of what asks the daemon."""
    return unittest.mock.patch.object(_daemon, name, value)


def without_ttir():
    """Meanwhile a kernel whose TTIR is made fails."""
    return unittest.mock.patch.object(private.TtirMaker, "module", side_effect=AssertionError)


def loads(load):
    """Meanwhile what loads a configuration's binary."""
    return unittest.mock.patch.object(private, "load", load)


def capturing():
    """Meanwhile a CUDA graph is captured."""
    return unittest.mock.patch.object(private, "is_capturing", lambda: True)


def specs_of_row(table, size, group):
    """Of the launches of a table's call, with that group of configurations."""
    return [spec_of(question.definition) for question in _row_questions.questions(table, size, group)]


def bound_keeps(calls):
    """Meanwhile a bound launch keeps only so many calls."""
    return unittest.mock.patch.object(_bound, "_MOST_EXACT", calls)


def define(client, spec):
    _variant_calls.define(client._connection, spec)


def module_of(case, target):
    """The TTIR of a kernel of triton_kernels."""
    options = make_backend(target).parse_options(dict(case.options))
    return private.TtirMaker().module(private.Source(case.source(), options, target, {}, {}, {}, None))


def roles_of(case, target):
    return _roles.roles_of(module_of(case, target))


def question_of(tuner, *args, **kwargs):
    """The definition of a call."""
    daemon = Daemon(1)
    install(daemon)
    try:
        tuner.run(*args, grid=kwargs.pop("grid", (1,)), warmup=False, **kwargs)
    finally:
        cubind.triton.uninstall()
    return next(iter(daemon.definitions.values()))


def configurations(*blocks, **others):
    return [triton.Config({"BLOCK": block}, **others) for block in blocks]


def scale(x, y, N, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) * factor, mask=at < N)


def tuned(function=scale, configs=None, key=("N",), **others):
    """A fresh autotuner of its own."""
    configs = configs or configurations(128, 256, num_warps=1)
    return triton.autotune(configs=configs, key=list(key), **others)(triton.jit(function))


def grid(values):
    return (triton.cdiv(values["N"], values["BLOCK"]),)


def blocks():
    """What was launched, by the number of blocks."""
    return [launched[0] for launched, _ in Driver.launches]


class Case(unittest.TestCase):
    """Its calls have the arguments of scale()."""

    def setUp(self):
        start()
        forget()
        running.forget_warnings()
        self.enterContext(warnings.catch_warnings(action="ignore"))
        self.addCleanup(cubind.triton.uninstall)
        self.x, self.y = Tensor((1000,)), Tensor((1000,))

    def call(self, kernel, n=1000, factor=2.0, grid=grid, **others):
        kernel[grid](self.x, self.y, n, factor, **others)
