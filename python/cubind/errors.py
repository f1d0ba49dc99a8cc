"""The exceptions of cubind. Each has the code of the daemon (or of the C++ client) and the place of the
fault."""

from __future__ import annotations

from ._text import printable


class CubindError(Exception):
    """A fault of cubind. `str(error)` is "place: cause", or only the cause if there is no place; control and
    format characters are escaped.

    code: the gRPC status by its name, "INVALID_ARGUMENT".
    field: the path of the field at fault ("problem.dims.N"), an argument's name, a file or an address; ""
        if none applies.
    cause: what was wrong, and what would be right.
    """

    code = "UNKNOWN"

    def __init__(self, cause: str, field: str = "") -> None:
        super().__init__(printable(f"{field}: {cause}" if field else cause))
        self.field = field
        self.cause = cause

    def __reduce__(self) -> tuple[type[CubindError], tuple[str, str]]:
        return type(self), (self.cause, self.field)


class CancelledError(CubindError):
    """The caller cancelled."""

    code = "CANCELLED"


class InvalidArgumentError(CubindError, ValueError):
    """The question, or an argument of a launch, is wrong in every state of the system."""

    code = "INVALID_ARGUMENT"


class DeadlineExceededError(CubindError, TimeoutError):
    """The deadline passed."""

    code = "DEADLINE_EXCEEDED"


class NotFoundError(CubindError, LookupError):
    """The kernel, device, job or artifact does not exist; or no acceptable record with `on_miss="fail"`."""

    code = "NOT_FOUND"


class AlreadyExistsError(CubindError):
    """The object to create already exists."""

    code = "ALREADY_EXISTS"


class PermissionDeniedError(CubindError, PermissionError):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"


class ResourceExhaustedError(CubindError):
    """A limit is reached, or memory or a disk is full."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(CubindError):
    """There is no driver, no GPU, or no cubin that the driver loads: something else must change first."""

    code = "FAILED_PRECONDITION"


class SealedError(FailedPreconditionError):
    """A sealed program would need a compile, a tuning, or an answer that it does not accept. field: the
    kernel and its problem or key."""


class AbortedError(CubindError):
    """The call lost a race."""

    code = "ABORTED"


class UnimplementedError(CubindError, NotImplementedError):
    """Known, but not supported."""

    code = "UNIMPLEMENTED"


class InternalError(CubindError):
    """An invariant of cubind is broken."""

    code = "INTERNAL"


class UnavailableError(CubindError, ConnectionError):
    """No daemon answers (the message says how to start one), or there is no artifact yet (it names the
    job)."""

    code = "UNAVAILABLE"


class DataLossError(CubindError):
    """The answer is not for the question, or its bytes are damaged."""

    code = "DATA_LOSS"


# By the number of the gRPC status.
_BY_NUMBER: dict[int, type[CubindError]] = {
    1: CancelledError,
    3: InvalidArgumentError,
    4: DeadlineExceededError,
    5: NotFoundError,
    6: AlreadyExistsError,
    7: PermissionDeniedError,
    8: ResourceExhaustedError,
    9: FailedPreconditionError,
    10: AbortedError,
    11: InvalidArgumentError,  # OUT_OF_RANGE
    12: UnimplementedError,
    13: InternalError,
    14: UnavailableError,
    15: DataLossError,
    16: PermissionDeniedError,  # UNAUTHENTICATED
}


def make_error(number: int, field: str, cause: str) -> CubindError:
    """The exception for a gRPC status by its number."""
    return _BY_NUMBER.get(number, InternalError)(cause, field)
