#!/usr/bin/env python3
"""Server CPU time of a GetVariant hit, compared with a gRPC server that answers a constant message as
large.

usage: ./dev bench lookup [--records N] [--seconds S] [--pairs P] [--under-way K]
       python3 bench/lookup ...             in the folder of a package made by ./dev package --with-tests

All servers are release builds with the same gRPC, protos and raw callback API, on a Unix socket. The daemon's
index holds N records, nearly all with a cubin of their own; a client keeps K calls under way, each for a
record drawn at random, and each server gets P runs of S seconds in turns. CPU time is user and system time of
the server's process over a run (what getrusage counts), divided by the run's calls. The reported figures are
medians; `ratio` is the median of the pairs' ratios. `first_hits` is a serial run that asks for each record
once after the start, before anything is remembered.

`bare_from_ram` is the bare server with N constant messages instead of one, drawn at random: as many bytes out
of RAM as the daemon sends. What it costs more than `bare` (`ratio_of_bare_from_ram`) is the memory's price,
the rest ours. Nothing is judged by it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IN_CHECKOUT = (ROOT / "dev").is_file()
BIN = ROOT / "build" / "release" / "bin" if IN_CHECKOUT else ROOT / "bin"
BENCH_BIN = BIN if IN_CHECKOUT else ROOT / "bench"


def provide_programs():
    if IN_CHECKOUT:
        subprocess.run(
            [ROOT / "dev", "build", "release", "cubind", "lookup_bench"], check=True, stdout=sys.stderr
        )
    elif not (BENCH_BIN / "lookup_seed").is_file():
        raise SystemExit(f"{BENCH_BIN} has no programs: the package was made without --with-tests")


def cpu_seconds(process: subprocess.Popen) -> float:
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, socket: pathlib.Path, command: list):
        self.address = f"unix://{socket}"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} did not come up")
            time.sleep(0.05)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def measured(self, requests: pathlib.Path, *arguments) -> dict:
        """A run of the client, with the server's CPU time per call."""
        before = cpu_seconds(self.process)
        command = [BENCH_BIN / "lookup_client", self.address, requests, *map(str, arguments)]
        run = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        run["server_cpu_us"] = (cpu_seconds(self.process) - before) / run["calls"] * 1e6
        return run


def start_daemon(folder: pathlib.Path) -> Server:
    socket = folder / "cubind.sock"
    options = ["--db", folder / "cubind.db", "--socket", socket, "--no-local-agent", "--no-shipped-tables"]
    options += ["--cache-bytes", str(1 << 30)]  # the cubins of all records
    return Server(socket, [BIN / "cubind", *options, "--log-level", "warn"])


def start_bare(folder: pathlib.Path, reply_bytes: int, messages: int = 1) -> Server:
    socket = folder / f"bare.{reply_bytes}.{messages}.sock"
    return Server(socket, [BENCH_BIN / "lookup_bare_server", socket, str(reply_bytes), str(messages)])


def medians(runs: list[dict]) -> dict:
    names = ["server_cpu_us", "calls_per_s", "p50_us", "p99_us"]
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in names}


def compare(daemon: Server, folder: pathlib.Path, requests: pathlib.Path, options) -> dict:
    first = daemon.measured(requests, "--check")
    bare = start_bare(folder, first["mean_reply_bytes"])
    from_ram = start_bare(folder, first["mean_reply_bytes"], options.records)
    servers = {"bare": bare, "cubind": daemon, "bare_from_ram": from_ram}
    rounds = []
    try:
        for seed in range(options.pairs):
            rounds.append(
                {
                    name: server.measured(requests, options.seconds, options.under_way, seed)
                    for name, server in servers.items()
                }
            )
    finally:
        bare.end()
        from_ram.end()

    def ratios_of(name: str) -> list[float]:
        return [runs[name]["server_cpu_us"] / runs["bare"]["server_cpu_us"] for runs in rounds]

    ratios = ratios_of("cubind")
    return {
        "reply_bytes": first["mean_reply_bytes"],
        "request_bytes": first["mean_request_bytes"],
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "ratio_of_bare_from_ram": round(statistics.median(ratios_of("bare_from_ram")), 3),
        **{name: medians([runs[name] for runs in rounds]) for name in servers},
        "first_hits": {"server_cpu_us": round(first["server_cpu_us"], 1)},
    }


def commit() -> str | None:
    if not IN_CHECKOUT:
        return None  # a package does not know it
    command = ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main():
    parser = argparse.ArgumentParser(prog="./dev bench lookup", description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--under-way", type=int, default=64, help="calls that the client keeps going")
    options = parser.parse_args()
    provide_programs()
    load = [round(os.getloadavg()[0], 1)]
    with tempfile.TemporaryDirectory(prefix="cubind-lookup-") as name:
        folder = pathlib.Path(name)
        subprocess.run([BENCH_BIN / "lookup_seed", folder, str(options.records)], check=True)
        daemon = start_daemon(folder)
        try:
            results = {
                kind: compare(daemon, folder, folder / f"{kind}.requests", options)
                for kind in ("digest", "cubin")
            }
        finally:
            daemon.end()
    report = {
        "benchmark": "lookup",
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load_before_and_after": [*load, round(os.getloadavg()[0], 1)],
        },
        "records": options.records,
        "calls_under_way": options.under_way,
        **results,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
