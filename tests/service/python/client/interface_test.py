"""What of a problem is read from arrays."""

import types
import unittest

import cubind
import running
from cubind._interface import complete_problem, interface_of, merged, output_shape
from cubind.kernel import Kernel

RMSNORM = interface_of(
    {
        "dims": ["N", "D"],
        "types": ["T=bf16|f32"],
        "flags": [{"name": "CAUSAL", "value": 0}],
        "arguments": [
            {"name": "x", "source": "buffer", "type": "T", "shape": ["N", "D"]},
            {"name": "w", "source": "buffer", "type": "T", "shape": ["D"]},
            {"name": "y", "source": "buffer", "type": "T", "shape": ["N", "D"]},
            {"name": "rstd", "source": "buffer", "type": "f32", "shape": ["N"]},
            {"name": "work", "source": "buffer", "type": "f32", "shape": ["2 * N"]},
            {"name": "eps", "source": "caller", "type": "f32", "shape": []},
        ],
    }
)


def array(*shape, typestr="<f4"):
    return running.FakeArray(0x1000, shape, typestr)


class Problems(unittest.TestCase):
    def test_dims_and_types_come_from_the_arrays(self):
        problem = complete_problem(RMSNORM, {}, {"w": array(64), "x": array(8, 64), "eps": 1e-6})
        self.assertEqual(problem, {"N": 8, "D": 64, "T": "f32"})
        self.assertEqual(list(problem), ["N", "D", "T"])  # in the spec's order

    def test_the_first_axes_of_an_array_are_the_first_of_its_spec(self):
        self.assertEqual(complete_problem(RMSNORM, {}, {"x": array(2, 4, 64)})["N"], 8)
        self.assertEqual(merged((2, 3, 4), 1), (24,))
        self.assertEqual(merged((2, 3, 4), 3), (2, 3, 4))

    def test_what_is_given_holds_and_a_shape_against_it_is_refused(self):
        self.assertEqual(
            complete_problem(RMSNORM, {"T": "bf16", "CAUSAL": 1}, {"x": array(8, 64)})["T"], "bf16"
        )
        with self.assertRaisesRegex(
            cubind.InvalidArgumentError, r"argument x: has the shape \[8, 64\], .* with N = 9"
        ):
            complete_problem(RMSNORM, {"N": 9}, {"x": array(8, 64)})
        with self.assertRaisesRegex(cubind.InvalidArgumentError, r"argument w: .* with D = 64"):
            complete_problem(RMSNORM, {}, {"x": array(8, 64), "w": array(32)})
        with self.assertRaisesRegex(cubind.InvalidArgumentError, r"argument x: .*expected \[N, D\]"):
            complete_problem(RMSNORM, {}, {"x": array(8)})

    def test_what_no_array_tells_is_missing(self):
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "problem.N: is missing: pass N=..., T=..."):
            complete_problem(RMSNORM, {"D": 64}, {"x": 0x1000})

    def test_what_is_no_array_is_refused_by_its_name(self):
        for wrong in ([1.0], 1.0, "x"):
            with self.assertRaisesRegex(
                cubind.InvalidArgumentError, "argument x: a .* is no array in GPU memory"
            ):
                complete_problem(RMSNORM, {}, {"x": wrong, "w": array(64)})

    def test_outputs_have_the_shape_of_their_like(self):
        problem, given = {"N": 8, "D": 64, "T": "f32"}, {"x": array(2, 4, 64)}
        self.assertEqual(output_shape(RMSNORM, "y", 512, problem, given), (2, 4, 64))
        self.assertEqual(output_shape(RMSNORM, "rstd", 8, problem, given), (8,))
        self.assertEqual(output_shape(RMSNORM, "work", 16, problem, given), (16,))


class LeftOutArguments(unittest.TestCase):
    def test_an_input_need_not_be_given_where_it_has_no_elements(self):
        kernel = object.__new__(Kernel)
        variant = types.SimpleNamespace(parameters=(("bias", "buffer", "f32", "in"),))
        self.assertEqual(kernel._complete(variant, (0,), {}, {}, None, None), ([0], []))
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument bias: is missing"):
            kernel._complete(variant, (4,), {}, {}, None, None)


if __name__ == "__main__":
    unittest.main()
