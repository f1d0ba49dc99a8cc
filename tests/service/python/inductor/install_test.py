"""Where cubind.inductor begins, and where it leaves torch alone. Needs torch."""

import concurrent.futures
import pathlib
import signal
import tempfile
import unittest
import unittest.mock
import warnings

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import cubind
import fake_daemon
import inductor_pretended as pretended
import running
import torch
from cubind.inductor import _install, install, report
from cubind.inductor._private import gate, product
from torch._dynamo.utils import counters
from torch._functorch import config as functorch
from torch._inductor import codecache, config, ir, select_algorithm
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.choices import InductorChoices
from torch._inductor.fx_passes import pad_mm
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.scheduler import Scheduler
from torch._inductor.template_heuristics.aten import ATenConfigHeuristics
from torch._inductor.template_heuristics.registry import register_template_heuristic
from torch._inductor.utils import fresh_cache

BEGINS = """
import torch, torch._inductor.compile_fx
from cubind.inductor import _install
from torch._inductor.codecache import FxGraphHashDetails
details = FxGraphHashDetails(torch.fx.symbolic_trace(torch.nn.ReLU()), [], {}, [])
print(_install.is_installed(), details.cache_key_tag)
"""


class Gate(unittest.TestCase):
    def setUp(self):
        running.forget_warnings()
        self.addCleanup(_install.uninstall)

    def test_this_torch_has_all(self):
        self.assertEqual(gate.missing(), "")

    def test_each_name_is_missed_and_each_function_with_other_parameters(self):
        for module_name, names in gate._NAMES.items():
            for path, parameters in names.items():
                renamed = {module_name: {f"{path}_": parameters}}
                with unittest.mock.patch.object(gate, "_NAMES", renamed):
                    self.assertEqual(gate.missing(), f"{module_name}.{path}_")
                if parameters is not None:
                    changed = {module_name: {path: f"{parameters} more".strip()}}
                    with unittest.mock.patch.object(gate, "_NAMES", changed):
                        self.assertEqual(gate.missing(), f"{module_name}.{path}")

    def test_a_function_that_is_gone_is_missed(self):
        target = torch._inductor.ir.MultiTemplateBuffer
        self.addCleanup(setattr, target, "finalize_as_triton_caller", target.finalize_as_triton_caller)
        del target.finalize_as_triton_caller
        self.assertEqual(gate.missing(), "torch._inductor.ir.MultiTemplateBuffer.finalize_as_triton_caller")

    def test_a_torch_that_has_none_of_the_modules_is_left_alone(self):
        with (
            unittest.mock.patch.dict(
                "sys.modules", {name: None for name in gate._NAMES if "choices" in name}
            ),
            self.assertWarnsRegex(RuntimeWarning, "has no torch._inductor.choices as cubind knows it"),
        ):
            install(unittest.mock.Mock())
        self.assertEqual(pretended.tag(), "")

    def test_a_program_with_choices_of_its_own_is_left_alone(self):
        with config.patch(inductor_choices_class=InductorChoices):
            with self.assertWarnsRegex(RuntimeWarning, "inductor_choices_class is set"):
                install(unittest.mock.Mock())
            self.assertIs(config.inductor_choices_class, InductorChoices)
        self.assertEqual(report(), "cubind.inductor: nothing was compiled with it")


