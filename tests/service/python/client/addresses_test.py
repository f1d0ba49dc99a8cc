"""Which daemon the Python client speaks to, and its words if there is none."""

import os
import pathlib
import shutil
import socket
import tempfile
import types
import unittest
from unittest import mock

import cubind
import grpc
import running
from fake_daemon import FakeDaemon

# As in tests/service/client/client_test.cpp.
WORDS = (
    "failed to connect to all addresses; last error: UNKNOWN: unix:/run/c.sock: No such file or directory",
    'store: PostgreSQL: connection to server at "db" failed: Connection refused',
    "kernel handshake: no candidate for N=1 on h100 has a compiled artifact yet",
    "problem.dims.N: is 0, must be positive",
    "Deadline Exceeded",
    "Socket closed",
    "",
)


class Words(unittest.TestCase):
    """Whether a failed call has the daemon's word."""

    def error(self, code, words, marks, tcp=False):
        """And the address."""
        fake = FakeDaemon(refusal=(code, words), marks=marks, tcp=tcp)
        with fake as daemon, cubind.connect(daemon.address) as client:
            with self.assertRaises(cubind.CubindError) as caught:
                client.get("scale", {"N": 1}, device="x")
            return caught.exception, daemon.address

    def test_a_status_with_the_daemons_mark_is_its_word_and_one_without_it_is_of_the_connection(self):
        for code in set(grpc.StatusCode) - {grpc.StatusCode.OK}:
            for words in WORDS:
                with self.subTest(code=code, words=words):
                    told, _ = self.error(code, words, marks=True)
                    self.assertEqual(str(told), words)
                    lost, address = self.error(code, words, marks=False)
                    self.assertIs(type(lost), type(told))
                    self.assertEqual(lost.field, address)
                    late = code == grpc.StatusCode.DEADLINE_EXCEEDED
                    self.assertIn("no answer within 30 s" if late else f"({words})", lost.cause)
                    missing = code == grpc.StatusCode.UNAVAILABLE
                    self.assertEqual(lost.cause.startswith("no daemon answers there"), missing)

    def test_a_field_that_the_daemon_refuses_is_the_errors_field(self):
        told, _ = self.error(grpc.StatusCode.INVALID_ARGUMENT, WORDS[3], marks=True)
        self.assertEqual((told.field, told.cause), ("problem.dims.N", "is 0, must be positive"))

    def test_what_to_do_without_a_daemon_goes_with_the_kind_of_the_address(self):
        gone = grpc.StatusCode.UNAVAILABLE, "Socket closed"
        for tcp, remedy in (
            (True, "a daemon with TLS has the address tls://HOST:PORT"),
            (False, "kill -CONT"),
        ):
            error, _ = self.error(*gone, marks=False, tcp=tcp)
            self.assertIn(remedy, str(error))
            self.assertIn("CUBIND_ADDRESS", str(error))


