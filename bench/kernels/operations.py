"""What each kernel of the library computes: inputs, the truth in float64, and torch's own ways to get it.

An operation's buffers are those of its kernel spec, by name. `truth` gives the outputs in float64. `eager` is
what torch itself has for it, `formula` what one would write and hand to torch.compile; both return the
outputs in the order of `outputs`.
"""

import dataclasses
from collections.abc import Callable

import torch

aten = torch.ops.aten
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
EPS = 1e-5


@dataclasses.dataclass(frozen=True)
class Operation:
    inputs: Callable  # (N, D, dtype, flags by name) -> {name: tensor}
    outputs: Callable  # (N, D, dtype, flags by name) -> {name: empty tensor}
    truth: Callable  # (inputs) -> {name: float64 tensor}
    eager: Callable  # (inputs) -> tuple of tensors
    formula: Callable  # (inputs) -> tuple of tensors
    scalars: dict = dataclasses.field(default_factory=dict)

    def inputs_of(self, problem):
        return self.inputs(*_sizes(problem), **_flags(problem))

    def outputs_of(self, problem):
        return self.outputs(*_sizes(problem), **_flags(problem))


def _sizes(problem):
    return problem["N"], problem["D"], TYPES[problem["T"]]


def _flags(problem):
    return {name: value for name, value in problem.items() if name not in ("N", "D", "T")}


def normal(*shape, dtype, stddev=1.0):
    return (torch.randn(*shape, device="cuda") * stddev).to(dtype)


def uniform(*shape, dtype, low, high):
    return (torch.rand(*shape, device="cuda") * (high - low) + low).to(dtype)


def empty(*shape, dtype):
    return torch.empty(*shape, device="cuda", dtype=dtype)


def wide(inputs):
    return {name: value.double() for name, value in inputs.items()}


def single(inputs):
    return {name: value.float() for name, value in inputs.items()}


# Softmax


def softmax_formula(b):
    return (torch.softmax(b["x"].float(), dim=1).to(b["x"].dtype),)


def softmax_gradient(y, dy):
    return y * (dy - (y * dy).sum(dim=1, keepdim=True))


SOFTMAX_FORWARD = Operation(
    inputs=lambda N, D, dtype: {"x": normal(N, D, dtype=dtype, stddev=2)},
    outputs=lambda N, D, dtype: {"y": empty(N, D, dtype=dtype)},
    truth=lambda b: {"y": torch.softmax(b["x"].double(), dim=1)},
    eager=lambda b: (torch.softmax(b["x"], dim=1),),
    formula=softmax_formula,
)

SOFTMAX_BACKWARD = Operation(
    inputs=lambda N, D, dtype: {
        "y": uniform(N, D, dtype=dtype, low=0, high=0.0625),
        "dy": normal(N, D, dtype=dtype),
    },
    outputs=lambda N, D, dtype: {"dx": empty(N, D, dtype=dtype)},
    truth=lambda b: {"dx": softmax_gradient(b["y"].double(), b["dy"].double())},
    eager=lambda b: (aten._softmax_backward_data(b["dy"], b["y"], 1, b["y"].dtype),),
    formula=lambda b: (softmax_gradient(b["y"].float(), b["dy"].float()).to(b["y"].dtype),),
)


# Norms. Both gradients have one formula; RMSNorm has no mean.


def layernorm(b):
    centered = b["x"] - b["x"].mean(dim=1, keepdim=True)
    rstd = torch.rsqrt(centered.square().mean(dim=1, keepdim=True) + EPS)
    return centered * rstd * b["w"] + b["b"], b["x"].mean(dim=1), rstd.squeeze(1)


def norm_gradients(b):
    rstd = b["rstd"].unsqueeze(1)
    h = (b["x"] - b["mean"].unsqueeze(1) if "mean" in b else b["x"]) * rstd
    g = b["dy"] * b["w"]
    rest = g - h * (g * h).mean(dim=1, keepdim=True)
    if "mean" in b:
        rest = rest - g.mean(dim=1, keepdim=True)
    sums = ((b["dy"] * h).sum(dim=0), b["dy"].sum(dim=0)) if "mean" in b else ((b["dy"] * h).sum(dim=0),)
    return (rstd * rest, *sums)


def norm_gradients_formula(b):
    return tuple(result.to(b["x"].dtype) for result in norm_gradients(single(b)))


def layernorm_formula(b):
    y, mean, rstd = layernorm(single(b))
    return y.to(b["x"].dtype), mean, rstd


def layernorm_inputs(N, D, dtype):
    return {
        "x": normal(N, D, dtype=dtype),
        "w": normal(D, dtype=dtype),
        "b": normal(D, dtype=dtype),
    }


def gradient_inputs(N, D, dtype, mean):
    x = normal(N, D, dtype=dtype, stddev=0.0625)
    b = {"x": x, "w": normal(D, dtype=dtype), "dy": normal(N, D, dtype=dtype, stddev=0.0625)}
    values = x.float()
    if mean:
        b["mean"] = values.mean(dim=1)
        values = values - b["mean"].unsqueeze(1)
    b["rstd"] = torch.rsqrt(values.square().mean(dim=1) + EPS)
    return b


