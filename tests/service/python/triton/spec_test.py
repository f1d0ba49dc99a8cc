"""Definitions become specs that the daemon takes, or the reason why not is named."""

import dataclasses
import json
import unittest

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import triton
import triton.language as tl
import triton_kernels
import triton_stub as stub
from cubind.triton import definition as d
from tuned_daemon import WithDaemon

ELEMENTS = [
    "fp64",
    "fp32",
    "fp16",
    "bf16",
    "fp8e4nv",
    "fp8e5",
    "i64",
    "u64",
    "i32",
    "u32",
    "i8",
    "u8",
    "i1",
    "u1",
]
NUMBERS = d.Contents(0, 9, False, (5, 3, 2))
TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "i32": "int32", "i64": "int64"}


def scale(x, y, N, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 1024)
    tl.store(y + at, tl.load(x + at, mask=at < N) * factor, mask=at < N)


def definition_of(function=scale, blocks=(128, 256), factor=2.0, **options):
    kernel = triton.autotune(stub.configurations(*blocks), ["N"], **options)(triton.jit(function))
    x, y = stub.Tensor((1000,)), stub.Tensor((1000,))
    return stub.question_of(kernel, x, y, 1000, factor, grid=lambda v: (triton.cdiv(1000, v["BLOCK"]),))


def definition_of_case(case):
    """Its kernel with two numbers of warps."""
    configs = [triton.Config({"BLOCK": case.block}, num_warps=warps) for warps in (4, 8)]
    arguments = [
        stub.Tensor((case.block, case.block), TYPES[kind[1:]]) if kind[0] == "*" else 64
        for kind in case.types.split()
    ]
    others = {name: value for name, value in case.options.items() if name == "maxnreg"}
    found = stub.question_of(triton.autotune(configs, [])(case.kernel), *arguments, **others)
    return with_arguments(found, contents=NUMBERS)


def with_arguments(definition, **fields):
    """The same with other fields of its tensors."""
    arguments = [
        dataclasses.replace(each, **fields) if isinstance(each, d.Pointer) else each
        for each in definition.arguments
    ]
    return dataclasses.replace(definition, arguments=tuple(arguments))


def setUpModule():
    stub.start()


