"""The configurations of kernels that Inductor generates and of the user's: its own caches, candidates and
descent, with made-up times."""

import contextlib
import hashlib
import re
import types
import unittest
import unittest.mock

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import inductor_pretended as pretended
import torch
from cubind import _sealing
from cubind.inductor import report
from cubind.inductor._private.kernel import Kernels
from cubind.inductor._question import Choice
from torch._inductor import async_compile, config
from torch._inductor.runtime import triton_heuristics
from torch._inductor.utils import fresh_cache

USERS = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

@triton_heuristics.user_autotune(
    configs=[{{'BLOCK': {values[0]!r}, 'num_warps': 4, 'num_stages': 3}}, {{'BLOCK': {values[1]!r}, 'num_warps': 8, 'num_stages': 3}}],
    inductor_meta={{'kernel_name': 'scale_0', 'coordinate_descent_tuning': True, 'grid_type': 'FixedGrid', 'fixed_grid': ['_0', '_1', '_2'], 'extra_launcher_args': ['_0', '_1', '_2']}},
    triton_meta={{'signature': {{'x': '*fp32', 'n': 'i32'}}, 'device': DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90, major=9, warp_size=32), 'constants': {{}}}},
    filename=__file__,
    custom_kernel=True,
)
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    pass
"""


def time_of(values):
    """Of a configuration, in ms: by chance, and the same each time."""
    return 1 + int(hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:4], 16) / 65536


def values_of(config):
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


class Compiler(contextlib.AbstractContextManager):
    """Triton's, and the GPU. compiled, measured: configurations in order. fails: whether one does."""

    def __init__(self):
        self.compiled, self.measured = [], []
        self.fails = lambda values: False

    def __enter__(self):
        tuner = triton_heuristics.CachingAutotuner
        self._stack = contextlib.ExitStack()
        for patch in (
            unittest.mock.patch.object(tuner, "_precompile_config", lambda _, config: self._compile(config)),
            unittest.mock.patch.object(tuner, "bench", lambda _, launcher, *__, **___: self._time(launcher)),
            unittest.mock.patch(
                "torch._dynamo.device_interface.DeviceGuard", lambda *_: contextlib.nullcontext()
            ),
        ):
            self._stack.enter_context(patch)
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _compile(self, config):
        if self.fails(values_of(config)):
            raise RuntimeError("out of registers")
        self.compiled.append(values_of(config))

        def launcher(*_, **__):
            pass

        told = {"n_regs": 32, "n_spills": 0, "shared": 0, "cache_hash": "", "store_cubin": False}
        for name, value in {"config": config, **told}.items():
            setattr(launcher, name, value)
        kernel = types.SimpleNamespace(hash="", n_regs=32)
        return types.SimpleNamespace(config=config, kernel=kernel, make_launcher=lambda: launcher)

    def _time(self, launcher):
        self.measured.append(values_of(launcher.config))
        return time_of(self.measured[-1])


def pointwise(a, b):
    return torch.relu(a) + b


def rows(a, b):
    return torch.softmax(a * b, -1)


