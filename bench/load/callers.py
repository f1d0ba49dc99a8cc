"""Callers of the daemon: the probes whose answers are timed, and the loads. Each process of the benchmark
runs one."""

from __future__ import annotations

import json
import pathlib
import socket
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KNOWN = {"dims": {"N": 4096, "D": 4096}, "types": {"T": "bf16"}}


def messages():
    """The messages of the Python package that was built with the programs."""
    built = [str(path) for path in (ROOT / "build").glob("*/python")]
    sys.path[:0] = [path for path in built if path not in sys.path]
    from cubind._schemas import cubind_pb2  # noqa: PLC0415 (the path is known only now)

    return cubind_pb2


class Caller:
    """Calls by path, without stubs. One channel of its own; with a token, where one is needed."""

    def __init__(self, address, token=""):
        import grpc  # noqa: PLC0415 (in this process alone: its threads do not outlive a fork)

        self.error, self.token = grpc.RpcError, token
        host, _, port = address.rpartition(":")
        self.tcp_address = (host, port)  # of a TCP address
        self.metadata = [("authorization", f"Bearer {token}")] if token else None
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(address, options=options)

    def call(self, name, request, reply, timeout=600.0):
        method = self._method(self.channel.unary_unary, name, type(request), reply)
        return method(request, timeout=timeout, metadata=self.metadata)

    def stream(self, name, request, reply):
        method = self._method(self.channel.unary_stream, name, type(request), reply)
        return method(request, timeout=600.0, metadata=self.metadata)

    def send_stream(self, name, requests, kind, reply):
        """A future of the reply."""
        method = self._method(self.channel.stream_unary, name, kind, reply)
        return method.future(requests, timeout=600.0, metadata=self.metadata)

    def _method(self, make, name, request, reply):
        path = f"/cubind.v1.Cubind/{name}"
        return make(
            path, request_serializer=request.SerializeToString, response_deserializer=reply.FromString
        )


def problem_message(problem):
    message = messages().Problem()
    for name, value in problem["dims"].items():
        message.dims.add(name=name, value=value)
    for name, value in problem["types"].items():
        message.types.add(name=name, type=value)
    return message


def question(kernel="rmsnorm_forward", problem=KNOWN):
    pb = messages()
    request = pb.GetVariantRequest(kernel=kernel, problem=problem_message(problem), tune=pb.NEVER)
    request.device.label = "nvidia-h200"
    return request


def check_request(spec=None):
    """A check of vector_add, or of another spec with its files."""
    pb = messages()
    variants = ROOT / "variants"
    text = json.dumps(spec) if spec else (variants / "vector_add" / "vector_add.json").read_text()
    request = pb.CheckKernelRequest(file="mine.json", spec_json=text, device="nvidia-h200")
    for file in [*(variants / "vector_add").glob("*.cu"), *(variants / "common").glob("*.cuh")]:
        path = file.name if file.suffix == ".cu" else f"../common/{file.name}"
        request.files.add(path=path, content=file.read_bytes())
    request.problems.append(problem_message({"dims": {"N": 4096}, "types": {"T": "f32"}}))
    return request


# ---- What is measured, each in a process of its own ----


def probe(address, ended, times, name, pause):
    pb = messages()
    caller = Caller(address)
    asked = {
        "GetVariant": (question(), pb.GetVariantReply),
        "GetStatus": (pb.GetStatusRequest(), pb.GetStatusReply),
        "CheckKernel": (check_request(), pb.CheckKernelReply),
    }
    request, reply = asked[name]
    taken, failed = [], 0
    while not ended.is_set():
        start = time.perf_counter()
        try:
            caller.call(name, request, reply, timeout=60)
        except caller.error as error:
            failed += 1
            print(f"{name}: {error.code().name}: {error.details()}", file=sys.stderr)
        taken.append((time.perf_counter() - start) * 1e3)
        time.sleep(pause)
    times.put((name, taken, failed))


# ---- Loads: each a list of functions that are called again and again, each on a thread of its own ----


def spaces(address):
    pb = messages()
    problem = {"dims": {"N": 4096}, "types": {"T": "f32"}}

    def ask(caller):
        caller.call("GetVariant", question("endless", problem), pb.GetVariantReply)

    return [ask] * 8


def tables(address):
    pb = messages()
    table = json.loads((ROOT / "variants" / "tables" / "nvidia-h200.json").read_text())
    record = dict(table["records"][0], configuration={"NO_SUCH": 1})
    refused = json.dumps({**table, "records": [record] * 100_000}).encode()[: 64 << 20]

    def send(text):
        def act(caller):
            parts = [text[at : at + (1 << 20)] for at in range(0, len(text), 1 << 20)]
            caller.send_stream(
                "ImportTable",
                (pb.TableChunk(json=part) for part in parts),
                pb.TableChunk,
                pb.ImportTableReply,
            ).result()

        return act

    return [send(b"[" * (64 << 20)), send(refused)]


def jobs(address):
    pb = messages()

    def list_all(caller):
        token = ""
        while True:
            reply = caller.call(
                "ListJobs", pb.ListJobsRequest(include_ended=True, page_token=token), pb.ListJobsReply
            )
            token = reply.next_page_token
            if not token:
                return

    def cancel(caller):
        caller.call("CancelJob", pb.CancelJobRequest(id="0123456789abcdef"), pb.CancelJobReply)

    return [list_all] * 2 + [cancel] * 2


def failures(address):
    pb = messages()
    numbers = iter(range(100_000))
    lock = threading.Lock()

    def tune(caller):
        request = pb.TuneRequest(kernel="rmsnorm_forward", detach=True)
        for _ in range(1000):
            with lock:
                n = next(numbers)
            request.problems.append(
                problem_message({"dims": {"N": 100_000 + n, "D": 512}, "types": {"T": "f32"}})
            )
        for _ in caller.stream("Tune", request, pb.TuneEvent):
            pass

    return [tune] * 2


def connections(address):
    made = []

    def connect(_):
        if len(made) < 2000:
            one = socket.socket(socket.AF_UNIX)
            one.connect(address.removeprefix("unix://"))
            made.append(one)
        else:
            time.sleep(0.1)

    return [connect]


def streams(address):
    pb = messages()
    begun = []

    def export(caller):
        if len(begun) < 200:
            request = pb.ExportTableRequest(all_trials=True, include_shipped=True)
            begun.append(caller.stream("ExportTable", request, pb.TableChunk))
        else:
            time.sleep(0.1)

    return [export] * 4


LOADS = {
    "none": lambda _: [], "spaces": spaces, "tables": tables, "jobs": jobs, "failures": failures,
    "connections": connections, "streams": streams,
}  # fmt: skip


def load(address, token, actions, ended, counts):
    """These actions again and again until the end: how many were answered and how many refused."""
    answered, refused = [0], [0]

    def repeat(action):
        caller = Caller(address, token)
        while not ended.is_set():
            try:
                action(caller)
                answered[0] += 1
            except (caller.error, OSError):
                refused[0] += 1

    for action in actions(address):
        threading.Thread(target=repeat, args=(action,), daemon=True).start()
    ended.wait()
    counts.put((answered[0], refused[0]))
