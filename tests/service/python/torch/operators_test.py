"""The operators of cubind.torch on the CPU: torch's own formulas, through the operators. Needs torch."""

import itertools
import math
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
from torch.nn import functional
from torch_launches import as_if_on_gpu

FORWARD_RTOL = {torch.float32: 1e-5, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}


# By the numbers of the operators.
ACTIVATIONS = {
    1: functional.gelu,
    2: functional.silu,
    3: lambda x: functional.gelu(x, approximate="tanh"),
}


def made(*shape, dtype=torch.float64, gradients=True):
    return torch.randn(*shape, dtype=dtype, requires_grad=gradients)


def attention_inputs(dtype, keys=5, heads=2, size=8):
    return made(2, 4, 5, size, dtype=dtype), *(made(2, heads, keys, size, dtype=dtype) for _ in range(2))


def wide(dtype):
    return torch.promote_types(dtype, torch.float32)


def angles(rows, size, dtype):
    """cos and sin, whose halves differ."""
    angle = made(rows, size, gradients=False)
    return angle.cos().to(dtype), angle.sin().to(dtype)


# q and k of rotary, whose rows of cos and sin are taken in turn.
def turned(x, cos, sin):
    cos, sin = (table.unsqueeze(1) for table in (cos, sin))
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


# The gradient of turned(), which is linear.
def turned_back(dy, cos, sin):
    low, high = (dy * sin.unsqueeze(1)).chunk(2, -1)
    return dy * cos.unsqueeze(1) + torch.cat((high, -low), -1)


def cases(dtype):
    """(name, operator, its inputs, torch's function of the same inputs); the first result is compared."""
    x, w, b = made(3, 5, 16, dtype=dtype), made(16, dtype=dtype), made(16, dtype=dtype)
    ops = torch.ops.cubind
    yield "rms_norm", ops.rms_norm, (x, w, 1e-6), lambda x, w, e: functional.rms_norm(x, (16,), w, e)
    yield (
        "layer_norm",
        lambda *inputs: ops.layer_norm(*inputs)[0],
        (x, w, b, 1e-6),
        lambda x, w, b, e: functional.layer_norm(x, (16,), w, b, e),
    )
    yield "softmax", ops.softmax, (x,), lambda x: functional.softmax(x, -1)
    for turned_a in (False, True):
        for turned_b in (False, True):
            a = made(*((6, 3) if turned_a else (3, 6)), dtype=dtype)
            c = made(*((4, 6) if turned_b else (6, 4)), dtype=dtype)
            for bias in (None, made(4, dtype=dtype)):
                yield (
                    f"matmul {turned_a} {turned_b} {bias is not None}",
                    ops.matmul,
                    (a, c, bias, turned_a, turned_b),
                    lambda a, c, bias, ta, tb: (
                        (a.t() if ta else a) @ (c.t() if tb else c) + (0 if bias is None else bias)
                    ),
                )
    yield "weighted_sum", ops.weighted_sum, (x, w), torch.matmul
    for number, function in ACTIVATIONS.items():
        yield f"activation {number}", ops.activation, (x, number), lambda x, _, f=function: f(x)
        yield (
            f"gated_activation {number}",
            ops.gated_activation,
            (x, made(3, 5, 16, dtype=dtype), number),
            lambda x, up, _, f=function: f(x) * up,
        )
    yield (
        "add_rms_norm, both results",
        lambda *inputs: torch.cat(ops.add_rms_norm(*inputs)[:2]),
        (x, made(3, 5, 16, dtype=dtype), w, 1e-6),
        lambda x, r, w, e: torch.cat((functional.rms_norm(x + r, (16,), w, e), x + r)),
    )
    yield (
        "add_rms_norm, the norm alone",
        lambda *inputs: ops.add_rms_norm(*inputs)[0],
        (x, made(3, 5, 16, dtype=dtype), w, 1e-6),
        lambda x, r, w, e: functional.rms_norm(x + r, (16,), w, e),
    )
    for bias in (None, made(4, dtype=dtype)):
        yield (
            f"layer_norm_linear {bias is not None}",
            lambda *inputs: ops.layer_norm_linear(*inputs)[0],
            (x, w, b, made(4, 16, dtype=dtype), bias, 1e-6),
            lambda x, w, b, matrix, bias, e: functional.linear(
                functional.layer_norm(x, (16,), w, b, e), matrix, bias
            ),
        )
    target = torch.tensor([3, -100, 0, 15, 7])
    yield (
        "cross_entropy",
        lambda *inputs: ops.cross_entropy(*inputs)[0].to(dtype),
        (made(5, 16, dtype=dtype), target, -100),
        lambda x, target, ignored: functional.cross_entropy(
            x, target, ignore_index=ignored, reduction="none"
        ),
    )
    yield (
        "linear_cross_entropy",
        lambda *inputs: ops.linear_cross_entropy(*inputs, -100, True, True)[0],
        (made(5, 4, dtype=dtype), made(16, 4, dtype=dtype), target, torch.full((1,), 0.5, dtype=wide(dtype))),
        lambda x, matrix, target, scale: (
            scale.sum()
            * functional.cross_entropy(functional.linear(x, matrix).to(scale.dtype), target, reduction="sum")
        ),
    )
    for inverse in (False, True):
        q, k = made(2, 3, 4, 8, dtype=dtype), made(2, 3, 2, 8, dtype=dtype)
        yield (
            f"rotary {inverse}",
            lambda *inputs: torch.cat([x.flatten() for x in ops.rotary(*inputs)]),
            (q, k, *angles(3, 8, dtype), inverse),
            lambda q, k, cos, sin, inverse: torch.cat(
                [(turned_back if inverse else turned)(x, cos, sin).flatten() for x in (q, k)]
            ),
        )
    for causal in (False, True):
        yield (
            f"attention {causal}",
            lambda q, k, v, causal, scale: ops.attention(q, k, v, causal, 0, 0, 0, scale)[0],
            (*attention_inputs(dtype), causal, 0.3),
            lambda q, k, v, causal, scale: functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, scale=scale, enable_gqa=True
            ),
        )


