"""Kernels against torch's own functions, measured in this process: torch competes with its own build."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import torch

from .. import _torch_private as private
from .._asking import warn
from ..comparison import Comparison
from ..errors import CubindError
from ..question import Question
from ._comparing_cases import case_of, forward_of, has_case
from ._gpu import on_device
from ._operator import collecting
from ._variants import LIBRARY, OF_BUCKET, Found, Loaded, Need, comparison_with_torch, settings

# Of no training job: the job's first question pins what its ranks get, and that is to know the comparisons.
QUESTION = Question(job="", tune=False)
_SECONDS = 0.4  # of rounds for each problem
_MIN_ROUNDS, _MAX_ROUNDS = 5, 100
_BATCH_SECONDS = 0.05  # the host waits for the GPU once in that time
_MAX_BATCH = 10  # rounds: the host runs ahead of the GPU for as long as a batch takes to launch
_HEAD_START = 5_000_000  # cycles: 3 ms
_RESAMPLES = 1000

Run = Callable[[], object]


def compare(need: Need) -> Comparison | None:
    """How the kernel compares with torch's function: as the daemon knows it for this build of torch, else
    measured now, in about half a second, and told to the daemon. The backward pass of attention is compared
    together with its forward pass. None if there is no record of the bucket or no function of torch, or the
    kernel cannot be launched on inputs made here. Raises CubindError as Client.get()."""
    found = _ask(need)
    known = comparison_with_torch(found.held.answer)
    is_comparable = OF_BUCKET.issuperset(found.held.answer.match.split("+")) and has_case(need)
    if known is not None or not is_comparable:
        return known
    variants = [(need, _load(need, found))]
    forward = forward_of(need)
    if forward is not None:
        variants.append((forward, _load(forward, _ask(forward))))
        if variants[-1][1].yields:  # then so does the backward pass
            return None
    with on_device(need[1][1]), _undisturbed():
        comparison = _measured(variants)
    if comparison is not None:
        found.client.report_comparison(found.held.answer, comparison, QUESTION, gpu=need[1][1])
    return comparison


def _ask(need: Need) -> Found:
    operator, key, dims = need
    client = settings.connected()
    return Found(client, client.ask(operator.name, operator.problem(key, dims), QUESTION, gpu=key[1]))


def _load(need: Need, found: Found) -> Loaded:
    operator, key, dims = need
    return operator.variant(key, dims, found)


def compare_all(needs: list[Need]) -> dict[Need, Comparison]:
    """Those that can be compared; a failure is warned of: a comparison is no reason to end a training."""
    found: dict[Need, Comparison] = {}
    for need in needs:
        try:
            comparison = compare(need)
        except (CubindError, torch.OutOfMemoryError) as error:
            warn(f"{need[0].name}: not compared with torch's function: {error}", f"{need[0].name} compared")
            continue
        if comparison is not None:
            found[need] = comparison
    return found


# Random numbers, gradients and types as torch has them by default, and no kernel but the one in question.
@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    with (
        collecting(False),
        torch.no_grad(),
        torch.autocast("cuda", enabled=False),
        torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []),
    ):
        yield


def _measured(variants: list[tuple[Need, Loaded]]) -> Comparison | None:
    """Of the first need, whose case is run with all the variants and with none."""
    need = variants[0][0]
    operator = need[0]
    case = case_of(need)
    ours = _with([(each, (one,)) for each, one in variants], case.ours)
    theirs = _with([(each, ()) for each, _ in variants], case.theirs)
    before = operator.counts()[0]
    ours()
    launched = operator.counts()[0]
    theirs()
    if launched == before or operator.counts()[0] != launched:
        return None
    return summary(measure(ours, theirs))


def _with(variants: list[tuple[Need, tuple[Loaded, ...]]], run: Run) -> Run:
    def call() -> None:
        with contextlib.ExitStack() as stack:
            for (operator, key, _), loaded in variants:
                stack.enter_context(operator.only(key, *loaded))
            run()

    return call


def summary(ratios: list[float]) -> Comparison:
    """Of paired ratios: their median, and its 95 % bootstrap interval."""
    values = torch.tensor(ratios, dtype=torch.float64)
    drawn = torch.randint(len(ratios), (_RESAMPLES, len(ratios)), generator=torch.Generator().manual_seed(0))
    medians = values[drawn].quantile(0.5, dim=1)
    middle = float(values.quantile(0.5))
    low, high = (float(medians.quantile(q)) for q in (0.025, 0.975))
    return Comparison(LIBRARY, middle, min(low, middle), max(high, middle), len(ratios))


# ---- Time on the GPU ----


def measure(ours: Run, theirs: Run) -> list[float]:
    """Of each round the time of `theirs` over that of `ours`. Both have run before."""
    timer = _Timer()
    started = time.monotonic()
    timer.rounds(ours, theirs, 1)  # warms the clocks up too
    each = time.monotonic() - started
    batch = max(1, min(_MAX_BATCH, int(_BATCH_SECONDS / each)))
    found: list[float] = []
    while len(found) < _MIN_ROUNDS or (len(found) < _MAX_ROUNDS and time.monotonic() - started < _SECONDS):
        found += timer.rounds(ours, theirs, batch)
    return found


class _Timer:
    """Times calls by events on the current stream, each with other data in the L2 cache, like the agent."""

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._other = torch.zeros(max(1, properties.L2_cache_size // 2), dtype=torch.float32, device="cuda")

    def rounds(self, ours: Run, theirs: Run, count: int) -> list[float]:
        """The host runs ahead, so that the GPU never waits for it."""
        if private.sleep is not None:
            private.sleep(_HEAD_START)
        timed = []
        for number in range(count):
            if number % 2:
                second, first = self._sample(theirs), self._sample(ours)
            else:
                first, second = self._sample(ours), self._sample(theirs)
            timed.append((first, second))
        torch.cuda.synchronize()
        return [b[0].elapsed_time(b[1]) / a[0].elapsed_time(a[1]) for a, b in timed]

    def _sample(self, run: Run) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._other.sum()  # reads twice the L2's size
        start.record()
        run()
        end.record()
        return start, end
