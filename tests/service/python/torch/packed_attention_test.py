"""Attention of packed sequences: varlen_attention() and its operator, by torch's functions on the CPU and
launched on a fake driver that reads no memory. Needs torch."""

import functools
import itertools
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import torch
import torch_launches
from torch_launches import on_gpu

LENGTHS, KEYS = (5, 0, 1, 12, 7), (9, 3, 0, 12, 2)


def offsets(lengths):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)


def rows(lengths, heads, size=8, dtype=torch.float64):
    return torch.randn(sum(lengths), heads, size, dtype=dtype, requires_grad=True)


# One sequence after the other, by plain masks.
def one_by_one(q, k, v, q_lengths, k_lengths, causal, left, right, cap):
    parts = []
    for one in zip(*(t.split(lengths) for t, lengths in ((q, q_lengths), (k, k_lengths), (v, k_lengths)))):
        q1, k1, v1 = (t.transpose(0, 1) for t in one)
        k1, v1 = (t.repeat_interleave(q1.shape[0] // t.shape[0], 0) for t in (k1, v1))
        scores = q1 @ k1.mT * 0.3
        if cap:
            scores = cap * (scores / cap).tanh()
        ahead = torch.arange(k1.shape[1]) - (torch.arange(q1.shape[1])[:, None] + k1.shape[1] - q1.shape[1])
        seen = (ahead <= (0 if causal else right if right >= 0 else 99)) & (
            ahead >= (-left if left >= 0 else -99)
        )
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(0.0)
        parts.append((weights @ v1).transpose(0, 1))
    return torch.cat(parts)


class Results(unittest.TestCase):
    def test_each_sequence_is_attended_by_itself(self):
        torch.manual_seed(0)
        masks = ((False, -1, -1, 0), (True, -1, -1, 0), (True, 2, -1, 0), (False, 3, 1, 2), (True, -1, -1, 4))
        for keys, (causal, left, right, cap) in itertools.product((LENGTHS, KEYS), masks):
            with self.subTest(f"{keys} {causal} {left} {right} {cap}"):
                q, k, v = rows(LENGTHS, 4), rows(keys, 2), rows(keys, 2)
                bounds = offsets(LENGTHS)
                k_bounds = bounds if keys is LENGTHS else offsets(keys)
                found = operators.varlen_attention(
                    q, k, v, bounds, k_bounds, 12, 12, causal, 0.3, (left, right), cap
                )
                expected = one_by_one(q, k, v, LENGTHS, keys, causal, left, right, cap)
                torch.testing.assert_close(found, expected)
                slope = torch.randn_like(found)
                theirs = torch.autograd.grad(expected, (q, k, v), slope)
                for a, b in zip(torch.autograd.grad(found, (q, k, v), slope), theirs):
                    torch.testing.assert_close(a, b)

    def test_sequences_that_do_not_belong_together_are_refused(self):
        q, k, bounds = rows(LENGTHS, 2), rows(KEYS, 2), offsets(LENGTHS)
        for keys, found, told in (
            (k, offsets(KEYS[:4]), "cu_seqlens_k: 5 numbers, and 6 for the queries"),
            (k, bounds, "key: 26 rows, and the queries, whose sequences it has, 25"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, told):
                operators.varlen_attention(q, keys, keys, bounds, found, 12, 12)

    def test_the_formulas_of_both_passes_agree_also_with_gaps(self):
        q, k, v = (torch.randn(1, n, 20, 8, dtype=torch.float64, requires_grad=True) for n in (4, 2, 2))
        bounds = torch.tensor([3, 8, 8, 20], dtype=torch.int32)
        lengths = torch.tensor([4, 0, 99, 0], dtype=torch.int32)
        for left, cap in ((0, 0), (2, 3)):
            others = (bounds, bounds, lengths, lengths, True, left, 0, cap, True, False, False, 0.3)
            self.assertTrue(
                torch.autograd.gradcheck(
                    lambda *heads, others=others: torch.ops.cubind.packed_attention(*heads, *others)[0],
                    (q, k, v),
                    fast_mode=True,
                )
            )
            o, lse = torch.ops.cubind.packed_attention(q, k, v, *others)
            self.assertTrue((o[:, :, [0, 1, 2, 7]] == 0).all() and (lse[:, [0, 1, 2, 7]] == -torch.inf).all())

    def test_opcheck(self):
        q, k, v = (torch.randn(1, n, 20, 8, requires_grad=True) for n in (4, 2, 2))
        bounds = torch.tensor([0, 8, 20], dtype=torch.int32)
        others = (bounds, bounds, bounds, bounds, True, 2, 0, 3, False, False, False, 0.3)
        torch.library.opcheck(torch.ops.cubind.packed_attention.default, (q, k, v, *others))

    def test_a_graph_has_the_operator(self):
        q, k, v = rows(LENGTHS, 2), rows(LENGTHS, 2), rows(LENGTHS, 2)
        bounds = offsets(LENGTHS)

        def attend(q, k, v):
            return operators.varlen_attention(q, k, v, bounds, bounds, 12, 12, True)

        compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(q, k, v), attend(q, k, v))


class Launches(torch_launches.OnFakeDriver):
    def test_the_kernels_read_rows_where_one_projection_has_them(self):
        flat = torch.randn(96, 8 * 64, dtype=torch.bfloat16).view(96, 8, 64)
        q, k, v = (t.transpose(0, 1)[None] for t in flat.split([4, 2, 2], 1))
        bounds = torch.tensor([0, 40, 96], dtype=torch.int32)
        for gaps, cross in itertools.product((False, True), repeat=2):
            with self.subTest(f"gaps {gaps} cross {cross}"):
                others = (bounds, bounds, bounds, bounds, True, 0, 0, 0, gaps, cross, False, 0.1)
                (o, lse), (forward,) = self.launches_of(
                    lambda others=others: on_gpu("packed_attention", q, k, v, *others), 19
                )
                given = [t.data_ptr() for t in (q, k, v, o, lse, bounds)]
                self.assertEqual(list(forward.parameters[:6]), given)
                self.assertEqual([n % 2**32 for n in forward.parameters[16:19]], [8 * 64] * 3)
                self.assertEqual(forward.parameters[10] % 2**32, 2)  # sequences
                self.assertTrue(o.transpose(1, 2).is_contiguous())
                slope = torch.empty_like(o)
                gradients, backward = self.launches_of(
                    lambda others=others, slope=slope, o=o, lse=lse: on_gpu(
                        "packed_attention_backward", slope, q, k, v, o, lse, *others
                    ),
                    8,
                )
                self.assertEqual(list(backward[1].parameters[5:7]), [g.data_ptr() for g in gradients[1:]])
                self.assertTrue(all(g.transpose(1, 2).is_contiguous() for g in gradients))

    def test_every_mask_has_a_kernel(self):
        bounds = torch.tensor([0, 40, 96], dtype=torch.int32)
        for size, mask in ((64, (True, 8, 0, 0)), (256, (True, 0, 0, 50)), (128, (False, 9, 3, 30))):
            with self.subTest(f"{size} {mask}"):
                rows = torch.randn(1, 96, 2, size, dtype=torch.bfloat16)
                q, heads = rows.transpose(1, 2), rows.view(2, 48, 2, size).transpose(1, 2)
                packed = (q, q, q, bounds, bounds, bounds, bounds, *mask, False, False, True, 0.1)
                for name, given in (
                    ("packed_attention", packed),
                    ("attention", (heads, heads, heads, *mask, 0.1)),
                ):
                    call = functools.partial(on_gpu, name, *given)
                    self.assertEqual(len(self.launches_of(call, 1)[1]), 1)
