"""cubind.triton on a GPU: choices of a daemon are launched, and the compile worker's cubin with its launch
facts is all that a launch needs.

    tests=tests/service/python
    PYTHONPATH=build/ci/python:$tests/support:$tests/triton python tests/gpu/triton/triton_gpu.py [CLASS]

Needs a GPU, torch, Triton 3.4 to 3.9 and the package cubind.
"""

import ctypes
import os
import pathlib
import sys
import time
import unittest
import unittest.mock

import python_found

python_found.require("torch", "triton")
import triton_found  # noqa: E402, F401

# isort: split
import cubind.triton  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
import triton_grouped as moe  # noqa: E402
import triton_kernels  # noqa: E402
import triton_stub as stub  # noqa: E402
from cubind import programs  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402
from triton_running import Worker  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench/common"))
from daemon import Daemon  # noqa: E402

LAUNCHES = 2000

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(python_found.SKIPPED)


def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    most = -float("inf")
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.max(tl.load(x + row * N + at, mask=at < N, other=-float("inf")), 0))
    total = 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.exp(tl.load(x + row * N + at, mask=at < N, other=-float("inf")) - most), 0)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.exp(tl.load(x + row * N + at, mask=at < N) - most) / total
        tl.store(y + row * N + at, value, mask=at < N)


def count(x, counts, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + at, mask=at < N, other=0), 1, mask=at < N)


def tuned(function, *blocks, **others):
    configs = stub.configurations(*(blocks or (256, 1024)))
    return triton.autotune(configs=configs, key=["N"], **others)(triton.jit(function))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.addCleanup(cubind.triton.uninstall)
        self.x = torch.randn(512, 3000, device="cuda")
        self.y = torch.empty_like(self.x)

    def install(self, answer=None):
        daemon = stub.Daemon(answer)
        stub.install(daemon)
        return daemon

    def start_daemon(self):
        """The address of one that measures although this process uses the GPU."""
        options = ["--tune-when", "always", "--triton-python", sys.executable]
        bin_dir, environment = programs.program("cubind").parent, programs.environment()
        return self.enterContext(Daemon(bin_dir, options, environment=environment)).address

    def softmax(self, kernel):
        self.y.zero_()
        kernel[(512,)](self.x, self.y, 3000)
        torch.testing.assert_close(self.y, self.x.softmax(-1))