class Addresses(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.folder, CUBIND_EMBEDDED="0"))
        os.environ.pop("CUBIND_ADDRESS", None)
        self.socket = pathlib.Path(self.folder, "cubind/cubind.sock")
        self.socket.parent.mkdir()

    def test_no_daemon_and_no_private_one_says_what_was_tried_and_what_to_do(self):
        with self.assertRaises(cubind.UnavailableError) as caught:
            cubind.connect()
        for part in (
            "CUBIND_EMBEDDED=0 forbids a private daemon",
            f"no other daemon was found ({self.socket}: No such file or directory; /run/cubind/cubind.sock: ",
            "`cubind &`",
            "CUBIND_ADDRESS",
        ):
            self.assertIn(part, str(caught.exception))
        with self.assertRaisesRegex(cubind.UnavailableError, "^CUBIND_EMBEDDED=0 forbids"):
            cubind.connect("embedded")

    def test_an_address_without_a_daemon_names_the_three_ways(self):
        with self.assertRaisesRegex(cubind.UnavailableError, "no daemon answers there") as caught:
            cubind.connect(f"unix://{self.folder}/none.sock").status()
        for way in ("`cubind &`", "CUBIND_ADDRESS", 'connect("embedded")'):
            self.assertIn(way, str(caught.exception))
        for address, why in (
            ("localhost", "neither unix:///path"),
            ("unix://", "neither unix:///path"),
            ("localhost:65536", "a port is 1 to 65535"),
            ("localhost:0", "a port is 1 to 65535"),
            ("http://localhost:7600", "is a web address"),
            (f"unix:///{'x' * 107}", "the path has 108 bytes, a socket's at most 107"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, why):
                cubind.connect(address)

    def test_a_socket_counts_only_while_a_daemon_listens_there(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            with self.assertRaisesRegex(cubind.UnavailableError, "the daemon of this socket has ended"):
                cubind.connect()
            listener.listen(0)
            for _ in range(4):  # more than the queue holds: the test accepts none
                with cubind.connect() as client:
                    self.assertEqual(client.address, f"unix://{self.socket}")

    def test_a_socket_in_tmp_that_another_user_made_is_not_used(self):
        me = 4_000_000_000 + os.getpid()  # no account has it
        folder = pathlib.Path(f"/tmp/cubind-{me}")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        owners = {}
        self.enterContext(mock.patch.object(os, "getuid", lambda: me))
        self.enterContext(
            mock.patch.object(pathlib.Path, "lstat", lambda path: types.SimpleNamespace(st_uid=owners[path]))
        )
        os.environ.pop("XDG_RUNTIME_DIR")
        path = folder / "cubind.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(8)
            for owners[folder], owners[path] in ((me, me), (0, 0)):
                with cubind.connect() as client:
                    self.assertEqual(client.address, f"unix://{path}")
            for of_folder, of_socket, foreign in ((1, me, folder), (me, 1, path)):
                owners |= {folder: of_folder, path: of_socket, folder / "embedded": me}
                with self.assertRaisesRegex(cubind.UnavailableError, f"{foreign} belongs to another user"):
                    cubind.connect()
                with cubind.connect(f"unix://{path}") as client:  # who names it, means it
                    self.assertEqual(client.address, f"unix://{path}")
            owners[folder] = 1
            with self.assertRaisesRegex(
                cubind.UnavailableError, f"cannot have its files here: {folder} belongs to another user; XDG_"
            ):
                os.environ.pop("CUBIND_EMBEDDED")
                cubind.connect()
            self.assertFalse((folder / "embedded").exists())

    def test_cubind_is_off_when_the_environment_says_so(self):
        for word in ("0", "false", "No", "off", "1", ""):
            out = running.run_python(
                "import cubind\n"
                "try: cubind.connect('unix:///there')\n"
                "except cubind.UnavailableError as error: print(error)",
                CUBIND=word,
            )
            off = f"CUBIND={word} turns cubind off: unset it to use cubind\n"
            self.assertEqual(out, off if word not in ("1", "") else "")

    def test_the_job_is_that_of_the_launcher(self):
        cases = {
            "mine": {"CUBIND_JOB": "mine", "SLURM_JOB_ID": "17"},
            "slurm-17": {"SLURM_JOB_ID": "17", "TORCHELASTIC_RUN_ID": "run"},
            "torchrun-run": {"TORCHELASTIC_RUN_ID": "run"},
            "": {"TORCHELASTIC_RUN_ID": "none"},
        }
        refusal = grpc.StatusCode.NOT_FOUND, "no such kernel"
        with FakeDaemon(refusal=refusal) as daemon, cubind.connect(daemon.address) as client:
            for expected, environment in cases.items():
                with mock.patch.dict(os.environ, environment, clear=True):
                    self.assertRaises(cubind.NotFoundError, client.get, "scale", {"N": 1}, device="x")
                self.assertEqual(daemon.asked[-1].job, expected)
