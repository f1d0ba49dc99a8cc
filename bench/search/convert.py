"""Recorded and specified tuning spaces of others as the input of search_replay.

T4: results of a brute-force tuning (Kernel Tuner's cache files, gz or plain). T1: parameters and constraints
without results. Both become {"name", "axes": [{"name", "values"}], "constraints": [expression]} and, for T4,
"records": one [position of each value..., time in ms or null where it failed] for each configuration that was
recorded.
"""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import pathlib

OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",  # of whole quotients: brute_force_count() tells where one is not
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
}


def expression(node: ast.AST) -> str:
    """A Python expression in the grammar of plan/expr."""
    match node:
        case ast.Expression(body=body):
            text = expression(body)
        case ast.Constant(value=value) if isinstance(value, int):
            text = str(int(value))
        case ast.Name(id=name):
            text = name
        case ast.BinOp(left=left, op=op, right=right):
            text = f"({expression(left)} {OPERATORS[type(op)]} {expression(right)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            text = f"!{expression(operand)}"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            text = f"(-{expression(operand)})"
        case ast.BoolOp(op=op, values=values):
            text = "(" + f" {OPERATORS[type(op)]} ".join(map(expression, values)) + ")"
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [expression(side) for side in (left, *comparators)]
            steps = [f"({a} {OPERATORS[type(op)]} {b})" for a, op, b in zip(sides, ops, sides[1:])]
            text = steps[0] if len(steps) == 1 else "(" + " && ".join(steps) + ")"
        case _:
            raise SystemExit(f"{ast.unparse(node)}: there is no such expression in a kernel spec")
    return text


def specified(document: dict) -> dict:
    space = document["ConfigurationSpace"]
    axes = [
        {"name": parameter["Name"], "values": ast.literal_eval(parameter["Values"])}
        for parameter in space["TuningParameters"]
    ]
    conditions = [condition["Expression"] for condition in space["Conditions"]]
    return {
        "name": document["General"]["BenchmarkName"],
        "axes": axes,
        "constraints": [expression(ast.parse(text, mode="eval")) for text in conditions],
        "conditions": conditions,
    }


def recorded(name: str, document: dict) -> dict:
    keys = document["tune_params_keys"]
    axes = [{"name": key, "values": document["tune_params"][key]} for key in keys]
    positions = [{value: position for position, value in enumerate(axis["values"])} for axis in axes]
    records = []
    for entry in document["cache"].values():
        time = entry["time"] if isinstance(entry["time"], (int, float)) else None
        records.append([*(at[entry[key]] for at, key in zip(positions, keys)), time])
    return {"name": name, "axes": axes, "constraints": [], "records": records}


def convert(path: pathlib.Path) -> dict:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    if "cache" in document:
        return recorded(path.name.split(".")[0], document)
    return specified(document)


def brute_force_count(space: dict) -> int:
    """Every combination, asked in Python as the condition was written."""
    names = [axis["name"] for axis in space["axes"]]
    holds = eval(  # the file's conditions are Python by definition of the format
        f"lambda {', '.join(names)}: " + (" and ".join(f"({text})" for text in space["conditions"]) or "True")
    )
    return sum(
        1 for values in itertools.product(*(axis["values"] for axis in space["axes"])) if holds(*values)
    )
