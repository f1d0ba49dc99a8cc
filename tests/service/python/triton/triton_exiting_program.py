"""A program for `python -m cubind.triton` that ends: PHASE.

compiles  while the background thread compiles the winner; it prints what that begins and ends
defines   the same while it makes the definition of a kernel with many configurations
waits     when it is interrupted while a call waits; it prints how the call ends
"""

import triton_found  # noqa: F401  first: folders of its own

# isort: split
import functools
import sys
import threading
import time

import cubind.triton
import triton_stub as stub
from triton_stub import grid, tuned


def call(kernel):
    kernel[grid](stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0)


def watch(name, seconds):
    """Has a function of _triton_private take its time. Returns an event: the background thread is in it."""
    original, begun = getattr(stub.private, name), threading.Event()

    @functools.wraps(original)
    def slow(*arguments):
        if threading.current_thread().name != "cubind":
            return original(*arguments)
        print(f"{name} begins", flush=True)
        begun.set()
        time.sleep(seconds)
        found = original(*arguments)
        print(f"{name} ends", flush=True)
        return found

    setattr(stub.private, name, slow)
    return begun


def compiles():
    begun, kernel = watch("compile_ahead", 2.0), tuned()
    while not begun.wait(0.05):
        call(kernel)


def defines():
    begun = watch("canonical_module", 1.0)
    call(tuned(configs=stub.configurations(*(32 * (1 + i) for i in (1, 3, 7, 15, 31, 63, 127)))))
    begun.wait()


def waits():
    try:
        call(tuned())
    except BaseException as error:
        print(f"the call ends with {type(error).__name__}", flush=True)
        raise
    print("the call ends", flush=True)


PHASES = {each.__name__: each for each in (compiles, defines, waits)}


def main():
    stub.start()
    if sys.argv[1] != "waits":
        cubind.triton.install(on_miss="serve")
    PHASES[sys.argv[1]]()


if __name__ == "__main__":
    main()
