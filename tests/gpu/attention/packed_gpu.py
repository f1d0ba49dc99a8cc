"""Packed attention on a GPU: a sequence has the bits that it has alone, whatever else is in the batch.

    python tests/gpu/attention/packed_gpu.py

Needs a GPU of compute capability 8.0 or later, torch and the package cubind with its programs.
"""

import itertools
import pathlib
import sys
import unittest

import cubind
import cubind.torch as operators
import torch
from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench" / "common"))
from daemon import Daemon

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(77)

LENGTHS = (511, 64, 1, 900, 128, 333)


def both_passes(q, k, v, slope, lengths):
    """The output and the gradients of q, k and v."""
    leaves = [one.detach().requires_grad_() for one in (q, k, v)]
    starts = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device="cuda")
    longest = max(lengths)
    o = operators.varlen_attention(*leaves, starts, starts, longest, longest, is_causal=True)
    return o.detach(), *torch.autograd.grad(o, leaves, slope)


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon(programs.program("cubind").parent))
        operators.use(cubind.connect(cls.daemon.address))
        operators.strict(True)  # no formula of torch's, whose bits are others
        cls.addClassCleanup(operators.use, None)
        cls.addClassCleanup(operators.strict, False)

    def test_a_sequence_has_the_bits_that_it_has_alone(self):
        for dim, dtype in itertools.product((64, 128), (torch.bfloat16, torch.float16)):
            torch.manual_seed(0)
            q, slope = torch.randn(2, sum(LENGTHS), 32, dim, device="cuda", dtype=dtype)
            k, v = torch.randn(2, sum(LENGTHS), 8, dim, device="cuda", dtype=dtype)
            packed = both_passes(q, k, v, slope, LENGTHS)
            for end, length in zip(itertools.accumulate(LENGTHS), LENGTHS, strict=True):
                own = slice(end - length, end)
                alone = both_passes(q[own], k[own], v[own], slope[own], [length])
                for name, one, whole in zip(("o", "dq", "dk", "dv"), alone, packed, strict=True):
                    with self.subTest(dim=dim, dtype=dtype, length=length, tensor=name):
                        self.assertTrue(torch.equal(one, whole[own]))


if __name__ == "__main__":
    unittest.main()
