"""A bound launch: the driver gets what kernel[grid] gives it, for every kind of call, and Triton itself
launches only where a call differs."""

import gc
import unittest
import unittest.mock
import weakref

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind
import cubind.triton
import triton
import triton.language as tl
import triton_stub as stub
from triton import knobs
from triton.runtime.jit import JITFunction
from triton_stub import grid, scale, tuned


@triton.jit
def mixed(x, y, N, stride, factor, kind: tl.constexpr, bias=None, BLOCK: tl.constexpr = 64):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at * stride, mask=at < N) * factor
    if bias is not None:
        value += tl.load(bias + at, mask=at < N)
    tl.store(y + at, value.to(kind), mask=at < N)


class Launches(stub.Driver):
    """`passed` has all that each launcher is called with."""

    passed = []  # noqa: RUF012

    def launcher_cls(self, source, metadata):
        def launch(x, y, z, stream, function, packed, launch_metadata, enter, leave, *arguments):
            Launches.passed.append(((x, y, z), stream, metadata.hash, packed, arguments))

        return launch


class Case(stub.Case):
    def setUp(self):
        super().setUp()
        Launches.passed.clear()
        stub.driver.set_active(Launches())
        self.ordinary = 0
        run = JITFunction.run

        def counted(*args, **kwargs):
            self.ordinary += not kwargs["warmup"]
            return run(*args, **kwargs)

        self.enterContext(unittest.mock.patch.object(JITFunction, "run", counted))


