"""What the operators of cubind.torch hand to their kernels: the shipped variants, compiled for real and
launched on a fake driver, which reads no memory. Tensors lie on the CPU. Needs torch."""

import functools
import json
import os
import pathlib
import tempfile
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import torch
import torch_launches
from torch_launches import on_gpu


class RmsNorm(torch_launches.OnFakeDriver):
    def rms_norm(self, x, w):
        return self.launches_of(lambda: on_gpu("rms_norm", x, w, 1e-6), 5)


class Launches(RmsNorm):
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

    def test_an_activation_without_a_gate_passes_null_for_what_it_does_not_read(self):
        x, dy = (torch.ones(3, 1001, dtype=torch.bfloat16) for _ in range(2))
        dx, (launch,) = self.launches_of(lambda: on_gpu("activation_backward", dy, x, 1), 6)
        self.assertEqual(
            list(launch.parameters[:6]), [x.data_ptr(), 0, dy.data_ptr(), dx.data_ptr(), 0, 3 * 1001]
        )
        # Again, now that the variant is known, and for a view that is no whole array.
        wide = torch.ones(3, 2002, dtype=torch.bfloat16)[:, ::2]
        _, (launch,) = self.launches_of(lambda: on_gpu("activation_backward", dy, x, 1), 6)
        self.assertEqual((launch.parameters[1], launch.parameters[4]), (0, 0))
        y, (launch,) = self.launches_of(lambda: on_gpu("gated_activation", x, wide, 2), 4)
        self.assertNotEqual(launch.parameters[1], wide.data_ptr())
        self.assertEqual((y.shape, launch.parameters[3]), (x.shape, 3 * 1001))

    def test_cross_entropy_stores_two_numbers_for_a_row_and_reads_its_input_again(self):
        x = torch.ones(6, 50257, dtype=torch.bfloat16)
        target = torch.zeros(6, dtype=torch.int64)
        (loss, lse), (launch,) = self.launches_of(lambda: on_gpu("cross_entropy", x, target, -1), 5)
        given = [x.data_ptr(), target.data_ptr(), loss.data_ptr(), lse.data_ptr(), 2**64 - 1]
        self.assertEqual(list(launch.parameters[:5]), given)
        self.assertEqual((loss.dtype, loss.shape), (torch.float32, (6,)))
        slope = torch.ones(6)
        dx, (launch,) = self.launches_of(
            lambda: on_gpu("cross_entropy_backward", slope, x, target, lse, -1), 5
        )
        self.assertEqual(list(launch.parameters[:3]), [x.data_ptr(), target.data_ptr(), lse.data_ptr()])
        self.assertEqual((launch.parameters[4], dx.dtype), (dx.data_ptr(), torch.bfloat16))

    def test_linear_cross_entropy_turns_logits_into_their_gradient(self):
        x, matrix = torch.ones(6, 64, dtype=torch.bfloat16), torch.ones(512, 64, dtype=torch.bfloat16)
        target, scale = torch.zeros(6, dtype=torch.int64), torch.ones(1)
        call = functools.partial(on_gpu, "linear_cross_entropy", x, matrix, target, scale, -100)
        (_, dx, dw), (launch,) = self.launches_of(lambda: call(True, True), 5)
        self.assertEqual(launch.parameters[0], launch.parameters[4])
        self.assertEqual(
            (launch.parameters[2], dx.shape, dw.shape), (scale.data_ptr(), x.shape, matrix.shape)
        )
        (_, dx, dw), (launch,) = self.launches_of(lambda: call(False, False), 5)
        self.assertEqual((launch.parameters[1], dx.numel(), dw.numel()), (target.data_ptr(), 0, 0))

    def test_rotary_takes_the_views_of_a_projection_as_they_are(self):
        rows, cos = torch.ones(2, 5, 6 * 64, dtype=torch.bfloat16), torch.ones(5, 64, dtype=torch.bfloat16)
        q = rows.view(2, 5, 6, 64)
        (q_out, _), (launch,) = self.launches_of(lambda: on_gpu("rotary", q, q, cos, cos, False), 8)
        pointers = [q.data_ptr(), q.data_ptr(), cos.data_ptr(), cos.data_ptr(), q_out.data_ptr()]
        self.assertEqual(list(launch.parameters[:5]), pointers)
        self.assertEqual([value % 2**32 for value in launch.parameters[6:8]], [6, 6])
        dq = torch.ones_like(q_out)
        _, (launch,) = self.launches_of(lambda: on_gpu("rotary", dq, dq, cos, cos, True), 8)
        self.assertEqual(list(launch.parameters[:3]), [dq.data_ptr(), dq.data_ptr(), cos.data_ptr()])

    def test_the_problems_of_a_run_are_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            with (
                mock.patch.dict(os.environ, CUBIND_RECORD=f"{folder}/shapes.jsonl"),
                self.daemon.connect() as client,
            ):
                operators.use(client)
                w = torch.ones(4096, dtype=torch.bfloat16)
                for rows in (4096, 3000):  # of one bucket: the daemon is asked for the first
                    self.rms_norm(torch.ones(rows, 4096, dtype=torch.bfloat16), w)
            text = pathlib.Path(folder, "shapes.rmsnorm_forward.jsonl").read_text()
        expected = {"kernel": "rmsnorm_forward", "N": 4096, "D": 4096, "T": "bf16"}
        self.assertEqual([json.loads(line) for line in text.splitlines()], [expected])

    def test_a_missing_variant_raises_with_strict(self):
        self.assertEqual(on_gpu("softmax", torch.ones(4, 0, dtype=torch.bfloat16)).shape, (4, 0))
        few, many = torch.ones(1, 2, 8, 128).bfloat16(), torch.ones(1, 3, 8, 128).bfloat16()
        with self.assertRaises(cubind.CubindError):  # heads that do not divide
            on_gpu("attention", many, few, few, True, 0, 0, 0, 0.1)

    def test_kernels_in_use_are_used_again_after_a_tune_that_fails(self):
        x, w = torch.ones(4096, 4096, dtype=torch.bfloat16), torch.ones(4096, dtype=torch.bfloat16)
        self.rms_norm(x, w)
        with self.assertRaises(ZeroDivisionError):
            operators.tune(lambda: 1 // 0)
        self.assertEqual(len(self.rms_norm(x, w)[1]), 1)
        self.assertEqual(self.client.calls, 1)


class Sealed(RmsNorm):
    def test_a_sealed_program_launches_what_it_has_asked_for_and_refuses_the_rest(self):
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
