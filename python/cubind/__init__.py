"""cubind for Python: the best kernel variant for each problem, launched on torch tensors and CuPy arrays.

import cubind
kernel = cubind.connect().kernel("rmsnorm_forward")
kernel(x=x, w=w, y=y, eps=1e-6, N=4096, D=4096, T="bf16")
"""

from __future__ import annotations

import os

from . import _address, _core
from .answer import Answer
from .client import Client
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
    UnavailableError,
    UnimplementedError,
)
from .kernel import BoundKernel, Kernel
from .question import Question
from .tuning import TuneResult

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "Answer",
    "BoundKernel",
    "CancelledError",
    "Client",
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
    "TuneResult",
    "UnavailableError",
    "UnimplementedError",
    "connect",
]

__version__ = _core.version  # of the package, its programs and its extension


def connect(address: str | None = None, *, timeout: float = 30.0) -> Client:
    """A client of a daemon. Nothing is sent yet.

    address: "unix:///path/to/socket" or "host:port"; "embedded" starts a private daemon in the user's cache
        folder, which the user's processes share and which ends with the last of them; None: CUBIND_ADDRESS,
        else the user's socket, else the system's, else, with CUBIND_EMBEDDED=1, the embedded daemon.
    timeout: seconds that a call may take.

    Raises UnavailableError, which names the three ways to a daemon, where none is found; InvalidArgumentError
    for an address of another form.
    """
    if address != "embedded":
        found = _address.find_address(address)
        if found is not None:
            return Client(found, timeout)
        if os.environ.get("CUBIND_EMBEDDED") != "1":
            raise UnavailableError(f"no daemon was found: {_address.THREE_WAYS}")
    daemon = EmbeddedDaemon()
    return Client(daemon.address, timeout, _daemon=daemon)
