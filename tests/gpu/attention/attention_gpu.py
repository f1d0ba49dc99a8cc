"""Attention of cubind.torch on a GPU: no copies around its kernels, and the gradients of torch.

    python tests/gpu/attention/attention_gpu.py

Needs a GPU of compute capability 8.0 or later, torch and the package cubind.
"""

import sys
import unittest

import cubind.torch as operators
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(77)

B, S, HEADS, KV_HEADS, D = 2, 777, 6, 2, 64
COPIES = {"aten::copy_", "aten::contiguous", "aten::clone"}


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


# [B, heads, S, D] three times, and what the gradient is wanted of.
def dense():
    given = tuple(random(B, heads, S, D) for heads in (HEADS, KV_HEADS, KV_HEADS))
    return given, given


def of_own_projections():
    flat = tuple(random(B, S, heads * D) for heads in (HEADS, KV_HEADS, KV_HEADS))
    return tuple(x.view(B, S, -1, D).transpose(1, 2) for x in flat), flat


def of_one_projection():
    flat = random(B, S, (HEADS + 2 * KV_HEADS) * D)
    parts = flat.split([HEADS * D, KV_HEADS * D, KV_HEADS * D], -1)
    return tuple(x.view(B, S, -1, D).transpose(1, 2) for x in parts), (flat,)


class Attention(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        operators.strict()

    @classmethod
    def tearDownClass(cls):
        operators.strict(False)

    def step(self, make, attend):
        torch.manual_seed(0)
        given, flat = make()
        o = attend(*given, is_causal=True, enable_gqa=True)
        rows = o if o.is_contiguous() else o.transpose(1, 2).view(B, S, HEADS * D)
        return o, torch.autograd.grad(rows, flat, torch.randn_like(rows))

    def test_nothing_is_copied_in_either_pass(self):
        for make in (dense, of_own_projections, of_one_projection):
            with self.subTest(make.__name__):
                self.step(make, operators.scaled_dot_product_attention)
                torch.cuda.synchronize()
                with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
                    self.step(make, operators.scaled_dot_product_attention)
                    torch.cuda.synchronize()
                called = {event.name for event in recorded.events()}
                self.assertEqual(called & COPIES, set())
                for kernel in ("flash_attention_forward", "backward_keys", "backward_queries"):
                    self.assertTrue(any(kernel in name for name in called), called)

    def test_gradients_are_those_of_torch(self):
        for make in (dense, of_own_projections, of_one_projection):
            with self.subTest(make.__name__):
                ours = self.step(make, operators.scaled_dot_product_attention)
                theirs = self.step(make, functional.scaled_dot_product_attention)
                for a, b in zip((ours[0], *ours[1]), (theirs[0], *theirs[1])):
                    torch.testing.assert_close(a, b, rtol=0.02, atol=0.03)


if __name__ == "__main__":
    unittest.main()
