"""Triton's autotuner with a daemon before it: what is asked, what becomes of the answers, and that everything
else stays as it is in Triton."""

import copy
import os
import pickle
import threading
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind.triton
import running
import triton
import triton.language as tl
import triton_stub as stub
from triton.runtime.autotuner import Autotuner
from triton_stub import blocks, grid, scale, tuned

ORIGINAL = Autotuner.run


class Case(stub.Case):
    def install(self, answer=None):
        daemon = stub.Daemon(answer)
        stub.install(daemon)
        return daemon

    def reason(self, kernel, **others):
        """Why a call stays Triton's own."""
        daemon = self.install(1)
        self.call(kernel, **others)
        self.assertEqual(daemon.asked, [])
        self.assertEqual(stub.Driver.benchmarked, len(kernel.configs))
        return cubind.triton.report().split("Triton's own: it ")[1]


class Answers(Case):
    def test_the_chosen_configuration_is_launched_and_nothing_measured(self):
        daemon = self.install(1)
        kernel = tuned()
        self.call(kernel)
        self.call(kernel)
        self.assertEqual(blocks(), [4, 4])
        self.assertEqual((len(daemon.asked), stub.Driver.benchmarked), (1, 0))
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 256})
        self.assertIn("scale: asked 1, served 1", cubind.triton.report())

    def test_each_key_of_triton_is_asked_for_once(self):
        daemon = self.install(0)
        kernel = tuned()
        for n in (1000, 1000, 500, 1000):
            self.call(kernel, n)
        self.assertEqual((blocks(), len(daemon.asked)), ([8, 8, 4, 8], 2))

    def test_without_an_answer_triton_measures(self):
        self.install()
        kernel = tuned()
        stub.Driver.times[:] = [2.0, 1.0]
        self.call(kernel)
        self.assertEqual((blocks()[-1], stub.Driver.benchmarked), (4, 2))

    def test_a_daemon_that_fails_and_one_that_chooses_what_is_not_there_are_named_once(self):
        for answer, words in (
            (OSError("gone"), "OSError: gone"),
            (7, "configuration 7 of 2"),
            (True, "True of 2"),
        ):
            self.install(answer)
            with self.assertWarnsRegex(RuntimeWarning, f"is tuned by Triton.*{words}"):
                running.forget_warnings()
                self.call(tuned())

    def test_threads_ask_with_their_own_arguments(self):
        daemon = self.install(0)
        kernel = tuned()
        sizes = range(100, 1700, 100)
        running.together(lambda n: self.call(kernel, n), sizes)
        asked = [each.key[0] for each in daemon.definitions.values()]
        self.assertEqual(sorted({value for _, value in asked}), sorted(sizes))


class TritonsOwn(Case):
    def test_configurations_with_a_pre_hook(self):
        configs = stub.configurations(128, 256, pre_hook=lambda values: None)
        self.assertIn("has configurations with a pre_hook", self.reason(tuned(configs=configs)))

    def test_hooks_and_a_benchmark_of_the_authors_own(self):
        hook = lambda values, **others: None  # noqa: E731
        self.assertIn("a hook of its own", self.reason(tuned(pre_hook=hook)))
        stub.forget()
        self.assertIn("a hook of its own", self.reason(tuned(post_hook=hook)))
        stub.forget()
        bench = stub.Driver().get_benchmarker()
        self.assertIn("a do_bench of its own", self.reason(tuned(do_bench=bench)))

    def test_a_grid_that_looks_into_a_tensor(self):
        self.x.tolist = lambda: [1]
        self.assertIn("a grid that depends on x.tolist", self.reason(tuned(), grid=lambda v: v["x"].tolist()))

    def test_options_that_reach_files_or_flags(self):
        stub.Driver.times[:] = [1.0, 2.0]
        if "ptx_options" in vars(triton.backends.nvidia.compiler.CUDAOptions()):
            self.assertIn("ptx_options='-O1'", self.reason(tuned(), ptx_options="-O1"))

    def test_an_environment_that_changes_the_code(self):
        with unittest.mock.patch.dict("os.environ", DISABLE_PTXAS_OPT="1"):
            self.assertIn("DISABLE_PTXAS_OPT=true", self.reason(tuned()))

    def test_a_key_that_is_no_plain_value(self):
        kernel = tuned(key=("factor",))
        kernel.fn.run = lambda *args, **kwargs: None
        self.x = stub.Tensor((1000,))
        self.assertIn("has a complex where a number", self.reason(kernel, factor=1j))

    def test_it_is_said_once_and_counted(self):
        self.install(1)
        kernel = tuned(configs=stub.configurations(128, 256, pre_hook=lambda values: None))
        with self.assertWarnsRegex(RuntimeWarning, "scale stays Triton's own") as warned:
            self.call(kernel, 1000)
            self.call(kernel, 500)
        self.assertEqual(len([w for w in warned.warnings if "stays" in str(w.message)]), 1)
        self.assertIn("2 times Triton's own", cubind.triton.report())


