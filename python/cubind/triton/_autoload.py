"""install() in the processes of a program that others start: ranks of torchrun, spawned workers. They find
CUBIND_TRITON=1 in their environment, and torch calls load() in each of them."""

from __future__ import annotations

import contextlib
import importlib.abc
import os
import pathlib
import sys
from importlib.machinery import ModuleSpec
from typing import Any

from ..errors import CubindError
from ._install import install, is_installed

_VARIABLE = "CUBIND_TRITON"
_RECORD = "CUBIND_TRITON_RECORD"


def begin(record: str | None) -> None:
    """In the first process: the environment of all that it starts. record: the file of install()."""
    os.environ[_VARIABLE] = "1"
    if record is not None:
        os.environ[_RECORD] = os.path.abspath(record)


def load() -> None:
    """Installs when the process has imported Triton; one that never does asks no daemon, and the workers of
    torch.compile launch nothing."""
    if "compile_worker" in pathlib.PurePath(*sys.argv[:1]).parts:
        return
    if "triton" in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, _WhenImported())


def _install() -> None:
    if is_installed():
        return
    try:
        install(record=os.environ.get(_RECORD))
    except (CubindError, OSError) as error:
        print(f"cubind.triton: {error}", file=sys.stderr)  # the program runs as without it
    except Exception as error:  # of a Triton that is other than known: its import goes on
        print(f"cubind.triton: {type(error).__name__}: {error}", file=sys.stderr)


class _WhenImported(importlib.abc.MetaPathFinder):
    """Lets Triton be imported as without it, and installs behind that."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != "triton":
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = (each.find_spec(name, path, target) for each in others if hasattr(each, "find_spec"))
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:  # which may be looked at alone, and imported later
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            with contextlib.suppress(ValueError):  # of another thread
                sys.meta_path.remove(self)
            _install()

        loader.exec_module = exec_module
