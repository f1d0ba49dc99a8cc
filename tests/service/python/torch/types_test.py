"""The public names are typed: pyright reads a program that uses them all, in its strict mode. Needs torch and
basedpyright, which is pyright with its Node.js."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running

PYRIGHT = pathlib.Path(sys.executable).with_name("basedpyright")


@unittest.skipUnless(PYRIGHT.is_file(), f"there is no {PYRIGHT}")
class Types(unittest.TestCase):
    def test_a_program_that_uses_every_name_has_no_error(self):
        program = pathlib.Path(__file__).with_name("public_types.py").read_text()
        self.assertEqual([n for n in operators.__all__ if f"cubind.torch.{n}" not in program], [])
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder, "pyrightconfig.json")
            package = str(pathlib.Path(cubind.__file__).parents[1])
            settings = {"extraPaths": [package], "pythonVersion": "3.11", "typeCheckingMode": "strict"}
            config.write_text(json.dumps(settings))
            pathlib.Path(folder, "program.py").write_text(program)
            command = [PYRIGHT, "--project", config, "--pythonpath", sys.executable, "--outputjson"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=4 * running.PATIENCE)
        report = json.loads(result.stdout)
        self.assertEqual(report["generalDiagnostics"], [])
        self.assertEqual(report["summary"]["filesAnalyzed"], 1)
