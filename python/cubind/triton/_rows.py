"""Rows of a table, measured by a daemon: each is a call of the kernel with several configurations, as for
Triton's autotuner.

A call may launch the kernel several times, as the two products of a mixture of experts. Each launch is tuned
by itself; then the winners and the first configuration are measured in all launches, and their times added.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from typing import Any

from .. import _wire
from .. import question as asking
from .._tables import trials
from ..client import Client
from ..errors import CubindError, DeadlineExceededError
from . import _triton_private as private
from ._contents import may_go_to
from ._own import StaysOwnError
from ._question import Question
from ._row_questions import questions
from ._spec import TUNABLE, Spec, spec_of
from ._variant_calls import Target, defined_variant
from .table import Table, Values

TIE_MARGIN = 0.001  # of tuner/measure/measure_settings.hpp
_DEVIATIONS = 1.96  # of a 95 % interval
_UNVERIFIED = "unverified"  # too slow to win its launch: its results were not compared there


@dataclasses.dataclass(frozen=True)
class Time:
    """The median in microseconds. interval_us: of 95 %; None where the daemon keeps none."""

    us: float
    interval_us: tuple[float, float] | None
    evidence: str


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of one size. first: the configuration that the others have to beat, the default for one.
    best: the winner, which may be the first. why: the reason where nothing was measured."""

    size: int
    first: Values
    first_time: Time | None = None
    best: Values | None = None
    best_time: Time | None = None
    why: str = ""

    @property
    def gain(self) -> float | None:
        """The first one's time over the winner's."""
        if self.first_time is None or self.best_time is None:
            return None
        return self.first_time.us / self.best_time.us

    @property
    def wins(self) -> bool:
        """Whether another configuration is faster by more than the tie margin, and beyond its interval."""
        if self.gain is None or self.best_time is None or self.first_time is None:
            return False
        _, high = self.best_time.interval_us or (0.0, self.best_time.us)
        return self.gain > 1 + TIE_MARGIN and high < self.first_time.us


