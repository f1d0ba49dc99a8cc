"""What Triton's key of a function leaves out: values of other modules, and all global ones that are no
constexpr, such as types. And it takes the constants 1 and "1" for the same."""

from __future__ import annotations

import ast
import inspect
import sys
from typing import Any

from triton.language.core import constexpr, dtype
from triton.runtime.jit import JITFunction

# Of triton.jit and, from Triton 3.5 on, triton.constexpr_function.
_Callable: Any = getattr(sys.modules[JITFunction.__module__], "JITCallable", JITFunction)


def globals_of(kernel: JITFunction[Any]) -> list[str]:
    """The global values that a kernel and its callees name, with their names."""
    found, functions = set(), [kernel]
    for function in functions:  # which grows
        scope = {**function.fn.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
        for name in inspect.signature(function.fn).parameters:
            scope.pop(name, None)
        for node in ast.walk(function.parse()):
            value = _value_of(node, scope)
            value = value.value if isinstance(value, constexpr) else value
            if isinstance(value, (dtype, bool, int, float, str, tuple)):
                found.add(f"{ast.unparse(node)}={value!r}")
            elif isinstance(value, _Callable) and not value.__module__.startswith("triton."):
                functions += [] if value in functions else [value]
    return sorted(found)


def _value_of(node: ast.AST, scope: dict[str, Any]) -> Any:
    """The value of a name, or of an attribute of one; None: it is none."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    return getattr(_value_of(node.value, scope), node.attr, None) if isinstance(node, ast.Attribute) else None
