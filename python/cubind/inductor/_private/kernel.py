"""A kernel that Inductor generates, or one of the user's, whose configuration is asked for.

A stored configuration is put into Inductor's own cache of configurations, a file, so that whichever process
compiles the kernel compiles that one alone.
"""

from __future__ import annotations

import copy
import os
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...errors import DataLossError
from .._question import Choice, Question, digest
from .product import FAILED
from .question import asked

if TYPE_CHECKING:
    from .._session import Session

_DEVICE = re.compile(r"(DeviceProperties\(type='cuda', index=)(\d+)")  # ranks differ in it
_TUNED = re.compile(r"@triton_heuristics\.(?!template\b|fixed_config\b|foreach\b)\w+\(")
_NAME = re.compile(r"[A-Za-z_]\w{0,63}")
_DESCENDED = "found_by_coordesc"


class Kernels:
    """Those of this process, by the names of their files. Safe on many threads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._questions: dict[str, Question] = {}

    def compiles(self, name: str, source: str) -> None:
        """Inductor is about to compile a kernel."""
        from torch._inductor.codecache import PyCodeCache
        from torch._inductor.runtime.autotune_cache import AutotuneCache

        device = _DEVICE.search(source)
        if device is None or not _TUNED.search(source) or torch.version.hip is not None:
            return
        question = asked({"kernel": _DEVICE.sub(r"\1", source)}, [], name[:128], int(device[2]))
        _, path = PyCodeCache.write(source)
        self._questions[os.path.basename(path)] = question
        stored = self._session.known(question)
        cache = stored and AutotuneCache.create({"autotune_local_cache": True}, path, stored.among)
        if cache and torch._inductor.config.autotune_local_cache:
            config = _config(types.SimpleNamespace(), stored)
            cache.save(config, int(1e6 * stored.time_ms), config.found_by_coordesc)

    def tuned(self, tuner: Any, measure: Callable[[], Any], is_last: bool) -> Any:
        """The launcher of the stored configuration, or of the one that Inductor measures. is_last:
        it does not go on from that one to others."""
        question = self._questions.get(os.path.basename(tuner.filename or ""))
        if question is None or tuner.deterministic_mode:
            return measure()
        stored = self._session.ask(question)
        if stored is not None:
            return self._launcher(tuner, stored, tuner.launchers) or measure()
        launcher, time_ms = _timed(tuner, measure)
        values = _values(launcher.config)
        if values is None:
            self._session.stays_own("a kernel's configuration is no number")
        if not is_last or not 0.0 < time_ms < FAILED or values is None:
            return launcher
        among = getattr(getattr(tuner.save_cache_hook, "__self__", None), "configs_hash", digest(""))
        own = Choice(0, time_ms, values, among)
        taken = self._session.decide(question, own)
        if taken.values != values and (other := self._launcher(tuner, taken, [])) is not None:
            return other
        if taken.values != values:
            self._session.differs(question, own)
        return launcher

    def _launcher(self, tuner: Any, stored: Choice, known: list[Any]) -> Any:
        """None: it does not run here."""
        for launcher in known:
            if _values(launcher.config, stored.values.get(_DESCENDED)) == stored.values:
                launcher.config.found_by_coordesc = bool(stored.values[_DESCENDED])
                return launcher
        try:
            config = _config(copy.deepcopy(tuner.launchers[0].config), stored)
            if tuner.fn.fn is None:
                tuner.fn = tuner._reload_kernel().fn
            with tuner.lock:
                launcher = tuner._precompile_config(config).make_launcher()
        except Exception as error:
            self._session.stays_own(
                f"a kernel's stored configuration fails: {type(error).__name__}: {error}"[:256]
            )
            return None
        if tuner.save_cache_hook:
            tuner.save_cache_hook(config, int(1e6 * stored.time_ms), config.found_by_coordesc)
        return launcher


def descends(tuner: Any) -> bool:
    """Whether Inductor goes on from the fastest of the given configurations to others."""
    kinds = "TEMPLATE", "USER_AUTOTUNE", "FIXED"
    descent = tuner.inductor_meta.get("coordinate_descent_tuning", False)
    return bool(descent and tuner.heuristic_type.name not in kinds)


def _timed(tuner: Any, measure: Callable[[], Any]) -> tuple[Any, float]:
    """What `measure` gives, and its least time in ms."""
    bench, times = tuner.bench, [FAILED]

    def timed(*args: Any, **kwargs: Any) -> Any:
        times.append(bench(*args, **kwargs))
        return times[-1]

    tuner.bench = timed
    try:
        return measure(), min(times)
    finally:
        del tuner.bench


def _values(config: Any, descended: int | None = None) -> dict[str, int] | None:
    """None: not all are numbers."""
    values = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    values[_DESCENDED] = getattr(config, _DESCENDED, False) if descended is None else descended
    if not all(_NAME.fullmatch(name) and isinstance(value, int) for name, value in values.items()):
        return None
    return {name: int(value) for name, value in values.items()}


def _config(config: Any, stored: Choice) -> Any:
    """The object, with the stored values. Raises DataLossError for a block that no code is made for: up to
    the largest one Inductor leaves out masks."""
    from torch._inductor.runtime.hints import TRITON_MAX_BLOCK

    values = dict(stored.values)
    for name, value in values.items():
        if name.endswith("BLOCK") and value > TRITON_MAX_BLOCK.get(name.removesuffix("BLOCK"), value):
            raise DataLossError(
                f"the stored configuration is none of Inductor's: {name} is {value}", "inductor"
            )
    config.found_by_coordesc = bool(values.pop(_DESCENDED))
    config.num_warps, config.num_stages = values.pop("num_warps"), values.pop("num_stages")
    config.kwargs = values
    return config
