"""install() in the processes of a program that others start: ranks of torchrun, spawned workers. They find
CUBIND_INDUCTOR=1 in their environment, and torch calls load() in each of them."""

from __future__ import annotations

import os
import pathlib
import sys

from ._install import install, is_installed


def begin() -> None:
    """In the first process: the environment of all that it starts."""
    os.environ["CUBIND_INDUCTOR"] = "1"


def load() -> None:
    """Installs. A process that compiles no graph asks no daemon, and Inductor's workers choose nothing."""
    if "compile_worker" not in pathlib.PurePath(*sys.argv[:1]).parts and not is_installed():
        install()
