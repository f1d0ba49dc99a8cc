"""Tuning on the GPU that the caller uses: its context changes no record, and processes that do not lend the
GPU are waited for.

    python tests/gpu/lend/lend_gpu.py

Needs a GPU that no other process uses, torch and the package cubind.
"""

import contextlib
import json
import subprocess
import sys
import threading
import time
import unittest

import cubind
import cubind.torch
import torch
from beside import SKIPPED, daemon, job, other_process, works

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(SKIPPED)

SHAPES = [{"kernel": "rmsnorm_forward", "N": n, "D": 4096, "T": "bf16"} for n in (128, 4096, 16384)]
# Tunes the problems of argv[2] by the daemon at argv[1] in a process without a context.
BARE = """
import json, sys
import cubind
with cubind.connect(sys.argv[1], timeout=60) as client:
    results = client.tune(json.loads(sys.argv[2]), progress=False)
print(json.dumps({r.problem["N"]: r.time_us for r in results}))
"""


@contextlib.contextmanager
def work():
    """This process works on the GPU."""
    held = torch.ones(4096, 4096, device="cuda")
    ended = threading.Event()

    def multiply():
        while not ended.is_set():
            held @ held
            torch.cuda.synchronize()

    worker = threading.Thread(target=multiply)
    worker.start()
    try:
        time.sleep(3)  # NVML tells of it a moment later
        yield
    finally:
        ended.set()
        worker.join()


def records(client):
    return {row["problem"]["dims"]["N"]: row for row in client.table("rmsnorm_forward")}


class Lend(unittest.TestCase):
    def setUp(self):
        self.client = cubind.connect(self.enterContext(daemon()), timeout=60)
        self.addCleanup(self.client.close)

    def test_0_the_callers_context_changes_no_record(self):
        self.assertFalse(torch.cuda.is_initialized())  # the first test: the other process is alone
        with daemon() as address:
            output = subprocess.run(
                [sys.executable, "-c", BARE, address, json.dumps(SHAPES)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
        alone = {int(n): time_us for n, time_us in json.loads(output.stdout).items()}
        held = torch.ones(4 << 30, device="cuda", dtype=torch.uint8)
        results = self.client.tune(SHAPES, progress=False)
        found = records(self.client)
        for result in results:
            n = result.problem["N"]
            self.assertEqual((result.state, result.error), ("done", ""))
            self.assertEqual((found[n]["evidence"], found[n].get("provisional", False)), ("measured", False))
            print(f"N={n}: alone {alone[n]:.2f} us, next to a context {result.time_us:.2f} us")
            self.assertLess(abs(result.time_us / alone[n] - 1), 0.05)
        del held

    def test_a_process_that_does_not_lend_is_waited_for(self):
        torch.ones(1, device="cuda")
        done = threading.Event()

        def tune():
            self.client.tune(SHAPES[:1], progress=False)
            done.set()

        with other_process() as other:
            works(other, 600)
            threading.Thread(target=tune, daemon=True).start()
            until = time.monotonic() + 60
            while job(self.client)["state"] != "waiting_for_idle_gpu" and time.monotonic() < until:
                time.sleep(0.2)
            print("waits:", job(self.client)["note"])
            self.assertFalse(done.wait(6))
            self.assertEqual(job(self.client)["state"], "waiting_for_idle_gpu")
        self.assertTrue(done.wait(120))

    def test_a_question_that_waits_lends(self):
        torch.ones(1, device="cuda")
        problem = {name: value for name, value in SHAPES[0].items() if name != "kernel"}
        with work():
            unlent = self.client.get("rmsnorm_forward", problem, on_miss="wait", lend=False)
        self.assertEqual(unlent.evidence, "none")
        self.assertEqual(self.client.get("rmsnorm_forward", problem, on_miss="wait").evidence, "measured")

    def test_a_model_is_tuned_in_the_process_that_trains_it(self):
        cubind.torch.use(self.client)
        self.addCleanup(cubind.torch.use, None)
        model = torch.nn.Sequential(torch.nn.RMSNorm(1024), torch.nn.LayerNorm(1024))
        model = model.to("cuda", torch.bfloat16)
        x = torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16)
        expected = model(x)
        cubind.torch.replace(model, verbose=False)
        results = cubind.torch.tune(model, x, progress=False)
        self.assertEqual({result.kernel for result in results}, {
            "rmsnorm_forward", "rmsnorm_backward", "layernorm_forward", "layernorm_backward"
        })  # fmt: skip
        self.assertEqual({result.error for result in results}, {""})
        y = model(x)
        y.sum().backward()
        torch.testing.assert_close(y, expected, rtol=2e-2, atol=2e-2)
        report = cubind.torch.report()
        print(report)
        self.assertEqual(report.count("launched 1"), 4)
        self.assertEqual({row["evidence"] for row in self.client.table()}, {"measured"})


if __name__ == "__main__":
    unittest.main()
