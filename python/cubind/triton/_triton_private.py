"""What cubind uses of Triton beyond its documented interface: all of it is here, in _bound.py, in
_globals.py, in _triton_cache.py, in _launching.py, in _roles.py, which reads TTIR by Triton's own parser, and
in worker/toolchain.py.

Tested with Triton 3.4 to 3.9; worker/toolchain.py refuses others. Import this only after Triton.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import triton
from triton import knobs
from triton._C.libtriton import get_cache_invalidating_env_vars, ir
from triton._utils import find_paths_if, get_iterable_path
from triton.backends import backends
from triton.compiler import ASTSource, make_backend
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import autotuner
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from ._own import StaysOwnError
from .worker.request import OPTIONS

# Triton 3.7 and later launch without a C compiler.
COMPILES_LAUNCHERS = triton.__version__.startswith(("3.4.", "3.5.", "3.6.")) and "nvidia" in backends

# Options that TTIR has taken in: they change nothing behind it.
_TAKEN_IN = {
    "allowed_dot_input_precisions",
    "arch",
    "backend_name",
    "default_dot_input_precision",
    "deprecated_fp8_dot_operand_dtypes",
    "max_num_imprecise_acc_default",
    "sanitize_overflow",
    "supported_fp8_dtypes",
}
# Told in every definition, whatever their default is.
_ALWAYS_TOLD = ("num_warps", "num_stages", "num_ctas")
# The last two: TTIR has the precision of tl.dot, and the options have the fusion.
_HARMLESS_VARIABLES = {"TRITON_DISABLE_LINE_INFO", "TRITON_F32_DEFAULT", "TRITON_DEFAULT_FP_FUSION"}


def is_interpreting() -> bool:
    """TRITON_INTERPRET=1: kernels run as Python."""
    return bool(knobs.runtime.interpret)


def jit_function_of(function: Any) -> JITFunction[Any]:
    """What the decorators around a kernel are around. Raises StaysOwnError."""
    while not isinstance(function, JITFunction):
        if isinstance(function, Autotuner):
            raise StaysOwnError("is around another autotuner")
        if not hasattr(function, "fn"):
            raise StaysOwnError(f"is around {type(function).__name__}, which is not a function of triton.jit")
        function = function.fn
    if getattr(function, "is_gluon", lambda: False)():
        raise StaysOwnError("is written in Gluon, which has no TTIR")
    return function


def check_environment() -> None:
    """Raises StaysOwnError where this process makes other code of a kernel than another one does."""
    for name, value in get_cache_invalidating_env_vars().items():
        if name not in _HARMLESS_VARIABLES and value not in ("", "0", "false"):
            raise StaysOwnError(f"is compiled in another way by {name}={value}")
    others = {
        "TRITON_LIBDEVICE_PATH": knobs.nvidia.libdevice_path,
        "TRITON_INSTRUMENTATION_MODE": getattr(knobs.compilation, "instrumentation_mode", ""),
    }
    for name, value in others.items():
        if value:
            raise StaysOwnError(f"is compiled in another way by {name}={value}"[:256])
    if getattr(knobs.runtime, "add_stages_inspection_hook", None) is not None:
        raise StaysOwnError("is compiled with stages that a hook adds to Triton's")


# ---- Inside Autotuner.run ----


def call_of(frame: types.FrameType) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of the autotuner's run() whose frame it is; None for any other frame."""
    if frame.f_code.co_name != "run" or frame.f_code.co_filename != autotuner.__file__:
        return None
    found = frame.f_locals
    return found["args"], found["kwargs"]


# ---- Before a launch ----


def uses_gpu() -> bool:
    """Whether this process has begun to use a GPU, with which asking for the current one would begin."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    active = vars(driver).get("_active", vars(driver).get("active"))
    return getattr(active, "_obj", active) is not None  # Triton 3.4 has a proxy


def current_device() -> int:
    """The GPU that a launch would go to, as CUDA counts them in this process."""
    return int(driver.active.get_current_device())


def is_capturing() -> bool:
    """Whether this thread captures a CUDA graph with torch."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def load(tuner: Autotuner, configuration: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Compiles and loads the kernel as the launch would. Raises what Triton does where that fails."""
    kernel = tuner.fn.run(*args, **{**kwargs, "warmup": True}, **configuration.all_kwargs())
    kernel = kernel.result() if hasattr(kernel, "result") else kernel
    if kernel is not None:
        kernel._init_handles()


