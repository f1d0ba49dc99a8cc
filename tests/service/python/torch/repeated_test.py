"""Calls of a kernel on tensors of torch that repeat an earlier one: launched without Python, with the checks
of the longer way. Tensors lie on the CPU and count as tensors in GPU memory here; launches go to a fake
driver, which reads no memory. Needs torch."""

import contextlib
import gc
import json
import math
import multiprocessing
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import running
import torch
from cubind import arrays

EPS = 1e-6
N, D = 4096, 4096

# y has to be zero before each launch.
COUNT = {
    "name": "count",
    "source": "count.cu",
    "problem": {"dims": {"N": "elements"}, "types": {"T": ["f32"]}, "bucket": {"N": "pow2"}},
    "tunables": {"THREADS": [128]},
    "default": [{"THREADS": 128}],
    "arguments": {
        "x": {"buffer": "T", "shape": ["N"], "role": "in", "fill": "normal"},
        "y": {"buffer": "T", "shape": ["N"], "role": "zero"},
        "N": {"scalar": "i64", "expr": "N"},
    },
    "launches": [
        {
            "entry": "count<{T}>",
            "arguments": ["x", "y", "N"],
            "grid": ["cdiv(N, THREADS)"],
            "block": ["THREADS"],
        }
    ],
    "reference": "default",
    "tolerance": {"f32": {"rtol": 1e-6, "atol": 0}},
}
FLAT = {
    **COUNT,
    "name": "flat",
    "arguments": {**COUNT["arguments"], "y": {"buffer": "T", "extent": "N", "role": "out"}},
}
COUNT_SOURCE = """
template <typename T>
__global__ void count(const T* x, T* y, long long N) {
  if (threadIdx.x < N) y[threadIdx.x] += x[threadIdx.x];
}
"""


def _on_gpu(facts_of):
    """facts_of() that takes the CPU for a GPU."""

    def facts(name, array):
        if not arrays.is_torch(array):
            return facts_of(name, array)
        dtype = arrays._CANONICAL[str(array.dtype).removeprefix("torch.")]
        return arrays.ArrayFacts(tuple(array.shape), dtype, array.is_contiguous(), None)

    return facts


