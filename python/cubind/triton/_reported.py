"""What other tuners measured: timings with the evidence `reported`, which answer no question. table tune
takes their configurations as candidates and measures them itself.

Triton's *.autotune.json, Kernel Tuner's cache, T4 and the files of projects (_project_file.py) are read as
data: nothing in them is evaluated.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

from ._project_file import CONFIG_OPTIONS, Values, read_json, refuse, rows_of, values_of, write_json

FORMAT = "cubind.triton.reported/1"
_EVIDENCE = "reported"
_OF_TRITON = ".autotune.json"  # the only files in which a time may be infinite
_MILLISECOND_US = 1000.0
_CONFIG_OTHERS = ("pre_hook", "ir_override")  # what Triton's Config has besides, where it is not set
_UNITS_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


@dataclasses.dataclass(frozen=True)
class Reported:
    """One configuration. source: the file's name and the place in it. time_us: the median or what the tuner
    calls the time; None: the file has none, or the tuner could not run it."""

    source: str
    values: Values
    time_us: float | None


def read_others(path: str | os.PathLike[str]) -> list[Reported]:
    """The configurations of another tuner's file. Raises InvalidArgumentError and OSError."""
    document = read_json(path, infinity=str(path).endswith(_OF_TRITON))
    if isinstance(document, dict):
        for field, reader in _READERS.items():
            if field in document:
                return list(reader(document, os.fspath(path)))
        rows = rows_of(document, path)
        return [Reported(f"{os.path.basename(path)} /{size}", values, None) for size, values in rows.items()]
    refuse(path, "not an object: of Triton's *.autotune.json, Kernel Tuner's cache, T4 or rows by size")


def write(path: str | os.PathLike[str], found: Iterable[Reported]) -> None:
    """Write the configurations for `read`. Raises OSError."""
    rows = [{"source": each.source, "values": each.values, "time_us": each.time_us} for each in found]
    write_json(path, {"format": FORMAT, "evidence": _EVIDENCE, "rows": rows})


def read(path: str | os.PathLike[str]) -> list[Reported]:
    """What `write` wrote. Raises InvalidArgumentError and OSError."""
    document = read_json(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse(path, f"not a file of table import: its format is not {FORMAT!r}")
    if document.get("evidence") != _EVIDENCE:
        refuse(f"{path} /evidence", f"not {_EVIDENCE!r}")
    found = []
    for where, row in _items(document, "rows", os.fspath(path)):
        if not isinstance(row, dict) or set(row) != {"source", "values", "time_us"}:
            refuse(where, "not an object with source, values and time_us")
        time = None if row["time_us"] is None else _time(row["time_us"], 1.0, f"{where}/time_us")
        found.append(Reported(str(row["source"]), values_of(row["values"], f"{where}/values"), time))
    return found


# ---- Forms ----


def _of_triton(document: dict[str, Any], path: str) -> Iterable[Reported]:
    """{"key": [...], "configs_timings": [[CONFIG, MILLISECONDS], ...]}"""
    for where, item in _items(document, "configs_timings", path):
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], dict):
            refuse(where, "not a configuration and its timings")
        config, timings = item
        values = dict(values_of(config.get("kwargs"), f"{where}/0/kwargs"))
        for name in set(config) - {"kwargs"}:
            if name in CONFIG_OPTIONS:
                values |= {} if config[name] is None else {name: config[name]}
            elif name not in _CONFIG_OTHERS or config[name] is not None:
                refuse(f"{where}/0/{name}", "not known to cubind: it would run another kernel")
        # Triton has one time, or the median and two quantiles.
        time = timings[0] if isinstance(timings, list) and timings else timings
        yield Reported(
            f"{os.path.basename(path)} /configs_timings/{_last(where)}",
            values_of(values, f"{where}/0"),
            _time(time, _MILLISECOND_US, f"{where}/1"),
        )


def _of_kernel_tuner(document: dict[str, Any], path: str) -> Iterable[Reported]:
    """{"tune_params_keys": [...], "cache": {"16,1": {"block_size_x": 16, ..., "time": MILLISECONDS}}}"""
    names = document["tune_params_keys"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        refuse(f"{path} /tune_params_keys", "not a list of names")
    cache = document.get("cache")
    if not isinstance(cache, dict):
        refuse(f"{path} /cache", "not an object of configurations")
    for key, item in cache.items():
        where = f"{path} /cache/{key[:64]}"
        if not isinstance(item, dict) or not set(names) <= item.keys() or "time" not in item:
            refuse(where, f"not an object with time and {', '.join(names)}")
        values = values_of({name: item[name] for name in names}, where)
        # The tuner's words for a configuration that cannot run.
        failed = isinstance(item["time"], str) and item["time"].endswith("Config")
        time = None if failed else _time(item["time"], _MILLISECOND_US, f"{where}/time")
        yield Reported(f"{os.path.basename(path)} /cache/{key}", values, time)


def _of_t4(document: dict[str, Any], path: str) -> Iterable[Reported]:
    """{"schema_version": "1.0.0", "results": [{"configuration", "invalidity", "measurements", ...}]}"""
    if not str(document.get("schema_version", "")).startswith("1."):
        refuse(f"{path} /schema_version", "T4 of version 1 is known")
    for where, item in _items(document, "results", path):
        if not isinstance(item, dict):
            refuse(where, "not an object")
        values = values_of(item.get("configuration"), f"{where}/configuration")
        time = _t4_time(item, where) if item.get("invalidity") == "correct" else None
        yield Reported(f"{os.path.basename(path)} /results/{_last(where)}", values, time)


def _t4_time(item: dict[str, Any], where: str) -> float | None:
    measurements = item.get("measurements", [])
    for index, each in enumerate(measurements if isinstance(measurements, list) else []):
        if isinstance(each, dict) and each.get("name") == "time":
            if each.get("unit") not in _UNITS_US:
                refuse(f"{where}/measurements/{index}/unit", f"none of {', '.join(_UNITS_US)}")
            return _time(each.get("value"), _UNITS_US[each["unit"]], f"{where}/measurements/{index}/value")
    return None


_READERS: dict[str, Callable[[dict[str, Any], str], Iterable[Reported]]] = {
    "configs_timings": _of_triton,
    "tune_params_keys": _of_kernel_tuner,
    "results": _of_t4,
}


def _items(document: dict[str, Any], field: str, path: str) -> Iterable[tuple[str, Any]]:
    items = document.get(field)
    if not isinstance(items, list):
        refuse(f"{path} /{field}", "not a list")
    return [(f"{path} /{field}/{index}", item) for index, item in enumerate(items)]


def _last(where: str) -> str:
    return where.rpartition("/")[2]


def _time(value: Any, unit_us: float, where: str) -> float | None:
    """In microseconds; None for the infinity that Triton gives a configuration which cannot run."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        refuse(where, "not a time")
    return None if math.isinf(value) else value * unit_us
