"""Seals a program: afterwards nothing is compiled or tuned for it; attempts are reported or refused."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import _wire
from ._asking import warn
from .errors import InvalidArgumentError, SealedError

_MODES = ("warn", "error")
_ACCEPTED = "bucket+stale"


class Seal:
    """Open until it is closed. variable: of the environment, which may close it from the start. outer: a seal
    that closes this one too."""

    def __init__(self, variable: str, outer: Seal | None = None) -> None:
        self._variable = variable
        self._outer = outer
        self._mode = ""

    @property
    def mode(self) -> str:
        """ "" while it is open, else "warn" or "error"."""
        return self._mode or (self._outer.mode if self._outer is not None else "")

    def open(self) -> None:
        """As at the start of a program: the environment decides. Raises as close() does."""
        if mode := os.environ.get(self._variable, ""):
            self.close(mode, self._variable)

    def close(self, mode: str, field: str = "mode") -> None:
        """Seal in that mode. Raises InvalidArgumentError for one that does not exist."""
        if mode not in _MODES:
            raise InvalidArgumentError(f'"{mode}" is neither warn nor error', field)
        self._mode = mode

    def refuse(self, what: str, subject: str, about: str = "") -> None:
        """Something that a sealed program must not need. Raises SealedError, or warns once for what it is
        about, by default the subject."""
        if not self.mode:
            return
        error = SealedError(f"the program is sealed, and {what}", subject)
        if self.mode == "error":
            raise error
        warn(str(error), f"sealed {about or subject}")


class ProgramSeal(Seal):
    """The whole program's. accept: departures that its answers may have."""

    def __init__(self) -> None:
        super().__init__("CUBIND_SEALED")
        self.accept = _ACCEPTED
        self._listeners: list[Callable[[], None]] = []
        self.open()

    def listen(self, closed: Callable[[], None]) -> None:
        """Called whenever the seal has been closed."""
        self._listeners.append(closed)

    def close(self, mode: str, field: str = "mode") -> None:
        """As for every seal."""
        super().close(mode, field)
        for closed in self._listeners:
            closed()

    def check(self, subject: str, match: str, accept: str | None, why: str) -> None:
        """Refuses an answer with a departure that neither the question nor the seal accepts."""
        accepted = {"exact", *(self.accept if accept is None else accept).split("+")}
        others = [departure for departure in match.split("+") if departure not in accepted]
        if others:
            because = f" ({why})" if why else ""
            self.refuse(
                f"the answer is {'+'.join(others)}{because}: tune the problem before, as `cubindctl tune` and "
                f'cubind.torch.tune() do, or accept "{"+".join(others)}"',
                subject,
            )


program = ProgramSeal()


def seal(mode: str = "error", *, accept: str = _ACCEPTED) -> None:
    """From now on nothing is silently compiled or tuned for the program. Call it once the program has asked
    for all its problems; CUBIND_SEALED=warn or error in the environment seals from the start.

    It holds for clients, operators and Triton kernels of the whole process. Problems that an earlier answer's
    rule covers make no call, as before.

    mode: "error" raises SealedError for a miss, for a cubin that is not compiled, and for an answer with a
        departure that is not accepted; operators of cubind.torch wait for their answer and do not fall back
        on torch's functions. "warn" gives a RuntimeWarning once for each problem.
    accept: the accepted departures ("bucket+stale", "exact"). A question's `accept` overrides it.

    Raises InvalidArgumentError for an unknown mode or departure.
    """
    _wire.departures_of(accept)
    program.accept = accept
    program.close(mode)
