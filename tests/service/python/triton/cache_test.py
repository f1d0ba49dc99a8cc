"""Triton's cache with compiled kernels from elsewhere: it holds what Triton would have written, and all that
is no kernel stays with the program's own cache."""

import contextlib
import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock
from typing import ClassVar

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import triton
import triton_kernels
from cubind.triton._own import Own
from cubind.triton._triton_cache import Cache, Compiled
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import FileCacheManager, get_cache_manager, get_dump_manager

MISSING = Own("is missing")
KERNELS = ("masks", "dot", "reductions", "scans")


class OwnManager(FileCacheManager):
    """A program's own manager."""

    put_names: ClassVar = []

    def put(self, data, filename, binary=True):
        OwnManager.put_names.append(filename)
        return super().put(data, filename, binary)


class Case(unittest.TestCase):
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


class Found(Case):
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


class NotFound(Case):
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


class Others(Case):
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


if __name__ == "__main__":
    unittest.main()