class Defining(WithDaemon):
    def define(self, definition):
        spec = stub.spec_of(definition)
        stub.define(self.client, spec)
        return spec

    def known(self):
        return {kernel["name"] for kernel in self.client.kernels(defined=True)}

    def test_the_daemon_keeps_what_it_is_told_under_the_name_that_it_computes_too(self):
        spec = self.define(definition_of())
        self.assertRegex(spec.name, "^scale_[0-9a-f]{20}$")
        self.assertIn(spec.name, self.known())
        self.define(definition_of())

    def test_it_takes_a_definition_of_every_kernel(self):
        cases = {**triton_kernels.CASES, **triton_kernels.MORE}
        del cases["addresses"]
        for name, case in cases.items():
            with self.subTest(name):
                self.assertIn(self.define(definition_of_case(case)).name, self.known())

    def test_keys_may_be_any_plain_values(self):
        key = (
            ("a", 1.5),
            ("b", None),
            ("c", True),
            ("", "float32"),
            ("d", "\u00e9\n"),
            ("e", [1, 2]),
            ("f", 1 << 63),
        )
        spec = self.define(dataclasses.replace(definition_of(), key=(*key, ("cdiv", 3), ("a.b", 4))))
        self.assertEqual(spec.problem, {"calls": 1})
        self.assertIn(spec.name, self.known())

    def test_numbers_that_json_lacks_are_part_of_the_name(self):
        found = [self.define(definition_of(factor=float(text))) for text in ("inf", "-inf", "nan")]
        self.assertEqual(len({spec.name for spec in found} & self.known()), 3)
        self.assertEqual(json.loads(found[2].json)["arguments"]["factor"]["exactly"], "nan")
        kernel = triton.autotune(stub.configurations(128, 256), ["factor"])(triton.jit(scale))
        x = stub.Tensor((1000,))
        keyed = stub.question_of(kernel, x, stub.Tensor((1000,)), 1000, float("inf"))
        self.assertEqual(keyed.key[0], ("factor", "inf"))
        self.assertNotEqual(self.define(keyed).name, found[0].name)

    def test_an_output_may_hold_summands_along_an_axis_of_a_tensor_without_gaps(self):
        def output(*shape, **fields):
            fields = {"strides": stub.Tensor(shape).stride(), **fields}
            found = with_arguments(definition_of(), shape=shape, **fields)
            return json.loads(self.define(found).json)["arguments"]["y"]

        self.assertEqual((output(4, 1, 250)["shape"], output(4, 250)["partial"]), ([4, 250], "sums"))
        for told in (output(1, 1000), output(4, 250, strides=(256, 1)), output(4, 250, strides=(1, 4))):
            self.assertEqual((told.get("shape"), told["partial"]), (None, "sums"))
        names = {
            self.define(with_arguments(definition_of(), shape=shape, strides=strides)).name
            for shape, strides in (((1000,), (1,)), ((4, 250), (250, 1)), ((2, 2), (2, 1)))
        }
        self.assertEqual(len(names), 1)

    def test_a_long_name_makes_room_for_the_digest(self):
        found = definition_of()
        name = self.define(dataclasses.replace(found, name="a" * 80)).name
        self.assertEqual((len(name), name in self.known()), (64, True))

    def test_a_definition_larger_than_a_message_arrives(self):
        found = definition_of()
        text = next(iter(found.texts.values()))
        texts = [text + b"//" + bytes([65 + i]) * (3 << 20) for i in range(4)]
        configurations = tuple(
            dataclasses.replace(found.configurations[0], ttir=d.digest(each)) for each in texts
        )
        found = dataclasses.replace(
            found, configurations=configurations, texts={d.digest(each): each for each in texts}
        )
        self.assertIn(self.define(found).name, self.known())

    def test_every_fill_and_type_is_taken(self):
        contents = [
            d.Contents(3, 3, True, (1000,)),
            d.Contents(0, 999, True, (63,) * 16),
            d.Contents(0, 77, True, (63,) * 16),
            d.Contents(0, 999, False, (63,) * 16),
            d.Contents(-100, 5, False, (1, 999)),
            d.Contents(-(1 << 63), (1 << 63) - 1, False, (500, 500)),
        ]
        found = definition_of()
        for each in contents:
            for type_ in ELEMENTS:
                with self.subTest(type_, contents=each):
                    is_small = type_ in ("u1", "i1", "u8", "i8")
                    fitting = dataclasses.replace(each, least=0, most=1) if is_small else each
                    self.define(with_arguments(found, type=type_, contents=fitting, role=d.INOUT))


