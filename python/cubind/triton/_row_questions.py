"""The questions of a table's row: what its call() launches, with several configurations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import triton

from ..errors import CubindError
from ._own import StaysOwnError
from ._project_file import CONFIG_OPTIONS
from ._question import Question
from .table import Table, Values

_DEFAULT_WARPS = 4
_MOST_WARPS = 8  # of a configuration that is only added


def questions(table: Table, size: int, group: list[Values]) -> list[Question]:
    """One for each launch of the call. Raises StaysOwnError for what no daemon can measure."""
    with _as_own():
        launches = _Launches()
        table.call(launches, size, {name: group[0][name] for name in table.by if name in group[0]})
        if not launches.noted:
            raise StaysOwnError("is not launched by the table's call()")
        return [_question(table, size, group, *noted) for noted in launches.noted]


def padded(group: list[Values]) -> list[Values]:
    """A daemon compares two at least: one that stands alone is measured next to itself with other warps."""
    if len(group) > 1:
        return group
    warps = int(group[0].get("num_warps", _DEFAULT_WARPS))
    return [*group, {**group[0], "num_warps": warps * 2 if warps < _MOST_WARPS else warps // 2}]


class _Launches:
    """Stands for the kernel in a table's call(), and notes what it is launched with."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **kwargs: Any) -> None:
            self.noted.append((grid, args, kwargs))

        return launch


def _question(
    table: Table, size: int, group: list[Values], grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Question:
    tuner = triton.autotune(configs=[_config(values) for values in padded(group)], key=[])(table.kernel)
    return Question(tuner, (), args, {**kwargs, "grid": grid, "warmup": False}, {table.size: size})


def _config(values: Values) -> Any:
    options = {name: values[name] for name in CONFIG_OPTIONS if name in values}
    return triton.Config({name: values[name] for name in values if name not in CONFIG_OPTIONS}, **options)


@contextlib.contextmanager
def _as_own() -> Iterator[None]:
    """What the table's call() or Triton raises is a row's reason."""
    try:
        yield
    except (StaysOwnError, CubindError):
        raise
    except Exception as error:
        raise StaysOwnError(f"cannot be called: {type(error).__name__}: {error}"[:256]) from None