def layernorm_backward_eager(b):
    D = b["x"].shape[1]
    return aten.native_layer_norm_backward(
        b["dy"],
        b["x"],
        [D],
        b["mean"].unsqueeze(1),
        b["rstd"].unsqueeze(1),
        b["w"],
        b["w"],
        [True, True, True],
    )


def rmsnorm_backward_eager(b):
    if hasattr(aten, "_fused_rms_norm_backward"):
        D = b["x"].shape[1]
        return aten._fused_rms_norm_backward(
            b["dy"], b["x"], [D], b["rstd"].unsqueeze(1), b["w"], [True, True]
        )
    return norm_gradients_formula(b)


def layernorm_backward_outputs(N, D, dtype):
    return {
        "dx": empty(N, D, dtype=dtype),
        "dw": empty(D, dtype=dtype),
        "db": empty(D, dtype=dtype),
    }


LAYERNORM_FORWARD = Operation(
    inputs=layernorm_inputs,
    outputs=lambda N, D, dtype: {
        "y": empty(N, D, dtype=dtype),
        "mean": empty(N, dtype=torch.float32),
        "rstd": empty(N, dtype=torch.float32),
    },
    truth=lambda b: dict(zip(("y", "mean", "rstd"), layernorm(wide(b)), strict=True)),
    eager=lambda b: aten.native_layer_norm(b["x"], [b["x"].shape[1]], b["w"], b["b"], EPS),
    formula=layernorm_formula,
    scalars={"eps": EPS},
)

LAYERNORM_BACKWARD = Operation(
    inputs=lambda N, D, dtype: gradient_inputs(N, D, dtype, mean=True),
    outputs=layernorm_backward_outputs,
    truth=lambda b: dict(zip(("dx", "dw", "db"), norm_gradients(wide(b)), strict=True)),
    eager=layernorm_backward_eager,
    formula=norm_gradients_formula,
)

RMSNORM_BACKWARD = Operation(
    inputs=lambda N, D, dtype: gradient_inputs(N, D, dtype, mean=False),
    outputs=lambda N, D, dtype: {"dx": empty(N, D, dtype=dtype), "dw": empty(D, dtype=dtype)},
    truth=lambda b: dict(zip(("dx", "dw"), norm_gradients(wide(b)), strict=True)),
    eager=rmsnorm_backward_eager,
    formula=norm_gradients_formula,
)


# RMSNorm


def rmsnorm(b):
    rstd = torch.rsqrt(b["x"].square().mean(dim=1, keepdim=True) + EPS)
    return b["x"] * rstd * b["w"]


RMSNORM_FORWARD = Operation(
    inputs=lambda N, D, dtype: {"x": normal(N, D, dtype=dtype), "w": normal(D, dtype=dtype)},
    outputs=lambda N, D, dtype: {"y": empty(N, D, dtype=dtype)},
    truth=lambda b: {"y": rmsnorm(wide(b))},
    eager=lambda b: (torch.nn.functional.rms_norm(b["x"], [b["x"].shape[1]], b["w"], EPS),),
    formula=lambda b: (rmsnorm(single(b)).to(b["x"].dtype),),
    scalars={"eps": EPS},
)


# RMSNorm with an added residual. A buffer that the flags leave out has no rows, and no truth.


def rmsnorm_fused(b):
    """The sum is rounded before it is normalized; what follows is in the type of `w`."""
    rows = b["x"]
    if b["residual"].numel():
        rows = (rows.float() + b["residual"].float()).to(rows.dtype)
    rstd = torch.rsqrt(rows.to(b["w"].dtype).square().mean(dim=1, keepdim=True) + EPS)
    return rows, rows.to(b["w"].dtype) * rstd * b["w"], rstd.squeeze(1)


def rmsnorm_fused_truth(b):
    rows, y, rstd = rmsnorm_fused({**b, "w": b["w"].double()})
    return {"sum": rows.double()[: b["residual"].shape[0]], "y": y, "rstd": rstd}


def rmsnorm_fused_formula(b):
    rows, y, rstd = rmsnorm_fused({**b, "w": b["w"].float()})
    return rows[: b["residual"].shape[0]], y.to(rows.dtype), rstd


def rmsnorm_fused_eager(b):
    rows = b["x"] + b["residual"] if b["residual"].numel() else b["x"]
    D = rows.shape[1]
    y, rstd = aten._fused_rms_norm(rows, [D], b["w"], EPS)
    return rows[: b["residual"].shape[0]], y, rstd