class TritonsOwn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = definition_of()

    def check(self, definition, reason):
        with self.assertRaises(stub.StaysOwnError) as caught:
            stub.spec_of(definition)
        self.assertIn(reason, str(caught.exception))

    def test_what_a_spec_cannot_say_is_named(self):
        found = self.found
        long = dataclasses.replace(found.configurations[0], ttir="", refused="too wide")
        for fields, reason in (
            ({"name": "caf\u00e9"}, "has the symbol caf\u00e9"),
            ({"configurations": (found.configurations[0], long)}, "has 1 configurations"),
            ({"configurations": found.configurations * 129}, "has 258 configurations"),
            ({"texts": {"0": b"x" * (4 << 20)}}, "has 4194304 bytes of TTIR"),
            ({"arguments": (d.Scalar("n", "i32", 1, 1),)}, "writes no tensor"),
            ({"arguments": found.arguments * 20}, "has 80 arguments"),
        ):
            with self.subTest(reason):
                self.check(dataclasses.replace(found, **fields), reason)

    def test_arguments_that_cannot_be_made_are_named(self):
        for fields, reason in (
            ({"type": "i16"}, "has a tensor x of i16"),
            ({"type": "i32", "role": d.INOUT}, "of which nothing is known"),
            ({"name": "a.b"}, "has an argument a.b"),
            ({"storage": 0}, "writes memory that x and y share"),
        ):
            with self.subTest(reason):
                self.check(with_arguments(self.found, **fields), reason)
        self.check(self.with_scalar(1 << 63), f"has {1 << 63} as its argument")
        self.check(self.with_scalar(1, "tf32"), "of tf32")

    def test_addresses_of_this_process_are_sent_to_no_other(self):
        found = definition_of_case(triton_kernels.MORE["addresses"])
        self.check(found, "takes numbers for addresses")
        text = next(iter(self.found.texts.values())).replace(b"!tt.ptr<f32>", b"!tt.ptr<!tt.ptr<f32>>")
        self.check(dataclasses.replace(self.found, texts={"0": text}), "takes numbers for addresses")

    def with_scalar(self, value, type_="u64"):
        return dataclasses.replace(
            self.found, arguments=(*self.found.arguments, d.Scalar("s", type_, value, 1))
        )

    def test_parts_of_one_memory_that_lie_apart_and_inputs_that_overlap_are_measured(self):
        x, y, *others = self.found.arguments
        apart = dataclasses.replace(y, storage=0, offset_bytes=4000, storage_bytes=8000)
        stub.spec_of(dataclasses.replace(self.found, arguments=(x, apart, *others)))
        twice = dataclasses.replace(x, name="twice")
        stub.spec_of(dataclasses.replace(self.found, arguments=(x, twice, y, *others)))
        near = dataclasses.replace(apart, offset_bytes=3996)
        self.check(dataclasses.replace(self.found, arguments=(x, near, *others)), "that x and y share")


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = definition_of()

    def fields(self, definition):
        return json.loads(stub.spec_of(definition).json)

    def fill(self, type_, *contents):
        found = with_arguments(self.found, type=type_, contents=d.Contents(*contents), role=d.INOUT)
        return self.fields(found)["arguments"]["x"]["fill"]

    def test_integers_are_drawn_like_those_of_the_call(self):
        flat = (63, 62) * 8
        self.assertEqual(self.fill("i32", 3, 3, True, (1000,)), {"constant": 3})
        self.assertEqual(self.fill("i32", 0, 999, True, flat), {"iota": {"start": 0, "step": 1}})
        self.assertEqual(self.fill("i64", 0, 77, True, flat), {"offsets": {"total": 77}})
        self.assertEqual(self.fill("i32", 0, 999, False, flat), "permutation")
        self.assertEqual(self.fill("i32", 0, 999, False, (900, 100)), {"uniform": {"low": 0, "high": 1000}})
        self.assertEqual(self.fill("i32", -100, 5, False, flat), {"uniform": {"low": 0, "high": 6}})
        self.assertEqual(self.fill("i8", -100, 5, False, flat), {"uniform": {"low": -100, "high": 6}})

    def test_what_lies_between_the_elements_of_a_view_stays_within_their_range(self):
        flat = (63, 62) * 8
        views = with_arguments(
            self.found, type="i32", contents=d.Contents(0, 999, True, flat), role=d.INOUT, strides=(2,)
        )
        self.assertEqual(self.fields(views)["arguments"]["x"]["fill"], {"offsets": {"total": 999}})
        views = with_arguments(views, contents=d.Contents(0, 999, False, flat))
        self.assertEqual(self.fields(views)["arguments"]["x"]["fill"], {"uniform": {"low": 0, "high": 1000}})

    def test_tensors_that_triton_clears_are_cleared(self):
        found = with_arguments(self.found, role=d.INOUT)
        found = dataclasses.replace(found, reset_to_zero=("y",))
        roles = {name: each.get("role") for name, each in self.fields(found)["arguments"].items()}
        self.assertEqual((roles["x"], roles["y"]), ("inout", "zero"))

    def test_a_configuration_that_is_refused_leaves_its_number_unused(self):
        found = definition_of(blocks=(1024, 128, 256))
        self.assertEqual([one["index"] for one in self.fields(found)["configurations"]], [1, 2])

    def test_scalars_are_numbers_of_the_call_or_the_callers(self):
        found = self.fields(self.found)["arguments"]
        self.assertEqual(found["N"], {"scalar": "i32", "expr": 1000})
        self.assertEqual(found["factor"], {"scalar": "f32", "from": "caller", "bench": 2.0})

    def test_truth_values_have_no_tolerance(self):
        found = self.fields(with_arguments(self.found, type="i1", contents=NUMBERS, role=d.INOUT))
        self.assertEqual(found["tolerance"]["u8"]["atol"], 1)
        self.assertEqual(found["tolerance"]["outputs"]["y"]["u8"], {"rtol": 0, "atol": 0})

    def test_triton_3_4_passes_one_pointer_of_its_own(self):
        for version, count in (("3.4.0", 1), ("3.5.0", 2)):
            found = self.fields(dataclasses.replace(self.found, triton=version))
            self.assertEqual(found["triton"]["trailing_pointers"], count)
