"""Elements of small integer tensors: which go where, in what form, and that they make no other kernel."""

import dataclasses
import gzip
import json
import os
import pathlib
import tempfile
import unittest.mock

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import cubind
import cubind.triton
import running
import torch
import triton_grouped as moe
import triton_replaying as replaying
import triton_stub as stub
from cubind.triton import definition as d
from fake_daemon import FakeDaemon, chosen

VARIABLE = "CUBIND_TRITON_CONTENTS"
TILES = 5
SIZES = (100, 70, 64, 0)  # rows of the experts, in five tiles
COLUMNS = 96


def arguments(*tables):
    """Of a call, with the tables or those of SIZES."""
    x, w = torch.full((sum(SIZES), moe.WIDTH), 0.123456789), torch.zeros(moe.EXPERTS, moe.WIDTH, COLUMNS)
    y = torch.zeros(sum(SIZES), COLUMNS)
    return x, w, *(tables or moe.tables(SIZES)), y, COLUMNS


def call(kernel, *tables):
    kernel[moe.grid(TILES)](*arguments(*tables), ROWS=moe.ROWS, K=moe.WIDTH)


def definition(*tables):
    given = {"ROWS": moe.ROWS, "K": moe.WIDTH}
    return stub.question_of(moe.tuned(), *arguments(*tables), grid=moe.grid(TILES), **given)


def other_tables(seed):
    """Of another routing with as many tiles."""
    picks = torch.Generator().manual_seed(seed)
    return [torch.randint(0, high, (length,), generator=picks, dtype=torch.int32)
            for high, length in ((moe.EXPERTS, TILES), (sum(SIZES), TILES), (sum(SIZES), moe.EXPERTS))]  # fmt: skip


def fills(spec):
    return {name: each.get("fill") for name, each in json.loads(spec.json)["arguments"].items()}


def data(files):
    """What follows the header of each file of NumPy's."""
    return {name: bytes(text)[128:] for name, text in files.items() if name.endswith(".npy")}


def raw(tensor):
    return tensor.numpy().tobytes()


class Case(stub.Case):
    def setUp(self):
        super().setUp()
        self.enterContext(unittest.mock.patch.dict(os.environ))
        os.environ.pop(VARIABLE, None)

    def install(self, address):
        client = self.enterContext(cubind.connect(address))
        stub.install_client(client)
        self.addCleanup(cubind.triton.uninstall)


class Sent(Case):
    """To a daemon."""

    def sent(self, mode=None, **where):
        """The files of data that a call sends."""
        if mode is not None:
            os.environ[VARIABLE] = mode
        with FakeDaemon(chosen(1), **where) as daemon:
            self.install(daemon.address)
            call(moe.tuned())
            cubind.triton.uninstall()
        ((parts,),) = daemon.defined.values()
        return data({file.path: file.content for part in parts for file in part.files})

    def test_on_a_unix_socket_the_daemon_gets_them_and_elsewhere_not(self):
        expert_of, start_of, ends = moe.tables(SIZES)
        every = {"expert_of.npy": raw(expert_of), "start_of.npy": raw(start_of), "ends.npy": raw(ends)}
        self.assertEqual(self.sent(), every)
        self.assertEqual(self.sent(tcp=True), {})

    def test_the_variable_allows_them_everywhere_or_nowhere(self):
        self.assertEqual(len(self.sent("1", tcp=True)), 3)
        self.assertEqual(self.sent("0"), {})

    def test_what_may_go_nowhere_is_not_copied(self):
        os.environ[VARIABLE] = "0"
        self.assertEqual(
            {each.contents.values for each in definition().arguments if getattr(each, "contents", None)},
            {None},
        )

    def test_another_value_of_the_variable_is_refused(self):
        os.environ[VARIABLE] = "no"
        with self.assertRaisesRegex(cubind.InvalidArgumentError, f'{VARIABLE}: "no" is neither 0 nor 1'):
            cubind.triton.install()

    def test_tables_that_change_with_every_step_define_one_kernel(self):
        with FakeDaemon(chosen(1)) as daemon:
            for each_process in range(2):
                self.install(daemon.address)
                kernel = moe.tuned()
                for step in range(20):
                    call(kernel, *other_tables(20 * each_process + step))
            for step in range(20):
                self.install(daemon.address)
                call(moe.tuned(), *other_tables(100 + step))
            cubind.triton.uninstall()
        self.assertEqual([len(sent) for sent in daemon.defined.values()], [1])
        self.assertEqual(len({request.hint for request in daemon.asked}), 1)

    def test_steps_with_a_known_choice_read_nothing(self):
        with FakeDaemon(chosen(1)) as daemon:
            self.install(daemon.address)
            kernel = moe.tuned()
            call(kernel)
            with running.calls() as calls:
                call(kernel, *other_tables(1))
            self.assertEqual(calls["contents_of"], 0)
            cubind.triton.uninstall()
        self.assertEqual(len(stub.Driver.launches), 2)

    def test_nothing_is_read_while_a_graph_is_captured(self):
        with FakeDaemon(chosen(1)) as daemon:
            self.install(daemon.address)
            with running.calls() as calls, stub.capturing():
                call(moe.tuned())
            cubind.triton.uninstall()
        self.assertEqual((calls["contents_of"], daemon.asked), (0, []))

    def test_a_kernel_that_was_asked_for_without_them_is_another_one(self):
        with FakeDaemon(chosen(1)) as daemon:
            for mode in ("0", "1"):
                os.environ[VARIABLE] = mode
                self.install(daemon.address)
                call(moe.tuned())
            cubind.triton.uninstall()
        self.assertEqual(len(daemon.defined), 2)
        self.assertEqual(len(set(daemon.hinted.values())), 2)


