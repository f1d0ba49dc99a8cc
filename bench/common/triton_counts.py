"""What Triton compiles and builds in this process, by its own hooks, and what its autotuners chose."""

import gc
import json
import time

from triton import knobs
from triton.runtime import build
from triton.runtime.autotuner import Autotuner


class Counts:
    """compiles: the kernels that triton.compile() compiled, rather than found in its cache. launchers: the
    seconds of each C compiler's run (Triton up to 3.6 builds a launcher for each signature)."""

    def __init__(self):
        self.compiles, self.found, self.launchers = [], 0, []

    def install(self):
        before, built = knobs.compilation.listener, build._build

        def listener(*, src, cache_hit, **more):
            if cache_hit:
                self.found += 1
            else:
                self.compiles.append(src.name)
            if before is not None:
                before(src=src, cache_hit=cache_hit, **more)

        def timed_build(*arguments, **named):
            start = time.perf_counter()
            try:
                return built(*arguments, **named)
            finally:
                self.launchers.append(time.perf_counter() - start)

        knobs.compilation.listener, build._build = listener, timed_build

    def as_json(self):
        return {"compiles": self.compiles, "found": self.found, "launcher_builds_s": self.launchers}


def name_of(tuner):
    return f"{tuner.base_fn.__module__}.{tuner.base_fn.__qualname__}"


def spelled(configuration):
    """A configuration, so that equal ones of two processes are equal."""
    return json.dumps(configuration.all_kwargs(), sort_keys=True)


def choices():
    """[{"kernel", "key", "configuration"}] of the autotuners of this process."""
    found = []
    for tuner in gc.get_objects():
        if not issubclass(type(tuner), Autotuner) or len(tuner.configs) < 2:
            continue
        for_now = getattr(tuner.cache, "provisional", {})  # of cubind: what runs while the daemon tunes
        for key, configuration in {**for_now, **tuner.cache}.items():
            one = {"kernel": name_of(tuner), "key": str(key), "configuration": spelled(configuration)}
            found.append(one)
    return sorted(found, key=lambda one: (one["kernel"], one["key"]))
