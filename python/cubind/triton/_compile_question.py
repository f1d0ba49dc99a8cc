"""A kernel that Triton is about to compile, and what a daemon is asked for."""

from __future__ import annotations

import functools
from typing import Any

import triton

from . import _triton_private as private
from . import definition as d
from ._globals import globals_of
from ._own import StaysOwnError
from ._single import parameters_of, single
from ._spec import Spec, code_of
from ._triton_cache import Compiling
from .worker.toolchain import ptxas_version


class Kernel:
    """Its spec takes some milliseconds, on any thread."""

    def __init__(self, compiling: Compiling) -> None:
        self.compiling = compiling
        source = compiling.source
        self.function = f"{source.source.fn.__module__}.{source.source.fn.__qualname__}"[-d.MAX_NAME :]

    @property
    def hint(self) -> str:
        """Triton's own key, of the function with its callees and their lines, the specialization, the options
        and this installation of Triton, with what that leaves out. Raises StaysOwnError where spec does for
        what the options, parameters or environment are."""
        self._options_and_parameters()
        source = self.compiling.source
        told = [source.key(), globals_of(source.source.fn)]
        return d.digest(d.canonical([d.FORMAT, "compiled", self.compiling.digest, told]))

    @functools.cached_property
    def spec(self) -> Spec:
        """The spec. Raises StaysOwnError for a kernel that only this process can compile."""
        options, parameters = self._options_and_parameters()
        source = self.compiling.source
        try:
            module = private.TtirMaker().module(source)
        except Exception as error:  # Triton will say so
            raise StaysOwnError(f"has no TTIR: {type(error).__name__}"[:256]) from None
        capability = source.target.arch
        code = code_of(
            triton.__version__,
            ptxas_version(capability),
            f"sm_{capability}",
            module.get_entry_func_name(),
            [],
        )
        return single(code, self.function, parameters, options, module.str_nodebug().encode())

    def _options_and_parameters(self) -> tuple[dict[str, Any], list[str]]:
        private.check_environment()
        source = self.compiling.source
        return private.options_of(source.options), parameters_of(source.signature)
