"""Definitions of calls of autotuned Triton kernels: what is in them, and what tells kernels apart."""

import dataclasses
import os
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import running
import triton
import triton.language as tl
import triton_kernels
import triton_stub as stub
from cubind.triton import definition as d
from triton.backends.compiler import GPUTarget
from triton.language.extra.cuda import num_warps
from triton_running import Worker


def scale(x, y, N, factor, one, bias, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1024, "too wide")
    tl.store(y + at * one, tl.load(x + at, mask=at < N) * factor, mask=at < N)


def renamed(a, b, M, by, step, no, BLOCK: tl.constexpr):
    """The same code with other names on other lines."""

    indices = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1024, "wide")
    tl.store(b + indices * step, tl.load(a + indices, mask=indices < M) * by, mask=indices < M)


def call(function=scale, configs=None, n=1000, shape=(10, 100), key="N"):
    """The definition of a call."""
    configs = configs or stub.configurations(128, 256, num_warps=1)
    kernel = triton.autotune(configs, [key])(triton.jit(function))
    x, y = stub.Tensor(shape), stub.Tensor(shape, address=(1 << 30) + 4)
    return stub.question_of(
        kernel, x, y, n, 2.0, 1, None, grid=lambda v: (triton.cdiv(v[key], v["BLOCK"]), 2)
    )


def setUpModule():
    stub.start()


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = call()

    def test_arguments_have_type_shape_divisibility_and_role(self):
        x, y, n, factor, one, bias = self.found.arguments
        self.assertEqual(x, d.Pointer("x", "fp32", (10, 100), (100, 1), 16, d.IN, 0, 0, 4000))
        self.assertEqual(y, d.Pointer("y", "fp32", (10, 100), (100, 1), 1, d.OUT, 1, 0, 4000))
        self.assertEqual((n, factor), (d.Scalar("N", "i32", 1000, 1), d.Scalar("factor", "fp32", 2.0, 1)))
        self.assertEqual((one, bias), (d.Constant("one", 1), d.Constant("bias", None)))

    def test_configurations_have_values_options_and_the_grid_of_the_call(self):
        first, second = self.found.configurations
        self.assertEqual((first.values, second.values), ({"BLOCK": 128}, {"BLOCK": 256}))
        self.assertEqual((first.grid, second.grid), ((8, 2, 1), (4, 2, 1)))
        self.assertEqual(first.options, {"num_warps": 1, "num_ctas": 1, "num_stages": 3})

    def test_it_names_the_entry_the_function_the_key_and_the_versions(self):
        self.assertEqual((self.found.name, self.found.function), ("scale", "definition_test.scale"))
        self.assertEqual(self.found.key, (("N", 1000), ("", "float32"), ("", "float32")))
        self.assertEqual((self.found.architecture, self.found.triton), ("sm_90", triton.__version__))
        self.assertRegex(self.found.ptxas, r"1\d\.\d+\.\d+")

    def test_a_configuration_that_a_static_assertion_refuses_keeps_its_place(self):
        found = call(configs=stub.configurations(1024, 128))
        self.assertEqual(found.configurations[0].refused, "too wide")  # no line of the source
        self.assertEqual((found.configurations[0].ttir, len(found.texts)), ("", 1))

    def test_one_memory_has_one_number(self):
        kernel = triton.autotune(stub.configurations(128, 256), [])(triton.jit(scale))
        x = stub.Tensor((1000,))
        found = stub.question_of(kernel, x, x, 1000, 2.0, 1, None)
        self.assertEqual([each.storage for each in found.arguments[:2]], [0, 0])

    def test_configurations_share_ttir_that_does_not_depend_on_their_options(self):
        def by_warps(x, y, N, factor, one, bias, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at) * num_warps())

        configs = [triton.Config({"BLOCK": 128}, num_warps=warps) for warps in (1, 2)]
        with running.calls() as calls:
            self.assertEqual((len(call(configs=configs).texts), calls["_first_stage"]), (1, 1))
            self.assertEqual((len(call(by_warps, configs).texts), calls["_first_stage"]), (2, 3))

    def test_a_tensor_that_is_not_given_is_not_reset(self):
        kernel = triton.autotune(stub.configurations(128, 256), [], reset_to_zero=["y", "bias"])
        x = stub.Tensor((1000,))
        found = stub.question_of(kernel(triton.jit(scale)), x, x, 1000, 2.0, 1, None)
        self.assertEqual(found.reset_to_zero, ("y",))

    def test_its_ttir_compiles_to_what_triton_launches(self):
        stub.forget()
        kernel = triton.autotune(stub.configurations(128, 256), [])(triton.jit(scale))
        arguments = (stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0, 1, None)
        found = stub.question_of(kernel, *arguments)
        chosen = found.configurations[0]
        with Worker() as worker:
            _, cubin = worker.compile(found.texts[chosen.ttir], found.architecture, chosen.options)
        launched = kernel.fn[(1,)](*arguments, BLOCK=128)
        self.assertEqual(cubin, launched.asm["cubin"])


