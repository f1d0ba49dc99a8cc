"""A process with a time limit."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile

from outcome import counted

GRACE_S = 20  # from the interrupt to the kill: a compile ends first, and the program reports
_LAST = 300  # characters


@dataclasses.dataclass(frozen=True)
class Ended:
    """is_cut: it was interrupted, since its time was over; code: its exit code."""

    output: str
    code: int
    is_cut: bool

    def as_test(self):
        """(counts, failed) as outcome.tests() gives them: the process itself is the test ""."""
        if self.code == 0:
            return counted(passed=1), {}
        if self.is_cut and self.code != -signal.SIGKILL:
            return counted(), {}
        lines = [line for line in self.output.splitlines() if line.strip() and "cubind.triton: " not in line]
        return counted(failed=1), {"": f"exit code {self.code}: {''.join(lines[-1:])[:_LAST]}"}


def run(command, environment, folder, seconds):
    """Ends it, and all that it started, once the time is over."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        is_cut = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            is_cut = True
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        finally:
            _kill_group(process)
        output.seek(0)
        return Ended(output.read(), process.returncode, is_cut)


def _kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
