"""One call that Triton has no choice for yet: the question that the daemon is asked."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import triton

from . import _triton_private as private
from . import definition as d
from ._arguments import Arguments, evaluate_grid, label, plain, with_roles
from ._globals import globals_of
from ._hooks import cleared_by
from ._own import StaysOwnError
from ._roles import roles_of
from ._spec import has_values, problem_of
from .worker.toolchain import ptxas_version


class Question:
    """A call of an autotuned kernel, with the configurations that Triton would measure.

    Raises StaysOwnError, which says why the kernel stays Triton's own. It keeps no tensors. The definition,
    which takes some milliseconds per configuration, is made when it is first asked for, on any thread.
    compiling: entered around each use of Triton's compiler then. problem: instead of Triton's key, names the
    problem, which all that the call passes is part of.
    """

    def __init__(
        self,
        tuner: Any,
        key: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        problem: dict[str, int] | None = None,
    ) -> None:
        self.compiling: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
        private.check_environment()
        _check(tuner)
        self._key = _named_key(tuner, key, {*tuner.arg_names[: len(args)], *kwargs})
        self.configurations: list[Any] = list(tuner.prune_configs(kwargs))
        if len(self.configurations) < 2:
            raise StaysOwnError("has one configuration left after pruning")
        if len(self.configurations) > d.MAX_CONFIGURATIONS:
            raise StaysOwnError(f"has more than {d.MAX_CONFIGURATIONS} configurations")
        jit = private.jit_function_of(tuner.fn)
        self.function = f"{jit.__module__}.{jit.__qualname__}"[-d.MAX_NAME :]
        with private.captured_sources(jit) as capture:
            sources = [
                capture(tuner.fn.run, *args, **kwargs, **configuration.all_kwargs())
                for configuration in self.configurations
            ]
        self._options = [private.options_of(source.options) for source in sources]
        self._grids = [evaluate_grid(source) for source in sources]
        named = {**dict(zip(tuner.arg_names, args)), **kwargs}
        self._cleared = [
            cleared_by(configuration, {**named, **configuration.all_kwargs()})
            for configuration in self.configurations
        ]
        self._told = Arguments(sources[0], _chosen(sources, self.configurations)).all()
        if problem is not None:
            self._key = (*problem.items(), ("arguments", d.arguments_digest(self._told)))
        self._sources = [source.without_tensors() for source in sources]
        self._globals = globals_of(jit)
        self._reset_to_zero = tuple(tuner.reset_to_zero)

    @functools.cached_property
    def hint(self) -> str:
        """A digest of what the TTIR is made from in this Triton: a daemon that has seen it needs no TTIR."""
        sources = [
            [source.key(), configuration, *sorted(cleared)]
            for source, configuration, cleared in zip(self._sources, self._values(), self._cleared)
        ]
        told = [self._globals, self._reset_to_zero, d.not_finite(self._told)]
        return d.digest(d.canonical([d.FORMAT, self._versions(), self._key, sources, told]))

    def hint_with(self, values: bool) -> str:
        """The same with or without the elements of small integer tensors, which make it another kernel."""
        return d.digest(f"{self.hint} values".encode()) if values and has_values(self._told) else self.hint

    @property
    def problem(self) -> dict[str, int]:
        return problem_of(self._key)

    @functools.cached_property
    def definition(self) -> d.Definition:
        """Raises StaysOwnError."""
        texts: dict[str, bytes] = {}
        maker = private.TtirMaker()
        made = [self._ttir(maker, source) for source in self._sources]
        configurations = []
        for values, options, grid, cleared, (text, refused, _) in zip(
            self._values(), self._options, self._grids, self._cleared, made
        ):
            name = d.digest(text) if text else ""
            configurations.append(d.Configuration(values, options, name, grid, refused, cleared))
            if text:
                texts[name] = text
        if sum(map(len, texts.values())) > d.MAX_ALL_TTIR_BYTES:
            raise StaysOwnError(f"has more than {d.MAX_ALL_TTIR_BYTES} bytes of TTIR")
        found = next((each for each in made if each[0]), None)
        if found is None:
            raise StaysOwnError(f"cannot be compiled: {made[0][1]}"[:256])
        _, _, module = found
        architecture, triton_version, ptxas = self._versions()
        arguments = self._arguments([each[2] for each in made])
        tensors = {argument.name for argument in arguments if isinstance(argument, d.Pointer)}
        return d.Definition(
            module.get_entry_func_name(),
            self.function,
            architecture,
            triton_version,
            ptxas,
            self._key,
            arguments,
            tuple(configurations),
            tuple(name for name in self._reset_to_zero if name in tensors),
            texts,
        )

    def compile_ahead(self, index: int) -> None:
        """Compile a configuration for a later launch, on any thread. If that fails, the launch says so."""
        with contextlib.suppress(Exception), self.compiling():
            private.compile_ahead(self._sources[index])

    def _versions(self) -> tuple[str, str, str]:
        capability = self._sources[0].target.arch
        return f"sm_{capability}", triton.__version__, ptxas_version(capability)

    def _values(self) -> list[dict[str, d.Plain]]:
        return [
            {name: label(value) for name, value in configuration.kwargs.items()}
            for configuration in self.configurations
        ]

    def _ttir(self, maker: private.TtirMaker, source: private.Source) -> tuple[bytes, str, Any]:
        """The text, or why there is none, and the module."""
        try:
            with self.compiling():
                module = maker.module(source)
        except private.CompileTimeAssertionFailure as error:
            # Its message alone: str() of it has lines of the kernel's source.
            return b"", str(error.error_message or "static_assert")[: d.MAX_TEXT], None
        except Exception as error:
            told = getattr(error, "error_message", None) or error  # without the lines of the source
            raise StaysOwnError(f"has no TTIR: {type(error).__name__}: {told}"[:256]) from None
        text = module.str_nodebug().encode()
        if len(text) > d.MAX_TTIR_BYTES:
            raise StaysOwnError(f"has {len(text)} bytes of TTIR")
        return text, "", module

    def _arguments(self, modules: list[Any]) -> tuple[d.Argument, ...]:
        """One configuration may write what another one does not: roles are those of all."""
        distinct = {id(module): module for module in modules if module is not None}
        with self.compiling():
            roles = {key: roles_of(module) for key, module in distinct.items()}
        if len(set(map(len, roles.values()))) > 1:
            raise StaysOwnError("takes other arguments with other configurations")
        compiled = [
            (roles[id(each)], names) for each, names in zip(modules, self._cleared) if each is not None
        ]
        cleared = frozenset[str]().union(*(names for _, names in compiled))
        for own_roles, names in compiled:
            self._check_cleared(own_roles, cleared - names)
        union = [each[0] if len(set(each)) == 1 else d.INOUT for each in zip(*roles.values())]
        return with_roles(self._told, union)

    def _check_cleared(self, roles: list[str], names: frozenset[str]) -> None:
        """names: tensors that others clear, so that this configuration may not read them."""
        passed = [argument for argument in self._told if not isinstance(argument, d.Constant)]
        for argument, role in zip(passed, roles):
            if argument.name in names and role != d.OUT:
                raise StaysOwnError(
                    f"has a pre_hook that clears {argument.name} for some configurations alone"
                )


def _chosen(sources: list[private.Source], configurations: list[Any]) -> set[str]:
    """The parameters that configurations set, also those that decorators compute from what they set."""
    first, *others = sources
    differing = {
        name
        for name, kind in first.signature.items()
        if kind == "constexpr"
        for other in others
        if label(other.bound[name]) != label(first.bound[name])
    }
    return differing.union(*(configuration.kwargs for configuration in configurations))


def _check(tuner: Any) -> None:
    """Raises StaysOwnError for what only Triton, in this process, can do."""
    if private.is_interpreting():
        raise StaysOwnError("is interpreted")
    if tuner.user_defined_pre_hook or tuner.user_defined_post_hook:
        raise StaysOwnError("has a hook of its own before or after each run")
    deprecated = tuner.num_warmups is not None or tuner.num_reps is not None or tuner.use_cuda_graph
    if tuner._do_bench is not None and not deprecated:
        raise StaysOwnError("has a do_bench of its own")


def _named_key(tuner: Any, key: tuple[Any, ...], given: set[str]) -> tuple[tuple[str, d.Plain], ...]:
    """Triton's key of a call: values of the arguments that the author named, then types of all tensors."""
    names = [name for name in tuner.keys if name in tuner.arg_names and name in given]
    return tuple(zip([*names, *("" for _ in key[len(names) :])], [plain(value) for value in key]))
