"""For tests that need a package that the tests' own Python may not have: the Python of CUBIND_PYTHON is taken
instead, and the test is left out where neither has it."""

import importlib.util
import os
import subprocess
import sys

SKIPPED = 77  # CTest's return code for a test that was not run


def _has(python, packages):
    command = [python, "-c", f"import {', '.join(packages)}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def require(*packages):
    """Goes on in a Python that has the packages."""
    if all(importlib.util.find_spec(package) for package in packages):
        return
    other = os.environ.get("CUBIND_PYTHON", "")
    if not other or os.path.samefile(other, sys.executable) or not _has(other, packages):
        print(
            f"{' or '.join(packages)} is not installed: these tests were not run. CUBIND_PYTHON names a "
            f"Python that has {'them' if len(packages) > 1 else 'it'}",
            file=sys.stderr,
        )
        sys.exit(SKIPPED)
    os.execv(other, [other, "-B", *sys.argv])
