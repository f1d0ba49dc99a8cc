"""How long pages take in a browser, and what open pages cost the callers of the daemon.

usage: ./dev bench pages [--records N] [--seconds S] [--pairs P]

A daemon has N records of one kernel, and cubind-web shows them. `paint_ms` is the time from a page's address
to its first paint in Chromium, the median of five; `longest_frame_ms` the longest time between two frames
while the page is scrolled from its top to its end. `p99_us` is the 99th percentile of a known question, one
at a time, for S seconds: without pages, and with twenty that ask for their news every two seconds; medians of
P runs in turns. The browser and all processes share this machine's cores.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "common"))
import browser  # noqa: E402
import filled  # noqa: E402
from daemon import Daemon  # noqa: E402

PAGES = (
    "/",
    "/kernels",
    "/records",
    "/records?sort=2&down=1",
    "/records?words=N%3D4096",
    "/stability?kernel=rmsnorm_forward",
    "/wanted",
    "/jobs",
)
OPEN_PAGES = 20


class OpenPages:
    """Twenty pages that ask for their news as client/web/live.js does."""

    def __init__(self, site):
        self._site, self._ends = site, threading.Event()
        self._threads = [threading.Thread(target=self._look, args=(i,)) for i in range(OPEN_PAGES)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _look(self, number):
        self._ends.wait(2 * number / OPEN_PAGES)
        page = urllib.request.Request(self._site + ("/", "/kernels", "/records", "/jobs")[number % 4])
        while not self._ends.is_set():
            with contextlib.suppress(urllib.error.HTTPError):  # 304: nothing is new
                reply = urllib.request.urlopen(page)
                reply.read()
                page.add_header("If-None-Match", reply.headers["ETag"])
            self._ends.wait(2)


def looked_at(site, path):
    """A page's times in a browser."""
    with browser.Browser() as chromium:
        page = chromium.page(site + path)
        paints = []
        for _ in range(5):
            page.go(site + path)
            paints.append(page.first_paint_ms())
        return {
            "paint_ms": round(statistics.median(paints), 1),
            "longest_frame_ms": round(page.longest_frame_ms(), 1),
            "faults": page.faults,
        }


def question_p99(bin_dir, daemon, requests, options, seed):
    command = [bin_dir / "lookup_client", daemon.address, requests, str(options.seconds), "1", str(seed)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["p99_us"]


def measured(bin_dir, folder, options):
    port = filled.free_port()
    site = f"http://127.0.0.1:{port}"
    with Daemon(bin_dir, ["--no-local-agent", "--web", str(port)]) as daemon:
        daemon.end()
        (folder / "cubind.db").rename(daemon.store)
        daemon.start()
        filled.await_site(site)
        time.sleep(5)  # until the pages have the records
        pages = {path: looked_at(site, path) for path in PAGES}
        with_pages, without = [], []
        for seed in range(options.pairs):
            without.append(question_p99(bin_dir, daemon, folder / "digest.requests", options, 2 * seed))
            with OpenPages(site):
                with_pages.append(
                    question_p99(bin_dir, daemon, folder / "digest.requests", options, 2 * seed + 1)
                )
    medians = {"without": statistics.median(without), f"with_{OPEN_PAGES}": statistics.median(with_pages)}
    return {"pages": pages, "p99_us": medians, "p99_us_runs": [without, with_pages]}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench pages", description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    preset = os.environ.get("CUBIND_PRESET", "release")
    programs = ["cubind", "cubind-web", "cubindctl", "lookup_bench"]
    subprocess.run([ROOT / "dev", "build", preset, *programs], check=True, stdout=sys.stderr)
    bin_dir = ROOT / "build" / preset / "bin"
    with tempfile.TemporaryDirectory(prefix="cubind-pages.") as name:
        seed = [bin_dir / "lookup_seed", name, str(options.records), "500"]
        subprocess.run(seed, check=True)
        result = measured(bin_dir, pathlib.Path(name), options)
    print(json.dumps({"benchmark": "pages", "records": options.records, **result}, indent=1))


if __name__ == "__main__":
    main()
