"""Cubins by ctypes on the CUDA driver API and NVRTC: load, launch on torch's stream, compile a small source."""

import ctypes
import glob
import os
import sys

import torch

MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute
SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float, "f64": ctypes.c_double}

_cuda = ctypes.CDLL("libcuda.so.1")


def check(status, what):
    if status != 0:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{what}: {(text.value or b'unknown error').decode()} ({status})")


class Kernel:
    """One entry of a cubin with a fixed grid and block."""

    def __init__(self, cubin, symbol, grid, block, shared_bytes=0):
        torch.cuda.current_stream()  # makes torch's context current
        self.module = ctypes.c_void_p()
        check(_cuda.cuModuleLoadData(ctypes.byref(self.module), cubin), f"loading the cubin of {symbol}")
        self.function = ctypes.c_void_p()
        check(_cuda.cuModuleGetFunction(ctypes.byref(self.function), self.module, symbol.encode()), symbol)
        if shared_bytes > 48 * 1024:
            status = _cuda.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
            check(status, f"{shared_bytes} bytes of shared memory for {symbol}")
        self.shape = [*grid, *block, shared_bytes]
        self.symbol = symbol

    def bind(self, arguments):
        """A call that launches on torch's current stream. `arguments`: ctypes values and tensors, kept alive."""
        values = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else a for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def launch(keep=(values, arguments)):
            check(_cuda.cuLaunchKernel(self.function, *self.shape, stream, pointers, None), self.symbol)

        return launch

    def unload(self):
        check(_cuda.cuModuleUnload(self.module), "unloading a module")


def bind_plan(cubin, plan, buffers, scalars):
    """The launches of a plan as one call. `buffers` and `scalars`: what the plan leaves to the caller, by name."""
    launches = []
    for launch in plan["launches"]:
        kernel = Kernel(
            cubin, launch["entry_symbol"], launch["grid"], launch["block"], launch.get("shared_bytes", 0)
        )
        arguments = []
        for parameter in launch["parameters"]:
            name = parameter["name"]
            if parameter["kind"] == "buffer":
                arguments.append(buffers[name])
            else:
                value = parameter.get("value")
                arguments.append(SCALARS[parameter["type"]](scalars[name] if value is None else value))
        launches.append(kernel.bind(arguments))

    def call():
        for launch in launches:
            launch()

    return call


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


def compile_source(path, names):
    """(cubin, {name expression: symbol}) of a CUDA source for the current device."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    with open(path, "rb") as file:
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), file.read(), os.path.basename(path).encode(), 0, None, None
        )
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    major, minor = torch.cuda.get_device_capability()
    options = [f"--gpu-architecture=sm_{major}{minor}".encode(), b"--std=c++17"]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"{path} does not compile:\n{log.value.decode()}")
    symbols = {}
    for name in names:
        symbol = ctypes.c_char_p()
        nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol))
        symbols[name] = symbol.value.decode()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, symbols


def nvrtc_version():
    major, minor = ctypes.c_int(), ctypes.c_int()
    _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"
