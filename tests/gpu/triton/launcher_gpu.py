"""Launches without a C compiler on a GPU: kernels compute what they compute with the launchers that Triton
compiles, a process without a compiler runs them, and a launch takes no longer.

    tests=tests/service/python
    PYTHONPATH=build/ci/python:$tests/support:$tests/triton python tests/gpu/triton/launcher_gpu.py

Needs a GPU, torch, Triton 3.4 to 3.6, the package cubind and, for Triton's launchers, gcc.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import python_found

python_found.require("torch", "triton")
import triton_found  # noqa: E402, F401

# isort: split
import cubind.triton  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import triton_stub as stub  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402

SIGNATURES = 8
LAUNCHES = 2000

if not torch.cuda.is_available() or not triton.__version__.startswith(("3.4.", "3.5.", "3.6.")):
    print("there is no GPU, or no Triton that compiles launchers: not run", file=sys.stderr)
    sys.exit(python_found.SKIPPED)


def numbers(y, small, large, half: tl.float16, brain: tl.bfloat16, single, double: tl.float64, truth):
    tl.store(y, small + large)
    tl.store(y + 1, half.to(tl.float64))
    tl.store(y + 2, brain.to(tl.float64))
    tl.store(y + 3, single)
    tl.store(y + 4, double)
    tl.store(y + 5, truth)


def typed(y, a: tl.int8, b: tl.int16, c: tl.uint8, d: tl.uint16, e: tl.uint32, f: tl.uint64):
    tl.store(y, a)
    tl.store(y + 1, b)
    tl.store(y + 2, c)
    tl.store(y + 3, d)
    tl.store(y + 4, e)
    tl.store(y + 5, f.to(tl.float64))


def pair(y, values, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(values[0] + at) * values[1])


def doubled(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) * 2, mask=at < N)


def optional(x, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if x is None:
        tl.store(y + at, 3.0, mask=at < N)


def shifted(x, y, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) + 1.0)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.addCleanup(cubind.triton.uninstall)
        self.x = torch.randn(4096, device="cuda")

    def results(self, function, call, size=4096, dtype=torch.float32):
        """By Triton's launcher and by cubind's."""
        found = []
        for install in (cubind.triton.uninstall, lambda: stub.install(stub.Daemon())):
            install()
            y = torch.zeros(size, device="cuda", dtype=dtype)
            call(triton.jit(function), y)
            torch.cuda.synchronize()
            found.append(y)
        self.assertNotIn("compiled by Triton", cubind.triton.report())
        return found

    def check(self, *call, **others):
        own, ours = self.results(*call, **others)
        self.assertGreater(own.count_nonzero().item(), 0)
        self.assertTrue(torch.equal(own, ours), f"{own} {ours}")


class Results(Case):
    def test_numbers(self):
        arguments = (-5, 1 << 40, 0.1, 0.3, 0.7, 0.123456789123, True)
        self.check(numbers, lambda k, y: k[(1,)](y, *arguments), size=6, dtype=torch.float64)
        arguments = (100, -30000, 200, 60000, (1 << 32) - 1, (1 << 63) + 5)
        self.check(typed, lambda k, y: k[(1,)](y, *arguments), size=6, dtype=torch.float64)

    def test_tuples_and_none(self):
        self.check(pair, lambda k, y: k[(1,)](y, (self.x, 1.5), BLOCK=1024))
        self.check(optional, lambda k, y: k[(1,)](None, y, 1000, BLOCK=1024))

    def test_clusters_cooperative_and_dependent_launches(self):
        if torch.cuda.get_device_capability() < (9, 0):
            self.skipTest("needs compute capability 9.0")
        for options in ({"num_ctas": 2}, {"launch_cooperative_grid": True}, {"launch_pdl": True}):
            with self.subTest(options):
                self.check(doubled, functools.partial(self.double, **options))

    def double(self, kernel, y, **options):
        kernel[(4,)](self.x, y, 4000, BLOCK=1024, **options)

    def test_scratch_memory(self):
        triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.uint8, device="cuda"))
        self.check(shifted, lambda k, y: k[(4,)](self.x, y, 128, 32, BLOCK=32))

    def test_a_captured_launch(self):
        stub.install(stub.Daemon())
        kernel, y = triton.jit(doubled), torch.zeros_like(self.x)
        launch = lambda: kernel[(4,)](self.x, y, 4096, BLOCK=1024)  # noqa: E731
        launch()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        y.zero_()
        graph.replay()
        torch.testing.assert_close(y, self.x * 2)

    def test_memory_of_the_host_is_refused(self):
        stub.install(stub.Daemon())
        with self.assertRaisesRegex(ValueError, "cannot be accessed from Triton"):
            triton.jit(doubled)[(4,)](self.x.cpu(), self.x, 4096, BLOCK=1024)


class WithoutCompiler(unittest.TestCase):
    """A process with an empty cache."""

    def test_no_compiler_is_started(self):
        found = {}
        for launching, compiler in (("triton", None), ("cubind", "/nonexistent/cc")):
            told = found[launching] = self.run_program(launching, compiler)
            print(
                f"{launching}: the driver {told['driver']:.2f} s, {SIGNATURES} launchers and cubins "
                f"{told['launchers']:.2f} s, {told['libraries']} libraries compiled"
            )
        self.assertEqual(found["cubind"]["libraries"], 0)
        self.assertGreater(found["triton"]["libraries"], 0)

    def run_program(self, launching, compiler):
        environment = dict(os.environ)
        if compiler is not None:
            environment |= {"CC": compiler, "PATH": "/nonexistent"}
        command = [sys.executable, __file__, "program", launching]
        out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(out.stdout.splitlines()[-1])


class Time(Case):
    def test_a_launch_takes_no_longer(self):
        x, y = self.x, torch.empty_like(self.x)
        seconds = []
        for install in (cubind.triton.uninstall, lambda: stub.install(stub.Daemon())):
            install()
            kernel = triton.jit(doubled)
            launch = lambda k=kernel: k[(1,)](x, y, 1000, BLOCK=1024)  # noqa: E731
            compiled = launch()
            alone = lambda c=compiled: c[(1, 1, 1)](x, y, 1000, 1024)  # noqa: E731
            seconds.append((self.seconds(launch), self.seconds(alone)))
        (own, own_alone), (ours, ours_alone) = seconds
        print(
            f"a call: {1e6 * own:.2f} us, with cubind {1e6 * ours:.2f} us; "
            f"of a compiled kernel: {1e6 * own_alone:.2f} us, with cubind {1e6 * ours_alone:.2f} us"
        )
        self.assertLessEqual(ours_alone, own_alone * 1.05)

    def seconds(self, launch):
        best = float("inf")
        for _ in range(40):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(LAUNCHES // 20):
                launch()
            best = min(best, time.perf_counter() - started)
        return best / (LAUNCHES // 20)


def program(launching):
    """Launches kernels of several signatures, with an empty cache, and prints what that took."""
    if launching == "cubind":
        stub.install(stub.Daemon())
    started = time.perf_counter()
    driver.active.utils  # noqa: B018  made now
    made = time.perf_counter()
    x, y = torch.randn(1024, device="cuda"), torch.zeros(1024, device="cuda")
    types = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64)
    tensors = [(x.to(a), y.to(b)) for a in types for b in types][:SIGNATURES]
    kernel = triton.jit(doubled)
    compiled = [kernel.warmup(*pair, 1000, BLOCK=1024, grid=(1,)) for pair in tensors]
    before = time.perf_counter()
    for each in compiled:
        each._init_handles()
    after = time.perf_counter()
    kernel[(1,)](x, y, 1000, BLOCK=1024)
    torch.testing.assert_close(y[:1000], x[:1000] * 2)
    libraries = len([*pathlib.Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.so")])
    print(json.dumps({"driver": made - started, "launchers": after - before, "libraries": libraries}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["program"]:
        program(sys.argv[2])
    else:
        unittest.main()
