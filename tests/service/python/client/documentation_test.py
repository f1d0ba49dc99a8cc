"""README's Python lines run as they are written, docs/python.md and docs/torch.md know every public name, and
docs/kernel-library.md every kernel."""

import ast
import contextlib
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

import cubind
import running
from cubind import _wire


class FakeTensor(running.FakeArray):
    """As much of a torch.Tensor as launching reads."""

    is_cuda = True
    device = types.SimpleNamespace(index=0)
    _next = 0x100000

    def __init__(self, *shape, dtype="torch.bfloat16"):
        FakeTensor._next += 1 << 28
        self.address, self.shape, self.dtype = FakeTensor._next, shape, dtype

    def __getitem__(self, _):
        return FakeTensor(*self.shape[1:], dtype=self.dtype)

    def data_ptr(self):
        return self.address

    def is_contiguous(self):
        return True


def fake_torch():
    """Modules by their names."""
    torch = types.ModuleType("torch")
    torch.Tensor = FakeTensor
    torch.bfloat16 = "torch.bfloat16"
    torch.randn = lambda *shape, device, dtype: FakeTensor(*shape, dtype=dtype)
    torch.ones_like = torch.empty_like = lambda x: FakeTensor(*x.shape, dtype=x.dtype)
    torch.empty = lambda shape, dtype, device: FakeTensor(*shape, dtype=dtype)
    torch.cuda = types.SimpleNamespace(device=lambda device: contextlib.nullcontext())
    return {
        "torch": torch,
        "cubind._torch_private": types.SimpleNamespace(stream_of=lambda device: 0x77),
        "cubind._torch_access": types.SimpleNamespace(access=lambda: None),
    }


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (running.SOURCE / page).read_text(), re.DOTALL)


class Examples(unittest.TestCase):
    def run_block(self, block):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cubind-d-")))
        folders = {"XDG_RUNTIME_DIR": str(folder / "run"), "XDG_CACHE_HOME": str(folder / "cache")}
        (folder / "run").mkdir()
        driver = running.FakeDriver(parameters=5)
        namespace = {}
        # As programs.environment() gives it.
        programs = {"VIRTUAL_ENV": sys.prefix, **running.WITHOUT_DRIVER, **folders}
        with (
            mock.patch.dict(sys.modules, fake_torch()),
            mock.patch.dict(os.environ, folders),
            mock.patch("cubind.programs.environment", lambda: programs),
        ):
            exec(block, namespace)
        launches = driver.launches()
        made = namespace.get("y")
        namespace.clear()  # the last user of the embedded daemon leaves
        gone = running.eventually(lambda: not (folder / "run/cubind/embedded/cubind.sock").exists())
        self.assertTrue(gone, "the embedded daemon is still there")
        return launches, made

    def test_the_lines_of_the_readme_launch_the_kernel(self):
        (block,) = python_blocks("README.md")
        self.assertLessEqual(len([line for line in block.splitlines() if line]), 6)
        (launch,), y = self.run_block(block)
        self.assertEqual((launch.parameters[3], launch.stream), (4096, 0x77))
        self.assertEqual(
            (y.shape, y.dtype, launch.parameters[2]), ((4096, 4096), "torch.bfloat16", y.address)
        )

    def test_the_page_begins_with_the_same_lines(self):
        self.assertEqual(python_blocks("docs/python.md")[0], python_blocks("README.md")[0])


class Names(unittest.TestCase):
    def test_every_public_name_is_on_the_page(self):
        page = (running.SOURCE / "docs/python.md").read_text()
        missing = [name for name in cubind.__all__ if not re.search(rf"\b{name}\b", page)]
        self.assertEqual(missing, [])

    def test_every_public_name_for_torch_is_on_its_page(self):
        tree = ast.parse((running.SOURCE / "python/cubind/torch/__init__.py").read_text())  # without torch
        (names,) = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        page = (running.SOURCE / "docs/torch.md").read_text()
        self.assertEqual([name for name in names if not re.search(rf"`{name}\b", page)], [])

    def test_every_kernel_of_the_library_is_in_its_table(self):
        table, _, _ = (running.SOURCE / "docs/kernel-library.md").read_text().partition("## ")
        specs = (path for path in running.SOURCE.glob("variants/*/*.json") if path.parent.name != "tables")
        self.assertEqual(
            set(re.findall(r"^\| \[`(\w+)`\]\(library/\1.md\)", table, re.M)), {path.stem for path in specs}
        )

    def test_every_method_of_the_client_is_on_the_page(self):
        page = (running.SOURCE / "docs/python.md").read_text()
        public = [n for n in vars(cubind.Client) if not n.startswith("_") and n not in ("after_fork", "ask")]
        self.assertEqual([n for n in public if not re.search(rf"\b{n}\b", page)], [])

    def test_the_departures_that_pages_accept_exist(self):
        pages = [running.SOURCE / "README.md", *(running.SOURCE / "docs").glob("*.md")]
        shown = [
            text for page in pages for text in re.findall(r'accept[ =]"?(\w+(?:\+\w+)+)', page.read_text())
        ]
        self.assertGreater(len(shown), 1)
        for match in shown:
            _wire.departures_of(match)  # raises for an unknown one

    def test_every_public_name_has_a_docstring_that_names_its_parameters(self):
        found = [text for name in cubind.__all__ for text in running.unexplained(name, getattr(cubind, name))]
        self.assertEqual(found, [])
