"""bench/llama_block with a small block on the CPU, and whether its checks can fail. Needs torch."""

import dataclasses
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import running
import torch

BENCH = running.SOURCE / "bench/llama_block"
sys.path.append(str(BENCH))
block, checks, tuned = (importlib.import_module(name) for name in ("block", "checks", "tuned"))


class Small(unittest.TestCase):
    def test_all_sides_of_the_cpu_compute_and_train_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            found = pathlib.Path(folder, "results.json")
            command = [sys.executable, "-B", BENCH, "--linear", "--backend", "aot_eager", "--rounds", "2"]
            result = subprocess.run(
                [*command, "--json", found],
                env={**running.WITHOUT_DRIVER, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=8 * running.PATIENCE,
            )
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            results = json.loads(found.read_text())
        sides = {"torch", "torch_compile", "cubind", "cubind_compile", "cubind_linear_compile"}
        self.assertEqual(results["failed"], {"liger": "there is no GPU"})
        self.assertEqual((set(results["ms"]), set(results["losses"])), (sides, sides))
        self.assertEqual({len(curve) for curve in results["losses"].values()}, {50})
        self.assertTrue(all(curve[-1] < curve[0] - 1 for curve in results["losses"].values()))
        self.assertIn("| cubind_compile |", result.stdout)


class Checks(unittest.TestCase):
    def test_an_operator_that_computes_something_else_is_found(self):
        def attend_to_all(q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        both = checks.Pass(block.SMALL, "cpu", torch.float32)
        model = block.make_model(block.SMALL, block.TORCH, "cpu", torch.float32)
        self.assertLessEqual(both.worst_excess(model.block), 1)
        wrong = dataclasses.replace(block.TORCH, attend=attend_to_all)
        model = block.make_model(block.SMALL, wrong, "cpu", torch.float32)
        self.assertGreater(both.worst_excess(model.block), 100)

    def test_losses_that_go_apart_are_found(self):
        theirs = [4.0 - 0.05 * step for step in range(50)]
        curves = {"torch": theirs, "torch_compile": theirs, "cubind": list(theirs)}
        self.assertTrue(checks.compare_losses(curves, torch.bfloat16)["right"])
        curves["cubind"][20] += 0.02
        self.assertFalse(checks.compare_losses(curves, torch.bfloat16)["right"])
        curves["torch"] = [loss + 0.01 for loss in theirs]  # what rounding does to torch's own
        self.assertTrue(checks.compare_losses(curves, torch.bfloat16)["right"])
        still = dict.fromkeys(curves, theirs[:1] * 50)
        self.assertFalse(checks.compare_losses(still, torch.bfloat16)["right"])


class Problems(unittest.TestCase):
    def test_the_problems_to_tune_are_ones_that_the_kernels_have(self):
        with (
            running.Daemon() as daemon,
            daemon.connect() as client,
        ):
            kernels = {kernel["name"]: kernel for kernel in client.kernels()}
        listed = tuned.problems(block.LLAMA, linear=True)
        self.assertEqual(len(listed), 13)
        for problem in listed:
            names = [name for name in problem if name not in ("kernel", "T")]
            kernel = kernels[problem["kernel"]]
            flags = [flag["name"] for flag in kernel.get("flags", ())]
            with self.subTest(problem["kernel"]):
                self.assertLessEqual(set(names), {*kernel["dims"], *flags})
                self.assertLessEqual(set(kernel["dims"]), set(names))
