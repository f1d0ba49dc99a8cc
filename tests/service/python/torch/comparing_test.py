"""Kernels that compete with torch's own functions: a daemon keeps comparisons, and operators go by them.
Tensors lie on the CPU, and a fake driver takes the launches; so the times are the tests'. Needs torch."""

import contextlib
import io
import unittest
import warnings
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import torch
import torch_launches
from cubind import comparison
from cubind.torch import __main__ as command
from cubind.torch import _comparing, _comparing_cases, _operator, _tune, _variants
from cubind.torch._variants import LIBRARY
from torch_launches import directly, kernel, on_gpu

FORWARD, BACKWARD = kernel("rmsnorm_forward"), kernel("rmsnorm_backward")

SLOWER, FASTER = [0.5] * 9, [1.5] * 9


def need_of(operator, **problem):
    return operator.need_of({**problem, "T": "bf16"}, -1)


def measured(ratios):
    """Instead of a measurement."""
    return mock.patch.object(_comparing, "measure", side_effect=lambda ours, theirs: ratios)


class Compared(torch_launches.OnFakeDriver):
    def rms_norm(self, rows, features):
        x, w = torch.ones(rows, features, dtype=torch.bfloat16), torch.ones(features, dtype=torch.bfloat16)
        y, launches = self.launches_of(lambda: on_gpu("rms_norm", x, w, 1e-6), 1)
        self.assertEqual(y.shape, x.shape)
        return len(launches)

    def compare(self, rows, features, ratios):
        need = need_of(FORWARD, N=rows, D=features)
        with measured(ratios):
            return _comparing.compare(need)

    def test_torch_s_function_is_called_in_the_bucket_where_it_is_faster(self):
        found = self.compare(4096, 4096, SLOWER)
        self.assertEqual((found.library, found.gain, found.samples), (LIBRARY, 0.5, 9))
        self.assertEqual(self.rms_norm(4096, 4096), 0)
        self.assertEqual(self.rms_norm(4000, 4096), 0)
        self.assertEqual(self.rms_norm(128, 4096), 1)  # another bucket, of the same key
        x, w = torch.ones(4000, 4096, dtype=torch.bfloat16), torch.ones(4096, dtype=torch.bfloat16)
        with directly():
            self.assertEqual(self.launches_of(lambda: on_gpu("rms_norm", x, w, 1e-6), 1)[1], [])
            self.assertEqual(self.rms_norm(128, 4096), 1)
        self.assertFalse(FORWARD.knows((torch.bfloat16, -1, (), (4096,))))

        said = (
            "rmsnorm_forward N=4096,D=4096,T=bf16: "
            + f"{LIBRARY} is 2.00 x faster here: its function is called"
        )
        self.assertIn(said, operators.report())
        done = operators.replace(torch.nn.Linear(2, 2), dry_run=True, verbose=False)
        self.assertIn(said, str(done))

        self.addCleanup(operators.never_slower)
        operators.never_slower(False)
        self.assertEqual(self.rms_norm(4000, 4096), 1)
        self.assertNotIn("is called", operators.report())
        operators.never_slower()
        self.assertEqual(self.rms_norm(4000, 4096), 0)

    def test_a_kernel_that_is_faster_is_launched(self):
        found = self.compare(16, 8192, FASTER)
        self.assertEqual(str(found), f"1.50 x (1.50 to 1.50) over {LIBRARY}")
        self.assertEqual(self.rms_norm(16, 8192), 1)

    def test_what_is_known_is_not_measured_again_and_every_client_knows_it(self):
        need = need_of(FORWARD, N=16, D=5120)
        with measured(FASTER):
            first = _comparing.compare(need)
        operators.use(self.other_client())
        with mock.patch.object(_comparing, "measure", side_effect=AssertionError("measured")):
            self.assertEqual(_comparing.compare(need), first)
        answer = self.other_client().get("rmsnorm_forward", N=16, D=5120, T="bf16")
        self.assertEqual(answer.over_library, (first,))

    def test_a_comparison_with_another_build_of_torch_says_nothing(self):
        need = need_of(FORWARD, N=1, D=2048)
        held = self.client.ask("rmsnorm_forward", FORWARD.problem(*need[1:]), _comparing.QUESTION, gpu=-1)
        other = comparison.Comparison("torch 0.1", 0.5, 0.5, 0.5, 9)
        self.client.report_comparison(held.answer, other, _comparing.QUESTION, gpu=-1)
        self.assertEqual(self.rms_norm(1, 2048), 1)

    def test_a_comparison_of_another_cubin_is_refused(self):
        answer = self.client.get("rmsnorm_forward", N=4096, D=5120, T="bf16")
        other = self.client.get("rmsnorm_forward", N=1, D=5120, T="bf16")
        self.assertNotEqual(answer.digest, other.digest)
        wrong = mock.Mock(kernel=answer.kernel, problem=answer.problem, digest=other.digest)
        with self.assertRaisesRegex(cubind.CubindError, "another cubin answers"):
            self.client.report_comparison(wrong, comparison.Comparison(LIBRARY, 1.0, 1.0, 1.0, 1))

    def test_both_run_as_the_operator_would_run_them(self):
        seen = []
        before = FORWARD._variants.by_key.get((torch.bfloat16, -1, (), (4096,)))

        def measure(ours, theirs):
            for run in (ours, theirs):
                _, launches = self.launches_of(run, 1)
                seen.append(len(launches))
            return FASTER

        with mock.patch.object(_comparing, "measure", measure):
            _comparing.compare(need_of(FORWARD, N=128, D=4096))
        self.assertEqual(seen, [1, 0])
        self.assertEqual(FORWARD._variants.by_key.get((torch.bfloat16, -1, (), (4096,))), before)

    def test_a_backward_pass_may_be_compared_together_with_its_forward_pass(self):
        seen = []
        N, D = 1024, 4096
        need = need_of(BACKWARD, N=N, D=D)
        forward = need_of(FORWARD, N=N, D=D)
        x, w = torch.randn(N, D).bfloat16(), torch.randn(D).bfloat16()

        def both():
            on_gpu("rms_norm_backward", on_gpu("rms_norm", x, w, 1e-6), x, w, 1e-6)

        def measure(ours, theirs):
            for run in (ours, theirs):
                _, launches = self.launches_of(run, 1)
                seen.append(len(launches))
            return FASTER

        with (
            mock.patch.object(_comparing, "measure", measure),
            mock.patch.object(_comparing, "forward_of", return_value=forward),
            mock.patch.object(_comparing, "case_of", return_value=_comparing_cases.Case(both, both)),
        ):
            found = _comparing.compare(need)
            both_launches, alone = seen[0], seen[1]
        self.assertEqual(found.gain, _comparing.summary(FASTER).gain)
        self.assertGreaterEqual(both_launches, 2)
        self.assertEqual(alone, 0)

    def test_attention_in_training_is_judged_by_both_passes(self):
        sizes = {"B": 1, "HQ": 4, "HKV": 2, "SQ": 8, "SK": 8, "D": 64, "T": "bf16", "CAUSAL": 1}
        forward, backward = (
            kernel(f"flash_attention_{way}").need_of(sizes, -1) for way in ("forward", "backward")
        )
        self.assertEqual(_comparing_cases.forward_of(backward), forward)
        self.assertIsNone(_comparing_cases.forward_of(forward))

    def test_a_problem_without_a_record_is_not_compared(self):
        with mock.patch.object(_comparing, "measure", side_effect=AssertionError("measured")):
            self.assertIsNone(_comparing.compare(need_of(FORWARD, N=64, D=96)))

    def test_tune_compares_and_its_results_say_so(self):
        need = need_of(FORWARD, N=1, D=8192)
        result = cubind.TuneResult(
            "rmsnorm_forward", {"N": 1, "D": 8192, "T": "bf16"}, "gpu", "done", {}, 1.0, False, ""
        )
        with (
            measured(SLOWER),
            mock.patch.object(_tune, "_needs_of", return_value=[need]),
            mock.patch.object(self.client, "tune", return_value=[result]),
        ):
            (told,) = operators.tune(lambda: None)
        self.assertTrue(told.over_library.is_slower)
        self.assertEqual(self.rms_norm(1, 8192), 0)

    def test_a_table_takes_comparisons_along(self):
        found = self.compare(1, 16384, FASTER)
        records = self.client.table("rmsnorm_forward", shipped=True)
        told = [one["over_library"] for one in records if one["problem"]["dims"] == {"N": 1, "D": 16384}]
        self.assertIn([{**vars(found)}], told)


