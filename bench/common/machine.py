"""What a result belongs to: when, on what and by which tools it was measured."""

import datetime
import pathlib
import subprocess

import nvrtc
import torch
import triton


def toolchain(commit):
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not commit:
        here = pathlib.Path(__file__).parent
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=here, check=False
        ).stdout.strip()
    properties = torch.cuda.get_device_properties(0)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": properties.name,
        "sm_count": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "driver": driver.splitlines()[0] if driver else None,
        "nvrtc": nvrtc.version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "commit": commit or None,
        "timer": "cupti",
        "policy": "cold/3,stream",
    }
