"""Compiled kernels asked for at a daemon: what it gets, which of its answers are refused, and that one that
is absent, slow or dead costs a program no more than one patience. In Triton's cache they are what Triton
would have written, and all that is no kernel stays with the program's own cache."""

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
import time
import types
import unittest
import unittest.mock
import warnings
from typing import ClassVar

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind
import grpc
import running
import triton
import triton_kernels
import triton_stub as stub
from cubind._connected import Connected
from cubind.triton import _artifacts, _variant_calls
from cubind.triton import _triton_private as private
from cubind.triton._artifacts import Artifacts
from cubind.triton._compile_question import Kernel
from cubind.triton._own import Own
from cubind.triton._triton_cache import Cache, Compiled, Compiling
from fake_daemon import FakeDaemon, chosen, pb
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import FileCacheManager, get_cache_manager, get_dump_manager

CUBIN = b"a cubin"
MISSING = Own("is missing")
KERNELS = ("masks", "dot", "reductions", "scans")


def compiling(name="masks", **options):
    case, target = triton_kernels.CASES[name], GPUTarget("cuda", 90, 32)
    source = case.source()
    parsed = private.make_backend(target).parse_options({**case.options, **options})
    made = private.Source(source, parsed, target, {}, source.signature, source.attrs, None)
    return Compiling(made, hashlib.sha256(f"{name} {parsed}".encode()).hexdigest(), {})


def answer(**changes):
    """Of a daemon that has the kernel."""
    reply = chosen(0, "NONE")
    reply.artifact.digest = hashlib.sha256(CUBIN).digest()
    reply.artifact.architecture = changes.get("architecture", "sm_90")
    reply.artifact.entries.add(
        entry_symbol=changes.get("entry", "masks"), launch_shared_bytes=changes.get("shared", 64)
    )
    return reply


class Case(stub.Case):
    def connect(self, address, patience=running.PATIENCE):
        connected = Connected()
        connected.use(self.enterContext(cubind.connect(address)))
        artifacts = Artifacts(connected, patience)
        self.addCleanup(artifacts.close)
        return artifacts

    def fake(self, found, **others):
        self.daemon = self.enterContext(FakeDaemon(found))
        self.enterContext(unittest.mock.patch.object(cubind.Client, "cubin_of", lambda *_: CUBIN))
        return self.connect(self.daemon.address, **others)


class Answers(Case):
    def test_a_kernel_that_is_not_known_is_defined_and_got_when_it_is_compiled(self):
        artifacts = self.fake(grpc.StatusCode.UNAVAILABLE)
        self.assertIsInstance(artifacts.find(compiling()), Own)
        self.assertEqual(artifacts.missed, {"is being compiled by the daemon's agent": 1})
        self.daemon.answer = answer()
        found = artifacts.find(compiling())
        self.assertEqual((found.cubin, found.entry, found.shared_bytes), (CUBIN, "masks", 64))
        self.assertEqual((artifacts.served, len(self.daemon.defined)), (1, 1))
        for request in self.daemon.asked:
            self.assertEqual((request.tune, request.job, request.compile_wait_ms), (pb.NEVER, "", 0))

    def test_what_is_defined_is_ttir_with_its_options_and_nothing_of_the_program(self):
        artifacts = self.fake(answer())
        artifacts.find(compiling(num_warps=2))
        (((part,),),) = self.daemon.defined.values()
        spec = json.loads(part.spec_json)
        (one,) = spec["configurations"]
        self.assertEqual(one["options"], {"num_warps": 2, "num_stages": 3, "num_ctas": 1})
        self.assertEqual([*spec["arguments"]], ["a0", "a1", "a2"])
        (file,) = part.files
        self.assertNotIn(b"loc(", file.content)
        for word in (b".py", b"inside", b"BLOCK"):
            self.assertNotIn(word, file.content + part.spec_json.encode())

    def test_other_options_and_text_are_other_kernels(self):
        artifacts = self.fake(answer())
        for one in (compiling(), compiling(), compiling(num_warps=2), compiling("scans")):
            artifacts.find(one)
        self.assertEqual(len(self.daemon.defined), 3)

    def test_a_kernel_that_only_this_process_can_compile_is_not_asked_for(self):
        artifacts = self.fake(answer())
        self.assertIsInstance(artifacts.find(compiling(extern_libs={"mine": "/tmp/mine.bc"})), Own)
        with unittest.mock.patch.dict("os.environ", TRITON_DISABLE_LINE_INFO="1", DISABLE_LLVM_OPT="1"):
            self.assertIsInstance(artifacts.find(compiling()), Own)
        self.assertEqual(self.daemon.asked, [])
        self.assertRegex(str([*artifacts.missed]), "option extern_libs.*DISABLE_LLVM_OPT")

    def test_a_kernel_whose_hint_is_known_needs_no_ttir(self):
        artifacts = self.fake(answer())
        artifacts.find(compiling())
        with unittest.mock.patch.object(private.TtirMaker, "module", side_effect=AssertionError):
            self.assertIsInstance(artifacts.find(compiling()), Compiled)
            self.assertIsInstance(artifacts.find(compiling("scans")), Own)
        self.assertEqual(len({request.hint for request in self.daemon.asked}), 1)