class Rows:
    """Asks one daemon. tune: whether it measures what it does not know, for timeout seconds per launch.
    device: the label of a GPU; None: this process'."""

    def __init__(
        self, table: Table, client: Client, tune: bool, timeout: float, device: str | None = None
    ) -> None:
        self._table = table
        self._client = client
        self._timeout = timeout
        # What was measured on another GPU, or with another driver or Triton, is no row of this one's file.
        self._question = asking.Question(
            on_miss="wait" if tune else "fail", tune=tune, accept="exact", job="", device=device
        )

    def row(self, size: int, first: Values, others: Iterable[Values]) -> Row:
        """The winner among the first configuration and the others. A row that fails says why."""
        try:
            groups = self._groups(first, others)
            measured = [
                [self._of_launch(group, question) for question in questions(self._table, size, group)]
                for group in groups
            ]
            if len(measured[0]) > 1:
                winners = [each.best[0] for found in measured for each in found if each.best is not None]
                groups = self._groups(first, winners)
                measured = [[self._added(size, group)] for group in groups]
        except StaysOwnError as error:
            return Row(size, first, why=f"the kernel {error.own.reason}")
        except DeadlineExceededError:
            return Row(size, first, why=f"a launch was not tuned within {self._timeout:g} s (--timeout)")
        except CubindError as error:
            if error.field == self._client.address:  # there is no daemon for the other rows either
                raise
            return Row(size, first, why=str(error))
        found = [each for (each,) in measured]
        bests = [each.best for each in found if each.best is not None]
        if found[0].first_time is None or not bests:
            return Row(size, first, why="the daemon has no time of its first configuration")
        best, best_time = min(bests, key=lambda best: best[1].us)
        return Row(size, first, found[0].first_time, best, best_time)

    def _groups(self, first: Values, others: Iterable[Values]) -> list[list[Values]]:
        """Those that share the values that arguments depend on; the first one's before the others."""
        groups: dict[tuple[Any, ...], list[Values]] = {}
        for values in (first, *others):
            group = groups.setdefault(tuple(values.get(name) for name in self._table.by), [])
            if values not in group:
                group.append(values)
        return list(groups.values())

    # ---- One group ----

    def _of_launch(self, group: list[Values], question: Question) -> _Found:
        spec, reply = self._ask(question)
        provenance = reply.provenance
        interval = provenance.timing.low_us, provenance.timing.high_us
        time = Time(provenance.timing.median_us, interval, _evidence(reply))
        index = next(int(value.value) for value in reply.configuration.values if value.name == TUNABLE)
        first_time: Time | None = time
        if index > 0 and provenance.timing.gain_over_default:
            first_time = Time(time.us * provenance.timing.gain_over_default, None, time.evidence)
        elif index > 0:  # it was too slow for the rounds that gains are measured in
            first_time = self._trials(spec, time.evidence).get(0)
        if index < len(group):
            return _Found(first_time, (group[index], time))
        return _Found(first_time, (group[0], first_time) if first_time else None)

    def _added(self, size: int, group: list[Values]) -> _Found:
        """The times of all launches together, of the configurations that ran in each."""
        launches = []
        for question in questions(self._table, size, group):
            spec, reply = self._ask(question)
            launches.append(self._trials(spec, _evidence(reply)))
        totals = {
            index: _sum([times[index] for times in launches])
            for index in range(len(group))
            if all(index in times for times in launches)
        }
        if not totals:
            return _Found(None, None)
        best = min(totals, key=lambda index: totals[index].us)
        return _Found(totals.get(0), (group[best], totals[best]))

    def _ask(self, question: Question) -> tuple[Spec, Any]:
        """The daemon's reply with a winner."""
        values = may_go_to(self._client.address)
        spec = spec_of(question.definition, values)
        target = Target(spec.name, spec.problem, question.hint_with(values), private.current_device())
        reply = defined_variant(self._client, spec, target, self._question, self._timeout)
        if reply.provenance.evidence == _wire.messages().NONE:
            raise StaysOwnError(f"is not measured: {reply.why or 'the daemon has no record of it'}")
        return spec, reply

    def _trials(self, spec: Spec, evidence: str) -> dict[int, Time]:
        """The time of each configuration that ran, and was not wrong."""
        return {
            trial["configuration"][TUNABLE]: _time_of(samples, _UNVERIFIED if is_slow else evidence)
            for trial in trials(self._client._connection, spec.name, self._timeout, include_samples=True)
            if ((is_slow := trial["outcome"] == _UNVERIFIED) or trial["outcome"] == "correct")
            and (samples := _samples(trial))
        }


@dataclasses.dataclass(frozen=True)
class _Found:
    """Of one group: the time of its first configuration, and the winner with its own. None: unknown."""

    first_time: Time | None
    best: tuple[Values, Time] | None


def _evidence(reply: Any) -> str:
    return str(_wire.messages().Evidence.Name(reply.provenance.evidence)).lower()


def _samples(trial: dict[str, Any]) -> list[float]:
    """Those of the finals, else of the screening."""
    blocks = trial.get("finals") or trial.get("screening") or []
    return sorted(sample for block in blocks for sample in block["samples_us"])


def _time_of(samples: list[float], evidence: str) -> Time:
    """The median of sorted samples, with the order statistics that hold it in 95 % of all cases."""
    half = _DEVIATIONS * math.sqrt(len(samples)) / 2
    low = max(0, math.floor(len(samples) / 2 - half))
    high = min(len(samples) - 1, math.ceil(len(samples) / 2 + half))
    return Time(statistics.median(samples), (samples[low], samples[high]), evidence)


def _sum(times: list[Time]) -> Time:
    """The ends of the intervals are added too: the sum's own is narrower. The weakest evidence counts."""
    intervals = [each.interval_us or (each.us, each.us) for each in times]
    interval = sum(low for low, _ in intervals), sum(high for _, high in intervals)
    evidence = min((each.evidence for each in times), key=lambda each: each != _UNVERIFIED)
    return Time(sum(each.us for each in times), interval, evidence)
