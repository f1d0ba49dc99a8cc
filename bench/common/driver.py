"""Cubins by ctypes on the CUDA driver API: load, and launch on torch's stream."""

import ctypes

import nvrtc
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
        self._allow_shared_memory(shared_bytes, symbol)
        self.shape = [*grid, *block, shared_bytes]
        self.symbol = symbol

    def _allow_shared_memory(self, dynamic_bytes, symbol):
        """The driver's limit leaves out what the kernel has of static shared memory."""
        allowed = ctypes.c_int()
        status = _cuda.cuFuncGetAttribute(ctypes.byref(allowed), MAX_DYNAMIC_SHARED_SIZE_BYTES, self.function)
        check(status, f"the limit of shared memory of {symbol}")
        if dynamic_bytes > allowed.value:
            status = _cuda.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_bytes)
            check(status, f"{dynamic_bytes} bytes of shared memory for {symbol}")

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


def scratch_of(plan):
    """Memory for the scratch buffers of a plan, by name."""
    parameters = [parameter for launch in plan["launches"] for parameter in launch["parameters"]]
    return {
        parameter["name"]: torch.empty(max(parameter["size_bytes"], 16), dtype=torch.uint8, device="cuda")
        for parameter in parameters
        if parameter.get("role") == "scratch"
    }


def bind_plan(cubin, plan, buffers, scalars):
    """The launches of a plan as one call. `buffers` and `scalars`: what the plan leaves to the caller, by name.

    Scratch buffers are made here unless they are given.
    """
    launches = []
    buffers = {**scratch_of(plan), **buffers}
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


def compile_source(path, names, include=()):
    """(cubin, {name expression: symbol}) of a CUDA source for the current device."""
    major, minor = torch.cuda.get_device_capability()
    compiled = nvrtc.compile_source(path, names, f"sm_{major}{minor}", include)
    return compiled.cubin, compiled.symbols
