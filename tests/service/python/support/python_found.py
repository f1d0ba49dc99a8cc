"""For tests that need a package: they run in the Python that CUBIND_PYTHON names if that has the package, and
in the tests' own otherwise. They are skipped if neither has it."""

import importlib.util
import os
import subprocess
import sys

SKIPPED = 77  # CTest's return code for a test that was not run


def _has(python, packages):
    command = [python, "-c", f"import {', '.join(packages)}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def require(*packages):
    """Continues in a Python that has the packages."""
    other = os.environ.get("CUBIND_PYTHON", "")
    if other and os.path.abspath(other) != sys.executable and _has(other, packages):
        os.execv(other, [other, *sys.orig_argv[1:]])
    if not all(importlib.util.find_spec(package) for package in packages):
        print(f"{' or '.join(packages)} is missing: ./dev deps test triton torch", file=sys.stderr)
        sys.exit(SKIPPED)
