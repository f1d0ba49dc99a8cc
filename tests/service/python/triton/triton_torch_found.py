"""For tests that need Triton, torch and gRPC."""

import python_found

python_found.require("grpc", "torch", "triton")
import triton_found  # noqa: E402, F401
