"""Launches without a C compiler: the driver gets what it gets from the launcher that Triton compiles for the
same signature."""

import os
import pathlib
import shutil
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import running
import triton_launchers as launchers

launchers.require()

import cubind.triton  # noqa: E402
import triton  # noqa: E402
import triton_stub as stub  # noqa: E402
from triton.backends.nvidia import driver as nvidia  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402
from triton_launching_program import scaled  # noqa: E402

Tensor = launchers.Tensor
OWN_LAUNCHER, OWN_UTILITIES = nvidia.CudaLauncher, nvidia.CudaUtils  # Triton's
# Of each type: values, and how many of the first bytes the kernel reads.
TYPES = {
    "*fp32": ([Tensor(), Tensor(0), 0x2000, None], 8),
    "*kfp8e4nv": ([Tensor()], 8),
    "i1": ([True, False, 1], 1),
    "i8": ([0, 127, 255], 1),
    "i16": ([-(1 << 15), (1 << 15) - 1], 2),
    "i32": ([-(1 << 31), (1 << 31) - 1, True], 4),
    "i64": ([-(1 << 63), (1 << 63) - 1], 8),
    "u1": ([True], 1),
    "u8": ([255, 256, -1], 1),
    "u16": ([65535, -1], 2),
    "u32": ([(1 << 32) - 1, 1 << 32, -1], 4),
    "u64": ([(1 << 64) - 1, -1], 8),
    "fp16": ([0.1, -65504.0, 65519.0, 6e-8, 1e-8, -0.0, float("inf"), 3], 2),
    "bf16": ([0.1, -3.999, 1e39, -0.0, float("-inf")], 2),
    "fp32": ([0.1, 1e-46, -1e39, -0.0, float("inf"), 7], 4),
    "f32": ([0.1], 4),
    "fp64": ([0.1, 1e300, -0.0, float("-inf"), 7], 8),
}
NUMBERS = [name for name in TYPES if not name.startswith("*")]
PROGRAM = str(pathlib.Path(__file__).with_name("triton_launching_program.py"))
COMPILED = "1 launchers were compiled by Triton: each kernel {}"
HAS_COMPILER = shutil.which("gcc") or shutil.which("clang") or os.environ.get("CC")


def fields(launch, *sizes):
    """All that the driver got; of each parameter its first bytes."""
    parameters = [value & ((1 << 8 * size) - 1) for value, size in zip(launch.parameters, sizes)]
    shape = (*launch.grid, *launch.block, launch.shared_bytes, launch.stream)
    return shape, [tuple(attribute) for attribute in launch.attributes], parameters


class Case(unittest.TestCase):
    def setUp(self):
        stub.install(stub.Daemon())
        self.addCleanup(cubind.triton.uninstall)
        launchers.start()

    def launcher(self, *signature, **metadata):
        return driver.active.launcher_cls(launchers.source(*signature), launchers.metadata(**metadata))


