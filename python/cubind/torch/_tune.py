"""Tuning what a model's operators need, while the model waits."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .. import _ranks
from .._asking import warn
from .._switch import IS_OFF
from ..comparison import Comparison
from ..tuning import TuneResult
from . import _compiled
from ._comparing import compare_all
from ._compiled_step import by_time
from ._gpu import on_device
from ._operator import collecting, operators
from ._steps import wait
from ._transformers import has_own_loss
from ._variants import Need, settings

_MOST = 8  # problems of a kernel that differ in their sizes alone


def tune(
    model: Callable[..., Any],
    *inputs: Any,
    backward: bool = True,
    progress: bool = True,
    compiled: bool | Mapping[str, Any] = False,
    **named: Any,
) -> list[TuneResult]:
    """Tune the kernels that a model's operators need, and use them from the next call on.

    Call it once after replace(), before the first step, with inputs of the sizes that training will have. It
    runs the model once with PyTorch's own functions to see which kernels it needs. Then it tunes them on the
    GPU that this process uses, for a few seconds each: nothing else may be launched meanwhile. Parameters,
    gradients, buffers and random numbers are as before; what the model keeps elsewhere, such as a cache or a
    count of its calls, is not. A kernel that was tuned before costs nothing. In a job of several ranks every
    rank calls it: each kernel is tuned once, on one of their GPUs.

    model: a module, or a function that calls modules and operators. inputs, named: what it is called with.
    backward: also the kernels of the backward pass, which is not run. progress: shows a progress bar (tqdm
    where it is installed, else lines on stderr).
    compiled: for a module that torch.compile compiles afterwards. True, or the arguments of torch.compile,
    measures the compiled step with each kind of modules as cubind's and as the compiler's, by at most six
    compiles in ten minutes, and keeps the faster one; a step that was measured before costs nothing. False
    decides by a rule, and so does a job of several ranks: attention and the loss are cubind's.

    Afterwards each kernel is compared with torch's own function, for half a second, unless the daemon knows
    how it compares with this build of torch: never_slower() says which one is called from then on.

    A run that calls a kernel with more than eight sizes, as a generation does, tunes eight of them, from the
    smallest to the largest: the others of a bucket use what was found for these.

    Returns one result for each kernel and size that was tuned. One that failed has its error, and PyTorch's
    function or an earlier kernel stays. Raises CubindError without a daemon, and what the model raises.
    """
    if not isinstance(compiled, (bool, Mapping)):
        raise TypeError(f"compiled: {compiled!r} is neither a bool nor a dict of torch.compile's arguments")
    if IS_OFF:
        return []
    needs = _needs_of(model, inputs, named, backward)
    if not needs:
        warn(f"tune(): the run needed no kernel of cubind: {_why_none(model)}")
        return []
    has_loss = any(operator.name.startswith("cross_entropy") for operator, _, _ in needs)
    if backward and has_own_loss(model) and not has_loss:
        warn(
            "tune(): the run computed no loss, whose kernels are not tuned: give it labels, as training does"
        )
    results = []
    for device in dict.fromkeys(key[1] for _, key, _ in needs):
        shapes = [
            {"kernel": operator.name, **operator.problem(key, dims)}
            for operator, key, dims in needs
            if key[1] == device
        ]
        with on_device(device):
            results += settings.connected().tune(shapes, progress=progress)
    results = _with_comparisons(results, compare_all(needs))
    for operator in operators():
        operator.tuned([(key, dims) for other, key, dims in needs if other is operator])
    wait()
    if isinstance(model, torch.nn.Module):
        _choose(model, needs, inputs, named, backward, compiled, progress)
    return results


def _choose(
    model: torch.nn.Module,
    needs: list[Need],
    inputs: tuple[Any, ...],
    named: dict[str, Any],
    backward: bool,
    compiled: bool | Mapping[str, Any],
    progress: bool,
) -> None:
    module = getattr(model, "_orig_mod", model)  # of what torch.compile gives
    choices = _compiled.by_rule(module, needs)
    try:
        if compiled is not False and not _ranks.are_several():
            options = compiled if isinstance(compiled, Mapping) else {}
            about = [repr(_shapes((inputs, named))), backward]
            with _unchanged(module), torch.set_grad_enabled(backward and torch.is_grad_enabled()):
                choices = by_time(
                    module, needs, lambda call: call(*inputs, **named), about, options, progress
                )
    finally:  # a measurement that is interrupted leaves the choice of its last step
        _compiled.use(module, choices)


def _shapes(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return str(given.dtype), list(given.shape)
    if isinstance(given, Mapping):
        return {name: _shapes(one) for name, one in sorted(given.items())}
    if isinstance(given, (tuple, list)):
        return [_shapes(one) for one in given]
    return given if isinstance(given, (bool, int, float, str)) else type(given).__name__


def _why_none(model: Callable[..., Any]) -> str:
    if torch.is_autocast_enabled("cuda"):
        return "under autocast all functions are PyTorch's"
    module = getattr(model, "__self__", model)  # of model.generate
    weights = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
    if weights and not any(weight.is_cuda for weight in weights):
        return 'its parameters are not on a GPU: call model.to("cuda") first, and give tune() inputs there'
    return "call replace(model) first, with model and inputs on a GPU"


def _with_comparisons(results: list[TuneResult], found: dict[Need, Comparison]) -> list[TuneResult]:
    def of(result: TuneResult) -> Comparison | None:
        for (operator, key, dims), comparison in found.items():
            asked = operator.problem(key, dims).items()  # without flags that have their defaults
            if operator.name == result.kernel and asked <= result.problem.items():
                return comparison
        return None

    return [dataclasses.replace(one, over_library=of(one)) for one in results]


def _needs_of(
    model: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any], backward: bool
) -> list[Need]:
    with (
        collecting(backward) as collection,
        _unchanged(model),
        torch.set_grad_enabled(backward and torch.is_grad_enabled()),
        torch.compiler.set_stance("force_eager"),
    ):
        model(*inputs, **named)
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()  # the activations of the run make room for the trials
    return _thinned(list(collection.needs))


# A generation has a problem for each length of its keys: those of a bucket share what a few of them find.
def _thinned(needs: list[Need]) -> list[Need]:
    alike: dict[tuple[Any, Any], list[Need]] = collections.defaultdict(list)
    for need in needs:
        alike[need.operator, need.key].append(need)
    kept: set[Need] = set()
    for group in alike.values():
        group.sort(key=lambda need: need.dims)
        last = len(group) - 1
        kept.update(group if last < _MOST else (group[i * last // (_MOST - 1)] for i in range(_MOST)))
    return [need for need in needs if need in kept]


@contextlib.contextmanager
def _unchanged(model: Callable[..., Any]) -> Iterator[None]:
    """Random numbers and a module's buffers are afterwards as they were."""
    buffers = list(model.buffers()) if isinstance(model, torch.nn.Module) else []
    with torch.no_grad():
        before = [buffer.clone() for buffer in buffers]
    try:
        with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
            yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, before):
                buffer.copy_(value)
