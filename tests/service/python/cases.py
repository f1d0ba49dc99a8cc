"""Prints the cases of the Python tests, one per line: name in CTest, folder, and what unittest runs there.

A case is a test class: a process has much to import (torch takes 1.8 s of a core). It is a test method in
files whose methods take long, so that several cores may share them.
"""

import ast
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[2] / "bench"
LONG = {"agent_faults_test", "demo_test", "embedded_test", "few_variants_test", "pages_test"}


def cases(file):
    """What unittest shall run, one after the other."""
    tests = {}
    for class_ in ast.parse(file.read_text()).body:
        if not isinstance(class_, ast.ClassDef):
            continue
        found = [each.name for each in class_.body if getattr(each, "name", "").startswith("test_")]
        for base in class_.bases:
            found += tests.get(ast.unparse(base), [])
        tests[class_.name] = found
        if file.stem in LONG and "setUpClass" not in {getattr(each, "name", "") for each in class_.body}:
            yield from (f"{class_.name}.{name}" for name in found)
        elif found:
            yield class_.name


def main():
    for file in sorted([*HERE.glob("*/*_test.py"), *BENCH.glob("*/*_test.py")]):
        folder = "bench" if file.is_relative_to(BENCH) else file.parent.name
        for case in cases(file):
            print(f"service_python_{folder}: {file.stem}: {case}|{file.parent}|{file.stem}.{case}")


if __name__ == "__main__":
    main()
