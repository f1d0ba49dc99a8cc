"""A daemon whose address space is limited serves, or ends: with a message, unless gRPC itself aborts."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
SIZES_MIB = (150, 240, 280, 320, 2048)  # in the middle ones gRPC lacks a thread
PATIENCE_S = 20  # on a machine with other work


class AddressSpaceTest(unittest.TestCase):
    def start(self, folder, mib):
        command = ["prlimit", f"--as={mib << 20}", PROGRAMS / "cubind", "--db", folder / f"{mib}.db"]
        command += ["--socket", folder / f"{mib}.sock", "--no-local-agent", "--no-shipped-tables"]
        with open(folder / f"{mib}.log", "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serves(self, folder, mib):
        command = [PROGRAMS / "cubindctl", "health", "--address", f"unix://{folder / f'{mib}.sock'}"]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE_S).returncode == 0

    def test_it_serves_or_ends_with_a_message(self):
        with tempfile.TemporaryDirectory(prefix="cubind-limits-") as name:
            folder = pathlib.Path(name)
            processes = {mib: self.start(folder, mib) for mib in SIZES_MIB}
            end = time.monotonic() + PATIENCE_S
            for mib, process in processes.items():
                with self.subTest(mib=mib):
                    while not (serves := self.serves(folder, mib)) and process.poll() is None:
                        self.assertLess(time.monotonic(), end, "it neither serves nor ends")
                        time.sleep(0.2)
                    if not serves:
                        self.assertNotEqual(process.returncode, 0)
                        if process.returncode != -signal.SIGABRT:
                            self.assertIn("cubind", (folder / f"{mib}.log").read_text())
            self.assertIsNone(processes[2048].poll())


if __name__ == "__main__":
    unittest.main()
