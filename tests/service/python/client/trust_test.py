"""A client with a trust file takes answers that a trusted key has signed for its question, and no others."""

import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import random
import subprocess
import tempfile
import unittest
from unittest import mock

import cubind
import grpc
from running import PATIENCE, PROGRAMS, Daemon, cubindctl, messages

PUBLIC = "RWSTusczmS7QH5L2It51vEC1qhlIWfNQ4lGb1GLMXmc9CFvB2yiwD7i8"
OTHER_PUBLIC = "RWRXmk7R/dcvzSjCN97mqbYmDDkQ6KLubNToe/OXguxzdHzrviIj333a"
SECRET = (
    "untrusted comment: minisign encrypted secret key\n"
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAk7rHM5ku0B9gRKtB9hEFsMXpwyDciHRse1RA"
    "eqR0df/o0gT50m84SZL2It51vEC1qhlIWfNQ4lGb1GLMXmc9CFvB2yiwD7i8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
)


class Served(contextlib.AbstractContextManager):
    """A daemon that has measured two problems, and one that serves a bundle of them."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-trust-"))
        (self.folder / "acme.key").write_text(SECRET)
        self.trust = self.trusting(PUBLIC)
        self.maker = Daemon()
        client = cubind.Client(self.maker.address, PATIENCE)
        client.tune(
            [{"N": 4096, "K": 2, "T": "f32"}, {"N": 4096, "K": 3, "T": "f32"}], kernel="scale", progress=False
        )
        self.label = client.status()["devices"][0]["label"]
        self.address = f"unix://{self.folder}/cubind.sock"
        self.process = None
        self.serve(7)

    def trusting(self, key, expires="2099-01-01", namespaces="*"):
        file = self.folder / f"trust-{key[-4:]}-{expires}-{len(namespaces)}"
        file.write_text(f"{key} acme {expires} {namespaces}\n")
        file.chmod(0o600)
        return file

    def serve(self, serial):
        self.stop()
        bundle = self.folder / f"{serial}.bundle"
        terms = ["--key", self.folder / "acme.key", "--issuer", "acme", "--serial", str(serial), "--replayed"]
        terms += ["--expires", "2098-12-31", "--kernels", self.maker.folder / "kernels"]
        cubindctl(self.maker.address, "bundle", "create", "-o", bundle, *terms)
        paths = ["--socket", self.folder / "cubind.sock", "--db", self.folder / f"{serial}.db"]
        self.process = subprocess.Popen(
            [PROGRAMS / "cubind", "--bundle", bundle, "--trust", self.trust, *paths],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        cubindctl(self.address, "health", "--wait", "30")

    def client(self, trust=None):
        return cubind.Client(self.address, PATIENCE, trust=trust or self.trust)

    def get(self, client, **problem):
        return client.get("scale", **({"N": 4096, "K": 2, "T": "f32"} | problem), device=self.label)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def __exit__(self, *_):
        self.stop()
        self.maker.__exit__()


class Between(contextlib.AbstractContextManager):
    """Hands calls on to the daemon at an address; change(reply) to a GetVariant, which may give the bytes
    that go on instead."""

    def __init__(self, address, change):
        self._channel = grpc.insecure_channel(address.replace("unix://", "unix:"))
        self._change = change
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, call):
        if call.method.endswith("/GetVariant"):
            return grpc.unary_unary_rpc_method_handler(self._get_variant)
        return grpc.unary_stream_rpc_method_handler(
            lambda request, _: self._channel.unary_stream(call.method)(request)
        )

    def _get_variant(self, request, _):
        answer = self._channel.unary_unary("/cubind.v1.Cubind/GetVariant")(request)
        reply = messages().GetVariantReply.FromString(answer)
        changed = self._change(reply)
        return changed if isinstance(changed, bytes) else reply.SerializeToString()

    def __exit__(self, *_):
        self._server.stop(0).wait()
        self._channel.close()


class TrustTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = cls.enterClassContext(Served())
        home = {"XDG_DATA_HOME": str(cls.served.folder / "data")}
        cls.enterClassContext(mock.patch.dict(os.environ, home))

    def refused(self, error, text, client, **problem):
        with self.assertRaisesRegex(error, text):
            self.served.get(client, **problem)

    def altered(self, change):
        """What a client says of a reply that was changed on its way."""
        with Between(self.served.address, change) as between:
            client = cubind.Client(between.address, PATIENCE, trust=self.served.trust)
            return self.served.get(client)

    def test_a_signed_answer_is_taken_and_its_rule_answers_for_the_bucket(self):
        client = self.served.client()
        self.assertEqual(self.served.get(client).match, "exact")
        self.assertEqual(self.served.get(client, N=3000).match, "bucket")
        self.assertEqual(self.served.get(client, K=3).problem["K"], 3)

    def test_a_daemon_without_a_bundle_is_refused(self):
        client = cubind.Client(self.served.maker.address, PATIENCE, trust=self.served.trust)
        self.refused(cubind.PermissionDeniedError, "is not signed, and .* is the trust file", client)

    def test_the_environment_names_a_trust_file(self):
        with mock.patch.dict(os.environ, {"CUBIND_TRUST": str(self.served.trusting(OTHER_PUBLIC))}):
            client = cubind.Client(self.served.address, PATIENCE)
        self.refused(cubind.PermissionDeniedError, "is signed by the key 1FD02E9933C7BA93, which", client)

    def test_an_unknown_an_expired_and_a_limited_key_are_refused(self):
        for trust, text in (
            (self.served.trusting(OTHER_PUBLIC), "does not list"),
            (self.served.trusting(PUBLIC, expires="2026-01-01"), "has expired in"),
            (self.served.trusting(PUBLIC, namespaces="other"), "may not sign for the namespace"),
        ):
            self.refused(cubind.PermissionDeniedError, text, self.served.client(trust))

    def test_a_reply_that_is_not_changed_is_taken(self):
        self.altered(lambda reply: None)

    def test_a_signed_cubin_of_another_question_is_refused(self):
        def ask_for_three(reply):
            reply.problem.dims[1].value = 3
            reply.rule.intervals[1].lower = reply.rule.intervals[1].upper = 3

        with self.assertRaisesRegex(cubind.DataLossError, "problem|rule.intervals"):
            self.altered(ask_for_three)

    def test_another_cubin_is_refused(self):
        client = cubind.Client(self.served.maker.address, PATIENCE)
        other = client.get("scale", {"N": 4096, "K": 3, "T": "f32"}, device=self.served.label)

        def exchange(reply):
            reply.artifact.digest = bytes.fromhex(other.digest)

        with self.assertRaises(cubind.CubindError):
            self.altered(exchange)

    def test_a_changed_launch_is_refused(self):
        def launch_more(reply):
            reply.rule.launches[0].grid[0] = "N"

        with self.assertRaisesRegex(cubind.DataLossError, "^rule: "):
            self.altered(launch_more)

    def test_damaged_bytes_of_a_reply_give_no_wrong_answer(self):
        chance = random.Random(5)
        kinds = itertools.cycle((0, 0x01, 0x02, 0x08, 0x80))

        def damaged(reply):
            damage = next(kinds)
            data = bytearray(reply.SerializeToString())
            at = chance.randrange(len(data))
            return (
                bytes(data[:at]) if damage == 0 else bytes([*data[:at], data[at] ^ damage, *data[at + 1 :]])
            )

        right = self.served.get(self.served.client())
        refused = 0
        with Between(self.served.address, damaged) as between:
            for _ in range(150):
                with cubind.Client(between.address, PATIENCE, trust=self.served.trust) as client:
                    try:
                        answer = self.served.get(client)
                    except cubind.CubindError:
                        refused += 1
                        continue
                for field in ("kernel", "problem", "configuration", "plan", "cubin"):
                    self.assertEqual(getattr(answer, field), getattr(right, field))
        self.assertGreater(refused, 30)

    def test_an_older_serial_is_refused(self):
        self.addCleanup(self.served.serve, 9)
        self.served.serve(9)
        self.served.get(self.served.client())
        self.served.serve(8)
        text = "has the serial 8 of acme, and 9 was accepted before"
        self.refused(cubind.FailedPreconditionError, text, self.served.client())
