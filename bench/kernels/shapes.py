"""The problems of the bench, by kernel."""

ROWS = [(4096, 4096), (16384, 2048), (2048, 32768), (65536, 1024)]
NORM_GRADIENTS = [(4096, 4096), (16384, 8192), (65536, 1024)]

# The table of speed: kernels on rows from 8 MB to 2 GB, products, attention.
TABLE = {
    "softmax_forward": ROWS,
    "softmax_backward": ROWS,
    "layernorm_forward": [(4096, 1024), (16384, 4096), (65536, 8192)],
    "layernorm_backward": NORM_GRADIENTS,
    "rmsnorm_forward": [(4096, 1024), (16384, 8192), (65536, 4096)],
    "rmsnorm_backward": NORM_GRADIENTS,
    "weighted_sum_forward": [(65536, 1024, "f32")],
    "weighted_sum_backward": [(65536, 1024, "f32")],
    "matmul": [
        (4096, 4096, 4096),
        (8192, 8192, 8192),
        (4096, 11008, 4096),
        (512, 4096, 4096),
        (16, 4096, 4096),
    ],
    "layernorm_linear": [(4096, 4096, 4096), (8192, 1024, 4096)],
    "flash_attention_forward": [(4, 16, 16, 4096, 4096, 128, 1), (4, 16, 16, 4096, 4096, 128, 0)],
    "flash_attention_backward": [(4, 16, 16, 4096, 4096, 128, 1), (4, 16, 16, 4096, 4096, 128, 0)],
}
MORE = {
    "layernorm_forward": [(4096, 4096), (65536, 1024)],
    "rmsnorm_fused_forward": [(4096, 4096), (16384, 4096), (16384, 8192), (65536, 1024)],
    "weighted_sum_forward": [(65536, 1024), (4096, 4096), (16, 65536), (1000003, 64)],
    "weighted_sum_backward": [(65536, 1024), (4096, 4096), (1000003, 64)],
    "flash_attention_forward": [(2, 32, 32, 2048, 2048, 64, 1), (2, 32, 32, 2048, 2048, 64, 0)],
    "flash_attention_backward": [(2, 32, 32, 2048, 2048, 64, 1), (2, 32, 32, 2048, 2048, 64, 0)],
    **{
        kernel: [(4096, 128256), (8192, 50257), (8192, 30522)]
        for kernel in ("cross_entropy", "cross_entropy_forward", "cross_entropy_backward")
    },
    "activation_forward": [(4096 * 8192,)],
    "activation_backward": [(4096 * 8192,)],
    "rotary": [(4096, 32, 8, 2048, 128), (8192, 16, 16, 8192, 64)],
}
# One of each kernel, of sizes that no tile and few vectors divide.
ONE_OF_EACH = {
    **{
        kernel: (517, 1000)
        for kernel in {**TABLE, **MORE}
        if kernel.endswith("ward") and "flash" not in kernel
    },
    "matmul": (200, 136, 264),
    "layernorm_linear": (200, 136, 264),
    "grouped_mm": (517, 136, 192, 5),
    "scaled_mm": (200, 136, 272),
    "scaled_grouped_mm": (517, 136, 272, 5),
    "flash_attention_forward": (2, 6, 2, 300, 333, 64, 1),
    "flash_attention_backward": (2, 6, 2, 300, 333, 128, 1),
    "flash_attention_packed_forward": (5, 6, 2, 777, 777, 64, 1),
    "flash_attention_packed_backward": (5, 6, 2, 777, 777, 128, 1),
    "vector_add": (100003,),
    "cross_entropy": (517, 1000),
    "activation_forward": (100003,),
    "activation_backward": (100003,),
    "rotary": (517, 6, 2, 300, 80),
}
SETS = {"table": [TABLE], "more": [MORE], "all": [TABLE, MORE]}
FLAGS = {
    "activation_forward": {"ACTIVATION": 2, "GATE": 1},
    "activation_backward": {"ACTIVATION": 2, "GATE": 1},
    "rotary": {"INVERSE": 0},
    "rmsnorm_fused_forward": {"RESIDUAL": 1, "RSTD": 1},
    "matmul": {"TRANSPOSE_A": 0, "TRANSPOSE_B": 1, "BIAS": 0, "ACTIVATION": 0},
    "grouped_mm": {"TRANSPOSE_B": 1},
    "scaled_mm": {"SCALES": 2},
    "scaled_grouped_mm": {"SCALES": 2},
    "layernorm_linear": {"TRANSPOSE_W": 1, "BIAS": 1, "ACTIVATION": 0},
}
DIMS = {
    **dict.fromkeys(("matmul", "layernorm_linear", "scaled_mm"), "MNK"),
    **dict.fromkeys(("vector_add", "activation_forward", "activation_backward"), "N"),
    "rotary": ("N", "HQ", "HKV", "C", "D"),
    **dict.fromkeys(("grouped_mm", "scaled_grouped_mm"), "MNKE"),
}
KERNELS = list({**TABLE, **MORE})


def problem(kernel, sizes):
    if kernel.startswith("flash_attention"):
        batch = "N" if "packed" in kernel else "B"
        return dict(zip((batch, "HQ", "HKV", "SQ", "SK", "D", "CAUSAL"), sizes, strict=True), T="bf16")
    dims = DIMS.get(kernel, "ND")
    dtype = sizes[len(dims)] if len(sizes) > len(dims) else "bf16"
    return {**dict(zip(dims, sizes)), "T": dtype, **FLAGS.get(kernel, {})}


def problems(kernels, name):
    """(kernel, problem), the first shape of each kernel before the second of any."""
    ranked = [
        ((number, rank), kernel, sizes)
        for number, chosen in enumerate(SETS[name])
        for kernel in kernels
        for rank, sizes in enumerate(chosen.get(kernel, []))
    ]
    ranked.sort(key=lambda one: one[0])
    return [(kernel, problem(kernel, sizes)) for _, kernel, sizes in ranked]
