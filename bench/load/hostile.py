"""Loads by the holder of a token that mean harm: what they hold is to be bounded by the limits of one
caller."""

from __future__ import annotations

import socket
import struct
import time

from callers import check_request, messages


def uploads(address, spec):
    """Imports that are never ended: 60 MiB each."""
    pb = messages()

    def send(caller):
        def parts():
            for _ in range(60):
                yield pb.TableChunk(json=b" " * (1 << 20))
            time.sleep(600)

        caller.send_stream("ImportTable", parts(), pb.TableChunk, pb.ImportTableReply).result()

    return [send] * 13


def exports(address, spec):
    """Tables that are never read."""
    pb = messages()
    begun = []

    def export(caller):
        begun.append(caller.stream("ExportTable", pb.ExportTableRequest(include_shipped=True), pb.TableChunk))
        time.sleep(0.05 if len(begun) < 40 else 1)

    return [export]


def checks(address, spec):
    """20 checks at a time of a space that takes long to count."""
    pb = messages()
    request = check_request(spec)

    def check(caller):
        caller.call("CheckKernel", request, pb.CheckKernelReply)

    return [check] * 20


def resets(address, spec):
    """Calls that are reset as soon as they are sent, 500 in one write."""

    def act(caller):
        with socket.create_connection(caller.tcp_address) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b""))
            connection.setblocking(False)
            stream = 1
            while True:
                batch = b"".join(_reset_call(caller, stream + 2 * i) for i in range(500))
                stream += 1000
                connection.setblocking(True)
                connection.sendall(batch)
                connection.setblocking(False)
                try:
                    while connection.recv(1 << 20):
                        pass
                    return
                except BlockingIOError:
                    pass

    return [act] * 2


def _frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name, value):
    """A header field of HPACK that neither end remembers."""
    coded = b"\x00"
    for text in (name.encode(), value.encode()):
        assert len(text) < 127 + 128
        coded += bytes([len(text)]) if len(text) < 127 else bytes([127, len(text) - 127])
        coded += text
    return coded


def _reset_call(caller, stream):
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/cubind.v1.Cubind/ListKernels",
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        "authorization": f"Bearer {caller.token}",
    }
    headers = b"".join(_literal(name, value) for name, value in fields.items())
    return (
        _frame(1, 4, stream, headers)
        + _frame(0, 1, stream, b"\x00" + struct.pack(">I", 0))
        + _frame(3, 0, stream, struct.pack(">I", 8))
    )


HOSTILE = {"uploads": uploads, "exports": exports, "checks": checks, "resets": resets}
