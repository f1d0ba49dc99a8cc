"""What the operators of cubind.torch hand to their kernels: the shipped variants, compiled for real and
launched on a fake driver, which reads no memory. Tensors lie on the CPU. Needs torch."""

import functools
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch_found  # first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
import torch_launches
from cubind import _sealing
from cubind.torch import (
    _activation,
    _add_rms_norm,
    _attention,
    _cross_entropy,
    _dispatch,
    _layer_norm,
    _layer_norm_linear,
    _linear,
    _linear_cross_entropy,
    _rms_norm,
    _rotary,
    _softmax,
    _weighted_sum,
)


class Launches(torch_launches.OnFakeDriver):
    def rms_norm(self, x, w):
        return self.launches_of(lambda: _rms_norm._operator.direct(False, x, w, 1e-6), 5)

    def test_rms_norm_asks_once_for_a_bucket(self):
        w = torch.ones(4096, dtype=torch.bfloat16)
        x = torch.ones(2, 2048, 4096, dtype=torch.bfloat16)
        y, (launch,) = self.rms_norm(x, w)
        self.assertEqual(list(launch.parameters[:4]), [x.data_ptr(), w.data_ptr(), y.data_ptr(), 4096])
        self.assertEqual((y.shape, self.client.calls), (x.shape, 1))
        for rows in range(3000, 3100):
            _, (launch,) = self.rms_norm(x.view(-1, 4096)[:rows], w)
            self.assertEqual(launch.parameters[3], rows)
        self.assertEqual(self.client.calls, 1)

    def test_a_view_at_an_odd_address_is_copied(self):
        w, x = torch.ones(4096, dtype=torch.bfloat16), torch.ones(1 + 4096 * 4096, dtype=torch.bfloat16)
        _, (launch,) = self.rms_norm(x[1:].view(4096, 4096), w)
        self.assertNotEqual(launch.parameters[0], x[1:].data_ptr())
        self.assertEqual(launch.parameters[0] % 16, 0)

    def test_another_answer_is_taken_over_at_step_alone(self):
        w, x = torch.ones(4096, dtype=torch.bfloat16), torch.ones(4096, 4096, dtype=torch.bfloat16)
        self.rms_norm(x, w)
        other = self.other_client()
        operators.use(other)
        self.rms_norm(x, w)
        self.assertEqual(other.calls, 0)
        operators.step()
        self.rms_norm(x, w)
        self.assertEqual(other.calls, 1)

    def test_every_kernel_takes_what_its_operator_gives(self):
        x, w = torch.ones(4096, 4096, dtype=torch.bfloat16), torch.ones(4096, dtype=torch.bfloat16)
        rows = torch.ones(4096)
        q = torch.ones(1, 32, 128, 128, dtype=torch.bfloat16)
        k = torch.ones(1, 8, 128, 128, dtype=torch.bfloat16)
        lse = torch.ones(1, 32, 128)
        tall = torch.ones(16, 4096, dtype=torch.bfloat16)
        target, tokens = torch.zeros(4096, dtype=torch.int64), torch.ones(2, 32, 4, 128, dtype=x.dtype)
        calls = {
            "rms_norm_backward": (lambda: _rms_norm._backward_cuda(x, x, w, 1e-6), 3),
            "layer_norm": (lambda: _layer_norm._forward_cuda(x, w, w, 1e-5), 1),
            "layer_norm_backward": (lambda: _layer_norm._backward_cuda(x, x, w, rows, rows), 3),
            "softmax": (lambda: _softmax._forward_cuda(x), 1),
            "softmax_backward": (lambda: _softmax._backward_cuda(x, x), 1),
            "linear": (lambda: _linear._cuda(tall, x, w, False, True), 2),
            "linear without bias": (lambda: _linear._cuda(tall, x, None, False, True), 2),
            "weighted_sum": (lambda: _weighted_sum._forward_cuda(x, w), 2),
            "weighted_sum_backward": (lambda: _weighted_sum._backward_cuda(w, x, w), 2),
            "add_rms_norm": (lambda: _add_rms_norm._forward_cuda(x, x, w, 1e-6), 1),
            "add_rms_norm without gradients": (lambda: _add_rms_norm._bare_cuda(x, x, w, 1e-6), 1),
            "add_rms_norm_backward": (lambda: _add_rms_norm._backward_cuda(x, x, x, w, rows), 3),
            "layer_norm_linear": (lambda: _layer_norm_linear._cuda(tall, w, w, x, w, 1e-5), 3),
            "layer_norm_linear without bias": (
                lambda: _layer_norm_linear._cuda(tall, w, w, x, None, 1e-5),
                3,
            ),
            "activation": (lambda: _activation._cuda(x, 1), 1),
            "activation_backward": (lambda: _activation._backward_cuda(x, x, 3), 1),
            "gated_activation": (lambda: _activation._gated_cuda(x, x, 2), 1),
            "gated_activation_backward": (lambda: _activation._gated_backward_cuda(x, x, x, 2), 1),
            "cross_entropy": (lambda: _cross_entropy.forward_cuda(x, target, -100), 1),
            "cross_entropy_backward": (
                lambda: _cross_entropy._backward_cuda(rows, x, target, rows, -100),
                1,
            ),
            "rotary": (lambda: _rotary._cuda(tokens, tokens, w.view(32, 128), w.view(32, 128), False), 1),
            "rotary_backward": (
                lambda: _rotary._cuda(tokens, tokens, w.view(32, 128), w.view(32, 128), True),
                1,
            ),
            "attention": (lambda: _attention._forward_cuda(q, k, k, True, 0.1), 1),
            "attention_backward": (lambda: _attention._backward_cuda(q, q, k, k, q, lse, True, 0.1), 3),
        }
        for name, (call, most) in calls.items():
            with self.subTest(name):
                _, launches = self.launches_of(call, 3)
                self.assertTrue(1 <= len(launches) <= most, len(launches))

    def test_an_activation_without_a_gate_passes_null_for_what_it_does_not_read(self):
        x, dy = (torch.ones(3, 1001, dtype=torch.bfloat16) for _ in range(2))
        dx, (launch,) = self.launches_of(lambda: _activation._backward_cuda(dy, x, 1), 6)
        self.assertEqual(
            list(launch.parameters[:6]), [x.data_ptr(), 0, dy.data_ptr(), dx.data_ptr(), 0, 3 * 1001]
        )
        # Again, now that the variant is known, and for a view that is no whole array.
        wide = torch.ones(3, 2002, dtype=torch.bfloat16)[:, ::2]
        _, (launch,) = self.launches_of(lambda: _activation._backward_cuda(dy, x, 1), 6)
        self.assertEqual((launch.parameters[1], launch.parameters[4]), (0, 0))
        y, (launch,) = self.launches_of(lambda: _activation._gated_cuda(x, wide, 2), 4)
        self.assertNotEqual(launch.parameters[1], wide.data_ptr())
        self.assertEqual((y.shape, launch.parameters[3]), (x.shape, 3 * 1001))

    def test_cross_entropy_stores_two_numbers_for_a_row_and_reads_its_input_again(self):
        x = torch.ones(6, 50257, dtype=torch.bfloat16, requires_grad=True)
        target = torch.zeros(6, dtype=torch.int64)
        (loss, lse), (launch,) = self.launches_of(
            lambda: _cross_entropy._operator.direct(True, x, target, -1), 5
        )
        given = [x.data_ptr(), target.data_ptr(), loss.data_ptr(), lse.data_ptr(), 2**64 - 1]
        self.assertEqual(list(launch.parameters[:5]), given)
        self.assertEqual((loss.dtype, loss.shape, lse.requires_grad), (torch.float32, (6,), False))
        slope = torch.ones(6)
        dx, (launch,) = self.launches_of(
            lambda: _cross_entropy._backward_cuda(slope, x.detach(), target, lse, -1), 5
        )
        self.assertEqual(list(launch.parameters[:3]), [x.data_ptr(), target.data_ptr(), lse.data_ptr()])
        self.assertEqual((launch.parameters[4], dx.dtype), (dx.data_ptr(), torch.bfloat16))

    def test_linear_cross_entropy_turns_logits_into_their_gradient(self):
        x, matrix = torch.ones(6, 64, dtype=torch.bfloat16), torch.ones(512, 64, dtype=torch.bfloat16)
        target, scale = torch.zeros(6, dtype=torch.int64), torch.ones(1)
        call = functools.partial(_linear_cross_entropy._cuda, x, matrix, target, scale, -100)
        (_, dx, dw), (launch,) = self.launches_of(lambda: call(True, True), 5)
        self.assertEqual(launch.parameters[0], launch.parameters[4])
        self.assertEqual(
            (launch.parameters[2], dx.shape, dw.shape), (scale.data_ptr(), x.shape, matrix.shape)
        )
        (_, dx, dw), (launch,) = self.launches_of(lambda: call(False, False), 5)
        self.assertEqual((launch.parameters[1], dx.numel(), dw.numel()), (target.data_ptr(), 0, 0))

    def test_rotary_takes_the_views_of_a_projection_as_they_are(self):
        rows, cos = torch.ones(2, 5, 6 * 64, dtype=torch.bfloat16), torch.ones(5, 64, dtype=torch.bfloat16)
        rows.requires_grad_()
        q = rows.view(2, 5, 6, 64)
        (q_out, _), (launch,) = self.launches_of(
            lambda: _rotary._operator.direct(True, q, q, cos, cos, False), 8
        )
        pointers = [q.data_ptr(), q.data_ptr(), cos.data_ptr(), cos.data_ptr(), q_out.data_ptr()]
        self.assertEqual(list(launch.parameters[:5]), pointers)
        self.assertEqual([value % 2**32 for value in launch.parameters[6:8]], [6, 6])
        dq = torch.ones_like(q_out)
        _, (launch,) = self.launches_of(lambda: _rotary._cuda(dq, dq, cos, cos, True), 8)
        self.assertEqual(list(launch.parameters[:3]), [dq.data_ptr(), dq.data_ptr(), cos.data_ptr()])

    def test_the_problems_of_a_run_are_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            with (
                mock.patch.dict(os.environ, CUBIND_RECORD=f"{folder}/shapes.jsonl"),
                cubind.connect(self.daemon.address, timeout=running.PATIENCE) as client,
            ):
                operators.use(client)
                w = torch.ones(4096, dtype=torch.bfloat16)
                for rows in (4096, 3000):  # of one bucket: the daemon is asked for the first
                    self.rms_norm(torch.ones(rows, 4096, dtype=torch.bfloat16), w)
            text = pathlib.Path(folder, "shapes.rmsnorm_forward.jsonl").read_text()
        expected = {"kernel": "rmsnorm_forward", "N": 4096, "D": 4096, "T": "bf16"}
        self.assertEqual([json.loads(line) for line in text.splitlines()], [expected])

    def test_gradients_by_the_shorter_way(self):
        w = torch.ones(4096, dtype=torch.bfloat16, requires_grad=True)
        x = torch.ones(4096, 4096, dtype=torch.bfloat16)
        y, launches = self.launches_of(lambda: _rms_norm._operator.direct(True, x, w, 1e-6), 5)
        self.assertEqual(len(launches), 1)
        self.assertTrue(y.requires_grad)
        with torch.no_grad():
            self.assertFalse(_rms_norm._operator.direct(True, x, w, 1e-6).requires_grad)

    def test_a_missing_variant_raises_with_strict(self):
        x, w = torch.ones(4, 0, dtype=torch.bfloat16), torch.ones(8, dtype=torch.float64)
        self.assertEqual(_softmax._forward_cuda(x).shape, (4, 0))
        key = (torch.bfloat16, -1, (1,), (3, 2, 100))
        with self.assertRaises(cubind.CubindError):  # heads that do not divide, and no such head size
            _attention._forward.launch(key, (1, 3, 2, 8, 8, 100), 0, (w,) * 5 + (0.1,))

    def test_a_sealed_program_launches_what_it_has_asked_for_and_refuses_the_rest(self):
        self.addCleanup(setattr, _sealing.program, "_mode", "")
        w = torch.ones(4096, dtype=torch.bfloat16)
        self.rms_norm(torch.ones(4096, 4096, dtype=torch.bfloat16), w)
        operators.strict(False)
        cubind.seal()
        calls = self.client.calls
        for rows in (4096, 3000, 2500):
            _, launches = self.rms_norm(torch.ones(rows, 4096, dtype=torch.bfloat16), w)
            self.assertEqual(len(launches), 1)
            operators.step()
        self.assertEqual(self.client.calls, calls)
        with self.assertRaisesRegex(cubind.SealedError, "rmsnorm_forward.* N=4096,D=1000.*program is sealed"):
            self.rms_norm(torch.ones(4096, 1000, dtype=torch.bfloat16), w[:1000].clone())


class Direct(unittest.TestCase):
    """When the dispatcher is gone around."""

    def setUp(self):
        self.addCleanup(setattr, _dispatch, "_are_plain", _dispatch._are_plain)
        _dispatch._are_plain = lambda tensors: True  # there are no tensors in GPU memory here

    def test_plain_calls_in_every_thread_and_in_inference_mode(self):
        seen = [_dispatch.is_direct()]
        with torch.inference_mode():
            seen.append(_dispatch.is_direct())
        with torch.no_grad():
            seen.append(_dispatch.is_direct())
        self.assertEqual(seen, [True] * 3)

    def test_not_where_somebody_looks_on(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        with (
            torch.autocast("cuda", dtype=torch.bfloat16)
            if torch.cuda.is_available()
            else torch.autocast("cpu")
        ):
            self.assertFalse(_dispatch.is_direct())
        with TorchDispatchMode():
            self.assertFalse(_dispatch.is_direct())
        with torch.autograd.forward_ad.dual_level():
            self.assertFalse(_dispatch.is_direct())
        seen = []
        torch.func.vmap(lambda x: seen.append(_dispatch.is_direct()) or x)(torch.ones(2))
        self.assertEqual(seen, [False])


if __name__ == "__main__":
    torch_found.main()
