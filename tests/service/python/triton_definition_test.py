"""Definitions of calls of autotuned Triton kernels: what is in them, what tells kernels apart, and what the
strict reader refuses."""

import dataclasses
import json
import os
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind
import triton
import triton.language as tl
import triton_kernels
import triton_stub as stub
from cubind.triton import _reading, _roles
from cubind.triton import _triton_private as private
from cubind.triton import definition as d
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.language.extra.cuda import num_warps
from triton_running import Worker


def scale(x, y, N, factor, one, bias, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1024, "too wide")
    tl.store(y + at * one, tl.load(x + at, mask=at < N) * factor, mask=at < N)


def renamed(a, b, M, by, step, no, BLOCK: tl.constexpr):
    """The same code with other names on other lines."""

    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1024, "wide")
    tl.store(b + places * step, tl.load(a + places, mask=places < M) * by, mask=places < M)


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
        self.assertEqual((self.found.name, self.found.function), ("scale", "__main__.scale"))
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
        first_stage = private._first_stage
        with unittest.mock.patch.object(private, "_first_stage", side_effect=first_stage) as made:
            self.assertEqual((len(call(configs=configs).texts), made.call_count), (1, 1))
            self.assertEqual((len(call(by_warps, configs).texts), made.call_count), (2, 3))

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
                options = make_backend(target).parse_options(dict(case.options))
                source = private.Source(case.source(), options, target, {}, {}, {}, None)
                self.assertEqual(_roles.roles_of(private.TtirMaker().module(source)), case.roles.split())


class Identity(unittest.TestCase):
    def test_names_of_values_and_lines_do_not_matter(self):
        ours, theirs = call(scale), call(renamed, key="M")
        texts = [text.replace(b"@scale", b"@renamed") for text in ours.texts.values()]
        self.assertEqual(texts, list(theirs.texts.values()))

    def test_lines_that_triton_would_keep_do_not_matter(self):
        found = call()
        with unittest.mock.patch.dict(os.environ, TRITON_DISABLE_LINE_INFO="0"):
            self.assertEqual(call().kernel_digest(), found.kernel_digest())

    def test_code_options_architecture_and_versions_do(self):
        found = call()
        others = [
            call(configs=stub.configurations(128, 512, num_warps=1)),
            call(configs=stub.configurations(128, 256, num_warps=2)),
            call(configs=stub.configurations(128, 256, num_warps=1, maxnreg=32)),
            *(dataclasses.replace(found, **{name: "x"}) for name in ("architecture", "triton", "ptxas")),
        ]
        digests = {each.kernel_digest() for each in [found, *others]}
        self.assertEqual(len(digests), 1 + len(others))

    def test_shapes_do_not_make_another_kernel_and_only_the_key_makes_another_problem(self):
        found, wider, longer = call(), call(shape=(20, 50)), call(n=1001)
        self.assertEqual({each.kernel_digest() for each in (wider, longer)}, {found.kernel_digest()})
        self.assertEqual(found.problem_digest(), wider.problem_digest())
        self.assertNotEqual(found.problem_digest(), longer.problem_digest())

    def test_digests_are_pinned(self):
        pinned = made()
        self.assertEqual(
            (pinned.kernel_digest(), pinned.problem_digest()),
            (
                "d004c5e7119c332b0bcfb486dd324494bd9751cfe2d83964cfb24672182dc0dc",
                "3ae49cc69b2570bbf734eee72302e52b666c3df6b2e82aeab7e21e8539a00594",
            ),
        )


def made():
    """A definition by hand."""
    text = b"module { tt.func public @k() { tt.return } }"
    name = d.digest(text)
    return d.Definition(
        "k",
        "project.k",
        "sm_90",
        "3.6.0",
        "12.8.93",
        (("N", 1000), ("", "torch.int64")),
        (
            d.Pointer("x", "i64", (4,), (1,), 16, d.INOUT, 0, 8, 40, d.Contents(-3, 9, True, (1, 3))),
            d.Scalar("eps", "fp32", float("inf"), 1),
            d.Constant("flag", [True, None, "text"]),
        ),
        (
            d.Configuration({"BLOCK": 64}, {"num_warps": 4, "enable_fp_fusion": False}, name, (1, 2, 3)),
            d.Configuration({"BLOCK": 128}, {}, "", (1, 1, 1), "too wide"),
        ),
        ("x",),
        (),
        True,
        {name: text},
    )


def with_values(definition, values):
    """The same with the elements of its first tensor."""
    first, *others = definition.arguments
    first = dataclasses.replace(first, contents=dataclasses.replace(first.contents, values=values))
    return dataclasses.replace(definition, arguments=(first, *others))


