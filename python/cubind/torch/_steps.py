"""Between two steps: what has been answered since is taken over, and what was missing is asked for again."""

from __future__ import annotations

from .. import _limits, _sealing
from .._switch import IS_OFF
from ..errors import FailedPreconditionError
from ._gpu import is_capturing
from ._operator import asker, operators
from ._variants import settings


def step() -> None:
    """Tell cubind that a training step has ended; no call waits for anything.

    Kernels that have been tuned since replace those in use, which happens here and in wait() alone, and the
    daemon is asked again for kernels that were missing. A kernel that was missing is used as soon as its
    answer is there; where layers are computed again for the backward pass (torch.utils.checkpoint), from the
    next step on.

    With strict(True), the calls of the next step ask again themselves, so that all ranks change at the same
    step. A sealed program keeps its kernels.
    """
    for operator in operators():
        operator.step()
    if not settings.raises:
        asker.hurry()


def wait(timeout: float = 60.0) -> bool:
    """Wait until every kernel that the operators have asked for is loaded.

    Call it after the first step, before you measure or capture a CUDA graph: a call waits at most 50 ms for
    the daemon, once for each kernel, and uses torch's own function until the answer is there. What was
    missing is asked for again. Kernels that have been tuned since replace those in use.

    timeout: seconds. Returns whether there is a kernel for everything that was asked for; if not, report()
    says why. Raises FailedPreconditionError while a CUDA graph is captured.
    """
    if IS_OFF or settings.raises:  # where every call waits itself
        return True
    if is_capturing():
        raise FailedPreconditionError(
            "nothing can be loaded while a CUDA graph is captured: call it before", "cubind.torch.wait()"
        )
    for operator in operators():
        operator.renew()
        operator.retry()
    asker.wait(_limits.seconds(timeout))
    complete = True
    for operator in operators():
        complete = operator.take_all() and complete
    return complete


def forget_missing() -> None:
    """Calls of all operators look again for what was missing."""
    for operator in operators():
        operator.forget_missing()


_sealing.program.listen(forget_missing)
