"""Masks that attention has kernels for: what each was built from, found again by its tensor."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._attention_formula import Packed
from ._gpu import is_capturing
from ._tensors import power_of_two


class Marks:
    """What is known of tensors. A copy of a tensor does not have it, nor a file that a tensor is saved in."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Any]] = {}

    def get(self, tensor: Tensor) -> Any:
        """None: nothing is known."""
        seen, mark = self._known.get(id(tensor), (None, None))
        return mark if seen is not None and seen() is tensor else None

    def put(self, tensor: Tensor, mark: Any) -> None:
        """As long as the tensor lives."""
        number = id(tensor)
        self._known[number] = weakref.ref(tensor, lambda _: self._known.pop(number, None)), mark


marks = Marks()


@dataclasses.dataclass
class Pattern:
    """What a mask function says. sequences: [B, S], which packed sequence a token is of. is_by_sequence: the
    positions are those within a sequence, whose tokens have consecutive ones."""

    causal: bool = False
    left: int = 0  # as the kernel's flag
    sequences: Tensor | None = None
    is_by_sequence: bool = False


class UnsupportedError(Exception):
    """Why a mask is none that the kernels have."""


class Mask:
    """What a mask was built from: given is what transformers' builder was called with; find() gives the
    pattern, or raises UnsupportedError. What the kernels need is computed once, by the first layer."""

    def __init__(self, tensor: Tensor, given: dict[str, Any], find: Callable[[], Pattern]) -> None:
        self._find = find
        self._version = version_of(tensor)
        start = given.get("q_offset", 0)  # a static cache counts in this very tensor
        self._given = {**given, "q_offset": start.clone() if isinstance(start, Tensor) else start}
        self._captured = is_capturing()
        self._why = ""  # there are no sequences
        self._packed: dict[int, Packed] = {}  # by how many heads of keys are sequences of their own

    def of(self, tensor: Tensor, q: Tensor, k: Tensor) -> Mask:
        """Itself. Raises UnsupportedError if the tensor was changed, or if the heads are others."""
        if version_of(tensor) != self._version:
            raise UnsupportedError("the mask was changed")
        if self._captured != is_capturing():
            raise UnsupportedError("the mask was built outside of the CUDA graph")
        if (q.shape[0], q.shape[2], k.shape[2]) != (self.batch, self.queries, self.keys):
            raise UnsupportedError("the mask is of other sizes")
        return self

    @property
    def batch(self) -> int:
        return int(self._given["batch_size"])

    @property
    def queries(self) -> int:
        return int(self._given["q_length"])

    @property
    def keys(self) -> int:
        return int(self._given["kv_length"])

    @functools.cached_property
    def pattern(self) -> Pattern:
        """Raises UnsupportedError."""
        pattern = self._find()
        pattern.left *= pattern.left < self.keys  # else no key lies outside
        return pattern

    @property
    def causal(self) -> bool:
        """The kernels' flag: one query sees all keys up to its own, which are all that they are given."""
        return self.pattern.causal and self.queries > 1

    # The key at which the first query stands. None: only the GPU knows it.
    @functools.cached_property
    def _start(self) -> int | None:
        start = self._given.get("q_offset", 0)
        return None if isinstance(start, Tensor) else int(start - self._given.get("kv_offset", 0))

    @property
    def is_dense(self) -> bool:
        """Whether all queries and keys are real, and the last ones stand next to each other."""
        is_whole = self._given.get("attention_mask") is None and self.pattern.sequences is None
        return is_whole and self._start is not None and self._start + self.queries == self.keys

    def packed(self, heads: int, scale: float, soft_cap: int) -> Packed:
        """The sequences of rows_of() of the heads. heads: how many of keys are sequences of their own, for
        one query. Raises UnsupportedError."""
        if self._why:
            raise UnsupportedError(self._why)
        if heads not in self._packed:
            sequences = self.pattern.sequences
            try:
                self._packed[heads] = self._padded(heads) if sequences is None else self._joined(sequences)
            except UnsupportedError as why:
                self._why = str(why)
                raise
        return self._packed[heads]._replace(scale=scale, soft_cap=soft_cap)

    def _made(self, bounds: tuple[Tensor, ...], gaps: bool, cross: bool, spread: bool) -> Packed:
        pattern = self.pattern
        mask = (self.causal, pattern.left, 0, 0)
        return Packed(*bounds, *mask, gaps, cross, spread, 1.0)  # type: ignore[misc]

    # How many sequences there are is asked of the GPU, as the mask's builder has done already.
    def _joined(self, numbers: Tensor) -> Packed:
        if is_capturing():
            raise UnsupportedError("packed sequences are counted, which a CUDA graph cannot")
        counts = numbers[:, -1] + 1
        before = counts.cumsum(0)
        flat = (numbers + (before - counts)[:, None]).flatten()
        count = power_of_two(int(before[-1]))  # there may be empty ones behind the last
        bounds = torch.searchsorted(flat, torch.arange(count + 1, device=flat.device), out_int32=True)
        return self._made((bounds,) * 4, False, False, True)

    def _padded(self, heads: int) -> Packed:
        first, end = self._real()
        start = self._given.get("q_offset", 0) - self._given.get("kv_offset", 0)
        Q, K = self.queries, self.keys
        if not self.pattern.causal:  # padded queries see keys too
            q_first, q_end = torch.zeros_like(first), torch.full_like(end, Q)
        else:
            q_first, q_end = (first - start).clamp(0, Q), (end - start).clamp(0, Q)
            end = torch.minimum(end, q_end + start)
        k_rows = (first, (end - first).clamp_min(0), K)
        q_rows = (q_first, q_end - q_first, Q)
        cross = Q != K or self._start != 0 or not self.pattern.causal
        bounds = [_bounds(*rows, heads) for rows in ((q_rows, k_rows) if cross else (q_rows, q_rows))]
        (q_bounds, q_lengths), (k_bounds, k_lengths) = bounds
        return self._made((q_bounds, k_bounds, q_lengths, k_lengths), True, cross, False)

    # The first key of each row that is real, and the end of these.
    def _real(self) -> tuple[Tensor, Tensor]:
        given, K = self._given["attention_mask"], self.keys
        if given is None:
            first = torch.zeros(self.batch, dtype=torch.int64, device=self._given["device"])
            return first, first + K
        offset = self._given.get("kv_offset", 0)
        real = given[:, offset : offset + K]
        positions = torch.arange(1, real.shape[1] + 1, device=real.device) * real
        end, count = positions.amax(-1), real.sum(-1)
        # Different places below `end` have their largest sum if none is left out.
        is_whole = (positions.sum(-1) * 2 == count * (2 * end - count + 1)).all()
        if is_capturing():
            torch._assert_async(is_whole, "a row of the attention mask has a gap")  # type: ignore[call-arg]
        elif not is_whole:
            raise UnsupportedError("a row of the mask has a gap")
        return end - count, end


# Sequences of `size` rows, each `heads` times, of which `count` from `first` on are real.
def _bounds(first: Tensor, count: Tensor, size: int, heads: int) -> tuple[Tensor, Tensor]:
    if heads > 1:
        first, count = (each.repeat_interleave(heads) for each in (first, count))
    rows = len(first) * size
    begin = first + torch.arange(0, rows, size, device=first.device)
    return tuple(  # type: ignore[return-value]
        functional.pad(each, (0, 1), value=last).to(torch.int32) for each, last in ((begin, rows), (count, 0))
    )


def version_of(tensor: Tensor) -> int:
    """What changes with the tensor's values, but for inference tensors."""
    return -1 if tensor.is_inference() else tensor._version


def mask_of(tensor: Tensor, q: Tensor, k: Tensor) -> Mask:
    """What the mask was built from. Raises UnsupportedError."""
    if torch.jit.is_tracing():
        raise UnsupportedError("a trace, which would keep what this mask is")
    mask = marks.get(tensor)
    if not isinstance(mask, Mask):
        raise UnsupportedError("it is not known what the mask was built from")
    return mask.of(tensor, q, k)
