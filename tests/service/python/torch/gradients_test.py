"""Backward passes that go from their node to the launch without the dispatcher. Needs torch."""

import functools

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
import torch_launches
from torch_calls import SIZE, Quiet, calls, described, ones, placed, run
from torch_launches import as_if_on_gpu, directly, on_gpu


class Backward(torch_launches.OnFakeDriver):
    """The backward pass of a direct call goes to its kernel without the dispatcher."""

    def setUp(self):
        super().setUp()
        x, q = ones(SIZE, SIZE), ones(1, 8, 128, 128)
        known = calls()
        for name in ("layer_norm", "softmax", "weighted_sum"):
            for each in (name, f"{name}_backward"):
                run(each, known[each])
        on_gpu("activation", x, 1), on_gpu("activation_backward", x, x, 1)
        on_gpu("gated_activation", x, x, 1), on_gpu("gated_activation_backward", x, x, x, 1)
        on_gpu("attention", q, q, q, True, 0, 0, 0, 0.1)
        on_gpu("attention_backward", q, q, q, q, q, torch.ones(1, 8, 128), True, 0, 0, 0, 0.1)

    def cases(self):
        """(name, result, its inputs)."""
        x, up, w, b = (
            ones(*shape, requires_grad=True) for shape in ((SIZE, SIZE), (SIZE, SIZE), (SIZE,), (SIZE,))
        )
        q, k, v = (ones(1, 8, 128, 128, requires_grad=True) for _ in range(3))
        yield "layer_norm", operators.layer_norm(x, (SIZE,), w, b), (x, w, b)
        yield "softmax", operators.softmax(x), (x,)
        yield "weighted_sum", operators.weighted_sum(x, w), (x, w)
        yield "gelu", operators.gelu(x), (x,)
        yield "geglu", operators.geglu(x, up), (x, up)
        yield "attention", operators.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v)

    def by_kernel(self, y, inputs, **options):
        """The gradients and their launches, if no operator of the dispatcher takes part."""
        backward = functools.partial(torch.autograd.grad, y, inputs, torch.ones_like(y), **options)
        with directly():
            return self.launches_of(backward, 3)

    def test_it_launches_what_the_longer_way_does(self):
        for name, y, inputs in self.cases():
            with self.subTest(name):
                slope, function = torch.ones_like(y), y.grad_fn
                saved = *function.saved_tensors, *inputs
                with torch.no_grad(), as_if_on_gpu():
                    longer = functools.partial(function._forward_cls.backward, function, slope)
                    expected, first = self.launches_of(longer, 3)
                found, launches = self.by_kernel(y, inputs)
                self.assertEqual(described(found), described(expected))
                self.assertEqual(
                    [placed(one, (*saved, *found)) for one in launches],
                    [placed(one, (*saved, *expected)) for one in first],
                )

    def test_only_the_gradients_that_are_needed(self):
        x, w, b = ones(SIZE, SIZE), ones(SIZE, requires_grad=True), ones(SIZE)
        y = operators.layer_norm(x, (SIZE,), w, b)
        (dw,), launches = self.by_kernel(y, (w,), retain_graph=True)
        self.assertEqual((dw.shape, y.grad_fn.needs_input_grad), (w.shape, (False, True, False)))
        self.assertTrue(launches)
        with torch.no_grad():
            self.assertEqual(y.grad_fn.apply(torch.ones_like(y))[::2], (None, None))

    def test_not_where_somebody_looks_on_or_the_pass_is_differentiated(self):
        y = operators.softmax(ones(SIZE, SIZE, requires_grad=True))
        contexts = (
            torch.autocast("cpu"),
            Quiet(),
            torch.autograd.forward_ad.dual_level(),
            torch.enable_grad(),
        )
        for context in contexts:
            with self.subTest(str(context)), torch.no_grad(), context:
                _, launches = self.launches_of(lambda: y.grad_fn.apply(torch.ones_like(y)), 3)
                self.assertEqual(launches, [])


class Unknown(torch_launches.OnFakeDriver):
    def test_a_kernel_that_is_not_known_is_asked_for_and_a_hook_unpacks_once(self):
        unpacked = []

        def unpack(tensor):
            unpacked.append(tensor)
            return tensor

        x = ones(SIZE, SIZE, requires_grad=True)
        on_gpu("softmax", x.detach())
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = operators.softmax(x)
        with as_if_on_gpu():
            _, launches = self.launches_of(lambda: torch.autograd.grad(y, x, torch.ones_like(y)), 3)
        self.assertEqual((len(unpacked), len(launches)), (1, 1))
