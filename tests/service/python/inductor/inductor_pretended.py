"""Inductor for a GPU that does not exist: its own candidates, scheduler and code, with made-up times. Choices
are stored in memory."""

import contextlib
import dataclasses
import functools
import hashlib
import types
import unittest.mock

import running
import torch
import torch._inductor.compile_fx  # as a compile imports it
import torch._inductor.select_algorithm as selecting
from cubind.inductor import _install
from cubind.inductor._private.hooks import Hooks
from cubind.inductor._session import Session
from torch._dynamo.utils import counters
from torch._inductor import codecache, config
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.scheduler import Scheduler
from torch._inductor.virtualized import V
from torch._subclasses import fake_tensor
from torch.fx.experimental.proxy_tensor import make_fx
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

GPU = types.SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    L2_cache_size=62914560,
    total_memory=150 << 30,
    warp_size=32,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    gcnArchName="",
    clock_rate=1980000,
    memory_clock_rate=3201000,
    memory_bus_width=6016,
)


class _Driver:
    """Of Triton."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def is_active(self):
        return True


class Answers:
    """As _answers.Answers, in memory. failure: what each call raises."""

    def __init__(self):
        self.stored = {}
        self.asked = []
        self.offered = []
        self.failure = None
        self.others = lambda question: None  # number that another process stores just before an offer

    def ask(self, question):
        self._fail()
        self.asked.append(question)
        return self.stored.get(question.digest)

    def offer(self, question, choice):
        self._fail()
        self.offered.append((question, choice))
        if (number := self.others(question)) is not None:
            self.stored.setdefault(question.digest, dataclasses.replace(choice, number=number))
        return self.stored.setdefault(question.digest, choice)

    def _fail(self):
        if self.failure is not None:
            raise self.failure


def time_of(choice):
    """Of a candidate, in ms: by chance, and the same each time."""
    return 1 + int(hashlib.sha256(choice.hash_key().encode()).hexdigest()[:4], 16) / 65536


def fastest_extern(choice):
    """Torch's own kernel before all others."""
    return time_of(choice) - (1 if isinstance(choice, selecting.ExternKernelCaller) else 0)


@contextlib.contextmanager
def gpu(time=time_of, fused_ms=0.5, neighbour_ms=0.4):
    """Compiles for it within. fused_ms: of a product with what it is fused with; neighbour_ms: of the latter
    alone."""

    def benchmark(self, choices, *_, **__):
        counters["inductor"]["select_algorithm_autotune"] += 1
        return {choice: time(choice) for choice in choices}

    found = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": lambda: None,
        "_get_device_properties": lambda *_: GPU,
        "get_device_capability": lambda *_: (9, 0),
        "get_device_name": lambda *_: GPU.name,
        "current_device": lambda: 0,
        "device_count": lambda: 2,
        "synchronize": lambda *_: None,
    }
    selector = selecting.AlgorithmSelectorCache
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context
        for name, value in found.items():
            patch(unittest.mock.patch.object(torch.cuda, name, value, create=True))
        patch(unittest.mock.patch.object(torch.version, "cuda", torch.version.cuda or "13.0"))
        patch(unittest.mock.patch.object(fake_tensor, "init_gpu_context", lambda device: None))
        patch(unittest.mock.patch.object(driver, "_active", _Driver()))
        patch(unittest.mock.patch.object(selector, "benchmark", benchmark))
        patch(unittest.mock.patch.object(selector, "make_precompile_fn", lambda *_, **__: dict))
        for name, value in {
            "benchmark_codegened_module": (fused_ms, ""),
            "benchmark_fused_nodes": (neighbour_ms, ""),
            "compile_kernel": (None, None),
        }.items():
            patch(unittest.mock.patch.object(Scheduler, name, functools.partial(_fusion, value)))
        patch(config.patch(max_autotune=True, compile_threads=1, autotune_local_cache=False))
        yield


def _fusion(value, *_, **__):
    counters["inductor"]["fusions_measured"] += 1
    return value


def compiled(function, *shapes, dtype=torch.bfloat16, strides=None):
    """The code of the function's graph for tensors of these shapes."""
    with fake_tensor.FakeTensorMode() as mode:
        tensors = [
            torch.empty_strided(shape, stride, device="cuda", dtype=dtype)
            if stride
            else torch.empty(shape, device="cuda", dtype=dtype)
            for shape, stride in zip(shapes, strides or [None] * len(shapes), strict=True)
        ]
        module = make_fx(function, select_decomp_table())(*tensors)
        graph = GraphLowering(module)
        with V.set_graph_handler(graph), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            graph.run(*tensors)
            code = graph.codegen()[0]
    return getattr(code, "value", code)


def tag():
    """What the key of a graph names now."""
    module = make_fx(torch.relu)(torch.ones(1))
    return codecache.FxGraphHashDetails(module, [], {}, []).cache_key_tag


class Installed:
    """cubind.inductor with these answers, within, instead of another one."""

    def __init__(self, answers, store="store"):
        self.answers = answers
        self.store = store

    def __enter__(self):
        _install.uninstall()
        running.forget_warnings()
        counters.clear()
        self.session = Session(self.answers, f"cubind.inductor/1:{self.store}", _install._let_go)
        _install._installed.is_wanted = True
        _install._installed.session = self.session
        _install._installed.hooks = Hooks(self.session)
        return self.session

    def __exit__(self, *_):
        _install.uninstall()
