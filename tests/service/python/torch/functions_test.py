"""The functions of cubind.torch that replace torch's, on the CPU. Needs torch."""

import unittest
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
from operators_test import angles, made, turned
from torch.nn import functional
from torch_launches import logits_in


class Functions(unittest.TestCase):
    """What the kernels are not for is torch's own."""

    def test_signatures_are_those_of_torch(self):
        x, w, b = (t.detach() for t in (made(4, 8), made(8), made(8)))
        pairs = (
            (operators.rms_norm, functional.rms_norm, (x, [8], w)),
            (operators.rms_norm, functional.rms_norm, (x, [8])),
            (operators.layer_norm, functional.layer_norm, (x, [8], w, b)),
            (operators.layer_norm, functional.layer_norm, (x, [4, 8])),
            (operators.softmax, functional.softmax, (x, 0)),
            (operators.softmax, functional.softmax, (x, -1)),
            (operators.linear, functional.linear, (x, x)),
            (operators.linear, functional.linear, (x[0], x, b[:4])),
        )
        for ours, theirs, inputs in pairs:
            torch.testing.assert_close(ours(*inputs), theirs(*inputs))
        q = made(2, 3, 4, 8)
        mask = torch.zeros(4, 4, dtype=q.dtype)
        torch.testing.assert_close(
            operators.scaled_dot_product_attention(q, q, q, mask, 0.0, scale=0.5),
            functional.scaled_dot_product_attention(q, q, q, mask, 0.0, scale=0.5),
        )

    def test_cross_entropy_is_that_of_torch(self):
        x, target = made(6, 8, dtype=torch.bfloat16), torch.tensor([3, -1, 0, 7, -1, 2])
        options = (
            {},
            {"reduction": "sum"},
            {"reduction": "none"},
            {"weight": torch.ones(8, dtype=x.dtype)},
            {"label_smoothing": 0.1},
        )
        for option in options:
            given = {"ignore_index": -1, **option}
            torch.testing.assert_close(
                operators.cross_entropy(x, target, **given), functional.cross_entropy(x, target, **given)
            )
        loss = operators.cross_entropy(x, target, ignore_index=-1, dtype=torch.float32)
        torch.testing.assert_close(loss, functional.cross_entropy(x.float(), target, ignore_index=-1))
        image, classes = made(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64)
        torch.testing.assert_close(
            operators.cross_entropy(image, classes), functional.cross_entropy(image, classes)
        )
        with self.assertRaises(ValueError):
            operators.cross_entropy(x, target, reduction="median")

    def test_linear_cross_entropy_takes_some_rows_at_a_time(self):
        x, matrix = made(3, 2, 4), made(16, 4)
        target = torch.tensor([[3, -100], [0, 15], [7, 7]])
        expected = functional.cross_entropy((x @ matrix.t()).flatten(0, 1), target.flatten())
        with logits_in(16 * 8 * 4):
            products, mm = [], torch.mm
            with mock.patch.object(torch, "mm", lambda a, b, **out: products.append(a) or mm(a, b, **out)):
                found = operators.linear_cross_entropy(x, matrix, target)
        self.assertEqual([tuple(a.shape) for a in products], [(4, 4), (4, 16), (2, 4), (2, 16)])
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(3 * found, (x, matrix)),
            torch.autograd.grad(3 * expected, (x, matrix), retain_graph=True),
        )
        with torch.no_grad():
            torch.testing.assert_close(operators.linear_cross_entropy(x, matrix, target), expected.detach())
        frozen = operators.linear_cross_entropy(x, matrix.detach(), target)
        torch.testing.assert_close(torch.autograd.grad(frozen, x), torch.autograd.grad(expected, x))

    def test_those_that_torch_lacks_are_what_they_say(self):
        x, r, w, b, matrix = (
            made(2, 3, 8), made(2, 3, 8), made(8), made(8), made(4, 8),
        )  # fmt: skip
        normed = functional.layer_norm(x, (8,), w, b)
        pairs = (
            (operators.weighted_sum(x, w), x @ w),
            (operators.weighted_sum(w, b), w @ b),
            (operators.weighted_sum(x, matrix.t()), x @ matrix.t()),
            (operators.layer_norm_linear(x, w, b, matrix), functional.linear(normed, matrix)),
            (operators.layer_norm_linear(x, w, b, matrix, b[:4]), functional.linear(normed, matrix, b[:4])),
            (operators.add_rms_norm(x, r, w), (functional.rms_norm(x + r, (8,), w), x + r)),
            (operators.add_rms_norm(x, r[:1], w), (functional.rms_norm(x + r[:1], (8,), w), x + r[:1])),
        )
        for ours, expected in pairs:
            torch.testing.assert_close(ours, expected)

    def test_rotary_turns_the_halves_of_heads(self):
        q, k = made(2, 4, 3, 8), made(2, 1, 3, 8)
        cos, sin = angles(3, 8, torch.float64)
        expected = [turned(x.transpose(1, 2), cos, sin).transpose(1, 2) for x in (q, k)]
        for tables in ((cos, sin), (cos[None], sin[None]), (cos.expand(2, 3, 8), sin.expand(2, 3, 8))):
            torch.testing.assert_close(operators.rotary(q, k, *tables), tuple(expected))

    def test_those_that_torch_lacks_fall_back_under_autocast_and_vmap(self):
        x, w = made(3, 4, 8, dtype=torch.float32, gradients=False), made(8, dtype=torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(operators.weighted_sum(x, w).dtype, (x @ w).dtype)
            product = operators.layer_norm_linear(x, w, w, w.expand(4, 8))
            self.assertEqual(product.dtype, torch.bfloat16)
        calls = (
            lambda row: operators.weighted_sum(row, w),
            lambda row: operators.layer_norm_linear(row, w, w, w.expand(4, 8)),
            lambda row: operators.add_rms_norm(row, row, w)[0],
        )
        for call in calls:
            torch.testing.assert_close(torch.func.vmap(call)(x), call(x))

    def test_vmap_falls_back(self):
        x, w = made(3, 4, 8, gradients=False), made(8, gradients=False)
        ours = torch.func.vmap(lambda row: operators.layer_norm(row, (8,), w, w))(x)
        torch.testing.assert_close(ours, functional.layer_norm(x, (8,), w, w))
