"""What cubind uses of Triton's cache of compiled kernels, and of triton.compile(), which asks it.

triton.compile() asks the cache manager of a kernel's key for a group of files: the metadata in JSON and the
cubin. The manager gets no more than the key, so what is compiled is read from the frame of triton.compile().
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from collections.abc import Callable
from typing import Any

from triton import __version__, knobs
from triton.compiler import ASTSource, compiler
from triton.runtime.cache import CacheManager, FileCacheManager

from ._own import Own
from ._triton_private import Source


@dataclasses.dataclass(frozen=True)
class Compiling:
    """A kernel that triton.compile() did not find. digest: Triton's own key. environment: the variables that
    are part of it."""

    source: Source
    digest: str
    environment: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Compiled:
    """entry: the symbol. shared_bytes: what a launch asks for."""

    cubin: bytes
    entry: str
    shared_bytes: int


Find = Callable[[Compiling], "Compiled | Own"]
Note = Callable[[str, str, Own], None]


class Cache:
    """Has Triton's cache managers ask for what they lack. find: gives it, or why Triton compiles it. note:
    called before Triton compiles, with the kernel, Triton's key and why. What it raises ends the compile."""

    def __init__(self, find: Find, note: Note = lambda kernel, digest, own: None) -> None:
        self._find = find
        self._note = note
        self._manager: type[CacheManager] | None = None
        self._original: Any = None

    def install(self) -> None:
        """Put in a manager around the program's own."""
        self._original = vars(knobs.cache).get("manager_class")
        self._manager = _manager(knobs.cache.manager_class or FileCacheManager, self._find, self._note)
        # Not by the attribute: that may also set the environment variable, which child processes read.
        vars(knobs.cache)["manager_class"] = self._manager

    def uninstall(self) -> None:
        """Put the program's own back. If another one is over this one, both stay."""
        if vars(knobs.cache).get("manager_class") is not self._manager:
            return
        del vars(knobs.cache)["manager_class"]
        if self._original is not None:
            vars(knobs.cache)["manager_class"] = self._original


def _manager(base: type[CacheManager], find: Find, note: Note) -> type[CacheManager]:
    class Manager(base):  # type: ignore[valid-type,misc]
        """Launchers, choices of autotuners and dumps stay with the base."""

        def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
            super().__init__(key, override=override, dump=dump)
            self._is_of_kernels = not (override or dump)

        def get_group(self, filename: str) -> Any:
            found = super().get_group(filename)
            frame = sys._getframe(1)
            if (found and not knobs.compilation.always_compile) or not (
                self._is_of_kernels and _is_of_compile(frame)
            ):
                return found
            compiling = _compiling(frame.f_locals)
            answer = compiling if isinstance(compiling, Own) else find(compiling)
            if isinstance(compiling, Own) or isinstance(answer, Own):
                note(_name_of(frame.f_locals["src"]), frame.f_locals["hash"], answer)
                return found
            name = filename.removesuffix(".json")
            metadata = json.dumps(_metadata(compiling, answer), default=vars)
            group = {
                filename: self.put(metadata, filename, binary=False),
                f"{name}.cubin": self.put(answer.cubin, f"{name}.cubin"),
            }
            self.put_group(filename, group)
            return group

    return Manager


def _is_of_compile(frame: types.FrameType) -> bool:
    return frame.f_code.co_name == "compile" and frame.f_code.co_filename == compiler.__file__


def _name_of(source: Any) -> str:
    function = getattr(source, "fn", None)
    return source.name if function is None else f"{function.__module__}.{function.__qualname__}"


def _compiling(found: dict[str, Any]) -> Compiling | Own:
    """What triton.compile(), whose variables these are, is about to compile, or why only it can."""
    wanted = knobs.compilation
    if wanted.always_compile or wanted.override or wanted.dump_ir or wanted.use_ir_loc:
        return Own("is compiled in any case, as Triton's environment variables say")
    source, options, target = found["src"], found["options"], found["target"]
    if type(source) is not ASTSource:
        return Own("is written in Gluon or IR")
    if target.backend != "cuda" or options.arch != f"sm{target.arch}":
        return Own(f"is compiled for {options.arch}")
    made = Source(source, options, target, {}, source.signature, source.attrs, None)
    return Compiling(made, found["hash"], dict(found["env_vars"]))


def _metadata(compiling: Compiling, compiled: Compiled) -> dict[str, Any]:
    """As triton.compile() writes it, for a kernel that needs no scratch memory."""
    options = compiling.source.options
    found = {
        "hash": compiling.digest,
        "target": compiling.source.target,
        **vars(options),
        **compiling.environment,
        "triton_version": __version__,
        "name": compiled.entry,
        "shared": compiled.shared_bytes,
        "tmem_size": 0,  # read to see whether a GPU has as much: the agent has
        "tensordesc_meta": [],
        "global_scratch_size": 0,
        "global_scratch_align": 1,
    }
    if not __version__.startswith("3.4."):
        found |= {"profile_scratch_size": 0, "profile_scratch_align": 1}
    return found
