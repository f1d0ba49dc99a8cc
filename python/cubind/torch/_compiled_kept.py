"""What was measured of compiled steps, kept in files: one for each model, its inputs, versions and device."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .. import _core
from ..embedded import cache_folder
from ..errors import CubindError

# By kind whether it is cubind's, and the milliseconds with cubind's and with the compiler's code.
Times = dict[str, tuple[bool, float, float]]

_ELSEWHERE = ("_name_or_path", "_commit_hash")  # of a config: where the model comes from


def key_of(model: torch.nn.Module, inputs: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer holds for. inputs: their shapes and what else the step depends on. options: of
    torch.compile."""
    parameters = collections.Counter(
        f"{one.dtype} {list(one.shape)}{'' if one.requires_grad else ' frozen'}".removeprefix("torch.")
        for one in model.parameters()
    )
    forwards = collections.Counter(_name_of(type(each).forward) for each in model.modules())
    return {
        "model": type(model).__name__,
        "forwards": dict(sorted(forwards.items())),
        "parameters": dict(sorted(parameters.items())),
        "config": _config_of(model),
        "training": model.training,
        "checkpoints": any(getattr(one, "gradient_checkpointing", False) for one in model.modules()),
        "inputs": inputs,
        "options": {name: repr(value) for name, value in sorted(options.items())},
        "versions": [_core.version, torch.__version__, _version_of("triton"), _version_of("transformers")],
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


# By its code too: a function that replace() has put around another has that one's name.
def _name_of(forward: Callable[..., Any]) -> str:
    line = getattr(getattr(forward, "__code__", None), "co_firstlineno", "")
    return f"{forward.__module__}.{forward.__qualname__}:{line}"


# As transformers' models have one: layers, attention, windows, dropout.
def _config_of(model: torch.nn.Module) -> dict[str, str]:
    known = getattr(getattr(model, "config", None), "__dict__", {})
    return {name: repr(known[name]) for name in sorted(known) if name not in _ELSEWHERE}


def _version_of(package: str) -> str:
    return str(getattr(sys.modules.get(package), "__version__", ""))


def file_of(key: dict[str, Any]) -> pathlib.Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "compiled" / f"{digest[:32]}.json"


def times_of(kinds: Any) -> Times:
    """What a file has of them. Raises ValueError, TypeError or AttributeError."""
    found = kinds.items()
    return {str(kind): (bool(is_ours), float(own), float(other)) for kind, (is_ours, own, other) in found}


def read(key: dict[str, Any]) -> Times | None:
    """None: there is no answer."""
    try:
        return times_of(json.loads(file_of(key).read_text())["kinds"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, CubindError):
        return None


def write(key: dict[str, Any], times: Times) -> None:
    """A folder that cannot be written keeps nothing."""
    try:
        file = file_of(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({**key, "kinds": times}, indent=1) + "\n")
        partial.replace(file)
    except (OSError, CubindError):
        return
