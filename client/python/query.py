#!/usr/bin/env python3
"""Asks a cubind daemon for the best variant of a kernel and writes its cubin and launch plan.

    query.py rmsnorm_forward N=4096,D=4096,T=bf16 --device nvidia-h200 -o rmsnorm.cubin

Needs grpcio and the stubs of schemas/cubind.proto, made by

    python -m grpc_tools.protoc -I . --python_out=STUBS --grpc_python_out=STUBS schemas/cubind.proto

with STUBS on PYTHONPATH; the package has them next to this file. Exit code: 0, 1 if the daemon refuses or the
answer is damaged, 2 for wrong usage.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import sys

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from schemas import cubind_pb2, cubind_pb2_grpc


def parse_problem(text):
    """N=4096,D=4096,T=bf16: integers are dims, words are types."""
    problem = cubind_pb2.Problem()
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if value.lower() in ("true", "false"):
            problem.dims.add(name=name, value=value.lower() == "true")  # a flag may stand among the dims
        elif value.lstrip("-").isdigit():
            problem.dims.add(name=name, value=int(value))
        else:
            problem.types.add(name=name, type=value)
    return problem


def decompress(frame, size):
    """A zstd frame whose content has `size` bytes."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    content = ctypes.create_string_buffer(size)
    if zstd.ZSTD_decompress(content, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame))) != size:
        raise ValueError("the daemon's zstd frame is damaged")
    return content.raw


def fetch_cubin(stub, artifact):
    """From the reply or, above 3 MiB, by chunks; checked against its digest."""
    frame = artifact.zstd_cubin
    if not frame:
        request = cubind_pb2.GetArtifactRequest(digest=artifact.digest)
        frame = b"".join(chunk.data for chunk in stub.GetArtifact(request))
    cubin = decompress(frame, artifact.cubin_bytes)
    if hashlib.sha256(cubin).digest() != artifact.digest:
        raise ValueError("the cubin does not have the digest that the daemon promised")
    return cubin


def launch_plan(reply):
    """What a launcher needs, in launch order. A parameter without a value comes from the caller.

    Buffers have a role: in, out, inout, zero (the caller clears it before the first launch of each call) or
    scratch (the caller allocates it, its content does not matter). What has a symbol is no parameter of the
    kernel: an input is copied to that variable of the module before the launch.
    """
    launches = []
    for launch in reply.plan.launches:
        parameters = []
        for parameter in launch.parameters:
            entry = {"name": parameter.name, "type": parameter.type}
            if parameter.role != cubind_pb2.ROLE_NONE:
                entry["role"] = cubind_pb2.Role.Name(parameter.role).lower()
            if parameter.source == cubind_pb2.Parameter.VALUE:
                entry["value"] = parameter.value
            elif parameter.source in (cubind_pb2.Parameter.BUFFER, cubind_pb2.Parameter.SYMBOL):
                if parameter.symbol:
                    entry["symbol"] = parameter.symbol
                entry["role"] = cubind_pb2.Role.Name(parameter.role).lower()
                entry["shape"] = list(parameter.shape)
                entry["size_bytes"] = parameter.extent_bytes
            parameters.append(entry)
        launches.append(
            {
                "entry_symbol": launch.entry_symbol,
                "grid": [launch.grid.x, launch.grid.y, launch.grid.z],
                "block": [launch.block.x, launch.block.y, launch.block.z],
                "shared_bytes": launch.shared_bytes,
                "parameters": parameters,
            }
        )
    return launches


def problem_of(problem):
    values = {v.name: v.value for v in [*problem.dims, *problem.flags]}
    return values | {t.name: t.type for t in problem.types}


def match_of(provenance):
    """The departures as `cubindctl get` prints them."""
    short = {cubind_pb2.DEFAULT_CONFIGURATION: "default"}
    names = [short.get(d) or cubind_pb2.Departure.Name(d).lower() for d in provenance.departures]
    return "+".join(names) or "exact"


def describe(reply):
    provenance = reply.provenance
    answer = {
        "kernel": reply.kernel,
        "problem": problem_of(reply.problem),
        "device": reply.device,
        "configuration": {v.name: v.value for v in reply.configuration.values},
        "match": match_of(provenance),
        "evidence": cubind_pb2.Evidence.Name(provenance.evidence).lower(),
        "launches": launch_plan(reply),
    }
    if provenance.timing.samples:
        answer["time_us"] = provenance.timing.median_us
    if reply.why:
        answer["why"] = reply.why
    return answer


def default_address():
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = f"{runtime}/cubind" if runtime else f"/tmp/cubind-{os.getuid()}"
    return os.environ.get("CUBIND_ADDRESS", f"unix://{folder}/cubind.sock")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernel")
    parser.add_argument("problem", help="N=4096,D=4096,T=bf16")
    parser.add_argument(
        "--device", required=True, help="label of the device class, as `cubindctl devices` lists it"
    )
    parser.add_argument(
        "--address", default=default_address(), help="default: CUBIND_ADDRESS, else the user's socket"
    )
    parser.add_argument("-o", "--output", type=pathlib.Path, help="file for the cubin")
    arguments = parser.parse_args()

    request = cubind_pb2.GetVariantRequest(
        kernel=arguments.kernel,
        problem=parse_problem(arguments.problem),
        device=cubind_pb2.Device(label=arguments.device),
        with_plan=True,
    )
    with grpc.insecure_channel(arguments.address) as channel:
        stub = cubind_pb2_grpc.CubindStub(channel)
        try:
            reply = stub.GetVariant(request, timeout=30)
            cubin = fetch_cubin(stub, reply.artifact)
        except grpc.RpcError as error:
            by_daemon = any(name == "cubind-status" for name, _ in error.trailing_metadata() or ())
            hint = "" if by_daemon else " (is a daemon there? Start one with `cubind`)"
            sys.exit(f"query.py: {error.code().name}: {error.details()}{hint}")
        except ValueError as error:
            sys.exit(f"query.py: {error}")
    if arguments.output:
        arguments.output.write_bytes(cubin)
        print(f"wrote {arguments.output}, {len(cubin)} bytes", file=sys.stderr)
    print(json.dumps(describe(reply), indent=2))


if __name__ == "__main__":
    main()
