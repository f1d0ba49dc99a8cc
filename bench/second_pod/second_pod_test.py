"""bench/second_pod: whether its checks can fail, and what a node gives its processes."""

import argparse
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import running
import verdict

second_pod = running.bench("second_pod")
node = second_pod.node

KEYS = 21
RANK = r"""
import json, os, pathlib, sys, time
file = pathlib.Path(sys.argv[-1])
if sys.argv[1] == "fail" and os.environ["RANK"] == "1":
    sys.exit("no GPU is left")
if sys.argv[1] == "pause":
    file.with_suffix(".paused").touch()
    while not file.with_suffix(".go").exists():
        time.sleep(0.01)
    killed = (file.parent / "killed").exists()
else:
    killed = False
print("x.py:1: RuntimeWarning: cubind: the daemon ended", file=sys.stderr)
print("Triton autotuning for function scale,\nwith key as (1,),\nfinished after 0.1s,")
told = {name: os.environ.get(name) for name in ("RANK", "HOME", "CUDA_VISIBLE_DEVICES", "CUBIND_JOB", "MORE")}
file.write_text(json.dumps({"marks_s": {"first_step": time.time()}, "told": told, "killed": killed}))
"""


def choices(first="A"):
    """The first of them may be another one."""
    return [{"kernel": "k", "key": str(i), "configuration": "A" if i else first} for i in range(KEYS)]


def rank(**change):
    made = {
        "marks_s": {"model": 8.0, "first_step": 10.0},
        "compiles": [],
        "tunings": [],
        "launcher_builds_s": [],
        "steps_ms": [900.0] + [20.0] * 79,
        "losses": [9.0] * 80,
        "choices": choices(),
    }
    return made | change


def document(**change):
    """Without a fault, but for the change: {part of cubind: its runs}."""
    run = [rank(), rank()]
    parts = {"first": [run], "new": [run], "warm": [run]}
    judged = [
        {"kernel": "k", "key": str(i), "choices": ["A", "B"], "regrets": [0.001, 0.02]} for i in range(KEYS)
    ]
    sides = {side: dict(parts) for side in ("triton", "shared")}
    return {"killed_at": 50, "judged": judged, "sides": sides | {"cubind": parts | {"lost": [run]} | change}}


class Verdict(unittest.TestCase):
    def faults(self, **change):
        return verdict.summary(document(**change))["faults"]

    def test_a_job_without_a_fault(self):
        self.assertEqual(self.faults(), [])
        late = rank(steps_ms=[900.0] + [20.0] * 60 + [69.0] * 19)
        self.assertEqual(self.faults(lost=[[rank(), late]]), [])

    def test_each_fault_of_a_new_node_is_found(self):
        changes = {
            "2 compiles": rank(compiles=["a", "b"]),
            "1 tunings": rank(tunings=["a"]),
            "ranks disagree on 1 kernels": rank(choices=choices("C")),
            "comes 15 % later than after a warm": rank(marks_s={"model": 8.0, "first_step": 11.5}),
            "1 choices were not judged": rank(choices=choices("C")),
            "1 choices are more than 1 % from the best": rank(choices=choices("B")),
        }
        for told, changed in changes.items():
            with self.subTest(told):
                self.assertIn(told, "\n".join(self.faults(new=[[rank(), changed]])))

    def test_too_few_choices_prove_nothing(self):
        few = rank(choices=choices()[:19])
        (fault,) = self.faults(new=[[few, few]])
        self.assertIn("19 kernels and keys, at least 20 are needed", fault)

    def test_a_slow_step_counts_behind_the_kill_and_not_in_the_warm_up(self):
        late = rank(steps_ms=[900.0] + [20.0] * 60 + [71.0] * 19)
        (fault,) = self.faults(lost=[[rank(), late]])
        self.assertIn("a step took 51.0 ms more than before", fault)

    def test_losses_of_another_model_and_none_at_all_are_found(self):
        for loss in (9.3, float("nan")):
            changed = rank(losses=[loss] * 80)
            (fault,) = self.faults(first=[[changed, changed]])
            self.assertIn("cubind: the mean loss is", fault)

    def test_where_the_shared_folder_is_as_good_it_is_named(self):
        good = verdict.summary(document())["shared_is_as_good"]
        self.assertIn("compiles", good)
        made = document()
        made["sides"]["shared"]["new"] = [[rank(tunings=["a"]), rank(choices=choices("B"))]]
        good = verdict.summary(made)["shared_is_as_good"]
        self.assertNotIn("tunings", good)
        self.assertNotIn("beyond_1_percent", good)
        self.assertNotIn("disagreements", good)

    def test_the_median_of_several_nodes_is_taken_and_the_slowest_rank_counts(self):
        runs = [[rank(), rank(marks_s={"model": 8.0, "first_step": at})] for at in (11.0, 30.0, 10.5)]
        figures = verdict.summary(document(new=runs))["sides"]["cubind"]["new"]
        self.assertEqual(figures["first_step_s_of_each"], [11.0, 30.0, 10.5])
        self.assertEqual((figures["first_step_s"], figures["of_the_step_s"]), (11.0, 3.0))