class Specified(Case):
    def fill(self, tensor):
        """The fill of a table, and the elements that go with it."""
        _, *others = moe.tables(SIZES)
        spec = stub.spec_of(definition(tensor, *others), with_values=True)
        return fills(spec)["expert_of"], data(spec.files).get("expert_of.npy")

    def test_integers_and_truth_values_are_those_of_the_call(self):
        for tensor in (
            torch.tensor([3, 1, 2, -1], dtype=torch.int32),
            torch.tensor([-(1 << 63), (1 << 63) - 1]),
            torch.tensor([1 << 60, 1 << 60]),
            torch.tensor([0, 0, 2, 3]),
            torch.tensor([-128, 127], dtype=torch.int8),
            torch.tensor([255, 0, 3], dtype=torch.uint8),
            torch.tensor([True, False, True]),
            torch.arange(100).flip(0)[10:90],
            torch.arange(100).flip(0).view(10, 10)[2:4],
        ):
            with self.subTest(tensor):
                self.assertEqual(self.fill(tensor), ({"npy": "expert_of.npy"}, raw(tensor)))

    def test_what_a_rule_says_exactly_needs_no_file(self):
        self.assertEqual(self.fill(torch.full((7,), -3, dtype=torch.int32)), ({"constant": -3}, None))
        for tensor, start in ((torch.arange(-2, 9), -2), (torch.arange(200, 256, dtype=torch.uint8), 200)):
            self.assertEqual(self.fill(tensor), ({"iota": {"start": start, "step": 1}}, None))

    def test_large_tensors_and_those_with_gaps_are_drawn(self):
        most = d.MAX_VALUES_BYTES // 8
        fill, elements = self.fill(torch.arange(most).flip(0))
        self.assertEqual((fill, len(elements)), ({"npy": "expert_of.npy"}, 8 * most))
        for tensor in (torch.arange(most + 1).flip(0), torch.arange(100).flip(0)[::2]):
            self.assertIsNone(self.fill(tensor)[1])
        fill, elements = self.fill(torch.arange(100).view(10, 10).t())
        self.assertEqual((fill, elements), ("permutation", None))

    def test_nothing_of_other_tensors_is_sent(self):
        spec = stub.spec_of(definition(), with_values=True)
        self.assertEqual({*data(spec.files)}, {"expert_of.npy", "start_of.npy", "ends.npy"})
        self.assertFalse(any(raw(torch.tensor(0.123456789)) in text for text in spec.files.values()))

    def test_the_name_says_whether_there_are_elements_and_not_which(self):
        found, other = definition(), definition(*other_tables(1))
        constant = definition(*(torch.zeros_like(table) for table in moe.tables(SIZES)))
        named = {stub.spec_of(each, with_values=True).name for each in (found, other, constant)}
        self.assertEqual(len(named), 1)
        self.assertNotIn(stub.spec_of(found).name, named)

    def test_a_tables_problem_has_no_digest_of_them(self):
        found = definition().arguments
        changed = [
            dataclasses.replace(each, contents=dataclasses.replace(each.contents, values=b"1234"))
            if isinstance(each, d.Pointer) and each.contents
            else each
            for each in found
        ]
        self.assertNotEqual(found, tuple(changed))
        self.assertEqual(d.arguments_digest(found), d.arguments_digest(tuple(changed)))


class Recorded(Case):
    def test_a_file_has_them_on_request(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "record")
        with FakeDaemon(chosen(1)) as daemon, cubind.connect(daemon.address) as client:
            for mode, has in ((None, False), ("1", True)):
                if mode is not None:
                    os.environ[VARIABLE] = mode
                cubind.triton.install(client, record=path)
                self.addCleanup(cubind.triton.uninstall)
                call(moe.tuned())
                cubind.triton.uninstall()
                self.assertEqual(b"expert_of.npy" in gzip.decompress(path.read_bytes()), has)


class Kept(Case):
    """By a real daemon, whose agent plays a table."""

    def test_a_kernel_with_elements_is_tuned(self):
        replaying.require()
        spec = stub.spec_of(definition(), with_values=True)
        client = replaying.serve(self, (spec, replaying.TIMES))
        stub.install_client(client)
        self.addCleanup(cubind.triton.uninstall)  # before the daemon ends
        call(moe.tuned())
        self.assertIn("grouped: asked 1, served 1, tuning 0", cubind.triton.report())
        (kernel,) = (each["name"] for each in client.kernels(defined=True))
        self.assertEqual(kernel, spec.name)

    def test_files_that_are_wrong_are_refused(self):
        spec = stub.spec_of(definition(), with_values=True)
        whole = spec.files["expert_of.npy"]
        with running.Daemon() as daemon, cubind.connect(daemon.address) as client:
            for content, cause in (
                (b"[1, 2, 3]", "expert_of.npy.*: this is no .npy file"),
                (whole[:-4], "needs 20 bytes, and 16 follow the header"),
                (whole.replace(b"(5,)", b"(4,)")[:-4], "4 elements; the buffer has 5"),
                (whole.replace(b"<i4", b"<f4"), "has elements of f32, the buffer has i32"),
            ):
                wrong = dataclasses.replace(spec, files=spec.files | {"expert_of.npy": content})
                with self.assertRaisesRegex(cubind.InvalidArgumentError, cause):
                    stub.define(client, wrong)
            self.assertEqual(client.kernels(defined=True), [])
            stub.define(client, spec)
