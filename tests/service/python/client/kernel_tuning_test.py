"""tune_kernel() against a real daemon, which replays a table for it."""

import contextlib
import enum
import hashlib
import io
import json
import math
import os
import pathlib
import re
import tempfile
import types
import unittest

import cubind
import numpy as np
import running
import tuned_here
from fake_daemon import FakeDaemon
from tuned_here import N, call, definition

NUMBERED = {
    "tune_params": {**tuned_here.VALUES, "T": ["float", "double"]},
    "restrictions": [lambda block_size_x, per_thread: block_size_x * per_thread <= 512, "T == 'float'"],
    "answer": None,
}
_SENT = np.zeros(2_000_000, np.float32)
SENT = {"arguments": [_SENT, _SENT, _SENT, np.int32(N)], "answer": None}
_ARRAY = np.arange(9 << 20, dtype=np.float32)
LARGE = {"arguments": [_ARRAY, tuned_here.A, tuned_here.B, np.int32(N)], "answer": None}


def tuned(client, **changed):
    return cubind.tune_kernel(**call(**changed), client=client, progress=False)


class Tuned(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        defined = (definition(**changed) for changed in ({}, NUMBERED, LARGE, SENT))
        cls.daemon = cls.enterClassContext(tuned_here.Daemon(*defined))
        cls.client = cls.enterClassContext(cls.daemon.connect())
        cls.result = tuned(cls.client)

    def test_the_fastest_values_win(self):
        self.assertEqual(self.result.winner, {"block_size_x": 256, "per_thread": 2})
        self.assertAlmostEqual(self.result.time_us, 10, places=1)
        self.assertAlmostEqual(self.result.speedup, 1.4, places=1)
        self.assertFalse(self.result.fresh)
        self.assertIn("block_size_x=256,per_thread=2, 10.00 us", repr(self.result))

    def test_every_configuration_that_meets_the_restrictions_is_a_row(self):
        rows = self.result.trials
        self.assertEqual(len(rows), 8)
        self.assertEqual([row["time_us"] for row in rows], sorted(row["time_us"] for row in rows))
        self.assertEqual(rows[0]["outcome"], "correct")
        self.assertLess(
            {"block_size_x", "per_thread", "time_us", "outcome", "samples", "detail"}, {*rows[0], ""}
        )

    def test_a_second_call_measures_nothing(self):
        again = tuned(self.client)
        self.assertTrue(again.fresh)
        self.assertEqual((again.name, again.winner), (self.result.name, self.result.winner))

    def test_it_is_explained(self):
        text = self.result.explain()
        self.assertIn("winner block_size_x=256,per_thread=2", text)
        self.assertIn("8 trials", text)

    def test_its_page_and_its_picture_in_a_notebook_need_no_network(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            self.result.report(path)
            page = path.read_text()
        self.assertIn(self.result.name, page)
        self.assertEqual(re.findall(r'(?:src|href)="(.*?)"', page), ["data:,"])
        frame = self.result._repr_html_()
        self.assertTrue(frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;'))
        self.assertEqual(frame.count("<"), 2)  # of the frame alone

    def test_the_winner_is_launched(self):
        driver = running.FakeDriver(4)
        arrays = {name: running.FakeArray(0x10000 * at, (N,)) for at, name in enumerate("cab", 1)}
        self.result.kernel(**arrays)
        (launch,) = driver.launches()
        self.assertEqual((launch.grid[0], launch.block[0]), (-(-N // 512), 256))
        self.assertEqual([*launch.parameters[:4]], [0x10000, 0x20000, 0x30000, N])

    def test_what_is_saved_is_served_under_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = self.result.save(folder)
            self.assertEqual(spec, pathlib.Path(folder, "add_arrays", "add_arrays.json"))
            running.cubindctl(self.daemon.address, "kernels", "check", spec, "--problem", f"size={N}")
            with (
                Serving(folder) as daemon,
                daemon.connect() as client,
            ):
                client.import_table(spec.parent / "tables" / spec.name)
                answer = client.get("add_arrays", size=N, device=self.result.device)
                self.assertEqual((answer.match, answer.configuration), ("exact", self.result.winner))

    def test_it_is_not_saved_under_the_name_of_another_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(
                cubind.InvalidArgumentError, 'name: "scale" is the name of .*scale.json'
            ):
                self.result.save(folder, "scale")
            for name in ("../up", "a b", "a" * 65):
                with self.subTest(name), self.assertRaisesRegex(cubind.InvalidArgumentError, "is no name"):
                    self.result.save(folder, name)
            self.assertEqual([*pathlib.Path(folder).iterdir()], [])

    def test_texts_are_values_and_functions_restrictions(self):
        result = tuned(self.client, **NUMBERED)
        self.assertEqual(result.winner, {"block_size_x": 256, "per_thread": 2, "T": "float"})
        self.assertEqual({row["T"] for row in result.trials}, {"float"})
        self.assertIn("compared with those of the default configuration alone", result.notes[-1])

    def test_what_is_assumed_is_printed(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            cubind.tune_kernel(**call(), client=self.client)
        self.assertEqual(said.getvalue(), "c: read and written; a, b, n: read\n")

    def assumed(self, **changed):
        """The first line that is printed, before anything is measured: the table need not know the kernel."""
        said = io.StringIO()
        with (
            contextlib.suppress(cubind.FailedPreconditionError),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            cubind.tune_kernel(**call(answer=None, **changed), client=self.client)
        return said.getvalue().splitlines()[0]

    def test_what_is_written_is_found_by_the_daemons_compiler(self):
        source = tuned_here.SOURCE.replace("const ", "")
        chosen = "\n#if per_thread == 2\n b[i] =\n#else\n c[i] =\n#endif\n"
        for told, changed in {
            "c: read and written; a, b, n: read": source,
            "c, b: read and written; a, n: read": source.replace("c[i] =", chosen),
            "c, a, b: read and written; n: read": source.replace("c[i]", "undefined"),
        }.items():
            self.assertEqual(self.assumed(kernel_source=changed), told)

    def test_ptx_that_does_not_tell_is_not_trusted(self):
        either = "c, p: read and written; n: read"
        for body, written in {
            "p[0][n] = c[0];": either,
            "c[n] = p[0][0];": "c: read and written; p, n: read",
            "atomicAdd(&c[n], 1.0f);": "c: read and written; p, n: read",
            "c[reinterpret_cast<int*>(p)[n]] = 1;": "c: read and written; p, n: read",
            "float x[64]; for (int i = 0; i < 64; ++i) x[i] = c[i * n]; *p = c + int(x[n]);": "p: read and written; c, n: read",
            "float* q = n > 3 ? c : *p; q[n] = 1;": either,
        }.items():
            source = f"__global__ void k(float* c, float** p, int n) {{ {body} }}"
            arguments = [tuned_here.A, tuned_here.A, N]
            self.assertEqual(
                self.assumed(kernel_name="k", kernel_source=source, arguments=arguments), written, body
            )

    def test_without_a_compiler_all_arrays_that_may_be_written_count(self):
        made = definition(kernel_source=tuned_here.SOURCE.replace("const ", ""), answer=None)
        self.assertEqual(made.notes[0], "c, a, b: read and written; n: read")

    def test_a_source_that_does_not_compile_is_told_with_the_compilers_words(self):
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "undefined_name"):
            tuned(self.client, kernel_source=tuned_here.SOURCE.replace("a[i]", "undefined_name"))
        self.assertEqual(self.jobs_left(), 0)

    def test_files_larger_than_a_message_are_defined(self):
        result = tuned(self.client, **SENT)
        path = f"{self.daemon.folder}/store.db.kernels/{result.name}/c.npy"
        np.testing.assert_array_equal(np.load(path), _SENT)

    def test_large_arrays_stay_in_memory_as_long_as_the_result_lives(self):
        result = tuned(self.client, **LARGE)
        path = f"{self.daemon.folder}/store.db.kernels/{result.name}/c.npy"
        with open(path, "rb") as file:
            memory, digest = re.search(rb"'memory': '(.*?)', 'sha256': '(.*?)'", file.read()).groups()
        self.assertEqual(os.readlink(memory), f"/memfd:cubind-{digest.decode()} (deleted)".encode())
        with open(memory, "rb") as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest(), digest.decode())
        del result
        self.assertFalse(os.path.exists(memory))

    def test_large_arrays_are_saved_and_tuned_from_their_folder(self):
        with tempfile.TemporaryDirectory(prefix="größer ") as folder:
            result = tuned(self.client, **LARGE)
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "has no '"):
                result.save(f"{folder}/it's")
            spec = result.save(folder, "large")
            saved = np.fromfile(spec.with_name("c.npy.data"), np.float32)
            np.testing.assert_array_equal(saved, _ARRAY)
            self.assertEqual({*np.load(spec.with_name("a.npy"))}, {*tuned_here.A})
            made = types.SimpleNamespace(name="large", spec=json.loads(spec.read_text()), problem={"size": N})
            with (
                Serving(folder, made) as daemon,
                daemon.connect() as client,
            ):
                for command in (["kernels", "check", spec], ["tune", "large"]):
                    running.cubindctl(daemon.address, *command, "--problem", f"size={N}")
                answer = client.get("large", size=N, device=running.offered_device(client))
                self.assertEqual(answer.configuration, {"block_size_x": 256, "per_thread": 2})

    def jobs_left(self):
        status = self.client.status()
        return status["jobs_queued"] + status["jobs_running"]


class Serving(tuned_here.Daemon):
    """With the kernels of a folder."""

    def __init__(self, folder, *definitions):
        self._served = folder
        super().__init__(*definitions)

    def _tiny_arguments(self):
        return [*super()._tiny_arguments(), "--kernels", self._served]


class Refused(unittest.TestCase):
    """Before anything is sent."""

    def refused(self, told, error=cubind.InvalidArgumentError, **changed):
        with self.subTest(told), self.assertRaisesRegex(error, re.escape(told)):
            definition(**changed)

    def argument(self, told, value, **changed):
        self.refused(told, arguments=[value, *call()["arguments"][1:]], answer=None, **changed)

    def test_arrays_that_are_none(self):
        self.argument("argument c: has elements of objects", np.array([object()] * N))
        self.argument("argument c: a list is no array of numbers", [0.0] * N)
        self.argument("argument c: has elements of f64, the kernel's parameter f32", np.zeros(N))
        self.argument("argument c: is not C-contiguous (shape [1000])", np.zeros(2 * N, np.float32)[::2])
        self.argument('argument c: has elements of the type "Zf"', np.zeros(N, np.complex64))
        self.argument('argument c: has elements of the type ">f"', np.zeros(N, ">f4"))
        self.argument("argument c: is a number, the kernel's parameter is a pointer", np.float32(1))

    def test_an_array_for_a_tensor_map(self):
        source = tuned_here.SOURCE.replace("float* c", "const __grid_constant__ CUtensorMap c")
        self.argument("argument c: is no number, the kernel's parameter is of a type of its own. A tensor map "
                      "needs a spec", np.zeros(N, np.float32), kernel_source=source)  # fmt: skip

    def test_an_array_of_eight_gibibytes(self):
        huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2 << 30,), (0,))
        self.argument("argument c: has 8.0 GiB, an array may have less than 8", huge)

    def test_more_than_is_sent(self):
        with FakeDaemon(tcp=True) as daemon, cubind.connect(daemon.address) as client:
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "arguments: the arrays have 36 MiB"):
                tuned(client, **LARGE, send_arrays=True)
            self.assertEqual(daemon.defined, {})

    def test_numbers_that_do_not_fit(self):
        arrays = call()["arguments"][:3]
        self.refused(
            "argument n: is a number of i64, the kernel's parameter i32", arguments=[*arrays, np.int64(1)]
        )
        self.refused("argument n: is 1.5, the kernel's parameter takes i32", arguments=[*arrays, 1.5])
        self.refused(
            "argument n: is no number, the kernel's parameter is one", arguments=[*arrays, tuned_here.A]
        )
        self.refused("arguments: there are 3, add_arrays has 4 parameters: c, a, b, n", arguments=arrays)
        self.refused(
            "arguments: has no b", arguments={"c": arrays[0], "a": arrays[1], "x": arrays[2], "n": 1}
        )

    def test_numbers_that_are_no_integers_of_64_bits_or_no_fractions(self):
        arrays = call()["arguments"][:3]
        source = tuned_here.SOURCE.replace("int n", "float n")
        for number in np.longdouble(3), np.complex64(3), np.str_("3"), 1 << 63, 10**400:
            self.refused("the kernel's parameter takes i32", arguments=[*arrays, number])
        for number in np.longdouble(3), np.complex64(3), math.nan, 10**400:
            self.refused(
                "the kernel's parameter takes f32", arguments=[*arrays, number], kernel_source=source
            )
        size = enum.IntEnum("Size", {"OF_ALL": N}).OF_ALL
        self.assertEqual(definition(arguments=[*arrays, size]).name, definition().name)

    def test_one_thing_where_several_are_meant(self):
        self.refused("arguments: is a NoneType: a list or a dict is meant", arguments=None)
        self.refused("answer: is a int: a list or a dict is meant", answer=3)
        self.refused("arguments: has no c (there are 0, 1, 2, 3)", arguments=dict(enumerate("abcd")))
        self.refused("kernel_name: is a NoneType: a text is meant", kernel_name=None)
        for name in "compiler_options", "writes", "block_size_names":
            self.refused(f"{name}: [3] is no list of texts", **{name: [3]})
            self.refused(f"{name}: 3 is no list of texts", **{name: 3})
        self.refused("cmem_args: is a int: a dict is meant", cmem_args=3)
        self.refused("default: is a int: a dict is meant", default=3)
        self.refused("tune_params: is a list: a dict is meant", tune_params=[64])
        self.refused('tune_params: "3" is no name', tune_params={**tuned_here.VALUES, 3: [1]})
        self.refused("problem_size size: array([1000]) is no size", problem_size=np.array([N]))
        self.assertEqual(definition(writes="c").name, definition(writes=["c"]).name)
        options = definition(compiler_options="--use_fast_math").spec["options"]
        self.assertEqual(options, ["--use_fast_math"])

    def test_bounds_that_are_none(self):
        for bound in math.nan, -1, "1e-3", {"rtol": math.nan}:
            self.refused("tolerance: ", tolerance=bound)
        self.assertLess(definition(tolerance={"rtol": math.inf}).spec["tolerance"]["f32"]["rtol"], math.inf)

    def test_a_spec_larger_than_a_message(self):
        values = {**tuned_here.VALUES, "seed": list(range(1 << 19))}
        with FakeDaemon() as daemon, cubind.connect(daemon.address) as client:
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "spec: it has .* MiB, a message has at"):
                tuned(client, tune_params=values)
            self.assertEqual(daemon.defined, {})

    def test_restrictions_that_raise_or_leave_nothing(self):
        self.refused("restrictions[0]: raises NameError: name 'block'", restrictions=["block > 1"])
        self.refused("restrictions: raises ZeroDivisionError", restrictions=lambda p: 1 // 0)
        self.refused(
            "restrictions: raises ValueError: The truth value", restrictions=lambda p: np.array([1, 2])
        )
        self.refused(
            "restrictions: no combination of the values meets them", restrictions="block_size_x > 512"
        )
        self.refused("is no expression: maximum recursion depth", restrictions="1+" * 20000 + "1")

    def test_sources_without_the_kernel(self):
        self.refused(
            'kernel_name: "add" is no __global__ function of the source (it has add_arrays)',
            kernel_name="add",
        )
        self.refused('kernel_source: "no.cu" is no file', kernel_source="no.cu")
        self.refused("kernel_source: is a int", kernel_source=1)
        with tempfile.NamedTemporaryFile(suffix=".cu") as file:
            file.write(b"// \xff" + tuned_here.SOURCE.encode())
            file.flush()
            self.refused("is not UTF-8: invalid start byte at byte 3", kernel_source=file.name)

    def test_values_that_are_none(self):
        self.refused("tune_params block_size_x: 64 is no list of values", tune_params={"block_size_x": 64})
        self.refused("tune_params has none of block_size_x", tune_params={"threads": [64]}, restrictions=None)
        self.refused("default: block_size_x = 100 is not one of the values", default={"block_size_x": 100})
        for value in math.nan, math.inf, np.ones(2):
            self.refused("is neither a number nor a text", tune_params={"block_size_x": [64, value]})
        self.refused("tune_params block_size_x: has no value", tune_params={"block_size_x": []})
        self.refused("problem_size size: None is no size", problem_size=None)
        self.refused("problem_size size: 4.5 is no size", problem_size=4.5)
        self.refused("problem_size: raises NameError: name 'x'", problem_size="x")

    def test_sizes_of_a_launch_that_may_be_fractions(self):
        for where in "grid", "block", "shared_bytes":
            for given in "n / block_size_x", "block_size_x * 0.5", 2.5, lambda block_size_x: block_size_x / 2:
                self.refused(f"{where}: raises TypeError", problem_size={"n": N}, **{where: given})
        rounds = "(block_size_x) / (2) may be no integer: // cuts and cdiv() rounds up"
        self.refused(f'{rounds}, in "block_size_x / 2"', grid=["block_size_x / 2"])
        divisor = "block_size_x / 3 - 33"
        self.refused(f'may be 0 or negative: nothing is divided by it, in "{divisor}"', grid_div_x=divisor)
        launch = definition(grid=["size // block_size_x"], shared_bytes=8.0).spec["launches"][0]
        self.assertEqual((launch["grid"], launch["shared_bytes"]), (["size / block_size_x"], "8"))

    def test_answers_for_no_output(self):
        self.refused("answer a: the kernel writes c, and not this", answer={"a": tuned_here.A})
        self.refused("answer c: has 10 elements, the argument 1000", answer=[tuned_here.A[:10]])
        self.refused('reference: has no "grid"', answer=None, reference={"kernel_name": "add_arrays"})
        self.refused("arguments: the kernel writes none of the arrays", writes=[], answer=None)
        self.refused("writes: d is no argument", writes=["c", "d"])

    def test_names_that_are_no_identifiers(self):
        self.refused(
            'tune_params: "per thread" is no name', tune_params={"block_size_x": [64], "per thread": [1]}
        )
        self.refused('problem_size: "a-b" is no name', problem_size={"a-b": N})

    def test_arrays_leave_the_machine_on_request_alone(self):
        with FakeDaemon(tcp=True) as daemon, cubind.connect(daemon.address) as client:
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "send_arrays=True"):
                tuned(client)
            self.assertEqual(daemon.defined, {})


class Definitions(unittest.TestCase):
    def test_each_difference_makes_another_kernel(self):
        names = [
            definition().name,
            definition(answer=[tuned_here.A, None, None, None]).name,
            definition(restrictions=None).name,
            definition(kernel_source=tuned_here.SOURCE + "// changed").name,
            definition(tolerance=1e-6).name,
        ]
        self.assertEqual(len({*names}), len(names))
        self.assertEqual(definition().name, names[0])

    def test_outputs_without_an_answer_are_those_of_the_default(self):
        source = tuned_here.SOURCE.replace("const float* b", "float* b").replace("c[i] =", "c[i] = b[i] =")
        made = definition(kernel_source=source)
        default, answer = made.spec["reference"]["launches"]
        self.assertEqual((default["entry"], default["grid"]), ("add_arrays", ["cdiv(size, 64 * 1)"]))
        self.assertEqual(answer["arguments"], ["answer_c", "c"])
        text = made.files["add_arrays_reference.cu"].decode()
        self.assertTrue(text.startswith("#define block_size_x 64\n#define per_thread 1\n"))
        self.assertIn("b: compared with the default configuration alone", made.notes)

    def test_a_plain_kernel_is_the_reference(self):
        plain = 'extern "C" __global__ void plain(float* c, const float* a, const float* b, int n) {}'
        given = {"kernel_name": "plain", "kernel_source": plain, "grid": ["cdiv(size, 256)"], "block": [256]}
        made = definition(answer=None, reference=given)
        (launch,) = made.spec["reference"]["launches"]
        self.assertEqual((launch["grid"], launch["block"]), (["cdiv(size, 256)"], ["256"]))
        self.assertIn(plain, made.files["add_arrays_reference.cu"].decode())

    def test_a_file_comes_with_what_it_includes_of_its_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "add.cu")
            (path.parent / "parts").mkdir()
            (path.parent / "parts/outer.cuh").write_text('#include "inner.cuh"\n' + tuned_here.SOURCE)
            (path.parent / "parts/inner.cuh").write_text('#include "../../elsewhere.cuh"\n')
            path.write_text('#include "parts/outer.cuh"\n#include <cuda_fp16.h>\n// #include "no.cuh"\n')
            made = definition(kernel_source=path)
        sources = {path for path in made.files if not path.endswith(".npy")} - {"add_arrays_reference.cu"}
        self.assertEqual(sources, {"add.cu", "parts/outer.cuh", "parts/inner.cuh"})

    def test_sizes_grids_and_options(self):
        made = definition(
            problem_size=(64, N),
            tune_params={**tuned_here.VALUES, "block_size_y": [1, 2]},
            block_size_names=["block_size_x", "block_size_y"],
            grid_div_y=lambda p: p["block_size_y"] * p["per_thread"],
            shared_bytes="4 * block_size_x",
            compiler_options=["-std=c++20", "-O3", "-DFAST", "--use_fast_math"],
            cmem_args={"table": tuned_here.A},
        )
        (launch,) = made.spec["launches"]
        self.assertEqual(launch["block"], ["block_size_x", "block_size_y"])
        self.assertEqual(
            launch["grid"],
            ["cdiv(size_x, block_size_x * per_thread)", "cdiv(size_y, block_size_y * per_thread)"],
        )
        self.assertEqual(launch["shared_bytes"], "block_size_x * 4")
        self.assertEqual(launch["arguments"], ["c", "a", "b", "n", "table"])
        self.assertEqual(made.spec["options"], ["--std=c++20", "--use_fast_math"])
        self.assertEqual(made.spec["defines"][0], "FAST=1")

    def test_a_size_may_be_an_expression_of_the_values(self):
        made = definition(problem_size=["per_thread * 1024", N], restrictions=None)
        self.assertEqual(made.problem, {"size_y": N})
        grid = made.spec["launches"][0]["grid"]
        self.assertEqual(grid, ["cdiv(per_thread * 1024, block_size_x * per_thread)", "size_y"])
        alone = definition(problem_size="per_thread", grid_div_x=[], restrictions=None)
        self.assertEqual((alone.problem, alone.spec["launches"][0]["grid"]), ({"calls": 1}, ["per_thread"]))

    def test_a_grid_may_be_divided_by_a_fraction(self):
        for divisors, grid in (
            (["block_size_x / per_thread"], "cdiv(size * per_thread, block_size_x)"),
            ([lambda block_size_x: block_size_x / 4, 2.5], "cdiv(size * (4 * 2), block_size_x * 5)"),
        ):
            self.assertEqual(definition(grid_div_x=divisors).spec["launches"][0]["grid"], [grid])

    def test_outputs_that_differ_by_design_are_not_compared(self):
        made = definition(answer=None, tolerance=float("inf"))
        self.assertEqual(made.spec["tolerance"], {"f32": {"rtol": 1e300, "atol": 1e300}})
        self.assertIn("the outputs are not compared: nothing says that they are correct", made.notes)

    def test_bits_of_types_that_numpy_lacks(self):
        source = tuned_here.SOURCE.replace("float", "__nv_bfloat16")
        bits = np.zeros(N, np.uint16)
        made = definition(kernel_source=source, arguments=[bits, bits, bits, N], answer=None)
        self.assertEqual(made.spec["arguments"]["c"]["buffer"], "bf16")
        self.assertIn(b"'descr': '<u2'", made.files["c.npy"])

    def test_files_of_arrays_are_numpys(self):
        array = np.arange(6, dtype=np.int32).reshape(2, 3)
        source = tuned_here.SOURCE.replace("const float* b", "const int* b")
        made = definition(kernel_source=source, arguments=[*call()["arguments"][:2], array, N])
        self.assertTrue((np.load(io.BytesIO(made.files["b.npy"])) == array).all())

    def test_parameters_are_read_from_the_source(self):
        source = """
        // __global__ void hidden(int a)
        template <typename T> __global__ void __launch_bounds__(256, 2)
        scale(T *y, const T *__restrict__ x, float const *w, unsigned long long n, const float4* q, double eps = 1, int) {}
        """
        half, single = np.zeros(N, np.float16), np.zeros(N, np.float32)
        given = {"kernel_source": source, "arguments": [half, half, single, 1, single, 2, 3], "answer": None}
        made = definition(kernel_name="ns::scale<float>", **given)
        types = {name: each.get("buffer") or each["scalar"] for name, each in made.spec["arguments"].items()}
        self.assertEqual(
            types,
            {"y": "f16", "x": "f16", "w": "f32", "n": "u64", "q": "f32", "eps": "f64", "argument_6": "i32"},
        )
        self.assertEqual(made.notes[0], "y: read and written; x, w, n, q, eps, argument_6: read")
        with self.assertRaisesRegex(cubind.InvalidArgumentError, r"it has scale\)"):
            definition(kernel_name="hidden", **given)
