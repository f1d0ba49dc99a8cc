"""A process with an empty cache, whose kernels a daemon knows, compiles and tunes nothing on a GPU, and
computes what Triton computes. It prints the times of each kind of process.

    tests=tests/service/python
    PYTHONPATH=build/ci/python:$tests/support:$tests/triton python tests/gpu/triton/cold_cache_gpu.py

Needs a GPU, torch, Triton 3.4 to 3.9 and the package cubind.
"""

import json
import os
import pathlib
import site
import subprocess
import sys
import tempfile
import time
import unittest

import python_found

python_found.require("torch", "triton")
import torch  # noqa: E402
from cubind import programs  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench/common"))
from daemon import Daemon  # noqa: E402

PROGRAM = pathlib.Path(__file__).with_name("cold_cache_program.py")
PATIENCE = 120  # seconds
TUNED = "Triton autotuning for function double"

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(python_found.SKIPPED)


class ColdCache(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.runs = 0

    def start_daemon(self):
        """As docs/triton.md says. Its measurements wait until the GPU has no other user."""
        options, environment = ["--triton-python", sys.executable], programs.environment()
        self.daemon = self.enterContext(
            Daemon(programs.program("cubind").parent, options, environment=environment)
        )

    def settle(self):
        """Until the daemon has done what the process before left it."""
        until = time.monotonic() + PATIENCE
        while jobs := json.loads(self.daemon.call("jobs", "--json"))["jobs"]:
            self.assertLess(time.monotonic(), until, jobs)
            time.sleep(0.1)

    def run_program(self, cache, *under):
        """What it prints, its report and tensors, with its home in `cache`."""
        self.runs += 1
        out, home = self.folder / f"{self.runs}.pt", self.folder / cache
        home.mkdir(exist_ok=True)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("CUBIND", "TRITON"))
        }
        more = {
            "HOME": home,
            "PYTHONUSERBASE": site.getuserbase(),
            "TRITON_CACHE_DIR": home / "triton",
            "TRITON_PRINT_AUTOTUNING": "1",
        }
        if under:
            more |= {"CUBIND_ADDRESS": self.daemon.address, "CUBIND_REPORT": "1"}
        environment = kept | {name: str(value) for name, value in more.items()}
        ran = subprocess.run(
            [sys.executable, *under, PROGRAM, out],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        said = json.loads(ran.stdout.splitlines()[-1])
        print(
            f"{' '.join(under[1:]) or 'Triton':14} {cache:13} {said['seconds']:.2f} s, "
            f"{len(said['compiled'])} compiled"
        )
        return said | {"tuned": TUNED in ran.stdout, "report": ran.stderr, "tensors": torch.load(out)}

    def check(self, tensors):
        """Against torch."""
        x, close = tensors, torch.testing.assert_close
        close(x["masks"], x["floats"][:4000] * 2)
        close(x["dot"][:, :64], x["a"].float() @ x["b"][:, :64].float(), rtol=1e-4, atol=1e-3)
        counts = torch.bincount(x["integers"], minlength=50).int()
        counts[0] = 1  # by the compare-and-swap
        self.assertTrue(torch.equal(x["atomics"], counts))
        self.assertTrue(torch.equal(x["constexpr_functions"], x["halves"][:256]))
        self.assertTrue(torch.equal(x["assembly"], x["integers"][:256] * 8))
        self.assertTrue(torch.equal(x["sorting"], x["integers"][:128].sort().values))
        self.assertEqual(x["index"].item(), x["floats"][:512].argmax().item())
        close(x["scans"], x["floats"][:512].cumsum(0), rtol=1e-5, atol=1e-4)
        close(x["double"], x["floats"] * 2)

    def test_an_empty_cache_compiles_nothing_that_a_daemon_knows(self):
        own = self.run_program("plain")
        self.run_program("plain")
        self.check(own["tensors"])
        self.start_daemon()
        under = ("-m", "cubind.triton")
        first = self.run_program("first", *under)
        self.check(first["tensors"])
        self.settle()
        served = self.run_program("second", *under)
        self.assertEqual((served["compiled"], served["tuned"]), ([], False), served["report"])
        self.assertEqual(set(served["found"]), set(own["compiled"]))
        self.check(served["tensors"])
        for name, value in own["tensors"].items():
            self.assertTrue(torch.equal(value, served["tensors"][name]), name)
        self.assertLess(served["seconds"], own["seconds"])
        self.run_program("second", *under)


if __name__ == "__main__":
    unittest.main()
