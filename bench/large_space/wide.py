"""A matmul whose space is wider: what variants/matmul leaves out because it hardly ever wins is left in."""

import json
import pathlib
import shutil

VARIANTS = pathlib.Path(__file__).resolve().parents[2] / "variants"

# Beginnings of the constraints that keep the space honest and no launch from failing.
LEFT_OUT = (
    "GROUP_M == 1 || (GROUP_M <=",
    "BLOCK_M * BLOCK_N >= 8192 ||",
    "BLOCK_M <= 4 * BLOCK_N &&",
    "ENGINE == 1 || device.cc != 90 ||",
    "ENGINE == 1 || BLOCK_N / WARPS_N >= 32",
    "ENGINE == 1 || BLOCK_M / WARPS_M >= 32",
    "ENGINE == 1 || GROUP_M ==",
    "STAGES == 4 ||",
)
# A default on tensor cores of every class, far from the best of a Hopper GPU.
DEFAULT = {
    "ENGINE": 0,
    "BLOCK_M": 64,
    "BLOCK_N": 64,
    "BLOCK_K": 32,
    "WARPS_M": 2,
    "WARPS_N": 2,
    "STAGES": 4,
    "GROUP_M": 1,
    "VECTOR": 8,
    "SPLIT_K": 1,
    "CLUSTER": 1,
}


def write_kernels(folder, names):
    """A kernels folder with the widened matmul under each of these names; the same source for all."""
    folder = pathlib.Path(folder)
    shutil.copytree(VARIANTS / "matmul", folder / "matmul")
    shutil.copytree(VARIANTS / "common", folder / "common")
    file = folder / "matmul" / "matmul.json"
    spec = json.loads(file.read_text())
    file.unlink()
    kept = [one for one in spec["constraints"] if not one.startswith(LEFT_OUT)]
    if len(spec["constraints"]) - len(kept) != len(LEFT_OUT):
        raise ValueError(f"{file}: its constraints are others than this benchmark leaves out")
    spec |= {"constraints": kept, "default": [DEFAULT]}
    for name in names:
        (folder / "matmul" / f"{name}.json").write_text(json.dumps({**spec, "name": name}))
