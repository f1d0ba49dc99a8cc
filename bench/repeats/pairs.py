"""The problems that are tuned again and again: 24 of eight kernels, eleven of them of few bytes."""

ROWS = {
    "rmsnorm_forward": [1, 64, 1024, 16384],
    "softmax_forward": [1, 64, 1024, 8192],
    "layernorm_forward": [1, 64, 1024, 16384],
    "weighted_sum_forward": [1, 64, 1024, 16384],
    "softmax_backward": [64, 1024, 8192],
    "rmsnorm_backward": [1024, 8192],
    "layernorm_backward": [1024],
}
D = 4096
ELEMENTS = [1 << 12, 1 << 24]
PAIRS = [(kernel, {"N": N, "D": D, "T": "bf16"}) for kernel, rows in ROWS.items() for N in rows]
PAIRS += [("vector_add", {"N": N, "T": "f32"}) for N in ELEMENTS]

# What Triton's autotuner chooses for, by the corresponding kernel of cubind.
TRITON = [("rmsnorm_forward", N, D) for N in (64, 1024, 16384)] + [
    ("softmax_forward", N, D) for N in (64, 1024, 8192)
]
