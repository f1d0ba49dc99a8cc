"""Which of a kernel's arguments it reads and which it writes, read from its TTIR.

A pointer is followed from the kernel's parameters through address arithmetic, shapes, selections, loops and
branches to loads, stores and atomics. What cannot be followed counts as read and written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from .definition import IN, INOUT, OUT

_PARAMETERS = frozenset[int]
_NOTHING: _PARAMETERS = frozenset()
_UNKNOWN = frozenset({-1})  # a pointer from elsewhere: it may point to what any parameter points to

# Results point to where the operands point.
_SAME_MEMORY = {
    "arith.select",
    "tt.addptr",
    "tt.advance",
    "tt.bitcast",
    "tt.broadcast",
    "tt.cat",
    "tt.expand_dims",
    "tt.join",
    "tt.make_tensor_descriptor",
    "tt.make_tensor_ptr",
    "tt.reshape",
    "tt.splat",
    "tt.split",
    "tt.trans",
    "ub.poison",
}
_READS = {"tt.descriptor_gather", "tt.descriptor_load", "tt.load"}
_WRITES = {"tt.descriptor_scatter", "tt.descriptor_store", "tt.store"}
# All that TTIR has for changing memory and reading it in one operation, and what changes it in other ways.
_CHANGES = {"tt.atomic_cas", "tt.atomic_rmw", "tt.descriptor_reduce"}
_FLOW = {"scf.condition", "scf.for", "scf.if", "scf.while", "scf.yield"}
_COMPARES = {"arith.cmpi", "tt.func", "tt.return"}


@dataclasses.dataclass(frozen=True)
class _Operation:
    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[int, ...]
    region: int  # that it lies in
    points: bool  # whether an operand or a result is a pointer or a descriptor


def roles_of(module: Any) -> list[str]:
    """The role of each parameter of the module's kernel, "in" for those that are no pointers."""
    return _Reader(module).roles()


class _Reader:
    def __init__(self, module: Any) -> None:
        self._operations: list[_Operation] = []
        self._arguments: dict[int, list[int]] = {}  # of a region: the values of its first block
        self._points_to: dict[int, _PARAMETERS] = {}  # a value
        self._pointers: set[int] = set()  # values
        self._entry = module.get_entry_func_name()
        self._parameters: list[int] = []
        module.walk(self._note)
        self._follow()

    # Operations come after those in their regions, so a region's arguments are known before its owner.
    def _note(self, operation: Any) -> None:
        block = operation.get_block()
        region = block.get_parent().id() if block is not None else 0
        if block is not None and region not in self._arguments:
            arguments = [block.get_argument(i) for i in range(block.get_num_arguments())]
            self._arguments[region] = [value.id() for value in arguments]
            self._pointers.update(value.id() for value in arguments if _is_pointer(value))
        values = [operation.get_operand(i) for i in range(operation.get_num_operands())]
        results = [operation.get_result(i) for i in range(operation.get_num_results())]
        pointers = [value.id() for value in (*values, *results) if _is_pointer(value)]
        self._pointers.update(pointers)
        noted = _Operation(
            operation.get_name(),
            tuple(value.id() for value in values),
            tuple(value.id() for value in results),
            tuple(operation.get_region(i).id() for i in range(operation.get_num_regions())),
            region,
            bool(pointers),
        )
        self._operations.append(noted)
        if noted.name == "tt.func" and operation.get_str_attr("sym_name") == self._entry:
            self._parameters = self._arguments.get(noted.regions[0], [])

    def _follow(self) -> None:
        yields = self._ends("scf.yield")
        conditions = self._ends("scf.condition")
        edges = [edge for each in self._operations for edge in self._edges(each, yields, conditions)]
        for value in self._pointers - {target for target, _ in edges}:
            self._points_to[value] = _UNKNOWN
        for position, value in enumerate(self._parameters):
            self._points_to[value] = frozenset({position})
        changed = True
        while changed:  # a loop's values come around
            changed = False
            for target, sources in edges:
                old = self._points_to.get(target, _NOTHING)
                new = old.union(*(self._points_to.get(source, _NOTHING) for source in sources))
                if new != old:
                    self._points_to[target] = new
                    changed = True

    def _ends(self, name: str) -> dict[int, tuple[int, ...]]:
        return {each.region: each.operands for each in self._operations if each.name == name}

    def _edges(
        self,
        operation: _Operation,
        yields: dict[int, tuple[int, ...]],
        conditions: dict[int, tuple[int, ...]],
    ) -> Iterable[tuple[int, tuple[int, ...]]]:
        """Each value that the operation gives a pointer to, and where it has it from."""
        if operation.name in _SAME_MEMORY:
            return [(result, operation.operands) for result in operation.results]
        regions = [self._arguments.get(region, []) for region in operation.regions]
        ends = [yields.get(region, ()) for region in operation.regions]
        if operation.name == "scf.for":
            first, again = operation.operands[3:], ends[0]
            return [
                *_pairs(regions[0][1:], first),
                *_pairs(regions[0][1:], again),
                *_pairs(operation.results, first),
                *_pairs(operation.results, again),
            ]
        if operation.name == "scf.if":
            return [edge for end in ends for edge in _pairs(operation.results, end)]
        if operation.name == "scf.while":
            passed = conditions.get(operation.regions[0], ())[1:]
            return [
                *_pairs(regions[0], operation.operands),
                *_pairs(regions[0], ends[1]),
                *_pairs(regions[1], passed),
                *_pairs(operation.results, passed),
            ]
        return []

    def roles(self) -> list[str]:
        read: set[int] = set()
        written: set[int] = set()
        for operation in self._operations:
            if not operation.points or operation.name in _SAME_MEMORY | _FLOW | _COMPARES:
                continue
            if operation.name in _READS:
                read |= self._origins(operation.operands[:1])
            elif operation.name in _WRITES:
                written |= self._origins(operation.operands[:1])
            elif operation.name in _CHANGES:
                read |= self._origins(operation.operands[:1])
                written |= self._origins(operation.operands[:1])
            else:  # a call, assembly, an address as a number: whatever it does
                read |= self._origins(operation.operands)
                written |= self._origins(operation.operands)
        everything = set(range(len(self._parameters)))
        if written >= _UNKNOWN:
            read = written = everything
        elif read >= _UNKNOWN:
            read = everything
        return [self._role(position, read, written) for position in sorted(everything)]

    def _role(self, position: int, read: set[int], written: set[int]) -> str:
        if position not in written or self._parameters[position] not in self._pointers:
            return IN
        return INOUT if position in read else OUT

    def _origins(self, values: tuple[int, ...]) -> _PARAMETERS:
        pointers = [value for value in values if value in self._pointers]
        return _NOTHING.union(*(self._points_to.get(value, _NOTHING) for value in pointers))


def _pairs(targets: Iterable[int], sources: Iterable[int]) -> list[tuple[int, tuple[int, ...]]]:
    return [(target, (source,)) for target, source in zip(targets, sources)]


def _is_pointer(value: Any) -> bool:
    kind = str(value.get_type())
    return "ptr<" in kind or "tensordesc<" in kind
