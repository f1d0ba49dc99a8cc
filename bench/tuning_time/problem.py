"""What is tuned: RMSNorm of 16384 x 4096 bf16, and the 48 configurations of its CUDA source."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "variants" / "rmsnorm"
N, D, EPS = 16384, 4096, 1e-6
TUNABLES = {
    "MODE": [1],
    "THREADS": [128, 256, 512, 1024],
    "VECTOR": [4, 8],
    "ROWS": [1],
    "UNROLL": [1, 2],
    "CACHE": [0, 1, 2],
    "PERSISTENT": [0],
}
