"""Kernels on torch's tensors and stream."""

import ctypes

import cuda_driver
import nvrtc
import torch
from cuda_driver import SCALARS, encode


class Kernel(cuda_driver.Kernel):
    """One entry of a cubin with a fixed grid and block, in torch's context."""

    def __init__(self, *what, **more):
        torch.cuda.current_stream()  # makes torch's context current
        super().__init__(*what, **more)

    def bind(self, arguments):
        """A call that launches on torch's current stream. `arguments`: ctypes values and tensors, kept
        alive."""
        values = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else a for a in arguments]
        launch = self.prepare(values, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return lambda keep=arguments: launch()


def scratch_of(plan):
    """Memory for the scratch buffers of a plan, by name."""
    parameters = [parameter for launch in plan["launches"] for parameter in launch["parameters"]]
    return {
        parameter["name"]: torch.empty(max(parameter["size_bytes"], 16), dtype=torch.uint8, device="cuda")
        for parameter in parameters
        if parameter.get("role") == "scratch"
    }


class BoundPlan:
    """The launches of a plan as one call. Unload those that are done with: a module takes memory."""

    def __init__(self):
        self.kernels, self.launches = [], []

    def add(self, kernel, arguments):
        self.kernels.append(kernel)
        self.launches.append(kernel.bind(arguments))

    def __call__(self):
        for launch in self.launches:
            launch()

    def unload(self):
        """Behind a synchronization; no call may follow."""
        for kernel in self.kernels:
            kernel.unload()
        self.kernels, self.launches = [], []


def load_kernels(cubin, plan):
    """The kernel of each launch of a plan."""
    return [
        Kernel(cubin, launch["entry_symbol"], launch["grid"], launch["block"], launch.get("shared_bytes", 0))
        for launch in plan["launches"]
    ]


def bind_plan(cubin, plan, buffers, scalars, kernels=None):
    """A BoundPlan. `buffers` and `scalars`: what the plan leaves to the caller, by name.

    Scratch buffers are made here unless they are given, and the kernels are loaded unless they are: who binds
    a plan to several sets of buffers has its code once.
    """
    bound = BoundPlan()
    buffers = {**scratch_of(plan), **buffers}
    for launch, kernel in zip(plan["launches"], kernels or load_kernels(cubin, plan)):
        arguments = []
        for parameter in launch["parameters"]:
            name = parameter["name"]
            if parameter["kind"] == "buffer":
                arguments.append(buffers[name])
            elif parameter["kind"] == "tensor_map":
                arguments.append(encode(parameter["tensor_map"], buffers[name].data_ptr()))
            else:
                value = parameter.get("value")
                arguments.append(SCALARS[parameter["type"]](scalars[name] if value is None else value))
        bound.add(kernel, arguments)
    return bound


def compile_source(path, names, include=()):
    """(cubin, {name expression: symbol}) of a CUDA source for the current device."""
    major, minor = torch.cuda.get_device_capability()
    compiled = nvrtc.compile_source(path, names, f"sm_{major}{minor}", include)
    return compiled.cubin, compiled.symbols
