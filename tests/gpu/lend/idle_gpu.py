"""Tuning next to an idle process of the same user: it is no other user until it works.

    python tests/gpu/lend/idle_gpu.py

Needs a GPU that no other process uses, torch and the package cubind. NVML must list processes by the numbers
that they have here and tell when they worked; otherwise the script says which is missing and ends with 77.
"""

import contextlib
import ctypes
import sys
import threading
import time
import unittest

import cubind
from beside import SKIPPED, daemon, job, other_process, works

RMSNORM = {"kernel": "rmsnorm_forward", "N": 4096, "D": 4096, "T": "bf16"}
MATMUL = {"kernel": "matmul", "M": 4096, "N": 4096, "K": 4096, "T": "bf16"}


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_stamp", ctypes.c_ulonglong)] + [
        (name, ctypes.c_uint) for name in ("sm", "memory", "encoder", "decoder")
    ]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Nvml:
    """What the worker reads too."""

    NOT_FOUND = 6

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()
        self.device = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def processes(self):
        count = ctypes.c_uint(256)
        found = (Process * 256)()
        list_processes = self.library.nvmlDeviceGetComputeRunningProcesses_v3
        result = list_processes(self.device, ctypes.byref(count), found)
        return [one.pid for one in found[: count.value]] if result == 0 else []

    def samples(self):
        """The result of the call, and (process, seconds ago, SM %) of each sample."""
        count = ctypes.c_uint(4096)
        found = (Sample * 4096)()
        result = self.library.nvmlDeviceGetProcessUtilization(
            self.device, found, ctypes.byref(count), ctypes.c_ulonglong(0)
        )
        now = time.time()
        rows = [(one.pid, round(now - one.time_stamp / 1e6, 1), one.sm) for one in found[: count.value]]
        return result, rows if result == 0 else []

    def tell(self, when):
        print(f"NVML, {when}: processes {self.processes()}, samples {self.samples()}", flush=True)


def missing(nvml):
    """Why these tests cannot run here; "" if they can."""
    with other_process() as other:
        works(other, 3)
        other.stdout.readline()
        nvml.tell("after work of process " + str(other.pid))
        result, samples = nvml.samples()
        if other.pid not in nvml.processes():
            return "NVML does not list the processes on the GPU by their numbers here"
        if result not in (0, Nvml.NOT_FOUND):
            return f"NVML does not tell when processes work (nvmlDeviceGetProcessUtilization: {result})"
        if other.pid not in [process for process, _, _ in samples]:
            return "NVML shows no work of a process that has just worked"
    return ""


class Idle(unittest.TestCase):
    nvml = None

    def setUp(self):
        self.client = cubind.connect(self.enterContext(daemon()), timeout=60)
        self.addCleanup(self.client.close)
        self.other = self.enterContext(other_process())

    @contextlib.contextmanager
    def tuning(self, shape):
        """An event that is set when the problem is tuned; at the end its record must be a good one."""
        done = threading.Event()
        results = []

        def tune():
            results.extend(self.client.tune([shape], progress=False))
            done.set()

        threading.Thread(target=tune, daemon=True).start()
        yield done
        self.assertEqual([(result.state, result.error) for result in results], [("done", "")])
        [record] = self.client.table(shape["kernel"])
        self.assertEqual((record["evidence"], record.get("provisional", False)), ("measured", False))

    def await_tuned(self, done, seconds):
        """Writes what NVML says meanwhile."""
        began = time.monotonic()
        while not done.wait(2) and time.monotonic() < began + seconds:
            self.nvml.tell(f"{time.monotonic() - began:.0f} s later ({job(self.client)['note']})")
        self.assertTrue(done.is_set())

    def await_value(self, name, value):
        """Of the job."""
        until = time.monotonic() + 60
        while (found := job(self.client)[name]) != value and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual(found, value)

    def test_an_idle_process_is_no_other_user(self):
        began = time.monotonic()
        with self.tuning(RMSNORM) as done:
            self.await_tuned(done, 60)
        self.nvml.tell("after a tuning next to an idle process")
        print(f"tuned after {time.monotonic() - began:.1f} s next to process {self.other.pid}")
        self.assertIsNone(self.other.poll())

    def test_a_process_that_works_is_waited_for_until_it_has_been_idle(self):
        works(self.other, 20)
        time.sleep(3)  # NVML tells of it a moment later
        with self.tuning(RMSNORM) as done:
            self.await_value("state", "waiting_for_idle_gpu")
            note = job(self.client)["note"]
            self.nvml.tell(f"while the job waits ({note})")
            self.assertIn(f"process {self.other.pid} uses the GPU", note)
            self.assertIn("leave it idle for", note)
            self.assertEqual(self.other.stdout.readline(), "idle\n")
            self.assertFalse(done.wait(6))
            self.await_tuned(done, 60)

    def test_a_tuning_gives_way_to_a_process_that_works_again(self):
        with self.tuning(MATMUL) as done:
            self.await_value("stage", "screening")
            works(self.other, 5)
            began = time.monotonic()
            self.await_value("state", "waiting_for_idle_gpu")
            print(f"gave way after {time.monotonic() - began:.1f} s: {job(self.client)['note']}")
            self.await_tuned(done, 120)


if __name__ == "__main__":
    Idle.nvml = Nvml()
    if why_not := missing(Idle.nvml):
        print(f"{why_not}: these tests were not run", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
