"""Attention of cubind.torch on tensors as models have them: views of projections are not copied. The shipped
variants, launched on a fake driver that reads no memory, and torch's functions on the CPU. Needs torch."""

import copy
import pickle
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
import torch_launches
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch_launches import left_to_torch, on_gpu

B, S, D = 2, 96, 64


# [B, heads, S, D] three times, and the projection that a gradient is wanted of.
def dense(heads, kv_heads, dtype=torch.bfloat16, size=D):
    q = torch.randn(B, heads, S, size, dtype=dtype, requires_grad=True)
    return q, *(torch.randn(B, kv_heads, S, size, dtype=dtype, requires_grad=True) for _ in range(2))


def of_own_projections(heads, kv_heads, dtype=torch.bfloat16, size=D):
    flat = [torch.randn(B, S, n * size, dtype=dtype, requires_grad=True) for n in (heads, kv_heads, kv_heads)]
    return tuple(x.view(B, S, -1, size).transpose(1, 2) for x in flat)


def of_one_projection(heads, kv_heads, dtype=torch.bfloat16, size=D):
    flat = torch.randn(B, S, (heads + 2 * kv_heads) * size, dtype=dtype, requires_grad=True)
    parts = flat.split([heads * size, kv_heads * size, kv_heads * size], -1)
    return tuple(x.view(B, S, -1, size).transpose(1, 2) for x in parts)


LAYOUTS = {"dense": dense, "own projections": of_own_projections, "one projection": of_one_projection}


def attend_twice(q, mask):
    """A mask is looked at when it is used for the second time."""
    operators.scaled_dot_product_attention(q, q, q, mask)
    return operators.scaled_dot_product_attention(q, q, q, mask)


class Launches(torch_launches.OnFakeDriver):
    def launches_of_both(self, q, k, v):
        q, k, v = q.detach(), k.detach(), v.detach()
        (o, lse), (forward,) = self.launches_of(lambda: on_gpu("attention", q, k, v, True, 0, 0, 0, 0.1), 12)
        slope = torch.empty_like(o)  # as a projection's gradient gives it
        gradients, backward = self.launches_of(
            lambda: on_gpu("attention_backward", slope, q, k, v, o, lse, True, 0, 0, 0, 0.1), 8
        )
        return o, slope, gradients, forward.parameters, [launch.parameters for launch in backward]

    def check_addresses(self, q, k, v):
        o, slope, gradients, forward, backward = self.launches_of_both(q, k, v)
        given = [t.data_ptr() for t in (q, k, v)]
        self.assertEqual(list(forward[:4]), [*given, o.data_ptr()])
        rows = [self.driver.row_bytes(address) for address in given]
        self.assertEqual(rows, [t.stride(2) * 2 for t in (q, k, v)])
        self.assertEqual(forward[10] % 2**32, 0 if q.is_contiguous() else q.stride(2))
        self.assertEqual(list(backward[0][:2]), [o.data_ptr(), slope.data_ptr()])
        self.assertEqual(list(backward[1][:4]), [*given, slope.data_ptr()])
        self.assertEqual(list(backward[1][5:7]), [gradients[1].data_ptr(), gradients[2].data_ptr()])
        self.assertEqual(backward[2][5], gradients[0].data_ptr())
        self.assertEqual((o.shape, [g.shape for g in gradients]), (q.shape, [q.shape, k.shape, v.shape]))

    def test_the_kernels_read_and_write_where_projections_do(self):
        for name, make in LAYOUTS.items():
            for size in (64, 128):
                with self.subTest(f"{name} {size}"):
                    self.check_addresses(*make(6, 2, size=size))
                    self.check_addresses(*make(6, 2, size=size))  # the variants are known

    def test_results_and_gradients_of_views_are_dense_views(self):
        for make in (of_own_projections, of_one_projection):
            o, _, gradients, *_ = self.launches_of_both(*make(6, 2))
            self.assertTrue(all(t.transpose(1, 2).is_contiguous() for t in (o, *gradients)))
        o, _, gradients, *_ = self.launches_of_both(*dense(6, 2))
        self.assertTrue(all(t.is_contiguous() for t in (o, *gradients)))

    def test_each_of_the_three_may_lie_in_its_own_order(self):
        q, _, _ = of_own_projections(6, 2)
        _, k, v = dense(6, 2)
        self.check_addresses(q, k, v)

    def test_what_the_kernels_cannot_read_is_copied(self):
        q, k, v = (t.detach() for t in of_own_projections(6, 6))
        odd = torch.randn(B, S, 6 * D + 4, dtype=q.dtype)[..., : 6 * D].view(B, S, 6, D).transpose(1, 2)
        late = torch.randn(1 + q.numel(), dtype=q.dtype)[1:].view(B, S, 6, D).transpose(1, 2)
        for other, row in ((odd, D), (late, 6 * D), (q[:, :, 1:], D)):
            k = v = other
            with self.subTest(str(other.stride())):
                (o, _), (launch,) = self.launches_of(
                    lambda k=k, v=v: on_gpu("attention", q, k, v, False, 0, 0, 0, 0.1), 12
                )
                self.assertEqual(launch.parameters[0], q.data_ptr())
                self.assertEqual(self.driver.row_bytes(launch.parameters[1]), row * 2)
                self.assertNotEqual(launch.parameters[1], other.data_ptr())
                self.assertTrue(o.transpose(1, 2).is_contiguous())

    def test_heads_whose_size_is_no_power_of_two_have_a_kernel(self):
        self.check_addresses(*of_one_projection(4, 4, size=80))


