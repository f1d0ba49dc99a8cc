"""Prints the cases of the Python tests, one per line: name in CTest, folder, and what unittest runs there.

A case is a test class, and a whole file where torch has to be imported, which takes 2 s of a core, with
Inductor 5 s. In files that take long it is a test method, or a class, so that several cores may share them.
"""

import ast
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[2] / "bench"
LONG = {"agent_faults_test", "demo_test", "embedded_test", "few_variants_test", "pages_test"} | {
    "attention_test", "choices_test", "compiled_test", "direct_test", "harmless_test", "install_test"
}  # fmt: skip


def cases(file):
    """What unittest shall run, one after the other."""
    text, tests = file.read_text(), {}
    with_torch = "torch_found" in text
    if with_torch and file.stem not in LONG:
        yield file.stem
        return
    for class_ in ast.parse(text).body:
        if not isinstance(class_, ast.ClassDef):
            continue
        found = [each.name for each in class_.body if getattr(each, "name", "").startswith("test_")]
        for base in class_.bases:
            found += tests.get(ast.unparse(base), [])
        tests[class_.name] = found
        has_fixture = "setUpClass" in {getattr(each, "name", "") for each in class_.body}
        if file.stem in LONG and not with_torch and not has_fixture:
            yield from (f"{file.stem}.{class_.name}.{name}" for name in found)
        elif found:
            yield f"{file.stem}.{class_.name}"


def main():
    for file in sorted([*HERE.glob("*/*_test.py"), *BENCH.glob("*/*_test.py")]):
        folder = "bench" if file.is_relative_to(BENCH) else file.parent.name
        for case in cases(file):
            print(f"service_python_{folder}: {case.replace('.', ': ', 1)}|{file.parent}|{case}")


if __name__ == "__main__":
    main()
