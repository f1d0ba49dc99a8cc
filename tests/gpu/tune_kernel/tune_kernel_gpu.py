"""cubind.tune_kernel() on a GPU: the walk of docs/python.md, and what no recording shows.

    PYTHONPATH=PACKAGE:tests/gpu/lend python tests/gpu/tune_kernel/tune_kernel_gpu.py CLASS

Needs a GPU that no other process uses, torch, CuPy, kernel_tuner and the package cubind. Each class of tests
runs in a process of its own: Script in one that has not used the GPU itself.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import cubind
import cupy
import numpy as np
import torch
from beside import SKIPPED, daemon
from cubind import programs

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(SKIPPED)

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"
N = 1_000_000
X = np.random.default_rng(3).standard_normal(N, dtype=np.float32)
BLOCKS = {"block_size_x": [64, 128, 256]}
CHANGED_IN_PLACE = """
extern "C" __global__ void change(float* x, int n) {
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
"""
SUM = """
extern "C" __global__ void add_up(float* sum, const float* x, long long n) {
  __shared__ float parts[block_size_x];
  float own = 0;
  for (long long i = blockIdx.x * (long long)block_size_x + threadIdx.x; i < n; i += (long long)blocks * block_size_x)
    own += x[i];
  parts[threadIdx.x] = own;
  __syncthreads();
  for (int half = block_size_x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, parts[0]);
}
"""
WRONG_FOR_128 = CHANGED_IN_PLACE.replace("+ 1", "+ (block_size_x == 128 ? 2 : 1)")
TEMPLATED = """
__constant__ float factors[4];
template <typename T>
__global__ void scale(T* y, const T* x, int n, float add) {
  __shared__ char large[large_bytes];
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) y[i] = x[i] * factors[i % 4] + add;
  if (n < 0) y[0] = large[i & 63];
}
"""


def blocks(program):
    """The blocks of Python in the docs' section on kernels of one's own."""
    section = DOCS.read_text().partition("## A kernel of your own")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[program]


class OnGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.address = cls.enterClassContext(daemon())
        os.environ["CUBIND_ADDRESS"] = cls.address
        cls.client = cls.enterClassContext(cubind.connect(cls.address, timeout=60))

    def tune(self, *given, **options):
        start = time.perf_counter()
        result = cubind.tune_kernel(*given, **options, client=self.client, progress=False)
        print(f"{result!r} {time.perf_counter() - start:.2f} s")
        return result

    def change(self, x=X, source=CHANGED_IN_PLACE, answer=2 * X + 1, **options):
        return self.tune("change", source, N, [x, np.int32(N)], BLOCKS, answer=[answer, None], **options)

    def check(self, spec, result):
        """By the command for kernels in folders."""
        command = [programs.program("cubindctl"), "--address", self.address, "kernels", "check", spec]
        command += ["--problem", ",".join(f"{name}={value}" for name, value in result.problem.items())]
        checked = subprocess.run(command, capture_output=True, text=True, env=programs.environment())
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def outcomes(self, result):
        return {row["block_size_x"]: row["outcome"] for row in result.trials}


class Script(OnGpu):
    def test_a_script_of_kernel_tuner(self):
        script = (
            "import numpy, json\nfrom kernel_tuner import tune_kernel\n"
            f"source = '''{CHANGED_IN_PLACE}'''\n"
            f"x = numpy.arange({N}).astype(numpy.float32)\n"
            f"results, env = tune_kernel('change', source, {N}, [x, numpy.int32({N})],\n"
            f"    {BLOCKS}, answer=[2 * x + 1, None], metrics={{'twice': lambda p: 2 * p['time']}})\n"
            "print(json.dumps([len(results), env['best_config'], env['cubind_kernel']]))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "script.py").write_text(script)
            done = subprocess.run(
                [sys.executable, "-m", "cubind.kernel_tuner", "script.py"],
                cwd=folder,
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        count, best, kernel = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(count, 3)
        self.assertAlmostEqual(best["twice"], 2 * best["time"])
        print(kernel, best["block_size_x"], best["time"], "ms")


class Walk(OnGpu):
    def test_1_the_walk_of_the_docs(self):
        said = io.StringIO()
        start = time.perf_counter()
        names = {}
        with contextlib.redirect_stdout(said):
            exec(blocks(0), names)
        result, a, b = names["result"], names["a"], names["b"]
        print(f"{result!r} {time.perf_counter() - start:.2f} s, default/winner {result.speedup:.2f}")
        self.assertIn("c: read and written; a, b, n: read", said.getvalue())
        self.assertLessEqual({row["outcome"] for row in result.trials}, {"correct", "unverified"})
        self.assertGreaterEqual(result.speedup, 1)
        self.assertIn("winner", result.explain())
        print(result.explain())
        self.assertEqual(len(result.to_pandas()), len(result.trials))
        self.assertIn("<iframe", result._repr_html_())
        out = os.environ.get("OUT", "")
        with tempfile.TemporaryDirectory() as folder:
            result.report(pathlib.Path(out or folder, "add_arrays.html"))
            spec = result.save(folder)
            self.check(spec, result)
            if out:
                shutil.copy(spec.parent / "tables" / spec.name, out)
        on_gpu = [torch.from_numpy(each).cuda() for each in (np.zeros_like(a), a, b)]
        result.kernel(**dict(zip("cab", on_gpu)))
        np.testing.assert_array_equal(on_gpu[0].cpu().numpy(), a + b)


class Launches(OnGpu):
    def test_arrays_of_torch_and_cupy_are_launched_and_numpys_refused(self):
        result = self.change()
        on_torch, on_cupy = torch.from_numpy(X.copy()).cuda(), cupy.asarray(X)
        result.kernel(x=on_torch)
        result.kernel(x=on_cupy)
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(on_torch.cpu().numpy(), 2 * X + 1)
        np.testing.assert_array_equal(on_cupy.get(), 2 * X + 1)
        with self.assertRaises(cubind.InvalidArgumentError) as raised:
            result.kernel(x=X.copy())
        print("numpy:", raised.exception)

    def test_arrays_of_torch_and_cupy_are_arguments(self):
        for x in torch.from_numpy(X).cuda(), cupy.asarray(X), torch.from_numpy(X):
            self.assertEqual({*self.outcomes(self.change(x)).values()}, {"correct"})


class Measured(OnGpu):
    def test_a_written_array_has_its_content_again_before_each_launch(self):
        self.assertEqual({*self.outcomes(self.change()).values()}, {"correct"})

    def test_a_wrong_configuration_is_found_with_an_answer_and_without(self):
        expected = {64: "correct", 128: "wrong_result", 256: "correct"}
        self.assertEqual(self.outcomes(self.change(source=WRONG_FOR_128)), expected)
        alone = self.tune("change", WRONG_FOR_128, N, [X, np.int32(N)], BLOCKS)
        self.assertEqual(self.outcomes(alone), expected)
        self.assertIn("compared with those of the default configuration alone", alone.notes[-1])

    def test_a_wrong_answer_leaves_nothing_to_win(self):
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "no configuration survived") as raised:
            self.change(answer=2 * X)
        print("wrong answer:", raised.exception)

    def test_constants_templates_and_what_does_not_launch(self):
        factors = np.array([1, 2, 3, 4], np.float32)
        expected = (X * np.tile(factors, N // 4) + np.float32(0.5)).astype(np.float32)
        result = self.tune(
            "scale<float>",
            TEMPLATED,
            N,
            [np.zeros_like(X), X, np.int32(N), np.float32(0.5)],
            {**BLOCKS, "large_bytes": [64, 300_000]},
            cmem_args={"factors": factors},
            answer=[expected, None, None, None],
        )
        outcomes = {row["large_bytes"]: row["outcome"] for row in result.trials}
        self.assertEqual(outcomes[64], "correct")
        self.assertNotEqual(outcomes.get(300_000, "left out"), "correct")
        y, x = cupy.zeros(N, cupy.float32), cupy.asarray(X)
        result.kernel(y=y, x=x, factors=cupy.asarray(factors), add=0.5)
        np.testing.assert_allclose(y.get(), expected, rtol=1e-6, atol=1e-6)  # one rounding, NumPy has two

    def test_three_gigabytes_are_summed(self):
        x = np.random.default_rng(4).random(750_000_000, dtype=np.float32)
        total = np.array([x.sum(dtype=np.float64)], np.float32)
        values = {"block_size_x": [256, 512, 1024], "blocks": [264, 1056]}
        result = self.tune(
            "add_up", SUM, len(x), [np.zeros(1, np.float32), x, np.int64(len(x))], values,
            grid=["blocks"], answer=[total, None, None],
        )  # fmt: skip
        self.assertEqual({row["outcome"] for row in result.trials}, {"correct"})
        print(f"{x.nbytes / result.time_us / 1e6:.2f} TB/s")
        with tempfile.TemporaryDirectory() as folder:
            spec = result.save(folder)
            self.assertEqual(spec.with_name("x.npy.data").stat().st_size, x.nbytes)
            self.check(spec, result)
        on_gpu = torch.from_numpy(x).cuda()
        got = result.kernel(sum=torch.zeros(1, device="cuda"), x=on_gpu)
        print("launched:", got, "expected:", total)


if __name__ == "__main__":
    unittest.main(verbosity=2)
