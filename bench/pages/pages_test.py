"""bench/pages: each page in Chromium with what a daemon may have, wide and narrow; the pictures."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import browser
import filled
import pictures
import running
from daemon import Daemon

KERNEL, PROBLEM = "rmsnorm_forward", "N=16384,D=4096,T=bf16"
LISTS = ("/", "/kernels", "/wanted", "/records", "/jobs")
OF_KERNEL = tuple(f"/{view}?kernel={KERNEL}" for view in ("report", "stability", "audit"))
MOST_BUSY_MS = 1500  # loaded, scrolled to its end; times that a person waits: `./dev bench pages`


@unittest.skipUnless(browser.PROGRAM.exists(), f"{browser.PROGRAM} is not on this machine: ./dev deps test")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(filled.Filled(running.PROGRAMS))
        cls.daemon.fill(trials=8)
        cls.chromium = cls.enterClassContext(browser.Browser())

    def paths(self):
        (failed,), done = self.daemon.jobs("failed"), self.daemon.jobs("done")[0]
        running_job = self.daemon.run_job()
        jobs = [
            f"/{view}?{key}={job}"
            for view, key in (("job", "id"), ("report", "job"))
            for job in (failed, done)
        ]
        return [*LISTS, *OF_KERNEL, f"/job?id={running_job}", *jobs]

    def test_each_page_fits_and_asks_nobody_else(self):
        for path in self.paths():
            for width, dark in ((1280, False), (390, True)):
                with self.subTest(path=path, width=width):
                    page = self.chromium.page(self.daemon.site + path, width=width, dark=dark)
                    self.assertEqual((page.faults, page.elsewhere), ([], []))
                    self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertGreater(page.first_paint_ms(), 0)
                    self.assertGreater(page.longest_frame_ms(), 0)
                    self.assertLess(page.busy_ms(), MOST_BUSY_MS)
                    page.close()

    def test_pictures_can_be_made(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        pictures.draw(self.daemon, self.chromium, folder)
        for name in ("pages.png", "report.png"):
            self.assertEqual((folder / name).read_bytes()[:4], b"\x89PNG")


@unittest.skipUnless(browser.PROGRAM.exists(), f"{browser.PROGRAM} is not on this machine: ./dev deps test")
class States(unittest.TestCase):
    """`cubind-web` is a process of its own here, which stays when the daemon goes."""

    def setUp(self):
        port = filled.free_port()
        self.site = f"http://127.0.0.1:{port}"
        self.daemon = self.enterContext(Daemon(running.PROGRAMS, ["--replay", filled.TABLE]))
        self.chromium = self.enterContext(browser.Browser())
        web = subprocess.Popen([running.PROGRAMS / "cubind-web", str(port)], env=self.daemon.environment)
        self.addCleanup(web.wait)
        self.addCleanup(web.terminate)
        filled.await_site(self.site)

    def look(self, answers):
        """Each page has its answer, no error and no request elsewhere."""
        for path, answer in answers.items():
            with self.subTest(path=path):
                page = self.open_until(path, answer)
                self.assertIn(answer, page.text())
                self.assertEqual((page.faults, page.elsewhere), ([], []))
                page.close()

    def open_until(self, path, answer):
        """Pages show a state for a second, and records until the background has read the next ones."""
        until = time.monotonic() + running.PATIENCE
        while answer not in (page := self.chromium.page(self.site + path)).text():
            if time.monotonic() > until:
                break
            page.close()
            time.sleep(0.5)
        return page

    def look_at_a_job(self):
        (job,) = json.loads(self.daemon.call("jobs", "--all", "--json"))["jobs"]
        self.look(
            {
                f"/job?id={job['id']}": "1 of 1 configuration (as many trials as were asked for)",
                f"/report?job={job['id']}": "Of 1 configuration, none failed",
            }
        )

    def test_an_empty_store_then_one_trial_then_six_hundred(self):
        report, stability, audit = OF_KERNEL
        self.look(
            {
                "/": "No process has been given a cubin",
                "/kernels": "No kernel has a record",
                "/wanted": "Nothing is wanted",
                "/records": "No record is stored",
                "/jobs": "No job has run",
                report: "No winner is stored yet",
                stability: "No problem was measured more than once",
            }
        )
        self.daemon.call("tune", KERNEL, "--problem", PROBLEM, "--max-trials", "1", seconds=300)
        one = {
            "/": "It has 1 record of its own",
            "/kernels": KERNEL,
            "/wanted": "Nothing is wanted",
            "/records": PROBLEM,
            "/jobs": PROBLEM,
            report: "Of 1 configuration, none failed",
            stability: "Of 1 problem, 0 were measured more than once",
            audit: "0 of 1 record passed",
        }
        self.look(one)
        self.look_at_a_job()
        self.daemon.call("import", str(filled.TABLE), seconds=300)  # 564 trials of four problems
        self.daemon.call("tune", KERNEL, "--problem", PROBLEM, "--retune", "--max-trials", "36", seconds=300)
        shown = json.loads(self.daemon.call("report", KERNEL, "--json"))["tunings"]
        self.assertEqual(sum(one["trials"] for one in shown), 600)
        records = {"/": "It has 5 records", stability: "Of 5 problems", audit: "of 5 records"}
        self.look(one | {report: "configurations, none failed"} | records)

    def test_a_daemon_that_goes_away_and_comes_back(self):
        pages = {path: self.chromium.page(self.site + path) for path in LISTS}
        headings = {path: page.text("h1") for path, page in pages.items()}
        self.daemon.end()
        for path, page in pages.items():
            self.await_away(page, is_away=True)
            self.assertEqual(page.text("h1"), headings[path])
        for path in OF_KERNEL:
            self.assertIn("The daemon does not answer", self.chromium.page(self.site + path).text("h1"))
        self.daemon.start()
        for page in pages.values():
            self.await_away(page, is_away=False)
        self.look({OF_KERNEL[1]: "No problem was measured"})

    def await_away(self, page, *, is_away):
        until = time.monotonic() + running.PATIENCE
        while page.evaluate("document.getElementById('away').hidden") == is_away:
            self.assertLess(time.monotonic(), until, "the page does not notice")
            time.sleep(0.2)
