"""What is done when the process imports another package, and never if it does not."""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

_waiting: dict[str, list[Callable[[], None]]] = {}  # by the module's name


def when_imported(name: str, act: Callable[[], None]) -> None:
    """Calls act at once if the module has been imported, else behind its import."""
    if name in sys.modules:
        act()
    elif name in _waiting:
        _waiting[name].append(act)
    else:
        _waiting[name] = [act]
        sys.meta_path.insert(0, _WhenImported(name))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Lets the module be imported as without it, and acts behind that."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
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
            for act in _waiting.pop(self._name, []):
                act()

        loader.exec_module = exec_module
