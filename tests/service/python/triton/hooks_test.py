"""Configurations with a pre_hook: what it clears is a part of them. Anything else stays Triton's own."""

import json

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import cubind
import cubind.triton
import running
import torch
import triton
import triton.language as tl
import triton_stub as stub
from triton_stub import grid


def split(x, y, N, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if SPLIT > 1:
        tl.atomic_add(y + at, tl.load(x + at, mask=at < N) / SPLIT, mask=at < N)
    else:
        tl.store(y + at, tl.load(x + at, mask=at < N), mask=at < N)


@triton.jit
def other(y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), 0.0)


def clears_split(values):
    if values["SPLIT"] > 1:
        values["y"].zero_()


def clears(values):
    for name in ("y", "missing"):
        if values.get(name) is not None:
            values[name].fill_(0)


def kernel(hook, splits=(1, 4)):
    configs = [triton.Config({"SPLIT": n, "BLOCK": 128}, pre_hook=hook) for n in splits]
    return triton.autotune(configs, ["N"])(triton.jit(split))


class Case(stub.Case):
    def setUp(self):
        super().setUp()
        self.x, self.y = torch.ones(1000), torch.ones(1000)

    def spec(self, hook, splits=(1, 4)):
        return stub.spec_of(stub.question_of(kernel(hook, splits), self.x, self.y, 1000, grid=grid))

    def output(self, *others):
        return json.loads(self.spec(*others).json)["arguments"]["y"]

    def reason(self, hook):
        """Why the kernel is tuned by Triton."""
        stub.install(stub.Daemon(1))
        kernel(hook)[grid](self.x, self.y, 1000)
        self.assertEqual(stub.Driver.benchmarked, 2)
        stub.forget()
        return cubind.triton.report()


class Cleared(Case):
    def test_a_tensor_that_every_hook_clears_is_cleared_and_its_time_counts(self):
        output = self.output(clears)
        self.assertEqual((output["role"], output["timed"]), ("zero", True))

    def test_one_that_some_clear_has_their_numbers(self):
        output = self.output(clears_split, (1, 2, 4))
        self.assertEqual((output["role"], output["timed"]), ("zero", [1, 2]))

    def test_what_is_cleared_is_part_of_the_name(self):
        names = {self.spec(hook).name for hook in (clears, clears_split)}
        self.assertEqual(len(names), 2)

    def test_the_daemon_takes_such_kernels(self):
        with running.Daemon() as daemon, daemon.connect() as client:
            for hook in (clears, clears_split):
                spec = self.spec(hook)
                stub.define(client, spec)
                self.assertIn(spec.name, {each["name"] for each in client.kernels(defined=True)})

    def test_the_program_calls_the_hook_before_its_own_launch_alone(self):
        seen = []

        def hook(values):
            seen.append(values["y"] is self.y)
            values["y"].zero_()

        stub.install(stub.Daemon(1))
        kernel(hook)[grid](self.x, self.y, 1000)
        self.assertEqual((seen, float(self.y.sum())), ([False, False, True], 0.0))
        self.assertIn("served 1", cubind.triton.report())


class TritonsOwn(Case):
    def test_a_hook_that_does_anything_else_is_named_by_what_it_does(self):
        for hook, reason in (
            (lambda values: values["y"][:10].zero_(), "calls aten.slice.Tensor"),
            (lambda values: values["y"].mul_(0), "calls aten.mul_.Tensor"),
            (lambda values: values["y"].fill_(float("inf")), "fills y with inf"),
            (lambda values: values["x"].sum().item() and values["y"].zero_(), "calls aten.sum.default"),
            (lambda values: values["y"].numpy(), "fails without tensors"),
            (lambda values: torch.zeros(3), "calls aten.zeros.default"),
            (lambda values: values["y"].is_cuda and values["y"].zero_(), "asks tensors for their device"),
            (lambda values: values["y"].device.index or values["y"].zero_(), "asks tensors for their device"),
            (lambda values: other[(1,)](values["y"], BLOCK=16), "uses the addresses of tensors"),
        ):
            self.assertIn(f"it has a pre_hook that {reason}", self.reason(hook))

    def test_a_tensor_that_some_clear_and_others_add_to(self):
        def hook(values):
            if values["SPLIT"] == 4:
                values["y"].zero_()

        stub.install(daemon := stub.Daemon(1))
        kernel(hook, (2, 4))[grid](self.x, self.y, 1000)
        self.assertEqual((len(daemon.definitions), stub.Driver.benchmarked), (0, 2))
        self.assertIn("a pre_hook that clears y for some configurations alone", cubind.triton.report())

    def test_setting_a_descriptors_block_is_none_of_the_reasons(self):
        def hook(values):
            values["x"].block_shape = [values["BLOCK"]]

        tensor_descriptor = __import__("triton.tools.tensor_descriptor", fromlist=["TensorDescriptor"])
        self.x = tensor_descriptor.TensorDescriptor(self.x, [1000], [1], [64])

        def copies(x, y, N, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
            tl.store(y + tl.arange(0, BLOCK), x.load([0]))

        configs = [triton.Config({"SPLIT": n, "BLOCK": 64}, pre_hook=hook) for n in (1, 2)]
        stub.install(stub.Daemon(1))
        triton.autotune(configs, ["N"])(triton.jit(copies))[(1,)](self.x, self.y, 1000)
        self.assertIn("has an argument x of type tensordesc<fp32[64]>", cubind.triton.report())
