"""The step of a compiled model, measured with each kind of modules as cubind's and as the compiler's."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .._asking import warn
from . import _compiled_kept as kept
from ._choices import choose
from ._compiled import KINDS, Choice, by_rule, missing
from ._variants import Need

_LIMIT = 600.0  # seconds
_COMPILES = 6
_WARM_UP = 3
_ROUNDS = 9
_WORTH = 0.995  # of the other's time: below this a kind changes

Run = Callable[[Callable[..., Any]], Any]  # calls the model


def by_time(
    model: torch.nn.Module, needs: list[Need], run: Run, about: Any, options: Mapping[str, Any], says: bool
) -> dict[str, Choice]:
    """As by_rule(), by the time of the compiled step. run(model) calls the model as training does; what it
    returns is differentiated if it has gradients. about: what else the answer holds for. options: of
    torch.compile. says: prints seconds on stderr. Kept answers need no time."""
    choices = by_rule(model, needs)
    kinds = [one for one in KINDS if one in choices and one != "embedding" and not missing(one, needs)]
    key = kept.key_of(model, [about, kinds], options)
    known = kept.read(key)
    if known is None:
        known = _measured(model, kinds, run, options, says, choices)
        kept.write(key, known)
    for kind, (is_ours, with_it, without) in known.items():
        if kind in kinds:
            why = f"the step takes {with_it:.2f} ms with cubind's, {without:.2f} ms with the compiler's"
            choices[kind] = Choice(is_ours, why)
    return choices


def _measured(
    model: torch.nn.Module,
    kinds: list[str],
    run: Run,
    options: Mapping[str, Any],
    says: bool,
    choices: dict[str, Choice],
) -> kept.Times:
    started = time.monotonic()
    best = _Step(model, run, options, {kind for kind, choice in choices.items() if choice.is_ours})
    best.tell(says)
    found: kept.Times = {}
    for kind in kinds:
        if len(found) == _COMPILES - 1 or time.monotonic() - started + best.seconds > _LIMIT:
            break
        try:
            rival = _Step(model, run, options, best.kinds ^ {kind})
        except Exception as error:
            warn(f"tune(compiled=True): {kind} was not measured: {type(error).__name__}: {error}")
            continue
        ratio, own, other = _compared(best, rival)
        rival.tell(says, other)
        times = (own, other) if kind in best.kinds else (other, own)
        if ratio < _WORTH:
            best = rival
        found[kind] = (kind in best.kinds, *times)
    return found


def _compared(best: _Step, rival: _Step) -> tuple[float, float, float]:
    """The rival's time over the best one's by the median of paired rounds, and both medians."""
    pairs = []
    for number in range(_ROUNDS):
        first, second = (rival, best) if number % 2 else (best, rival)
        times = {first: first.time(), second: second.time()}
        pairs.append((times[best], times[rival]))
    own, other = (statistics.median(column) for column in zip(*pairs))
    return statistics.median(b / a for a, b in pairs), own, other


class _Step:
    """The model compiled with some kinds as cubind's. seconds: what that took."""

    def __init__(self, model: torch.nn.Module, run: Run, options: Mapping[str, Any], kinds: set[str]) -> None:
        self.kinds = kinds
        self._model = model
        self._run = run
        self._parameters = [one for one in model.parameters() if one.requires_grad]

        def call(*inputs: Any, **named: Any) -> Any:
            return model(*inputs, **named)

        # Code of its own: what is compiled for the user's calls stays, and counts for nothing here.
        call.__code__ = call.__code__.replace(co_name=f"step_{'_'.join(sorted(kinds))}")
        self._call = torch.compile(call, **options)
        started = time.monotonic()
        for _ in range(_WARM_UP):
            self.time()
        self.seconds = time.monotonic() - started

    def time(self) -> float:
        """Milliseconds of a step."""
        choose(self._model, self.kinds)
        _wait()
        started = time.perf_counter()
        roots = _roots(self._run(self._call))
        if roots and self._parameters:
            slopes = [torch.ones_like(root) for root in roots]
            torch.autograd.grad(roots, self._parameters, slopes, allow_unused=True)
        _wait()
        return (time.perf_counter() - started) * 1e3

    def tell(self, says: bool, milliseconds: float | None = None) -> None:
        if says:
            took = f"{self.time() if milliseconds is None else milliseconds:.2f} ms"
            own = ", ".join(sorted(self.kinds)) or "nothing"
            text = f"cubind: the compiled step takes {took} with {own} as cubind's; compiled in {self.seconds:.0f} s"
            print(text, file=sys.stderr)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# The loss, else all that has gradients.
def _roots(output: Any) -> list[torch.Tensor]:
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if loss is not None:
        output = loss
    if isinstance(output, torch.Tensor):
        return [output] if output.requires_grad else []
    if isinstance(output, Mapping):
        output = list(output.values())
    return [root for part in output for root in _roots(part)] if isinstance(output, (tuple, list)) else []
