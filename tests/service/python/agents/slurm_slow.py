"""Debian's Slurm on this machine: an agent as a batch job tunes, gets Slurm's signal and hands its job back
with its trials kept, and the next batch job ends it. Needs root, as slurmd does."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from agents_elsewhere import Site, until
from running import PATIENCE, PROGRAMS, SOURCE, WITHOUT_DRIVER, team_files

SBIN = "/usr/sbin"
MISSING = [name for name in ("munged", "slurmctld", "slurmd") if not shutil.which(name, path=SBIN)]
if MISSING or os.getuid() != 0:
    print(f"test skipped: {', '.join(MISSING) or 'root'} is missing: ./dev deps slurm, as root")
    sys.exit(77)

CONFIGURATION = """
ClusterName=cubind
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SchedulerParameters=sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Slurm(contextlib.AbstractContextManager):
    """A cluster of this machine, with munge and files of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-slurm-"))
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir()
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        configuration = self.folder / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                folder=self.folder,
                cores=os.cpu_count(),
                controller_port=free_port(),
                node_port=free_port(),
            )
        )
        self.environment = WITHOUT_DRIVER | {"SLURM_CONF": str(configuration)}
        self._daemons = []
        self._start("munged", "--foreground", "--force", f"--key-file={key}", *self._munge_files())
        until((self.folder / "munge.socket").exists, self.log)
        self._start("slurmctld", "-D", "-c", "-f", configuration)
        self._start("slurmd", "-D", "-f", configuration)
        until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T", check=False), self.log)

    def _munge_files(self):
        munge = self.folder / "munge"
        files = {"socket": self.folder / "munge.socket", "pid-file": munge / "pid", "log-file": munge / "log"}
        return [f"--{name}={file}" for name, file in files.items()] + [f"--seed-file={munge / 'seed'}"]

    def _start(self, name, *arguments):
        with (self.folder / f"{name}.out").open("w") as log:
            command = [f"{SBIN}/{name}", *arguments]
            self._daemons.append(
                subprocess.Popen(
                    command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment
                )
            )

    def run(self, *command, check=True, **environment):
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=self.environment | environment
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.stderr}\n{self.log()}")
        return done.stdout

    def state(self, job):
        return re.search(r"JobState=(\w+)", self.run("scontrol", "show", "job", job))[1]

    def log(self):
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files)

    def __exit__(self, *_):
        self.run("scancel", "--user=root", "--full", check=False)
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Team(contextlib.AbstractContextManager):
    """A daemon with TLS and tokens, as docs/team.md starts it."""

    def __init__(self, folder):
        self.certificate, self.token, files = team_files(folder, "--role", "agent")
        self.site = Site(*files)

    def environment(self, name="first", pace_us=100_000):
        return self.site.agent_environment(name, pace_us) | {
            "CUBIND_ADDRESS": f"tls://127.0.0.1:{self.site.port}",
            "CUBIND_CA_FILE": str(self.certificate),
            "CUBIND_TOKEN_FILE": str(self.token),
            "CUBIND_AGENT": str(PROGRAMS / "cubind-agent"),
            "CUBIND_EXIT_WHEN_IDLE": "5s" if name == "second" else "5m",
        }

    def __exit__(self, *_):
        self.site.__exit__()


class SlurmTest(unittest.TestCase):
    def _submit(self, slurm, environment, *options, table=None):
        script = SOURCE / "deploy" / "slurm" / "cubind-agent.sbatch"
        small = ["--gres=none", "--cpus-per-task=1", "--mem=0", "--chdir", slurm.folder]
        small += ["--output", slurm.folder / "job-%j.out", *options]
        arguments = ["--replay", table] if table else []
        return slurm.run("sbatch", "--parsable", *small, script, *arguments, **environment).strip()

    def test_an_agent_that_gets_a_signal_hands_its_job_back_and_the_next_one_ends_it(self):
        with Slurm() as slurm, Team(slurm.folder) as team:
            table = team.site.folder / "table.json"
            first = self._submit(slurm, team.environment(), "--time=9", table=table)
            until(lambda: "replay" in team.site.ctl("devices"), slurm.log)
            team.site.submit()
            team.site.wait_for_blocks(1)
            slurm.run("scancel", "--signal=TERM", first)
            until(lambda: slurm.state(first) in ENDED, slurm.log)
            self.assertEqual(slurm.state(first), "COMPLETED", slurm.log())
            self.assertNotEqual(team.site.job()["state"], "done")
            kept = len(team.site.measured())
            second = self._submit(slurm, team.environment("second", 0), "--time=9", table=table)
            self.assertEqual(team.site.wait_for_end()["state"], "done")
            self.assertGreater(len(team.site.measured()), kept)
            # A block that takes longer than the agent waits is measured again.
            self.assertLessEqual(team.site.repeated(), 1)
            until(lambda: slurm.state(second) == "COMPLETED", slurm.log)

    def test_the_signal_before_the_time_limit_drains_the_agent(self):
        with Slurm() as slurm, Team(slurm.folder) as team:
            job = self._submit(
                slurm,
                team.environment(),
                "--time=1",
                "--signal=TERM@30",
                table=team.site.folder / "table.json",
            )
            until(lambda: slurm.state(job) in ENDED, slurm.log)
            self.assertEqual(slurm.state(job), "COMPLETED", slurm.log())
            self.assertIn("is leaving", team.site.log())

    def test_an_agent_without_an_address_says_what_to_export(self):
        with Slurm() as slurm, Team(slurm.folder) as team:
            job = self._submit(slurm, team.environment() | {"CUBIND_ADDRESS": ""})
            until(lambda: slurm.state(job) == "FAILED", slurm.log)
            self.assertIn("export it before sbatch", (slurm.folder / f"job-{job}.out").read_text())


if __name__ == "__main__":
    unittest.main()