class Chosen(unittest.TestCase):
    def setUp(self):
        self.answers = pretended.Answers()
        self.compiler = self.enterContext(Compiler())

    def sources(self, function, **settings):
        told = {"coordinate_descent_tuning": True, "autotune_local_cache": True, **settings}
        with pretended.gpu(), config.patch(told):
            code = pretended.compiled(function, (4096, 1024), (4096, 1024))
        return re.findall(r"async_compile\.triton\('(\w+)', '''\n(.*?)''', device_str='cuda'\)", code, re.S)

    def launched(self, sources, is_installed=True, **settings):
        """In a process with empty caches: the configurations that are launched."""
        self.compiler.compiled.clear()
        self.compiler.measured.clear()
        given = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(fresh_cache())
            stack.enter_context(pretended.gpu())
            stack.enter_context(config.patch({"autotune_local_cache": True, **settings}))
            if is_installed:
                self.session = stack.enter_context(pretended.Installed(self.answers))
            for name, source in sources:
                tuner = async_compile.AsyncCompile().triton(name, source)
                tuner.run(*range(16), stream=0)
                given.append(values_of(tuner.launchers[0].config))
            self.report = report() if is_installed else ""
        return given

    def test_the_next_process_compiles_the_stored_configuration_and_measures_none(self):
        for function in (pointwise, rows):
            sources = self.sources(function)
            alone = self.launched(sources, is_installed=False)
            measured = list(self.compiler.measured)
            self.assertGreater(len(measured), 3)
            self.assertEqual((self.launched(sources), self.compiler.measured), (alone, measured))
            self.assertEqual((self.launched(sources), self.compiler.measured), (alone, []))
            self.assertEqual(self.compiler.compiled, alone)
            self.assertEqual(self.session.counts.served, len(sources))

    def test_what_is_stored_is_the_configuration_with_its_time(self):
        sources = self.sources(pointwise)
        [values] = self.launched(sources)
        [(question, choice)] = self.answers.offered
        self.assertEqual(choice.values, {**values, "found_by_coordesc": 1})
        self.assertEqual((choice.time_ms, question.what), (time_of(values), sources[0][0]))

    def test_without_inductors_own_cache_it_is_served_at_the_first_launch(self):
        settings = {"autotune_local_cache": False}
        sources = self.sources(pointwise, **settings)
        first = self.launched(sources, **settings)
        self.assertEqual((self.launched(sources, **settings), self.compiler.measured), (first, []))

    def test_ranks_on_other_gpus_of_the_same_kind_have_the_same_question(self):
        [(name, source)] = self.sources(pointwise)
        first = self.launched([(name, source)])
        other = source.replace("type='cuda', index=0", "type='cuda', index=1")
        self.assertNotEqual(other, source)
        self.assertEqual((self.launched([(name, other)]), self.compiler.measured), (first, []))
        changed = source.replace("4194304", "4194305")
        self.launched([(name, changed)])
        self.assertEqual(len(self.answers.stored), 2)

    def test_what_another_process_has_stored_meanwhile_is_taken(self):
        sources = self.sources(pointwise)
        other = {"XBLOCK": 2048, "num_warps": 16, "num_stages": 1}
        stored = Choice(0, 1.0, {**other, "found_by_coordesc": 1}, "5a" * 32)
        with unittest.mock.patch.object(self.answers, "offer", lambda *_: stored):
            self.assertEqual(self.launched(sources), [other])
        self.assertGreater(len(self.compiler.measured), 3)
        self.assertTrue(self.session.may_keep())

    def test_a_stored_configuration_that_fails_here_is_measured_again(self):
        sources = self.sources(pointwise)
        other = {"XBLOCK": 2048, "num_warps": 16, "num_stages": 1}
        [alone] = self.launched(sources, is_installed=False)
        self.compiler.fails = lambda values: values == other
        stored = Choice(0, 1.0, {**other, "found_by_coordesc": 1}, "5a" * 32)
        with unittest.mock.patch.object(self.answers, "ask", lambda _: stored):
            self.assertEqual(self.launched(sources, autotune_local_cache=False), [alone])
        self.assertIn("a kernel's stored configuration fails: RuntimeError: out of registers", self.report)

    def test_a_stored_block_that_inductor_makes_no_code_for_is_not_taken(self):
        sources = self.sources(pointwise)
        [alone] = self.launched(sources, is_installed=False)
        other = {"XBLOCK": 8192, "num_warps": 16, "num_stages": 1, "found_by_coordesc": 1}
        with unittest.mock.patch.object(self.answers, "ask", lambda _: Choice(0, 1.0, other, "5a" * 32)):
            for is_cached in True, False:
                self.assertEqual(self.launched(sources, autotune_local_cache=is_cached), [alone])
                self.assertIn("the stored configuration is none of Inductor's: XBLOCK is 8192", self.report)

    def test_a_sealed_program_measures_nothing(self):
        sources = self.sources(pointwise)
        self.enterContext(unittest.mock.patch.object(_sealing.program, "_mode", "error"))
        with self.assertRaisesRegex(Exception, "triton_poi_.*Inductor would measure"):
            self.launched(sources)
        self.assertEqual(self.compiler.measured, [])

    def test_kernels_of_the_user_are_chosen_alike(self):
        sources = [("scale", USERS.format(values=(128, 256)))]
        first = self.launched(sources)
        self.assertEqual(len(self.compiler.measured), 2)
        self.assertEqual((self.launched(sources), self.compiler.measured), (first, []))

    def test_a_configuration_that_is_no_number_stays_inductors(self):
        sources = [("scale", USERS.format(values=("left", "right")))]
        self.launched(sources)
        self.assertEqual(self.answers.offered, [])
        self.assertIn("1 times Inductor's own: a kernel's configuration is no number", self.report)

    def test_templates_are_not_asked_for(self):
        with pretended.gpu():
            code = pretended.compiled(lambda a, b: a @ b, (64, 128), (128, 256))
        [source] = re.findall(r"async_compile\.triton\('\w+', '''\n(.*?)'''", code, re.S)
        self.assertIn("@triton_heuristics.template(", source)
        with pretended.gpu(), pretended.Installed(self.answers) as session, fresh_cache():
            Kernels(session).compiles("", source)
        self.assertEqual(self.answers.asked, [])
