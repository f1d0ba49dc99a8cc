"""What the kernels around a matrix product compute: problems, operands, the truth in float64, and torch's
way.

A product's `buffers` are those of its kernel spec, by name. Outputs have GUARD elements behind them that must
stay as they are.
"""

import torch
from operations import EPS, TYPES

GUARD = 4096


def guarded(count, dtype):
    return torch.full((count + GUARD,), float("nan"), dtype=dtype, device="cuda")


class Draw:
    """Normal values, the same for a seed."""

    def __init__(self, seed, dtype):
        self.generator = torch.Generator("cuda").manual_seed(seed)
        self.dtype = dtype

    def __call__(self, *shape, stddev=1.0):
        values = torch.randn(*shape, generator=self.generator, device="cuda")
        return (values * stddev).to(self.dtype)


def make_special(rows):
    """A NaN in the first row and an infinity in the last: these rows of the result are not finite, and all
    others are."""
    rows[0, rows.shape[1] // 2] = float("nan")
    rows[-1, 0] = float("inf")


def activated(values, activation):
    if activation == 1:
        return torch.nn.functional.gelu(values)
    return torch.nn.functional.silu(values) if activation == 2 else values


LAYOUTS = ["nn", "nt", "tn", "tt"]


def matmul_problem(M, N, K, T="bf16", layout="nn", bias=0, activation=0):
    flags = {"TRANSPOSE_A": int(layout[0] == "t"), "TRANSPOSE_B": int(layout[1] == "t")}
    return {"M": M, "N": N, "K": K, "T": T, **flags, "BIAS": bias, "ACTIVATION": activation}


class Matmul:
    checked = (
        *(matmul_problem(512, 768, 512, T, layout, 1, 1) for T in TYPES for layout in LAYOUTS),
        *(matmul_problem(200, 136, 200, T, layout, 1, 2) for T in TYPES for layout in LAYOUTS),
        *(matmul_problem(129, 257, 131, T, layout, 1, 0) for T in TYPES for layout in LAYOUTS),
        *(matmul_problem(1, 1, 1, T, layout) for T in TYPES for layout in LAYOUTS),
        *(matmul_problem(M, 4096, 4096, "bf16", "nt") for M in (1, 3, 16, 33, 64)),
        *(matmul_problem(M, 1024, 1028, "bf16", layout) for M in (66, 100) for layout in LAYOUTS),
        *(matmul_problem(256, 256, 16384, T, layout) for T in TYPES for layout in LAYOUTS),
        *(matmul_problem(1000, 2056, 1032, T, layout, 1, 0) for T in ("bf16", "f16") for layout in LAYOUTS),
        *(matmul_problem(4096, 4096, 4096, "bf16", layout) for layout in LAYOUTS),
        matmul_problem(65537, 32776, 64, "bf16", "nt"),  # more than 2^31 elements
    )
    timed = (
        *(matmul_problem(4096, 4096, 4096, "bf16", layout) for layout in LAYOUTS),
        *(matmul_problem(M, 4096, 4096, "bf16", "nt") for M in (1, 16, 64, 512, 1024)),
        *(matmul_problem(8192, 8192, 8192, "bf16", layout) for layout in ("nt", "nn")),
        matmul_problem(4096, 14336, 4096, "bf16", "nt"),
        matmul_problem(4096, 4096, 4096, "f32", "nn"),
    )

    def __init__(self, p, seed, special=False):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        M, N, K = p["M"], p["N"], p["K"]
        a = normal(K, M) if p["TRANSPOSE_A"] else normal(M, K)
        b = normal(N, K, stddev=1 / 64) if p["TRANSPOSE_B"] else normal(K, N, stddev=1 / 64)
        self.problem, self.dtype = p, dtype
        self.left = a.T if p["TRANSPOSE_A"] else a
        self.right = b.T if p["TRANSPOSE_B"] else b
        if special:
            make_special(self.left)
        self.bias = normal(N)
        self.outputs = {"c": guarded(M * N, dtype)}
        self.buffers = {"a": a, "b": b, "bias": self.bias, **self.outputs}
        self.scalars = {}

    def truth(self):
        """Of the last rows alone where C is too large for float64."""
        rows = self.left if self.problem["M"] * self.problem["N"] < 1 << 31 else self.left[-1000:]
        result = rows.double() @ self.right.double()
        if self.problem["BIAS"]:
            result += self.bias.double()
        return {"c": activated(result, self.problem["ACTIVATION"])}

    def torch_call(self):
        """The product alone, by cuBLAS."""
        out = torch.empty(self.left.shape[0], self.right.shape[1], dtype=self.dtype, device="cuda")
        return lambda: (torch.matmul(self.left, self.right, out=out),)


def linear_problem(M, N, K, T="bf16", transpose_w=1, bias=0, activation=0):
    return {
        "M": M,
        "N": N,
        "K": K,
        "T": T,
        "TRANSPOSE_W": transpose_w,
        "BIAS": bias,
        "ACTIVATION": activation,
    }


class LayernormLinear:
    checked = (
        *(linear_problem(512, 768, 512, T, turned, 1, 1) for T in TYPES for turned in (0, 1)),
        *(linear_problem(200, 136, 200, T, turned, 1, 2) for T in TYPES for turned in (0, 1)),
        *(linear_problem(129, 257, 131, T, turned, 1, 0) for T in TYPES for turned in (0, 1)),
        *(linear_problem(1, 1, 1, T, turned) for T in TYPES for turned in (0, 1)),
        *(linear_problem(M, 4096, 4096, "bf16", 1) for M in (1, 3, 16, 33, 64)),
        *(linear_problem(M, 1024, 1026, "bf16", turned) for M in (66, 100) for turned in (0, 1)),
        *(linear_problem(33, 264, K, "bf16", 1, 1) for K in (7, 2048, 5120, 8200, 16388, 65536)),
        *(linear_problem(4096, 4096, 4096, "bf16", turned, 1) for turned in (0, 1)),
    )
    timed = (
        *(linear_problem(4096, 4096, 4096, "bf16", turned) for turned in (0, 1)),
        *(linear_problem(M, 4096, 4096, "bf16", 1) for M in (1, 16, 64, 512)),
        linear_problem(4096, 12288, 4096, "bf16", 1),
    )

    def __init__(self, p, seed, special=False):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        M, N, K = p["M"], p["N"], p["K"]
        x, gamma, beta = normal(M, K), normal(K), normal(K)
        w = normal(N, K, stddev=1 / 64) if p["TRANSPOSE_W"] else normal(K, N, stddev=1 / 64)
        if special:
            make_special(x)
        self.problem, self.dtype = p, dtype
        self.x, self.gamma, self.beta, self.bias = x, gamma, beta, normal(N)
        self.weight = w if p["TRANSPOSE_W"] else w.T
        self.outputs = {
            "y": guarded(M * N, dtype),
            "mean": guarded(M, torch.float32),
            "rstd": guarded(M, torch.float32),
        }
        self.buffers = {"x": x, "gamma": gamma, "beta": beta, "w": w, "bias": self.bias, **self.outputs}
        self.scalars = {"eps": EPS}

    def truth(self):
        """The product is of the normalized rows as they are rounded to T."""
        x, p = self.x.double(), self.problem
        mean = x.mean(dim=1, keepdim=True)
        rstd = torch.rsqrt((x - mean).square().mean(dim=1, keepdim=True) + EPS)
        rows = ((x - mean) * rstd * self.gamma.double() + self.beta.double()).to(self.dtype).double()
        y = rows @ self.weight.double().T
        if p["BIAS"]:
            y += self.bias.double()
        return {"y": activated(y, p["ACTIVATION"]), "mean": mean, "rstd": rstd}

    def linear(self):
        functional, bias = torch.nn.functional, self.bias if self.problem["BIAS"] else None
        rows = functional.layer_norm(self.x, [self.problem["K"]], self.gamma, self.beta, EPS)
        return (functional.linear(rows, self.weight, bias),)

    def torch_call(self):
        """Without the activation."""
        return self.linear

    def torch_compiled_call(self):
        torch._dynamo.reset()
        return torch.compile(self.linear, dynamic=False)


def grouped_problem(M, N, K, E, T="bf16", layout="nt"):
    return {"M": M, "N": N, "K": K, "E": E, "T": T, "TRANSPOSE_B": int(layout == "nt")}


class GroupedMm:
    checked = (
        *(grouped_problem(777, 264, 192, 5, T, layout) for T in ("bf16", "f16") for layout in ("nn", "nt")),
        *(grouped_problem(300, 131, 77, 9, T, layout) for T in ("bf16", "f16") for layout in ("nn", "nt")),
        *(grouped_problem(4096, 512, 1024, E, "bf16", layout) for E in (2, 64) for layout in ("nn", "nt")),
        grouped_problem(5, 256, 264, 300),  # most groups are empty
        grouped_problem(128, 2816, 2048, 64),
    )
    timed = (
        *(grouped_problem(8192, 4096, 4096, 8, "bf16", layout) for layout in ("nn", "nt")),
        *(grouped_problem(16384, 2816, 2048, 64, "bf16", layout) for layout in ("nn", "nt")),
        grouped_problem(64, 14336, 4096, 8),
    )

    def __init__(self, p, seed, special=False):
        """Groups of random sizes, and with an even seed the first and last are empty."""
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        M, N, K, E = p["M"], p["N"], p["K"], p["E"]
        a = normal(M, K)
        b = normal(E, N, K, stddev=1 / 64) if p["TRANSPOSE_B"] else normal(E, K, N, stddev=1 / 64)
        if special:
            make_special(a)
        ends = torch.randint(M + 1, (E,), generator=normal.generator, device="cuda").sort().values.int()
        ends[-1] = M
        if seed % 2 == 0:
            ends[0], ends[-2:] = 0, M
        self.problem, self.dtype, self.a, self.ends = p, dtype, a, ends
        self.right = b.mT if p["TRANSPOSE_B"] else b
        self.outputs = {"c": guarded(M * N, dtype)}
        self.buffers = {"a": a, "b": b, "offsets": ends, **self.outputs}
        self.scalars = {}

    def truth(self):
        bounds = [0, *self.ends.tolist()]
        rows = zip(bounds[:-1], bounds[1:], self.right, strict=True)
        return {"c": torch.cat([self.a[begin:end].double() @ b.double() for begin, end, b in rows])}

    def torch_call(self):
        return lambda: (torch._grouped_mm(self.a, self.right, offs=self.ends),)


def scaled_problem(M, N, K, SCALES, T="bf16"):
    return {"M": M, "N": N, "K": K, "T": T, "SCALES": SCALES}


def in_blocks(scale, axis, size):
    """A scale of 128 elements for each of `size`."""
    return scale.double().repeat_interleave(128, axis).narrow(axis, 0, size)


class ScaledMm:
    checked = (
        *(scaled_problem(512, 768, 512, SCALES, T) for SCALES in range(5) for T in ("bf16", "f16")),
        *(scaled_problem(300, 520, 272, SCALES) for SCALES in range(5)),
        *(scaled_problem(300, 131, 400, SCALES) for SCALES in range(5)),
        *(scaled_problem(1, 16, 16, SCALES) for SCALES in range(5)),
    )
    timed = tuple(
        scaled_problem(*sizes, SCALES)
        for SCALES in (2, 4, 1, 0)
        for sizes in ((4096, 4096, 4096), (4096, 7168, 2048))
    )

    def __init__(self, p, seed, special=False):
        normal = Draw(seed, torch.float8_e4m3fn)
        M, N, K = p["M"], p["N"], p["K"]
        self.problem, self.dtype, self.a = p, TYPES[p["T"]], normal(M, K)
        if special:
            self.a.view(torch.uint8)[0, K // 2] = 0x7F  # NaN
        self.draw(normal)
        self.outputs = {"c": guarded(M * N, self.dtype)}
        scales = {"scale_a": self.scale_a, "scale_b": self.scale_b}
        self.buffers = {"a": self.a, "b": self.b, **scales, **self.outputs}
        self.scalars = {}

    def scales(self, normal, *groups):
        """Of A, and of each matrix of B."""
        M, N, K, SCALES = (self.problem[name] for name in ("M", "N", "K", "SCALES"))
        blocks = -(-K // 128), -(-N // 128)
        shape_a, shape_b = {0: ((1,), (1,)), 1: ((M,), (N,)), 2: ((blocks[0], M), blocks[::-1])}[SCALES % 3]
        return (
            torch.rand(*shape, generator=normal.generator, device="cuda") + 0.5
            for shape in (shape_a, (*groups, *shape_b))
        )

    def draw(self, normal):
        self.b = normal(self.problem["N"], self.problem["K"])
        self.scale_a, self.scale_b = self.scales(normal)

    def product(self, rows, b, scale_b):
        """Of these rows of A with a matrix, in float64."""
        N, K = b.shape
        if self.problem["SCALES"] == 2:
            left = self.a[rows].double() * in_blocks(self.scale_a[:, rows].t(), 1, K)
            return left @ (b.double() * in_blocks(in_blocks(scale_b, 0, N), 1, K)).t()
        by_row = self.scale_a.numel() > 1
        scale_a = self.scale_a[rows, None] if by_row else self.scale_a
        return (self.a[rows].double() @ b.double().t()) * scale_a.double() * scale_b.double()

    def truth(self):
        return {"c": self.product(slice(None), self.b, self.scale_b)}

    def torch_call(self):
        scale_a, scale_b = self.scale_a, self.scale_b
        if self.problem["SCALES"] == 2:
            scale_a, scale_b = scale_a.t(), scale_b.t()
        elif self.problem["SCALES"] % 3 == 1:
            scale_a, scale_b = scale_a[:, None], scale_b[None]
        named = {"out_dtype": self.dtype, "use_fast_accum": self.problem["SCALES"] < 2}
        return lambda: (torch._scaled_mm(self.a, self.b.t(), scale_a, scale_b, **named),)


class ScaledGroupedMm(ScaledMm):
    checked = tuple(
        {**scaled_problem(*sizes, SCALES, T), "E": E}
        for SCALES in (1, 2, 4)
        for *sizes, E, T in (
            (777, 264, 272, 5, "bf16"),
            (300, 131, 144, 9, "f16"),
            (4096, 512, 1024, 64, "bf16"),
            (5, 256, 272, 300, "bf16"),  # most groups are empty
        )
    )
    timed = tuple(
        {**scaled_problem(*sizes, SCALES), "E": E}
        for SCALES in (2, 4, 1)
        for *sizes, E in ((8192, 4096, 4096, 8), (16384, 2816, 2048, 64))
    )

    def draw(self, normal):
        M, N, K, E = (self.problem[name] for name in "MNKE")
        self.b = torch.stack([normal(N, K) for _ in range(E)])
        self.scale_a, self.scale_b = self.scales(normal, E)
        self.ends = torch.randint(M + 1, (E,), generator=normal.generator, device="cuda").sort().values.int()
        self.ends[-1] = M

    def __init__(self, p, seed, special=False):
        super().__init__(p, seed, special)
        self.buffers["offsets"] = self.ends

    def truth(self):
        bounds = [0, *self.ends.tolist()]
        groups = zip(bounds[:-1], bounds[1:], self.b, self.scale_b, strict=True)
        return {
            "c": torch.cat([self.product(slice(first, last), *matrix) for first, last, *matrix in groups])
        }

    def torch_call(self):
        """Of scales by block torch has none: its product in bf16."""
        if self.problem["SCALES"] == 2:
            a, b = self.a.bfloat16(), self.b.bfloat16()
            return lambda: (torch._grouped_mm(a, b.mT, offs=self.ends),)
        named = {"out_dtype": self.dtype, "use_fast_accum": self.problem["SCALES"] == 1}
        return lambda: (
            torch._scaled_grouped_mm(self.a, self.b.mT, self.scale_a, self.scale_b, self.ends, **named),
        )


PRODUCTS = {
    "matmul": Matmul,
    "layernorm_linear": LayernormLinear,
    "grouped_mm": GroupedMm,
    "scaled_mm": ScaledMm,
    "scaled_grouped_mm": ScaledGroupedMm,
}
