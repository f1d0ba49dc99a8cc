"""Kernel specs read by Python: which configurations are valid for a problem, and how one is launched.

For measurements without a daemon. The expressions are those of docs/kernels.md.
"""

import itertools
import json
import pathlib
import re

SIZES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}
NAMES = {"f64": "double", "f32": "float", "f16": "__half", "bf16": "__nv_bfloat16"}
TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][A-Za-z_0-9.]*|&&|\|\||[<>=!]=|.)")
LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]
PYTHON = {"||": "or", "&&": "and", "/": "//"}
FUNCTIONS = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max, "abs": abs}


class Expression:
    """A C-like expression over integers; evaluated with the values of its names."""

    def __init__(self, text):
        self.tokens = [*TOKEN.findall(str(text)), ""]
        self.names = set()
        self.code = compile(self._choice(), str(text), "eval")

    def __call__(self, values):
        return int(eval(self.code, FUNCTIONS, values))  # what it holds was parsed here

    def _take(self, *wanted):
        if self.tokens[0] in wanted:
            return self.tokens.pop(0)
        return None

    def _choice(self):
        condition = self._level(0)
        if not self._take("?"):
            return condition
        yes = self._choice()
        self._take(":")
        return f"(({yes}) if ({condition}) else ({self._choice()}))"

    def _level(self, level):
        if level == len(LEVELS):
            return self._atom()
        left = self._level(level + 1)
        while operator := self._take(*LEVELS[level]):
            left = f"({left} {PYTHON.get(operator, operator)} {self._level(level + 1)})"
        return left

    def _atom(self):
        if self._take("!"):
            return f"(not {self._atom()})"
        if self._take("-"):
            return f"(-{self._atom()})"
        if self._take("("):
            inner = self._choice()
            self._take(")")
            return f"({inner})"
        token = self.tokens.pop(0)
        if token == "sizeof":
            self._take("(")
            token = "sizeof_" + self.tokens.pop(0)
            self._take(")")
        elif self._take("("):
            arguments = [self._choice()]
            while self._take(","):
                arguments.append(self._choice())
            self._take(")")
            return f"{token}({', '.join(arguments)})"
        token = token.replace(".", "_")
        if not token.isdigit():
            self.names.add(token)
        return token


class KernelSpec:
    def __init__(self, path, device):
        """`device`: its sm_count, shared_optin, l2_bytes and cc."""
        self.path = pathlib.Path(path)
        self.json = json.loads(self.path.read_text())
        self.device = {f"device_{name}": value for name, value in device.items()}
        self.tunables = self.json["tunables"]
        self.constraints = [Expression(text) for text in self.json.get("constraints", [])]

    def sources(self):
        """The source file and the folders of its headers."""
        folder = self.path.parent
        return folder / self.json["source"], [folder, *(folder / f for f in self.json.get("headers", []))]

    def values(self, problem, configuration=()):
        types = {name: problem[name] for name in self.json["problem"].get("types", {})}
        sizes = {f"sizeof_{name}": SIZES[type_] for name, type_ in types.items()}
        flags = self.json["problem"].get("flags", {})
        return {**self.device, **flags, **problem, **sizes, **dict(configuration)}

    def configurations(self, problem):
        """All that are valid, in canonical order."""
        names = list(self.tunables)
        checks = [[] for _ in range(len(names) + 1)]
        for constraint in self.constraints:
            checks[max((names.index(n) + 1 for n in constraint.names if n in names), default=0)].append(
                constraint
            )
        values = self.values(problem)

        def below(depth):
            if not all(check(values) for check in checks[depth]):
                return
            if depth == len(names):
                yield {name: values[name] for name in names}
                return
            for value in self.tunables[names[depth]]:
                values[names[depth]] = value
                yield from below(depth + 1)

        return list(below(0))

    def default(self, problem):
        for configuration in self.json["default"]:
            values = self.values(problem, configuration)
            if all(constraint(values) for constraint in self.constraints):
                return configuration
        raise ValueError(f"no default of {self.path.name} is valid for {problem}")

    def launches(self, problem, configuration):
        """Entry, grid, block, shared bytes and argument names of each launch that takes place."""
        values = self.values(problem, configuration)
        result = []
        for launch in self.json["launches"]:
            grid = [Expression(axis)(values) for axis in launch["grid"]]
            if 0 in grid:
                continue
            block = [Expression(axis)(values) for axis in launch["block"]]
            result.append(
                {
                    "entry": self.entry(launch["entry"], values),
                    "grid": list(itertools.islice([*grid, 1, 1], 3)),
                    "block": list(itertools.islice([*block, 1, 1], 3)),
                    "shared_bytes": Expression(launch.get("shared_bytes", 0))(values),
                    "arguments": launch["arguments"],
                }
            )
        return result

    def entry(self, template, values):
        return re.sub(r"{(\w+)}", lambda match: NAMES.get(values[match[1]], str(values[match[1]])), template)

    def extents(self, problem, configuration):
        """Elements of each buffer by argument name."""
        values = self.values(problem, configuration)
        buffers = {name: a for name, a in self.json["arguments"].items() if "buffer" in a}
        return {name: Expression(argument["extent"])(values) for name, argument in buffers.items()}
