"""Runs a script of Kernel Tuner, unedited: python -m cubind.kernel_tuner SCRIPT [ARGUMENT...]

Its tune_kernel() measures with a cubind daemon. What that does not do stays Kernel Tuner's own.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import _tables, _whole_file, connect
from ._program import checked, run
from .client import Client
from .errors import InvalidArgumentError
from .kernel_tuning import TunedKernel
from .kernel_tuning import tune_kernel as tune_here

_LANGUAGES = (None, "CUDA", "CUPY", "NVCUDA")
_SAME = ("restrictions", "answer", "grid_div_x", "grid_div_y", "grid_div_z", "block_size_names", "cmem_args")
_OWN = {
    "texmem_args": "textures",
    "observers": "observers",
    "simulation_mode": "a simulation",
    "parallel": "parallel runners",
    "objectives": "several objectives",
    "defines": "defines=",
    "compiler": "compiler=",
}
_NOT_DONE = {
    "verify": "verify= is not called and the outputs are not compared: they stay with the daemon",
}
_RTOL = 1e-5  # that of numpy.allclose(), by which Kernel Tuner compares
_SAMPLE = 0.1  # of the configurations, by which Kernel Tuner's random_sample and others are bounded
_TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")


class Replacement:
    """tune_kernel() with Kernel Tuner's parameters and results.

    own: Kernel Tuner's function. client: of the daemon; None: cubind.connect().
    """

    def __init__(self, own: Callable[..., Any], client: Client | None = None) -> None:
        self._own = own
        self._client = client
        self._said: set[str] = set()
        functools.update_wrapper(self, own)

    def __call__(
        self,
        kernel_name: str,
        kernel_source: Any,
        problem_size: Any,
        arguments: Any,
        tune_params: Any,
        *more: Any,
        **options: Any,
    ) -> Any:
        """See Kernel Tuner's tune_kernel(). Raises CubindError if nothing can be measured."""
        given = kernel_name, kernel_source, problem_size, arguments, tune_params
        why = _why_own(kernel_source, arguments, options) or ("options by their places" if more else "")
        if why:
            self._say(f"{kernel_name} stays Kernel Tuner's own: it has {why}")
            return self._own(*given, *more, **options)
        try:
            call = self._call(tune_params, options)
            if self._client is None:
                self._client = connect()
            result = tune_here(*given, **call, client=self._client, progress=not options.get("quiet"))
        except InvalidArgumentError as error:
            self._say(f"{kernel_name} stays Kernel Tuner's own: {error}")
            return self._own(*given, **options)
        results, environment = _results(result, options)
        if options.get("cache"):
            self._keep(given, options, results, environment["device_name"])
        return results, environment

    def _keep(self, given: tuple[Any, ...], options: Mapping[str, Any], results: Any, device: str) -> None:
        """Writes Kernel Tuner's file of results. What it has of the same kernel stays."""
        kernel_name, _, problem_size, _, tune_params = given
        util = importlib.import_module("kernel_tuner.util")
        path = os.fspath(options["cache"])
        path = path if path.endswith(".json") else f"{path}.json"
        subject = {
            "device_name": device,
            "kernel_name": kernel_name,
            "problem_size": problem_size,
            "tune_params_keys": list(tune_params),
        }
        subject = json.loads(json.dumps(subject, cls=util.NpEncoder))  # lists instead of tuples
        kept = {
            **subject,
            "tune_params": tune_params,
            "objective": options.get("objective") or "time",
            "cache": {},
        }
        try:
            if os.path.exists(path):
                kept = util.read_cache(path, open_cache=False)
                if any(kept.get(name) != value for name, value in subject.items()):
                    self._say(
                        f"{path} stays as it is: it is of another kernel, size, device or other tunables"
                    )
                    return
            for row in results:
                kept["cache"].setdefault(",".join(str(row[name]) for name in tune_params), row)
            kept["cache"] = {key: _plain(row) for key, row in kept["cache"].items()}
            # As Kernel Tuner writes it, which looks at the last characters.
            _whole_file.write(path, json.dumps(kept, cls=util.NpEncoder, indent=""))
        except (OSError, ValueError) as error:
            self._say(f"{path} is not written: {error}")

    def _call(self, tune_params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of cubind.tune_kernel()."""
        call = {name: options[name] for name in _SAME if options.get(name) is not None}
        for name, told in _NOT_DONE.items():
            if options.get(name) is not None:
                self._say(told)
        compared = options.get("answer") is not None and options.get("verify") is None
        if not compared:
            call.pop("answer", None)
        call["tolerance"] = {"rtol": _RTOL, "atol": options.get("atol") or 1e-6} if compared else math.inf
        call["compiler_options"] = [each for each in options.get("compiler_options") or () if each]
        names = options.get("block_size_names") or ("block_size_x", "block_size_y", "block_size_z")
        if not any(name in tune_params for name in names):
            call["block"] = [256]  # Kernel Tuner's
        if options.get("smem_args"):
            call["shared_bytes"] = options["smem_args"]["size"]
        return call | self._budget(tune_params, options)

    def _budget(self, tune_params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """A strategy by name means its budget."""
        strategy, given = options.get("strategy"), options.get("strategy_options") or {}
        if strategy not in (None, "brute_force"):
            self._say(f'strategy="{strategy}" is its budget: cubind searches')
        budget = {"max_trials": given.get("max_fevals"), "max_seconds": given.get("time_limit")}
        if strategy == "random_sample" and budget["max_trials"] is None:
            space = importlib.import_module("kernel_tuner.searchspace").Searchspace
            size = space(tune_params, options.get("restrictions"), 1024).size
            budget["max_trials"] = math.ceil(size * given.get("fraction", _SAMPLE))
        return {name: value for name, value in budget.items() if value is not None}

    def own_runs(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """Kernel Tuner's run_kernel(), whose kernels are named once."""

        @functools.wraps(own)
        def run_kernel(kernel_name: str, *more: Any, **options: Any) -> Any:
            self._say(f"run_kernel of {kernel_name} is Kernel Tuner's own")
            return own(kernel_name, *more, **options)

        return run_kernel

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            print(f"cubind.kernel_tuner: {text}", file=sys.stderr)


def _why_own(source: Any, arguments: Any, options: Mapping[str, Any]) -> str:
    """What the daemon does not do; "" if it does all."""
    language = options.get("lang")
    if (language.upper() if isinstance(language, str) else language) not in _LANGUAGES:
        return f'lang="{language}"'
    if callable(source):
        return "a function that makes its source"
    if isinstance(source, (list, tuple)):
        return "several sources"
    if any(type(each).__module__.startswith("kernel_tuner") for each in arguments):
        return "tunable arguments"
    if options.get("strategy") is not None and not isinstance(options["strategy"], str):
        return "a strategy of its own"
    return next((what for name, what in _OWN.items() if options.get(name)), "")


def _results(result: TunedKernel, options: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A dict for each configuration, and what they were measured with."""
    util = importlib.import_module("kernel_tuner.util")
    objective, is_higher = util.get_objective_defaults(
        options.get("objective"), options.get("objective_higher_is_better")
    )
    client = result.client
    rows = _tables.trials(client._connection, result.name, client.timeout, include_samples=True)
    results = [_row(result, row, options.get("metrics"), util) for row in rows]
    environment: dict[str, Any] = {"device_name": result.device, "cubind_kernel": result.name}
    if any("__error__" not in row for row in results):
        environment["best_config"] = util.get_best_config(results, objective, is_higher)
    return results, environment


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "__error__": str(row["__error__"])} if "__error__" in row else dict(row)


def _row(result: TunedKernel, trial: Mapping[str, Any], metrics: Any, util: Any) -> dict[str, Any]:
    row = result.values(trial["configuration"]) | dict.fromkeys(_TIMES, 0.0)
    row["timestamp"] = str(datetime.datetime.now(datetime.timezone.utc))
    samples = [
        us for block in trial.get("finals") or trial.get("screening", []) for us in block["samples_us"]
    ]
    if trial["outcome"] in ("correct", "unverified") and samples:
        row["times"] = [us / 1000 for us in samples]  # ms
        row["time"] = statistics.median(row["times"])
        return util.process_metrics(row, metrics)  # type: ignore[no-any-return]
    failed = {"compile": util.CompilationFailedConfig, "constraint": util.InvalidConfig}
    row["__error__"] = failed.get(trial["outcome"], util.RuntimeFailedConfig)()
    return row


def main() -> None:
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return
    program = checked(sys.argv[1:], "cubind.kernel_tuner", __doc__ or "")
    try:
        package = importlib.import_module("kernel_tuner")
        interface = importlib.import_module("kernel_tuner.interface")
    except ImportError as error:
        sys.exit(f"cubind.kernel_tuner: {error}: pip install kernel_tuner")
    replacement = Replacement(interface.tune_kernel)
    package.tune_kernel = interface.tune_kernel = replacement
    package.run_kernel = interface.run_kernel = replacement.own_runs(interface.run_kernel)
    run(program)


if __name__ == "__main__":
    main()
