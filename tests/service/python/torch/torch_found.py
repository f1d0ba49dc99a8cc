"""For tests that need torch."""

import python_found

python_found.require("torch")
import torch  # noqa: E402

if torch.backends.cuda.is_built():  # CUDA's runtime refuses the fake driver
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch._C._cuda_getDevice = lambda: -1
