"""What cubindctl does with a daemon, by methods of Client."""

import json
import numbers
import pathlib
import tempfile
import unittest

import cubind
import running
from tuned_daemon import PROBLEM, WithTuning

OTHER = {"N": 4096, "K": 3, "T": "f32"}


@numbers.Integral.register
class Integer:
    """A number as NumPy's are, which is none of json's."""

    def __index__(self):
        return 4096


class JudgingDaemon(running.Daemon):
    """Its table has the trials of a source that takes half of the baseline's time."""

    def _tiny_arguments(self):
        arguments = super()._tiny_arguments()
        path = self.folder / "table.json"
        table = json.loads(path.read_text())
        pattern = table["trials"][0]
        for number, time in enumerate((10.0, 20.0)):
            values = {"THREADS": 128, "VECTOR": 1, "CUBIND_BASELINE": number}
            table["trials"].append(
                {
                    **pattern,
                    "kernel": "judged_scale",
                    "configuration": values,
                    "trial": f"{number:064x}",
                    "screening": [{"samples_us": [time] * 3, "sm_mhz": 1980}],
                    "finals": [{"samples_us": [time] * 32, "sm_mhz": 1980}],
                    "verifications": [],
                }
            )
        path.write_text(json.dumps(table))
        return arguments


class Judged(unittest.TestCase):
    def test_a_source_is_judged_by_a_kernel_and_by_a_spec_of_the_caller(self):
        with JudgingDaemon() as daemon, daemon.connect() as client:
            kernels = daemon.folder / "kernels"
            source = (kernels / "scale.cu").read_text().replace("* T(K)", "* factor(K) + 0.0f")  # other code
            for task in ("scale", str(kernels / "scale.json")):
                with self.subTest(task):
                    headers = {"mine.cuh": "__device__ float factor(int k) { return k; }\n"}
                    given = {"headers": headers, "baseline": "THREADS=128,VECTOR=1", "rounds": 16}
                    verdict = client.judge(task, '#include "mine.cuh"\n' + source, [PROBLEM], **given)
                    self.assertEqual(verdict["outcome"], "correct")
                    self.assertAlmostEqual(verdict["gain"], 2, places=1)
                    paths = [file["path"] for file in verdict["source"]]
                    self.assertEqual(paths, ["source.cu", "mine.cuh"])
                    broken = client.judge(task, "// mine", [PROBLEM], grid=["1"], block=["32"])
                    self.assertEqual(broken["outcome"], "refused")
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "is no name of a file"):
                client.judge(str(kernels / "scale.json"), source, [PROBLEM], headers={"a/b.cuh": ""})
            with self.assertRaises(cubind.NotFoundError):
                client.judge("nosuch.json", source, [PROBLEM])


class Commands(WithTuning):
    def printed(self, *arguments):
        return json.loads(running.cubindctl(self.daemon.address, *arguments, "--json").stdout)

    def job(self):
        """The id of the tuning."""
        return next(job["id"] for job in self.client.jobs(ended=True) if job["kind"] == "tune")

    def test_a_winner_is_explained_as_the_command_does(self):
        found = self.client.explain("scale", PROBLEM, device=self.device)
        arguments = "--problem", "N=4096,K=2,T=f32", "--device", self.device
        self.assertEqual(found, self.printed("explain", "scale", *arguments))
        self.assertEqual(found, self.client.explain("scale", N=4096, K=2, T="f32"))
        (tuned,) = self.tuned
        self.assertEqual(found["winner"]["configuration"], tuned.configuration)

    def test_trials_are_those_of_the_table(self):
        trials = self.client.trials("scale")
        self.assertEqual({trial["kernel"] for trial in trials}, {"scale"})
        self.assertIn("correct", {trial["outcome"] for trial in trials})

    def test_a_report_is_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            self.client.report(path, "scale", device=self.device)
            self.assertIn("<!doctype html>", path.read_text())
            self.client.report(path, job=self.job())
            with self.assertRaises(cubind.InvalidArgumentError):
                self.client.report(path, "scale", job=self.job())
            self.client.report(path)

    def test_covered_problems_and_others(self):
        shapes = [{"kernel": "scale", **problem} for problem in (PROBLEM, OTHER)]
        found = self.client.cover(shapes, device=self.device)
        self.assertEqual([each["covered"] for each in found["problems"]], [True, False])
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(shape) + "\n" for shape in shapes)
            file.flush()
            self.assertEqual(self.client.cover(file.name, device=self.device), found)
        others = {"N": Integer(), "K": True, "T": "f32"}
        (found,) = self.client.cover([others], kernel="scale", device=self.device)["problems"]
        self.assertEqual(found["problem"], {"N": 4096, "K": 1, "T": "f32"})
        with self.assertRaisesRegex(cubind.InvalidArgumentError, r": shapes\[1\]: has the names Q"):
            self.client.cover([PROBLEM, {"Q": 5}], kernel="scale")
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "^shapes: has no problem"):
            self.client.cover([])

    def test_records_are_audited_and_verified(self):
        (record,) = self.client.audit("scale", device=self.device)["records"]
        self.assertEqual({check["check"] for check in record["checks"]} & {"reference"}, {"reference"})
        self.assertEqual(self.client.verify("scale")["jobs"], [])  # it is not stale

    def test_jobs_are_listed_and_followed(self):
        self.assertEqual(self.client.jobs(), [])
        (tuned,) = self.tuned
        watched = self.client.watch(self.job(), progress=False)
        self.assertEqual((watched.state, watched.configuration), ("done", tuned.configuration))

    def test_errors_have_the_commands_meaning(self):
        with self.assertRaises(cubind.NotFoundError):
            self.client.explain("no_kernel", PROBLEM)
        with self.assertRaises(cubind.NotFoundError):
            self.client.watch("no_job", progress=False)
        with self.assertRaises(cubind.InvalidArgumentError):
            self.client.explain("scale", N="bf16")

    def test_what_begins_like_an_option_is_none(self):
        for call in (self.client.explain, self.client.audit, self.client.verify):
            with self.subTest(call.__name__), self.assertRaises(cubind.NotFoundError):
                call("--help")
        with self.assertRaises(cubind.CubindError), tempfile.TemporaryDirectory() as folder:
            self.client.report(pathlib.Path(folder, "page.html"), "--all")
        with self.assertRaises(cubind.CubindError):
            self.client.audit("scale", device="--shipped")