class Repeated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for spec in (COUNT, FLAT):
            (folder / f"{spec['name']}.json").write_text(json.dumps(spec))
        (folder / "count.cu").write_text(COUNT_SOURCE)
        cls.daemon = cls.enterClassContext(running.Daemon("--kernels", folder))

    def setUp(self):
        self.client = self.enterContext(self.daemon.connect())
        self.enterContext(mock.patch.object(arrays, "facts_of", _on_gpu(arrays.facts_of)))
        self.kernel = self.client.kernel("rmsnorm_forward")
        self.x = torch.ones(N, D, dtype=torch.bfloat16)
        self.w = torch.ones(D, dtype=torch.bfloat16)
        self.y = torch.empty_like(self.x)

    @contextlib.contextmanager
    def longer_ways(self, count, kernel=None):
        """Fails unless so many of the calls within are checked by Python."""
        kernel = kernel or self.kernel
        with mock.patch.object(kernel, "_prepare", wraps=kernel._prepare) as prepare:
            yield
        self.assertEqual(prepare.call_count, count)

    def launches_of(self, call, parameters):
        """What the call returns, and its launches with so many parameters."""
        driver = running.FakeDriver(parameters)
        before = len(driver.launches())
        result = call()
        return result, driver.launches()[before:]

    def launch(self, parameters=5, kernel=None, **named):
        """The result of a call, and its only launch."""
        result, (launch,) = self.launches_of(lambda: (kernel or self.kernel)(**named), parameters)
        return result, launch

    def test_a_repeated_call_launches_the_same_with_its_own_arrays_and_scalars(self):
        _, first = self.launch(x=self.x, w=self.w, y=self.y, eps=EPS)
        x, y = self.x.clone(), self.y.clone()
        with self.longer_ways(0):
            result, launch = self.launch(x=x, w=self.w, y=y, eps=0.5)
        self.assertIsNone(result)
        self.assertEqual(list(launch.grid) + list(launch.block), list(first.grid) + list(first.block))
        self.assertEqual(
            list(launch.parameters[:4]), [x.data_ptr(), self.w.data_ptr(), y.data_ptr(), first.parameters[3]]
        )
        self.assertEqual((launch.parameters[4], launch.shared_bytes), (0x3F000000, first.shared_bytes))

    def test_outputs_that_are_left_out_are_new_each_time(self):
        x = self.x.view(2, N // 2, D)
        first, _ = self.launch(x=x, w=self.w, eps=EPS)
        with self.longer_ways(0):
            second, launch = self.launch(x=x, w=self.w, eps=EPS)
        self.assertEqual((second.shape, second.dtype, second.is_contiguous()), (x.shape, x.dtype, True))
        self.assertEqual(launch.parameters[2], second.data_ptr())
        self.assertNotEqual(first.data_ptr(), second.data_ptr())

    def test_several_outputs_are_a_tuple_and_scratch_memory_is_none_of_them(self):
        kernel = self.client.kernel("rmsnorm_backward")
        named = {"x": self.x, "w": self.w, "dy": self.y, "rstd": torch.ones(N)}
        first, launches = self.launches_of(lambda: kernel(**named), 3)
        with self.longer_ways(0, kernel):
            second, again = self.launches_of(lambda: kernel(**named), 3)
        self.assertEqual(len(again), len(launches))
        self.assertEqual([(t.shape, t.dtype) for t in second], [(t.shape, t.dtype) for t in first])

    def test_a_buffer_that_has_to_be_zero_is_cleared(self):
        kernel = self.client.kernel("count")
        x = torch.ones(100_000)
        kernel(x=x)
        with self.longer_ways(0, kernel):
            for _ in range(10):
                y = kernel(x=x)
                self.assertEqual(y.count_nonzero(), 0)
                y.fill_(1)  # what is allocated next may have this memory
                del y

    def test_an_input_without_elements_may_be_left_out(self):
        kernel = self.client.kernel("matmul", M=16, N=D, K=D)
        named = {"a": self.x[:16], "b": self.x}
        _, launches = self.launches_of(lambda: kernel(**named), 3)
        with self.longer_ways(0, kernel):
            c, again = self.launches_of(lambda: kernel(**named), 3)
        self.assertEqual((len(again), c.shape), (len(launches), (16, D)))

    def test_whatever_differs_goes_the_longer_way(self):
        named = {"x": self.x, "w": self.w, "y": self.y, "eps": EPS}
        self.kernel(**named, D=D, T="bf16")
        self.kernel(**named)
        half = {"x": self.x[:64], "y": self.y[:64]}
        others = {
            "other names": {**named, "N": N},
            "another order": {"w": self.w, **named},
            "another size": {**named, **half},
            "another type": {**{k: v.half() for k, v in named.items() if k != "eps"}, "eps": EPS},
            "another subclass": {**named, "x": self.x.as_subclass(type("Own", (torch.Tensor,), {}))},
            "a tensor for a scalar": {**named, "eps": torch.tensor(EPS)},
            "an address for a tensor": {**named, "y": 0x10000},
            "another type by its name": {**named, "D": D, "T": torch.bfloat16},
        }
        for name, other in others.items():
            with self.subTest(name), self.longer_ways(1):
                self.launch(**other)

    def test_parts_of_the_problem_are_compared_by_value(self):
        named = {"x": self.x, "w": self.w, "y": self.y, "eps": EPS}
        for kind in ("".join(("b", "f16")), torch.bfloat16):
            self.kernel(**named, N=int("4096"), T=kind)
            with self.longer_ways(0):
                self.kernel(
                    **named, N=int("4096"), T=kind if kind is torch.bfloat16 else "".join(("bf", "16"))
                )
        with self.longer_ways(2):  # a tensor for a number is converted each time
            for _ in range(2):
                _, launch = self.launch(**{**named, "eps": torch.tensor(0.5)})
                self.assertEqual(launch.parameters[4], 0x3F000000)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument x: .* with N = 4095"):
            self.kernel(**named, N=4095, T=torch.bfloat16)

    def test_what_was_refused_before_is_refused_with_the_same_words(self):
        named = {"x": self.x, "w": self.w, "y": self.y, "eps": EPS}
        odd = torch.empty(1 + N * D, dtype=torch.bfloat16)[1:].view(N, D)
        wrong = {
            "not contiguous": {"x": self.x.t()},
            "too small": {"w": self.w[:8]},
            "another type": {"y": self.y.float()},
            "not aligned": {"y": odd},
            "missing": {"x": None},
            "not an array": {"w": [1.0]},
            "no address": {"w": 1.5},
            "no aligned address": {"w": 3},
            "no number": {"eps": "much"},
            "unknown": {"z": self.x},
            "too large for an int": {"eps": 10**30},
        }

        def message(kernel, change):
            try:
                kernel(**{**named, **change})
            except (cubind.CubindError, TypeError, OverflowError) as error:
                return type(error), str(error)
            return None

        before = {
            name: message(self.client.kernel("rmsnorm_forward"), change) for name, change in wrong.items()
        }
        self.kernel(**named)
        self.kernel(**{**named, "w": self.w.data_ptr()})
        for name, change in wrong.items():
            with self.subTest(name):
                said, launches = self.launches_of(lambda change=change: message(self.kernel, change), 5)
                self.assertIsNotNone(said)
                self.assertEqual((said, launches), (before[name], []))

    def test_an_answer_that_may_improve_is_asked_for_again(self):
        for seconds, longer_ways in ((600.0, 0), (0.0, 1)):
            size = 1000 + longer_ways  # not measured
            named = {"x": torch.ones(7, size), "w": torch.ones(size), "eps": EPS}
            with mock.patch("cubind.client._UNSETTLED_FOR", seconds):
                self.kernel(**named)
                calls = self.client.calls
                with self.longer_ways(longer_ways):
                    self.kernel(**named)
            self.assertEqual(self.client.calls, calls + longer_ways)

    def test_sizes_and_variants_take_turns(self):
        shapes = (N, D), (2, N // 2, D), (N - 7, D), (1, D)  # the last one of another bucket
        given = [self.x.flatten()[: math.prod(shape)].view(shape) for shape in shapes]
        expected = [self.launch(x=x, w=self.w, eps=EPS) for x in given]
        with self.longer_ways(0):
            for x, (y, first) in zip(given, expected):
                again, launch = self.launch(x=x, w=self.w, eps=EPS)
                self.assertEqual((again.shape, launch.grid[:]), (y.shape, first.grid[:]))
                self.assertEqual((again.shape, launch.parameters[3]), (x.shape, x.numel() // D))
                self.assertEqual(launch.parameters[2], again.data_ptr())

    def test_types_take_turns(self):
        x, w = torch.ones(7, 1000), torch.ones(1000)
        for dtype in (torch.float32, torch.float16, torch.float32, torch.float16):
            self.kernel(x=x.to(dtype), w=w.to(dtype), eps=EPS)
        with self.longer_ways(0):
            for dtype in (torch.float32, torch.float16):
                y, _ = self.launch(x=x.to(dtype), w=w.to(dtype), eps=EPS)
                self.assertEqual(y.dtype, dtype)

    def test_without_shapes_in_the_spec_the_same_sizes_repeat(self):
        kernel = self.client.kernel("flat")
        for size in (1000, 1001):
            named = {"x": torch.ones(size), "N": size}
            kernel(**named)
            with self.longer_ways(0, kernel):
                y, launch = self.launch(3, kernel, **named)
            self.assertEqual((y.shape, list(launch.parameters[1:3])), ((size,), [y.data_ptr(), size]))
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument x"):
            kernel(x=torch.ones(8), N=1001)

    def test_a_launch_goes_to_the_stream_that_is_named(self):
        named = {"x": self.x, "w": self.w, "y": self.y, "eps": EPS}
        self.kernel(**named)
        with self.longer_ways(0):
            self.assertEqual([self.launch(**named, stream=s)[1].stream for s in (7, None, 8)], [7, 0, 8])
        with self.assertRaises(TypeError):
            self.kernel(**named, stream="seven")

    def test_who_looks_on_at_torch_sees_the_longer_way(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Observer(TorchDispatchMode):
            seen = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                Observer.seen += 1
                return func(*args, **(kwargs or {}))

        named = {"x": self.x, "w": self.w, "eps": EPS}
        self.kernel(**named)
        with self.longer_ways(1), Observer():
            self.kernel(**named)
        self.assertEqual(Observer.seen, 1)  # the output's memory
        with self.longer_ways(1), torch.autograd.forward_ad.dual_level():
            self.kernel(**named)
        with self.longer_ways(0), torch.autocast("cpu"), torch.no_grad():
            self.kernel(**named)
        with self.longer_ways(0), torch.inference_mode():
            self.assertTrue(self.kernel(**named).is_inference())

    def test_only_so_many_kinds_of_calls_are_kept(self):
        def launch(rows):
            self.kernel(x=self.x[:rows], w=self.w, y=self.y[:rows], eps=EPS, N=rows)

        for rows in range(2000, 2065):
            launch(rows)
        with self.longer_ways(0):
            launch(2064)
        with self.longer_ways(1):
            launch(2000)

    def test_a_repeated_call_keeps_nothing_alive(self):
        for _ in range(2):
            self.kernel(x=self.x, w=self.w, eps=EPS)
        counts = sys.getrefcount(self.x), sys.getrefcount(self.w)
        for _ in range(100):
            self.kernel(x=self.x, w=self.w, eps=EPS)
        gc.collect()
        self.assertEqual((sys.getrefcount(self.x), sys.getrefcount(self.w)), counts)

    def test_threads_share_what_is_known(self):
        def work(rows):
            for _ in range(200):
                y = self.kernel(x=self.x[:rows], w=self.w, eps=EPS)
                self.assertEqual(y.shape, (rows, D))

        running.together(work, (1100, 1200, 1300, 1400))

    def test_a_forked_child_loads_for_itself(self):
        self.kernel(x=self.x, w=self.w, eps=EPS)
        fork = multiprocessing.get_context("fork")

        def work():
            os._exit(1 if self.kernel._repeated else 0)

        child = fork.Process(target=work)
        child.start()
        child.join(running.PATIENCE)
        self.assertEqual(child.exitcode, 0)
