"""NVRTC by ctypes: compiles a CUDA source. Needs no torch and no GPU."""

import ctypes
import functools
import glob
import os
import pathlib
import sys
import typing


def _folders(kind):
    found = [os.path.join(p, "nvidia", "*", kind) for p in sys.path if p.endswith("-packages")]
    return [*found, os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), kind)]


@functools.cache
def _library():
    folders = [*_folders("lib"), *_folders("lib64")]
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "libnvrtc.so.1[0-9]"))):
            # NVRTC looks for its builtins by name alone: they are found if they are open already.
            for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
                ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(path)
    raise RuntimeError(f"no libnvrtc in {', '.join(folders)}: install torch's CUDA packages or set CUDA_HOME")


@functools.cache
def cuda_headers():
    """The folder of CUDA's own headers."""
    for folder in _folders("include"):
        for path in sorted(glob.glob(os.path.join(folder, "cuda_bf16.h"))):
            return os.path.dirname(path)
    raise RuntimeError(f"no cuda_bf16.h in {', '.join(_folders('include'))}: set CUDA_HOME")


def _text(nvrtc, program, what):
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


class Compiled(typing.NamedTuple):
    cubin: bytes
    symbols: dict  # by name expression
    log: str


def compile_source(path, names, architecture, include=(), options=()):
    """Compiles a CUDA source with these name expressions; `include` are folders that it may include from."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    path = pathlib.Path(path)
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None)
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    arguments = [f"--gpu-architecture={architecture}", "--std=c++17", *options]
    arguments += [f"--include-path={folder}" for folder in include]
    encoded = (ctypes.c_char_p * len(arguments))(*(a.encode() for a in arguments))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), encoded)
        log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status != 0:
            raise RuntimeError(f"{path} does not compile:\n{log}")
        symbols = {}
        for name in names:
            symbol = ctypes.c_char_p()
            nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol))
            symbols[name] = symbol.value.decode()
        return Compiled(_text(nvrtc, program, "CUBIN"), symbols, log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def version():
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"