class Reader(unittest.TestCase):
    def test_what_is_written_is_read(self):
        for found in (made(), call(), with_values(made(), bytes(range(32)))):
            again = _reading.read(found.to_json(), found.texts)
            self.assertEqual((again, again.texts), (found, found.texts))
            self.assertEqual(again.to_json(), found.to_json())

    def refused(self, text, texts=None):
        with self.assertRaises(cubind.InvalidArgumentError) as caught:
            _reading.read(text, made().texts if texts is None else texts)
        return str(caught.exception)

    def test_each_field_that_is_wrong_is_named(self):
        for path, value, words in (
            ("format", "cubind.triton/3", "format: not 'cubind.triton/2'"),
            ("name", "a b", "name: 'a b' does not have the form"),
            ("name", "k" * 300, "at most 256 characters"),
            ("more", 1, "more: not a field here"),
            ("graph_launch", 1, "graph_launch: 1 is neither true nor false"),
            ("configurations", [], "configurations: none can be compiled"),
            ("configurations/0/options/ir_override", "/etc/passwd", "ir_override: not allowed"),
            ("configurations/0/options/num_warps", 3, "num_warps: 3 is not a power of two"),
            ("configurations/0/grid", [1, 1], "configurations/0/grid: not a list of three"),
            ("configurations/0/grid/1", 70000, "grid/1: 70000 is not an integer from 0 to 65535"),
            ("configurations/0/ttir", "0" * 64, "texts/000"),
            ("configurations/1/refused", "", "configurations/1/ttir: either there is TTIR"),
            ("arguments/0/kind", "file", "arguments/0/kind: 'file' is none of"),
            ("arguments/0/role", "none", "arguments/0/role: 'none' is none of"),
            ("arguments/0/shape/0", -1, "arguments/0/shape/0: -1 is not an integer"),
            ("arguments/0/strides", [], "arguments/0/strides: 0 of them"),
            ("arguments/0/storage_bytes", 39, "storage_bytes: the tensor reaches beyond 39"),
            ("arguments/0/contents/least", 10, "the least element, 10, is above"),
            ("arguments/1/value", "1.5", "arguments/1/value"),
            ("arguments/1/name", "x", "arguments: two have the same name"),
            ("arguments/2/value", [[[[[[]]]]]], "arguments/2/value"),
            ("reset_to_zero/0", "eps", "reset_to_zero/0: 'eps' is no argument that is a tensor"),
            ("key/0", ["N"], "key/0: not a name and a value"),
        ):
            with self.subTest(path):
                self.assertIn(words, self.refused(changed(path, value)))

    def test_elements_that_are_not_those_of_the_tensor_are_refused(self):
        place = "arguments/0/contents/values"
        for value, words in (
            (7, "7 is not a text"),
            ("=====", "not in Base64"),
            ("\u00e9", "not in Base64"),
            ("A" * (4 * (d.MAX_VALUES_BYTES // 3) + 8), "is not a text of at most 699052 characters"),
        ):
            refused = self.refused(changed(place, value))
            self.assertTrue(place in refused and words in refused, refused)
        for values in (b"", bytes(31), bytes(33)):
            found = with_values(made(), values).to_json()
            self.assertIn(f"{place}: {len(values)} bytes, the tensor has 32", self.refused(found))

    def test_a_missing_field_is_named(self):
        fields = json.loads(made().to_json())
        del fields["arguments"][0]["role"]
        self.assertIn("arguments/0/role: missing", self.refused(d.canonical(fields)))

    def test_text_that_is_not_json_is_refused(self):
        for text, words in (
            (b"{", "not JSON"),
            (b"[]", "definition: not an object"),
            (b'{"format": 1, "format": 2}', "'format' is given twice"),
            (b'{"format": NaN}', "NaN is no number of JSON"),
            (b"[" * 100000, "not JSON"),
            (b"\xff\xfe\xfd", "not JSON"),
            (b" " * (d.MAX_JSON_BYTES + 1), "at most 4194304 are taken"),
        ):
            self.assertIn(words, self.refused(text))

    def test_texts_are_checked_against_their_digests_and_their_use(self):
        text, texts = made().to_json(), made().texts
        (name,) = texts
        self.assertIn("its digest is another", self.refused(text, {name: b"other"}))
        self.assertIn(f"texts/{name}: missing", self.refused(text, {}))
        self.assertIn("no configuration has it", self.refused(text, texts | {d.digest(b"x"): b"x"}))
        self.assertIn("more than", self.refused(text, {name: b" " * (d.MAX_TTIR_BYTES + 1)}))


def changed(path, value):
    """made() with another value."""
    fields = json.loads(made().to_json())
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    found = fields
    for part in parents:
        found = found[part]
    found[last] = value
    return d.canonical(fields)


if __name__ == "__main__":
    unittest.main()
