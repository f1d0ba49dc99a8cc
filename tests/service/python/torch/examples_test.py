"""The examples of python/examples run, on the CPU with torch's formulas. Needs torch."""

import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import running

EXAMPLES = running.SOURCE / "python/examples"


def run(name, check=True):
    return running.run_python_for_both(["-B", EXAMPLES / name], fake_driver=False, check=check)


class Examples(unittest.TestCase):
    def test_a_transformer_trains_as_with_torch(self):
        result = run("train.py")
        self.assertIn("Linear replaced", result.stdout)
        self.assertIn("the losses differ by at most 0.", result.stdout)

    def test_a_kernel_of_ones_own_is_an_operator(self):
        result = run("own_kernel.py")
        self.assertIn("as torch's", result.stdout)
        lines = [line for line in (EXAMPLES / "own_kernel.py").read_text().splitlines() if line]
        self.assertLessEqual(len(lines), 40)

    def test_its_kernels_compile_and_are_launched_with_their_arguments(self):
        with running.Daemon("--kernels", EXAMPLES / "squared_relu") as daemon:
            driver = running.FakeDriver(parameters=3)
            with daemon.connect() as client:
                x, dy, y = (
                    running.FakeArray(address, (1000, 77)) for address in (0x10000, 0x80000, 0x100000)
                )
                question = cubind.Question(device="nvidia-h200")
                client.kernel("squared_relu", T="f32", question=question)(x=x, y=y)
                client.kernel("squared_relu_backward", T="f32", question=question)(x=x, dy=dy, dx=y)
            self.assertEqual([launch.parameters[2] for launch in driver.launches()], [77000, 0x100000])

    def test_without_a_gpu_there_are_no_graphs_to_show(self):
        result = run("generate.py", check=False)
        self.assertEqual(
            (result.returncode, result.stdout), (77, "no GPU: there are no CUDA graphs to show\n")
        )