class Choices(Case):
    def test_the_daemons_choice_is_launched(self):
        for answer, block in ((0, 256), (1, 1024)):
            self.install(answer)
            kernel = tuned(softmax)
            self.softmax(kernel)
            self.assertEqual(kernel.best_config.kwargs, {"BLOCK": block})
            self.assertFalse(hasattr(kernel, "configs_timings"))

    def test_a_daemon_tunes_the_kernel_while_the_call_waits(self):
        client = self.enterContext(cubind.connect(self.start_daemon()))
        cubind.triton.install(client, on_miss="wait", timeout=300)
        kernel = tuned(softmax)
        self.softmax(kernel)
        self.assertIn("softmax: asked 1, served 1, tuning 0", cubind.triton.report())
        self.assertFalse(hasattr(kernel, "configs_timings"))

    def test_what_runs_while_a_daemon_tunes_is_right_too(self):
        client = self.enterContext(cubind.connect(self.start_daemon()))
        cubind.triton.install(client, on_miss="serve")
        kernel = tuned(softmax, 128, 512)
        for _ in range(600):
            self.softmax(kernel)
            if "served 1" in cubind.triton.report():
                break
            time.sleep(0.1)
        self.assertIn("served 1, tuning 0", cubind.triton.report())
        self.softmax(kernel)

    def test_without_one_triton_measures(self):
        self.install()
        kernel = tuned(softmax)
        self.softmax(kernel)
        self.assertEqual(len(kernel.configs_timings), 2)

    def test_what_triton_resets_is_right_with_and_without_a_choice(self):
        index = torch.randint(0, 50, (10000,), device="cuda", dtype=torch.int32)
        for answer in (None, 0):
            daemon = self.install(answer)
            counts = torch.zeros(50, device="cuda", dtype=torch.int32)
            kernel = tuned(count, reset_to_zero=["counts"])
            kernel[lambda v: (triton.cdiv(10000, v["BLOCK"]),)](index, counts, 10000)
            self.assertEqual(counts.tolist(), torch.bincount(index, minlength=50).tolist())
        (found,) = daemon.definitions.values()
        x, given = found.arguments[:2]
        self.assertEqual((x.contents.least, x.contents.most, given.role), (0, 49, "inout"))

    def test_a_known_choice_is_captured_in_a_graph(self):
        self.install(1)
        kernel = tuned(softmax)
        self.softmax(kernel)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel[(512,)](self.x, self.y, 3000)
        self.y.zero_()
        graph.replay()
        torch.testing.assert_close(self.y, self.x.softmax(-1))

    def test_a_launch_with_a_choice_costs_less_than_a_microsecond_more(self):
        kernel = tuned(softmax, 4096, 8192)
        self.install(1)
        self.softmax(kernel)
        asking = self.launch_seconds(kernel)
        known = dict(kernel.cache)
        cubind.triton.uninstall()
        kernel.cache = known
        plain = self.launch_seconds(kernel)
        print(f"a launch: {1e6 * plain:.2f} us, with cubind {1e6 * asking:.2f} us")
        self.assertLess(asking - plain, 1e-6)

    def launch_seconds(self, kernel):
        best = float("inf")
        x, y = self.x[:1], self.y[:1]
        for _ in range(20):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(LAUNCHES // 20):
                kernel[(1,)](x, y, 3000)
            best = min(best, time.perf_counter() - started)
        return best / (LAUNCHES // 20)


class Contents(Case):
    """A kernel whose programs write the same rows unless its tables are those of the call."""

    EXPERTS, EACH, COLUMNS = 64, 1024, 256

    def report(self, mode):
        """What became of a call, whose result is right in any case."""
        client = self.enterContext(cubind.connect(self.start_daemon()))
        x = torch.randn(self.EXPERTS, self.EACH, moe.WIDTH, device="cuda")
        w = torch.randn(self.EXPERTS, moe.WIDTH, self.COLUMNS, device="cuda")
        y = torch.zeros(self.EXPERTS, self.EACH, self.COLUMNS, device="cuda")
        tables = [table.cuda() for table in moe.tables([self.EACH] * self.EXPERTS)]
        with unittest.mock.patch.dict(os.environ, CUBIND_TRITON_CONTENTS=mode):
            cubind.triton.install(client, on_miss="wait", timeout=300)
            launched = moe.tuned()[moe.grid(len(tables[0]))]
            launched(x, w, *tables, y, self.COLUMNS, ROWS=moe.ROWS, K=moe.WIDTH)
        torch.testing.assert_close(y.double(), x.double() @ w.double(), rtol=1e-4, atol=1e-4)
        return cubind.triton.report()

    def test_with_drawn_tables_no_configuration_can_be_compared(self):
        self.assertIn("grouped: asked 1, served 0, tuning 0", self.report("0"))

    def test_with_the_tables_of_the_call_it_is_tuned(self):
        self.assertIn("grouped: asked 1, served 1, tuning 0", self.report(""))


class Compiled(Case):
    """By the worker, and launched by the driver's interface alone."""

    @classmethod
    def setUpClass(cls):
        major, minor = torch.cuda.get_device_capability()
        cls.architecture = f"sm_{major}{minor}"
        cls.worker = cls.enterClassContext(Worker())

    def test_a_launch_needs_the_facts_alone(self):
        daemon = self.install(0)
        tuned(softmax)[(512,)](self.x, self.y, 3000)
        (found,) = daemon.definitions.values()
        for chosen in found.configurations:
            self.y.zero_()
            arguments = [self.x.data_ptr(), self.y.data_ptr(), 3000]
            self.launch(found.texts[chosen.ttir], chosen.options, chosen.grid, arguments, "ppi")
            torch.testing.assert_close(self.y, self.x.softmax(-1))

    def test_scratch_memory_is_a_part_per_block(self):
        case = triton_kernels.CASES["descriptors"]
        ttir = stub.module_of(case, driver.active.get_current_target()).str_nodebug().encode()
        x = torch.randn(64, 32, device="cuda")
        y = torch.zeros_like(x)
        self.launch(ttir, {}, (2, 1, 1), [x.data_ptr(), y.data_ptr(), 64, 32], "ppii")
        torch.testing.assert_close(y, x + 1)

    def launch(self, ttir, options, grid, arguments, kinds):
        reply, cubin = self.worker.compile(ttir, self.architecture, options)
        self.assertEqual(reply["outcome"], "correct", reply["log"])
        facts = reply["launch"]
        _, function, *_ = driver.active.utils.load_binary(
            facts["entry"], cubin, facts["shared_bytes"], torch.cuda.current_device()
        )
        blocks = grid[0] * grid[1] * grid[2] * facts["cluster"][0]
        scratch = torch.zeros(
            max(1, blocks * facts["global_scratch_bytes"]), dtype=torch.uint8, device="cuda"
        )
        values = [
            (ctypes.c_uint64 if kind == "p" else ctypes.c_int32)(value)
            for kind, value in zip(kinds, arguments)
        ]
        pointers = [ctypes.c_uint64(scratch.data_ptr()), ctypes.c_uint64(0)]
        values += pointers[: len(facts["parameters"]) - len(values)]
        packed = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = torch.cuda.current_stream().cuda_stream
        status = ctypes.CDLL("libcuda.so.1").cuLaunchKernel(
            ctypes.c_void_p(function),
            *(ctypes.c_uint(size) for size in (*grid, facts["threads"], 1, 1, facts["shared_bytes"])),
            ctypes.c_void_p(stream),
            packed,
            None,
        )
        self.assertEqual(status, 0)
        torch.cuda.synchronize()


if __name__ == "__main__":
    unittest.main()