def differentiable(inputs):
    return [value for value in inputs if isinstance(value, torch.Tensor) and value.requires_grad]


class Formulas(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_gradients_are_the_derivatives(self):
        for name, operator, inputs, _ in cases(torch.float64):
            with self.subTest(name):
                self.assertTrue(torch.autograd.gradcheck(operator, inputs))

    def test_a_backward_pass_can_be_differentiated_or_says_that_it_cannot(self):
        refused = {"layer_norm", "add_rms_norm", "layer_norm_linear", "attention", "cross_entropy"}
        for name, operator, inputs, _ in cases(torch.float64):
            if name.startswith("linear_cross_entropy"):
                continue  # it says so earlier: the next test
            with self.subTest(name):
                if name.replace(",", "").split()[0] not in refused:
                    self.assertTrue(torch.autograd.gradgradcheck(operator, inputs, fast_mode=True))
                    continue
                given = differentiable(inputs)
                gradients = torch.autograd.grad(operator(*inputs).sum(), given, create_graph=True)
                with self.assertRaisesRegex(NotImplementedError, "_backward has no derivative: use torch's"):
                    sum(gradient.square().sum() for gradient in gradients).backward()

    def test_gradients_that_the_forward_pass_made_are_not_differentiated(self):
        x, matrix = torch.randn(4, 8, requires_grad=True), torch.randn(16, 8, requires_grad=True)
        loss = operators.linear_cross_entropy(x, matrix, torch.arange(4))
        with self.assertRaisesRegex(
            NotImplementedError, "has no second derivative: use torch's own function"
        ):
            torch.autograd.grad(loss, (x, matrix), create_graph=True)

    def test_results_and_gradients_are_those_of_torch(self):
        for dtype, rtol in FORWARD_RTOL.items():
            for name, operator, inputs, theirs in cases(dtype):
                with self.subTest(f"{name} {dtype}"):
                    ours, expected = operator(*inputs), theirs(*inputs)
                    self.assertEqual((ours.dtype, ours.shape), (expected.dtype, expected.shape))
                    atol = 1e-5 if dtype == torch.float32 else 2e-2
                    torch.testing.assert_close(ours, expected, rtol=rtol, atol=atol)
                    given, slope = differentiable(inputs), torch.randn_like(ours)
                    pairs = zip(
                        torch.autograd.grad(ours, given, slope), torch.autograd.grad(expected, given, slope)
                    )
                    for a, b in pairs:
                        torch.testing.assert_close(a, b, rtol=rtol, atol=10 * atol)

    def test_products_of_groups_are_torchs_in_both_layouts(self):
        offs = torch.tensor([3, 3, 9], dtype=torch.int32)
        for dtype, turned in itertools.product((torch.float32, torch.bfloat16), (False, True)):
            with self.subTest(dtype=dtype, turned=turned):
                a, b = made(9, 16, dtype=dtype), made(3, 16, 8, dtype=dtype)
                matrices = b.detach().mT.contiguous().requires_grad_() if turned else b
                ours = torch.ops.cubind.grouped_mm(a, matrices, offs, turned)
                expected = torch.cat([a[:3] @ b[0], a[3:] @ b[2]])
                torch.testing.assert_close(ours, expected, rtol=FORWARD_RTOL[dtype], atol=1e-2)
                slope = torch.randn_like(ours)
                da, db = torch.autograd.grad(ours, (a, matrices), slope)
                expected_da, expected_db = torch.autograd.grad(expected, (a, b), slope)
                torch.testing.assert_close(da, expected_da, rtol=2e-2, atol=1e-2)
                torch.testing.assert_close(db.mT if turned else db, expected_db, rtol=2e-2, atol=1e-2)

    def test_scaled_products_are_those_of_the_scaled_values(self):
        a, b = (torch.randn(rows, 144).to(torch.float8_e4m3fn) for rows in (5, 150))
        for kind, of_a, of_b in (
            (0, torch.rand(1), torch.rand(1)),
            (1, torch.rand(5, 1), torch.rand(1, 150)),
            (2, torch.rand(2, 5), torch.rand(2, 2)),
            (3, torch.rand(1), torch.rand(1)),
            (4, torch.rand(5, 1), torch.rand(1, 150)),
        ):
            with self.subTest(kind):
                wide_a = of_a[0] if kind % 3 == 0 else of_a[:, 0, None]
                wide_b = of_b[0] if kind % 3 == 0 else of_b[0, :, None]
                if kind == 2:
                    k = torch.arange(144) // 128
                    wide_a, wide_b = of_a.t()[:, k], of_b[torch.arange(150) // 128][:, k]
                expected = (a.float() * wide_a) @ (b.float() * wide_b).t()
                given = a, b, of_a, of_b, kind
                ours, rtol = torch.ops.cubind.scaled_mm(*given), FORWARD_RTOL[torch.bfloat16]
                torch.testing.assert_close(ours, expected.bfloat16(), rtol=rtol, atol=1e-2)
                checks = "test_faketensor", "test_aot_dispatch_dynamic"  # torch's others compare FP8
                torch.library.opcheck(torch.ops.cubind.scaled_mm.default, given, test_utils=checks)

    def test_scaled_products_of_groups_are_those_of_each_group(self):
        a, b = torch.randn(9, 144).to(torch.float8_e4m3fn), torch.randn(3, 152, 144).to(torch.float8_e4m3fn)
        offs, ops = torch.tensor([3, 3, 9], dtype=torch.int32), torch.ops.cubind
        for kind, of_a, of_b in (
            (1, torch.rand(9), torch.rand(3, 152)),
            (2, torch.rand(2, 9), torch.rand(3, 2, 2)),
            (4, torch.rand(9), torch.rand(3, 152)),
        ):
            with self.subTest(kind):
                ours = ops.scaled_grouped_mm(a, b, of_a, of_b, offs, kind)
                for group, begin, end in ((0, 0, 3), (2, 3, 9)):
                    own_a = of_a[:, begin:end] if kind == 2 else of_a[begin:end, None]
                    own_b = of_b[group] if kind == 2 else of_b[None, group]
                    expected = ops.scaled_mm(a[begin:end], b[group], own_a, own_b, kind)
                    torch.testing.assert_close(ours[begin:end], expected)
                checks = "test_faketensor", "test_aot_dispatch_dynamic"  # torch's others compare FP8
                given = a, b, of_a, of_b, offs, kind
                torch.library.opcheck(ops.scaled_grouped_mm.default, given, test_utils=checks)

    def test_a_query_that_sees_no_key_gives_zeros(self):
        q, k, v = (t.detach() for t in attention_inputs(torch.float32, keys=3))
        o, lse = torch.ops.cubind.attention(
            q, k, v, True, 0, 0, 0, 1.0
        )  # the first two of five queries see none of three keys
        self.assertTrue((o[:, :, :2] == 0).all() and (lse[:, :, :2] == -math.inf).all())
        self.assertTrue(o[:, :, 2:].isfinite().all())
        gradients = torch.ops.cubind.attention_backward(
            torch.ones_like(o), q, k, v, o, lse, True, 0, 0, 0, 1.0
        )
        self.assertTrue(all(g.isfinite().all() for g in gradients))


class Registrations(unittest.TestCase):
    def test_opcheck(self):
        x, w, b = (
            made(4, 16, dtype=torch.float32),
            made(16, dtype=torch.float32),
            made(16, dtype=torch.float32),
        )
        plain = x.detach()
        ops = torch.ops.cubind
        y, mean, rstd = ops.layer_norm(plain, w.detach(), b.detach(), 1e-6)
        q, k, v = attention_inputs(torch.float32)
        o, lse = (t.detach() for t in ops.attention(q, k, v, True, 0, 0, 0, 0.3))
        target, matrix = torch.tensor([3, -100, 0, 15]), made(16, 16, dtype=torch.float32)
        calls = {
            ops.rms_norm: (x, w, 1e-6),
            ops.rms_norm_backward: (y, plain, w.detach(), 1e-6),
            ops.layer_norm: (x, w, b, 1e-6),
            ops.layer_norm_backward: (y, plain, w.detach(), mean, rstd),
            ops.softmax: (x,),
            ops.softmax_backward: (y, plain.softmax(-1)),
            ops.matmul: (x, made(16, 8, dtype=torch.float32), None, False, False),
            ops.grouped_mm: (
                made(4, 16, dtype=torch.bfloat16), made(2, 16, 8, dtype=torch.bfloat16),
                torch.tensor([1, 4], dtype=torch.int32), False,
            ),
            ops.weighted_sum: (x, w),
            ops.weighted_sum_backward: (plain[:, 0], plain, w.detach()),
            ops.add_rms_norm: (x, made(4, 16, dtype=torch.float32), w, 1e-6),
            ops.add_rms_norm_backward: (y, y, plain, w.detach(), rstd),
            ops.layer_norm_linear: (x, w, b, made(8, 16, dtype=torch.float32), None, 1e-6),
            ops.activation: (x, 1),
            ops.activation_backward: (y, plain, 1),
            ops.gated_activation: (x, made(4, 16, dtype=torch.float32), 2),
            ops.gated_activation_backward: (y, plain, y, 2),
            ops.cross_entropy: (x, target, -100),
            ops.cross_entropy_backward: (y[:, 0], plain, target, mean, -100),
            ops.linear_cross_entropy: (x, matrix, target, plain[0, :1], -100, True, False),
            ops.rotary: (q, q, *angles(4, 8, torch.float32), False),
            ops.attention: (q, k, v, True, 0, 0, 0, 0.3),
            ops.attention_backward: (
                torch.randn_like(o), *(t.detach() for t in (q, k, v)), o, lse, True, 0, 0, 0, 0.3,
            ),
        }  # fmt: skip
        ids = torch.tensor([3, 1, 3])
        calls[ops.embedding] = made(9, 16, dtype=torch.float32), ids, 9, -1
        calls[ops.embedding_backward] = plain[:3], ids, 9, -1
        for operator, inputs in calls.items():
            with self.subTest(str(operator)):
                torch.library.opcheck(operator.default, inputs)

    def test_fake_gradients_of_narrow_types_are_narrow(self):
        losses, logits = torch.ones(4), torch.randn(4, 16, dtype=torch.bfloat16)
        inputs = losses, logits, torch.tensor([3, -100, 0, 15]), losses, -100
        torch.library.opcheck(torch.ops.cubind.cross_entropy_backward.default, inputs)

    def test_a_whole_graph_compiles_for_every_size(self):
        def block(x, w, b, matrix, q):
            x = torch.ops.cubind.rms_norm(x, w, 1e-6) + torch.ops.cubind.layer_norm(x, w, b, 1e-6)[0]
            y, x, _ = torch.ops.cubind.add_rms_norm(x, x * 2, w, 1e-6)
            y = torch.ops.cubind.gated_activation(y, x, 2) + torch.ops.cubind.activation(y, 1)
            x = x + torch.ops.cubind.layer_norm_linear(y, w, b, matrix, b, 1e-6)[0]
            x = x * torch.ops.cubind.weighted_sum(y, b).unsqueeze(-1)
            target = torch.arange(x.shape[0], device=x.device) % 16
            loss, _ = torch.ops.cubind.cross_entropy(x, target, 3)
            x = torch.ops.cubind.softmax(torch.ops.cubind.matmul(x, matrix, b, False, True))
            q, k = torch.ops.cubind.rotary(q.transpose(1, 2), q.transpose(1, 2), x[:, :8], x[:, 8:], False)
            q = (q + k).transpose(1, 2) + loss.unsqueeze(-1)
            return x, torch.ops.cubind.attention(q, q, q, True, 0, 0, 0, 0.3)[0]

        compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
        counters = torch._dynamo.utils.counters["stats"]
        before = counters["unique_graphs"]
        w, b, matrix = (
            made(16, dtype=torch.float32),
            made(16, dtype=torch.float32),
            made(16, 16, dtype=torch.float32),
        )
        for rows in (4, 7, 33):
            x, q = made(rows, 16, dtype=torch.float32), made(2, 2, rows, 8, dtype=torch.float32)
            ours, expected = compiled(x, w, b, matrix, q), block(x, w, b, matrix, q)
            torch.testing.assert_close(ours, expected)
            given = (x, w, b, matrix, q)
            torch.testing.assert_close(
                torch.autograd.grad(sum(t.sum() for t in ours), given),
                torch.autograd.grad(sum(t.sum() for t in expected), given),
            )
        self.assertLessEqual(counters["unique_graphs"] - before, 2)  # the first, and one for all sizes

    def test_a_compiled_product_of_two_types_is_torchs(self):
        gate, graphs = torch.randn(4, 8, dtype=torch.bfloat16), []

        def keep(graph, _):
            graphs.append(graph.code)
            return graph.forward

        for up, is_ours in ((torch.randn(4, 8), False), (gate, True)):
            with self.subTest(is_ours), as_if_on_gpu():
                torch._dynamo.reset()
                found = torch.compile(operators.swiglu, backend=keep)(gate, up)
                torch.testing.assert_close(found, functional.silu(gate) * up)
                self.assertEqual("cubind.gated_activation" in graphs.pop(), is_ours)

    def test_a_function_compiles_once_for_all_sizes(self):
        torch._dynamo.reset()
        counters = torch._dynamo.utils.counters["stats"]
        before = counters["unique_graphs"]
        compiled = torch.compile(
            lambda x, w: operators.rms_norm(x, (16,), w, 1e-6),
            fullgraph=True,
            dynamic=True,
            backend="aot_eager",
        )
        w = torch.randn(16)
        for rows in (4, 7, 33):  # not 16 first: torch takes equal sizes for one
            x = torch.randn(rows, 16)
            torch.testing.assert_close(compiled(x, w), functional.rms_norm(x, (16,), w, 1e-6))
        self.assertEqual(counters["unique_graphs"] - before, 1)

    def test_functions_compile_and_export(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.third = (
                    operators.RMSNorm(16), operators.LayerNorm(16), operators.Linear(16, 16),
                )  # fmt: skip

            def forward(self, x):
                norm, linear = self.second, self.third
                x, total = operators.add_rms_norm(self.first(x), x, self.first.weight)
                x = operators.layer_norm_linear(x, norm.weight, norm.bias, linear.weight, linear.bias) + total
                x = x + operators.weighted_sum(total, norm.weight).unsqueeze(-1)
                q = operators.softmax(linear(norm(x))).unsqueeze(1)
                return operators.scaled_dot_product_attention(q, q, q, is_causal=True)

        model, x = Model(), torch.randn(2, 5, 16)
        compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), model(x))
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), model(x))

    def test_results_lie_as_a_graph_expects(self):
        ops, w, x = torch.ops.cubind, torch.ones(8), torch.randn(8, 6).t()
        q, k = (torch.randn(2, heads, 5, 8).transpose(1, 2) for heads in (2, 1))
        tables = torch.randn(5, 8), torch.randn(5, 8)
        calls = (
            (ops.rms_norm, (x, w, 1e-6)),
            (ops.rms_norm_backward, (x, x, w, 1e-6)),
            (ops.add_rms_norm_backward, (x, x, x, w, torch.ones(6))),
            (ops.layer_norm_backward, (x, x, w, torch.ones(6), torch.ones(6))),
            (ops.gated_activation_backward, (x, x, x, 2)),
            (ops.rotary, (q, k, *tables, False)),
            (ops.rotary, (q, k, *tables, True)),
        )
        for call, given in calls:
            with self.subTest(str(call)):
                real = call(*given)
                fake = call(*(one.to("meta") if isinstance(one, torch.Tensor) else one for one in given))
                real, fake = ([one] if isinstance(one, torch.Tensor) else one for one in (real, fake))
                self.assertEqual([one.stride() for one in real], [one.stride() for one in fake])

    def test_zero_sizes_strides_and_meta(self):
        ops, w = torch.ops.cubind, torch.ones(8)
        self.assertEqual(ops.layer_norm(torch.empty(0, 8), w, w, 1e-6)[0].shape, (0, 8))
        self.assertEqual(ops.softmax(torch.empty(0, 8)).shape, (0, 8))
        self.assertEqual(ops.matmul(torch.empty(0, 8), torch.ones(8, 3), None, False, False).shape, (0, 3))
        x = torch.randn(8, 4).t()
        torch.testing.assert_close(ops.softmax(x), functional.softmax(x, -1))
        torch.testing.assert_close(
            ops.layer_norm(x, w, w, 1e-6)[0], functional.layer_norm(x, (8,), w, w, 1e-6)
        )
        self.assertEqual(ops.weighted_sum(torch.empty(2, 0, 8), w).shape, (2, 0))
        self.assertEqual(ops.add_rms_norm(x[:0], x[:0], w, 1e-6)[1].shape, (0, 8))
        self.assertEqual(ops.layer_norm_linear(x[:0], w, w, x, None, 1e-6)[0].shape, (0, 4))
        torch.testing.assert_close(ops.weighted_sum(x, w), x @ w)
        torch.testing.assert_close(ops.add_rms_norm(x, x, w, 1e-6)[1], x + x)
        q = torch.randn(2, 5, 3, 8).transpose(1, 2)
        torch.testing.assert_close(
            ops.attention(q, q, q, False, 0, 0, 0, 0.3)[0],
            functional.scaled_dot_product_attention(q, q, q, scale=0.3),
        )
        heads = torch.randn(0, 3, 5, 8), *(torch.randn(0, 1, 5, 8),) * 2
        found = ops.attention_backward(heads[0], *heads, heads[0], torch.ones(0, 3, 5), True, 2, 0, 0, 0.3)
        self.assertEqual([one.shape for one in found], [one.shape for one in heads])
        y, mean, rstd = ops.layer_norm(x.to("meta"), w.to("meta"), w.to("meta"), 1e-6)
        self.assertEqual((y.shape, mean.shape, rstd.shape), ((4, 8), (4,), (4,)))
