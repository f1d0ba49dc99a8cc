"""What cubind uses of torch beyond its documented interface: all of it is here.

torch may change any of it without notice. If a piece is missing, or does not see what it is there to see,
is_known is False: then operators go by torch's dispatcher, which costs host time, and where that would not be
safe by torch's own functions. Import this only after torch.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

Watcher = Callable[[], Any]


def _found(path: str) -> Any:
    """torch.PATH, None if there is no such thing."""
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


# ---- What takes part in a call besides the operator; each takes a tenth of a microsecond or less ----

_watchers: tuple[Watcher | None, ...] = (
    _found("_C._len_torch_dispatch_stack"),
    _found("_C._are_functorch_transforms_active"),
    _found("_C._is_tracing"),
)
_autocast: Watcher | None = _found("_C._is_any_autocast_enabled")
_function = type("_Probe", (torch.autograd.Function,), {})
_missing = (
    any(watcher is None for watcher in (*_watchers, _autocast))
    or not hasattr(forward_ad, "_current_level")
    or not hasattr(_function, "_backward_cls")
)

# Its _current_level is below 0 unless forward-mode gradients are taken.
forward_levels: Any = (
    forward_ad if hasattr(forward_ad, "_current_level") else types.SimpleNamespace(_current_level=0)
)


# Whether the watchers see what they watch, which a piece may stop to do that keeps its name.
def _react() -> bool:
    modes, transforms, _ = _watchers
    seen: list[Any] = []
    with TorchDispatchMode():
        seen.append(modes())  # type: ignore[misc]
    with torch.autocast("cpu", torch.bfloat16):
        seen.append(_autocast())  # type: ignore[misc]
    with forward_ad.dual_level():
        seen.append(forward_levels._current_level >= 0)
    torch.func.vmap(lambda x: seen.append(transforms()) or x)(torch.zeros(1, device="cpu"))  # type: ignore[misc]
    return all(seen)


def _is_known() -> bool:
    try:
        return not _missing and _react()
    except Exception:
        return False


is_known = _is_known()


def watchers(autocast: bool) -> tuple[Watcher, ...]:
    """Callables that return something true while a dispatch mode, a transform of torch.func, a tracer or,
    with autocast, autocast is active; one that is always true unless is_known."""
    if not is_known:
        return (lambda: True,)
    own = tuple(watcher for watcher in _watchers if watcher is not None)
    return (*own, _autocast) if autocast and _autocast is not None else own


def is_transformed() -> bool:
    """Whether a transform of torch.func or forward-mode gradients are active. True if torch does not say."""
    active: Watcher | None = _watchers[1]
    return forward_levels._current_level >= 0 or active is None or bool(active())


# ---- Streams, devices and memory ----


def _public_stream_of(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream if torch.backends.cuda.is_built() else 0


# From a device's ordinal to its current stream.
stream_of: Callable[[int], int] = _found("_C._cuda_getCurrentRawStream") or _public_stream_of
current_device: Callable[[], int] = _found("_C._cuda_getDevice") or (lambda: -1)

# A C interface to tensors. Without it, which torch has from 2.10 on, no call reads tensors without Python.
exchange: Any = _found("Tensor.__dlpack_c_exchange_api__")


def quick_allocation() -> tuple[Any, Any] | None:
    """What compiled graphs allocate by, on the CPU and on a GPU, in half of the time of torch.empty()."""
    found = tuple(_found(f"_C._dynamo.guards._empty_strided_{name}") for name in ("cpu", "cuda"))
    return (found[0], found[1]) if all(found) else None


# Keeps the GPU busy for so many of its cycles; None if there is no such thing.
sleep: Callable[[int], None] | None = _found("cuda._sleep")


# ---- Graphs ----


def is_exporting() -> bool:
    """Whether torch.export makes a graph. torch 2.11 replaces torch.compiler.is_exporting() by True."""
    return getattr(torch.compiler, "_is_exporting_flag", True)


# ---- Gradients ----

_top_hooks: Callable[[bool], Any] | None = _found("_C._autograd._top_saved_tensors_default_hooks")
_graph_task: Callable[[], int] | None = _found("_C._current_graph_task_id")


def is_in_backward() -> bool:
    """Whether this thread is in a backward pass. False if torch does not say."""
    return _graph_task is not None and _graph_task() != -1


def saves_by_hooks() -> bool:
    """Whether hooks take what autograd saves, as in torch.utils.checkpoint. False if torch does not say."""
    return _top_hooks is not None and _top_hooks(True) is not None


def applied(
    name: str,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    others: tuple[Any, ...] = (),
    quick: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """apply() of an autograd.Function, without the look for transforms, which the caller has taken. others:
    the value of ctx.others. quick: what autograd calls instead of backward, which compiled autograd still
    reads. Only if is_known."""
    body = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward),
        "setup_context": staticmethod(torch.autograd.Function.setup_context),  # found at once: there is none
    }
    function: Any = type(name, (torch.autograd.Function,), body)
    function._backward_cls.others = others
    function._backward_cls.apply = quick or backward  # else a method of torch's looks for backward each time
    return super(torch.autograd.Function, function).apply


# ---- Torch's own operators, of which it documents the functions alone; None unless is_known, and where torch
# has none ----


def _own(name: str) -> Any:
    return _found(f"ops.aten.{name}") if is_known else None


rms_norm: Any = _own("_fused_rms_norm")
rms_norm_backward: Any = _own("_fused_rms_norm_backward")
layer_norm: Any = _own("native_layer_norm")
layer_norm_backward: Any = _own("native_layer_norm_backward")
softmax_backward: Any = _own("_softmax_backward_data")
_flash_attention: Any = _own("_scaled_dot_product_flash_attention")
_flash_attention_backward: Any = _own("_scaled_dot_product_flash_attention_backward")

Three = tuple[Tensor, Tensor, Tensor]


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor] | None:
    """The output and the logsumexp of each row; None if torch's flash attention does not take these."""
    if not _takes(q, k, v, causal):
        return None
    o, lse, *_ = _flash_attention(q, k, v, 0.0, causal, False, scale=scale)
    return (o, lse) if lse.shape == q.shape[:-1] else None


def flash_attention_backward(
    d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
) -> Three | None:
    """The gradients of q, k and v; None as flash_attention(). The forward pass is computed once more: what it
    hands to the backward pass differs from version to version."""
    if not _takes(q, k, v, causal) or _flash_attention_backward is None:
        return None
    o, lse, *between, _ = _flash_attention(q, k, v, 0.0, causal, False, scale=scale)
    sums, random = between[:4], between[4:]
    dq, dk, dv = _flash_attention_backward(d_o, q, k, v, o, lse, *sums, 0.0, causal, *random, scale=scale)
    return dq, dk, dv


# A causal mask that is not square is another one for torch.
def _takes(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> bool:
    if not q.is_cuda or _flash_attention is None or (causal and q.shape[2] != k.shape[2]):
        return False
    given = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, causal, q.shape[1] != k.shape[1])
    return torch.backends.cuda.can_use_flash_attention(given)