class Refused(Case):
    def test_a_process_that_asks_for_signatures_loads_no_cubin_without_one(self):
        with unittest.mock.patch.dict("os.environ", CUBIND_TRUST="/etc/cubind/trust"):
            artifacts = self.fake(answer())
            self.assertIsInstance(artifacts.find(compiling()), Own)
        self.assertRegex(str(artifacts.missed), "CUBIND_TRUST")

    def test_an_answer_to_another_question_is_not_used(self):
        for name, changes in (
            ("architecture", {"architecture": "sm_80"}),
            ("shared", {"shared": 1 << 30}),
        ):
            with self.subTest(name):
                running.forget_warnings()
                artifacts = self.fake(answer(**changes))
                with self.assertWarnsRegex(RuntimeWarning, "Triton compiles its kernels itself: artifact"):
                    warnings.simplefilter("always")
                    self.assertIsInstance(artifacts.find(compiling()), Own)

    def test_another_kernel_and_other_bytes_are_not_used(self):
        kernel = Kernel(compiling())
        reply = answer()
        with unittest.mock.patch.object(_variant_calls, "variant", lambda *_: reply):
            reply.kernel = "another"
            with self.assertRaisesRegex(cubind.DataLossError, "the answer is for another"):
                _variant_calls.defined_variant(
                    None, kernel.spec, _variant_calls.Target("", {}, "", 0), None, 1.0
                )
        with self.assertRaisesRegex(cubind.DataLossError, "does not have the digest"):
            _artifacts._checked(reply, kernel, b"other bytes")
        self.assertEqual(_artifacts._checked(reply, kernel, CUBIN).entry, "masks")


class NoAnswer(Case):
    def check(self, artifacts, seconds):
        """Ten kernels wait for that long in all."""
        kernels = [compiling(num_stages=1 + index) for index in range(10)]
        with running.waits(artifacts._asker) as waits:
            for each in kernels:
                self.assertIsInstance(artifacts.find(each), Own)
        self.assertLess(sum(waits), seconds)
        return waits

    def test_without_a_daemon_nothing_waits_but_the_first(self):
        artifacts = self.connect("unix:///tmp/no-such-socket", patience=5.0)
        waited = self.check(artifacts, 5.0)
        self.assertEqual(len(waited), 1)
        self.assertIn("no daemon answers there", str(artifacts.missed))

    def test_a_slow_one_is_waited_for_once_and_learns_all(self):
        release = types.SimpleNamespace(at=time.monotonic() + 2)

        def slow(request):
            time.sleep(max(0.0, release.at - time.monotonic()))
            return answer()

        artifacts = self.fake(slow, patience=0.05)
        waited = self.check(artifacts, 2.1 * 0.05)
        self.assertEqual(len(waited), 2)  # by its hint, and by its name
        self.assertTrue(running.eventually(lambda: len(self.daemon.defined) == 10))
        self.assertTrue(
            running.eventually(lambda: isinstance(artifacts.find(compiling(num_stages=3)), Compiled))
        )


# ---- In Triton's cache ----


class OwnManager(FileCacheManager):
    """A program's own manager."""

    put_names: ClassVar = []

    def put(self, data, filename, binary=True):
        OwnManager.put_names.append(filename)
        return super().put(data, filename, binary)


class Cached(unittest.TestCase):
    def setUp(self):
        self.asked, self.compiled = [], []
        self.enterContext(self.empty_cache())
        listen = lambda cache_hit, **_: self.compiled.append(not cache_hit)  # noqa: E731
        knobs.compilation.listener = listen
        self.addCleanup(setattr, knobs.compilation, "listener", None)

    @contextlib.contextmanager
    def empty_cache(self):
        with (
            tempfile.TemporaryDirectory() as folder,
            unittest.mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder),
        ):
            yield pathlib.Path(folder)

    def install(self, answer, note=lambda *_: None):
        def find(compiling):
            self.asked.append(compiling)
            return answer

        cache = Cache(find, note)
        cache.install()
        self.addCleanup(cache.uninstall)
        return cache

    def compile(self, name="masks", architecture=90):
        case = triton_kernels.CASES[name]
        target = GPUTarget("cuda", architecture, 32)
        return triton.compile(case.source(), target=target, options=case.options)

    @staticmethod
    def as_served(kernel):
        return Compiled(kernel.asm["cubin"], kernel.metadata.name, kernel.metadata.shared)


