"""What the oracle says of each choice, and the figures of many."""

import contextlib
import pathlib
import random
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "kernels"))
import choices
import oracle
import torch
from compiling import Compiler
from daemon import spelled
from device import device_constants
from machine import toolchain
from spec import Spec
from timing import Timer

ROOT = pathlib.Path(__file__).parents[2]
SHORT_US = 5  # below this graphs of repeats are a second opinion
BELOW_US = 3
MOST_MEMORY_BEFORE = 8 << 30  # bytes of memory that a load of a problem finds taken


def shares(regrets):
    if not regrets:
        return {"choices": 0}
    count = len(regrets)
    return {
        "choices": count,
        "within_1_percent": sum(one <= 0.01 for one in regrets),
        "within_0.5_percent": sum(one <= 0.005 for one in regrets),
        "within_0.1_percent": sum(one <= 0.001 for one in regrets),
        "median": statistics.median(regrets),
        "worst": max(regrets),
    }


def judge(label, winners, first, times):
    """What is kept of a problem, from the names of its choices and the oracle's times."""
    regret = oracle.regrets(times, set(winners))
    means = {name: oracle.trimmed_mean(values) for name, values in times.items()}
    best = min(means, key=means.get)
    worst = max(regret, key=regret.get)
    print(
        f"{label}: best {means[best]:.3f} us of {len(first)}, {len(set(winners))} distinct winners of "
        f"{len(winners)}, worst regret {100 * regret[worst]:.2f} %",
        flush=True,
    )
    return {
        "choices": winners,
        "regrets": [regret[name] for name in winners],
        "best": best,
        "best_us": means[best],
        "candidates": len(first),
        "rounds": len(next(iter(times.values()))),
        "us": means,
        "us_of_each_load": {name: oracle.means_of_loads(values) for name, values in times.items()},
        "standard_error_us": {name: oracle.standard_error(values) for name, values in times.items()},
        "first_us": {name: oracle.trimmed_mean(values) for name, values in first.items()},
    }


class Oracle:
    def __init__(self, commit, slots=1):
        self.slots, self.device = slots, device_constants()
        self.timer = Timer()
        self.compiler = Compiler(f"sm_{self.device['cc']}")
        self.toolchain = toolchain(commit)
        self.specs = {}

    def spec(self, kernel):
        if kernel not in self.specs:
            self.specs[kernel] = Spec.read(next(ROOT.glob(f"variants/*/{kernel}.json")))
        return self.specs[kernel]

    def problem(self, one, seed=0):
        spec = self.spec(one.kernel)
        return oracle.Problem(spec, one.problem, self.device, self.slots, oracle.PAIRINGS, seed)

    def compile(self, every):
        """All that will be measured, before anything is: compilers would disturb."""
        orders = []
        for one in every:
            spec = self.spec(one.kernel)
            for configuration in one.candidates():
                launches = spec.launches(one.problem, configuration, self.device)
                orders.append(self.compiler.start(spec, [launch["entry"] for launch in launches]))
        for order in orders:
            order.result()
        return len(orders)

    def judge(self, one, samples):
        configurations = {choices.key_of(c): c for c in one.candidates()}
        draw = random.Random(0)

        @contextlib.contextmanager
        def load(names):
            other_memory = torch.empty(
                draw.randrange(1, MOST_MEMORY_BEFORE), dtype=torch.uint8, device="cuda"
            )
            problem = self.problem(one, draw.random())
            calls = {name: problem.call(self.compiler, configurations[name]) for name in names}
            yield calls
            torch.cuda.synchronize()
            for call in calls.values():
                call.unload()
            del other_memory

        winners = [choices.key_of(winner["configuration"]) for winner in one.winners]
        first, times = oracle.long_times(self.timer, list(configurations), load, set(winners), samples)
        result = judge(f"{one.kernel} {spelled(one.problem)}", winners, first, times)
        result["configurations"] = list(configurations.values())
        if result["best_us"] < SHORT_US:
            kept = {name: configurations[name] for name in times}
            result["graph_us"] = oracle.graph_times(
                self.problem(one), self.compiler, kept, self.timer, 60, random.Random(0)
            )
        return result

    def judge_triton(self, one, samples):
        label = f"Triton {one.kernel} {spelled(one.problem)}"
        calls = one.calls()  # Triton keeps its code where it lies

        def load(names):
            return contextlib.nullcontext({name: calls[name] for name in names})

        first, times = oracle.long_times(self.timer, list(calls), load, set(one.winners), samples)
        return judge(label, one.winners, first, times)


def summary(results):
    every = [regret for result in results for regret in result.get("regrets", [])]
    short = [r for result in results if result.get("best_us", 9) < BELOW_US for r in result["regrets"]]
    return {
        "problems": sum("regrets" in result for result in results),
        "problems_below_3_us": sum(result.get("best_us", BELOW_US) < BELOW_US for result in results),
        "all": shares(every),
        "below_3_us": shares(short),
        "distinct_winners": [len(set(result.get("choices", []))) for result in results],
    }