class Command(torch_launches.OnFakeDriver):
    """python -m cubind.torch compare."""

    def compare(self, *arguments):
        said = io.StringIO()
        with (
            measured(FASTER),
            mock.patch.object(torch.cuda, "is_available", return_value=True),
            mock.patch.object(torch.cuda, "set_device"),
            mock.patch.object(_comparing, "on_device", lambda device: contextlib.nullcontext()),
            mock.patch.object(torch.random, "fork_rng", lambda devices: contextlib.nullcontext()),
            mock.patch.object(torch.cuda, "current_device", return_value=-1),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            code = command.main(["compare", "--device", "-1", *arguments])
        return code, said.getvalue().splitlines()

    def test_every_record_of_a_kernel_is_compared(self):
        records = [{"N": n, "D": 4096} for n in (1, 4096)]
        rows = [
            {
                "kernel": "weighted_sum_forward",
                "problem": {"dims": dims, "types": {"T": "bf16"}, "flags": {}},
                "device": "nvidia-h200",
                "policy": "cold/3,stream",
                "numerics": "tolerance",
            }
            for dims in records
        ]
        others = [{**rows[0], "device": "nvidia-h100"}, {**rows[0], "kernel": "vector_add"}]
        with mock.patch.object(self.client, "table", return_value=rows + others):
            code, lines = self.compare("--kernel", "weighted_sum_forward")
        self.assertEqual((code, len(lines)), (0, 2), lines)
        self.assertRegex(lines[0], r"^weighted_sum_forward N=1,D=4096,T=bf16: ")

    def test_without_records_it_says_what_to_do(self):
        with mock.patch.object(self.client, "table", return_value=[]):
            code, lines = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("cubindctl tune", lines[0])


class Cases(unittest.TestCase):
    def test_every_kernel_of_an_operator_has_a_call_that_runs(self):
        self.enterContext(warnings.catch_warnings(action="ignore"))
        sizes = {
            "N": 8,
            "D": 64,
            "M": 4,
            "K": 16,
            "HQ": 4,
            "HKV": 2,
            "C": 4,
            "B": 2,
            "SQ": 8,
            "SK": 8,
            "E": 2,
        }
        for operator in _operator.operators():
            for values in operator._variants.calls:
                problem = {
                    **{name: sizes[name] for name in operator.dims},
                    **dict(zip(operator.flags, values)),
                }
                need = operator.need_of({**problem, "T": "bf16"}, -1)
                if not _comparing_cases.has_case(need):
                    continue
                with self.subTest(operator.name, flags=values), _comparing._undisturbed():
                    self.assertEqual(operator.problem(*need[1:]), {**problem, "T": "bf16"})
                    case = _comparing_cases.case_of(need)
                    case.ours()
                    case.theirs()

    def test_a_problem_of_another_kernel_is_none_of_an_operator_s(self):
        other = kernel("rmsnorm_fused_forward")
        self.assertIsNone(other.need_of({"N": 8, "D": 64, "RESIDUAL": 0, "RSTD": 1, "T": "bf16"}, -1))
        self.assertIsNone(kernel("softmax_forward").need_of({"N": 8, "D": 64, "T": "f64"}, -1))


class Summary(unittest.TestCase):
    def test_the_median_of_the_ratios_and_its_interval(self):
        found = _comparing.summary([1.2, 1.3, 1.25, 1.31, 1.29, 1.9, 1.28])
        self.assertEqual(found.gain, 1.29)
        self.assertLess(found.gain_low, 1.29)
        self.assertGreater(found.gain_high, 1.29)
        self.assertEqual((found.library, found.samples), (LIBRARY, 7))

    def test_torch_is_faster_if_the_whole_interval_says_so(self):
        for high, slower in ((0.95, True), (0.995, False), (1.1, False)):
            self.assertEqual(comparison.Comparison(LIBRARY, 0.9, 0.85, high, 9).is_slower, slower)

    def test_rounds_end_when_their_time_is_over(self):
        class Timer:
            def rounds(self, ours, theirs, count):
                return [1.0] * count

        with mock.patch.object(_comparing, "_Timer", Timer):
            self.assertEqual(len(_comparing.measure(None, None)), _comparing._MAX_ROUNDS)
            with mock.patch.object(_comparing, "_SECONDS", 0.0):
                self.assertGreaterEqual(len(_comparing.measure(None, None)), _comparing._MIN_ROUNDS)

    def test_the_library_is_this_build_of_torch(self):
        self.assertEqual(_variants.LIBRARY, f"torch {torch.__version__}")
