"""Prints the cases of the Python tests, one per line: name in CTest, folder, and what unittest runs there.

A case is a test method. It is a whole class where each method would pay for a start that takes long: of the
class's fixture, mostly a daemon, or the import of Triton (0.3 s of a core) or torch (1.8 s).
"""

import ast
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[2] / "bench"


def is_whole(class_, text):
    """Whether all methods of a class run in one process."""
    bases = [ast.unparse(base) for base in class_.bases]
    own = {method.name for method in class_.body if isinstance(method, ast.FunctionDef)}
    return (
        "setUpClass" in own
        or bases != ["unittest.TestCase"]
        or "triton_found" in text
        or "torch_found" in text
        or "inductor_pretended" in text
    )


def cases(text):
    """What unittest shall run, one after the other."""
    tests = {}
    for class_ in ast.parse(text).body:
        if not isinstance(class_, ast.ClassDef):
            continue
        found = [each.name for each in class_.body if getattr(each, "name", "").startswith("test_")]
        for base in class_.bases:
            found += tests.get(ast.unparse(base), [])
        tests[class_.name] = found
        if found and is_whole(class_, text):
            yield class_.name
        else:
            yield from (f"{class_.name}.{name}" for name in found)


def main():
    for file in sorted([*HERE.glob("*/*_test.py"), *BENCH.glob("*/*_test.py")]):
        folder = "bench" if file.is_relative_to(BENCH) else file.parent.name
        for case in cases(file.read_text()):
            print(f"service_python_{folder}: {file.stem}: {case}|{file.parent}|{file.stem}.{case}")


if __name__ == "__main__":
    main()
