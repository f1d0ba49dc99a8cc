"""A process that waits lends its GPU: what it says of it, and what a real daemon does, whose replay device is
used by other processes."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import cubind
import grpc
import running
from fake_daemon import FakeDaemon
from tuned_daemon import PROBLEM

# Tunes as the process argv[3], which uses the GPU argv[2] of the daemon argv[1].
LENDER = """
import sys
import cubind, running
address, uuid, pid, host = sys.argv[1:]
with running.using_gpu(uuid=uuid, pid=int(pid), host=host), cubind.connect(address) as client:
    client.tune([{"kernel": "scale", "N": 4096, "K": 2, "T": "f32"}], progress=False)
"""


def own_host():
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


class Context(unittest.TestCase):
    """On the fake driver; the test that makes a context comes last."""

    def synchronizations(self):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.fake_synchronization_count.restype = ctypes.c_size_t
        return driver.fake_synchronization_count()

    def lent(self, lend=None):
        """What a question that waits says of its GPU; None: nothing."""
        with (
            FakeDaemon(refusal=(grpc.StatusCode.NOT_FOUND, "no such kernel")) as daemon,
            cubind.connect(daemon.address) as client,
            self.assertRaises(cubind.NotFoundError),
        ):
            client.get("scale", PROBLEM, device="x", on_miss="wait", lend=lend)
        (request,) = daemon.asked
        return request.lent if request.HasField("lent") else None

    def test_a_process_without_a_context_lends_nothing(self):
        for lend in (None, True, False):
            self.assertIsNone(self.lent(lend))
        self.assertEqual(self.synchronizations(), 0)

    def test_one_with_a_context_lends_the_gpu_after_its_work_has_ended(self):
        context = ctypes.c_void_p()
        ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.assertIsNone(self.lent(False))
        self.assertEqual(self.synchronizations(), 0)
        lent = self.lent()
        self.assertEqual(self.synchronizations(), 1)
        self.assertEqual((lent.pid, lent.host), (os.getpid(), own_host()))
        self.assertEqual(lent.uuid, "GPU-00000000-0000-0000-0000-000000000000")
        self.assertEqual(lent.memory_bytes, 0)


class RealDaemon(unittest.TestCase):
    def setUp(self):
        self.daemon = self.enterContext(running.Daemon())
        self.client = self.enterContext(self.daemon.connect())
        self.device = running.offered_device(self.client)
        self.user = self.other_process()
        self.used_by(self.user)

    def other_process(self):
        process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def used_by(self, *processes, pace_us=0):
        """From the next device worker on."""
        file = self.daemon.folder / "faults.json"
        settings = json.loads(file.read_text())
        settings.update(users=[process.pid for process in processes], pace_us=pace_us)
        file.write_text(json.dumps(settings))

    def uuid(self):
        devices = self.client.status()["devices"]
        table = next(d["facts"]["replay_table"] for d in devices if d["offered"])
        return f"replay-{table[:12]}"

    def lent_by(self, process):
        """As if `process` made the calls."""
        return running.using_gpu(uuid=self.uuid(), pid=process.pid, host=own_host())

    def get(self, **options):
        return self.client.get("scale", PROBLEM, device=self.device, on_miss="wait", **options)

    def jobs(self):
        return json.loads(running.cubindctl(self.daemon.address, "jobs", "--json").stdout)["jobs"]

    def waits(self):
        return any(job["state"] == "waiting_for_idle_gpu" for job in self.jobs())

    def test_a_tune_measures_on_the_gpu_that_its_process_uses(self):
        with self.lent_by(self.user):
            (result,) = self.client.tune([{"kernel": "scale", **PROBLEM}], progress=False)
        self.assertEqual((result.state, result.error), ("done", ""))
        self.assertEqual(self.get().evidence, "replayed")

    def test_a_get_that_waits_lends_the_gpu_unless_it_is_told_not_to(self):
        with self.lent_by(self.user):
            self.assertEqual(self.get(lend=False).evidence, "none")
            self.assertTrue(self.waits())
            self.assertEqual(self.get().evidence, "replayed")

    def test_the_end_of_a_killed_process_ends_its_lend(self):
        self.used_by(self.user, pace_us=50_000)
        arguments = [self.daemon.address, self.uuid(), str(self.user.pid), own_host()]
        lender = subprocess.Popen([sys.executable, "-c", LENDER, *arguments])
        self.addCleanup(lender.wait)
        self.addCleanup(lender.kill)
        self.assertTrue(running.eventually(lambda: any(job["stage"] == "screening" for job in self.jobs())))
        lender.send_signal(signal.SIGKILL)
        self.assertTrue(running.eventually(self.waits))