def announce(tuner: Autotuner, key: Any, configuration: Any, times_ms: list[float]) -> None:
    """Calls Triton's listener as Autotuner.run does for a choice that was found; before 3.9 there is none."""
    listener = getattr(knobs.autotuning, "listener", None)
    if listener is not None:
        listener(
            fn=jit_function_of(tuner.fn),
            key=key,
            best_config=configuration,
            configs_timings={configuration: times_ms},
            duration=None,
            cache_hit=True,
        )


def first_loaded(
    tuner: Autotuner, configurations: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any | None:
    """The first configuration that can be loaded: Triton's autotuner passes over the others too."""
    for configuration in configurations:
        try:
            load(tuner, configuration, args, kwargs)
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
            continue
        return configuration
    return None


# ---- From a call to the source of its kernel ----


@dataclasses.dataclass(frozen=True)
class Source:
    """A kernel specialized for one call. bound: every argument by name. signature: their types, "constexpr"
    where one is compiled in. attributes: by an argument's position."""

    source: ASTSource
    options: Any
    target: Any
    bound: dict[str, Any]
    signature: dict[str, Any]
    attributes: dict[tuple[int, ...], Any]
    grid: Any

    def key(self) -> str:
        """What Triton keeps TTIR under: the function with its callees and their lines, the specialization,
        all options, and the precision of tl.dot. To Triton the constants 1 and "1" are the same."""
        constants = self.source.constants
        return f"{self.source.hash()} {constants} {self.options.hash()} {knobs.language.fp32_default}"

    def without_tensors(self) -> Source:
        """What TTIR is made from. It may outlive the call, whose memory it does not hold."""
        return dataclasses.replace(self, bound={}, grid=None)


@contextlib.contextmanager
def captured_sources(jit: JITFunction[Any]) -> Iterator[Callable[..., Source]]:
    """Within it, the yielded function runs a kernel's decorators, without the kernel: called as
    `run_of_the_outermost_decorator, *args, **kwargs`, it gives what would be compiled.

    Other threads launch the kernel as always.
    """
    thread = threading.get_ident()
    found: list[Source] = []

    def run(*args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return type(jit).run(jit, *args, grid=grid, warmup=warmup, **kwargs)
        found.append(_specialize(jit, args, grid, kwargs))
        return None

    def capture(run_outermost: Callable[..., Any], *args: Any, **kwargs: Any) -> Source:
        found.clear()
        run_outermost(*args, **kwargs)
        if len(found) != 1:
            raise StaysOwnError(f"is launched {len(found)} times by its decorators")
        return found.pop()

    if "run" in vars(jit):
        raise StaysOwnError("has a run() of its own")
    jit.run = run
    try:
        yield capture
    finally:
        del jit.run


def _specialize(jit: JITFunction[Any], args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> Source:
    """As JITFunction.run does before it compiles."""
    kwargs["debug"] = kwargs.get("debug", jit.debug) or knobs.runtime.debug
    *_, target, backend, binder = jit.device_caches[driver.active.get_current_device()]
    if target.backend != "cuda":
        raise StaysOwnError(f"is for {target.backend}")
    bound, specialization, options = binder(*args, **kwargs)
    if hasattr(jit, "_pack_args"):
        packed = jit._pack_args(backend, kwargs, bound, specialization, options)
    else:
        packed = _pack_arguments_of_3_4(jit, backend, kwargs, bound, specialization)
    options, signature, constants, attributes = packed
    if options.arch != f"sm{target.arch}":
        raise StaysOwnError(f"is compiled for {options.arch} on sm{target.arch}")
    source = ASTSource(jit, signature, constants, attributes)
    return Source(source, options, target, bound, signature, attributes, grid)


def _pack_arguments_of_3_4(
    jit: JITFunction[Any], backend: Any, kwargs: dict[str, Any], bound: dict[str, Any], specialization: Any
) -> tuple[Any, dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    types = [part[0] for part in specialization]
    values = list(bound.values())
    constants = {
        path: get_iterable_path(values, path)
        for path in find_paths_if(types, lambda _, found: found == "constexpr")
    }
    told = [part[1] for part in specialization]
    attributes = {
        path: backend.parse_attr(get_iterable_path(told, path))
        for path in find_paths_if(told, lambda _, found: isinstance(found, str))
    }
    signature = dict(zip([parameter.name for parameter in jit.params], types))
    return backend.parse_options(kwargs), signature, constants, attributes


def options_of(options: Any) -> dict[str, int | bool]:
    """Those of a compile behind TTIR, without those that have their default. Raises StaysOwnError for one
    that reaches a file, a flag of ptxas, or what cubind does not know."""
    # Of a compile that is not told otherwise, also by the environment when Triton was imported.
    defaults = {**vars(type(options)()), "enable_fp_fusion": True, "ptx_options": None}
    told: dict[str, int | bool] = {}
    for name, value in vars(options).items():
        if name in _TAKEN_IN:
            continue
        is_default = value == defaults[name]
        if name in OPTIONS:
            if name in _ALWAYS_TOLD or not is_default:
                told[name] = value
        elif not is_default:
            raise StaysOwnError(f"has the option {name}={value!r}"[:256])
    return told


def compile_ahead(source: Source) -> None:
    """Has Triton's cache hold what load() needs. For any thread."""
    triton.compile(source.source, target=source.target, options=vars(source.options))


# ---- From a source to TTIR ----


class TtirMaker:
    """Makes a call's modules. Configurations that differ only in options that TTIR lacks share one."""

    def __init__(self) -> None:
        # By the specialization: the options that were looked at, and the module.
        self._made: dict[str, list[tuple[dict[str, Any], Any]]] = {}

    def module(self, source: Source) -> Any:
        """The module of the source's TTIR, in its one form: without locations and names of values. Raises
        what Triton does for a kernel that it cannot compile."""
        key = f"{source.source.hash()} {source.source.constants} {source.target}"
        made = self._made.setdefault(key, [])
        for seen, module in made:
            if all(getattr(source.options, name) == value for name, value in seen.items()):
                return module
        options = _Watched(source.options)
        module = canonical_module(_first_stage(source, options), source.target)
        made.append((options.seen, module))
        return module


class _Watched:
    """Options that remember which of them were looked at."""

    __slots__ = ("_options", "seen")

    def __init__(self, options: Any) -> None:
        self._options = options
        self.seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = self.seen[name] = getattr(self._options, name)
        return value

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # of vars()
        self.seen.update(vars(self._options))
        return vars(self._options)


def _first_stage(source: Source, options: Any) -> str:
    """As triton.compile() does."""
    backend = make_backend(source.target)
    context = _context(backend)
    make_ir = source.source.make_ir
    takes_target = "target" in inspect.signature(make_ir).parameters  # not with Triton 3.4
    module = make_ir(
        *([source.target] if takes_target else []),
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.source.language)
    return stages["ttir"](module, {"target": source.target, **vars(source.options)}).str_nodebug()


def canonical_module(text: str, target: Any) -> Any:
    """The module of a text. Its str_nodebug() depends on nothing but the code: locations hold the source's
    names, by which Triton prints values as long as there are any."""
    context = _context(make_backend(target))
    stripped = _parse(text, context).str_nodebug()
    return _parse(stripped, context)


def _context(backend: Any) -> Any:
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def _parse(text: str, context: Any) -> Any:
    """Triton parses files alone."""
    file = os.memfd_create("ttir")
    try:
        with open(file, "w", closefd=False) as writer:
            writer.write(text)
        module = ir.parse_mlir_module(f"/proc/self/fd/{file}", context)
        module.context = context  # must not end before the module
        return module
    finally:
        os.close(file)