RMSNORM_FUSED_FORWARD = Operation(
    inputs=lambda N, D, dtype, RESIDUAL, RSTD: {
        "x": normal(N, D, dtype=dtype),
        "residual": normal(N * RESIDUAL, D, dtype=dtype),
        "w": normal(D, dtype=dtype),
    },
    outputs=lambda N, D, dtype, RESIDUAL, RSTD: {
        "sum": empty(N * RESIDUAL, D, dtype=dtype),
        "y": empty(N, D, dtype=dtype),
        "rstd": empty(N * RSTD, dtype=torch.float32),
    },
    truth=rmsnorm_fused_truth,
    eager=rmsnorm_fused_eager,
    formula=rmsnorm_fused_formula,
    scalars={"eps": EPS},
)


# Weighted sums


def weighted_sum_gradients(b):
    return b["dy"].unsqueeze(1) * b["w"], (b["dy"].unsqueeze(1) * b["x"]).sum(dim=0)


def weighted_sum_backward_eager(b):
    return torch.outer(b["dy"], b["w"]), torch.mv(b["x"].t(), b["dy"])


WEIGHTED_SUM_FORWARD = Operation(
    inputs=lambda N, D, dtype: {
        "x": normal(N, D, dtype=dtype),
        "w": normal(D, dtype=dtype, stddev=0.03125),
    },
    outputs=lambda N, D, dtype: {"y": empty(N, dtype=dtype)},
    truth=lambda b: {"y": (b["x"].double() * b["w"].double()).sum(dim=1)},
    eager=lambda b: (torch.mv(b["x"], b["w"]),),
    formula=lambda b: ((b["x"].float() * b["w"].float()).sum(dim=1).to(b["x"].dtype),),
)

WEIGHTED_SUM_BACKWARD = Operation(
    inputs=lambda N, D, dtype: {
        "x": normal(N, D, dtype=dtype),
        "w": normal(D, dtype=dtype),
        "dy": normal(N, dtype=dtype, stddev=0.015625),
    },
    outputs=lambda N, D, dtype: {"dx": empty(N, D, dtype=dtype), "dw": empty(D, dtype=dtype)},
    truth=lambda b: dict(zip(("dx", "dw"), weighted_sum_gradients(wide(b)), strict=True)),
    eager=weighted_sum_backward_eager,
    formula=lambda b: tuple(r.to(b["x"].dtype) for r in weighted_sum_gradients(single(b))),
)

OPERATIONS = {
    "softmax_forward": SOFTMAX_FORWARD,
    "softmax_backward": SOFTMAX_BACKWARD,
    "layernorm_forward": LAYERNORM_FORWARD,
    "layernorm_backward": LAYERNORM_BACKWARD,
    "rmsnorm_forward": RMSNORM_FORWARD,
    "rmsnorm_backward": RMSNORM_BACKWARD,
    "rmsnorm_fused_forward": RMSNORM_FUSED_FORWARD,
    "weighted_sum_forward": WEIGHTED_SUM_FORWARD,
    "weighted_sum_backward": WEIGHTED_SUM_BACKWARD,
}


# Outputs that are sums over all rows, and inputs that all rows share; everything else has a part for each
# row.
SUMS = {"dw", "db"}
SHARED = {"w", "b"}
TYPE_NAMES = {dtype: name for name, dtype in TYPES.items()}


def rounded_beyond(output, truth):
    """`output` in float64, where an infinite one stands for the nearest to the truth of all values that round
    to it."""
    limits = torch.finfo(output.dtype)
    least = limits.max * (1 + limits.eps / 4)  # half a unit above the largest number
    return torch.where(output.isinf(), truth.abs().clamp(min=least).copysign(output), output.double())


def excess(output, truth, bounds):
    """The largest |output - truth| / (atol + rtol * |truth|) for bounds (rtol, atol), above 1 is wrong.

    Where the truth is not finite, a finite output is infinitely wrong and any other right; where it is
    finite, NaN is infinitely wrong, and an infinite output as wrong as the smallest value that rounds to it.
    """
    if not output.numel():
        return 0.0
    rtol, atol = bounds
    ratio = (rounded_beyond(output, truth) - truth).abs() / (atol + rtol * truth.abs())
    wrong = torch.where(output.isfinite(), float("inf"), 0.0)
    ratio = torch.where(truth.isfinite(), ratio, wrong)
    return torch.nan_to_num(ratio, nan=float("inf")).max().item()


def worst_excess(operation, inputs, outputs, tolerance, rows=1 << 16):
    """By output, over every element; `tolerance` gives (rtol, atol) for the names of a type and an output."""
    N = next(value.shape[0] for name, value in inputs.items() if name not in SHARED)
    worst, totals = dict.fromkeys(outputs, 0.0), {}
    bounds = {name: tolerance(TYPE_NAMES[output.dtype], name) for name, output in outputs.items()}
    for first in range(0, max(N, 1), rows):
        part = {k: v if k in SHARED else v[first : first + rows] for k, v in inputs.items()}
        for name, truth in operation.truth(part).items():
            if name in SUMS:
                totals[name] = totals.get(name, 0.0) + truth
            else:
                output = outputs[name][first : first + rows]
                worst[name] = max(worst[name], excess(output, truth, bounds[name]))
    for name, truth in totals.items():
        worst[name] = excess(outputs[name], truth, bounds[name])
    return worst
