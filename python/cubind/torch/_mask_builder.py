"""The mask builder of `transformers`: its masks are marked with what they were built from, and a compiled
graph has no mask where nothing is masked: attention is causal, or not, by a flag then. transformers makes one
for every graph, since it cannot look into tensors there."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from ._choices import is_torchs
from ._copies import rewrapped
from ._masks import Mask, Pattern, UnsupportedError, marks

_BUILDER = "transformers.masking_utils"
_MAKERS = ("create_causal_mask", "create_sliding_window_causal_mask", "create_bidirectional_mask")
# Arguments of a maker that change the mask, and those that want one always.
_OTHERS = ("attention_mask", "or_mask_function", "and_mask_function", "block_sequence_ids")
_SKIPS = ("allow_is_causal_skip", "allow_is_bidirectional_skip")

_MARK = "_marks_masks"  # of a builder

_Method = Callable[..., Any]


# ---- What was built ----


def watch_builder() -> None:
    """From now on the mask builders of "sdpa" and "eager" mark what they build."""
    interface = getattr(sys.modules.get(_BUILDER), "AttentionMaskInterface", None)
    known = getattr(interface, "_global_mapping", {})
    for name in ("sdpa", "eager"):
        builder = known.get(name)
        if getattr(builder, "__module__", None) == _BUILDER and not hasattr(builder, _MARK):
            interface.register(name, _marking(builder))  # type: ignore[union-attr]


def _marking(builder: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(builder)
    def build(*inputs: Any, **given: Any) -> Any:
        mask = builder(*inputs, **given)
        if not inputs and isinstance(mask, torch.Tensor) and not torch.compiler.is_compiling():
            marks.put(mask, Mask(mask, given, functools.partial(_pattern_of, given)))
        return mask

    setattr(build, _MARK, True)
    return build


def _pattern_of(given: dict[str, Any]) -> Pattern:
    """Raises UnsupportedError."""
    if given.get("use_vmap"):
        raise UnsupportedError("the mask has a function of its own")
    pattern = Pattern()
    _read(given["mask_function"], pattern)
    if pattern.is_by_sequence and pattern.sequences is None:
        raise UnsupportedError("the mask has positions of its own")
    return pattern


# Functions of masking_utils by their qualified names: what they are made of lies in their closures.
def _read(function: Callable[..., Any], into: Pattern) -> None:
    name = getattr(function, "__qualname__", "")
    code = getattr(function, "__code__", None)
    if code is None or function.__module__ != _BUILDER:
        raise UnsupportedError("the mask has a function of its own")
    cells = function.__closure__ or ()  # type: ignore[attr-defined]
    own = dict(zip(code.co_freevars, (cell.cell_contents for cell in cells)))
    if name == "and_masks.<locals>.and_mask":
        for one in own["mask_functions"]:
            _read(one, into)
    elif name == "causal_mask_function":
        into.causal = True
    elif name == "sliding_window_overlay.<locals>.inner_mask":
        into.left = own["sliding_window"]
    elif name == "packed_sequence_mask_function.<locals>.inner_mask":
        into.sequences = own["packed_sequence_mask"]
    elif name == "remap_positions_for_packed_sequence.<locals>.inner_mask":
        into.is_by_sequence = True
        _read(own["mask_function"], into)
    elif name != "bidirectional_mask_function":
        raise UnsupportedError(f"the kernels have no mask of {name.partition('.')[0]}")


# ---- Graphs without masks ----


@functools.cache
def mask_members(cls: type, windows: bool) -> dict[str, Any]:
    """The methods of a class that make masks, as members of a class that makes none where it need not, with
    `windows` also where attention is cubind's and knows the window itself. Empty: there are none."""
    members: dict[str, Any] = {}
    for name, method in vars(cls).items():
        innermost = inspect.unwrap(method) if isinstance(method, types.FunctionType) else None
        if isinstance(innermost, types.FunctionType):
            called = set(_MAKERS).intersection(innermost.__code__.co_names)
            makers = {one: innermost.__globals__[one] for one in called}
            if makers:
                plain, known = (
                    rewrapped(method, {one: make(maker, "sliding" in one) for one, maker in makers.items()})
                    for make in (_unless_plain, _unless_known)
                )
                members[name] = _unless_placed(method, plain, known if windows else plain, innermost)
    return members


# A maker that gives None, as it does outside of a graph: "sdpa" is causal by its flag then.
def _unless_plain(theirs: _Method, has_window: bool) -> _Method:
    def make(*inputs: Any, **named: Any) -> Any:
        if (
            inputs
            or not is_compiling()
            or any(named.get(one) is not None for one in _OTHERS)
            or not all(named.get(one, True) for one in _SKIPS)
        ):
            return theirs(*inputs, **named)
        config = named.get("config")
        cache = named.get("cache", named.get("past_key_values"))
        plain = getattr(config, "_attn_implementation", None) == "sdpa" and _is_empty(cache)
        if plain and has_window:
            window = getattr(config, "sliding_window", None)
            plain = window is not None and named["inputs_embeds"].shape[1] < window
        return None if plain else theirs(*inputs, **named)

    return make


# The same where attention layers know the window and what is causal: also for the eager function.
def _unless_known(theirs: _Method, has_window: bool) -> _Method:
    plain = _unless_plain(theirs, has_window)

    def make(*inputs: Any, **named: Any) -> Any:
        config = named.get("config")
        if (
            inputs
            or any(named.get(one) is not None for one in (*_OTHERS, "cache", "past_key_values"))
            or not all(named.get(one, True) for one in _SKIPS)
            or getattr(config, "_attn_implementation", None) not in ("sdpa", "eager")
            or not getattr(config, "is_causal", True)
            or torch.is_autocast_enabled("cuda")
        ):
            return plain(*inputs, **named)
        return None

    return make


def _is_empty(cache: Any) -> bool:
    return cache is None or (type(cache).__name__ == "DynamicCache" and cache.get_seq_length() == 0)


# Positions that the caller gives may be those of several sequences in one row.
def _unless_placed(theirs: _Method, plain: _Method, known: _Method, innermost: types.FunctionType) -> _Method:
    arguments = innermost.__code__.co_varnames[1 : innermost.__code__.co_argcount]
    index = arguments.index("position_ids") if "position_ids" in arguments else None

    @functools.wraps(theirs)
    def method(self: Any, *inputs: Any, **named: Any) -> Any:
        given = named.get("position_ids") is not None
        if index is not None and len(inputs) > index:
            given = inputs[index] is not None
        if given or not is_compiling():
            return theirs(self, *inputs, **named)
        return (plain if is_torchs(self, "attention") else known)(self, *inputs, **named)

    return method
