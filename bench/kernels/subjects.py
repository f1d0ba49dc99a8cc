"""What is measured at a problem, by family: the buffers, the truth, and the calls to compare with.

A subject has the kernel's `tensors` and `scalars` by name, the `outputs` among them, what a launch moves
(`work_bytes`) and computes (`flops`), and `others`: by name a function that makes a call. A call fills the
outputs, or returns tensors in their order. `worst` compares such tensors with float64, element by element.
"""

import itertools

import packed_operands
import torch
import triton_kernels
from attention import BACKENDS, PASSES
from layers import LAYERS
from operations import OPERATIONS, TYPE_NAMES, excess, worst_excess
from products import GUARD, PRODUCTS
from spec import expression


def work(spec, problem, what):
    return expression(spec.fields["work"][what])(spec.values_of(problem))


class Subject:
    """`copied_bytes` is what the copy next to the calls reads, half of what the kernel moves, or nothing."""

    copied_bytes = None

    def __init__(self, spec, problem):
        self.spec, self.problem = spec, problem
        self.kernel = spec.fields["name"]
        self.work_bytes, self.flops = (work(spec, problem, what) for what in ("bytes", "flops"))

    def clear(self):
        """An element that a call does not write is NaN."""
        for output in self.outputs.values():
            output.fill_(float("nan"))

    def triton_configuration(self):
        return None


class Rows(Subject):
    def __init__(self, spec, problem):
        super().__init__(spec, problem)
        self.operation = OPERATIONS[self.kernel]
        self.inputs = self.operation.inputs_of(problem)
        self.outputs = self.operation.outputs_of(problem)
        self.tensors = {**self.inputs, **self.outputs}
        self.scalars = self.operation.scalars
        self.copied_bytes = max(16, self.work_bytes // 2 // 16 * 16)

    def others(self):
        return {"torch": self.torch, "torch_compile": self.torch_compile, "triton": self.triton}

    def torch(self):
        return lambda: self.operation.eager(self.inputs)

    def torch_compile(self):
        torch._dynamo.reset()
        compiled = torch.compile(self.operation.formula, dynamic=False)
        return lambda: compiled(self.inputs)

    def triton(self):
        return lambda: triton_kernels.CALLS[self.kernel](self.tensors)

    def triton_configuration(self):
        return triton_kernels.chosen(self.kernel, self.problem["D"])

    def worst(self, results):
        written = {
            name: result.reshape(output.shape)
            for (name, output), result in zip(self.outputs.items(), results, strict=True)
        }
        return worst_excess(self.operation, self.inputs, written, self.spec.tolerance)


class Whole(Subject):
    """Its truth is computed once. Outputs have elements behind them that are not theirs, and torch may have
    fewer of them."""

    def __init__(self, spec, problem, operands):
        super().__init__(spec, problem)
        self.operands = operands
        self.tensors, self.outputs, self.scalars = operands.buffers, operands.outputs, operands.scalars
        self.truth = operands.truth()

    def worst(self, results):
        return {
            name: self.worst_of(name, output, truth.double())
            for (name, truth), output in zip(self.truth.items(), results)
        }

    def worst_of(self, name, output, truth):
        if output.numel() > truth.numel():  # the kernel's own
            output = output[:-GUARD]
        bounds = self.spec.tolerance(TYPE_NAMES[output.dtype], name, self.problem)
        return excess(output.reshape(truth.shape), truth, bounds)


class Product(Whole):
    def __init__(self, spec, problem):
        super().__init__(spec, problem, {**PRODUCTS, **LAYERS}[spec.fields["name"]](problem, 1))

    def others(self):
        makes = {"torch": self.operands.torch_call}
        if hasattr(self.operands, "torch_compiled_call"):
            makes["torch_compile"] = self.operands.torch_compiled_call
        return makes


class Attention(Whole):
    def __init__(self, spec, problem):
        direction = PASSES[spec.fields["name"].removeprefix("flash_attention_")]
        super().__init__(spec, problem, direction(problem, 1))
        self.flops = self.operands.flops()  # as usual, without the masked half

    def others(self):
        return {
            name.replace(" ", "_"): lambda backend=backend: self.operands.torch_call(backend)
            for name, backend in BACKENDS.items()
        }


class PackedAttention(Whole):
    """Sequences whose lengths are next to each other."""

    def __init__(self, spec, problem):
        direction = packed_operands.PASSES[spec.fields["name"].removeprefix("flash_attention_packed_")]
        ends = [problem["SQ"] * i // problem["N"] for i in range(problem["N"] + 1)]
        sequences = [(b - a, b - a, 0) for a, b in itertools.pairwise(ends)]
        super().__init__(spec, problem, direction(problem, sequences, 1))
        self.flops = self.operands.flops()

    def others(self):
        return {"varlen_attn": packed_operands.competitors(self.operands)["varlen_attn"]}


def subject(spec, problem):
    name = spec.fields["name"]
    if name in OPERATIONS:
        return Rows(spec, problem)
    if name.startswith("flash_attention_packed"):
        return PackedAttention(spec, problem)
    return Attention(spec, problem) if name.startswith("flash_attention") else Product(spec, problem)