class Results(unittest.TestCase):
    def test_the_order_is_that_of_the_inputs_also_in_a_compiled_graph(self):
        def attend(q, k, v):
            return torch.ops.cubind.attention(q, k, v, True, 0, 0, 0, 0.1)[0]

        compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
        for name, make in LAYOUTS.items():
            with self.subTest(name):
                given = make(4, 2, torch.float32)
                expected = functional.scaled_dot_product_attention(
                    *given, is_causal=True, scale=0.1, enable_gqa=True
                )
                slope = torch.randn_like(expected)
                for call in (attend, compiled):
                    o = call(*given)
                    self.assertEqual(o.is_contiguous(), given[0].is_contiguous())
                    self.assertTrue(o.is_contiguous() or o.transpose(1, 2).is_contiguous())
                    torch.testing.assert_close(o, expected)
                    found = torch.autograd.grad(o, given, slope)
                    for a, b in zip(found, torch.autograd.grad(expected, given, slope, retain_graph=True)):
                        torch.testing.assert_close(a, b)


class Masks(unittest.TestCase):
    """Masks of a caller's own: (mask, the kernel's flags or why it has none)."""

    def cases(self):
        S, K = 9, 12
        square, wide = torch.ones(S, S, dtype=torch.bool), torch.ones(S, K, dtype=torch.bool)
        left = torch.ones(B, 1, 1, S, dtype=torch.bool)
        left[1, ..., :4] = False
        gap = left.clone()
        gap[0, ..., 5] = False
        causal = left & square.tril()
        floats = torch.zeros(S, S).masked_fill(~square.tril(), -torch.inf)
        no_form = "a mask of no form that the kernels have"
        packed = (0, 0, 0, True, True, False)
        yield "all", square, S, (False, 0, 0, 0)
        yield "causal", square.tril(), S, (True, 0, 0, 0)
        yield "causal as floats", floats, S, (True, 0, 0, 0)
        yield "more keys", wide.tril(K - S), K, (True, 0, 0, 0)
        yield "window", square.tril() & square.triu(-2), S, (True, 3, 0, 0)
        yield "padded keys", left, S, (False, *packed)
        yield "padded on the left", causal, S, (True, 0, 0, 0, True, False, False)
        yield "top left", wide.tril(), K, no_form
        yield "any", torch.rand(S, S) < 0.5, S, no_form
        yield "padded on the right", left.flip(-1) & square.tril(), S, no_form
        yield "a bias", floats + 0.5, S, no_form
        yield "a gap", gap, S, "a row of the mask has a gap"

    def test_a_mask_is_looked_at_when_it_is_used_again(self):
        torch.manual_seed(0)
        for name, mask, keys, expected in self.cases():
            with self.subTest(name), torch_launches.attention_by_formula() as attend:
                q = torch.randn(B, 4, 9, D, dtype=torch.bfloat16)
                k, v = (torch.randn(B, 2, keys, D, dtype=torch.bfloat16) for _ in range(2))
                given = mask if mask.dtype == torch.bool else mask.to(q.dtype)
                theirs = functional.scaled_dot_product_attention(q, k, v, given, enable_gqa=True)
                before = left_to_torch(expected)
                for _ in range(3):
                    found = operators.scaled_dot_product_attention(q, k, v, given, enable_gqa=True)
                    torch.testing.assert_close(found, theirs, rtol=2e-2, atol=2e-2)
                if isinstance(expected, str):
                    self.assertEqual(attend.call_count, 0)
                    self.assertEqual(left_to_torch(expected) - before, 2)
                else:
                    self.assertEqual([call.args for call in attend.call_args_list], [expected] * 2)

    def test_a_mask_that_was_changed_is_looked_at_again(self):
        q, mask = torch.randn(1, 2, 9, D, dtype=torch.bfloat16), torch.ones(9, 9, dtype=torch.bool)
        with torch_launches.attention_by_formula() as attend:
            attend_twice(q, mask)
            mask.tril_()
            attend_twice(q, mask)
        found = [call.args[0] for call in attend.call_args_list]
        self.assertEqual(found, [False, True])

    def test_a_copy_of_a_changed_mask_is_looked_at_again_and_a_mask_is_saved_as_without_cubind(self):
        q, mask = torch.randn(1, 2, 9, D, dtype=torch.bfloat16), torch.ones(9, 9, dtype=torch.bool).tril_()
        with torch_launches.attention_by_formula() as attend:
            attend_twice(q, mask)
            self.assertEqual(attend.call_count, 1)
            self.assertTrue(torch.equal(pickle.loads(pickle.dumps(mask)), mask))
            mask.fill_(True)
            twin = copy.deepcopy(mask)
            found = attend_twice(q, twin)
        theirs = functional.scaled_dot_product_attention(q, q, q, twin)
        torch.testing.assert_close(found, theirs, rtol=2e-2, atol=2e-2)

    def test_a_mask_that_gets_gradients_is_torchs(self):
        q, mask = torch.randn(1, 2, 9, D, dtype=torch.bfloat16), torch.zeros(9, 9, dtype=torch.bfloat16)
        with torch_launches.attention_by_formula() as attend:
            attend_twice(q, mask)
            mask.requires_grad_()
            o = operators.scaled_dot_product_attention(q, q, q, mask)
        self.assertEqual(attend.call_count, 1)
        self.assertIsNotNone(torch.autograd.grad(o.sum(), mask)[0])

    def test_masks_of_no_query_key_or_batch_are_torchs(self):
        for B, S, K in ((0, 9, 9), (2, 0, 9), (2, 9, 0)):
            with self.subTest(f"{B} {S} {K}"):
                q, k = torch.zeros(B, 2, S, D).bfloat16(), torch.zeros(B, 2, K, D).bfloat16()
                mask = torch.ones(S, K, dtype=torch.bool)
                for _ in range(2):
                    found = operators.scaled_dot_product_attention(q, k, k, mask)
                    self.assertEqual(found.shape, q.shape)

    def test_a_mask_that_may_be_changed_unnoticed_is_torchs(self):
        with torch_launches.attention_by_formula() as attend, torch.inference_mode():
            q, mask = torch.randn(1, 2, 9, D, dtype=torch.bfloat16), torch.ones(9, 9, dtype=torch.bool)
            for _ in range(3):
                operators.scaled_dot_product_attention(q, q, q, mask)
            mask.tril_()
            found = operators.scaled_dot_product_attention(q, q, q, mask)
            torch.testing.assert_close(found, functional.scaled_dot_product_attention(q, q, q, mask))
        self.assertEqual(attend.call_count, 0)

    def test_a_trace_takes_any_mask_and_one_without_contents_is_torchs(self):
        def twice(attend):
            return lambda q, mask: attend(attend(q, q, q, mask), q, q, mask)

        ours, theirs = map(
            twice, (operators.scaled_dot_product_attention, functional.scaled_dot_product_attention)
        )
        q, mask = torch.randn(1, 2, 9, D, dtype=torch.bfloat16), torch.ones(9, 9, dtype=torch.bool)
        with torch_launches.attention_by_formula() as attend:
            traced = torch.jit.trace(ours, (q, mask.tril()), check_trace=False)
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fakes = mode.from_tensor(q), torch.ones(9, 9, dtype=torch.bool)
                self.assertEqual(ours(*fakes).shape, q.shape)
        self.assertEqual(attend.call_count, 0)
        torch.testing.assert_close(traced(q, mask), theirs(q, mask), rtol=2e-2, atol=2e-2)

    def test_layers_that_are_computed_again_save_the_same(self):
        def attend(x):
            return operators.scaled_dot_product_attention(x, x, x, mask)

        x = torch.randn(1, 2, 9, D, dtype=torch.bfloat16, requires_grad=True)
        mask = torch.ones(9, 9, dtype=torch.bool).tril_()
        with torch_launches.attention_by_formula() as counted:
            y = checkpoint(attend, checkpoint(attend, x, use_reentrant=False), use_reentrant=False)
            (slope,) = torch.autograd.grad(y.sum(), x)
        self.assertEqual((slope.shape, counted.call_count), (x.shape, 4))

    def test_a_batch_of_masks_is_torchs(self):
        def twice(attend):
            return torch.vmap(lambda q, mask: attend(attend(q, q, q, mask), q, q, mask))

        q, masks = torch.randn(3, 1, 2, 9, D, dtype=torch.bfloat16), torch.ones(3, 9, 9).tril().bool()
        found = twice(operators.scaled_dot_product_attention)(q, masks)
        torch.testing.assert_close(found, twice(functional.scaled_dot_product_attention)(q, masks))
