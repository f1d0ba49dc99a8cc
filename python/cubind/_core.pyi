from collections.abc import Callable, Sequence
from typing import Any

version: str

class Rule:
    def __init__(self, json: str) -> None: ...
    def covers(self, dims: tuple[int, ...]) -> bool: ...
    def plan(self, dims: tuple[int, ...]) -> str | None: ...
    def violation(self) -> str: ...

Parameter = tuple[str, str, str, str]  # name, source ("buffer", "caller"), type, role

class Kernel:
    def __init__(self, rule: Rule, cubin: bytes, same_cubin: Kernel | None = None, /) -> None: ...
    def parameters(self) -> tuple[Parameter, ...]: ...
    def extents(self, dims: tuple[int, ...]) -> tuple[int, ...] | None: ...
    def launch(self, dims: tuple[int, ...], stream: int, /, *arguments: Any) -> bool: ...
    def prepare(
        self, dims: tuple[int, ...], arguments: Sequence[Any], stream: int | Callable[[Any], int], device: Any
    ) -> Callable[..., None] | None: ...

def check_signed(trust: str, claims: str, rule: str, /) -> None: ...
def decompress(frame: bytes, size: int) -> bytes: ...
def gpu(ordinal: int = -1, /) -> dict[str, dict[str, Any]]: ...
def synchronized(ordinal: int = -1, /) -> dict[str, Any] | None: ...

TritonParameters = tuple["str | TritonParameters", ...]
"""The types of a signature: see python/extension/triton_arguments.hpp."""

def triton_launcher(
    parameters: TritonParameters,
    is_cooperative: bool,
    is_dependent: bool,
    scratch: Sequence[tuple[int, int, Callable[[int, int, int], Any]]],
    /,
) -> Callable[..., None]:
    """Called as an instance of Triton's CudaLauncher: with the grid, the stream, the function, the packed
    metadata, the launch's metadata, the enter and the exit hook, and the arguments. scratch: bytes for each
    block of the grid, alignment, and the allocator, which is called with bytes, alignment and stream."""

def triton_load_binary(
    name: str, cubin: bytes, shared: int, device: int, /
) -> tuple[int, int, int, int, int]: ...
def triton_device_properties(device: int, /) -> dict[str, int]: ...

class Torch:
    """What operators ask torch for: see python/extension/torch_access.hpp."""

    def __init__(self, fields: dict[str, Any], /) -> None: ...
    def is_quiet(self) -> bool: ...

class RepeatedCalls:
    """Calls of one kernel that need no check in Python: see python/extension/repeated_calls.hpp."""

    def __init__(self, torch: Torch, /) -> None: ...
    def launch(self, named: dict[str, Any], stream: int | None, /) -> Any: ...
    def know(
        self,
        named: dict[str, Any],
        kernel: Kernel,
        dims: tuple[int, ...],
        values: list[Any],
        returned: list[Any],
        until: float,
        /,
    ) -> None: ...
    def clear(self) -> None: ...

class OperatorCall:
    """A kernel as an operator calls it: see python/extension/operator_call.hpp."""

    def __init__(
        self,
        torch: Torch,
        dims: Sequence[str],
        inputs: Sequence[str],
        outputs: Sequence[str],
        known: Sequence[str],
        numbers: int,
        constants: tuple[Any, ...],
        /,
    ) -> None: ...
    def know(
        self,
        type: str,
        device: int,
        known: Sequence[int],
        variants: Sequence[tuple[Kernel, Sequence[int], bool]],
        /,
    ) -> None: ...
    def forget(self, type: str, device: int, known: Sequence[int], /) -> None: ...
    def counts(self) -> tuple[int, int]: ...
    def clear(self) -> None: ...
    def differentiate(
        self,
        differentiated: Callable[[tuple[Any, ...]], Callable[..., Any]],
        saved: Sequence[int],
        /,
    ) -> None: ...
    def launch(self, *arguments: Any) -> Any: ...
    def is_missing(self, *arguments: Any) -> bool: ...
    def direct(self, sizes: Sequence[int] | None, *arguments: Any) -> Any: ...
    def forward(self, ctx: Any, *tensors: Any) -> Any: ...
