"""The arrays and numbers of a call as a kernel spec has them: arrays of NumPy, CuPy and torch, and anything
with a buffer."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import math
import os
import sys
from typing import Any

from . import arrays
from ._cuda_source import Parameter
from .errors import InvalidArgumentError

MAX_ARRAY_BYTES = 8 << 30

# Codes of Python's buffers, and of .npy files. Unsigned integers are given the bits of signed ones.
_ELEMENTS = {"d": "f64", "f": "f32", "e": "f16", "q": "i64", "l": "i64", "Q": "i64", "L": "i64"} | {
    "i": "i32", "I": "i32", "b": "i8", "B": "u8", "?": "u8"
}  # fmt: skip
_SCALARS = _ELEMENTS | {"Q": "u64", "L": "u64", "I": "u32", "h": "i16", "H": "u16", "?": "bool"}
_NPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "|u1", "e5m2": "|u1"} | {
    "i64": "<i8", "i32": "<i4", "i8": "|i1", "u8": "|u1"
}  # fmt: skip
_AS_ELEMENTS = {"u64": "i64", "u32": "i32", "bool": "u8"}  # of a parameter's type
# torch's types that NumPy lacks, and those that have the bits.
_BITS = {"bf16": "int16", "e4m3": "uint8", "e5m2": "uint8"}
_CODES = {"bf16": "hH", "e4m3": "B", "e5m2": "B"}
_PIECE = 1 << 30  # bytes that one call writes
_LARGEST = 1 << 63


@dataclasses.dataclass(frozen=True)
class HostArray:
    """type: of the elements, in the spec's word. data: their bytes in C order. digest: SHA-256 of these."""

    type: str
    shape: tuple[int, ...]
    data: memoryview
    digest: str

    @classmethod
    def of(cls, type_: str, shape: tuple[int, ...], data: memoryview) -> HostArray:
        return cls(type_, shape, data, hashlib.sha256(data).hexdigest())

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def npy(self) -> bytes:
        """As numpy.save() writes it, in format 1.0."""
        return self._header() + self.data

    def in_memory(self) -> tuple[bytes, int]:
        """What elsewhere() makes of a memory, and its descriptor: it has the data as long as that is open."""
        memory = os.memfd_create(f"cubind-{self.digest}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            written = 0
            while written < len(self.data):
                written += os.write(memory, self.data[written : written + _PIECE])
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
        except BaseException:
            os.close(memory)
            raise
        return self.elsewhere(f"/proc/{os.getpid()}/fd/{memory}"), memory

    def elsewhere(self, path: str) -> bytes:
        """A file that names another one with the data (tuner/spec/npy.hpp). Raises InvalidArgumentError."""
        if "'" in path:
            raise InvalidArgumentError("a path of arrays has no ' in it: pass another folder", path)
        return self._header(f"'memory': '{path}', 'sha256': '{self.digest}', ")

    def _header(self, more: str = "") -> bytes:
        descr = _NPY[self.type]
        fields = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {self.shape}, {more}}}".encode()
        header = fields.ljust((len(fields) + 11 + 63) // 64 * 64 - 11) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def is_number(value: Any) -> bool:
    """A number of Python, or a scalar of NumPy."""
    return isinstance(value, (bool, int, float)) or (
        hasattr(value, "dtype") and getattr(value, "shape", None) == () and not arrays.is_torch(value)
    )


def host_array(value: Any, parameter: Parameter | None, where: str) -> HostArray:
    """A copy in host memory, or a view. parameter: what it is for, if that is known. Raises
    InvalidArgumentError at `where` for what no buffer of a spec has."""
    try:
        host, type_ = _on_host(value)
        view = memoryview(host)
    except (TypeError, ValueError, BufferError, RuntimeError):  # torch's, of sparse and other tensors
        dtype = getattr(value, "dtype", None)
        what = f"an array of {dtype}" if dtype is not None else f"a {type(value).__name__}"
        raise InvalidArgumentError(f"{what} is no array of numbers", where) from None
    type_ = type_ or _type_of(view, parameter, where)
    if view.nbytes >= MAX_ARRAY_BYTES:
        raise InvalidArgumentError(
            f"has {view.nbytes / (1 << 30):.1f} GiB, an array may have less than 8", where
        )
    if not view.c_contiguous:
        raise InvalidArgumentError(
            f"is not C-contiguous (shape {list(view.shape)}): pass numpy.ascontiguousarray() of it", where
        )
    expected = _AS_ELEMENTS.get(parameter.type, parameter.type) if parameter is not None else ""
    if expected and type_ != expected:
        raise InvalidArgumentError(f"has elements of {type_}, the kernel's parameter {expected}", where)
    return HostArray.of(type_, tuple(view.shape), _bytes_of(view))


def scalar(value: Any, parameter: Parameter | None, where: str) -> dict[str, Any]:
    """A spec's argument: an integer is the kernel's, a fraction the caller's. Raises InvalidArgumentError."""
    type_ = _SCALARS.get(_format_of(value), "") if hasattr(value, "dtype") else ""
    number: bool | int | float = value.item() if hasattr(value, "item") else value
    declared = parameter.type if parameter is not None else ""
    if type_ and declared and type_ != declared:
        raise InvalidArgumentError(f"is a number of {type_}, the kernel's parameter {declared}", where)
    type_ = type_ or declared or ("f32" if isinstance(number, float) else "i32")
    is_fraction = type_ in ("f64", "f32", "f16", "bf16")
    # NumPy's longdouble and complex stay theirs, and of an int every digit counts.
    is_number = isinstance(number, (int, float)) and abs(number) <= sys.float_info.max
    if is_fraction and is_number:
        return {"scalar": type_, "from": "caller", "bench": float(number)}
    if is_fraction or not isinstance(number, int) or not -_LARGEST <= number < _LARGEST:
        raise InvalidArgumentError(f"is {number}, the kernel's parameter takes {type_}", where)
    return {"scalar": type_, "expr": int(number)}


def _format_of(value: Any) -> str:
    """Empty for a scalar without a buffer, as CuPy's are."""
    try:
        return memoryview(value).format or ""
    except (TypeError, ValueError, BufferError):
        return ""


def _on_host(value: Any) -> tuple[Any, str]:
    """Something with a buffer, and the type that this does not tell."""
    if arrays.is_torch(value):
        torch = sys.modules["torch"]
        short = next((name for name in _BITS if value.dtype == getattr(torch, arrays.TORCH[name], None)), "")
        host = value.detach().cpu()
        return (host.view(getattr(torch, _BITS[short])) if short else host).numpy(), short
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, cupy.ndarray):
        return value.get(order="A"), ""
    return value, ""


def _type_of(view: memoryview, parameter: Parameter | None, where: str) -> str:
    code = (view.format or "").lstrip("@=<")
    if parameter is not None and code and code in _CODES.get(parameter.type, ""):
        return parameter.type  # its bits, as NumPy has them
    if code not in _ELEMENTS:
        kind = {"O": "objects", "": "nothing"}.get(code, f'the type "{view.format}"')
        raise InvalidArgumentError(f"has elements of {kind}, a buffer has {', '.join(_NPY)}", where)
    return _ELEMENTS[code]


def _bytes_of(view: memoryview) -> memoryview:
    if 0 in view.shape:
        return memoryview(b"")
    return view.cast("B") if view.format != "B" or view.ndim != 1 else view
