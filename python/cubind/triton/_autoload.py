"""install() in the processes of a program that others start: ranks of torchrun, spawned workers. They find
CUBIND_TRITON=1 in their environment, and torch calls load() in each of them."""

from __future__ import annotations

import os
import sys

from .._imports import when_imported
from ..errors import CubindError
from ._install import install, is_installed, uninstall

_VARIABLE = "CUBIND_TRITON"
_RECORD = "CUBIND_TRITON_RECORD"


def begin(record: str | None) -> None:
    """In the first process: the environment of all that it starts. record: the file of install()."""
    os.environ[_VARIABLE] = "1"
    if record is not None:
        os.environ[_RECORD] = os.path.abspath(record)


def load() -> None:
    """Installs when the process has imported Triton; one that never does asks no daemon."""
    when_imported("triton", _install)


def _install() -> None:
    if is_installed():
        return
    try:
        install(record=os.environ.get(_RECORD))
    except (CubindError, OSError) as error:
        print(f"cubind.triton: {error}", file=sys.stderr)  # the program runs as without it
    except Exception as error:  # of a Triton that is other than known: its import goes on
        uninstall()
        print(f"cubind.triton: {type(error).__name__}: {error}", file=sys.stderr)
