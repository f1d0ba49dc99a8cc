"""bench/pages: the pages of a filled daemon in Chromium, wide and narrow, light and dark; their pictures."""

import pathlib
import sys
import tempfile
import unittest

import running

sys.path.insert(0, str(running.SOURCE / "bench/pages"))
import browser
import filled
import pictures

MOST_PAINT_MS, MOST_FRAME_MS = 3000, 500  # 2 cores with other tests; `./dev bench pages` measures


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
        of_kernel = [f"/{view}?kernel=rmsnorm_forward" for view in ("report", "stability", "audit")]
        jobs = [
            f"/{view}?{key}={job}"
            for view, key in (("job", "id"), ("report", "job"))
            for job in (failed, done)
        ]
        return ["/", "/kernels", "/wanted", "/records", "/jobs", f"/job?id={running_job}", *of_kernel, *jobs]

    def test_each_page_fits_and_asks_nobody_else(self):
        for path in self.paths():
            for width, dark in ((1280, False), (390, True)):
                with self.subTest(path=path, width=width):
                    page = self.chromium.page(self.daemon.site + path, width=width, dark=dark)
                    self.assertEqual((page.faults, page.elsewhere), ([], []))
                    self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertLess(page.first_paint_ms(), MOST_PAINT_MS)
                    self.assertLess(page.longest_frame_ms(), MOST_FRAME_MS)
                    page.close()

    def test_pictures_can_be_made(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        pictures.draw(self.daemon, self.chromium, folder)
        for name in ("pages.png", "report.png"):
            self.assertEqual((folder / name).read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    unittest.main()
