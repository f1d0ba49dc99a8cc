"""The oracle: long interleaved measurements of the configurations that could be the best.

A time is a mean over many rounds, without the outermost tenths. The stamps of CUPTI tick by 32 ns on an H200,
but the clearing of the L2 ahead of each sample ends at any time between two ticks, so that a mean over many
has no ticks. Where the buffers lie in memory alone changes the time of a kernel, and so do how far they lie
from each other and a place that the sample before used: with several places each sample is taken at the next,
where they lie at another distance. Buffers and code are made again several times, elsewhere and in another
order. A short kernel is repeated, as in the tuner's finals and in a graph of repeats: its code is in the SM's
caches then, and how many other configurations come in between is no matter. Half of the rows of samples say
which configuration is the best, the other half how far from it a choice is, and the other way round: of
equals that are compared in one and the same half, the luckiest would seem to be the best.
"""

import ctypes
import itertools
import math
import random
import statistics

import cuda_driver
import torch
from driver import bind_plan, load_kernels

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
TRIM = 0.1
STEP = 5000  # samples of a call of the timer, whose records take memory
FIRST_ROUNDS = 200
LONG_ROUNDS = 3000
PAIRINGS = 4  # of each place of a buffer with places of the others
SMALL_SLOTS_BYTES, MOST_SLOTS = 64 << 20, 251  # there are more places of what is small, as in the tuner
PAGE = 2 << 20
OFFSETS, OFFSET_STEP = 4096, 512  # where small buffers begin
LOADS = 5  # of buffers and code, each for its share of the long rounds
REPEATS = 12  # of a kernel below REPEATED_BELOW_US, as in the tuner's finals
REPEATED_BELOW_US = 12.8
KEPT = 1.02  # of the first rounds' best: measured long


def trimmed_mean(values):
    ordered = sorted(values)
    cut = int(len(ordered) * TRIM)
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("inf")


class Call:
    """A configuration, bound at each place of the buffers; each call of a problem goes on to the next
    place."""

    def __init__(self, plans, turn):
        self.plans, self.turn = plans, turn

    def __call__(self):
        self.plans[next(self.turn)]()

    def unload(self):
        """Behind a synchronization; no call may follow."""
        self.plans[0].unload()  # all have the same kernels
        self.plans = []


def filled(fill, count):
    """`count` values on the GPU of a spec's `fill`: "normal" or {name: {its parameters}}."""
    name, parameters = (fill, {}) if isinstance(fill, str) else next(iter(fill.items()))
    if name == "normal":
        mean, deviation = parameters.get("mean", 0), parameters.get("stddev", 1)
        return torch.randn(count, device="cuda") * deviation + mean
    if name == "uniform":
        low, high = parameters["low"], parameters["high"]
        return torch.rand(count, device="cuda") * (high - low) + low
    raise ValueError(f"the oracle has no fill {name}: normal and uniform")