class Nodes(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "rank.py").write_text(RANK)
        self.program = folder / "rank.py"
        self.node = node.Node(folder / "node", ["GPU-a", "GPU-b"])

    def run_ranks(self, what="end", **others):
        return self.node.run([sys.executable, self.program, what], 3, {"MORE": 1}, 60, **others)

    def test_a_rank_has_a_home_a_gpu_and_nothing_of_the_callers_cubind(self):
        with unittest.mock.patch.dict(os.environ, CUBIND_JOB="another"):
            ran = self.run_ranks()
        told = [each["told"] for each in ran]
        self.assertEqual([each["CUDA_VISIBLE_DEVICES"] for each in told], ["GPU-a", "GPU-b", "GPU-a"])
        self.assertEqual([each["RANK"] for each in told], ["0", "1", "2"])
        self.assertEqual({each["HOME"] for each in told}, {str(self.node.folder / "home")})
        self.assertEqual({(each["CUBIND_JOB"], each["MORE"]) for each in told}, {(None, "1")})
        self.assertEqual([each["tunings"] for each in ran], [["scale"]] * 3)
        self.assertEqual([len(each["warnings"]) for each in ran], [1] * 3)
        self.assertTrue(all(0 < each["marks_s"]["first_step"] < 60 for each in ran))

    def test_all_ranks_wait_at_the_pause_and_go_on(self):
        ran = self.run_ranks("pause", at_pause=(self.node.folder / "killed").touch)
        self.assertEqual([each["killed"] for each in ran], [True] * 3)

    def test_a_rank_that_fails_ends_the_job_with_the_end_of_its_log(self):
        with self.assertRaisesRegex(node.RankFailedError, r"job1\.rank1\.log: exit status 1\nno GPU is left"):
            self.run_ranks("fail")

    def test_ranks_that_do_not_end_are_killed(self):
        with self.assertRaisesRegex(node.RankFailedError, "3 processes did not end in time"):
            self.node.run([sys.executable, self.program, "pause"], 3, {}, 1.0)


class Sides(unittest.TestCase):
    def test_one_that_fails_is_named_and_the_others_are_measured(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        arguments = argparse.Namespace(fla=[], sides=["shared", "triton"], parts=["first"])
        measured = []

        def measure(bench, side):
            measured.append(side)
            if side == "shared":
                raise node.RankFailedError("no GPU is left")

        document = {"errors": {}}
        with (
            unittest.mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="0"),
            unittest.mock.patch.object(second_pod.subprocess, "run"),
            unittest.mock.patch.object(second_pod.Bench, "measure", measure),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            second_pod.Bench(arguments, document, folder).run()
        self.assertEqual((measured, document["errors"]), (["shared", "triton"], {"shared": "no GPU is left"}))
        self.assertIn("shared FAILED: no GPU is left", printed.getvalue())


class CommandLine(unittest.TestCase):
    def test_what_cannot_be_measured_is_refused(self):
        refused = {
            "come in one command with --parts first": ["--sides", "cubind", "--parts", "new"],
            "at least 10 steps": ["--steps", "3"],
        }
        for told, arguments in refused.items():
            with self.subTest(told):
                command = [sys.executable, "-B", second_pod.__file__, "--output", "/nonexistent", *arguments]
                ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertIn(told, ran.stderr)
