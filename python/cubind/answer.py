"""The daemon's answer, checked: the cubin has its digest, and the answer is for the question."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

from . import _core, _limits, _wire
from .comparison import Comparison, comparisons_of
from .errors import DataLossError

if TYPE_CHECKING:
    from ._wire import Problem


_MAX_TEXT = 200  # characters of an answer in a debugger or a log


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A variant for one problem with its launch plan and evidence. Immutable, safe on many threads.

    kernel: the kernel's name.
    problem: the answered problem in the daemon's form: {"N": 4096, "D": 4096, "T": "bf16"}.
    configuration: the values of the tunables, in the spec's order.
    match: "exact", or how the answer departs from the question: "bucket", "default", "bucket+stale", ...
    evidence: "measured", "imported", "shipped", "replayed" or "none".
    time_us: the median time of the measured problem in microseconds; None if nothing was measured.
    device: label of the device class that the answer is for.
    plan: the launches in order, as dicts: entry, entry_symbol, grid, block, shared_bytes, parameters; where a
        launch has them, also cluster and attributes.
    cubin: the compiled code, as the driver loads it.
    digest: SHA-256 of the cubin, hexadecimal.
    job_id: id of the tuning job that a miss started; "" if none runs.
    why: why nothing better answers; "" if the answer was no miss.
    generation: generation of the daemon's table, "12@9f86d081...": Client.get() can lock answers to it.
    over_library: comparisons of the measured problem with libraries, as clients have reported them.
    """

    kernel: str
    problem: Problem
    configuration: dict[str, int]
    match: str
    evidence: str
    time_us: float | None
    device: str
    plan: list[dict[str, Any]]
    cubin: bytes
    digest: str
    job_id: str = ""
    why: str = ""
    generation: str = ""
    over_library: tuple[Comparison, ...] = ()
    _rule: _core.Rule = dataclasses.field(kw_only=True)
    _dims: tuple[str, ...] = dataclasses.field(kw_only=True)
    _asked: tuple[int, ...] = dataclasses.field(kw_only=True)
    _asked_match: str = dataclasses.field(kw_only=True)

    def __repr__(self) -> str:
        """Kernel, problem, match, evidence, time and configuration, in a line that may end with "..."."""
        time = "" if self.time_us is None else f", {self.time_us:.2f} us"
        text = f"Answer({self.kernel} {_wire.listed(self.problem)}: {self.match}, {self.evidence}{time}, {_wire.listed(self.configuration)})"
        return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 4]}...)"

    def for_dims(self, **dims: int) -> Answer | None:
        """The answer for other values of the dims, by the reply's rule and without a call. None if the rule
        does not cover them (another bucket, its own record, a violated constraint): then ask the client."""
        unknown = set(dims) - set(self._dims)
        if unknown:
            raise TypeError(
                f"{self.kernel} has no dim {', '.join(sorted(unknown))} (dims: {', '.join(self._dims)})"
            )
        problem: Problem = {**self.problem, **dims}
        values = tuple(_limits.integer(problem[name], f"problem.{name}") for name in self._dims)
        plan = self._rule.plan(values)
        if plan is None:
            return None
        return dataclasses.replace(self, problem=problem, plan=plan, match=self._match_for(values))

    @property
    def dim_names(self) -> tuple[str, ...]:
        """The kernel's dims, in the spec's order."""
        return self._dims

    def rule(self) -> _core.Rule:
        """The problems that this answer covers, and their launches."""
        return self._rule

    def covers(self, dims: tuple[int, ...]) -> bool:
        """Whether the rule answers for these values of the dims, in the spec's order."""
        return self._rule.covers(dims)

    def _match_for(self, values: tuple[int, ...]) -> str:
        if values == self._asked or "bucket" in self._asked_match.split("+"):
            return self._asked_match
        return "bucket" if self._asked_match == "exact" else f"bucket+{self._asked_match}"


def make_answer(reply: Any, cubin: bytes) -> Answer:
    """From a GetVariantReply and its uncompressed cubin. Raises DataLossError if the cubin does not have the
    promised digest, or the reply's rule gives its own problem no launch plan."""
    digest = hashlib.sha256(cubin).digest()
    if digest != reply.artifact.digest:
        raise DataLossError(
            f"the cubin of {reply.kernel} does not have the digest that the daemon promised, "
            f"{reply.artifact.digest.hex()}",
            field="artifact",
        )
    rule = _core.Rule(reply.SerializeToString())
    asked = tuple(dim.value for dim in reply.problem.dims)
    plan = rule.plan(asked)
    if plan is None:
        raise DataLossError(f"the answer has no launch plan: {rule.violation()}", field="rule")
    provenance = reply.provenance
    match = _wire.match_of(provenance.departures)
    return Answer(
        kernel=reply.kernel,
        problem=_wire.problem_of(reply.problem),
        configuration={value.name: value.value for value in reply.configuration.values},
        match=match,
        evidence=_wire.messages().Evidence.Name(provenance.evidence).lower(),
        time_us=provenance.timing.median_us if provenance.timing.samples else None,
        device=reply.device,
        plan=plan,
        cubin=cubin,
        digest=digest.hex(),
        job_id=reply.job_id,
        why=reply.why,
        generation=_wire.generation_text(provenance.generation),
        over_library=comparisons_of(provenance),
        _rule=rule,
        _dims=tuple(dim.name for dim in reply.problem.dims),
        _asked=asked,
        _asked_match=match,
    )
