"""One compile, by Triton in this process: TTIR and options in, cubin and launch facts out."""

from __future__ import annotations

import pathlib
import re
import time
from typing import Any

from .request import Request


def compile_here(request: Request, folder: pathlib.Path) -> tuple[dict[str, Any], bytes]:
    """The launch facts and the cubin. The current directory is `folder`, which is private and empty; all
    that Triton writes goes there. What it raises is the compiler's word."""
    import triton
    from triton.backends.compiler import GPUTarget

    # A relative name, the same in every process: an assertion's text has it.
    (folder / "kernel.ttir").write_bytes(request.ttir)
    started = time.perf_counter()
    kernel = triton.compile(
        "kernel.ttir", target=GPUTarget("cuda", request.architecture, 32), options=request.options
    )
    facts = launch_facts(kernel.metadata._asdict(), kernel.asm["ptx"])
    facts["compile_ms"] = 1e3 * (time.perf_counter() - started)
    return facts, kernel.asm["cubin"]


def launch_facts(metadata: dict[str, Any], ptx: str) -> dict[str, Any]:
    """How the kernel is launched, by Triton's metadata and the PTX's own words.

    The grid of a launch is the kernel's grid with x multiplied by the cluster's. The parameters are the
    kernel's own, then one pointer per scratch buffer (two, with Triton 3.4 one).
    """
    cluster = metadata.get("cluster_dims") or (metadata["num_ctas"], 1, 1)
    required = re.search(r"\.reqntid (\d+)", ptx)
    return {
        "entry": metadata["name"],
        "threads": int(required.group(1)) if required else 32 * metadata["num_warps"],
        "shared_bytes": metadata["shared"],
        "cluster": [int(size) for size in cluster],
        "cooperative": bool(metadata.get("launch_cooperative_grid")),
        "programmatic_dependent": bool(metadata.get("launch_pdl")),
        "global_scratch_bytes": metadata.get("global_scratch_size") or 0,
        "global_scratch_align": metadata.get("global_scratch_align") or 1,
        "profile_scratch_bytes": metadata.get("profile_scratch_size") or 0,
        "profile_scratch_align": metadata.get("profile_scratch_align") or 1,
        "tensor_memory_columns": metadata.get("tmem_size") or 0,
        "descriptors": metadata.get("tensordesc_meta") or [],
        "parameters": _parameters(ptx, metadata["name"]),
    }


def _parameters(ptx: str, entry: str) -> list[str]:
    """The types of the entry's parameters, as PTX names them: "u64", "b8[128]"."""
    found = re.search(rf"\.entry {re.escape(entry)}\(([^)]*)\)", ptx)
    pattern = re.compile(r"\.param(?: \.align \d+)? \.(\w+)[^,\[]*(\[\d+\])?")
    return ["".join(match.groups("")) for match in pattern.finditer(found.group(1) if found else "")]


def read_resources(log: str) -> dict[str, int] | None:
    """What ptxas says of the entry's resources; None where it was not asked (Triton 3.4)."""
    patterns = {
        "registers": r"Used (\d+) registers",
        "static_shared_bytes": r"(\d+) bytes smem",
        "local_bytes": r"(\d+) bytes stack frame",
        "spill_store_bytes": r"(\d+) bytes spill stores",
        "spill_load_bytes": r"(\d+) bytes spill loads",
    }
    if not re.search(patterns["registers"], log):
        return None
    found = {name: re.findall(pattern, log) for name, pattern in patterns.items()}
    return {name: int(numbers[-1]) if numbers else 0 for name, numbers in found.items()}
