"""Calls that go from tensors to the launch without a line of Python: when they do, and that they launch what
the longer way does. Needs torch."""

import contextlib
import functools
import unittest
import warnings

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
import torch_launches
from torch_calls import SIZE, Quiet, calls, described, ones, placed, run, several
from torch_launches import as_if_on_gpu, directly, on_gpu

# A torch without one of its quicker ways.
OLDER = """
import unittest, torch
del {missing}
unittest.main("direct_test", argv=["", "Calls.test_a_few_calls_launch_what_the_longer_way_does"])
"""


class Calls(torch_launches.OnFakeDriver):
    def check(self, *names):
        for name, inputs in calls().items():
            if name not in names:
                continue
            with self.subTest(name):
                tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
                expected, first = self.launches_of(lambda name=name, inputs=inputs: run(name, inputs), 3)
                with directly():
                    result, launches = self.launches_of(lambda name=name, inputs=inputs: run(name, inputs), 3)
                self.assertTrue(1 <= len(launches) <= 3)
                self.assertEqual(described(result), described(expected))
                self.assertEqual(
                    [placed(one, (*tensors, *several(result))) for one in launches],
                    [placed(one, (*tensors, *several(expected))) for one in first],
                )

    def test_every_call_launches_what_the_longer_way_does(self):
        self.check(*calls())

    def test_a_few_calls_launch_what_the_longer_way_does(self):
        self.check("layer_norm", "weighted_sum_backward", "rotary")

    def test_a_torch_without_its_quicker_ways_launches_the_same(self):
        for missing in ("_C._dynamo.guards._empty_strided_cpu", "Tensor.__dlpack_c_exchange_api__"):
            running.run_python(OLDER.format(missing=f"torch.{missing}"))

    def rms_norm(self, x, w):
        return self.launches_of(lambda: on_gpu("rms_norm", x, w, 1e-6), 4)

    def test_sizes_of_a_bucket_take_turns(self):
        x, w = ones(SIZE, SIZE), ones(SIZE)
        self.rms_norm(x, w)
        with directly():
            for rows in (3000, 3000, 3000, 4000, 3000, 3000):  # a launch that is repeated is prepared
                y, (launch,) = self.rms_norm(x[:rows], w)
                given = [x.data_ptr(), w.data_ptr(), y.data_ptr(), rows]
                self.assertEqual((list(launch.parameters[:4]), y.shape), (given, (rows, SIZE)))
            with self.assertRaisesRegex(AssertionError, "the longer way"):
                self.rms_norm(x[:8], w)  # of another bucket

    def test_step_keeps_answers_that_are_final_and_forgets_those_of_another_client(self):
        x, w = ones(SIZE, SIZE), ones(SIZE)
        self.rms_norm(x, w)
        with directly():
            operators.step()
            self.rms_norm(x, w)
            operators.use(self.other_client())
            self.rms_norm(x, w)
            operators.step()
            with self.assertRaisesRegex(AssertionError, "the longer way"):
                self.rms_norm(x, w)

    def test_what_is_not_as_simple_is_left_to_the_longer_way(self):
        x, w = ones(SIZE, SIZE), ones(SIZE)
        self.rms_norm(x, w)
        others = {
            "strided": (x.t(), w),
            "no rows": (x[:0], w),
            "another size": (x[:, :8].contiguous(), w[:8]),
            "another type": (x.float(), w.float()),
            "two types": (x, w.float()),
            "an odd address": (ones(1 + SIZE * SIZE)[1:].view(SIZE, SIZE), w),
            "on no device": (x.to("meta"), w.to("meta")),
        }
        for name, tensors in others.items():
            with self.subTest(name), directly(), contextlib.suppress(AssertionError):
                self.assertEqual(self.rms_norm(*tensors)[1], [])


class Missing(unittest.TestCase):
    def setUp(self):
        operators.strict()
        operators.use(cubind.Client(f"unix://{running.SOURCE}/no.sock", timeout=2))
        operators.step()  # forgets the answers of another client
        operators.strict(False)
        self.addCleanup(operators.use, None)
        self.addCleanup(operators.strict, False)  # drops the questions
        self.enterContext(warnings.catch_warnings(action="ignore"))

    def test_operators_compute_by_torch_and_look_for_a_kernel_once(self):
        for name, inputs in calls().items():
            with self.subTest(name):
                first = several(run(name, inputs))
                with directly():
                    second = several(run(name, inputs))
                for a, b in zip(first, second):
                    self.assertTrue(a.isfinite().all())
                    torch.testing.assert_close(a, b, rtol=0, atol=0)


