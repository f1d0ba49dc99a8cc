"""A sample of configurations of each kernel under compute-sanitizer, without torch.

    compute-sanitizer --tool memcheck|racecheck|initcheck|synccheck --error-exitcode 1 \\
        --target-processes application-only python3 bench/kernels/sanitize.py [--kernels NAME...]

The sample covers what values of tunables it can at small and odd sizes. Buffers have exactly the bytes that
the plan names; what no kernel writes is set beforehand, outputs and scratch are not. It looks at no result:
the other scripts of this folder do. One line a kernel says how many launches ran. Exit status 1: a kernel did
not compile or launch.
"""

import ctypes
import pathlib
import random
import struct
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from compiling import Compiler
from cuda_driver import SCALARS, Kernel, allocate, encode, free, make_context, synchronize
from spec import H200, Spec, expression

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = [(3, 7), (33, 1000), (5, 4096), (2, 16385), (130, 64), (1, 1)]
PRODUCTS = [(129, 136, 72), (64, 256, 512), (16, 128, 1024), (1, 1, 1), (200, 136, 200), (200, 136, 272)]
ATTENTION = [(1, 2, 1, 70, 70, 64), (1, 4, 2, 33, 129, 128), (2, 1, 1, 128, 128, 128), (1, 1, 1, 1, 1, 64)]
ATTENTION += [(1, 2, 1, 70, 150, 256)]
PACKED = [(3, 2, 1, 170, 170, 64), (2, 4, 2, 129, 129, 128), (1, 1, 1, 1, 1, 64), (2, 2, 1, 200, 200, 256)]
ROTARY = [(7, 6, 2, 3, 80), (33, 1, 1, 33, 128), (5, 3, 3, 1, 18)]
SIZES = {
    "ND": ROWS,
    "MNK": PRODUCTS,
    "MNKE": [(129, 136, 72, 3), (129, 136, 272, 3), (300, 256, 512, 5), (5, 7, 9, 2)],
    "BHQHKVSQSKD": ATTENTION,
    "NHQHKVSQSKD": PACKED,
    "NHQHKVCD": ROTARY,
    "N": [(1000,), (7,), (65536,)],
}


def problems(fields):
    """Each size with the types in turn, each flag off and on."""
    dims, types, flags = (fields["problem"].get(part, {}) for part in ("dims", "types", "flags"))
    result = []
    for index, sizes in enumerate(SIZES["".join(dims)]):
        for on in [0, 1] if flags else [0]:
            chosen = {name: values[(index + on) % len(values)] for name, values in types.items()}
            others = {"RIGHT": 0, "SCALES": 1 + on}
            set_flags = {name: others.get(name, on) for name in flags}
            result.append({**dict(zip(dims, sizes, strict=True)), **chosen, **set_flags})
    return result


def content(parameter, argument, values):
    """What a buffer is set to: None if to nothing."""
    fill = argument.get("fill", {})
    if isinstance(fill, dict) and parameter["type"] in ("i32", "i64"):  # of an index that others rely on
        width = 4 if parameter["type"] == "i32" else 8
        count = parameter["size_bytes"] // width
        if "offsets" in fill and count:
            total = expression(fill["offsets"]["total"])(values)
            numbers = [total * i // (count - 1) for i in range(count)]
            return struct.pack(f"<{count}{'i' if width == 4 else 'q'}", *numbers)
        if "constant" in fill:
            return struct.pack(f"<{count}{'i' if width == 4 else 'q'}", *[fill["constant"]] * count)
    # 0x3c in each byte is about 1.06 in f16 and 0.01 in bf16 and f32; an integer is an index.
    value = 0 if parameter["type"].startswith("i") and "lengths" not in parameter["name"] else 0x3C
    return {"in": value, "inout": value, "zero": 0}.get(parameter["role"])


def passed(parameter, argument, buffers):
    if parameter["kind"] == "buffer":
        return ctypes.c_void_p(buffers[parameter["name"]])
    if parameter["kind"] == "tensor_map":
        return encode(parameter["tensor_map"], buffers[parameter["name"]])
    return SCALARS[parameter["type"]](parameter.get("value", argument.get("bench")))


def run_one(spec, case, compiled):
    """Launches the case once. Returns the number of launches."""
    cubin, symbols, error = compiled
    if error:
        raise RuntimeError(error.strip()[-500:])
    launches = spec.launches(*case)
    buffers, loaded = {}, []
    for launch in launches:
        for parameter in launch["parameters"]:
            if parameter["kind"] != "scalar" and parameter["name"] not in buffers:
                argument = spec.fields["arguments"][parameter["name"]]
                fill = content(parameter, argument, spec.values_of(*case))
                size = parameter["size_bytes"]
                buffers[parameter["name"]] = allocate(size, fill) if size or argument["role"] != "in" else 0
        symbol = symbols[launch["entry"]]
        kernel = Kernel(cubin, symbol, launch["grid"], launch["block"], launch["shared_bytes"])
        loaded.append(kernel)
        kernel.prepare(
            [
                passed(parameter, spec.fields["arguments"][parameter["name"]], buffers)
                for parameter in launch["parameters"]
            ]
        )()
    synchronize()
    for kernel in loaded:
        kernel.unload()
    free(buffers.values())
    return len(launches)


def main():
    parser = command_line.make_parser(__doc__)
    files = {
        file.stem: file for file in sorted(ROOT.glob("variants/*/*.json")) if "launches" in file.read_text()
    }
    parser.add_argument("--kernels", nargs="+", choices=sorted(files), default=sorted(files))
    parser.add_argument("--each", type=int, default=3, help="configurations of a problem besides its default")
    parser.add_argument("--seconds", type=float, default=100, help="no kernel is begun after so long")
    arguments = parser.parse_args()
    begun, failed = time.monotonic(), False
    specs = {name: Spec.read(files[name]) for name in arguments.kernels}
    compilers = {suffix: Compiler(f"sm_{H200['cc']}{suffix}") for suffix in ("", "a")}
    orders = {}
    for name, spec in specs.items():
        compiler = compilers["a" if spec.fields.get("arch_features") else ""]
        draw, seen = random.Random(1), set()
        orders[name] = []
        for problem in filter(spec.configurations, problems(spec.fields)):
            for configuration in spec.sample(problem, arguments.each, draw, seen):
                entries = [launch["entry"] for launch in spec.launches(problem, configuration)]
                orders[name].append(((problem, configuration), compiler.start(spec, entries)))
    make_context()
    for name, cases in orders.items():
        if time.monotonic() - begun > arguments.seconds:
            print(f"{name}: left out, the time is up", flush=True)
            continue
        launches = 0
        for case, compiled in cases:
            try:
                launches += run_one(specs[name], case, compiled.result())
            except RuntimeError as error:
                failed = True
                print(f"{name} {case[0]} {case[1]}: {error}", flush=True)
                break
        print(f"{name}: {len(cases)} configurations, {launches} launches", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
