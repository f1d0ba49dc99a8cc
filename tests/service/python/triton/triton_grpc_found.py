"""For tests that need Triton and gRPC."""

import python_found

python_found.require("grpc", "triton")
import triton_found  # noqa: E402, F401
