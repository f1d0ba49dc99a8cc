"""What a model of `transformers` calls by name: the rotary embedding and the attention of its layers, and the
loss of its logits."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.nn import functional as torch_functions

from ._choices import CHUNKED, is_torchs
from ._copies import with_names
from ._cross_entropy import cross_entropy
from ._linear_cross_entropy import linear_cross_entropy
from ._model_attention import FUNCTIONS, implementations
from ._rotary import rotary

_CHUNKED = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_WHOLE = {"logits_to_keep", "return_dict"}  # arguments of forward() that only transformers' own knows
_ROTARY = "apply_rotary_pos_emb"
_ATTENTION = (
    "Gemma2Attention",
    "GemmaAttention",
    "LlamaAttention",
    "MistralAttention",
    "MixtralAttention",
    "Qwen2Attention",
    "Qwen3Attention",
    "Qwen3MoeAttention",
)


def is_decoders(cls: type) -> bool:
    """Whether it is an attention class whose parts are known by name."""
    return cls.__name__ in _ATTENTION


@functools.cache
def attention_forward(cls: type, only: str = "") -> tuple[Callable[..., Any] | None, str]:
    """The forward() of an attention class with cubind's rotary embedding and attention, or with one of them
    only: a copy that finds them under the names of its module's own. None: it stays. With the reason for a
    class that one might expect more for."""
    forward = inspect.unwrap(cls.forward)  # type: ignore[attr-defined]
    if not isinstance(forward, types.FunctionType):
        return None, ""
    own, why, is_known = {}, "", is_decoders(cls)
    called, known = forward.__code__.co_names, forward.__globals__
    theirs = known.get(FUNCTIONS) if FUNCTIONS in called and only != "rotary" else None
    if theirs is not None and (ours := implementations(theirs, is_known)) is not None:
        own[FUNCTIONS] = ours
    if is_known and only != "attention":
        if _ROTARY in called and _computes_the_same(known.get(_ROTARY)):
            own[_ROTARY] = rotary
        else:
            why = "its rotary embedding is not known"
    return (with_names(forward, own) if own else None), why


def turns(forward: Callable[..., Any]) -> bool:
    """Whether a forward() of attention_forward() has cubind's rotary embedding."""
    return cast(Any, forward).__globals__.get(_ROTARY) is rotary


def _computes_the_same(theirs: Any) -> bool:
    q, k, angles = (torch.linspace(-1, 1, n, dtype=torch.float64) for n in (12, 6, 6))
    given = (q.view(1, 2, 1, 6), k.view(1, 1, 1, 6), angles.cos().view(1, 1, 6), angles.sin().view(1, 1, 6))
    try:
        found = theirs(*given)
    except Exception:  # another signature
        return False
    return all(torch.allclose(a, b) for a, b in zip(found, rotary(*given)))


def _causal_loss(logits: Tensor, labels: Tensor, vocab_size: int, **named: Any) -> Tensor:
    compute = functools.partial(cross_entropy, logits.view(-1, vocab_size), dtype=torch.float32)
    return _of_next(compute, labels, **named)


# As ForCausalLMLoss of transformers: the loss of each token's successor. compute(targets, ignore_index=,
# reduction=) gives that of the flat targets.
def _of_next(
    compute: Callable[..., Tensor],
    labels: Tensor,
    num_items_in_batch: Any = None,
    ignore_index: int = -100,
    shift_labels: Tensor | None = None,
    **_: Any,
) -> Tensor:
    if shift_labels is None:
        shift_labels = torch_functions.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    reduction = "mean" if num_items_in_batch is None else "sum"
    loss = compute(shift_labels.reshape(-1), ignore_index=ignore_index, reduction=reduction)
    if num_items_in_batch is None:
        return loss
    items = num_items_in_batch
    return loss / (items.to(loss.device) if isinstance(items, Tensor) else items)


def loss_members(model: torch.nn.Module, chunked: bool, detached: bool) -> dict[str, Any] | None:
    """What gives a causal language model cubind's loss, as members of a class: ForCausalLMLoss without a
    float32 copy of the logits, or chunked, without the logits; detached: they have no gradient in graphs.
    None: it has another loss."""
    cls: Any = type(model)
    has_causal_loss = cls.__name__.endswith("LMHeadModel") or getattr(model, "loss_type", "") == "ForCausalLM"
    known = getattr(cls, "loss_function", None)
    if not has_causal_loss or not isinstance(known, property) or hasattr(model, "_loss_function"):
        return None
    # Not by their property: it warns of models without a loss_type, which breaks a graph.
    theirs = getattr(sys.modules.get("transformers.loss.loss_utils"), "ForCausalLMLoss", _causal_loss)

    def loss_function(self: Any) -> Any:
        found = theirs if is_torchs(self, "loss") else _causal_loss
        return self.__dict__.get("_loss_function", found)

    own = property(loss_function, known.fset)
    members: dict[str, Any] = {"loss_function": own}
    if detached:
        members["forward"] = _detached_forward(cls.forward)
    if chunked and cls.__name__ in _CHUNKED and getattr(cast(Any, model).lm_head, "bias", None) is None:
        members |= {"forward": _chunked_forward(cls.forward), CHUNKED: True}
    return members


# Of an output that may have a gradient a graph takes one: zeros, as large as the logits.
def _detached_forward(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def forward(self: Any, *inputs: Any, labels: Any = None, **named: Any) -> Any:
        output = theirs(self, *inputs, labels=labels, **named)
        if is_compiling() and labels is not None and getattr(output, "logits", None) is not None:
            output.logits = output.logits.detach()
        return output

    return forward


def _chunked_forward(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *inputs: Any, labels: Any = None, **named: Any) -> Any:
        if labels is None or not self.training or len(inputs) > 1 or _WHOLE & named.keys():
            return theirs(self, *inputs, labels=labels, **named)
        outputs = self.model(*inputs, **named)
        compute = functools.partial(linear_cross_entropy, outputs.last_hidden_state, self.lm_head.weight)
        return sys.modules["transformers.modeling_outputs"].CausalLMOutputWithPast(
            loss=_of_next(compute, labels, **named),
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    return forward
