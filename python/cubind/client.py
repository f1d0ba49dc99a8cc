"""The client of a cubind daemon."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _address, _core, _lend, _limits, _ranks, _sealing, _wire
from ._commands import Commands
from ._connection import Connection
from ._interface import Interface, interface_of
from ._known_answers import KnownAnswers
from ._record import Recorder
from ._tables import Tables
from .answer import Answer, make_answer
from .comparison import Comparison
from .embedded import EmbeddedDaemon
from .errors import (
    CubindError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    SealedError,
)
from .kernel import Kernel
from .question import Held, Question
from .tuning import TuneResult, tune

# The longest time in seconds for which an answer that a tuning job may improve answers for its bucket.
_UNSETTLED_FOR = 10.0
_COMPILE_SHARE = 0.9  # of the timeout: how long the daemon may wait for a compile before it says so
_MAX_COMPILE_WAIT_MS = 60_000  # the daemon's limit
_MAX_CUBIN_BYTES = 256 << 20
_MAX_SENT = 32  # digests sent along so that known bytes are not sent back
_ON_MISS = ("serve", "wait", "fail")


class Client(Commands, Tables):
    """Asks one daemon. Safe on many threads and across fork(): a child opens its own connection.

    address: "unix:///path/to/socket" or "host:port". timeout: seconds that a call may take, up to a year.
        cubind.connect() makes one.
    trust: file of the keys that must have signed each answer (docs/bundles.md); None: CUBIND_TRUST, else
        answers need no signature.

    Raises InvalidArgumentError for an invalid address or timeout, TypeError for a timeout that is not a
    number.
    """

    def __init__(
        self,
        address: str,
        timeout: float = 30.0,
        _daemon: EmbeddedDaemon | None = None,
        *,
        trust: str | os.PathLike[str] | None = None,
    ) -> None:
        _address.check_address(address)
        self.address = address
        self.timeout = _limits.seconds(timeout)
        self._trust = os.environ.get("CUBIND_TRUST", "") if trust is None else os.fspath(trust)
        self._daemon = _daemon  # which lives as long as this object
        self._connection = Connection(address)
        self._answers = KnownAnswers()
        self._gpus: dict[Any, dict[str, dict[str, Any]]] = {}
        self._kernels: dict[str, Interface] = {}
        record = os.environ.get("CUBIND_RECORD")
        self._recorder = Recorder(record) if record else None
        self._calls = 0

    def __repr__(self) -> str:
        return f"cubind.Client({self.address!r})"

    def close(self) -> None:
        """Closes the connection and releases the embedded daemon."""
        self._connection.close()
        if self._daemon is not None:
            self._daemon.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def calls(self) -> int:
        """The number of calls made for answers so far, which shows how many the rules saved."""
        return self._calls

    def get(
        self,
        kernel: str,
        problem: str | Mapping[str, Any] | None = None,
        *,
        device: str | None = None,
        on_miss: str = "serve",
        tune: bool = True,
        accept: str | None = None,
        reproducible: bool = False,
        invariant: str | None = None,
        warm_l2: bool = False,
        graph: bool = False,
        namespace: str = "",
        job: str | None = None,
        lend: bool | None = None,
        generation: str | None = None,
        **named: Any,
    ) -> Answer:
        """The best variant for a problem: client.get("rmsnorm_forward", N=4096, D=4096, T="bf16").

        The rule of an earlier answer covers the other problems of its bucket without a call.

        kernel: its name.
        problem, named: dims and flags as ints, types as text or as dtypes of torch and NumPy; by name, as a
            mapping, or as the text "N=4096,D=4096,T=bf16" (for a dim with the name of an option).
        device: label of a device class ("nvidia-h200"); None: the GPU of the current CUDA context, else the
            first one.
        on_miss: "serve" the best available, "wait" for the tuning job, or "fail" without an acceptable
            record.
        tune: whether a miss starts a tuning job in the background.
        accept: accepted departures ("bucket+stale", "exact"); None: all.
        reproducible: only variants whose bits do not change from run to run.
        invariant: a dim: only variants whose rows have the same bits for every size of it.
        warm_l2, graph: measured with a warm L2 cache, or as a CUDA graph.
        namespace: the namespace of the records.
        job: the training job, whose ranks all get the answers of one generation; None: the job of CUBIND_JOB,
            Slurm or torchrun.
        lend: with on_miss="wait", as in tune().
        generation: locks the answer to the generation of an earlier answer (Answer.generation): exactly its
            cubin and launches, or an error; None: without `job`, the generation of CUBIND_GENERATION.

        Raises CubindError with the daemon's code: NotFoundError, InvalidArgumentError with the field's path,
        FailedPreconditionError (no driver, or no cubin that it loads), SealedError (see cubind.seal()),
        UnavailableError, DeadlineExceededError, DataLossError.
        """
        question = Question(
            device,
            on_miss,
            tune,
            accept,
            reproducible,
            invariant,
            warm_l2,
            graph,
            namespace,
            job,
            lend,
            generation,
        )
        return self.ask(kernel, _wire.parse_problem(problem, named), question).answer

    def ask(self, kernel: str, problem: _wire.Problem, question: Question, gpu: Any = None) -> Held:
        """get() of kernel and problem, with its options as one value, the question. Also returns how long the
        answer is valid.
        gpu: distinguishes the devices of one process in the cache of answers."""
        key = (kernel, question, gpu, tuple(sorted(p for p in problem.items() if isinstance(p[1], str))))
        known = self._answers.find(key, problem)
        if known is not None:
            return known
        if self._recorder is not None:
            self._recorder.record(kernel, problem)
        asked_at = time.monotonic()
        request = self._request(kernel, problem, question, gpu)
        held = {h.answer.digest: h.answer.cubin for h in self._answers.of(key)[:_MAX_SENT]}
        request.have_artifacts.extend(bytes.fromhex(digest) for digest in held)
        self._calls += 1
        reply = self._get(request)
        frame = reply.artifact.zstd_cubin
        reply.artifact.ClearField("zstd_cubin")
        asked, told = request.SerializeToString(), reply.SerializeToString()
        is_unsettled = _core.check_reply(asked, told)
        cubin = self.cubin_of(reply.artifact, frame, held)
        if self._trust:
            _core.check_signed(self._trust, asked, told, cubin)
        answer = make_answer(reply, cubin)
        subject = f"{kernel} {_wire.listed(answer.problem)}"
        _sealing.program.check(subject, answer.match, question.accept, answer.why)
        until = asked_at + _UNSETTLED_FOR if is_unsettled else float("inf")
        found = Held(answer, until)
        self._answers.add(key, found)
        return found

    def kernel(
        self,
        name: str,
        problem: str | Mapping[str, Any] | None = None,
        *,
        question: Question | None = None,
        **fixed: Any,
    ) -> Kernel:
        """A callable that launches the kernel's best variant on arrays: client.kernel("rmsnorm_forward",
        T="bf16").

        problem, fixed: the part of the problem that is the same for every call (types, flags, dims), as in
            get() or by name.
        question: the options of get().

        Raises NotFoundError for an unknown kernel.
        """
        if name not in self._kernels:
            self._kernels.update({k["name"]: interface_of(k) for k in self.kernels() if k["name"]})
        if name not in self._kernels:
            raise NotFoundError(
                f'there is no kernel "{name}" (known: {", ".join(sorted(self._kernels))})', "kernel"
            )
        return Kernel(
            self, name, self._kernels[name], _wire.parse_problem(problem, fixed), question or Question()
        )

    def tune(
        self,
        shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str],
        *,
        kernel: str | None = None,
        device: str | None = None,
        retune: bool = False,
        progress: bool = True,
        namespace: str = "",
        max_trials: int | None = None,
        max_seconds: float | None = None,
        lend: bool | None = None,
    ) -> list[TuneResult]:
        """Measures problems and stores the winners. Waits for the jobs.

        shapes: the problems, each a mapping {"kernel": "rmsnorm_forward", "N": 4096, "D": 4096, "T": "bf16"},
            or a file of them (.json, .jsonl, .csv) as CUBIND_RECORD writes it and `cubindctl tune --shapes`
            reads it.
        kernel: the kernel of problems that do not name one.
        device: label of a device class; None: the only class that agents offer.
        retune: measures fresh problems again.
        progress: shows a progress bar (tqdm if it is installed, else lines on stderr).
        namespace: the namespace of the records.
        max_trials: the number of configurations to try for each problem; None: the default of cubindctl.
        max_seconds: the time after which no further configuration is started; None: no limit.
        lend: the agent measures only while no other process uses the GPU. None: if this process has a CUDA
            context on the current GPU, it lends the GPU until the call ends. The call first waits for
            earlier launches, and this process does not count as another user; other threads must launch
            nothing until the call ends. False: this process counts while it works and for ten seconds after.

        Returns one result for each problem, in the order in which the jobs end. A failed job is a result
        with its error.
        """
        request = _wire.messages().TuneRequest(
            retune=retune,
            namespace=namespace,
            max_trials=_limits.count(max_trials or 0, "max_trials"),
            max_seconds=max_seconds or 0,
        )
        if device is not None:
            request.device.label = device
        if (lent := _lend.lent_gpu(lend)) is not None:
            request.lent.CopyFrom(lent)
        results = tune(self._connection, shapes, kernel, request, progress)
        self._answers.drop({result.kernel for result in results})
        return results

    def judge(
        self,
        kernel: str,
        source: str | bytes,
        problems: Sequence[str | Mapping[str, Any]],
        *,
        headers: Mapping[str, str | bytes] | None = None,
        grid: Sequence[str] = (),
        block: Sequence[str] = (),
        shared_bytes: str = "",
        baseline: str | Mapping[str, int] | None = None,
        device: str | None = None,
        namespace: str = "",
        rounds: int = 0,
        keep: bool = False,
        deterministic: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Verifies and times an untrusted CUDA source against a task: a kernel of the daemon, or the file of
        a kernel spec. The task's reference judges it.

        kernel: the kernel's name, or the spec's path, which ends with ".json".
        source: defines the kernel's entries. headers: texts that it includes, by name.
        problems: each as in get().
        grid, block, shared_bytes: how the source is launched, as expressions; empty: like the baseline.
        baseline: the task's configuration to compare with, as {"THREADS": 256} or "THREADS=256"; None: its
            default.
        device: label of the device class; None: the only class that agents offer. namespace: the job's.
        rounds: paired rounds for each problem; 0: 30. timeout: seconds; None: until there is a verdict.
        keep: the daemon keeps the source and its trials under the verdict's `kernel`, else nothing of them.
        deterministic: the source claims the same bits for the same inputs.

        Returns the verdict (docs/judge.md): outcome ("correct", "refused", "suspect", "unreproducible",
        "wrong"), problems, and if it is correct gain, the baseline's time over the source's, with gain_low
        and gain_high.
        """
        request = _wire.messages().EvaluateRequest(
            kernel=kernel,
            grid=grid,
            block=block,
            shared_bytes=shared_bytes,
            namespace=namespace,
            rounds=_limits.count(rounds, "rounds"),
            keep=keep,
            deterministic=deterministic,
        )
        if "source.cu" in (headers or {}):
            raise InvalidArgumentError('"source.cu" is the source: give the header another name', "headers")
        if timeout is not None:
            timeout = _limits.seconds(timeout)
        for path, text in {"source.cu": source, **(headers or {})}.items():
            try:
                request.files.add(path=path, content=text if isinstance(text, bytes) else text.encode())
            except (AttributeError, TypeError, ValueError) as error:
                raise InvalidArgumentError(f"{path!a} is no text: {error}", "source and headers") from None
        for problem in problems:
            _wire.set_problem(_wire.parse_problem(problem, {}), request.problems.add())
        for name, value in _wire.parse_problem(baseline, {}).items():
            if isinstance(value, str):
                raise InvalidArgumentError(f"{name}={value} is no integer", "baseline")
            request.baseline.values.add(name=name, value=value)
        if device is not None:
            request.device.label = device
        if kernel.endswith(".json"):
            return self._judge_by_spec(request, timeout)
        reply = self._connection.unary("Evaluate", request, timeout)
        return json.loads(reply.verdict_json)

    def report_comparison(
        self, answer: Answer, comparison: Comparison, question: Question | None = None, gpu: Any = None
    ) -> None:
        """Tells the daemon how an answer compares with a library's function. The comparison stays with the
        answer's record until a record with another cubin replaces it, and comes with later answers.

        answer: to `question` (default: get() without options) on this GPU.
        comparison: with the library's name and version.
        gpu: as in ask().

        Raises FailedPreconditionError if no record of the problem's bucket, or another cubin, answers now.
        """
        request = _wire.messages().ReportComparisonRequest(
            artifact=bytes.fromhex(answer.digest),
            question=self._request(answer.kernel, answer.problem, question or Question(), gpu),
            comparison=dataclasses.asdict(comparison),
        )
        self._call("ReportComparison", request)
        self._answers.drop({answer.kernel})

    # ---- Asking ----

    # For a sealed program nothing is begun.
    def _get(self, request: Any) -> Any:
        is_sealed = _sealing.program.mode == "error"
        if is_sealed:
            request.tune = _wire.messages().SEALED
        try:
            return self._call("GetVariant", request)
        except FailedPreconditionError as error:
            if not is_sealed:
                raise
            raise SealedError(error.cause, error.field) from None

    def _request(self, kernel: str, problem: _wire.Problem, question: Question, gpu: Any) -> Any:
        messages = _wire.messages()
        if question.on_miss not in _ON_MISS:
            raise InvalidArgumentError(
                f'"{question.on_miss}" is not one of serve, wait and fail', field="on_miss"
            )
        request = messages.GetVariantRequest(kernel=kernel, namespace=question.namespace)
        _wire.set_problem(problem, request.problem)
        if question.device is None:
            try:
                self._describe_gpu(request.device, gpu)
            except FailedPreconditionError:  # no GPU is here
                self._require_kernel(kernel)
                raise
        else:
            request.device.label = question.device
        request.policy.warm_l2 = question.warm_l2
        request.policy.graph_launch = question.graph
        if question.invariant:
            request.numerics.kind = messages.Numerics.INVARIANT
            request.numerics.invariant_dim = question.invariant
        elif question.reproducible:
            request.numerics.kind = messages.Numerics.REPRODUCIBLE
        request.job = _ranks.job_id() if question.job is None else question.job
        generation = question.generation
        if generation is None and question.job is None:
            generation = _ranks.generation()
        if generation:
            _wire.set_generation(generation, request.locked)
        request.on_miss = _ON_MISS.index(question.on_miss)
        lent = _lend.lent_gpu(question.lend, gpu) if question.on_miss == "wait" else None
        if lent is not None:
            request.lent.CopyFrom(lent)
        request.compile_wait_ms = min(int(_COMPILE_SHARE * 1000 * self.timeout), _MAX_COMPILE_WAIT_MS)
        request.tune = messages.AUTO if question.tune else messages.NEVER
        if question.accept is not None:
            request.restrict_accept = True
            request.accept.extend(_wire.departures_of(question.accept))
        return request

    # Raises NotFoundError, with the nearest names, if the daemon answers and has no such kernel: a caller
    # without a GPU hears of a slip in the name first. The daemon looks for the kernel before the device.
    def _require_kernel(self, kernel: str) -> None:
        try:
            self._call("GetVariant", _wire.messages().GetVariantRequest(kernel=kernel))
        except NotFoundError:
            raise
        except CubindError:
            pass

    def _describe_gpu(self, device: Any, gpu: Any) -> None:
        facts = self._gpus.get(gpu)
        if facts is None:
            # The calling thread need not have the device as its current one.
            facts = _core.gpu(gpu) if isinstance(gpu, int) else _core.gpu()
            if gpu is not None:
                self._gpus[gpu] = facts
        _wire.set_gpu(facts, device)

    def cubin_of(self, artifact: Any, frame: bytes = b"", held: Mapping[str, bytes] | None = None) -> bytes:
        """The machine code that the artifact of a reply names.

        frame: the compressed code, if the reply had it. held: code of earlier replies by digest. With neither
            the daemon is asked.

        Raises ResourceExhaustedError for code that is too large, CubindError if the daemon has none.
        """
        held = held or {}
        if not frame and artifact.digest.hex() in held:
            return held[artifact.digest.hex()]
        if not frame:
            self._calls += 1
            request = _wire.messages().GetArtifactRequest(digest=artifact.digest)
            chunks = self._connection.stream("GetArtifact", request, self.timeout)
            frame = b"".join(chunk.data for chunk in chunks)
        size = artifact.cubin_bytes
        if size > _MAX_CUBIN_BYTES:  # a wrong size must not take the process's memory
            raise ResourceExhaustedError(
                f"{size} bytes, a cubin may have at most {_MAX_CUBIN_BYTES}", "artifact.cubin_bytes"
            )
        return _core.decompress(frame, size)
