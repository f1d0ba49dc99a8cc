#!/usr/bin/env python3
"""Makes tuner/worker/device_kernels.ptx and device_kernels.cubins from device_kernels.cu with NVRTC.

Run it after an edit of the source: make_device_kernels.py [FOLDER OF libnvrtc]. The default folder is
.deps/cuda12/lib, where ./dev deps puts the pinned NVRTC 12, whose cubins the drivers of CUDA 12 load too.
Needs zstd. A test fails where a checked-in file does not belong to the source.
"""

import ctypes
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Turing and later. The PTX uses nothing newer than the ISA of this version, which drivers since branch 450
# know; NVRTC stamps its own, which an older driver would refuse.
OPTIONS = [b"--std=c++17", b"--fmad=false"]
PTX_VERSION = "7.0"
PTX_ARCHITECTURE = "compute_75"
# One for each generation: it runs on the later GPUs of its own.
CUBIN_ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]


def load_nvrtc(folder: pathlib.Path) -> ctypes.CDLL:
    # NVRTC does not find its builtins in a folder that the loader does not search: they are opened first.
    builtins = sorted(folder.glob("libnvrtc-builtins.so.*"))
    libraries = sorted(folder.glob("libnvrtc.so.*"))
    if not builtins or not libraries:
        sys.exit(
            f"{folder}: no libnvrtc and libnvrtc-builtins; run ./dev deps or name a toolkit's lib folder"
        )
    ctypes.CDLL(str(builtins[-1]), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(libraries[-1]))


def compile_source(nvrtc: ctypes.CDLL, source: bytes, architecture: str, what: str) -> bytes:
    """`what` is NVRTC's word for the result: PTX or CUBIN."""
    program = ctypes.c_void_p()
    asked = [b"--gpu-architecture=" + architecture.encode(), *OPTIONS]
    options = (ctypes.c_char_p * len(asked))(*asked)
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"device_kernels.cu", 0, None, None) != 0:
        sys.exit("nvrtcCreateProgram failed")
    failed = nvrtc.nvrtcCompileProgram(program, len(asked), options) != 0
    if failed:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{architecture}: {log.value.decode()}")
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, result)
    return result.raw


def write_ptx(nvrtc: ctypes.CDLL, source: bytes, head: str) -> None:
    ptx = compile_source(nvrtc, source, PTX_ARCHITECTURE, "PTX").rstrip(b"\0").decode()
    body = re.sub(r"^//.*\n", "", ptx, flags=re.MULTILINE).strip() + "\n"
    body = re.sub(r"\n{2,}", "\n", body)
    body, stamps = re.subn(r"^\.version \S+$", f".version {PTX_VERSION}", body, flags=re.MULTILINE)
    if stamps != 1:
        sys.exit("the PTX has no .version line")
    (HERE / "device_kernels.ptx").write_text(head + body)


def write_cubins(nvrtc: ctypes.CDLL, source: bytes, head: str) -> None:
    """A line each: the architecture and a zstd frame in hexadecimal digits."""
    lines = ""
    for architecture in CUBIN_ARCHITECTURES:
        cubin = compile_source(nvrtc, source, architecture, "CUBIN")
        frame = subprocess.run(
            ["zstd", "--ultra", "-22", "--stdout"], input=cubin, stdout=subprocess.PIPE, check=True
        )
        lines += f"{architecture} {frame.stdout.hex()}\n"
    (HERE / "device_kernels.cubins").write_text(head + lines)


def main() -> None:
    default = HERE.parents[1] / ".deps" / "cuda12" / "lib"
    nvrtc = load_nvrtc(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    source = (HERE / "device_kernels.cu").read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    head = f"// Made by make_device_kernels.py from device_kernels.cu, SHA-256 {digest}\n"
    write_ptx(nvrtc, source, head)
    write_cubins(nvrtc, source, head)


if __name__ == "__main__":
    main()
