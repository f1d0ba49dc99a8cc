"""A daemon that answers every question wrongly: with another problem's answer, with damaged bytes, and with
what is no message."""

import itertools
from concurrent import futures

import grpc
from cubind._schemas import cubind_pb2
from cubind.question import Question

SERVICE = "cubind.v1.Cubind"


def reply_of(client, kernel, problem, device):
    """What the client's daemon replies, as bytes."""
    request = client._request(kernel, problem, Question(device=device, tune=False), None)
    with grpc.insecure_channel(client.address) as channel:
        call = channel.unary_unary(f"/{SERVICE}/GetVariant")
        return call(request.SerializeToString(), timeout=60, wait_for_ready=True)


class WrongDaemon:
    """Listens at the address until close(). reply: a good one, to another question than will be asked."""

    def __init__(self, address, reply):
        self.reply = reply
        self.asked = 0
        self._kinds = itertools.cycle((self._of_another_problem, self._damaged, self._no_message))
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        handler = grpc.unary_unary_rpc_method_handler(self._answer)  # bytes to bytes
        methods = grpc.method_handlers_generic_handler(SERVICE, {"GetVariant": handler})
        self._server.add_generic_rpc_handlers((methods,))
        self._server.add_insecure_port(address)
        self._server.start()

    def close(self):
        self._server.stop(None).wait()

    def _answer(self, request, _):
        self.asked += 1
        return next(self._kinds)(cubind_pb2.GetVariantRequest.FromString(request))

    def _of_another_problem(self, _):
        return self.reply

    def _damaged(self, request):
        reply = cubind_pb2.GetVariantReply.FromString(self.reply)
        reply.kernel = request.kernel
        reply.problem.CopyFrom(request.problem)
        frame = bytearray(reply.artifact.zstd_cubin)
        frame[len(frame) // 2] ^= 0xFF
        reply.artifact.zstd_cubin = bytes(frame)
        return reply.SerializeToString()

    def _no_message(self, _):
        return b"\xff" * 16
