#!/usr/bin/env python3
"""Server CPU time of a GetVariant hit, compared with a gRPC server that answers a constant message as
large.

usage: ./dev bench lookup [--records N] [--seconds S] [--pairs P] [--under-way K] [--tls]
       python3 bench/lookup ...             in the folder of a package made by ./dev package --with-tests

All servers are release builds with the same gRPC, protos and raw callback API, on a Unix socket. With --tls
they have TLS on TCP, and each call carries a token: the daemon checks it, the bare server ignores it. The
daemon's index holds N records, nearly all with a cubin of their own; a client keeps K calls under way, each
for a record drawn at random, and each server gets P runs of S seconds in turns. CPU time is user and system
time of the server's process over a run (what getrusage counts), divided by the run's calls. The reported
figures are medians; `ratio` is the median of the pairs' ratios. `first_hits` is a serial run that asks for
each record once after the start, before anything is remembered.

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
import socket
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
            [ROOT / "dev", "build", "release", "cubind", "cubindctl", "lookup_bench"],
            check=True,
            stdout=sys.stderr,
        )
    elif not (BENCH_BIN / "lookup_seed").is_file():
        raise SystemExit(f"{BENCH_BIN} has no programs: the package was made without --with-tests")


def cpu_seconds(process: subprocess.Popen) -> float:
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Endpoint:
    """Where a server listens: on a Unix socket, or with TLS on a port that was free."""

    def __init__(self, folder: pathlib.Path, name: str, tls: bool):
        self.socket = folder / f"{name}.sock"
        self.tls_files = [folder / "tls.pem", folder / "tls.key"] if tls else []
        if tls:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
            self.listen, self.address = f"127.0.0.1:{self.port}", f"tls://127.0.0.1:{self.port}"
        else:
            self.listen = self.address = f"unix://{self.socket}"

    def is_open(self) -> bool:
        if not self.tls_files:
            return self.socket.exists()
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", self.port)) == 0


def make_secrets(folder: pathlib.Path) -> dict:
    """A certificate and a token: what tells the client about them."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", folder / "tls.key", "-out", folder / "tls.pem"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    command = [BIN / "cubindctl", "token", "new", "bench", "--role", "reader"]
    with (folder / "token").open("w") as token:
        subprocess.run([*command, "--file", folder / "tokens.json"], check=True, stdout=token)
    return {"CUBIND_CA_FILE": str(folder / "tls.pem"), "CUBIND_TOKEN_FILE": str(folder / "token")}


class Server:
    def __init__(self, endpoint: Endpoint, command: list):
        self.address = endpoint.address
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not endpoint.is_open():
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


def start_daemon(folder: pathlib.Path, tls: bool) -> Server:
    endpoint = Endpoint(folder, "cubind", tls)
    options = [
        "--db",
        folder / "cubind.db",
        "--socket",
        endpoint.socket,
        "--no-local-agent",
        "--no-shipped-tables",
    ]
    options += ["--cache-bytes", str(1 << 30)]  # the cubins of all records
    if tls:
        certificate, key = endpoint.tls_files
        options += ["--listen", endpoint.listen, "--tls-cert", certificate, "--tls-key", key]
        options += ["--tokens", folder / "tokens.json"]
    return Server(endpoint, [BIN / "cubind", *options, "--log-level", "warn"])


def start_bare(folder: pathlib.Path, tls: bool, reply_bytes: int, messages: int = 1) -> Server:
    endpoint = Endpoint(folder, f"bare.{reply_bytes}.{messages}", tls)
    command = [BENCH_BIN / "lookup_bare_server", endpoint.listen, str(reply_bytes), str(messages)]
    return Server(endpoint, [*command, *endpoint.tls_files])


def medians(runs: list[dict]) -> dict:
    names = ["server_cpu_us", "calls_per_s", "p50_us", "p99_us"]
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in names}


def compare(daemon: Server, folder: pathlib.Path, requests: pathlib.Path, options) -> dict:
    first = daemon.measured(requests, "--check")
    bare = start_bare(folder, options.tls, first["mean_reply_bytes"])
    from_ram = start_bare(folder, options.tls, first["mean_reply_bytes"], options.records)
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
    parser.add_argument("--tls", action="store_true", help="TLS and a token on both sides")
    options = parser.parse_args()
    provide_programs()
    load = [round(os.getloadavg()[0], 1)]
    with tempfile.TemporaryDirectory(prefix="cubind-lookup-") as name:
        folder = pathlib.Path(name)
        subprocess.run([BENCH_BIN / "lookup_seed", folder, str(options.records)], check=True)
        if options.tls:
            os.environ.update(make_secrets(folder))
        daemon = start_daemon(folder, options.tls)
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
        "tls_and_token": options.tls,
        **results,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
