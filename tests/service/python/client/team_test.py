"""A client with a token reaches a daemon over TLS; without one the error says what to do."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import cubind
from running import PATIENCE, PROGRAMS, Daemon, make_certificate, team_files


class Team(contextlib.AbstractContextManager):
    """A daemon that listens with TLS, and a token for it."""

    def __init__(self, *new):
        self._folder = tempfile.TemporaryDirectory(prefix="cubind-team-")
        self.certificate, self.token, files = team_files(pathlib.Path(self._folder.name), *new)
        self.daemon = Daemon("--listen", "127.0.0.1:0", *files)
        log = self.daemon.folder / "log"
        port = re.search(r"listening on 127.0.0.1:(\d+) with TLS", log.read_text())
        self.address = f"tls://127.0.0.1:{port[1]}"

    def environment(self, **other):
        known = {"CUBIND_TOKEN_FILE": str(self.token), "CUBIND_CA_FILE": str(self.certificate)}
        return mock.patch.dict(os.environ, known | other)

    def __exit__(self, *_):
        self.daemon.__exit__()
        self._folder.cleanup()


class Reader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.team = cls.enterClassContext(Team("--role", "reader"))

    def refused(self, error, text, address=None, **environment):
        with self.team.environment(**environment), cubind.connect(address or self.team.address) as client:
            self.assertRaisesRegex(error, text, client.kernels)

    def test_a_token_and_the_ca_reach_the_daemon_and_nothing_less_does(self):
        with self.team.environment(), cubind.connect(self.team.address) as client:
            self.assertTrue(client.kernels())
        self.refused(cubind.PermissionDeniedError, "CUBIND_TOKEN_FILE", CUBIND_TOKEN_FILE="")
        other = self.team.certificate.with_name("other.pem")
        make_certificate(other, other.with_suffix(".key"))
        self.refused(cubind.UnavailableError, "CUBIND_CA_FILE", CUBIND_CA_FILE=str(other))

    def test_a_certificate_that_is_not_trusted_is_told_in_cubinds_words_alone(self):
        program = f"import cubind; cubind.connect('{self.team.address}').kernels()"
        for command in (
            [PROGRAMS / "cubindctl", "--address", self.team.address, "kernels"],
            [sys.executable, "-c", program],
        ):
            with self.team.environment(CUBIND_CA_FILE=""):
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
            self.assertIn("CUBIND_CA_FILE", done.stderr)
            self.assertNotRegex(done.stderr, r"(?i)handshake failed with|ssl_transport_security")

    def test_a_file_that_holds_no_token_is_refused(self):
        for file in (self.team.certificate, "/nonexistent"):
            self.refused(cubind.InvalidArgumentError, "CUBIND_TOKEN_FILE", CUBIND_TOKEN_FILE=str(file))

    def test_a_token_is_not_sent_in_clear_unless_that_is_allowed(self):
        address = self.team.address.removeprefix("tls://")
        self.refused(cubind.InvalidArgumentError, "CUBIND_INSECURE_TOKEN=1", address)
        allowed = {"CUBIND_INSECURE_TOKEN": "1"}
        self.refused(cubind.UnavailableError, "tls://HOST:PORT", address, **allowed)


class Agents(unittest.TestCase):
    def test_an_agent_takes_its_token_from_a_file_and_ends_with_the_reason_where_it_is_refused(self):
        for role, code, said in (("agent", 0, "works for the daemon"), ("reader", 1, "refuses this agent")):
            with self.subTest(role), Team("--role", role) as team:
                command = [PROGRAMS / "cubind-agent", "--address", team.address, "--token-file", team.token]
                command += ["--replay", team.daemon.folder / "table.json", "--exit-when-idle", "1s"]
                with team.environment(CUBIND_TOKEN_FILE=""):
                    done = subprocess.run(
                        command, check=False, capture_output=True, text=True, timeout=PATIENCE, env=os.environ
                    )
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stderr)

    def test_an_agent_that_does_not_trust_the_daemon_says_that_it_reaches_none(self):
        with Team("--role", "agent") as team, team.environment(CUBIND_CA_FILE=""):
            command = [PROGRAMS / "cubind-agent", "--address", team.address, "--token-file", team.token]
            command += ["--replay", team.daemon.folder / "table.json", "--exit-when-idle", "15s"]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn(f"{team.address}: no daemon answers there", done.stderr)
        self.assertIn("cubindctl health", done.stderr)
