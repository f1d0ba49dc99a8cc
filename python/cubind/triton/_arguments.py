"""From the arguments of a call to those of a definition, and to a grid."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

from ._contents import contents_of
from ._own import StaysOwnError
from ._triton_private import Source
from .definition import INOUT, OUT, Argument, Constant, Plain, Pointer, Scalar, element_bytes, plain_number

_FLOATS = ("fp", "bf")


def plain(value: Any) -> Plain:
    """The value in JSON. Raises StaysOwnError for one that JSON does not have."""
    if isinstance(value, float):
        return plain_number(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if type(value).__name__ == "constexpr":
        return plain(value.value)
    if type(value).__name__ == "dtype":  # of torch or Triton
        return str(value)
    raise StaysOwnError(f"has a {type(value).__name__} where a number or a text would do")


def label(value: Any) -> Plain:
    """As plain(), with the name of what JSON has not: TTIR holds what it does."""
    try:
        return plain(value)
    except StaysOwnError:
        return str(getattr(value, "__name__", type(value).__name__))[:256]


class Arguments:
    """The arguments of one call, before its TTIR tells their roles.

    Tensors are numbered by the memory that they share. chosen: parameters that configurations set.
    """

    def __init__(self, source: Source, chosen: set[str]) -> None:
        self._source = source
        self._chosen = chosen
        self._storages: dict[int, int] = {}

    def all(self) -> tuple[Argument, ...]:
        """The arguments in order. Raises StaysOwnError for one of a kind that is not known."""
        found = [
            self._argument(position, name, kind, self._source.bound[name])
            for position, (name, kind) in enumerate(self._source.signature.items())
        ]
        return tuple(argument for argument in found if argument is not None)

    def _argument(self, position: int, name: str, kind: Any, value: Any) -> Argument | None:
        if kind == "constexpr":
            return None if name in self._chosen else Constant(name, label(value))
        divisibility = self._divisibility(position)
        if isinstance(kind, str) and kind.startswith("*"):
            return self._pointer(name, kind[1:].removeprefix("k"), value, divisibility)
        if isinstance(value, (bool, int)):
            return Scalar(name, kind, int(value), divisibility)
        if isinstance(value, float) and kind.startswith(_FLOATS):
            return Scalar(name, kind, value, divisibility)
        raise StaysOwnError(f"has an argument {name} of type {kind}, given as {type(value).__name__}"[:256])

    def _divisibility(self, position: int) -> int:
        told = dict(self._source.attributes.get((position,), []))
        return 16 if told.get("tt.divisibility", 1) == 16 else 1

    def _pointer(self, name: str, type_: str, tensor: Any, divisibility: int) -> Pointer:
        try:
            shape = tuple(int(size) for size in tensor.shape)
            strides = tuple(int(stride) for stride in tensor.stride())
            address = tensor.data_ptr()
        except (AttributeError, TypeError) as error:
            raise StaysOwnError(f"has no tensor as its argument {name}: {error}"[:256]) from None
        tensor = getattr(tensor, "base", tensor) if not hasattr(tensor, "untyped_storage") else tensor
        begin, size = _storage(tensor, address, shape, strides, type_)
        return Pointer(
            name,
            type_,
            shape,
            strides,
            divisibility,
            INOUT,
            self._storages.setdefault(begin, len(self._storages)),
            address - begin,
            size,
            contents_of(tensor, type_),
        )


def with_roles(arguments: tuple[Argument, ...], roles: list[str]) -> tuple[Argument, ...]:
    """The arguments with the roles of the parameters that the compiled kernel has. Raises StaysOwnError where
    they are not as many."""
    passed = sum(not isinstance(argument, Constant) for argument in arguments)
    if passed != len(roles):
        raise StaysOwnError(f"has {len(roles)} parameters in TTIR for {passed} arguments")
    left = iter(roles)
    return tuple(
        argument if isinstance(argument, Constant) else _with_role(argument, next(left))
        for argument in arguments
    )


def _with_role(argument: Argument, role: str) -> Argument:
    if not isinstance(argument, Pointer):
        return argument
    contents = None if role == OUT else argument.contents
    return dataclasses.replace(argument, role=role, contents=contents)


def _storage(
    tensor: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], type_: str
) -> tuple[int, int]:
    """The memory that a tensor is part of, from where and how many bytes."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    last = sum((size - 1) * stride for size, stride in zip(shape, strides))
    return address, 0 if 0 in shape else (last + 1) * element_bytes(type_)


# ---- The grid ----


class _Geometry:
    """A tensor without its contents, for a grid that looks at shapes."""

    _KNOWN = frozenset(
        {"device", "dim", "dtype", "element_size", "is_contiguous", "is_cuda", "itemsize", "layout", "nbytes"}
        | {"ndim", "numel", "requires_grad", "shape", "size", "stride"}
    )

    def __init__(self, name: str, tensor: Any) -> None:
        self._name = name
        self._tensor = tensor

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in self._KNOWN:
            raise StaysOwnError(f"has a grid that depends on {self._name}.{attribute}")
        return getattr(self._tensor, attribute)

    def __len__(self) -> int:
        return len(self._tensor)


def evaluate_grid(source: Source) -> tuple[int, int, int]:
    """The grid of one configuration. Raises StaysOwnError where it depends on what is in a tensor."""
    grid = source.grid
    if callable(grid):
        bound = {
            name: _Geometry(name, value) if hasattr(value, "data_ptr") else value
            for name, value in source.bound.items()
        }
        try:
            with _no_operators():
                grid = grid(bound)
        except StaysOwnError:
            raise
        except Exception as error:
            raise StaysOwnError(f"has a grid that fails without tensors: {error}"[:256]) from None
    try:
        x, y, z = (*(int(size) for size in grid), 1, 1)[:3]
    except (TypeError, ValueError):
        raise StaysOwnError(f"has a grid that is {type(grid).__name__}") from None
    return x, y, z


@contextlib.contextmanager
def _no_operators() -> Iterator[None]:
    """A grid may look at tensors that are not among the arguments: none of torch's operators runs."""
    if "torch" not in sys.modules:
        yield
        return
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise StaysOwnError(f"has a grid that depends on tensors: it calls {func}")

    with Refusing():
        yield
