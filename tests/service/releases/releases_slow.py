"""The release before this one and this build serve each other's agents and clients, and the daemon of this
build opens a store of that release.

The release before is the latest tag that is an ancestor of the checkout, or the commit that
CUBIND_RELEASE_BEFORE names. It is built in a worktree below the build folder, without a download.
CUBIND_PROGRAMS_BEFORE names a folder with its programs instead."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
NOW = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
TINY_FILES = os.environ["CUBIND_TINY_FILES"]
PATIENCE = 120.0
QUESTION = ("scale", "--problem", "N=4096,K=2,T=f32")


def release_before():
    """The commit; empty: there is none."""
    if commit := os.environ.get("CUBIND_RELEASE_BEFORE"):
        return commit
    tags = subprocess.run(
        ["git", "-C", SOURCE, "describe", "--tags", "--abbrev=0", "HEAD^"], capture_output=True, text=True
    )
    return tags.stdout.strip()


def programs_of(commit):
    """Builds the commit's programs; the next run finds them."""
    tree = NOW.parent / "release-before" / commit.replace("/", "_")
    programs = tree / "build/ci/bin"
    if not (programs / "cubind-worker").is_file():
        if not tree.is_dir():
            subprocess.run(["git", "-C", SOURCE, "worktree", "add", "--detach", tree, commit], check=True)
        with contextlib.suppress(FileExistsError):
            (tree / ".deps").symlink_to((SOURCE / ".deps").resolve())
        names = ("cubind", "cubind-agent", "cubind-worker", "cubindctl")
        subprocess.run([tree / "dev", "build", "ci", *names], cwd=tree, check=True)
    return programs


class Pair(contextlib.AbstractContextManager):
    """A daemon and an agent that plays the tiny kernel's table, each from its own folder of programs."""

    def __init__(self, folder, daemon, agent):
        address = f"unix://{folder}/s"
        self.address = address
        files = ["--db", folder / "store.db", "--socket", folder / "s", "--kernels", folder / "kernels"]
        self.processes = [self.start(daemon / "cubind", *files, "--no-local-agent", "--no-shipped-tables")]
        self.ctl(daemon, "health", "--wait", "60")
        self.processes.append(
            self.start(agent / "cubind-agent", "--address", address, "--replay", folder / "table.json")
        )

    @staticmethod
    def start(*command):
        return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL)

    def ctl(self, programs, *arguments):
        command = [programs / "cubindctl", "--address", self.address, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if run.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: {run.stderr}")
        return run.stdout

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait(PATIENCE)


class ReleaseTest(unittest.TestCase):
    before = None  # the folder of its programs

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-releases-"))
        self.addCleanup(shutil.rmtree, self.folder)
        subprocess.run([TINY_FILES, self.folder], check=True)

    def device(self, pair, ctl):
        """The replay device, once the agent has joined."""
        for _ in range(240):
            devices = json.loads(pair.ctl(ctl, "devices", "--json"))["devices"]
            if offered := [device["label"] for device in devices if device["offered"]]:
                return offered[0]
            with contextlib.suppress(subprocess.TimeoutExpired):
                pair.processes[-1].wait(0.25)
        raise AssertionError("the agent did not join")

    def serve(self, daemon, agent, ctl):
        """Tunes and asks; the answer."""
        with Pair(self.folder, daemon, agent) as pair:
            device = ("--device", self.device(pair, ctl))
            pair.ctl(ctl, "tune", *QUESTION, *device)
            answer = json.loads(pair.ctl(ctl, "get", *QUESTION, *device, "--json"))
            json.loads(pair.ctl(ctl, "status", "--json"))
        self.assertEqual(answer["provenance"]["evidence"], "replayed")
        return answer

    def test_this_daemon_serves_the_agent_and_the_client_before(self):
        self.serve(NOW, self.before, self.before)

    def test_the_daemon_before_serves_this_agent_and_this_client(self):
        self.serve(self.before, NOW, NOW)

    def test_this_daemon_opens_the_store_before_and_answers_the_same(self):
        earlier = self.serve(self.before, self.before, self.before)
        now = self.serve(NOW, NOW, NOW)
        self.assertEqual(now["configuration"], earlier["configuration"])


if __name__ == "__main__":
    if given := os.environ.get("CUBIND_PROGRAMS_BEFORE"):
        ReleaseTest.before = pathlib.Path(given)
    elif commit := release_before():
        ReleaseTest.before = programs_of(commit)
    else:
        print("no tag yet: CUBIND_RELEASE_BEFORE names the commit of the release before", file=sys.stderr)
        sys.exit(77)
    unittest.main()