@unittest.skipUnless(HAS_COMPILER, "Triton's own launchers need a C compiler")
class Compared(Case):
    """With Triton's own launcher."""

    def own_launcher(self, *signature, **metadata):
        driver.active.utils.fill_tma_descriptor  # noqa: B018  its module is compiled, whose types it needs
        return OWN_LAUNCHER(launchers.source(*signature), launchers.metadata(**metadata))

    def check(self, signature, calls, sizes, metadata=None, **others):
        metadata = metadata or {}
        own, ours = self.own_launcher(*signature, **metadata), self.launcher(*signature, **metadata)
        self.assertNotIsInstance(ours, OWN_LAUNCHER)
        for arguments in calls:
            found = []
            for launcher in (own, ours):
                fake = running.FakeDriver(len(sizes))
                launchers.launch(launcher, *arguments, **others)
                found.append(([fields(each, *sizes) for each in fake.launches()], fake.settings()))
            with self.subTest(arguments=arguments):
                self.assertEqual(found[0], found[1])
                self.assertEqual(len(found[1][0]), 1)

    def test_every_type_is_packed_to_the_same_bytes(self):
        for name, (values, size) in TYPES.items():
            with self.subTest(name):
                self.check([name], [[value] for value in values], [size])

    def test_constants_are_left_out_and_tuples_are_flattened(self):
        signature = ["constexpr", "i32", ("*fp32", "constexpr", ("fp16", "i64")), "constexpr", "i1", ()]
        arguments = [object(), 5, (Tensor(), None, (0.5, -1)), "x", True, ()]
        self.check(signature, [arguments], [4, 8, 2, 8, 1])

    def test_a_signature_of_many_arguments(self):
        names = list(TYPES) + ["i32"] * 3
        values = [TYPES[name][0][0] for name in names]
        self.check(names, [values], [TYPES[name][1] for name in names])

    def test_grid_stream_warps_and_shared_memory_are_the_calls(self):
        shape = {"grid": (65536, 1, 7), "stream": 1 << 40, "warps": 8, "shared": 100000}
        self.check(["i32"], [[1]], [4], **shape)

    def test_clusters_cooperative_and_dependent_launches_have_their_attributes(self):
        for ctas in (2, 8):
            self.check(["i32"], [[1]], [4], {"num_ctas": ctas}, ctas=ctas)
        self.check(["i32"], [[1]], [4], {"launch_cooperative_grid": True})
        self.check(["i32"], [[1]], [4], {"launch_pdl": True})
        everything = {"launch_cooperative_grid": True, "launch_pdl": True, "num_ctas": 4}
        self.check(["i32"], [[1]], [4], everything, ctas=4)

    @unittest.skipIf(launchers.VERSION < (3, 6), "before Triton 3.6 the driver refuses it")
    def test_a_cluster_of_16_blocks_is_allowed_for_the_kernel(self):
        self.check(["i32"], [[1]], [4], {"num_ctas": 16}, ctas=16)

    def test_scratch_memory_comes_from_triton_allocators(self):
        sizes = {"global_scratch_size": 100, "global_scratch_align": 128}
        if launchers.VERSION > (3, 4):
            sizes |= {"profile_scratch_size": 8, "profile_scratch_align": 16}
        asked = []

        def allocate(*given):
            asked.append(given)
            return Tensor(0x5000 + given[0])

        self.allocators(allocate)
        self.check(["i32"], [[1]], [4, 8, 8][: len(sizes) // 2 + 1], {"num_ctas": 2, **sizes}, ctas=2)
        self.assertEqual(asked[: len(asked) // 2], asked[len(asked) // 2 :])
        self.assertEqual(asked[0], (24 * 2 * 100, 128, 7))

    def allocators(self, allocate):
        from triton.runtime import _allocation

        before = _allocation._allocator
        if launchers.VERSION > (3, 4):
            before = before.get()
            none = _allocation._profile_allocator.get()
            _allocation._profile_allocator.set(allocate)
            self.addCleanup(_allocation._profile_allocator.set, none)
        triton.set_allocator(allocate)
        self.addCleanup(triton.set_allocator, before)

    def test_what_is_refused_is_refused_by_both(self):
        for name, value, error in (
            ("i8", -1, OverflowError),
            ("i16", 1 << 15, OverflowError),
            ("i32", 1 << 31, OverflowError),
            ("i64", 1 << 63, OverflowError),
            ("i32", 1.5, TypeError),
            ("fp32", "1", TypeError),
            ("fp16", 65520.0, OverflowError),
            ("*fp32", "text", TypeError),
            ("*fp32", -1, OverflowError),
            ("*fp32", Tensor("text"), TypeError),
            ("*fp32", Tensor(launchers.HOST_MEMORY), ValueError),
            (("i32", "i32"), (1,), TypeError),
            (("i32",), 1, TypeError),
        ):
            for launcher in (self.own_launcher(name), self.launcher(name)):
                with self.subTest(f"{name} {value}"), self.assertRaises(error):
                    launchers.launch(launcher, value)

    def test_cubins_are_loaded_and_gpus_described_alike(self):
        ours = driver.active.utils
        self.assertIsNot(type(ours), OWN_UTILITIES)
        with unittest.mock.patch.object(nvidia, "CudaUtils", OWN_UTILITIES):
            own = OWN_UTILITIES()
        self.assertEqual(ours.get_device_properties(0), own.get_device_properties(0))
        for shared in (1000, 100000):
            found = []
            for utilities in (own, ours):
                fake = running.FakeDriver(0)
                module, *rest = utilities.load_binary("kernel", b"\x7fELF", shared, 0)
                self.assertEqual(module, fake.modules())
                found.append((rest, fake.settings()))
            self.assertEqual(found[0], found[1])
        with self.assertRaisesRegex(RuntimeError, r"Triton Error \[CUDA\]: the fake driver refuses"):
            ours.load_binary("kernel", b"no cubin", 0, 0)

    def test_what_else_a_program_asks_of_tritons_module_is_compiled_then(self):
        utilities = driver.active.utils
        self.assertNotIn("set_printf_fifo_size", vars(utilities))
        utilities.set_printf_fifo_size(1 << 20)
        self.assertIn("fill_tma_descriptor", vars(utilities))

    def test_tensor_descriptors_are_launched_by_triton_and_counted(self):
        launcher = self.launcher("tensordesc<fp16[16,16]>", "i32")
        self.assertIsInstance(launcher, OWN_LAUNCHER)
        self.assertIn(COMPILED.format("has a tensor descriptor as an argument"), cubind.triton.report())
        self.assertIn("fill_tma_descriptor", vars(driver.active.utils))


class Launched(Case):
    def test_a_grid_without_blocks_launches_nothing_but_calls_the_hooks(self):
        called = []
        launcher = self.launcher("i32")
        fake = running.FakeDriver(1)
        launchers.launch(launcher, 1, grid=(5, 0, 1), hooks=(called.append, called.append))
        self.assertEqual((fake.launches(), called), ([], ["launch metadata"] * 2))

    def test_hooks_are_called_around_the_launch(self):
        launcher, fake = self.launcher("i32"), running.FakeDriver(1)
        seen = []
        hook = lambda metadata: seen.append((metadata, len(fake.launches())))  # noqa: E731
        launchers.launch(launcher, 1, hooks=(hook, hook))
        self.assertEqual(seen, [("launch metadata", 0), ("launch metadata", 1)])

    def test_what_a_hook_raises_ends_the_launch(self):
        launcher, fake = self.launcher("i32"), running.FakeDriver(1)
        with self.assertRaises(ZeroDivisionError):
            launchers.launch(launcher, 1, hooks=(lambda _: 1 // 0, None))
        self.assertEqual(fake.launches(), [])

    def test_messages_name_the_argument(self):
        launcher = self.launcher("constexpr", ("i32", "*fp32"), "i16")
        for arguments, message in (
            ([0, (1, Tensor(launchers.HOST_MEMORY)), 1], r"\(at 2\) cannot be accessed from Triton"),
            ([0, (1, None), 40000], "argument 3: 40000 does not fit i16"),
            ([0, (1, None)], "takes 12 arguments, 11 were given"),
        ):
            with self.assertRaisesRegex((ValueError, OverflowError, TypeError), message):
                launchers.launch(launcher, *arguments)

    def test_what_the_driver_refuses_is_tritons_error(self):
        launcher = self.launcher("i32")
        running.FakeDriver(1).fail_launches(700)
        with self.assertRaisesRegex(RuntimeError, r"Triton Error \[CUDA\]: the fake driver refuses"):
            launchers.launch(launcher, 1)
        fake = running.FakeDriver(1)
        launchers.launch(launcher, 1)
        self.assertEqual(len(fake.launches()), 1)

    def test_types_that_are_not_known_are_tritons_own(self):
        for reason, *signature in (
            ("has an argument of type fp8e4nv", "fp8e4nv"),
            ("has a tensor descriptor as an argument", "nvTmaDesc"),
            ("has 257 arguments", *["i32"] * 257),
        ):
            with (
                self.subTest(reason),
                unittest.mock.patch.object(OWN_LAUNCHER, "__init__", return_value=None),
            ):
                self.assertIsInstance(self.launcher(*signature), OWN_LAUNCHER)
                self.assertIn(COMPILED.format(reason), cubind.triton.report())


class BoundLaunch(Case):
    def test_the_driver_gets_what_it_gets_from_an_ordinary_launch(self):
        arguments = Tensor(), Tensor(0x9000), 300, 2.0
        bound = cubind.triton.bind(
            scaled, lambda values: (triton.cdiv(values["N"], values["BLOCK"]),), BLOCK=128
        )
        bound(*arguments)
        found = []
        for launch in (scaled[(3,)], bound):
            fake = running.FakeDriver(4)
            launch(*arguments, **({} if launch is bound else {"BLOCK": 128}))
            found.append([fields(each, 8, 8, 4, 4) for each in fake.launches()])
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(found[0]), 1)


class Installed(unittest.TestCase):
    def setUp(self):
        self.addCleanup(cubind.triton.uninstall)

    def test_a_driver_that_is_made_before_or_after_launches_by_cubind(self):
        before = launchers.start_without_compiler()
        stub.install(stub.Daemon())
        self.assertIsNot(before.launcher_cls, OWN_LAUNCHER)
        self.assertIs(type(before.utils), OWN_UTILITIES)
        self.assertIsNot(type(launchers.start().utils), OWN_UTILITIES)
        self.assertIs(driver.active.launcher_cls, nvidia.CudaLauncher)

    def test_uninstall_puts_tritons_classes_back(self):
        made = launchers.start_without_compiler()
        for _ in range(2):
            stub.install(stub.Daemon())
            self.assertIsNot(made.launcher_cls, OWN_LAUNCHER)
            cubind.triton.uninstall()
            self.assertIs(made.launcher_cls, OWN_LAUNCHER)
            self.assertIs(nvidia.CudaLauncher, OWN_LAUNCHER)
            self.assertIs(nvidia.CudaUtils, OWN_UTILITIES)

    def test_afterwards_a_launcher_of_triton_has_tritons_module(self):
        stub.install(stub.Daemon())
        made = launchers.start()
        cubind.triton.uninstall()
        begun = unittest.mock.Mock()
        with (
            unittest.mock.patch.object(OWN_UTILITIES, "__init__", begun.module),
            unittest.mock.patch.object(OWN_LAUNCHER, "__init__", begun.launcher),
        ):
            begun.module.return_value = begun.launcher.return_value = None
            self.assertIsInstance(made.launcher_cls(None, None), OWN_LAUNCHER)
        self.assertEqual([name for name, *_ in begun.mock_calls], ["module", "launcher"])
        stub.install(stub.Daemon())
        self.assertIs(made.launcher_cls, nvidia.CudaLauncher)

    def test_launcher_classes_of_others_stay(self):
        class Others(nvidia.CudaLauncher):
            pass

        made = launchers.start_without_compiler()
        made.launcher_cls = Others
        stub.install(stub.Daemon())
        self.assertIs(made.launcher_cls, Others)


class WithoutCompiler(unittest.TestCase):
    """In a process with an empty cache."""

    def run_program(self, launching):
        environment = {"PATH": "/nonexistent", "CC": "/nonexistent/cc"}
        return running.run_python_for_both([PROGRAM, launching], **environment)

    def test_a_kernel_is_compiled_and_launched(self):
        self.assertEqual(
            self.run_program("cubind").stdout, "[3, 1, 1] [128, 1, 1] 0x1000 0x9000 0x12c 0x40000000\n"
        )

    def test_triton_alone_fails(self):
        with self.assertRaisesRegex(AssertionError, "/nonexistent/cc"):
            self.run_program("triton")
