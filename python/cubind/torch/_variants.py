"""Loaded variants, and how an operator calls them without a line of Python."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch

from .. import _core, _ranks, _sealing
from .._connected import Connected
from ..answer import Answer
from ..client import Client
from ..comparison import Comparison
from ..errors import InvalidArgumentError
from ..question import Held

TYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def has_kernel(x: torch.Tensor, *others: torch.Tensor) -> bool:
    """Whether variants take `x` and what goes with it: a type of theirs, the same for all on one GPU, and not
    empty."""
    same = all(other.dtype == x.dtype and other.device == x.device for other in others)
    return x.dtype in TYPES and same and x.numel() > 0


# (type, device, values of the flags, values of the dims that tell variants apart): what Operator.launch()
# finds by.
Key = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]


LIBRARY = f"torch {torch.__version__}"  # of comparisons: those with another build say nothing


class Settings(Connected):
    """strict: a kernel that is missing raises CubindError, and calls wait for the daemon's answer; otherwise
    torch's own function takes its place. never_slower: torch's function is called where it is known to be
    faster. client: who is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.never_slower = True
        self.strict = _ranks.are_several()

    @property
    def raises(self) -> bool:
        """Whether a missing kernel raises: in a strict or a sealed program."""
        return self.strict or self.is_sealed

    @property
    def is_sealed(self) -> bool:
        """Whether the program is sealed by cubind.seal("error")."""
        return _sealing.program.mode == "error"


settings = Settings()


@dataclasses.dataclass(frozen=True)
class Found:
    """An answer and who gave it."""

    client: Client
    held: Held


def comparison_with_torch(answer: Answer) -> Comparison | None:
    """The answer's comparison with this very build of torch."""
    return next((one for one in answer.over_library if one.library == LIBRARY), None)


class Loaded:
    """A loaded variant. order: the place of each of its parameters in the operator's arguments, -1 for a
    scratch buffer; None if they are the operator's arguments as they stand. found: the answer, and dims those
    that it was asked for. comparison: with this torch; None: there is none."""

    def __init__(
        self, kernel: _core.Kernel, arguments: tuple[str, ...], found: Found, dims: tuple[int, ...]
    ) -> None:
        parameters = kernel.parameters()
        names = tuple(parameter[0] for parameter in parameters)
        for name, _, _, role in parameters:
            if name not in arguments and role != "scratch":
                raise InvalidArgumentError(
                    f"the operator has no such argument (it has {', '.join(arguments)})", name
                )
        self.kernel = kernel
        self.found = found
        self.dims = dims
        self.comparison = comparison_with_torch(found.held.answer)
        self.names = names
        self.launch = kernel.launch
        self.extents = kernel.extents
        self.order = None if names == arguments else order_of(names, arguments)

    @property
    def yields(self) -> bool:
        """Whether torch's function is called for the problems that it covers."""
        return settings.never_slower and self.comparison is not None and self.comparison.is_slower

    @property
    def is_current(self) -> bool:
        """Whether the client would give the same answer again."""
        return self.found.client is settings.client and self.found.held.until > time.monotonic()

    def arguments_for(self, dims: tuple[int, ...], given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The given ones in the variant's order, with scratch buffers; None if the variant does not hold for
        these dims."""
        order = self.order
        if order is None:
            return given
        extents = self.extents(dims) if -1 in order else order
        if extents is None:
            return None
        like = given[0]
        return tuple(
            _scratch(like, extent) if place < 0 else given[place] for place, extent in zip(order, extents)
        )


def order_of(names: tuple[str, ...], arguments: tuple[str, ...]) -> tuple[int, ...]:
    """The place of each name in the arguments, -1 where it is none."""
    return tuple(arguments.index(name) if name in arguments else -1 for name in names)


def _scratch(like: torch.Tensor, extent: int) -> torch.Tensor | int:
    return like.new_empty(extent, dtype=torch.uint8) if extent else 0


class Call:
    """A kernel with given values of its flags, called without a line of Python if its variant is known and
    the tensors are as it takes them. launch(*tensors, *numbers) gives the output, a tuple if there are
    several; NotImplemented if there is no kernel; None if the call is not as simple. direct(sizes, *tensors,
    *numbers) too, with gradients if they are needed, but the first output alone (see _core.pyi).
    is_missing(*tensors, *numbers): whether they would give NotImplemented."""

    def __init__(
        self, native: _core.OperatorCall, inputs: int, numbers: int, arguments: tuple[str, ...]
    ) -> None:
        self.native = native
        self.inputs = inputs
        self.numbers = numbers
        self.launch = native.launch
        self.direct = native.direct
        self.is_missing = native.is_missing
        self._arguments = arguments

    def know(self, key: Key, variants: tuple[Loaded, ...]) -> None:
        """The variants of the key, from now on; none of them: there is no kernel."""
        dtype, device, _, known = key
        triples = [(one.kernel, order_of(one.names, self._arguments), one.yields) for one in variants]
        self.native.know(TYPES[dtype], device, known, triples)

    def forget(self, key: Key) -> None:
        """Whether there is a kernel is not known any more."""
        dtype, device, _, known = key
        self.native.forget(TYPES[dtype], device, known)