class Meaning(Case):
    def test_pruning_decides_what_is_asked(self):
        configs = stub.configurations(64, 128, 256, 512)
        prune = {"early_config_prune": lambda configs, named, **others: configs[1:3]}
        daemon = self.install(1)
        self.call(tuned(configs=configs, prune_configs_by=prune))
        (asked,) = daemon.definitions.values()
        self.assertEqual([each.values for each in asked.configurations], [{"BLOCK": 128}, {"BLOCK": 256}])
        self.assertEqual(blocks(), [4])

    def test_pruning_may_give_an_iterator(self):
        prune = {"early_config_prune": lambda configs, named, **others: iter(configs)}
        daemon = self.install(1)
        self.call(tuned(prune_configs_by=prune))
        self.assertEqual((len(daemon.asked), blocks()), (1, [4]))

    def test_a_performance_model_decides_too(self):
        model = {"perf_model": lambda BLOCK, **others: -BLOCK, "top_k": 2}
        self.install(0)
        self.call(tuned(configs=stub.configurations(64, 128, 256), prune_configs_by=model))
        self.assertEqual(blocks(), [4])

    def test_heuristics_inside_and_outside_are_evaluated_per_configuration(self):
        def padded(x, y, N, factor, EVEN: tl.constexpr, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at) * factor, mask=None if EVEN else at < N)

        even = triton.heuristics({"EVEN": lambda values: values["N"] % values.get("BLOCK", 1) == 0})
        configs = stub.configurations(128, 256)
        inside = triton.autotune(configs, ["N"])(even(triton.jit(padded)))
        outside = even(triton.autotune(configs, ["N"])(triton.jit(padded)))
        for kernel, differ in ((inside, True), (outside, False)):
            daemon = self.install(1)
            self.call(kernel, 640)
            (asked,) = daemon.definitions.values()
            masked = [b"arith.cmpi" in asked.texts[each.ttir] for each in asked.configurations]
            self.assertEqual(masked, [False, differ])
            self.assertEqual(blocks()[-1], 3)

    def test_arguments_by_name(self):
        daemon = self.install(1)
        tuned()[grid](x=self.x, y=self.y, factor=2.0, N=1000)
        (asked,) = daemon.definitions.values()
        self.assertEqual([each.name for each in asked.arguments], ["x", "y", "N", "factor"])
        self.assertEqual(blocks(), [4])

    def test_a_warm_up_compiles_and_asks_nothing(self):
        daemon = self.install(1)
        kernel = tuned()
        self.assertEqual(len(kernel.warmup(self.x, self.y, 1000, 2.0, grid=(1,))), 2)
        self.assertEqual((daemon.asked, blocks()), ([], []))

    def test_reset_and_restore_happen_while_triton_measures_and_not_after_an_answer(self):
        names = {"reset_to_zero": ["y"], "restore_value": ["x"]}
        daemon = self.install(1)
        self.call(tuned(**names))
        self.assertEqual(stub.Driver.events, [])
        (asked,) = daemon.definitions.values()
        self.assertEqual(asked.reset_to_zero, ("y",))
        self.install(None)
        self.call(tuned(**names))
        self.assertEqual(stub.Driver.events, ["zero", "restore", "zero", "restore", "zero"])

    def test_variables_that_the_ir_and_the_options_take_in_make_another_definition(self):
        def product(x, y, N, factor, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
            tl.store(y + at, tl.dot(tl.load(x + at), tl.load(x + at)) * factor)

        daemon = self.install(0)
        found = []
        for changed in ({}, {"TRITON_F32_DEFAULT": "ieee"}, {"TRITON_DEFAULT_FP_FUSION": "0"}):
            with unittest.mock.patch.dict(os.environ, changed):
                self.call(tuned(product, stub.configurations(16, 32)))
            found.append(daemon.definitions[daemon.asked[-1]])
        plain, exact, apart = found
        first = [each.texts[each.configurations[0].ttir] for each in (plain, exact)]
        self.assertEqual([b"inputPrecision = tf32" in text for text in first], [True, False])
        self.assertEqual([each.options.get("enable_fp_fusion") for each in apart.configurations], [False] * 2)
        self.assertEqual(len({stub.spec_of(each).name for each in (plain, exact, apart)}), 3)

    @unittest.skipUnless(hasattr(triton.knobs.autotuning, "listener"), "Triton 3.9")
    def test_the_listener_is_told_of_a_served_choice_as_of_one_that_triton_found(self):
        told = []
        self.addCleanup(setattr, triton.knobs.autotuning, "listener", None)
        triton.knobs.autotuning.listener = lambda **fields: told.append(fields)
        daemon = self.install(1)
        daemon.known.times_ms = [0.01, 0.01, 0.01]
        kernel = tuned()
        self.call(kernel)
        self.call(kernel)
        (served,) = told
        self.assertEqual((served["cache_hit"], served["duration"]), (True, None))
        self.assertEqual(served["configs_timings"], {served["best_config"]: [0.01] * 3})
        self.assertEqual((served["fn"], list(kernel.cache)), (kernel.fn, [served["key"]]))
        self.install(None)
        self.call(tuned())
        self.assertEqual(told[1].keys(), served.keys())

    def test_one_configuration_is_no_choice(self):
        daemon = self.install(0)
        self.call(tuned(configs=stub.configurations(128)))
        self.assertEqual((daemon.asked, blocks()), ([], [8]))


class Patch(Case):
    def test_it_is_taken_back_with_its_choices(self):
        kernel = tuned()
        self.install(1)
        self.call(kernel)
        cubind.triton.uninstall()
        self.assertIs(Autotuner.run, ORIGINAL)
        self.assertEqual((type(kernel.cache), kernel.cache), (dict, {}))
        self.call(kernel)
        self.assertEqual(stub.Driver.benchmarked, 2)

    def test_choices_of_triton_stay(self):
        kernel = tuned()
        self.install()
        self.call(kernel)
        cubind.triton.uninstall()
        self.call(kernel)
        self.assertEqual(stub.Driver.benchmarked, 2)

    def test_a_copy_of_an_autotuner_has_the_choices_and_asks_nothing(self):
        kernel = tuned()
        daemon = self.install(1)
        self.call(kernel)
        for copied in (copy.deepcopy(kernel.cache), pickle.loads(pickle.dumps({"a": kernel.cache}))["a"]):
            self.assertEqual((type(copied), list(copied)), (dict, list(kernel.cache)))
        self.assertEqual(len(daemon.asked), 1)

    def test_a_forked_child_asks_too(self):
        self.install(1)
        patch = stub.patch()
        with patch._lock, patch._capturing:
            child = os.fork()
            if child == 0:
                self.call(tuned())
                os._exit(0 if blocks() == [4] else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_class_with_a_run_of_its_own_is_left_alone(self):
        class Own(Autotuner):
            def run(self, *args, **kwargs):
                return "own"

        self.install(1)
        kernel = Own(triton.jit(scale), ["x"], stub.configurations(128, 256), [], None, None)
        self.assertEqual(kernel[(1,)](self.x), "own")
        self.assertIs(type(kernel.cache), dict)

    def test_a_class_that_calls_tritons_run_is_asked_for(self):
        class Counting(Autotuner):
            def run(self, *args, **kwargs):
                return super().run(*args, **kwargs)

        daemon = self.install(1)
        names = ["x", "y", "N", "factor", "BLOCK"]
        self.call(Counting(triton.jit(scale), names, stub.configurations(128, 256), ["N"], None, None))
        self.assertEqual((len(daemon.asked), blocks()), (1, [4]))

    def test_another_threads_launch_passes_through_while_a_call_is_read(self):
        kernel = tuned()
        daemon = self.install(1)
        entered, may_go = threading.Event(), threading.Event()

        def slow(values):
            if threading.current_thread() is thread and not entered.is_set():
                entered.set()
                may_go.wait(60)
            return grid(values)

        thread = threading.Thread(target=self.call, args=(kernel,), kwargs={"grid": slow})
        thread.start()
        self.assertTrue(entered.wait(60))
        kernel.fn[(3,)](self.x, self.y, 1000, 2.0, BLOCK=128)
        may_go.set()
        thread.join()
        self.assertEqual((sorted(blocks()), len(daemon.asked)), ([3, 4], 1))

    def test_an_error_of_the_kernel_is_tritons(self):
        def refuses(x, y, N, factor, BLOCK: tl.constexpr):
            tl.store(x, no_such_name)  # noqa: F821

        self.install(1)
        with self.assertRaises(triton.CompilationError):
            self.call(tuned(refuses))

    def test_a_later_patch_by_others_stays_over_it(self):
        daemon = self.install(1)
        ours, calls = Autotuner.run, []
        self.addCleanup(setattr, Autotuner, "run", ORIGINAL)

        def run(tuner, *args, **kwargs):
            calls.append(tuner)
            return ours(tuner, *args, **kwargs)

        Autotuner.run = run
        self.call(tuned())
        self.assertEqual((len(calls), len(daemon.asked), blocks()), (1, 1, [4]))
        cubind.triton.uninstall()
        self.assertIs(Autotuner.run, run)
        self.call(tuned())
        self.assertEqual((len(calls), len(daemon.asked)), (2, 1))
