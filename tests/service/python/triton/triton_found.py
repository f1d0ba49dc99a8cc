"""For tests that need Triton, but no GPU and no torch."""

import os
import tempfile

import python_found

python_found.require("triton")
# Triton's own folders are a user's: not for tests.
os.environ["TRITON_HOME"] = os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="cubind-triton-test-")
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
