"""Kernel specs in Python: expressions, valid configurations and launch plans, as the daemon has them.

Only what the kernels of variants/ use, for scripts that launch configurations of their own choice.
"""

import dataclasses
import functools
import json
import math
import operator
import pathlib
import re

ELEMENTS = {
    "bf16": ("__nv_bfloat16", 2),
    "f16": ("__half", 2),
    "f32": ("float", 4),
    "e4m3": ("__nv_fp8_e4m3", 1),
    "i32": ("int", 4),
    "i64": ("long long", 8),
}
H200 = {"sm_count": 132, "shared_optin": 232448, "l2_bytes": 60 << 20, "cc": 90}
TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][\w.]*|&&|\|\||[<>=!]=|[-+*/%<>!?:(),])")
LEVELS = [
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.floordiv, "%": operator.mod},
]
FUNCTIONS = {"min": min, "max": max, "abs": abs, "cdiv": lambda a, b: -(-a // b)}


class Expression:
    """A C-like integer expression without negative quotients; called with the values of its names."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(text)
        self.evaluate = self._conditional()
        if self.tokens:
            raise ValueError(f"{text}: what is {self.tokens[0]}?")

    def __call__(self, values):
        return int(self.evaluate(values))

    def _take(self, *wanted):
        if self.tokens and self.tokens[0] in wanted:
            return self.tokens.pop(0)
        return None

    def _conditional(self):
        condition = self._level(0)
        if not self._take("?"):
            return condition
        then = self._conditional()
        self._take(":")
        other = self._conditional()
        return lambda values: then(values) if condition(values) else other(values)

    def _level(self, depth):
        if depth == len(LEVELS):
            return self._factor()
        left = self._level(depth + 1)
        while name := self._take(*LEVELS[depth]):
            left = self._both(name, LEVELS[depth][name], left, self._level(depth + 1))
        return left

    @staticmethod
    def _both(name, combine, left, right):
        if name == "||":
            return lambda values: left(values) or right(values)
        if name == "&&":
            return lambda values: left(values) and right(values)
        return lambda values: combine(left(values), right(values))

    def _factor(self):
        token = self.tokens.pop(0)
        if token == "(":
            inner = self._conditional()
            self._take(")")
            return inner
        if token == "!":
            inner = self._factor()
            return lambda values: int(not inner(values))
        if token.isdigit():
            return lambda values, number=int(token): number
        if token == "sizeof":
            self._take("(")
            name = f"sizeof({self.tokens.pop(0)})"
            self._take(")")
            return lambda values: values[name]
        if token in FUNCTIONS and self._take("("):
            arguments = [self._conditional()]
            while self._take(","):
                arguments.append(self._conditional())
            self._take(")")
            return lambda values: FUNCTIONS[token](*(argument(values) for argument in arguments))
        return lambda values: values[token]


@functools.cache
def expression(text):
    return Expression(text)


@dataclasses.dataclass
class Spec:
    folder: pathlib.Path
    fields: dict

    @staticmethod
    def read(file):
        file = pathlib.Path(file)
        return Spec(file.parent, json.loads(file.read_text()))

    @property
    def source(self):
        return self.folder / self.fields["source"]

    @property
    def include(self):
        return [self.folder, *(self.folder / folder for folder in self.fields["headers"])]

    def least(self, dim):
        """The smallest value that a problem may give the dim."""
        described = self.fields["problem"]["dims"][dim]
        return described.get("min", 1) if isinstance(described, dict) else 1

    def tolerance(self, dtype, output="", problem=None):
        """(rtol, atol) of an output, which may depend on the problem."""
        tolerance = self.fields["tolerance"]
        bounds = tolerance.get("outputs", {}).get(output, {}).get(dtype) or tolerance[dtype]
        return tuple(self._bound(bounds[name], problem) for name in ("rtol", "atol"))

    def _bound(self, bound, problem):
        if not isinstance(bound, dict):
            return bound
        values = self.values_of(problem)
        if "times" in bound:
            return bound["factor"] * expression(bound["times"])(values)
        return bound["factor"] * math.sqrt(expression(bound["sqrt"])(values))

    def values_of(self, problem, configuration=None, device=H200):
        """What the names in the spec's expressions stand for."""
        element = {f"sizeof({name})": ELEMENTS[problem[name]][1] for name in self.fields["problem"]["types"]}
        facts = {f"device.{name}": value for name, value in device.items()}
        flags = self.fields["problem"].get("flags", {})
        scalars = {f"caller.{name}": one.get("bench") for name, one in self.fields["arguments"].items()}
        return {**flags, **problem, **(configuration or {}), **element, **facts, **scalars}

    def is_valid(self, problem, configuration, device=H200):
        values = self.values_of(problem, configuration, device)
        return all(expression(text)(values) for text in self.fields["constraints"])

    def configurations(self, problem, device=H200):
        """The valid ones, in canonical order."""
        tunables = self.fields["tunables"]
        names = list(tunables)
        # Each constraint is checked as soon as the last tunable that it reads has a value.
        checks = [[] for _ in range(len(names) + 1)]
        for text in self.fields["constraints"]:
            read = set(re.findall(r"\w+", text))
            checks[max((i + 1 for i, name in enumerate(names) if name in read), default=0)].append(
                expression(text)
            )
        values = self.values_of(problem, None, device)

        def walk(depth):
            if not all(check(values) for check in checks[depth]):
                return
            if depth == len(names):
                yield {name: values[name] for name in names}
                return
            for value in tunables[names[depth]]:
                values[names[depth]] = value
                yield from walk(depth + 1)

        return list(walk(0))

    def default(self, problem, device=H200):
        return next(one for one in self.fields["default"] if self.is_valid(problem, one, device))

    def sample(self, problem, count, draw, seen, device=H200):
        """The default and so many others, those first that have most values which are not in `seen`, which
        grows."""

        def fresh(configuration):
            return sum(value not in seen for value in configuration.items())

        valid = self.configurations(problem, device)
        draw.shuffle(valid)
        chosen = [self.default(problem, device)]
        seen.update(chosen[0].items())
        for _ in range(min(count, len(valid) - 1)):
            best = max((one for one in valid if one not in chosen), key=fresh)
            chosen.append(best)
            seen.update(best.items())
        return chosen

    def uncovered(self, seen):
        """The tunables' values that are not in `seen`."""
        listed = {(name, value) for name, values in self.fields["tunables"].items() for value in values}
        return sorted(listed - seen)

    def launches(self, problem, configuration, device=H200):
        """As in a plan, but with `entry` where the plan has `entry_symbol`; those of an empty grid are left
        out."""
        values = self.values_of(problem, configuration, device)
        names = {**values, **{name: ELEMENTS[problem[name]][0] for name in self.fields["problem"]["types"]}}
        result = []
        for launch in self.fields["launches"]:
            grid, block = (
                [expression(text)(values) for text in launch[axis]] + [1] * (3 - len(launch[axis]))
                for axis in ("grid", "block")
            )
            if 0 in grid:
                continue
            result.append(
                {
                    "entry": re.sub(r"\{(\w+)\}", lambda name: str(names[name[1]]), launch["entry"]),
                    "grid": grid,
                    "block": block,
                    "shared_bytes": expression(launch.get("shared_bytes", "0"))(values),
                    "parameters": [self._parameter(name, problem, values) for name in launch["arguments"]],
                }
            )
        return result

    def _parameter(self, name, problem, values):
        argument = self.fields["arguments"][name]
        if "tensor_map" in argument:
            buffer = self._parameter(argument["tensor_map"], problem, values)
            return {**buffer, "kind": "tensor_map", "tensor_map": self._tensor_map(argument, problem, values)}
        if "buffer" in argument:
            dtype = problem.get(argument["buffer"], argument["buffer"])
            axes = argument.get("shape") or [argument["extent"]]
            size = math.prod(expression(axis)(values) for axis in axes) * ELEMENTS[dtype][1]
            return {
                "name": name,
                "kind": "buffer",
                "type": dtype,
                "role": argument["role"],
                "size_bytes": size,
            }
        parameter = {"name": name, "kind": "scalar", "type": argument["scalar"]}
        if "expr" in argument:
            parameter["value"] = expression(argument["expr"])(values)
        return parameter

    def _tensor_map(self, argument, problem, values):
        """As in a plan."""
        buffer = self.fields["arguments"][argument["tensor_map"]]
        dtype = problem.get(buffer["buffer"], buffer["buffer"])

        def numbers(texts):
            return [expression(str(text))(values) for text in texts]

        sizes = numbers(argument.get("sizes") or reversed(buffer["shape"]))
        dense = [math.prod(sizes[: axis + 1]) * ELEMENTS[dtype][1] for axis in range(len(sizes) - 1)]
        modes = {
            name: int(re.sub("none", "0", argument.get(name, "none")).removesuffix("B"))
            for name in ("swizzle", "interleave", "l2_promotion")
        }
        return {
            "type": "u8" if ELEMENTS[dtype][1] == 1 else dtype,
            "sizes": sizes,
            "strides": numbers(argument["strides"]) if "strides" in argument else dense,
            "box": numbers(argument["box"]),
            "element_strides": numbers(argument.get("element_strides", [1] * len(sizes))),
            **modes,
            "fill": argument.get("fill", "zeros"),
        }