class Roles(unittest.TestCase):
    def test_of_all_kernels(self):
        target = GPUTarget("cuda", 90, 32)
        for name, case in (triton_kernels.CASES | triton_kernels.MORE).items():
            with self.subTest(name):
                self.assertEqual(stub.roles_of(case, target), case.roles.split())


class Identity(unittest.TestCase):
    def test_names_of_values_and_lines_do_not_matter(self):
        ours, theirs = call(scale), call(renamed, key="M")
        texts = [text.replace(b"@scale", b"@renamed") for text in ours.texts.values()]
        self.assertEqual(texts, list(theirs.texts.values()))

    def test_lines_that_triton_would_keep_do_not_matter(self):
        found = call()
        with unittest.mock.patch.dict(os.environ, TRITON_DISABLE_LINE_INFO="0"):
            self.assertEqual(name_of(call()), name_of(found))

    def test_code_options_architecture_and_versions_do(self):
        found = call()
        others = [
            call(configs=stub.configurations(128, 512, num_warps=1)),
            call(configs=stub.configurations(128, 256, num_warps=2)),
            call(configs=stub.configurations(128, 256, num_warps=1, maxnreg=32)),
            *(dataclasses.replace(found, **{name: "x"}) for name in ("architecture", "triton", "ptxas")),
        ]
        names = {name_of(each) for each in [found, *others]}
        self.assertEqual(len(names), 1 + len(others))

    def test_shapes_do_not_make_another_kernel_nor_problem_and_the_key_does(self):
        found, wider, longer = (stub.spec_of(each) for each in (call(), call(shape=(20, 50)), call(n=1001)))
        self.assertEqual((wider.name, wider.problem), (found.name, found.problem))
        self.assertNotEqual((longer.name, longer.problem), (found.name, found.problem))

    def test_the_name_is_pinned(self):
        text = b"module { tt.func public @k() { tt.return } }"
        ttir = d.digest(text)
        pinned = d.Definition(
            "k",
            "project.k",
            "sm_90",
            "3.6.0",
            "12.8.93",
            (("N", 1000), ("", "torch.int64")),
            (
                d.Pointer("x", "i64", (4,), (1,), 16, d.INOUT, 0, 8, 40, d.Contents(-3, 9, True, (1, 3))),
                d.Scalar("eps", "fp32", 0.5, 1),
            ),
            tuple(d.Configuration({"BLOCK": 64}, {"num_warps": n}, ttir, (1, 2, 3)) for n in (4, 8)),
            texts={ttir: text},
        )
        self.assertEqual(name_of(pinned), "k_8bd1395ee2a443511bb9")


def name_of(definition):
    """What the daemon knows the kernel by."""
    return stub.spec_of(definition).name
