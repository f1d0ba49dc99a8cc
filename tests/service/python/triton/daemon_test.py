"""Triton's autotuner with a cubind daemon: what it is asked and told, and what runs meanwhile."""

import gc
import threading
import time
import unittest
import unittest.mock

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind
import cubind.triton
import grpc
import running
import triton_stub as stub
from fake_daemon import FakeDaemon, chosen, pb, tuning, untuned
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.errors import OutOfResources
from triton_asking import PATIENCE, Case
from triton_stub import blocks, tuned


def questions():
    """How many of the process are held."""
    gc.collect()
    return sum(type(each).__name__ == "Question" for each in gc.get_objects())


class Answers(Case):
    def test_a_kernel_that_is_not_known_is_defined_and_its_winner_launched(self):
        daemon = self.fake(chosen(1))
        kernel = tuned()
        self.call(kernel)
        self.call(kernel)
        ((name, (parts,)),) = daemon.defined.items()
        self.assertEqual([request.kernel for request in daemon.asked], [name, name])
        self.assertEqual(len(parts[0].files), 2)
        self.assertEqual((blocks(), stub.Driver.benchmarked), ([4, 4], 0))
        self.assertIn("scale: asked 1, served 1, tuning 0", cubind.triton.report())

    def test_one_that_is_known_needs_no_definition(self):
        daemon = self.fake(chosen(1))
        self.call(tuned())
        self.call(tuned())
        self.install(daemon.address)
        self.call(tuned())
        self.assertEqual((len(daemon.asked), len(daemon.defined)), (3, 1))
        self.assertEqual([len(parts) for parts in daemon.defined.values()], [1])

    def test_one_that_is_known_by_its_hint_needs_no_ttir(self):
        daemon = self.fake(chosen(1))
        self.call(tuned())
        self.install(daemon.address)
        with stub.without_ttir():
            self.call(tuned())
        self.assertIn("scale: asked 1, served 1, tuning 0", cubind.triton.report())

    def test_the_first_configuration_runs_until_the_winner_is_known(self):
        daemon = self.fake(tuning(), patience=0.05)
        kernel = tuned()
        self.call(kernel)
        self.call(kernel)
        self.assertEqual((blocks(), stub.Driver.benchmarked), ([8, 8], 0))
        self.assertIn("served 0, tuning 1", cubind.triton.report())
        daemon.answer = chosen(1)
        self.assertTrue(self.is_served(kernel))
        self.assertEqual((blocks()[-1], stub.Driver.benchmarked), (4, 0))
        self.assertIn("served 1, tuning 0", cubind.triton.report())

    def test_the_winner_is_compiled_before_a_call_runs_it(self):
        daemon = self.fake(tuning(), patience=0.05)
        kernel = tuned(configs=stub.configurations(128, 512, num_warps=2))
        self.call(kernel)
        make_cubin, compiling = CUDABackend.make_cubin, []

        def noted(backend, source, *others):
            compiling.append(threading.current_thread().name)
            return make_cubin(backend, source, *others)

        with unittest.mock.patch.object(CUDABackend, "make_cubin", noted):
            daemon.answer = chosen(1)
            self.assertTrue(self.is_served(kernel))
        self.assertEqual((blocks()[-1], compiling), (2, ["cubind"]))

    def test_a_cubin_that_is_compiled_just_now_is_waited_for(self):
        daemon = self.fake(grpc.StatusCode.UNAVAILABLE, patience=0.05)
        kernel = tuned()
        self.call(kernel)
        daemon.answer = chosen(1)
        self.assertTrue(self.is_served(kernel))

    def test_a_first_configuration_that_cannot_be_launched_is_passed_over(self):
        self.fake(tuning(), patience=0.05)

        def load(tuner, configuration, *call):
            if configuration.kwargs["BLOCK"] == 128:
                raise OutOfResources(1, 0, "shared memory")

        with stub.loads(load):
            self.call(tuned())
        self.assertEqual(blocks(), [4])

    def test_a_winner_that_cannot_be_launched_is_left_to_triton(self):
        self.fake(chosen(1))
        with stub.loads(unittest.mock.Mock(side_effect=OutOfResources(1, 0, "registers"))):
            self.call(tuned())
        self.assertEqual(stub.Driver.benchmarked, 2)

    def test_a_call_may_wait_for_the_tuning(self):
        daemon = self.fake(lambda request: chosen(1) if request.on_miss else tuning(), waits=True)
        self.call(tuned())
        self.assertEqual((daemon.questions(), blocks()), (["serve", "serve", "wait"], [4]))

    def test_calls_of_several_threads_wait_for_their_tunings_at_the_same_time(self):
        both = threading.Barrier(2, timeout=running.PATIENCE)

        def answer(request):
            if not request.on_miss:
                return tuning()
            both.wait()
            return chosen(1)

        self.fake(answer, waits=True)
        kernel = tuned()
        running.together(lambda n: self.call(kernel, n), (1000, 1001))
        self.assertEqual((sorted(blocks()), both.broken), ([4, 4], False))
        self.assertIn("asked 2, served 2", cubind.triton.report())

    def test_a_call_that_waits_asks_at_once_for_what_is_not_compiled_yet(self):
        unavailable = grpc.StatusCode.UNAVAILABLE
        daemon = self.fake(lambda request: chosen(1) if request.on_miss else unavailable, waits=True)
        self.call(tuned())
        self.assertEqual((daemon.questions(), blocks()), (["serve", "serve", "wait"], [4]))

    def test_behind_a_stale_choice_a_job_is_started_that_no_call_waits_for(self):
        stale = chosen(1)
        stale.why = "it was measured with another driver; the question starts no job (tune=never)"
        daemon = self.fake(stale, waits=True)
        self.call(tuned())
        asked = [(request.tune, request.on_miss) for request in daemon.asked]
        self.assertEqual(asked[1:3], [(pb.NEVER, pb.SERVE), (pb.AUTO, pb.SERVE)])
        self.assertEqual(blocks(), [4])

    def test_no_call_waits_for_a_gpu_that_another_one_has_just_waited_for_in_vain(self):
        in_use = tuning("waiting_for_idle_gpu", "process 7 uses the GPU")
        daemon = self.fake(lambda request: in_use if request.on_miss else tuning(), waits=True)
        kernel = tuned()
        for n in (1000, 2000):
            self.call(kernel, n)
        self.assertEqual(daemon.questions().count("wait"), 1)
        self.assertEqual(daemon.asked[-1].tune, pb.AUTO)  # it is tuned some time
        self.assertIn("another process used the GPU within the last minute", cubind.triton.report())
        self.assertEqual(stub.Driver.benchmarked, 4)
        with stub.limit("_NO_WAIT_AFTER_USE", 0.0):
            cubind.triton.uninstall()
            daemon = self.fake(lambda request: in_use if request.on_miss else tuning(), waits=True)
            for n in (3000, 4000):
                self.call(kernel, n)
        self.assertEqual(daemon.questions().count("wait"), 2)

    def test_calls_of_several_threads_wait_for_one_tuning(self):
        kernel = tuned()
        daemon, first, ends = self.waiting(kernel)
        second = threading.Thread(target=self.call, args=(kernel,))
        second.start()
        second.join(0.5)  # it would run the first configuration meanwhile
        ends.set()
        for thread in (first, second):
            thread.join(running.PATIENCE)
        self.assertEqual((daemon.questions(), blocks()), (["serve", "serve", "wait"], [4, 4]))

    def test_a_call_that_waits_is_left_to_triton_if_the_patch_is_taken_out(self):
        _, calling, _ = self.waiting(tuned())
        cubind.triton.uninstall()
        calling.join(PATIENCE)
        self.assertEqual((calling.is_alive(), stub.Driver.benchmarked), (False, 2))

    def test_a_call_that_waits_lends_its_gpu_to_the_job_that_it_starts(self):
        with running.using_gpu(uuid="GPU-7", pid=7, host="here"):
            daemon = self.fake(lambda request: chosen(1) if request.on_miss else tuning(), waits=True)
            self.call(tuned())
        asked = [(request.tune, request.lent.uuid) for request in daemon.asked]
        self.assertEqual(asked, [(pb.NEVER, ""), (pb.NEVER, ""), (pb.AUTO, "GPU-7")])

    def test_a_rank_gets_what_was_measured_after_its_job_began(self):
        pinned = untuned("the generation is pinned")
        self.fake(lambda request: chosen(1) if request.on_miss else pinned, waits=True)
        self.call(tuned())
        self.assertEqual(blocks(), [4])

    def test_an_answered_question_is_let_go_with_its_ttir(self):
        self.fake(chosen(1))
        before = questions()
        self.call(tuned())
        self.assertTrue(running.eventually(lambda: questions() <= before, 5))

    def test_a_question_that_took_too_long_is_asked_no_more(self):
        daemon, before = self.fake(tuning(), patience=0.05), questions()
        with stub.limit("_LONGEST_TUNING", 0.5):
            kernel = tuned()
            self.assertTrue(running.eventually(lambda: self.call(kernel) or stub.Driver.benchmarked == 2))
        self.assertTrue(running.eventually(lambda: questions() <= before, 5))
        asked = len(daemon.asked)
        time.sleep(1.5)  # pending ones are asked about each second
        self.assertEqual(len(daemon.asked), asked)

    def test_a_process_that_does_not_wait_pins_no_generation(self):
        daemon = self.fake(chosen(1))
        with unittest.mock.patch.dict("os.environ", CUBIND_JOB="run-7"):
            self.call(tuned())
        self.assertEqual([request.job for request in daemon.asked], ["", ""])

    def test_a_tuning_that_takes_too_long_leaves_the_call_to_triton(self):
        self.fake(lambda request: time.sleep(2) if request.on_miss else tuning(), waits=True, timeout=0.5)
        self.call(tuned())
        self.assertEqual(stub.Driver.benchmarked, 2)
        self.assertIn("Triton's own: it was not tuned within 0.5 s", cubind.triton.report())

    def test_a_question_that_is_asked_too_late_starts_its_job_and_waits_for_nothing(self):
        daemon = self.fake(grpc.StatusCode.INTERNAL, waits=True, timeout=0.5)
        self.call(tuned())
        time.sleep(0.5)
        daemon.answer = tuning()
        self.assertTrue(running.eventually(lambda: daemon.asked[-1].tune == pb.AUTO))
        asked = len(daemon.asked)
        time.sleep(1.5)  # pending ones are asked about each second
        self.assertEqual((daemon.questions().count("wait"), len(daemon.asked)), (0, asked))

    def test_a_question_that_another_one_kept_from_being_asked_in_time_starts_its_job(self):
        daemon = self.fake(lambda request: time.sleep(2) if request.on_miss else tuning(), waits=True)
        self.asking._timeout = 1.0
        kernels = [tuned(), tuned(configs=stub.configurations(32, 64))]
        running.together(self.call, kernels)
        started = lambda: {request.kernel for request in daemon.asked if request.tune == pb.AUTO}  # noqa: E731
        self.assertTrue(running.eventually(lambda: len(started()) == 2))
        self.assertEqual(stub.Driver.benchmarked, 4)

    def test_what_is_asked_by_its_name_is_waited_for_by_its_name(self):
        daemon = self.fake(lambda request: chosen(1) if request.on_miss else tuning(), waits=True)
        daemon.hinted = unittest.mock.MagicMock(**{"__contains__.return_value": False})  # of a reader
        self.call(tuned())
        self.assertEqual(blocks(), [4])

    def test_ranks_of_a_job_wait_and_name_it(self):
        daemon = self.enterContext(FakeDaemon(lambda request: chosen(1) if request.on_miss else tuning()))
        with unittest.mock.patch.dict("os.environ", WORLD_SIZE="2", CUBIND_JOB="run-7"):
            cubind.triton.install(self.enterContext(cubind.connect(daemon.address)))
            self.addCleanup(cubind.triton.uninstall)
            self.call(tuned())
        asked = daemon.asked[:3]  # others, for cubins, follow
        self.assertEqual({request.job for request in asked}, {"run-7"})
        self.assertEqual((asked[-1].on_miss, blocks()), (pb.WAIT, [4]))

    def test_a_program_alone_waits_too_unless_it_says_serve(self):
        for options, block in (({}, 4), ({"on_miss": "serve"}, 8)):
            daemon = self.enterContext(FakeDaemon(lambda request: chosen(1) if request.on_miss else tuning()))
            with unittest.mock.patch.dict("os.environ", clear=False) as environment:
                environment.pop("WORLD_SIZE", None)
                cubind.triton.install(self.enterContext(cubind.connect(daemon.address)), **options)
            self.addCleanup(cubind.triton.uninstall)
            self.call(tuned())
            self.assertEqual(blocks()[-1], block, options)

    def test_while_a_graph_is_captured_nothing_is_asked_and_what_runs_goes_on(self):
        daemon = self.fake(tuning(), patience=0.05)
        kernel = tuned()
        self.call(kernel)
        daemon.answer = chosen(1)
        with stub.capturing():
            self.assertFalse(running.eventually(lambda: self.call(kernel) or blocks()[-1] == 4, 2))
            self.call(kernel, 500)
        self.assertIn("is first called while a CUDA graph is captured", cubind.triton.report())

    def test_a_forked_child_asks_for_what_its_parent_waits_for(self):
        self.fake(tuning(), patience=0.05)
        kernel = tuned()
        self.call(kernel)
        stub.patch().after_fork()
        self.assertEqual(kernel.cache.asked, {})
        self.asking.after_fork()
        self.call(kernel)
        self.assertEqual((len(kernel.cache.asked), blocks()), (1, [8, 8]))
        self.assertIn("asked 1, served 0, tuning 1", cubind.triton.report())


class Report(Case):
    def test_the_end_of_the_process_tells(self):
        daemon = self.enterContext(FakeDaemon(chosen(1)))
        program = (
            "import triton_stub as stub, cubind, cubind.triton\n"
            "from triton_stub import grid, tuned\n"
            f"client = cubind.connect({daemon.address!r})\n"
            "stub.install_client(client, False, 60.0, 60.0)\n"
            "stub.start()\n"
            "tuned()[grid](stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0)\n"
        )
        told = running.run_python_for_both(["-c", program], CUBIND_REPORT="1").stderr
        self.assertIn("triton_stub.scale: asked 1, served 1, tuning 0", told)

    def test_arguments_that_cannot_be_are_refused(self):
        for arguments, error in (
            ({"on_miss": "fail"}, "neither serve nor wait"),
            ({"timeout": 0}, "timeout"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, error):
                cubind.triton.install(**arguments)
