"""What the operators have done: CUBIND_REPORT=1 prints it at the end of the process."""

from __future__ import annotations

import atexit
import os
import sys

import torch

from .. import _torch_private
from .._switch import IS_OFF, WHY_OFF
from .._text import printable
from . import _compiled
from ._attention import kept
from ._grouped_mm import by_torch
from ._operator import asker, operators
from ._variants import settings


def report() -> str:
    """Describe what the operators have done, one line per kernel that was asked for.

    A line has the questions to the daemon, the launches of the kernel, and the calls that torch's own
    function took instead, with the reason. Problems for which torch's function is the faster one follow, and
    why calls of attention stayed those of torch or transformers, by their masks and arguments, and products
    that no kernel computes. For the modules of a model that was tuned it says whose code they have in
    compiled graphs, and why. With CUBIND_REPORT=1 in the environment it is printed on stderr at the end of
    the process.
    """
    if IS_OFF:
        return f"cubind: {WHY_OFF}"
    address = settings.client.address if settings.client is not None else "no daemon"
    lines = [f"cubind: {address}; calls waited {1e3 * asker.waited:.0f} ms for answers"]
    if not _torch_private.is_known:
        lines.append(
            f"cubind: PyTorch {torch.__version__} lacks what short calls are made of: each goes through its dispatcher"
        )
    for operator in sorted(operators(), key=lambda operator: operator.name):
        launches, fallbacks = operator.counts()
        if operator.asked or fallbacks:
            why = operator.why()
            asked = f"asked {operator.asked}, launched {launches}, torch's own {fallbacks}"
            lines.append(f"cubind: {operator.name}: {asked}{f' ({why})' if why else ''}")
            lines += [f"cubind: {text}" for text in operator.yielding()]
    lines += [f"cubind: attention under a mask: not cubind's {count} ({why})" for why, count in kept.items()]
    lines += [f"cubind: grouped_mm: {what}: torch's own {count}" for what, count in by_torch.items()]
    lines += [f"cubind: {text}" for text in _compiled.lines()]
    if settings.client is None and len(lines) == 1:
        return "cubind: no operator needed a kernel, as with CPU tensors: the daemon was not asked"
    return printable("\n".join(lines))


if os.environ.get("CUBIND_REPORT") == "1":
    atexit.register(lambda: print(report(), file=sys.stderr))
