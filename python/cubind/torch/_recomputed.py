"""Layers that are computed again for the backward pass, as under torch.utils.checkpoint. Both times they have
to save the same tensors, so no kernel may become ready in between."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import _torch_private as private
from ._gpu import is_capturing


class Recomputation:
    """From the first such layer on, calls load no kernel that an earlier call lacked, not even without
    gradients: they may come between the two times. What has been answered is loaded after the optimizer's
    step, and by step() and wait()."""

    def __init__(self) -> None:
        self._was_seen = False

    def is_possible(self) -> bool:
        """Whether a call may be made again for the backward pass."""
        if not self._was_seen and private.saves_by_hooks():
            self._was_seen = True
            register_optimizer_step_post_hook(_load_answers)
        return self._was_seen


def _load_answers(*_: Any) -> None:
    from ._operator import operators

    if not is_capturing() and not private.is_in_backward():  # an optimizer may step for each gradient
        for operator in operators():
            operator.load_answers()
