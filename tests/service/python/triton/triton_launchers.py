"""For tests of Triton's launchers, which launch on the fake driver."""

import itertools
import os
import pathlib
import sys
import tempfile
import types
import unittest.mock

import python_found
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime.driver import driver

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
HOST_MEMORY = 0xBAD000  # where the fake driver has no memory of a GPU


def require():
    """Leaves the tests out where Triton compiles no launchers. Has it link the fake driver."""
    if VERSION > (3, 6):
        print(f"Triton {triton.__version__} compiles no launchers: these tests were not run", file=sys.stderr)
        sys.exit(python_found.SKIPPED)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-libcuda-"))
    fake = next(
        path / "libcuda.so.1"
        for path in map(pathlib.Path, os.environ["LD_LIBRARY_PATH"].split(":"))
        if (path / "libcuda.so.1").exists()
    )
    for name in ("libcuda.so", "libcuda.so.1"):
        (folder / name).symlink_to(fake.resolve())
    os.environ["TRITON_LIBCUDA_PATH"] = str(folder)


class Tensor:
    """Where there is no memory."""

    dtype = "float32"

    def __init__(self, address=0x1000):
        self.address = address

    def data_ptr(self):
        return self.address


class Driver(nvidia.CudaDriver):
    """Triton's own, without torch."""

    def __init__(self):
        self.utils = nvidia.CudaUtils()
        self.launcher_cls = nvidia.CudaLauncher

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


def start():
    """Has Triton make its driver, as it does at the first launch; it is returned."""
    driver.set_active(Driver())
    return driver.active


def start_without_compiler():
    """The same where no cubin is loaded."""
    with unittest.mock.patch.object(nvidia.CudaUtils, "__init__", lambda self: None):
        return start()


def source(*signature):
    return types.SimpleNamespace(signature=dict(enumerate(signature)), constants={})


def metadata(**others):
    sizes = {f"{area}_scratch_{what}": 1 if what == "align" else 0 for area, what in itertools.product(
        ("global", "profile"), ("size", "align"))}  # fmt: skip
    found = {"launch_cooperative_grid": False, "launch_pdl": False, "num_ctas": 1, "tensordesc_meta": None}
    return types.SimpleNamespace(
        **sizes | found | {"cluster_dims": (others.get("num_ctas", 1), 1, 1)} | others
    )


def launch(launcher, *arguments, grid=(2, 3, 4), stream=7, warps=4, shared=512, ctas=1, hooks=(None, None)):
    """As a kernel does."""
    packed = (warps, ctas, shared) + ((ctas, 1, 1) if VERSION < (3, 6) else ())
    launcher(*grid, stream, 1, packed, "launch metadata", *hooks, *arguments)