class Daemons(unittest.TestCase):
    def setUp(self):
        running.forget_warnings()
        self.addCleanup(_install.uninstall)

    def test_the_graphs_of_a_store_have_its_name_until_it_is_uninstalled(self):
        with running.Daemon() as daemon, cubind.connect(daemon.address) as client:
            install(client)
            self.assertRegex(pretended.tag(), r"^cubind.inductor/1:[0-9a-f]{16,}$")
            with torch.compiler.config.patch(cache_key_tag="mine"):
                self.assertRegex(pretended.tag(), r"^mine\+cubind.inductor/1:[0-9a-f]{16,}$")
            _install.uninstall()
        self.assertEqual(pretended.tag(), "")

    def test_uninstall_leaves_every_name_as_it_was(self):
        owners = InductorChoices, codecache.FxGraphCache, codecache.FxGraphHashDetails, ir.MultiTemplateBuffer
        owners += Scheduler, pad_mm, AsyncCompile, CachingAutotuner

        def names():
            return {
                f"{owner.__name__}.{name}": value for owner in owners for name, value in vars(owner).items()
            }

        selector = select_algorithm.get_algorithm_selector_cache()
        before = names(), list(selector.preprocessing_fns), list(selector.feedback_saver_fns)
        with pretended.Installed(pretended.Answers()):
            self.assertNotEqual(names(), before[0])
        self.assertEqual((names(), selector.preprocessing_fns, selector.feedback_saver_fns), before)

    def test_an_absent_and_a_stopped_daemon_leave_torch_alone(self):
        with running.Daemon() as daemon:
            daemon.process.send_signal(signal.SIGSTOP)
            self.addCleanup(daemon.process.send_signal, signal.SIGCONT)
            for address in ("unix:///nowhere/cubind.sock", daemon.address):
                running.forget_warnings()
                says = self.assertWarnsRegex(RuntimeWarning, "Inductor measures by itself, without cubind")
                with cubind.connect(address) as client, says:
                    install(client)
                self.assertEqual(pretended.tag(), "")
            daemon.process.send_signal(signal.SIGCONT)

    def test_so_does_a_daemon_of_another_version(self):
        says = self.assertWarnsRegex(RuntimeWarning, "without cubind: .*a daemon of another version")
        with fake_daemon.FakeDaemon() as daemon, cubind.connect(daemon.address) as client, says:
            install(client)
        self.assertEqual(pretended.tag(), "")

    def check_left_alone(self, breaks, says):
        """After install() breaks(daemon, client) is called: torch is as before, and one warning says why."""

        def product(a, b):
            return a @ b

        shapes = (64, 128), (128, 256)
        with running.Daemon() as daemon, cubind.connect(daemon.address) as client, pretended.gpu():
            alone = pretended.compiled(product, *shapes)
            install(client)
            breaks(daemon, client)
            with warnings.catch_warnings(record=True, action="always") as said:
                codes = [pretended.compiled(product, *shapes) for _ in range(2)]
        self.assertEqual(codes, [alone, alone])
        self.assertRegex(*[str(each.message) for each in said], f"without cubind: .*{says}")
        self.assertEqual(pretended.tag(), "")

    def test_so_does_one_that_does_not_know_the_question(self):
        def breaks(_, client):
            call = client._connection.stream
            client._connection.stream = lambda name, *rest: call(f"{name}OfAnotherVersion", *rest)

        self.check_left_alone(breaks, "another version")

    def test_so_does_one_that_is_killed(self):
        def breaks(daemon, _):
            daemon.kill()

        self.check_left_alone(breaks, "no daemon answers there")


def other_mm(a, b, *, out=None):
    return torch.mm(a, b, out=out)


