"""Launches without a C compiler. Triton 3.4 to 3.6 compiles a launcher in C for each signature of a kernel,
and the module by which it loads cubins: half a second each, in every process with an empty cache. While this
is installed, the extension does both: it passes and checks what Triton's own launchers do.

What it uses of Triton's driver.py is all here. Import this only where Triton compiles launchers.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from triton.backends.nvidia import driver as nvidia
from triton.runtime import _allocation
from triton.runtime.driver import driver

from .. import _core
from ._own import StaysOwnError

_CudaLauncher: Any = nvidia.CudaLauncher
_CudaUtils: Any = nvidia.CudaUtils
# By what a launcher parses before the arguments of its kernel: the areas of scratch memory that kernels get.
_AREAS = {"iiiKKppOOOOO": ("global",), "iiiKKppOOOOOO": ("global", "profile")}
# By the types that a launcher declares.
_INTEGERS = {f"{u}int{bits}_t": f"{u or 'i'}{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "f32": "fp32", "fp64": "fp64"}
# What few kernels need of the module that loads cubins.
_COMPILED = ("cuOccupancyMaxActiveClusters", "fill_tma_descriptor", "set_printf_fifo_size")


def _areas() -> tuple[str, ...] | None:
    """None: the launchers are others than those that are known."""
    is_own = _CudaLauncher.__module__ == _CudaUtils.__module__ == nvidia.__name__
    return _AREAS.get(getattr(nvidia, "_BASE_ARGS_FORMAT", "")) if is_own else None


class Launching:
    """own: why launchers were Triton's own, one reason for each."""

    def __init__(self) -> None:
        self.own: list[str] = []
        self._launcher: Any = None

    def install(self) -> None:
        """Replace the classes that make launchers and load cubins. Triton's driver is not made for it: that
        would initialize CUDA."""
        if _areas() is None or nvidia.CudaLauncher is not _CudaLauncher:
            return
        self._launcher = nvidia.CudaLauncher = _launcher_class(self.own.append)
        nvidia.CudaUtils = Utilities
        for made in _made_drivers():
            if made.launcher_cls in (_CudaLauncher, CompiledLauncher):
                made.launcher_cls = self._launcher

    def uninstall(self) -> None:
        """Puts Triton's classes back, unless another patch is over this one. Kernels keep their launchers."""
        if self._launcher is None or nvidia.CudaLauncher is not self._launcher:
            return
        nvidia.CudaLauncher, nvidia.CudaUtils = _CudaLauncher, _CudaUtils
        for made in _made_drivers():
            if made.launcher_cls is self._launcher:
                is_own = type(made.utils) is _CudaUtils
                made.launcher_cls = _CudaLauncher if is_own else CompiledLauncher


def _made_drivers() -> list[Any]:
    """Triton's drivers for NVIDIA GPUs, as far as they are made: the one in use and the default one."""
    found = [vars(driver).get(name) for name in ("_active", "_default", "active", "default")]
    made = [getattr(each, "__dict__", {}).get("_obj", each) for each in found]  # Triton 3.4 has proxies
    return [each for each in made if isinstance(each, nvidia.CudaDriver)]


# ---- Launchers ----


class CompiledLauncher(_CudaLauncher):  # type: ignore[misc]
    """Triton's own, which refers to a type in the module that loads cubins."""

    def __init__(self, source: Any, metadata: Any) -> None:
        utilities = driver.active.utils
        if isinstance(utilities, Utilities):
            utilities.compile()
        super().__init__(source, metadata)


def _launcher_class(note: Callable[[str], None]) -> type[CompiledLauncher]:
    class Launcher(CompiledLauncher):
        """Gives a function of the extension, or Triton's own launcher. note: called with the reason."""

        def __new__(cls, source: Any, metadata: Any) -> Any:
            if cls is not Launcher:  # another patch has a class of its own
                return super().__new__(cls)
            try:
                return _launcher(source, metadata)
            except StaysOwnError as error:
                note(error.own.reason)
                return super().__new__(cls)

    return Launcher


def _launcher(source: Any, metadata: Any) -> Callable[..., None]:
    """What CudaLauncher makes. Raises StaysOwnError."""
    parameters = tuple(_parameter(type) for type in source.signature.values())
    blocks = math.prod(getattr(metadata, "cluster_dims", None) or (getattr(metadata, "num_ctas", 1),))
    scratch = [
        (
            blocks * getattr(metadata, f"{area}_scratch_size"),
            getattr(metadata, f"{area}_scratch_align"),
            _ALLOCATORS[area],
        )
        for area in _areas() or ()
    ]
    try:
        return _core.triton_launcher(
            parameters, metadata.launch_cooperative_grid, metadata.launch_pdl, scratch
        )
    except ValueError as error:
        raise StaysOwnError(f"has {error}") from None


def _parameter(type: Any) -> Any:
    """As _core.triton_launcher() takes it."""
    if isinstance(type, tuple):
        return tuple(_parameter(item) for item in type)
    if type == "constexpr":
        return ""
    if type.startswith("*"):
        return "*"
    if type.startswith("tensordesc") or type == "nvTmaDesc":
        raise StaysOwnError("has a tensor descriptor as an argument")
    found = _FLOATS.get(type) or _INTEGERS.get(_declared(type))
    if found is None:
        raise StaysOwnError(f"has an argument of type {type}")
    return found


def _declared(type: str) -> str:
    try:
        return str(nvidia.ty_to_cpp(type))
    except KeyError:
        return ""


def _allocating(name: str) -> Callable[[int, int, int], Any]:
    """A program may set another allocator at any time."""

    def allocate(size: int, alignment: int, stream: int) -> Any:
        allocator = getattr(_allocation, name)
        if "profile" in (_areas() or ()):  # Triton 3.4 has no variable
            allocator = allocator.get()
        return allocator(size, alignment, stream)

    return allocate


_ALLOCATORS = {"global": _allocating("_allocator"), "profile": _allocating("_profile_allocator")}


# ---- Loading cubins ----


class Utilities(_CudaUtils):  # type: ignore[misc]
    """Triton's module, which is compiled when more than the loading of cubins is asked of it."""

    def __new__(cls) -> Utilities:
        return object.__new__(cls)  # Triton's is one for the process

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_compiled = False
        self.load_binary = _core.triton_load_binary
        self.get_device_properties = _core.triton_device_properties

    def __getattr__(self, name: str) -> Any:
        if name not in _COMPILED:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        self.compile()
        return vars(self)[name]

    def compile(self) -> None:
        """Once."""
        with self._lock:
            if not self._is_compiled:
                super().__init__()
                self._is_compiled = True
