"""A daemon of one's own, at a socket of its own."""

import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import tempfile

import grpc
import running

pb = running.messages()


class FakeDaemon(contextlib.AbstractContextManager):
    """Keeps definitions, and gives `answer` to questions for them: a reply, or an error's code. `asked` has
    the requests but for those by a hint that is not known, `defined` the parts by name, `hinted` the names by
    hint, `tuned` the requests for tunings. tcp: it listens on a port instead of a socket. refusal: code and
    details of the answer to every question. events: of every tuning. marks: its errors have the daemon's
    mark."""

    def __init__(self, answer=None, tcp=False, refusal=None, events=(), marks=True):
        self._marks = marks
        self.answer, self._refusal, self._events = answer, refusal, events
        self.asked, self.defined, self.hinted, self.tuned = [], {}, {}, []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-fake-"))
        self.address = f"unix://{self.folder}/cubind.sock"
        handlers = {
            "GetVariant": grpc.unary_unary_rpc_method_handler(
                self._get, pb.GetVariantRequest.FromString, pb.GetVariantReply.SerializeToString
            ),
            "DefineKernel": grpc.stream_unary_rpc_method_handler(
                self._define, pb.DefineKernelPart.FromString, pb.DefineKernelReply.SerializeToString
            ),
            "Tune": grpc.unary_stream_rpc_method_handler(
                self._tune, pb.TuneRequest.FromString, pb.TuneEvent.SerializeToString
            ),
        }
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("cubind.v1.Cubind", handlers)]
        )
        if tcp:
            self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        else:
            self._server.add_insecure_port(self.address)
        self._server.start()

    def questions(self):
        """How each question wants to be answered, in order."""
        return [pb.OnMiss.Name(request.on_miss).lower() for request in self.asked]

    def _get(self, request, context):
        if self._refusal is not None:
            self.asked.append(request)
            self._abort(context, *self._refusal)
        if not request.kernel:
            if request.hint not in self.hinted:
                self._abort(context, grpc.StatusCode.NOT_FOUND, "no defined kernel has it")
            request.kernel = self.hinted[request.hint]
        self.asked.append(request)
        if request.kernel not in self.defined:
            self._abort(context, grpc.StatusCode.NOT_FOUND, f'there is no kernel "{request.kernel}"')
        self.hinted[request.hint] = request.kernel
        answer = self.answer(request) if callable(self.answer) else self.answer
        if isinstance(answer, grpc.StatusCode):
            self._abort(context, answer, "as the test wants it")
        answer.kernel = request.kernel
        return answer

    def _tune(self, request, _):
        self.tuned.append(request)
        return iter(self._events)

    def _abort(self, context, code, details):
        if self._marks:
            context.set_trailing_metadata((("cubind-status", "1"),))
        context.abort(code, details)

    def _define(self, parts, context):
        parts = list(parts)
        name = json.loads(parts[0].spec_json)["name"]
        self.defined.setdefault(name, []).append(parts)
        return pb.DefineKernelReply(name=name)

    def __exit__(self, *_):
        self._server.stop(0).wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def chosen(index, evidence="MEASURED"):
    """The reply with a configuration."""
    reply = pb.GetVariantReply()
    reply.configuration.values.add(name="CONFIG", value=index)
    reply.provenance.evidence = pb.Evidence.Value(evidence)
    return reply


def tuning(state="running", why=""):
    """The reply while a job measures, or waits."""
    reply = chosen(0, "NONE")
    reply.job_id, reply.job_state, reply.why = "job-1", state, why
    return reply


def untuned(why):
    """The reply if no job has been started."""
    reply = chosen(0, "NONE")
    reply.why = why
    return reply
