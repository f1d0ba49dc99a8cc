#!/usr/bin/env python3
"""How long a known question waits while other callers send what is slow to serve or to refuse.

usage: ./dev bench load [--seconds S] [--bin DIR] [LOAD...]

A daemon with a store of its own holds the shipped table of the H200 and plays a recorded one. One process
asks a question whose answer is known every 5 ms, and another asks for the status every 100 ms. Meanwhile
each load runs for S seconds (default 15):

  none         nothing
  spaces       8 callers ask for a kernel of 4.8 * 10^7 configurations of which none is valid, 2 plan a Tune
               of 1000 such problems
  tables       2 callers import tables of 64 MiB, one that is no JSON and one with 100,000 records that are
               refused
  jobs         4 callers list 60,000 jobs that have ended, and cancel jobs that do not exist
  failures     12,000 problems that the replay device must refuse are tuned, 1000 in a call
  connections  2000 connections are made and left alone
  streams      200 exports of everything are begun and not read

and, by the holder of a token over TCP:

  uploads      13 imports of 60 MiB are never ended
  exports      exports are begun and not read, 20 in a second
  checks       20 checks at a time of the kernel with 4.8 * 10^7 configurations
  resets       2 connections send calls and reset them at once

Then SIGTERM, while the load goes on. Printed for each load: percentiles of the known question, the slowest
status, how many of these calls failed, with a token the slowest check of another caller, the seconds from
SIGTERM to the end of the process, its largest RSS. All processes share this machine.
Needs grpcio and protobuf, as .deps/venv/bin/python has them (CUBIND_PYTHON).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import multiprocessing
import pathlib
import platform
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from callers import KNOWN, LOADS, load, probe
from hostile import HOSTILE

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REPLAYED = ROOT / "tests" / "golden" / "replay" / "rmsnorm.json"
ENDED_JOBS = 60_000
NAMES = [*LOADS, *HOSTILE]


# ---- The daemon ----


def endless_spec():
    """vector_add with 10^6 times as many configurations, of which none is valid."""
    spec = json.loads((ROOT / "variants" / "vector_add" / "vector_add.json").read_text())
    spec["name"] = "endless"
    names = [f"X{i}" for i in range(1, 7)]
    for name in names:
        spec["tunables"][name] = list(range(1, 11))
        for configuration in spec["default"]:
            configuration[name] = 1
    spec["launches"][0]["shared_bytes"] = " + ".join(names)
    spec["constraints"].append(" + ".join(names) + " + N < 0")
    return spec


def write_endless(folder):
    shutil.copytree(ROOT / "variants" / "vector_add", folder / "vector_add")
    shutil.copytree(ROOT / "variants" / "common", folder / "common")
    (folder / "vector_add" / "vector_add.json").write_text(json.dumps(endless_spec()))


def listen_with_token(folder, bin_dir):
    """Options of a daemon that also listens on TCP, and the token of a tuner who may import."""
    tokens = folder / "tokens.json"
    command = [bin_dir / "cubindctl", "token", "new", "hostile", "--role", "admin", "--file", tokens]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return ["--listen", "127.0.0.1:0", "--insecure", "--tokens", tokens], made


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def field(number, data):
    """A field of a message: bytes, or a number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def encoded(column):
    """A column as the store's digests cover it (server/store/fact_rows.cpp)."""
    kind, held = {int: (b"i", str), str: (b"s", str), bytes: (b"b", bytes)}[type(column)]
    held = held(column) if kind == b"b" else held(column).encode()
    return kind + str(len(held)).encode() + b":" + held


def ended_job(number, now):
    """A row of table jobs, with a StoredJob."""
    zeros, key, name = bytes(32), hashlib.sha256(str(number).encode()).digest(), f"{number:016x}"
    dims = b"".join(field(1, field(1, dim) + field(2, 1)) for dim in ("N", "D"))
    problem = dims + field(2, field(1, "T") + field(2, "bf16"))
    question = field(1, "rmsnorm_forward") + field(2, zeros) + field(3, problem) + field(4, zeros)
    question += field(5, "cold/3,stream") + field(6, "tolerance")
    job = field(1, name) + field(10, 5) + field(16, now) + field(18, now)
    fact = field(1, job) + field(2, key) + field(3, question) + field(8, zeros)
    text = '{"dims":{"N":1,"D":1},"types":{"T":"bf16"},"flags":{},"scenario":""}'
    columns = [
        name,
        "tune",
        key,
        "rmsnorm_forward",
        text,
        zeros,
        "cold/3,stream",
        "done",
        1,
        0,
        0,
        now,
        now,
        0,
    ]
    return [*columns, fact, hashlib.sha256(b"".join(map(encoded, columns)) + fact).digest()]


