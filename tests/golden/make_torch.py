"""What torch computes in float64 on the CPU, for the reference of each kernel: writes torch.json beside this
file.

    python3 tests/golden/make_torch.py

Inputs are multiples of 1/256, results have ten digits. Needs torch; the test that reads the file
(tests/unit/variants/torch_test.cpp) does not.
"""

import json
import pathlib

import torch
from torch.nn import functional

EPS, SCALE = 2.0**-10, 0.25
N, D = 3, 7
M, COLUMNS, K = 3, 5, 70
HEADS = {"HQ": 4, "HKV": 2, "SQ": 3, "SK": 5, "D": 32}


def normal(*shape):
    return (torch.randn(*shape) * 256).round().double() / 256


def gradients(output, slope, inputs):
    return torch.autograd.grad(output, inputs, slope)


def softmax():
    x, dy = normal(N, D).requires_grad_(), normal(N, D)
    y = torch.softmax(x, dim=1)
    (dx,) = gradients(y, dy, [x])
    return {
        "softmax_forward": {"x": x, "y": y},
        "softmax_backward": {"y": y, "dy": dy, "dx": dx},
    }


def layernorm():
    x, w, b = (normal(*shape).requires_grad_() for shape in ((N, D), (D,), (D,)))
    dy = normal(N, D)
    y, mean, rstd = torch.native_layer_norm(x, [D], w, b, EPS)
    dx, dw, db = gradients(y, dy, [x, w, b])
    shared = {"x": x, "w": w, "mean": mean, "rstd": rstd}
    return {
        "layernorm_forward": {**shared, "b": b, "y": y},
        "layernorm_backward": {**shared, "dy": dy, "dx": dx, "dw": dw, "db": db},
    }


def rmsnorm():
    x, w = normal(N, D).requires_grad_(), normal(D).requires_grad_()
    dy, residual = normal(N, D), normal(N, D)
    y = functional.rms_norm(x, [D], w, EPS)
    dx, dw = gradients(y, dy, [x, w])
    rstd = torch.rsqrt(x.square().mean(dim=1) + EPS)
    fused = {"x": x, "w": w, "residual": residual, "sum": x + residual}
    return {
        "rmsnorm_forward": {"x": x, "w": w, "y": y},
        "rmsnorm_backward": {"x": x, "w": w, "rstd": rstd, "dy": dy, "dx": dx, "dw": dw},
        "rmsnorm_fused_forward": {**fused, "y": functional.rms_norm(x + residual, [D], w, EPS)},
    }


def weighted_sum():
    x, w = normal(N, D).requires_grad_(), normal(D).requires_grad_()
    dy = normal(N)
    y = torch.mv(x, w)
    dx, dw = gradients(y, dy, [x, w])
    return {
        "weighted_sum_forward": {"x": x, "w": w, "y": y},
        "weighted_sum_backward": {"x": x, "w": w, "dy": dy, "dx": dx, "dw": dw},
    }


def products():
    x, weight, bias = normal(M, K), normal(COLUMNS, K), normal(COLUMNS)
    gamma, beta = normal(K), normal(K)
    rows = functional.layer_norm(x, [K], gamma, beta, EPS)
    operands = {"x": x, "weight": weight, "bias": bias}
    return {
        "matmul": {
            **operands,
            "linear": functional.linear(x, weight),
            "gelu": functional.gelu(functional.linear(x, weight, bias)),
            "silu": functional.silu(functional.linear(x, weight, bias)),
        },
        "layernorm_linear": {
            **operands,
            "gamma": gamma,
            "beta": beta,
            "y": functional.gelu(functional.linear(rows, weight, bias)),
        },
    }


def attention(causal):
    """One batch. torch's own causal mask begins with the first key, the kernel's ends with the last."""
    query, key = (
        (1, HEADS["HQ"], HEADS["SQ"], HEADS["D"]),
        (1, HEADS["HKV"], HEADS["SK"], HEADS["D"]),
    )
    q, k, v = (normal(*shape).requires_grad_() for shape in (query, key, key))
    d_o = normal(*query)
    mask = torch.ones(HEADS["SQ"], HEADS["SK"], dtype=torch.bool)
    mask = mask.tril(HEADS["SK"] - HEADS["SQ"]) if causal else mask
    o = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=SCALE, enable_gqa=True)
    dq, dk, dv = gradients(o, d_o, [q, k, v])
    scores = q @ k.repeat_interleave(HEADS["HQ"] // HEADS["HKV"], 1).mT * SCALE
    lse = torch.logsumexp(scores.masked_fill(~mask, float("-inf")), dim=-1)
    shared = {"q": q, "k": k, "v": v, "o": o, "lse": lse}
    kind = "causal" if causal else "full"
    return {
        f"flash_attention_forward, {kind}": shared,
        f"flash_attention_backward, {kind}": {**shared, "d_o": d_o, "dq": dq, "dk": dk, "dv": dv},
    }


def vector_add():
    a, b = normal(D), normal(D)
    return {"vector_add": {"a": a, "b": b, "c": a + b}}


def written(tensor):
    return [float(f"{value:.10g}") for value in tensor.detach().flatten().tolist()]


def main():
    torch.manual_seed(1)
    parts = (softmax(), layernorm(), rmsnorm(), weighted_sum(), products(), attention(False), attention(True))
    lines = []
    for part in (*parts, vector_add()):
        for name, tensors in part.items():
            flat = {key: written(value) for key, value in tensors.items()}
            lines.append(f"{json.dumps(name)}: {json.dumps(flat)}")
    text = ",\n".join([f'"torch": "{torch.__version__}"', *lines])
    pathlib.Path(__file__).with_name("torch.json").write_text(f"{{{text}}}\n")


if __name__ == "__main__":
    main()
