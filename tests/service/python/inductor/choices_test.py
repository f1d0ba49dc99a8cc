"""What Inductor asks, measures and takes: its own candidates for a GPU, with made-up times."""

import dataclasses
import types
import unittest
import unittest.mock

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import inductor_pretended as pretended
import torch
from cubind import _ranks_agree, _sealing
from cubind.errors import FailedPreconditionError, UnavailableError
from cubind.inductor import _session, report, verify_ranks
from cubind.inductor._private import product as _product
from cubind.inductor._question import Choice
from torch._dynamo.utils import counters
from torch.nn import functional

SHAPES = (64, 128), (128, 256)


def product(a, b):
    return a @ b


def fused(a, b):
    return torch.relu(a @ b)


def measured():
    """How many products, and how many kernels of products with their neighbours."""
    counts = counters["inductor"]
    return counts["select_algorithm_autotune"] + counts["fusions_measured"]


def is_fusion(question):
    return question.what.startswith(("epilogue", "prologue"))


def template(code):
    """Whether a template of Triton's computes the product."""
    return "triton_tem" in code


class Served(unittest.TestCase):
    """setUp: nothing is stored."""

    def setUp(self):
        self.answers = pretended.Answers()
        self.session = self.enterContext(pretended.Installed(self.answers))

    def compiled(self, function=product, *shapes, **options):
        with pretended.gpu(**options):
            return pretended.compiled(function, *(shapes or SHAPES))

    def test_the_first_process_measures_and_stores_and_the_next_measures_nothing(self):
        first = self.compiled()
        self.assertEqual((measured(), len(self.answers.stored)), (1, 1))
        counters.clear()
        with pretended.Installed(self.answers) as session:
            self.assertEqual(self.compiled(), first)
            self.assertEqual((measured(), session.counts.served, len(self.answers.offered)), (0, 1, 1))

    def test_what_is_stored_is_the_fastest_with_its_time(self):
        times = []

        def time(choice):
            times.append(pretended.time_of(choice))
            return times[-1]

        self.compiled(time=time)
        [(question, choice)] = self.answers.offered
        self.assertGreater(len(question.candidates), 10)
        self.assertEqual((choice.time_ms, times[choice.number]), (min(times), min(times)))
        self.assertEqual(question.what, "mm 64x128 by 128x256 bfloat16")
        self.assertEqual(self.session.chosen[question.digest], (question, choice))

    def test_two_products_of_a_graph_with_the_same_question_get_one_choice(self):
        def layers(a, b, c, d):
            return a @ b, c @ d

        code = self.compiled(layers, *SHAPES, *SHAPES)
        self.assertEqual(len(self.answers.stored), 1)
        with pretended.Installed(self.answers) as session:
            self.assertEqual(self.compiled(layers, *SHAPES, *SHAPES), code)
            self.assertEqual((session.counts.served, measured()), (2, 0))

    def test_what_another_process_has_stored_meanwhile_is_taken(self):
        for number in (0, 5):  # the first candidate is torch's kernel
            self.answers = pretended.Answers()
            self.answers.others = lambda question, number=number: number
            with pretended.Installed(self.answers) as session:
                self.assertEqual(template(self.compiled()), number == 5)
                [(question, choice)] = self.answers.offered
                self.assertNotEqual(choice.number, number)
                self.assertEqual(session.chosen[question.digest][1].number, number)
                self.assertTrue(session.may_keep())

    def test_a_stored_candidate_that_fails_here_is_not_taken(self):
        def time(choice):
            return float("inf") if choice.annotations["cubind"].number == 5 else pretended.time_of(choice)

        self.answers.others = lambda question: 5
        self.compiled(time=time)
        [(_, choice)] = self.session.chosen.values()
        self.assertNotEqual(choice.number, 5)
        self.assertFalse(self.session.may_keep())
        self.assertTrue(self.session.may_keep())  # the next graph

    def test_a_stored_candidate_that_has_no_kernel_is_measured_again(self):
        self.compiled()
        with pretended.Installed(self.answers), pretended.gpu():
            original = torch._inductor.kernel_template_choice.KernelTemplateChoice.choice.fget
            served = []

            def choice(candidate):
                if _product.is_served(candidate):
                    served.append(candidate)
                    return None
                return original(candidate)

            target = "torch._inductor.kernel_template_choice.KernelTemplateChoice.choice"
            with unittest.mock.patch(target, property(choice)):
                pretended.compiled(product, *SHAPES)
            self.assertTrue(served)
            self.assertEqual(measured(), 1)

    def test_templates_that_inductor_adds_are_left_out_where_a_choice_is_served(self):
        def choice(stored, number):
            product = _product.Product(None, [], None, stored)
            return types.SimpleNamespace(annotations={"cubind": _product.Mark(product, number)})

        stored = Choice(1, 1.0)
        served, other, asked = choice(stored, 1), choice(stored, 0), choice(None, 1)
        added = types.SimpleNamespace()
        [only_served] = [
            each
            for each in torch._inductor.select_algorithm.get_algorithm_selector_cache().preprocessing_fns
            if getattr(each, "__name__", "") == "_only_served"
        ]
        self.assertEqual(only_served([other, served, added]), [served])
        self.assertEqual(only_served([asked, added]), [asked, added])

    def test_a_sealed_program_measures_nothing(self):
        self.enterContext(unittest.mock.patch.object(_sealing.program, "_mode", "error"))
        with self.assertRaisesRegex(Exception, "SealedError: mm .*Inductor would measure its"):
            self.compiled()
        self.assertEqual(measured(), 0)

    def test_the_report_counts(self):
        self.compiled()
        self.compiled()
        self.assertEqual(
            report(), "cubind.inductor: 1 choices were served, 1 were measured here, 1 of these were stored"
        )


