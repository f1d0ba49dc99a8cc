"""Hints, by which a daemon is asked for a kernel before its TTIR is made: kernels with other code, or
that are measured in another way, have other ones, also where Triton's own key is the same."""

import contextlib
import math
import types
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind.triton
import running
import triton
import triton.language as tl
import triton_stub as stub
from cubind.triton import _triton_private as private
from cubind.triton._compile_question import Kernel
from cubind.triton._triton_cache import Compiling
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

KIND = tl.float32
settings = types.ModuleType("settings")
settings.FACTOR = tl.constexpr(2)

SIGNATURE = {
    "x": "*fp32",
    "y": "*fp32",
    "N": "i32",
    "factor": "fp32",
    "MODE": "constexpr",
    "BLOCK": "constexpr",
}

PROGRAM = """
import hints_test, triton_stub as stub
from cubind.triton._own import StaysOwnError
try:
    print(hints_test.compiled(1))
except StaysOwnError as error:
    print(error)
"""


@triton.jit
def scaled(value):
    return value * settings.FACTOR


def scale(x, y, N, factor, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = scaled(tl.load(x + at, mask=at < N).to(KIND))
    if MODE == "1":
        value = value * factor
    tl.store(y + at, value, mask=at < N)


def autotuned(mode=1, factor=2.0, **others):
    """The hint and the name of a call's kernel."""
    stub.install(daemon := stub.Daemon(1))
    try:
        given = stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, factor, mode
        stub.tuned(scale, **others)[stub.grid](*given)
    finally:
        cubind.triton.uninstall()
    ((hint, definition),) = daemon.definitions.items()
    return hint, stub.spec_of(definition).name


def compiled(mode=1):
    """The same of a kernel that Triton is about to compile."""
    scaled.hash = None  # as in another process
    source = ASTSource(triton.jit(scale), SIGNATURE, {"MODE": mode, "BLOCK": 128})
    target = GPUTarget("cuda", 90, 32)
    options = private.make_backend(target).parse_options({})
    made = private.Source(source, options, target, {}, source.signature, source.attrs, None)
    kernel = Kernel(Compiling(made, source.hash(), {}))
    return kernel.hint, kernel.spec.name


@contextlib.contextmanager
def other_globals(kind=KIND, factor=2):
    with (
        unittest.mock.patch(f"{__name__}.KIND", kind),
        unittest.mock.patch.object(settings, "FACTOR", tl.constexpr(factor)),
    ):
        scaled.hash = None
        yield


class Hints(stub.Case):
    def check_apart(self, found):
        """found: hints and names."""
        hints, names = map(set, zip(*found))
        self.assertEqual((len(names), len(hints)), (len(found), len(found)))

    def of_globals(self, asked):
        for others in ({"kind": tl.float16}, {"factor": 3}):
            with other_globals(**others):
                yield asked()

    def test_constants_and_globals_that_triton_takes_for_the_same_are_told_apart(self):
        for asked in (autotuned, compiled):
            with self.subTest(asked.__name__):
                self.check_apart([asked(), asked("1"), *self.of_globals(asked)])
                self.assertEqual(asked(), asked())

    def test_what_is_zeroed_and_numbers_that_are_not_finite_are_part_of_a_tuning(self):
        numbers = [autotuned(factor=one) for one in (2.0, math.inf, -math.inf, math.nan)]
        self.check_apart([*numbers, autotuned(reset_to_zero=["y"])])
        self.assertEqual(autotuned(factor=3.0), autotuned(factor=2.0))

    def test_a_process_that_compiles_in_another_way_asks_for_nothing(self):
        for name, value, told in (
            ("PTXAS_OPTIONS", "--fmad=false", "has the option ptx_options='--fmad=false'"),
            ("TRITON_LIBDEVICE_PATH", __file__, "is compiled in another way by TRITON_LIBDEVICE_PATH="),
            ("TRITON_INSTRUMENTATION_MODE", "consan", "by TRITON_INSTRUMENTATION_MODE=consan"),
        ):
            with self.subTest(name):
                self.assertIn(told, running.run_python(PROGRAM, **{name: value}))