class Plain(Case):
    def check(self, bound, kernel, *arguments, grid=(3, 2), **named):
        """Both launch the same."""
        Launches.passed.clear()
        kernel[grid](*arguments, **named)
        bound(*arguments, **{name: value for name, value in named.items() if name != "num_warps"})
        first, second = Launches.passed
        self.assertEqual(first, second)

    def test_every_kind_of_call_launches_what_triton_would(self):
        bound = cubind.triton.bind(mixed, (3, 2))
        odd = stub.Tensor((1000,), address=self.x.address + 4)
        half = stub.Tensor((1000,), "float16")
        base = (self.x, self.y, 1000, 1, 2.0, tl.float32)
        calls = [
            base,
            (odd, *base[1:]),
            (half, *base[1:]),
            (self.x, self.y, 1008, 1, 2.0, tl.float32),
            (self.x, self.y, 1, 1, 2.0, tl.float32),
            (self.x, self.y, 1 << 31, 1, 2.0, tl.float32),
            (self.x, self.y, 1 << 63, 1, 2.0, tl.float32),
            (self.x, self.y, -(1 << 31), 1, 2.0, tl.float32),
            (self.x, self.y, 1000, 2, 2.0, tl.float32),
            (self.x, self.y, 1000, True, 2.0, tl.float32),
            (self.x, self.y, 1000, 1, 2, tl.float32),
            (self.x, self.y, 1000, 1, 3.5, tl.float32),
            (self.x, self.y, 1000, 1, 2.0, tl.float16),
            (*base, self.y),
            (*base, None, 128),
        ]
        for _ in range(2):
            for call in calls:
                with self.subTest(call=call):
                    self.check(bound, mixed, *call)

    def test_calls_that_are_alike_need_triton_once(self):
        bound = cubind.triton.bind(mixed, (3,), kind=tl.float32, BLOCK=32)
        for n in (1000, 1001, 1003, 1000):
            bound(self.x, self.y, n, 7, n / 3)
        self.assertEqual(self.ordinary, 1)
        bound(self.y, self.x, 992, 7, 1.0)  # a multiple of 16
        self.assertEqual(self.ordinary, 2)
        self.assertEqual([each[4][2] for each in Launches.passed], [1000, 1001, 1003, 1000, 992])

    def test_constants_are_told_apart_by_their_bits(self):
        @triton.jit
        def fills(y, value: tl.constexpr):
            tl.store(y, value)

        bound = cubind.triton.bind(fills, (1,))
        for value in ("0.0", "-0.0", "nan", "nan", "nan", "inf", "-inf"):
            bound(self.y, float(value))
        self.assertEqual(self.ordinary, 5)

    def test_a_grid_may_be_computed_from_the_arguments(self):
        bound = cubind.triton.bind(mixed, grid, kind=tl.float32)
        for n in (100, 200, 300):
            bound(self.x, y=self.y, N=n, stride=1, factor=1.0)
        self.assertEqual([each[0] for each in Launches.passed], [(2, 1, 1), (4, 1, 1), (5, 1, 1)])

    def test_options_are_those_of_the_binding(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32, num_warps=8)
        for _ in range(2):
            bound(self.x, self.y, 5, 1, 1.0)
        self.assertEqual([each[3][0] for each in Launches.passed], [8, 8])

    def test_keys_with_all_numbers_are_forgotten_before_they_are_too_many(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32)
        with stub.bound_keeps(4):
            for n in range(3, 99, 2):
                bound(self.x, self.y, n, 7, 1.0)
                self.assertLessEqual(len(bound._known), 4)
        self.assertEqual(self.ordinary, 1)

    def test_a_kernel_that_triton_forgets_stays_loaded(self):
        kernel = triton.jit(scale)
        bound = cubind.triton.bind(kernel, (1,), BLOCK=64)
        bound(self.x, self.y, 5, 2.0)
        loaded = weakref.ref(kernel[(1,)](self.x, self.y, 5, 2.0, BLOCK=64))
        kernel.device_caches.clear()
        gc.collect()
        self.assertIsNotNone(loaded())
        bound(self.x, self.y, 5, 2.0)
        self.assertEqual(self.ordinary, 2)

    def test_hooks_are_called_by_tritons_own_launch(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32)
        call = lambda: bound(self.x, self.y, 5, 1, 1.0)  # noqa: E731
        call()
        seen = []
        jit_hook = lambda *args, **kwargs: seen.append("run")  # noqa: E731
        mixed.add_pre_run_hook(jit_hook)
        self.addCleanup(mixed.pre_run_hooks.clear)
        call()
        mixed.pre_run_hooks.clear()
        call()
        self.assertEqual((seen, self.ordinary), (["run"], 2))
        enter = knobs.runtime.launch_enter_hook
        if hasattr(enter, "calls"):
            enter.add(seen.append)
            self.addCleanup(enter.calls.clear)
        else:
            knobs.runtime.launch_enter_hook = seen.append
            self.addCleanup(setattr, knobs.runtime, "launch_enter_hook", None)
        call()
        self.assertEqual(self.ordinary, 3)

    def test_arguments_without_a_key_are_always_tritons(self):
        @triton.jit
        def pairs(x, pair, BLOCK: tl.constexpr):
            tl.store(x + tl.arange(0, BLOCK), pair[0] + pair[1])

        bound = cubind.triton.bind(pairs, (1,), BLOCK=16)
        for pair in ((1, 2), (3, 4)):
            bound(self.x, pair)
        self.assertEqual((self.ordinary, [each[4][1] for each in Launches.passed]), (2, [(1, 2), (3, 4)]))

    def test_an_argument_of_another_kind_is_tritons(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32)
        bound(self.x, self.y, 5, 7, 1.0)
        bound(self.x, self.y, 5, 7, 1.0, self.y)
        bound(self.x, self.y, 5, 7, 1.0, self.y)
        self.assertEqual((self.ordinary, Launches.passed[-1][4][6]), (3, self.y))

    def test_each_device_has_its_own(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32)
        device = 0
        stub.driver.active.get_current_device = lambda: device
        stub.driver.active.get_current_stream = lambda device: device + 7
        for device in (0, 1, 0, 1):  # noqa: B007  read by the driver
            bound(self.x, self.y, 5, 7, 1.0)
        self.assertEqual((self.ordinary, [each[1] for each in Launches.passed]), (2, [7, 8, 7, 8]))

    def test_a_wrong_call_is_a_type_error(self):
        bound = cubind.triton.bind(mixed, (1,), kind=tl.float32)
        for call in (lambda: bound(self.x), lambda: bound(self.x, self.y, 5, 7, 1.0, kind=tl.float16)):
            with self.assertRaises(TypeError):
                call()
        bound(self.x, self.y, 5, 7, 1.0)
        with self.assertRaises(TypeError):
            bound(self.x, self.y, 5)

    def test_what_only_triton_can_launch_is_refused(self):
        hooked = tuned(configs=stub.configurations(128, 256, pre_hook=lambda values: None))
        heuristic = triton.heuristics({"BLOCK": lambda values: 64})(triton.jit(scale))
        for kernel, cause in (
            (hooked, "pre_hook"),
            (heuristic, "around Heuristics"),
            (scale, "around function"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, cause):
                cubind.triton.bind(kernel, grid)


class Autotuned(Case):
    def call(self, bound, n=1000):
        bound(self.x, self.y, n, 2.0)

    def test_the_winner_of_each_key_is_launched(self):
        stub.install(stub.Daemon(1))
        kernel = tuned()
        bound = cubind.triton.bind(kernel, grid)
        for n in (1000, 1000, 500, 500, 1000):
            self.call(bound, n)
        self.assertEqual([each[0][0] for each in Launches.passed], [4, 4, 2, 2, 4])
        self.assertEqual((self.ordinary, stub.Driver.benchmarked), (2, 0))

    def test_triton_tunes_without_a_daemon(self):
        stub.Driver.times[:] = [2.0, 1.0]
        bound = cubind.triton.bind(tuned(), grid)
        for _ in range(3):
            self.call(bound)
        self.assertEqual([each[0][0] for each in Launches.passed[-3:]], [4, 4, 4])
        self.assertEqual((stub.Driver.benchmarked, self.ordinary), (2, 3))  # two of them measured

    def test_what_runs_while_a_daemon_tunes_is_not_kept(self):
        daemon = stub.Daemon(1)
        waiting = stub.Waiting(None)
        daemon.ask = lambda question: question.hint and waiting
        stub.install(daemon)
        bound = cubind.triton.bind(tuned(), grid)
        self.call(bound)
        self.call(bound)
        waiting.found = 1
        for _ in range(3):
            self.call(bound)
        self.assertEqual([each[0][0] for each in Launches.passed], [8, 8, 4, 4, 4])
        self.assertEqual(self.ordinary, 3)

    def test_one_configuration_is_no_choice(self):
        bound = cubind.triton.bind(tuned(configs=stub.configurations(128)), grid)
        self.call(bound)
        self.call(bound)
        self.assertEqual((self.ordinary, [each[0][0] for each in Launches.passed]), (1, [8, 8]))
