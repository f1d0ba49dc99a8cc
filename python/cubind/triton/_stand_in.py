"""A GPU for Triton where there is none: kernels are specialized for its architecture, and nothing runs.

A program's tensors on a GPU are torch's meta tensors then, which have shapes and no contents.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from ..errors import FailedPreconditionError, InvalidArgumentError
from ._compile_question import Kernel
from ._own import Own, StaysOwnError
from ._spec import Spec
from ._triton_cache import Cache, Compiled, Compiling
from .worker.toolchain import ToolchainError, check_version

# Bytes of shared memory that a block may ask for, by the compute capability as Triton counts it.
_SHARED_BYTES = {
    75: 64 << 10,
    80: 163 << 10,
    86: 99 << 10,
    89: 99 << 10,
    90: 227 << 10,
    100: 227 << 10,
    103: 227 << 10,
    120: 99 << 10,
}


def capability_of(architecture: str) -> int:
    """90 of "sm_90". Raises InvalidArgumentError."""
    known = {f"sm_{each}": each for each in _SHARED_BYTES}
    if architecture not in known:
        raise InvalidArgumentError(f'"{architecture}" is none of {", ".join(known)}', "target")
    return known[architecture]


def device_of(capability: int) -> dict[str, Any]:
    """Facts and driver as GetVariant takes them. What is compiled depends on the architecture alone."""
    facts = {
        "name": f"sm_{capability} without a GPU",
        "pci_device_id": 1,  # of none
        "cc_major": capability // 10,
        "cc_minor": capability % 10,
        "sm_count": 1,
        "l2_bytes": 1 << 20,
        "shared_optin_bytes": _SHARED_BYTES[capability],
        "memory_bytes": 1 << 30,
        "memory_bus_bits": 64,
    }
    return {"facts": facts, "driver": {"cuda": 0, "version": ""}}


def start(capability: int) -> None:
    """Has Triton use it. Raises FailedPreconditionError for a Triton that is not known."""
    try:
        check_version(triton.__version__)
    except ToolchainError as error:
        raise FailedPreconditionError(str(error), "cubind.triton") from None
    driver.set_active(_Driver(capability))


class _Utils:
    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return None, 0, 32, 0, 1024

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 1 << 30}  # whether a kernel fits is another GPU's matter


class _Driver:
    utils = _Utils()

    def __init__(self, capability: int) -> None:
        self._capability = capability

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        return lambda *arguments: None

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._capability, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("meta")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def benchmark(kernel_call: Callable[[], Any], **_: Any) -> list[float]:
            kernel_call()  # which compiles the configuration
            return [1.0, 1.0, 1.0]

        return benchmark


@contextlib.contextmanager
def recording(capability: int, record: Callable[[Spec], None]) -> Iterator[dict[str, str]]:
    """Meanwhile kernels that Triton would compile are recorded instead, each configuration of an autotuned
    one too. Yields why others are not, by name."""
    refused: dict[str, str] = {}

    def find(compiling: Compiling) -> Compiled | Own:
        try:
            spec = Kernel(compiling).spec
        except StaysOwnError as error:
            return error.own
        record(spec)
        return Compiled(b"", spec.entry, 0)

    def note(kernel: str, key: str, own: Own) -> None:
        refused[kernel] = own.reason

    cache = Cache(find, note)
    cache.install()
    try:
        with _on_meta(capability):
            yield refused
    finally:
        cache.uninstall()


@contextlib.contextmanager
def _on_meta(capability: int) -> Iterator[None]:
    """Tensors that go to a GPU become meta tensors, and torch's switches between GPUs do nothing."""
    try:
        import torch
        from torch.overrides import TorchFunctionMode
    except ImportError:
        yield
        return

    def moved(value: Any) -> Any:
        is_device = isinstance(value, (str, torch.device)) and str(value).partition(":")[0] == "cuda"
        return "meta" if is_device else value

    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.cuda:
                return args[0].to("meta")
            if func == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
                return args[0].is_meta
            kwargs = {name: moved(value) for name, value in (kwargs or {}).items()}
            return func(*map(moved, args), **kwargs)

    answers = {
        "current_device": 0,
        "device": contextlib.nullcontext(),
        "device_count": 1,
        "get_device_capability": divmod(capability, 10),
        "is_available": True,
        "set_device": None,
        "synchronize": None,
    }
    own = {name: getattr(torch.cuda, name) for name in answers}
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    try:
        with OnMeta():
            yield
    finally:
        for name, function in own.items():
            setattr(torch.cuda, name, function)
