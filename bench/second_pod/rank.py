"""One process of the job: rank.py MODEL STEPS PAUSE_AT FILE trains and writes what it took to FILE.

PAUSE_AT: before this step it makes FILE.paused and waits until there is FILE.go; 0: it does not. If it does,
all processes wait for each other after the warm-up too, so that before and after they share the GPUs alike.
"""

import json
import os
import pathlib
import sys
import time

import torch
from model import Training

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from triton_counts import Counts, choices
from verdict import WARM_UP


def meet(file):
    """Returns once all processes of the job have come here."""
    file.with_suffix(".here").touch()
    job = file.name.partition(".")[0]
    while len([*file.parent.glob(f"{job}.*.here")]) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.01)


def train(training, steps, pause_at, file):
    """Milliseconds and loss of each step, and when the first one was finished."""
    times, losses, first = [], [], None
    for number in range(steps):
        if pause_at and number == WARM_UP:
            meet(file)
        if pause_at and number == pause_at:
            file.with_suffix(".paused").touch()
            while not file.with_suffix(".go").exists():
                time.sleep(0.01)
        start = time.perf_counter()
        losses.append(training.step())
        times.append((time.perf_counter() - start) * 1e3)
        first = first or time.time()
    return times, losses, first


def main():
    name, steps, pause_at, file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])
    marks = {"imported": time.time()}
    counts = Counts()
    counts.install()
    training = Training(name, int(os.environ["RANK"]))
    torch.cuda.synchronize()
    marks["model"] = time.time()
    times, losses, marks["first_step"] = train(training, steps, pause_at, file)
    result = {"marks_s": marks, "steps_ms": times, "losses": losses, "choices": choices(), **counts.as_json()}
    if cubind := sys.modules.get("cubind.triton"):
        result["report"] = cubind.report().splitlines()
    file.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
