#!/usr/bin/env python3
"""Makes tuner/worker/device_kernels.ptx from device_kernels.cu with NVRTC.

Run it after an edit of the source: make_device_kernels.py [FOLDER OF libnvrtc]. The default folder is
.deps/cuda/lib, where ./dev deps puts the pinned NVRTC. A test fails where the checked-in PTX does not belong
to the source.
"""

import ctypes
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Turing and later. The PTX uses nothing newer than the ISA of this version, which drivers since branch 450
# know; NVRTC stamps its own, which an older driver would refuse.
OPTIONS = [b"--gpu-architecture=compute_75", b"--std=c++17", b"--fmad=false"]
PTX_VERSION = "7.0"


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


def compile_ptx(nvrtc: ctypes.CDLL, source: bytes) -> str:
    program = ctypes.c_void_p()
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"device_kernels.cu", 0, None, None) != 0:
        sys.exit("nvrtcCreateProgram failed")
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options) != 0
    if failed:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def main() -> None:
    default = HERE.parents[1] / ".deps" / "cuda" / "lib"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    source = (HERE / "device_kernels.cu").read_bytes()
    ptx = compile_ptx(load_nvrtc(folder), source)
    body = re.sub(r"^//.*\n", "", ptx, flags=re.MULTILINE).strip() + "\n"
    body = re.sub(r"\n{2,}", "\n", body)
    body, stamps = re.subn(r"^\.version \S+$", f".version {PTX_VERSION}", body, flags=re.MULTILINE)
    if stamps != 1:
        sys.exit("the PTX has no .version line")
    digest = hashlib.sha256(source).hexdigest()
    (HERE / "device_kernels.ptx").write_text(
        f"// Made by make_device_kernels.py from device_kernels.cu, SHA-256 {digest}\n{body}"
    )


if __name__ == "__main__":
    main()
