"""Questions to messages, and replies to what the extension and Python callers read."""

from __future__ import annotations

import functools
import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

from . import _limits
from .errors import InvalidArgumentError

Problem = dict[str, "int | str"]

_SHORT = {"DEFAULT_CONFIGURATION": "default"}


def messages() -> Any:
    """The generated module, imported at the first use: protobuf is not needed to import cubind."""
    from ._schemas import cubind_pb2

    return cubind_pb2


@functools.cache
def reply_of(name: str) -> Any:
    """The class of an rpc's reply."""
    rpc = messages().DESCRIPTOR.services_by_name["Cubind"].methods_by_name[name]
    return getattr(messages(), rpc.output_type.name)


def parse_problem(problem: str | Mapping[str, Any] | None, named: Mapping[str, Any]) -> Problem:
    """Dims and flags as ints, types as text, in the order given. "N=4096,D=4096,T=bf16" is read too."""
    values: dict[str, Any] = {}
    if isinstance(problem, str):
        for part in problem.split(","):
            name, equals, value = part.partition("=")
            if not equals:
                raise InvalidArgumentError(f'"{part}" is not name=value', field="problem")
            values[name.strip()] = int(value) if value.strip().lstrip("-").isdigit() else value.strip()
    elif problem is not None:
        values.update(problem)
    values.update(named)
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> int | str:
    if isinstance(value, numbers.Integral):  # numpy's too, and bool
        return _limits.integer(value, f"problem.{name}")
    if isinstance(value, float) or value is None:
        raise InvalidArgumentError(f"{value} is neither an int nor a type", field=f"problem.{name}")
    return str(value)  # "bf16", torch.bfloat16, numpy.dtype("float16"): the daemon knows their spellings


def set_problem(problem: Problem, to: Any) -> None:
    """Into a v1.Problem. Flags go among the dims: the daemon, which has the spec, knows them."""
    for name, value in problem.items():
        if name == "scenario":
            to.scenario = str(value)
        elif isinstance(value, int):
            to.dims.add(name=name, value=value)
        else:
            to.types.add(name=name, type=value)


def set_gpu(gpu: Mapping[str, Mapping[str, Any]], to: Any) -> None:
    """What _core.gpu() gives, into the device of a v1.GetVariantRequest."""
    for part in ("facts", "driver"):
        for name, value in gpu[part].items():
            setattr(getattr(to, part), name, value)


def problem_of(message: Any) -> Problem:
    """A v1.Problem as {"N": 4096, "T": "bf16", ...}."""
    problem: Problem = {value.name: value.value for value in message.dims}
    problem.update({binding.name: binding.type for binding in message.types})
    problem.update({value.name: value.value for value in message.flags})
    if message.scenario:
        problem["scenario"] = message.scenario
    return problem


def listed(values: Mapping[str, Any]) -> str:
    """ "N=4096,T=bf16"."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def match_of(departures: Any) -> str:
    """ "exact", or the departures joined by "+": the spelling of cubindctl."""
    names: list[str] = [messages().Departure.Name(departure) for departure in departures]
    return "+".join(_SHORT.get(name, name.lower()) for name in names) or "exact"


def departures_of(match: str) -> list[Any]:
    """The inverse. Raises InvalidArgumentError for an unknown word."""
    departure = messages().Departure
    words: dict[str, Any] = {
        _SHORT.get(name, name.lower()): number for name, number in departure.items() if number != 0
    }
    named = [] if match == "exact" else match.split("+")
    for word in named:
        if word not in words:
            raise InvalidArgumentError(
                f'"{word}" is not a departure (known: {", ".join(words)}; or "exact")', field="accept"
            )
    return [words[word] for word in named]


def generation_text(generation: Any) -> str:
    """ "12@9f86d081...": a Generation's number and its store."""
    return f"{generation.number}@{generation.store_id.hex()}"


def set_generation(text: str, generation: Any) -> None:
    """The inverse. Raises InvalidArgumentError for another form."""
    form = re.fullmatch(r"([0-9]{1,19})@((?:[0-9a-f]{2})+)", text, re.ASCII)
    if form is None:
        raise InvalidArgumentError(
            f'"{text}" is not a generation as Answer.generation names it, as in 12@9f86d081884c7d65',
            field="generation",
        )
    generation.number = int(form[1])
    generation.store_id = bytes.fromhex(form[2])


def to_dict(message: Any) -> dict[str, Any]:
    """A message as a dict with every field: enums as words in lower case, bytes in hexadecimal, problems as
    problem_of()."""
    return {field.name: _plain(field, getattr(message, field.name)) for field in message.DESCRIPTOR.fields}


def _plain(field: Any, value: Any) -> Any:
    # A message, bytes and text have no __len__ that means repetition.
    if not isinstance(value, (str, bytes)) and hasattr(value, "__len__"):
        return [_plain_one(field, item) for item in value]
    return _plain_one(field, value)


def _plain_one(field: Any, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if field.enum_type is not None:
        word: str = field.enum_type.values_by_number[value].name.lower()
        return word.removeprefix(f"{field.enum_type.name.lower()}_")  # Role's ROLE_NONE is "none"
    if field.message_type is None:
        return value
    return problem_of(value) if field.message_type.name == "Problem" else to_dict(value)


def table_rows(text: str) -> list[dict[str, Any]]:
    """The records of a table, one flat dict each, with the label of the device instead of its class."""
    table = json.loads(text)
    labels = {device["class"]: device["label"] for device in table["devices"]}
    return [{**record, "device": labels[record["device"]]} for record in table["records"]]
