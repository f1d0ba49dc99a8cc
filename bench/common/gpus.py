"""Which GPUs this machine has."""

import os
import subprocess


def visible_gpus():
    """What CUDA_VISIBLE_DEVICES may name, without a CUDA context."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name]
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()
