"""cubind.torch.replace() of modules that call torch's products of groups and of FP8, on the CPU. Needs
torch."""

import unittest
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
import torch_launches
from cubind.torch import _scaled_mm
from torch.nn import functional
from torch_launches import as_if_on_gpu

SCALING = functional.ScalingType
E4M3 = torch.float8_e4m3fn
HAS_SCALED = torch._C._dispatch_has_kernel_for_dispatch_key("aten::_scaled_mm_v2", "CPU")
ENDS = torch.tensor([8, 16, 16, 64], dtype=torch.int32)


def product(x, matrices, offs):
    return torch._grouped_mm(x, matrices, offs)


class Groups(torch.nn.Module):
    """By a function of its file, and by the public name."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Parameter(torch.randn(4, 128, 64, dtype=torch.bfloat16))
        self.down = torch.nn.Parameter(torch.randn(4, 128, 64, dtype=torch.bfloat16))

    def forward(self, x, offs):
        return functional.grouped_mm(product(x, self.up, offs).relu(), self.down.mT, offs=offs)


class Scaled(torch.nn.Module):
    def forward(self, a, b, scale_a, scale_b, recipes, fast):
        public = functional.scaled_mm(a, b, scale_a, recipes[0], scale_b, recipes[1], use_fast_accum=fast)
        return public, torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)


class ScaledGroups(torch.nn.Module):
    def forward(self, a, b, scale_a, scale_b, offs):
        recipe = SCALING.RowWise
        public = functional.scaled_grouped_mm(a, b, scale_a, recipe, scale_b, recipe, offs=offs)
        return public, torch._scaled_grouped_mm(a, b, scale_a, scale_b, offs, out_dtype=torch.bfloat16)


class Plain(torch.nn.Module):
    def forward(self, x):
        return functional.relu(x)


def rows(count, columns=144):
    return torch.randn(count, columns).to(E4M3)


class Called(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_modules_that_call_none_stay(self):
        model = torch.nn.Sequential(Groups(), Plain(), torch.nn.Linear(2, 2))
        done = operators.replace(model, verbose=False)
        self.assertEqual(done.replaced, [("0", "Groups")])
        done.undo()
        self.assertIs(type(model[0]), Groups)

    def test_values_and_gradients_are_torchs(self):
        model, x = Groups(), torch.randn(64, 128, dtype=torch.bfloat16)
        expected = model(x, ENDS)
        theirs = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
        operators.replace(model, verbose=False)
        self.assertTrue(torch.equal(model(x, ENDS), expected))
        found = torch.autograd.grad(model(x, ENDS).square().sum(), list(model.parameters()))
        self.assertTrue(all(map(torch.equal, found, theirs)))
        graph = torch.compile(model, backend="aot_eager", fullgraph=True)  # in graphs it is torch's
        torch.testing.assert_close(graph(x, ENDS), expected)

    def test_scales_go_where_the_kernel_has_them(self):
        a, b = rows(5), rows(150)
        model = Scaled()
        operators.replace(model, verbose=False)
        by_row, by_block = (SCALING.RowWise,) * 2, (SCALING.BlockWise1x128, SCALING.BlockWise128x128)
        for kind, scale_a, scale_b, recipes in (
            (_scaled_mm.BY_TENSOR, torch.rand(1), torch.rand(1), (SCALING.TensorWise,) * 2),
            (_scaled_mm.BY_ROW, torch.rand(5, 1), torch.rand(1, 150), by_row),
            (_scaled_mm.BY_BLOCK, torch.rand(2, 5).t(), torch.rand(2, 2).t(), by_block),
        ):
            kept = [_scaled_mm._as_kept(one, kind) for one in (scale_a, scale_b)]
            expected = torch.ops.cubind.scaled_mm(a, b, *kept, kind)
            launched = mock.Mock(return_value=expected)
            with self.subTest(kind), mock.patch.dict(_scaled_mm._calls, {kind: launched}):
                self.assertTrue(
                    all(one is expected for one in model(a, b.t(), scale_a, scale_b, recipes, True))
                )
                lists = [scale_a], [recipes[0]], [scale_b], [recipes[1]]
                self.assertIs(operators.scaled_mm(a, b.t(), *lists, use_fast_accum=True), expected)
                for _, *given in (call.args for call in launched.call_args_list):
                    self.assertTrue(all(map(torch.equal, given[2:], kept)))
                    self.assertEqual((given[0].shape, given[1].shape), (a.shape, b.shape))

    @unittest.skipUnless(HAS_SCALED, "this torch has no scaled_mm on the CPU")
    def test_without_fast_sums_the_exact_kernel_is_asked_for_and_torch_without_it(self):
        a, b, one = rows(16, 16), rows(16, 16), torch.ones(())
        model = Scaled()
        recipes = (SCALING.TensorWise,) * 2
        expected = model(a, b.t(), one, one, recipes, False)
        operators.replace(model, verbose=False)
        fast, exact = mock.Mock(), mock.Mock(return_value=NotImplemented)
        calls = {_scaled_mm.BY_TENSOR: fast, _scaled_mm.BY_TENSOR + _scaled_mm.EXACT: exact}
        with mock.patch.dict(_scaled_mm._calls, calls):
            found = model(a, b.t(), one, one, recipes, False)
        self.assertTrue(all(map(torch.equal, found, expected)))
        self.assertEqual((fast.call_count, exact.call_count), (0, 2))

    @unittest.skipUnless(HAS_SCALED, "this torch has no scaled_mm on the CPU")
    def test_a_call_as_no_function_of_torch_makes_it_is_torchs(self):
        class Listed(torch.nn.Module):
            def forward(self, a, b, one):
                return torch._scaled_mm(a, b, one, one), torch._scaled_mm_v2(
                    *(a, b, [one], [0], [], [one], [0], []), bias=None, out_dtype=torch.bfloat16
                )

        given = rows(16, 16), rows(16, 16).t(), torch.ones(())
        model = Listed()
        expected = model(*given)
        self.assertEqual(len(operators.replace(model, verbose=False).replaced), 1)
        for ours, theirs in zip(model(*given), expected):
            self.assertTrue(torch.equal(ours.float(), theirs.float()))


class Launched(torch_launches.OnFakeDriver):
    def test_calls_launch_kernels(self):
        groups, scaled, scaled_groups = Groups(), Scaled(), ScaledGroups()
        operators.replace(torch.nn.Sequential(groups, scaled, scaled_groups), verbose=False)
        x = torch.ones(64, 128, dtype=torch.bfloat16)
        scales = (
            torch.ones(2, 64).t(),
            torch.ones(2, 2).t(),
            (SCALING.BlockWise1x128, SCALING.BlockWise128x128),
        )
        with as_if_on_gpu(), torch.no_grad():
            _, launches = self.launches_of(lambda: groups(x, ENDS), 3)
            self.assertEqual(len(launches), 2)
            of_groups = torch.ones(64), torch.ones(4, 128), ENDS
            narrow = rows(64, 128), rows(512, 128).view(4, 128, 128).mT
            found, launches = self.launches_of(lambda: scaled_groups(*narrow, *of_groups), 3)
            self.assertEqual((len(launches), [one.shape for one in found]), (2, [(64, 128)] * 2))
            given = rows(64, 256), rows(256, 256).t(), *scales, False
            _, launches = self.launches_of(lambda: scaled(*given), 3)
            self.assertEqual(len(launches), 2)
