"""cubind for Python: the best kernel variant for each problem, launched on torch tensors and CuPy arrays.

import cubind
kernel = cubind.connect().kernel("rmsnorm_forward")
kernel(x=x, w=w, y=y, eps=1e-6, N=4096, D=4096, T="bf16")
"""

from __future__ import annotations

import os

from . import _address, _core, _limits, _switch
from ._sealing import seal
from .answer import Answer
from .client import Client
from .comparison import Comparison
from .embedded import EmbeddedDaemon
from .errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    CubindError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SealedError,
    UnavailableError,
    UnimplementedError,
)
from .kernel import BoundKernel, Kernel
from .kernel_tuning import TunedKernel, tune_kernel
from .question import Question
from .tuning import TuneResult

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "Answer",
    "BoundKernel",
    "CancelledError",
    "Client",
    "Comparison",
    "CubindError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "NotFoundError",
    "PermissionDeniedError",
    "Question",
    "ResourceExhaustedError",
    "SealedError",
    "TuneResult",
    "TunedKernel",
    "UnavailableError",
    "UnimplementedError",
    "connect",
    "seal",
    "tune_kernel",
]

__version__ = _core.version  # of the package, its programs and its extension


def connect(
    address: str | None = None, *, timeout: float = 30.0, trust: str | os.PathLike[str] | None = None
) -> Client:
    """A client of a daemon. Nothing is sent yet.

    address: "unix:///path/to/socket" or "host:port"; "embedded" starts a private daemon, which the user's
        processes share and which ends with the last of them; None: CUBIND_ADDRESS, else the user's daemon,
        else the system's, else the private one. CUBIND_EMBEDDED=0 forbids the private daemon.
    timeout: seconds that a call may take, up to a year.
    trust: file of the keys that must have signed each answer; None: CUBIND_TRUST, else answers need no
        signature.

    Raises UnavailableError, which says what was tried, if there is no daemon and the private one is forbidden
    or does not start, or if CUBIND=0 turns cubind off; InvalidArgumentError for an invalid address or
    timeout, TypeError for a timeout that is not a number.
    """
    if _switch.IS_OFF:
        raise UnavailableError(f"{_switch.WHY_OFF}: unset it to use cubind")
    _limits.seconds(timeout)
    found, tried = (None, "") if address == "embedded" else _address.find_address(address)
    if found is not None:
        return Client(found, timeout, trust=trust)
    others = f"; no other daemon was found ({tried})" if tried else ""
    if _switch.is_off("CUBIND_EMBEDDED"):
        raise UnavailableError(
            f"CUBIND_EMBEDDED={os.environ['CUBIND_EMBEDDED']} forbids a private daemon{others}: unset it, start a daemon with `cubind &`, or "
            "name one by CUBIND_ADDRESS"
        )
    try:
        daemon = EmbeddedDaemon()
    except UnavailableError as error:
        raise UnavailableError(f"{error.cause}{others}", error.field) from None
    return Client(daemon.address, timeout, _daemon=daemon, trust=trust)