def tensors(count, dtype, slots, draw):
    """As many as places, of `count` elements. Large ones have an allocation each, which begins a page of the
    GPU's; small ones begin anywhere in a page, as an allocator gives them, each at another offset."""
    size = count * dtype.itemsize
    if size >= PAGE // 2:
        return [torch.empty(count, dtype=dtype, device="cuda") for _ in range(slots)]
    step = -(-size // OFFSETS) * OFFSETS + OFFSET_STEP
    memory = torch.empty(OFFSETS + slots * step, dtype=torch.uint8, device="cuda")
    begin = OFFSET_STEP * draw.randrange(OFFSETS // OFFSET_STEP)
    return [memory[begin + slot * step :][:size].view(dtype) for slot in range(slots)]


class Problem:
    """The buffers, at several places, and scalars of a problem, by the spec's names. The inputs are as the
    spec has them: of random values a kernel's time differs by 0.3 % with their distribution."""

    def __init__(self, spec, problem, device, slots=1, pairings=1, seed=0):
        self.spec, self.problem, self.device = spec, problem, device
        self.scalars, draw = {}, random.Random(seed)
        default = spec.launches(problem, spec.default(problem, device), device)
        parameters = [one for launch in default for one in launch["parameters"]]
        buffers = [one for one in parameters if one["kind"] == "buffer" and one["role"] != "scratch"]
        if slots > 1:
            small = SMALL_SLOTS_BYTES // sum(max(one["size_bytes"], 1) for one in buffers)
            if small > slots:
                pairings = max(slots * pairings // small, 1)
                slots = min(small, MOST_SLOTS)
        self.slots = [{} for _ in range(slots * pairings)]
        self.turn = itertools.cycle(range(slots * pairings))
        for parameter in parameters:
            if parameter["kind"] == "scalar" and "value" not in parameter:
                self.scalars[parameter["name"]] = spec.fields["arguments"][parameter["name"]]["bench"]
        for parameter in buffers:
            name, dtype = parameter["name"], DTYPES[parameter["type"]]
            fill = spec.fields["arguments"][name].get("fill", "normal")
            made = tensors(max(parameter["size_bytes"] // dtype.itemsize, 1), dtype, slots, draw)
            for one in made:
                one.copy_(filled(fill, one.numel()))
            drawn = [one for _ in range(pairings) for one in draw.sample(made, slots)]
            for slot, one in zip(self.slots, drawn):
                slot[name] = one

    def launches(self, configuration):
        return self.spec.launches(self.problem, configuration, self.device)

    def order(self, compiler, configuration):
        return compiler.start(self.spec, [launch["entry"] for launch in self.launches(configuration)])

    def call(self, compiler, configuration):
        """On torch's current stream."""
        cubin, symbols, error = self.order(compiler, configuration).result()
        if error:
            raise RuntimeError(f"{configuration} does not compile: {error}")
        launches = self.launches(configuration)
        for launch in launches:
            launch["entry_symbol"] = symbols[launch["entry"]]
        plan = {"launches": launches}
        kernels = load_kernels(cubin, plan)
        plans = [bind_plan(cubin, plan, buffers, self.scalars, kernels) for buffers in self.slots]
        return Call(plans, self.turn)


def interleaved(timer, calls, rounds, seed=0):
    """{name: at least `rounds` times}."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    fastest = min(min(values) for values in timer.samples(calls, 3).values())
    in_a_row = REPEATS if fastest < REPEATED_BELOW_US else 1
    done, rows = 0, math.ceil(rounds / in_a_row)
    while done < rows:
        count = min(max(STEP // (in_a_row * len(calls)), 1), rows - done)
        for name, values in timer.samples(calls, count, seed + done, in_a_row).items():
            times[name] += values
        done += count
    return times


def long_times(timer, names, load, winners, samples):
    """{name: times}: all names get a first share of the samples, the winners and the near best all the rest.
    `load(names)` makes buffers and code again, and is a context manager: {name: call}."""
    timer.warm_up(0.15)
    with load(names) as calls:
        first = interleaved(timer, calls, max(40, min(FIRST_ROUNDS, samples // 4 // len(names))), seed=1)
    best = min(trimmed_mean(values) for values in first.values())
    kept = [name for name in names if name in winners or trimmed_mean(first[name]) <= KEPT * best]
    rounds = math.ceil(min(LONG_ROUNDS, max(100, samples // len(kept))) / LOADS)
    times = {name: [] for name in kept}
    for turn in range(1, LOADS + 1):
        with load(random.Random(turn).sample(kept, len(kept))) as calls:
            for name, values in interleaved(timer, calls, rounds, seed=turn * 100_000).items():
                times[name] += values
    return first, times


def means_of_loads(values):
    rounds = len(values) // LOADS
    return [trimmed_mean(values[load * rounds :][:rounds]) for load in range(LOADS)]


def halves_of(values):
    """Every other row of samples, and those in between."""
    every = [values[at : at + REPEATS] for at in range(0, len(values), REPEATS)]
    return [list(itertools.chain.from_iterable(every[half::2])) for half in (0, 1)]


def regrets(times, winners):
    """{winner: by how much more time it takes than the best, as a share}; below 0: the best of one half is
    not the best of the other."""
    halves = [
        {name: trimmed_mean(halves_of(values)[half]) for name, values in times.items()} for half in (0, 1)
    ]
    result = {}
    for name in winners:
        shares = []
        for chosen_in, judged_in in ((halves[0], halves[1]), (halves[1], halves[0])):
            best = min(chosen_in, key=chosen_in.get)
            shares.append(judged_in[name] / judged_in[best] - 1)
        result[name] = statistics.fmean(shares)
    return result


class RepeatGraph:
    """`enqueue` several times in one graph, with the clearing of the L2 before each."""

    REPEATS = 20

    def __init__(self, stream, flush, enqueue=None):
        self.stream, self.graph = ctypes.c_void_p(stream.cuda_stream), ctypes.c_void_p()
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.torch_stream = stream
        recorded = ctypes.c_void_p()
        api = cuda_driver._cuda
        cuda_driver.check(api.cuStreamBeginCapture_v2(self.stream, 2), "capturing")
        for _ in range(self.REPEATS):
            flush()
            if enqueue:
                enqueue()
        cuda_driver.check(api.cuStreamEndCapture(self.stream, ctypes.byref(recorded)), "capturing")
        status = api.cuGraphInstantiateWithFlags(ctypes.byref(self.graph), recorded, ctypes.c_ulonglong(0))
        cuda_driver.check(status, "instantiating a graph")
        cuda_driver.check(api.cuGraphDestroy(recorded), "a graph")

    def us(self):
        """Of one repeat, with the clearing."""
        start, end = self.events
        start.record(self.torch_stream)
        cuda_driver.check(cuda_driver._cuda.cuGraphLaunch(self.graph, self.stream), "launching a graph")
        end.record(self.torch_stream)
        end.synchronize()
        return 1000 * start.elapsed_time(end) / self.REPEATS

    def close(self):
        cuda_driver.check(cuda_driver._cuda.cuGraphExecDestroy(self.graph), "a graph")


def graph_times(problem, compiler, configurations, timer, rounds, draw):
    """{name: [mean us, its standard error]} by graphs of repeats, the clearing taken off. The step from node
    to node stays in, about a microsecond, so that shares are smaller than those of the kernel's own time."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        flush = timer.bound_flush()
        calls = {name: problem.call(compiler, one) for name, one in configurations.items()}
        for call in calls.values():
            call()
    torch.cuda.synchronize()
    graphs = {name: RepeatGraph(stream, flush, call) for name, call in calls.items()}
    graphs[""] = RepeatGraph(stream, flush)
    times = {name: [] for name in calls}
    for graph in graphs.values():
        graph.us()
    for _ in range(rounds):
        order = list(calls)
        draw.shuffle(order)
        for name in order:
            times[name].append(graphs[name].us() - graphs[""].us())
    for graph in graphs.values():
        graph.close()
    for call in calls.values():
        call.unload()
    return {name: [trimmed_mean(values), standard_error(values)] for name, values in times.items()}
