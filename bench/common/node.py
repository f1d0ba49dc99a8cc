"""A node: its own home, temporary folder and caches, and the processes of a job on its GPUs."""

import json
import os
import pathlib
import shutil
import site
import subprocess
import sys
import time

# Of the caller's shell: each would be one more thing that nodes share.
NOT_INHERITED = ("CUBIND", "TRITON", "TORCHINDUCTOR", "XDG_", "SLURM_", "TORCHELASTIC_")
POLL = 0.02  # seconds


class RankFailedError(RuntimeError):
    """A process of a job ended with an error, or did not end."""


class Node:
    """An empty home and temporary folder in `folder`. Rank r uses the GPU r modulo their number."""

    def __init__(self, folder, gpus, first_rank=0):
        self.folder, self.gpus, self.first_rank, self.jobs = pathlib.Path(folder), gpus, first_rank, 0
        for name in ("home", "tmp"):
            (self.folder / name).mkdir(parents=True)

    def remove(self):
        shutil.rmtree(self.folder)

    def environment(self, local_rank, ranks, more):
        """What torchrun would set, and what belongs to the node."""
        rank = self.first_rank + local_rank
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
        kept |= {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONUSERBASE": site.getuserbase(),
            "CUDA_VISIBLE_DEVICES": self.gpus[rank % len(self.gpus)] if self.gpus else "",
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(ranks),
            "TORCHELASTIC_RUN_ID": f"{self.folder.name}-{self.jobs}",
            "TRITON_PRINT_AUTOTUNING": "1",  # triton_counts.py counts what is printed
        }
        return kept | {name: str(value) for name, value in more.items()}

    def run(self, command, ranks, environment, limit, at_pause=None):
        """What each rank wrote to the file that is its last argument: a job's results, in the order of ranks.
        at_pause: called once all ranks have written FILE.paused; they go on when there is FILE.go.

        Raises RankFailedError with the end of the log of a rank that fails, or when `limit` seconds are over.
        """
        self.jobs += 1
        files = [self.folder / f"job{self.jobs}.rank{rank}.json" for rank in range(ranks)]
        job = Job(time.time() + limit)
        try:
            for rank, file in enumerate(files):
                job.start([*command, file], self.environment(rank, ranks, environment), file)
            if at_pause is not None:
                job.wait_for([file.with_suffix(".paused") for file in files])
                at_pause()
                for file in files:
                    file.with_suffix(".go").touch()
            job.wait_for([])
        finally:
            job.kill()
        return [self._result(file, job.started) for file in files]

    def _result(self, file, started):
        """Times are in seconds since the first process of the job was started."""
        result = json.loads(file.read_text())
        result["marks_s"] = {name: at - started for name, at in result["marks_s"].items()}
        log = log_of(file).read_text(errors="replace")
        return result | {"tunings": tunings_of(log), "warnings": warnings_of(log)}


class Job:
    """The processes of one run."""

    def __init__(self, until):
        self.started, self.until, self.processes = time.time(), until, {}

    def start(self, command, environment, file):
        with log_of(file).open("w") as log:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes[process] = log_of(file)

    def wait_for(self, files):
        """Until all files exist; without one, until all processes have ended."""
        while True:
            for process, log in self.processes.items():
                if process.poll() or (files and process.poll() == 0):
                    raise RankFailedError(f"{log.name}: exit status {process.returncode}\n{tail(log)}")
            if files and all(file.exists() for file in files):
                return
            if not files and all(process.poll() == 0 for process in self.processes):
                return
            if time.time() > self.until:
                late = [log for process, log in self.processes.items() if process.poll() is None]
                raise RankFailedError(
                    f"{len(late)} processes did not end in time; {late[0].name}:\n{tail(late[0])}"
                )
            time.sleep(POLL)

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()


def log_of(file):
    return file.with_suffix(".log")


def tail(log):
    return log.read_text(errors="replace")[-3000:]


def tunings_of(log):
    """The kernels that Triton's autotuner says it has tuned, with TRITON_PRINT_AUTOTUNING=1."""
    said = "Triton autotuning for function "
    return [line.removeprefix(said).rstrip(",") for line in log.splitlines() if line.startswith(said)]


def warnings_of(log):
    """What cubind warned of."""
    return [line for line in log.splitlines() if "RuntimeWarning: cubind: " in line]


def python(*arguments):
    return [sys.executable, *arguments]
