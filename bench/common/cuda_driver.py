"""The CUDA driver API by ctypes: cubins, memory and launches. Needs no torch."""

import ctypes

MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute
MAP_TYPES = ["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16"]  # CUtensorMapDataType
SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float, "f64": ctypes.c_double}

_cuda = ctypes.CDLL("libcuda.so.1")


def check(status, what):
    if status != 0:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{what}: {(text.value or b'unknown error').decode()} ({status})")


def make_context():
    """The first device's primary context becomes current. Users of torch have it already."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(_cuda.cuInit(0), "cuInit")
    check(_cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(_cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "the context")
    check(_cuda.cuCtxSetCurrent(context), "the context")


def synchronize():
    check(_cuda.cuCtxSynchronize(), "waiting for the device")


def allocate(size_bytes, fill=None):
    """The address of so many bytes of device memory, each set to `fill` where it is given, or all to these
    bytes."""
    address = ctypes.c_uint64()
    check(
        _cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size_bytes, 1))), f"{size_bytes} bytes"
    )
    if isinstance(fill, bytes):
        check(_cuda.cuMemcpyHtoD_v2(address, fill, ctypes.c_size_t(len(fill))), "copying to memory")
    elif fill is not None:
        check(
            _cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(fill), ctypes.c_size_t(size_bytes)), "setting memory"
        )
    return address.value


def free(addresses):
    for address in addresses:
        check(_cuda.cuMemFree_v2(ctypes.c_uint64(address)), "freeing memory")


def encode(tensor_map, address):
    """The descriptor of the buffer at the address. `tensor_map`: its numbers, as plans have them."""
    memory = (ctypes.c_uint64 * 24)()
    descriptor = (ctypes.c_uint64 * 16).from_buffer(memory, -ctypes.addressof(memory) % 64)
    lists = [
        (kind * 5)(*tensor_map[name])
        for name, kind in (
            ("sizes", ctypes.c_uint64),
            ("strides", ctypes.c_uint64),
            ("box", ctypes.c_uint32),
            ("element_strides", ctypes.c_uint32),
        )
    ]
    modes = [
        (tensor_map[name] // smallest).bit_length()
        for name, smallest in (("interleave", 16), ("swizzle", 32), ("l2_promotion", 64))
    ]
    kind, axes, nan = (
        MAP_TYPES.index(tensor_map["type"]),
        len(tensor_map["sizes"]),
        tensor_map["fill"] == "nan",
    )
    status = _cuda.cuTensorMapEncodeTiled(
        descriptor, kind, axes, ctypes.c_void_p(address), *lists, *modes, int(nan)
    )
    check(status, f"the tensor map {tensor_map}")
    return descriptor


class Kernel:
    """One entry of a cubin with a fixed grid and block, in the current context."""

    def __init__(self, cubin, symbol, grid, block, shared_bytes=0):
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

    def prepare(self, values, stream=None):
        """A call that launches with these ctypes values, which it keeps alive."""
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))

        def launch(keep=values):
            check(_cuda.cuLaunchKernel(self.function, *self.shape, stream, pointers, None), self.symbol)

        return launch

    def unload(self):
        check(_cuda.cuModuleUnload(self.module), "unloading a module")
