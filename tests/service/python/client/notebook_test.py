"""docs/tune_kernel.ipynb as Jupyter runs it, on a daemon that replays the samples of an H200; the fake driver
launches."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import python_found

python_found.require("nbconvert", "ipykernel", "numpy", "google.protobuf", "grpc")

import running  # noqa: E402
import tuned_here  # noqa: E402

NOTEBOOK = running.SOURCE / "docs" / "tune_kernel.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
BEFORE = "import running\ndriver = running.FakeDriver(4)"
AFTER = (
    "(launch,) = driver.launches()\nprint('launched', launch.grid[0], launch.block[0], launch.parameters[3])"
)


def tune(client):
    """Its first two cells."""
    with mock.patch.dict(os.environ, CUBIND_ADDRESS=client.address):
        exec("\n".join(CODE[:2]), {})


def code_cell(source):
    return {
        "cell_type": "code",
        "id": f"of-the-test-{len(source)}",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        samples = tuned_here.recorded(pathlib.Path(__file__).with_name("notebook") / "h200.jsonl")
        daemon = cls.enterClassContext(tuned_here.Daemon(tuned_here.defined(tune), samples_us=samples))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        notebook = json.loads(NOTEBOOK.read_text())
        notebook["cells"] = [code_cell(BEFORE), *CELLS, code_cell(AFTER)]
        (cls.folder / "walk.ipynb").write_text(json.dumps(notebook))
        fake_cupy = pathlib.Path(__file__).with_name("notebook")
        path = os.pathsep.join([str(fake_cupy), *filter(None, sys.path)])
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "nbconvert",
                "--execute",
                "--to",
                "html",
                "walk.ipynb",
            ],
            cwd=cls.folder,
            env={
                **os.environ,
                "CUBIND_ADDRESS": daemon.address,
                "PYTHONPATH": path,
                "IPYTHONDIR": str(cls.folder),
                "JUPYTER_RUNTIME_DIR": str(cls.folder),
            },
            capture_output=True,
            text=True,
            timeout=2 * running.PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        cls.page = (cls.folder / "walk.html").read_text()

    def test_it_shows_the_report_in_a_frame(self):
        self.assertEqual(self.page.count("<iframe srcdoc="), 1)
        self.assertIn("c: read and written; a, b, n: read", self.page)
        self.assertIn("winner block_size_x=256,per_thread=4", self.page)

    def test_its_bar_comes_without_a_warning(self):
        self.assertIn("15/15", self.page)
        self.assertIsNone(re.search(r"\w+Warning: .*", self.page))

    def test_it_launches_the_winner(self):
        blocks = -(-1_000_000 // 1024)
        self.assertIn(f"launched {blocks} 256 1000000", self.page)

    def test_what_it_saves_is_served(self):
        spec = json.loads((self.folder / "kernels/add_arrays/add_arrays.json").read_text())
        self.assertEqual(spec["name"], "add_arrays")
        self.assertTrue((self.folder / "kernels/add_arrays/tables/add_arrays.json").is_file())

    def test_it_begins_with_the_lines_of_the_docs(self):
        page = (running.SOURCE / "docs/python.md").read_text()
        shown = re.search(r"## A kernel of your own.*?```python\n(.*?)```", page, re.DOTALL)[1]
        self.assertEqual("\n".join(CODE[:2]), shown.rstrip())

    def test_it_is_kept_without_results(self):
        self.assertEqual([cell["outputs"] for cell in CELLS if "outputs" in cell], [[]] * len(CODE))
