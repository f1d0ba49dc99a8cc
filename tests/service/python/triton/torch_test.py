"""Definitions of calls with torch's tensors: memory that is shared, integers, and grids that look at
tensors."""

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import cubind.triton
import running
import torch
import triton
import triton.language as tl
import triton_stub as stub


@triton.autotune(stub.configurations(128, 256), ["N"])
@triton.jit
def gather(x, index, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + tl.load(index + at, mask=at < N, other=0)), mask=at < N)


class Torch(stub.Case):
    def setUp(self):
        super().setUp()
        gather.cache.clear()
        self.x, self.y = torch.full((1000,), 0.123456789), torch.empty(1000)
        self.index = torch.arange(1000) // 2

    def arguments(self, *tensors):
        return stub.question_of(gather, *tensors, 1000).arguments

    def test_of_integers_there_are_range_order_and_a_histogram(self):
        index = self.arguments(self.x, self.index, self.y)[1].contents
        self.assertEqual((index.least, index.most, index.ascending), (0, 499, True))
        self.assertEqual((len(index.histogram), sum(index.histogram)), (16, 1000))
        self.assertLess(max(index.histogram) - min(index.histogram), 4)

    def test_integers_may_be_equal_small_large_or_truth_values(self):
        for tensor, least, most in (
            (torch.full((7,), 3), 3, 3),
            (torch.tensor([True, False, True]), 0, 1),
            (torch.tensor([-(1 << 63), (1 << 63) - 1]), -(1 << 63), (1 << 63) - 1),
            (torch.tensor([255], dtype=torch.uint8), 255, 255),
        ):
            contents = self.arguments(self.x, tensor, self.y)[1].contents
            self.assertEqual((contents.least, contents.most), (least, most))
        for tensor in (torch.empty(0, dtype=torch.int32), torch.ones(9, dtype=torch.uint32)):
            self.assertIsNone(self.arguments(self.x, tensor, self.y)[1].contents)

    def test_contents_of_other_tensors_and_of_outputs_are_not_looked_at(self):
        found = stub.question_of(gather, self.x, self.index, self.y, 1000)
        spec = stub.spec_of(found, with_values=True)
        sent = b"".join([spec.json, *spec.files.values()])
        self.assertIn(self.index[:3].numpy().tobytes(), sent)
        self.assertNotIn(self.x[:3].numpy().tobytes(), sent)
        x, _, y, _ = found.arguments
        self.assertEqual((x.contents, y.contents), (None, None))
        self.assertIsNone(self.arguments(self.x, self.index, self.index.clone())[2].contents)

    def test_views_tell_where_they_lie_in_their_memory(self):
        pool = torch.zeros(4000)
        x, _, y, _ = self.arguments(pool[16:1016], self.index, pool.view(40, 100)[::2, 20])
        self.assertEqual((x.storage, y.storage, x.storage_bytes), (0, 0, 16000))
        self.assertEqual((x.offset_bytes, x.divisibility, y.strides, y.shape), (64, 16, (200,), (20,)))
        self.assertEqual((y.offset_bytes, y.divisibility), (80, 16))

    def test_types_are_tritons(self):
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float8_e4m3fn, "fp8e4nv"), (torch.int64, "i64")):
            (y,) = self.arguments(self.x, self.index, self.y.to(dtype))[2:3]
            self.assertEqual(y.type, name)

    def test_a_reinterpreted_tensor_lies_in_its_base(self):
        base = torch.zeros(1000, dtype=torch.uint8)
        wrapped = triton.reinterpret(base, tl.float8e5)
        x = self.arguments(wrapped, self.index, self.y)[0]
        self.assertEqual((x.type, x.storage_bytes), ("fp8e5", 1000))

    def test_a_grid_may_look_at_shapes_and_not_into_tensors(self):
        lengths, daemon = torch.tensor([3, 4]), stub.Daemon(0)
        stub.install(daemon)
        gather[lambda v: (v["x"].shape[0] // v["x"].size(0) + lengths.numel(),)](
            self.x, self.index, self.y, 1
        )
        self.assertEqual((len(daemon.asked), stub.Driver.launches[0][0]), (1, (3, 1, 1)))
        gather[lambda v: (int(lengths.max()),)](self.x, self.index, self.y, 2)
        gather[lambda v: (int(v["index"][0]) + 1,)](self.x, self.index, self.y, 3)
        self.assertEqual(len(daemon.asked), 1)
        self.assertIn("a grid that depends on tensors: it calls aten.max", cubind.triton.report())
        self.assertIn("a grid that fails without tensors", cubind.triton.report())

    def test_an_interpreted_kernel_is_tuned_by_triton(self):
        program = (
            "from torch_test import *\n"
            "stub.start()\n"
            "daemon = stub.Daemon(1)\n"
            "stub.install(daemon)\n"
            "x, y = torch.rand(100), torch.empty(100)\n"
            "gather[(1,)](x, torch.arange(100), y, 100)\n"
            "print(torch.equal(x, y), daemon.asked, stub.Driver.benchmarked, cubind.triton.report())"
        )
        found = running.run_python(program, TRITON_INTERPRET="1")
        self.assertRegex(found, r"True \[\] 2 .*gather: 1 times Triton's own: it is interpreted")