def layers(x, *weights):
    """Two of a transformer, and the head."""
    *weights, head = weights
    rows, width = x.shape
    for *attention, o, up, down in zip(*[iter(weights)] * 6, strict=True):
        heads = [functional.linear(x, weight).view(rows, 4, width // 4) for weight in attention]
        q, k, v = (head.transpose(0, 1) for head in heads)
        scores = torch.softmax((q @ k.transpose(1, 2)).float() / 8, -1).to(x.dtype)
        x = x + functional.linear((scores @ v).transpose(0, 1).reshape(rows, width), o)
        x = x + functional.linear(functional.silu(functional.linear(x, up)), down)
    return functional.linear(x, head)


def in_larger(a, b, c):
    return torch.cat([a @ b, c])


def before(a, b):
    return a.float() @ b.float()


def around(a, b):
    return torch.relu(before(a, b))


def biased(a, b, c):
    return torch.relu(torch.addmm(c, a, b))


def twice(a, b):
    return torch.relu(a @ b), torch.sigmoid(a @ b.sin())


def batches(a, b):
    return torch.relu(a.view(4, 16, 128) @ b.view(4, 128, 64))


class Neighbours(unittest.TestCase):
    """What Inductor decides between a product's choice and its code."""

    def setUp(self):
        self.answers = pretended.Answers()

    def compiled(self, function, *shapes, **options):
        """Its code, and whether its graph may be kept."""
        with pretended.Installed(self.answers) as session, pretended.gpu(**options):
            code = pretended.compiled(function, *shapes)
            self.assertTrue(session.may_keep())
        return code

    def test_the_next_process_has_the_very_code_that_inductor_chose_by_itself(self):
        functions = {
            fused: (), in_larger: ((8, 256),), before: (), around: (), biased: ((256,),), twice: (), batches: ()
        }  # fmt: skip
        codes = set()
        for time in (pretended.time_of, pretended.fastest_extern):
            for fused_ms, neighbour_ms in ((0.5, 2.0), (0.5, 0.4), (5.0, 2.0)):
                told = {"time": time, "fused_ms": fused_ms, "neighbour_ms": neighbour_ms}
                for function, shapes in functions.items():
                    self.answers = pretended.Answers()
                    with torch._inductor.config.patch(prologue_fusion=True):
                        with pretended.gpu(**told):
                            alone = pretended.compiled(function, *SHAPES, *shapes)
                        first, second = (self.compiled(function, *SHAPES, *shapes, **told) for _ in range(2))
                    self.assertEqual((first, second, measured()), (alone, alone, 0))
                    codes.add(alone)
        self.assertGreater(len(codes), 2 * len(functions))

    def test_a_template_that_only_wins_with_its_neighbour_is_stored_with_it(self):
        slow = {"time": pretended.fastest_extern, "fused_ms": 0.5, "neighbour_ms": 2.0}
        self.assertFalse(template(self.compiled(product, *SHAPES, **slow)))
        self.assertTrue(template(self.compiled(fused, *SHAPES, **slow)))
        chosen = {question.what: choice.number for question, choice in self.answers.offered}
        self.assertEqual(chosen["mm 64x128 by 128x256 bfloat16"], 0)
        self.assertGreater(chosen["epilogue of mm 64x128 by 128x256 bfloat16"], 1)

    def test_a_product_that_cannot_be_written_into_a_larger_tensor_is_copied_by_all(self):
        shapes = *SHAPES, (8, 256)
        copied = unittest.mock.patch.object(torch._inductor.ir.MultiTemplateBuffer, "output_plannable", False)
        with copied:
            first = self.compiled(in_larger, *shapes)
        self.assertEqual(self.compiled(in_larger, *shapes), first)
        self.setUp()
        self.assertNotEqual(self.compiled(in_larger, *shapes), first)

    def test_a_decision_that_another_process_has_stored_meanwhile_is_taken(self):
        for time in (pretended.time_of, pretended.fastest_extern):
            codes, numbers = {}, {}
            for fused_ms in (0.5, 5.0):
                self.setUp()
                told = {"time": time, "fused_ms": fused_ms, "neighbour_ms": 2.0}
                codes[fused_ms] = self.compiled(fused, *SHAPES, **told)
                [numbers[fused_ms]] = [
                    choice.number for each, choice in self.answers.offered if is_fusion(each)
                ]
            for fused_ms, other_ms in ((0.5, 5.0), (5.0, 0.5)):
                self.setUp()
                stored = numbers[other_ms]
                self.answers.others = lambda each, stored=stored: stored if is_fusion(each) else None
                told = {"time": time, "fused_ms": fused_ms, "neighbour_ms": 2.0}
                self.assertEqual(self.compiled(fused, *SHAPES, **told), codes[other_ms])
                self.assertNotEqual(codes[fused_ms], codes[other_ms])

    def test_a_process_between_both_choices_of_the_first_one_measures_the_second(self):
        for time in (pretended.time_of, pretended.fastest_extern):
            self.setUp()
            told = {"time": time, "fused_ms": 0.5, "neighbour_ms": 2.0}
            code = self.compiled(fused, *SHAPES, **told)
            [(fusion, choice)] = [(each, choice) for each, choice in self.answers.offered if is_fusion(each)]
            del self.answers.stored[fusion.digest]
            self.assertEqual(self.compiled(fused, *SHAPES, **told), code)
            self.assertEqual(counters["inductor"]["select_algorithm_autotune"], 0)
            self.assertEqual(self.answers.stored[fusion.digest].number, choice.number)

    def test_stored_values_that_are_missing_or_too_large_stop_no_compile(self):
        self.compiled(fused, *SHAPES)
        for question, choice in self.answers.offered:
            for values in {}, *({**choice.values, name: 99} for name in choice.values), {"PLANNABLE": 1}:
                changed = dataclasses.replace(choice, values=values)
                for kept in ({}, self.answers.stored):
                    stored = {**kept, question.digest: changed}
                    with unittest.mock.patch.object(self.answers, "stored", stored), self.subTest(values):
                        self.assertIn("async_compile", self.compiled(fused, *SHAPES))

    def test_a_sealed_program_does_not_measure_them(self):
        self.compiled(fused, *SHAPES)
        fusion = next(question for question, _ in self.answers.offered if is_fusion(question))
        del self.answers.stored[fusion.digest]
        self.enterContext(unittest.mock.patch.object(_sealing.program, "_mode", "error"))
        with self.assertRaisesRegex(Exception, "epilogue of mm .*Inductor would measure its"):
            self.compiled(fused, *SHAPES)

    def test_their_question_is_what_is_computed_and_not_the_names_in_the_graph(self):
        def behind_another(a, b):
            return torch.sin(a), (a @ b) * 2

        def doubled(a, b):
            return (a @ b) * 2

        def tripled(a, b):
            return (a @ b) * 3

        digests = []
        for function in (doubled, behind_another, tripled):
            self.setUp()
            self.compiled(function, *SHAPES)
            digests.append({is_fusion(question): question.digest for question, _ in self.answers.offered})
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[0][False], digests[2][False])
        self.assertNotEqual(digests[0][True], digests[2][True])


class Transformer(unittest.TestCase):
    def test_the_next_process_has_the_very_code_that_inductor_chose_by_itself(self):
        width, inner = 256, 512
        layer = [(width, width)] * 4 + [(inner, width), (width, inner)]
        shapes = [(128, width), *layer, *layer, (1024, width)]
        for time, neighbour_ms in ((pretended.time_of, 0.4), (pretended.fastest_extern, 2.0)):
            with pretended.gpu(time=time, neighbour_ms=neighbour_ms):
                alone = pretended.compiled(layers, *shapes)
                answers = pretended.Answers()
                for _ in range(2):
                    with pretended.Installed(answers) as session:
                        self.assertEqual(pretended.compiled(layers, *shapes), alone)
                        self.assertTrue(session.may_keep())
                self.assertEqual(measured(), 0)
                self.assertGreaterEqual(session.counts.served, 17)


class Ranks(unittest.TestCase):
    def test_the_others_take_what_the_first_one_stores(self):
        answers = pretended.Answers()
        environment = {"RANK": "1", "WORLD_SIZE": "2"}
        with unittest.mock.patch.dict("os.environ", environment), pretended.Installed(answers) as session:

            def sleep(_):
                answers.stored[answers.asked[-1].digest] = Choice(3, 1.0)

            with unittest.mock.patch.object(_session.time, "sleep", sleep), pretended.gpu():
                pretended.compiled(product, *SHAPES)
            self.assertEqual([choice.number for _, choice in session.chosen.values()], [3])
            self.assertEqual((answers.offered, session.may_keep()), ([], True))

    def told(self):
        """What verify_ranks() compares."""
        with unittest.mock.patch.object(_ranks_agree, "verify") as verify:
            verify_ranks()
        return verify.call_args[0][0]

    def test_one_that_has_lost_its_daemon_or_had_none_differs_from_the_others(self):
        answers = pretended.Answers()
        with pretended.Installed(answers), pretended.gpu():
            pretended.compiled(product, *SHAPES)
            served = self.told()
            self.assertEqual(_ranks_agree.compare([served, served], "", ""), 2)
            answers.failure = UnavailableError("no daemon answers there", "unix:///gone")
            with self.assertWarns(RuntimeWarning):
                pretended.compiled(fused, *SHAPES)
            lost = self.told()
        for other in lost, self.told():
            with self.assertRaisesRegex(
                FailedPreconditionError,
                "rank 0 runs cubind.inductor/1:store, rank 1 runs with no daemon's choices",
            ):
                _ranks_agree.compare([served, other], "", "")

    def test_they_wait_once_in_vain(self):
        answers = pretended.Answers()
        environment = {"RANK": "1", "WORLD_SIZE": "2"}
        with unittest.mock.patch.dict("os.environ", environment), pretended.Installed(answers) as session:
            self.enterContext(unittest.mock.patch.object(_session, "_RANK_PATIENCE", 0.01))
            with pretended.gpu():
                pretended.compiled(product, *SHAPES)
                pretended.compiled(fused, *SHAPES)
            self.assertFalse(session._waits)
            self.assertEqual(len(answers.offered), 3)


class Failing(unittest.TestCase):
    def setUp(self):
        self.answers = pretended.Answers()
        self.session = self.enterContext(pretended.Installed(self.answers))

    def test_without_an_answer_inductor_measures_and_one_warning_says_so(self):
        self.answers.failure = UnavailableError("no daemon answers there", "unix:///gone")
        with (
            self.assertWarnsRegex(
                RuntimeWarning, "Inductor measures by itself, without cubind: unix:///gone"
            ),
            pretended.gpu(),
        ):
            pretended.compiled(product, *SHAPES)
        self.assertEqual(measured(), 1)
        self.assertFalse(self.session.may_keep())  # its key names the store
        self.assertEqual(pretended.tag(), "")
        with pretended.gpu():
            pretended.compiled(product, *SHAPES)
        self.assertTrue(self.session.may_keep())

    def test_a_daemon_that_is_slow_at_each_question_is_asked_no_more(self):
        self.enterContext(unittest.mock.patch.multiple(_session, _QUICK=-1.0, _PATIENCE=1.5))
        with self.assertWarnsRegex(RuntimeWarning, "slow calls to the daemon took"), pretended.gpu():
            pretended.compiled(product, *SHAPES)
        self.assertFalse(self.session.may_keep())
        self.assertEqual((measured(), pretended.tag()), (1, ""))

    def test_a_daemon_that_dies_before_the_offer_leaves_the_graph_out_of_the_cache(self):
        def offer(*_):
            raise UnavailableError("the daemon ended", "unix:///gone")

        self.answers.offer = offer
        with self.assertWarns(RuntimeWarning), pretended.gpu():
            pretended.compiled(product, *SHAPES)
        self.assertFalse(self.session.may_keep())


class Questions(unittest.TestCase):
    """Everything that the choice may depend on makes another question."""

    def digest(self, function=product, *shapes, dtype=torch.bfloat16, strides=None):
        answers = pretended.Answers()
        with pretended.Installed(answers), pretended.gpu():
            pretended.compiled(function, *(shapes or SHAPES), dtype=dtype, strides=strides)
        [digest] = [question.digest for question, _ in answers.offered if not is_fusion(question)]
        return digest

    def test_the_same_product_is_the_same_question(self):
        def same(left, right):
            return left @ right

        self.assertEqual(self.digest(), self.digest(same))

    def test_all_others_are_others(self):
        def other_neighbour(a, b):
            return torch.sigmoid(a @ b)

        def rows(a, b):
            return (a @ b).sum(1)

        def columns(a, b):
            return (a @ b).sum(0)

        def before(a, b):
            return torch.relu(torch.sigmoid(a)) @ b

        def other_before(a, b):
            return torch.relu(torch.tanh(a)) @ b

        square = (64, 64), (64, 64)
        found = {
            "": self.digest(),
            "size": self.digest(product, (65, 128), (128, 256)),
            "type": self.digest(dtype=torch.float16),
            "stride": self.digest(strides=((128, 1), (1, 128))),
            "neighbour": self.digest(fused),
            "other neighbour": self.digest(other_neighbour),
            "before": self.digest(before),
            "other before": self.digest(other_before),
            "rows": self.digest(rows, *square),
            "columns": self.digest(columns, *square),
        }
        with unittest.mock.patch.object(torch, "__version__", "2.99"):
            found["version"] = self.digest()
        with unittest.mock.patch("triton.__version__", "3.99"):
            found["triton"] = self.digest()
        with torch._inductor.config.patch(max_autotune_gemm_search_space="EXHAUSTIVE", epilogue_fusion=False):
            found["setting"] = self.digest()
        with unittest.mock.patch.object(pretended.GPU, "multi_processor_count", 114):
            found["gpu"] = self.digest()
        before = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = not before
        self.addCleanup(setattr, torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", before)
        found["reduced precision"] = self.digest()
        self.assertEqual(len(set(found.values())), len(found), found)

    def test_other_candidates_are_another_question(self):
        original = _product.question_of
        seen = []

        def question_of(found, inputs, op_name):
            seen.extend((original(found, inputs, op_name), original(found[:-1], inputs, op_name)))
            return seen[0]

        with unittest.mock.patch.object(_product, "question_of", question_of):
            self.digest()
        self.assertNotEqual(seen[0].digest, seen[1].digest)