class Found(Cached):
    def test_it_has_the_metadata_that_triton_writes(self):
        for name in KERNELS:
            own = self.compile(name)
            with self.subTest(name), self.empty_cache():
                cache = self.install(self.as_served(own))
                served = self.compile(name)
                cache.uninstall()
                self.assertEqual(served.metadata, own.metadata)
                self.assertEqual(served.asm["cubin"], own.asm["cubin"])
        self.assertEqual(self.compiled, [True, False] * len(KERNELS))

    def test_the_next_compile_finds_it_in_the_local_cache(self):
        served = self.as_served(self.compile())
        with self.empty_cache():
            self.install(served)
            self.compile()
            self.compile()
        self.assertEqual((len(self.asked), self.compiled), (1, [True, False, False]))

    def test_what_is_asked_for_is_what_is_compiled(self):
        self.install(MISSING)
        self.compile("dot", 80)
        (asked,) = self.asked
        self.assertEqual((asked.source.target.arch, asked.source.options.num_stages), (80, 4))
        self.assertEqual(asked.source.signature["K"], "i32")


class NotFound(Cached):
    def test_triton_compiles(self):
        self.install(MISSING)
        self.compile()
        self.compile()
        self.assertEqual((len(self.asked), self.compiled), (1, [True, False]))

    def test_each_compile_is_noted_with_its_reason(self):
        noted = []
        self.install(MISSING, lambda *each: noted.append(each))
        kernel = self.compile()
        self.compile()
        self.assertEqual(noted, [("triton_kernels.masks", kernel.hash, MISSING)])
        with unittest.mock.patch.dict(os.environ, TRITON_ALWAYS_COMPILE="1"):
            self.compile()
        self.assertIn("is compiled in any case", noted[-1][2].reason)

    def test_what_the_note_raises_ends_the_compile(self):
        self.install(MISSING, unittest.mock.Mock(side_effect=PermissionError("sealed")))
        with self.assertRaisesRegex(PermissionError, "sealed"):
            self.compile()
        self.assertEqual(self.compiled, [])

    def test_a_compile_that_the_program_wants_is_not_asked_for(self):
        self.install(MISSING)
        for variable in ("TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_DUMP", "TRITON_KERNEL_OVERRIDE"):
            with self.empty_cache() as folder, unittest.mock.patch.dict(os.environ, {variable: "1"}):
                os.environ.update(TRITON_DUMP_DIR=str(folder), TRITON_OVERRIDE_DIR=str(folder))
                self.compile()
        self.assertEqual(self.asked, [])

    def test_an_ir_file_is_not_asked_for(self):
        self.install(MISSING)
        with self.empty_cache() as folder:
            text = folder / "kernel.ttir"
            text.write_text("module { tt.func public @k(%x: !tt.ptr<f32>) { tt.return } }")
            triton.compile(str(text), target=GPUTarget("cuda", 90, 32))
        self.assertEqual((self.asked, self.compiled), ([], [True]))


class OtherFiles(Cached):
    def test_files_that_are_no_kernels_stay_local(self):
        self.install(Compiled(b"", "", 0))
        manager = get_cache_manager("ab" * 32)
        self.assertIsNone(manager.get_file("launcher.so"))
        manager.put(b"library", "launcher.so")
        manager.put(json.dumps({}), "scale.autotune.json", binary=False)
        self.assertIsNotNone(manager.get_file("launcher.so"))
        self.assertIsNone(manager.get_group("kernel.json"))  # not asked by triton.compile()
        with unittest.mock.patch.dict(os.environ, TRITON_DUMP_DIR=tempfile.mkdtemp()):
            self.assertIsNone(get_dump_manager("ab" * 32).get_group("kernel.json"))
        self.assertEqual(self.asked, [])

    def test_a_program_keeps_its_own_manager(self):
        knobs.cache.manager_class = OwnManager
        self.addCleanup(delattr, knobs.cache, "manager_class")
        cache = self.install(Compiled(b"cubin", "masks", 0))
        self.compile()
        self.assertEqual(OwnManager.put_names, ["masks.json", "masks.cubin", "__grp__masks.json"])
        cache.uninstall()
        self.assertIs(knobs.cache.manager_class, OwnManager)

    def test_without_it_triton_has_its_own(self):
        cache = self.install(MISSING)
        self.assertNotIn("TRITON_CACHE_MANAGER", os.environ)
        cache.uninstall()
        self.assertIsNone(knobs.cache.manager_class)