def add_ended_jobs(store):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        rows = (ended_job(number, now) for number in range(1, ENDED_JOBS + 1))
        database.executemany(f"INSERT INTO jobs VALUES ({', '.join('?' * 16)})", rows)


def most_rss_mb(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def measure(name, seconds, bin_dir):
    with tempfile.TemporaryDirectory(prefix="cubind-load.") as folder:
        kernels = pathlib.Path(folder) / "kernels"
        write_endless(kernels)
        options, token = ["--kernels", kernels, "--replay", REPLAYED], ""
        if name in HOSTILE:
            listen, token = listen_with_token(pathlib.Path(folder), bin_dir)
            options += listen
        with Daemon(bin_dir, options, shipped_tables=True) as daemon:
            if name == "jobs":
                daemon.end()
                add_ended_jobs(daemon.store)
                daemon.start()
            # The answer's cubin is compiled once, before the clock runs.
            daemon.get(
                "rmsnorm_forward",
                {**KNOWN["dims"], **KNOWN["types"]},
                "--device",
                "nvidia-h200",
                "--on-miss",
                "wait",
            )
            return measured(daemon, name, seconds, token)


def measured(daemon, name, seconds, token):
    context = multiprocessing.get_context("fork")  # gRPC is imported in the children alone
    ended, load_ended, queue = context.Event(), context.Event(), context.Queue()
    pauses = {"GetVariant": 0.005, "GetStatus": 0.1}
    address, actions = daemon.address, LOADS.get(name)
    if token:
        pauses["CheckKernel"] = 0.5
        address = re.search(r"listening on (127\.0\.0\.1:\d+)", daemon.log_tail())[1]
        actions = functools.partial(HOSTILE[name], spec=endless_spec())
    probes = [
        context.Process(target=probe, args=(daemon.address, ended, queue, call, pause))
        for call, pause in pauses.items()
    ]
    loader = context.Process(target=load, args=(address, token, actions, load_ended, queue))
    loader.daemon = True  # ends with this process, should a probe fail
    loader.start()
    time.sleep(2)
    for process in probes:
        process.start()
    time.sleep(seconds)
    ended.set()
    probed = [queue.get(timeout=120) for _ in probes]
    taken = {call: times for call, times, _ in probed}
    rss = most_rss_mb(daemon.process)
    end_seconds = daemon.end(limit=60)
    load_ended.set()
    answered, refused = queue.get(timeout=120)
    for process in (*probes, loader):
        process.join(10)
        process.kill()
    known = sorted(taken["GetVariant"])
    if not known or not taken["GetStatus"]:
        sys.exit(f"{name}: no known question, or no status, was answered within {seconds} s")
    checks = {"others_check_max_ms": round(max(taken["CheckKernel"], default=0.0), 3)} if token else {}
    return {
        "calls": len(known),
        "failed": sum(failed for _, _, failed in probed),
        "known_ms": {
            "median": round(statistics.median(known), 3),
            "p99": round(known[int(len(known) * 0.99)], 3),
            "max": round(known[-1], 3),
        },
        "status_max_ms": round(max(taken["GetStatus"]), 3),
        **checks,
        "sigterm_seconds": round(end_seconds, 2),
        "most_rss_mb": rss,
        "load": {"answered": answered, "refused": refused},
    }


def main():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument(
        "--bin", type=pathlib.Path, help="folder of cubind and cubindctl; default: a release build is made"
    )
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"of {', '.join(NAMES)}; default: all")
    options = parser.parse_args()
    if unknown := set(options.loads) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: no such load; there are {', '.join(NAMES)}")
    # Only the children import it, and a parent would wait for them in vain.
    if not importlib.util.find_spec("grpc"):
        parser.error(f"{sys.executable} has no grpcio; CUBIND_PYTHON names another interpreter")
    if not options.bin:
        subprocess.run(
            [ROOT / "dev", "build", "release", "programs", "cubind_python"], check=True, stdout=sys.stderr
        )
        options.bin = ROOT / "build" / "release" / "bin"
    result = {"cpu": platform.processor() or platform.machine(), "seconds": options.seconds, "loads": {}}
    for name in options.loads or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        result["loads"][name] = measure(name, options.seconds, options.bin.resolve())
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