class Functions(torch_launches.OnFakeDriver):
    """cubind.torch's functions by that way: here tensors of the CPU take it too, once a variant for them is
    known."""

    def setUp(self):
        super().setUp()
        self.x, self.w = ones(SIZE, SIZE), ones(SIZE)
        on_gpu("rms_norm", self.x, self.w, 1e-6)

    def enter_backward(self):
        """The backward pass does not look where its tensors lie any more; its kernel for rms_norm is
        known."""
        self.enterContext(as_if_on_gpu())
        on_gpu("rms_norm_backward", self.x, self.x, self.w, 1e-6)

    def launches(self, **options):
        x, shape = options.get("x", self.x), options.get("shape", (SIZE,))
        return self.launches_of(lambda: operators.rms_norm(x, shape, self.w, 1e-6), 5)

    def test_plain_calls(self):
        for shape in ((SIZE,), [SIZE], torch.Size([SIZE])):
            y, (launch,) = self.launches(shape=shape)
            self.assertEqual((y.shape, launch.parameters[2]), (self.x.shape, y.data_ptr()))
        with torch.inference_mode():
            self.assertEqual(len(self.launches()[1]), 1)
        self.assertEqual(len(self.launches(x=torch.nn.Parameter(self.x))[1]), 1)

    def test_not_where_somebody_looks_on(self):
        class Watched(torch.Tensor):
            pass

        def norm(x):
            return operators.rms_norm(x, (SIZE,), self.w, 1e-6)

        contexts = (torch.autocast("cpu"), Quiet(), torch.autograd.forward_ad.dual_level())
        for context in contexts:
            with self.subTest(str(context)), context:
                self.assertEqual(self.launches()[1], [])
        self.assertEqual(self.launches_of(lambda: torch.func.vmap(norm)(self.x), 5)[1], [])
        self.assertEqual(self.launches(x=self.x.as_subclass(Watched))[1], [])
        traced = functools.partial(torch.jit.trace, norm, (self.x,), check_trace=False)
        with warnings.catch_warnings(action="ignore"):
            self.assertEqual(self.launches_of(traced, 5)[1], [])
        self.assertEqual(len(self.launches()[1]), 1)

    def test_attention_is_a_plain_call_where_all_its_kernels_are_known(self):
        q, few = ones(1, 32, 128, 128), ones(1, 8, 128, 128)
        trained, mask = q.clone().requires_grad_(), torch.ones(128, 128, dtype=torch.bool)

        def launches(*inputs, **options):
            call = functools.partial(
                operators.scaled_dot_product_attention, *inputs, is_causal=True, **options
            )
            return self.launches_of(call, 5)

        self.assertEqual(launches(q, q, q)[1], [])
        on_gpu("attention", q, q, q, True, 0, 0, 0, 0.1)
        o, found = launches(q, q, q)
        self.assertTrue(found)
        self.assertEqual(o.shape, q.shape)
        self.assertEqual(launches(trained, q, q)[1], [])  # no kernel is known for its gradients
        with torch.no_grad():
            self.assertTrue(launches(trained, q, q)[1])
        on_gpu("attention_backward", q, q, q, q, q, torch.ones(1, 32, 128), True, 0, 0, 0, 0.1)
        self.assertTrue(launches(trained, q, q)[0].requires_grad)
        self.assertTrue(launches(trained, q, q)[1])
        self.assertEqual(launches(q, few, few, enable_gqa=True)[1], [])
        on_gpu("attention", q, few, few, True, 0, 0, 0, 0.1)
        self.assertTrue(launches(q, few, few, enable_gqa=True)[1])
        self.assertEqual(launches(q, q, q, dropout_p=0.5)[1], [])
        self.assertEqual(launches(q, q, q, attn_mask=mask)[1], [])
        nested = torch.nested.nested_tensor([q[0], q[0]])
        with contextlib.suppress(RuntimeError):  # torch's, on the CPU
            self.assertEqual(launches(nested, nested, nested)[1], [])

    def test_a_default_for_eps_is_a_plain_call_too(self):
        _, (given,) = self.launches_of(lambda: operators.rms_norm(self.x, (SIZE,), self.w, 2**-7), 5)
        _, (default,) = self.launches_of(lambda: operators.rms_norm(self.x, (SIZE,), self.w), 5)
        self.assertEqual(torch.finfo(torch.bfloat16).eps, 2**-7)
        self.assertEqual(default.parameters[4] & 0xFFFFFFFF, given.parameters[4] & 0xFFFFFFFF)

    def test_another_shape_than_the_weights_is_torchs_to_refuse(self):
        for shape in ((SIZE - 1,), (SIZE, SIZE), (), "x"):
            with self.subTest(str(shape)), contextlib.suppress(RuntimeError, TypeError):
                self.assertEqual(self.launches(shape=shape)[1], [])

    def test_gradients(self):
        x, w = self.x.clone().requires_grad_(), self.w.clone().requires_grad_()
        self.enter_backward()
        y, (forward,) = self.launches_of(lambda: operators.rms_norm(x, (SIZE,), w, 1e-6), 5)
        self.assertEqual(forward.parameters[2], y.data_ptr())
        self.assertTrue(y.requires_grad)
        slope = torch.ones_like(y)
        (dx, dw), launches = self.launches_of(lambda: torch.autograd.grad(y, (x, w), slope), 4)
        self.assertEqual((dx.shape, dw.shape), (x.shape, w.shape))
        given = [tensor.data_ptr() for tensor in (x, w, slope)]
        self.assertEqual(list(launches[0].parameters[:3]), given)

    def test_hooks_see_what_is_saved(self):
        x, packed = self.x.clone().requires_grad_(), []

        def pack(tensor):
            packed.append(tensor.data_ptr())
            return tensor.clone()

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = operators.rms_norm(x, (SIZE,), self.w, 1e-6)
        self.assertEqual(packed, [x.data_ptr(), self.w.data_ptr()])
        self.assertEqual(len(y.grad_fn.saved_tensors), 2)
        y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "backward through the graph a second time"):
            y.sum().backward()

    def test_each_backward_pass_has_the_numbers_of_its_forward_pass(self):
        x = self.x.clone().requires_grad_()
        for eps in [*(number / 64 for number in range(20)), 0.0, 1]:  # more than are kept
            y = operators.rms_norm(x, (SIZE,), self.w, eps)
            again = operators.rms_norm(x, (SIZE,), self.w, eps)
            operators.rms_norm(x, (SIZE,), self.w, 7.0)
            self.assertEqual((y.grad_fn.others, again.grad_fn.others), ((eps,), (eps,)))
        self.assertIs(type(y.grad_fn), type(again.grad_fn))

    def test_only_the_gradients_that_are_needed(self):
        w = self.w.clone().requires_grad_()
        y = operators.rms_norm(self.x, (SIZE,), w, 1e-6)
        y.backward(torch.ones_like(y))
        self.assertEqual((w.grad.shape, self.x.grad), (w.shape, None))
        with torch.no_grad():
            self.assertFalse(operators.rms_norm(self.x, (SIZE,), w, 1e-6).requires_grad)

    def test_a_changed_input_is_noticed_by_the_backward_pass(self):
        x = self.x.clone().requires_grad_()
        y = operators.rms_norm(x, (SIZE,), self.w, 1e-6)
        with torch.no_grad():
            x.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_a_backward_pass_that_is_differentiated_goes_by_the_dispatcher(self):
        x = self.x.clone().requires_grad_()
        self.enter_backward()
        y = operators.rms_norm(x, (SIZE,), self.w, 1e-6)
        for differentiated in (False, True):
            backward = functools.partial(
                torch.autograd.grad, y, x, torch.ones_like(y), retain_graph=True, create_graph=differentiated
            )
            self.assertEqual(self.launches_of(backward, 3)[1] == [], differentiated)

    def test_the_other_operators_have_gradients(self):
        x, w = ones(SIZE, SIZE, requires_grad=True), ones(SIZE, requires_grad=True)
        tall, matrix = ones(16, SIZE, requires_grad=True), ones(SIZE, SIZE, requires_grad=True)
        q = ones(1, 32, 128, 128, requires_grad=True)
        k, v = (ones(1, 8, 128, 128, requires_grad=True) for _ in range(2))
        heads, turns = ones(2, 32, 4, 128, requires_grad=True), ones(32, 128)
        target = torch.zeros(SIZE, dtype=torch.int64)
        functions = {
            "layer_norm": (lambda: operators.layer_norm(x, (SIZE,), w, w), (x, w)),
            "softmax": (lambda: operators.softmax(x), (x,)),
            "linear": (lambda: operators.linear(tall, matrix), (tall, matrix)),
            "linear with a bias": (lambda: operators.linear(tall, matrix, w), (tall, matrix, w)),
            "linear of three dims": (lambda: operators.linear(tall.view(2, 8, SIZE), matrix, w), (tall, matrix, w)),
            "weighted_sum": (lambda: operators.weighted_sum(x, w), (x, w)),
            "add_rms_norm": (lambda: operators.add_rms_norm(x, x, w, 1e-6)[0], (x, w)),
            "add_rms_norm, the sum": (lambda: operators.add_rms_norm(x, x, w, 1e-6)[1], (x,)),
            "rotary": (
                lambda: operators.rotary(heads.transpose(1, 2), heads.transpose(1, 2), turns, turns)[1],
                (heads,),
            ),
            "swiglu": (lambda: operators.swiglu(x, x), (x,)),
            "cross_entropy": (lambda: operators.cross_entropy(x, target, dtype=torch.float32), (x,)),
            "layer_norm_linear": (lambda: operators.layer_norm_linear(tall, w, w, matrix), (tall, w, matrix)),
            "layer_norm_linear with a bias": (
                lambda: operators.layer_norm_linear(tall, w, w, matrix, w), (tall, w, matrix)
            ),
            "attention": (
                lambda: operators.scaled_dot_product_attention(
                    q, k, v, is_causal=True, scale=0.1, enable_gqa=True
                ),
                (q, k, v),
            ),
        }  # fmt: skip
        self.enter_backward()
        for name, inputs in calls().items():
            run(name, inputs)
        for name, (function, inputs) in functions.items():
            with self.subTest(name):
                with directly():
                    y, launches = self.launches_of(function, 1)
                self.assertTrue(1 <= len(launches) <= 3)
                gradients = torch.autograd.grad(y, inputs, torch.ones_like(y))
                self.assertEqual([g.shape for g in gradients], [t.shape for t in inputs])
