"""Reads the facts of arrays in GPU memory: torch tensors, CuPy arrays, and anything with
__cuda_array_interface__."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .errors import InvalidArgumentError

_CANONICAL = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
}
TORCH = {short: long for long, short in _CANONICAL.items()}
_BY_TYPESTR = {"f8": "f64", "f4": "f32", "f2": "f16", "i8": "i64", "i4": "i32", "i1": "i8", "u1": "u8"}
ITEM_BYTES = {short: int(re.findall(r"\d+", long)[0]) // 8 for long, short in _CANONICAL.items()}
_DLPACK_GPU = (2, 13)  # kDLCUDA, kDLCUDAManaged


@dataclasses.dataclass(frozen=True)
class ArrayFacts:
    """shape: in elements. dtype: cubind's spelling ("bf16"); "" if unknown. contiguous: in C order. device:
    the CUDA ordinal; None if unknown."""

    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    device: int | None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_array(value: Any) -> bool:
    """Whether it is an array that facts_of() reads."""
    return is_torch(value) or hasattr(value, "__cuda_array_interface__")


def readable(value: Any) -> Any:
    """The value; instead of an array in GPU memory that has __dlpack__ alone, a view of it by torch or CuPy,
    if one of them is loaded."""
    if isinstance(value, (int, float)) or is_array(value) or not hasattr(value, "__dlpack_device__"):
        return value
    libraries = [sys.modules[name] for name in ("torch", "cupy") if sys.modules.get(name) is not None]
    if not libraries or value.__dlpack_device__()[0] not in _DLPACK_GPU:
        return value  # which is refused by its name
    return libraries[0].from_dlpack(value)


def facts_of(name: str, array: Any) -> ArrayFacts:
    """Raises InvalidArgumentError at `argument NAME` for anything outside GPU memory."""
    if is_torch(array):
        if not array.is_cuda:
            raise _refused(
                name, f"the tensor lies on {array.device}, the kernel needs GPU memory: pass .cuda()"
            )
        dtype = _CANONICAL.get(str(array.dtype).removeprefix("torch."), str(array.dtype))
        return ArrayFacts(tuple(array.shape), dtype, array.is_contiguous(), array.device.index)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise _refused(
            name,
            f"{type(array).__name__} is no array in GPU memory: pass a tensor of torch or an array of CuPy",
        )
    dtype = _BY_TYPESTR.get(interface["typestr"][1:], "")
    strides = interface.get("strides")
    shape, item = tuple(interface["shape"]), int(interface["typestr"][2:])
    in_order = tuple(item * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    device = getattr(getattr(array, "device", None), "id", None)
    return ArrayFacts(shape, dtype, strides is None or tuple(strides) == in_order, device)


def check(name: str, array: Any, dtype: str, extent_bytes: int, device: int | None) -> None:
    """Raises InvalidArgumentError unless it is a C-contiguous array in the memory of that GPU (None: of any),
    of `dtype` with at least `extent_bytes`."""
    facts = facts_of(name, array)
    if device is not None and facts.device not in (None, device):
        raise _refused(
            name, f"lies on GPU {facts.device}, the first array on GPU {device}: a launch needs all on one"
        )
    if facts.dtype not in ("", dtype):
        raise _refused(name, f"has elements of {facts.dtype}, the kernel takes {dtype}")
    if not facts.contiguous:
        raise _refused(name, f"is not contiguous (shape {list(facts.shape)}): pass .contiguous()")
    size = facts.elements * ITEM_BYTES[dtype]
    if size < extent_bytes:
        raise _refused(
            name, f"has {size} bytes (shape {list(facts.shape)}), the kernel reaches {extent_bytes}"
        )


def stream_source(arrays: Sequence[Any]) -> tuple[Callable[[Any], int] | int, Any]:
    """(source, device) for the stream on which the arrays' library works at the moment: source(device) is its
    handle. The default stream (0, None) where none of them is torch's or CuPy's."""
    for array in arrays:
        if is_torch(array):
            from ._torch_private import stream_of  # torch has been imported

            return stream_of, array.device.index
        cupy = sys.modules.get("cupy")
        if cupy is not None and isinstance(array, cupy.ndarray):
            return _cupy_stream, array.device.id
    return 0, None


def _cupy_stream(_: Any) -> int:
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def empty(like: Any, shape: tuple[int, ...], dtype: str, zero: bool) -> Any:
    """An array of `like`'s library and device, in its current stream's order. Raises InvalidArgumentError for
    another library."""
    if is_torch(like):
        torch = sys.modules["torch"]
        make = torch.zeros if zero else torch.empty
        return make(shape, dtype=getattr(torch, TORCH[dtype]), device=like.device)
    cupy = sys.modules.get("cupy")
    if cupy is None or not isinstance(like, cupy.ndarray) or dtype in ("bf16", "e4m3", "e5m2"):
        raise InvalidArgumentError(
            f"cannot allocate an array of {dtype} next to a {type(like).__name__}: pass it", field="arguments"
        )
    with like.device:
        return (cupy.zeros if zero else cupy.empty)(shape, dtype=TORCH[dtype])


def _refused(name: str, cause: str) -> InvalidArgumentError:
    return InvalidArgumentError(cause, field=f"argument {name}")
