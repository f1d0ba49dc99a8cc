"""Kernels compiled by NVRTC in processes of their own, without a CUDA context."""

import base64
import concurrent.futures
import ctypes
import glob
import json
import os
import subprocess
import sys


def _nvrtc():
    folders = [os.path.join(p, "nvidia", "*", "lib") for p in sys.path if p.endswith("-packages")]
    folders += [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64")]
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "libnvrtc.so.1[0-9]"))):
            # NVRTC looks for its builtins by name alone: they are found if they are open already.
            for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
                ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(path)
    raise RuntimeError(f"no libnvrtc in {', '.join(folders)}: install torch's CUDA packages or set CUDA_HOME")


def toolkit_headers():
    folders = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")]
    folders += [os.path.join(p, "nvidia", "*", "include") for p in sys.path if p.endswith("-packages")]
    for folder in folders:
        for header in glob.glob(os.path.join(folder, "cuda_bf16.h")):
            return os.path.dirname(header)
    raise RuntimeError(f"no cuda_bf16.h in {', '.join(folders)}: set CUDA_HOME")


def compile_entries(source, folders, entries, architecture):
    """(cubin, {entry: symbol}, error): an error where there is no cubin."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), b"kernel.cu", 0, None, None)
    for entry in entries:
        nvrtc.nvrtcAddNameExpression(program, entry.encode())
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--ptxas-options=-warn-spills"]
    options += [f"--include-path={folder}" for folder in [*folders, toolkit_headers()]]
    encoded = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        return None, {}, log.value.decode()
    symbols = {}
    for entry in entries:
        symbol = ctypes.c_char_p()
        nvrtc.nvrtcGetLoweredName(program, entry.encode(), ctypes.byref(symbol))
        symbols[entry] = symbol.value.decode()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, symbols, ""


def compile_apart(order):
    """compile_entries in a process that ends with it."""
    done = subprocess.run([sys.executable, __file__], input=json.dumps(order).encode(), capture_output=True)
    if done.returncode != 0:
        return None, {}, done.stderr.decode()
    reply = json.loads(done.stdout)
    return base64.b64decode(reply["cubin"]), reply["symbols"], reply["error"]


class Compiler:
    """Each distinct list of entries is compiled once, several at a time."""

    def __init__(self, architecture, jobs=None):
        self.architecture = architecture
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count())
        self.results = {}

    def start(self, spec, entries):
        key = (str(spec.path), tuple(entries))
        if key not in self.results:
            source, folders = spec.sources()
            order = [str(source), [str(folder) for folder in folders], entries, self.architecture]
            self.results[key] = self.pool.submit(compile_apart, order)
        return self.results[key]

    def close(self):
        self.pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    made, found, fault = compile_entries(*json.load(sys.stdin))
    json.dump({"cubin": base64.b64encode(made or b"").decode(), "symbols": found, "error": fault}, sys.stdout)