class OnCpu(unittest.TestCase):
    """Real graphs, kept in Inductor's own cache; a second kernel for products."""

    @classmethod
    def setUpClass(cls):
        cls.other = select_algorithm.ExternKernelChoice(other_mm, None)
        register_template_heuristic(cls.other.uid, None)(ATenConfigHeuristics)
        original = InductorChoices.get_template_configs

        def get_template_configs(self, kernel_inputs, templates, op_name, kwarg_overrides=None):
            return original(self, kernel_inputs, [*templates, cls.other], op_name, kwarg_overrides)

        cls.enterClassContext(
            unittest.mock.patch.object(InductorChoices, "get_template_configs", get_template_configs)
        )
        cls.enterClassContext(unittest.mock.patch.object(product, "is_for_gpu", lambda inputs: True))
        cls.a, cls.b = torch.randn(64, 128), torch.randn(128, 256)

    def setUp(self):
        self.enterContext(fresh_cache())
        self.enterContext(config.patch(max_autotune_gemm_backends="ATEN"))

    def step(self):
        """How often graphs were taken from the cache, were missing there, and candidates were measured."""
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(lambda a, b: a @ b, mode="max-autotune-no-cudagraphs")
        torch.testing.assert_close(compiled(self.a, self.b), self.a @ self.b)
        names = ("fxgraph_cache_hit", "fxgraph_cache_miss", "select_algorithm_autotune")
        return tuple(counters["inductor"][name] for name in names)

    def test_a_graph_is_taken_with_its_own_store_alone(self):
        answers = pretended.Answers()
        with pretended.Installed(answers):
            self.assertEqual((self.step(), len(answers.stored)), ((0, 1, 1), 1))
            self.assertEqual(self.step()[:2], (1, 0))  # a kept graph has the counts of its compile
        self.assertEqual(self.step()[:2], (0, 1))
        with pretended.Installed(answers, "another"):
            self.assertEqual(self.step(), (0, 1, 0))  # and its choice is served

    def test_the_graphs_of_all_threads_have_the_store_and_its_choices(self):
        answers = pretended.Answers()

        def step():
            with config.patch(max_autotune_gemm_backends="ATEN"):  # this thread's
                return self.step()

        with concurrent.futures.ThreadPoolExecutor(1) as other:
            with pretended.Installed(answers):
                self.step()
                self.assertEqual(other.submit(step).result()[:2], (1, 0))
            with pretended.Installed(answers, "another"):
                self.assertEqual(other.submit(step).result(), (0, 1, 0))

    def test_a_graph_that_was_begun_before_the_daemon_was_lost_is_not_kept(self):
        answers = pretended.Answers()

        def lost_by_another_thread(question):
            _install._let_go()

        with pretended.Installed(answers), unittest.mock.patch.object(answers, "ask", lost_by_another_thread):
            self.step()
        with pretended.Installed(answers):
            self.assertEqual(self.step()[0], 0)

    def differing_step(self, session):
        """As where the stored candidate fails."""

        def decide(question, measured):
            session.differs(question, measured.number)
            return measured

        with unittest.mock.patch.object(session, "decide", decide):
            self.step()

    def test_a_graph_with_another_choice_than_the_stored_one_is_not_kept(self):
        with pretended.Installed(pretended.Answers()) as session:
            self.differing_step(session)
            self.assertEqual(self.step()[0], 0)

    def test_nor_is_it_kept_with_its_code_in_the_cache_of_autograd(self):
        installed = pretended.Installed(pretended.Answers())
        with installed as session, functorch.patch(bundled_autograd_cache=True):
            self.differing_step(session)
            for is_kept in (False, True):
                self.step()
                self.assertEqual(counters["aot_autograd"]["autograd_cache_hit"], is_kept)


class Started(unittest.TestCase):
    """In processes that others start."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        running.entry_points(cls.folder)
        (cls.folder / "program.py").write_text(BEGINS)
        cls.daemon = cls.enterClassContext(running.Daemon())

    def run_python(self, *arguments, **environment):
        told = {"CUBIND_INDUCTOR": "1", "CUBIND_ADDRESS": self.daemon.address}
        return running.run_installed(self.folder, arguments, **{**told, **environment})

    def test_the_variable_and_the_module_begin_with_the_first_compile(self):
        for command, value in ((("program.py",), "1"), (("-m", "cubind.inductor", "program.py"), "")):
            ended = self.run_python(*command, CUBIND_INDUCTOR=value)
            self.assertRegex(ended.stdout, "^True cubind.inductor/1:[0-9a-f]+\n$", ended.stderr)

    def test_a_process_that_compiles_nothing_asks_nothing(self):
        program = "import torch; from cubind.inductor import _install; print(_install._installed.hooks)"
        ended = self.run_python("-c", program, CUBIND_ADDRESS="unix:///nowhere/cubind.sock")
        self.assertEqual((ended.stdout, ended.stderr), ("None\n", ""))

    def test_without_a_daemon_one_warning_says_so(self):
        ended = self.run_python("program.py", CUBIND_ADDRESS="unix:///nowhere/cubind.sock")
        self.assertEqual(ended.stdout, "True \n", ended.stderr)
        self.assertEqual(ended.stderr.count("RuntimeWarning: cubind: Inductor measures by itself"), 1)

    def test_without_a_program_the_usage_is_printed(self):
        ended = self.run_python("-m", "cubind.inductor", "--help")
        self.assertIn("python -m cubind.inductor SCRIPT ARGS", ended.stdout)
        self.assertEqual(self.run_python("-m", "cubind.inductor").returncode, 2)
