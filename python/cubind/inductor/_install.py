"""Putting the hooks in and out, and the report of what they did."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from .. import _ranks_agree, _switch, connect
from .._asking import warn
from .._connection import import_grpc
from .._imports import when_imported
from .._text import printable
from ..errors import FailedPreconditionError

if TYPE_CHECKING:
    from ..client import Client
    from ._private.hooks import Hooks
    from ._session import Session

_REMEDY = "The ranks must have one daemon, and none may have lost it: their warnings say so."
_COMPILER = "torch._inductor.compile_fx"  # which torch imports for the first compile


class _Installed:
    """All but the lock is guarded by it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_wanted = False
        self.client: Client | None = None
        self.hooks: Hooks | None = None
        self.session: Session | None = None


_installed = _Installed()


def install(client: Client | None = None) -> None:
    """Have Inductor take the choices among its templates for matrix products that a daemon has stored, and
    store those that it measures.

    It begins with the first compile, or at once where there was one. Where the daemon, or what cubind uses of
    Inductor, is missing, a RuntimeWarning says so once, and torch is as without it. With CUBIND=0 in the
    environment nothing is installed. A second call replaces the first.

    client: as cubind.connect() makes one; None: cubind.connect().

    Raises FailedPreconditionError if there is no torch.
    """
    if _switch.IS_OFF:
        return
    uninstall()
    with _installed.lock:  # importing torch may call this in turn
        _installed.is_wanted, _installed.client = True, client
    try:
        import torch  # noqa: F401
    except ImportError as error:
        uninstall()
        raise FailedPreconditionError(f"{error}: there is no compiler", "cubind.inductor") from None
    when_imported(_COMPILER, _begin)


def load() -> None:
    """As torch calls it in the processes that a program starts, such as ranks of torchrun. A process that
    compiles no graph asks no daemon."""
    if not is_installed():
        install()


def is_installed() -> bool:
    with _installed.lock:
        return _installed.is_wanted


def uninstall() -> None:
    """Leave everything to Inductor again."""
    with _installed.lock:
        if _installed.hooks is not None:
            _installed.hooks.remove()
        _installed.hooks = _installed.session = _installed.client = None
        _installed.is_wanted = False


def _begin() -> None:
    with _installed.lock:
        if not _installed.is_wanted or _installed.hooks is not None:
            return
        try:
            _put_in()
        except Exception as error:  # no fault of cubind's stops a compile
            warn(f"Inductor measures by itself, without cubind: {error}", "inductor")


def _put_in() -> None:
    import torch._inductor.config

    from ._answers import Answers
    from ._private import gate
    from ._session import Session

    if lacks := gate.missing():
        raise FailedPreconditionError(
            f"PyTorch {torch.__version__} has no {lacks} as cubind knows it", "torch._inductor"
        )
    if torch._inductor.config.inductor_choices_class is not None:
        raise FailedPreconditionError(
            "inductor_choices_class is set: it may have choices of its own", "torch._inductor.config"
        )
    from ._private.hooks import Hooks

    import_grpc()
    answers = Answers(connect() if _installed.client is None else _installed.client)
    session = Session(answers, f"cubind.inductor/1:{answers.store()}", _let_go)
    _installed.session, _installed.hooks = session, Hooks(session)
    if os.environ.get("CUBIND_REPORT") == "1":
        atexit.unregister(_print)
        atexit.register(_print)


def _print() -> None:
    print(report(), file=sys.stderr)


def _let_go() -> None:
    with _installed.lock:
        if _installed.hooks is not None:
            _installed.hooks.let_go()


def verify_ranks(group: Any = None) -> int:
    """Compare the choices of the ranks of a job, and the daemon's store that their cached graphs are for. It
    is collective: every rank of the group calls it. A question that only one rank has asked is not compared.

    group: of torch.distributed; None: all ranks.

    Returns how many questions were compared. Raises FailedPreconditionError, on every rank, with the list of
    those that differ, or if torch.distributed is not initialized.
    """
    with _installed.lock:
        session = _installed.session
    choices = [
        _ranks_agree.Choice(question.what, question.digest[:12], choice.told(), "")
        for question, choice in (list(session.chosen.values()) if session is not None else ())
    ]
    if _COMPILER in sys.modules:  # else it has compiled nothing
        store = session.tag if session is not None and not session.is_lost else "with no daemon's choices"
        choices.append(_ranks_agree.Choice("graphs", "", store, ""))
    return _ranks_agree.verify(choices, group, "cubind.inductor.verify_ranks", _REMEDY)


def report() -> str:
    """Describe what became of Inductor's questions, one line per kind. With CUBIND_REPORT=1 in the
    environment a process prints it on stderr at its end."""
    if _switch.IS_OFF:
        return f"cubind.inductor: {_switch.WHY_OFF}"
    with _installed.lock:
        session = _installed.session
    if session is None:
        return "cubind.inductor: nothing was compiled with it"
    counts = session.counts
    lines = [
        f"cubind.inductor: {counts.served} choices were served, {len(counts.measured)} were measured here, "
        f"{counts.stored} of these were stored"
    ]
    lines += [
        f"cubind.inductor: {times} times Inductor's own: {reason}"
        for reason, times in sorted(counts.own.items())
    ]
    lines += [
        f"cubind.inductor: {times} times Inductor measured {name}"
        for name, times in sorted(counts.foreign.items())
    ]
    return printable("\n".join(lines))
