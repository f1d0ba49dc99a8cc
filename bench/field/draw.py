"""Which programs of others are run: the draw is by rule, not by what passes."""

import dataclasses
import pathlib

TUTORIALS = (
    "02-fused-softmax.py",
    "03-matrix-multiplication.py",
    "05-layer-norm.py",
    "06-fused-attention.py",
    "08-grouped-gemm.py",
)
LAYERS = 6
# Of Liger's test/transformers: whole models, the package itself, and backends that are not Triton.
NO_OPERATORS = ("auto_model", "monkey_patch", "trainer_integration", "transformers", "utils")
OTHER_BACKENDS = ("cute", "cutile")


@dataclasses.dataclass(frozen=True)
class Program:
    """is_tests: by pytest. paths: for PYTHONPATH. folder: where it starts; None: an
    empty one."""

    suite: str
    name: str
    file: pathlib.Path
    is_tests: bool
    paths: tuple[pathlib.Path, ...] = ()
    folder: pathlib.Path | None = None

    def arguments(self, results, tests=()):
        """results: the file for pytest's. tests: those of the file that are run; none: all."""
        if not self.is_tests:
            return [str(self.file)]
        named = [f"{self.file}::{test}" for test in tests] or [str(self.file)]
        return ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={results}", *named]


def tutorials(folder):
    """As programs, and those with tests as these too: under pytest they have fewer configurations."""
    found = []
    for name in TUTORIALS:
        file = folder / name
        if "import pytest" in file.read_text():
            found.append(Program("tutorials", f"{name} (pytest)", file, True))
        found.append(Program("tutorials", name, file, False))
    return found


def fla(root):
    """The tests of the first six operators whose layer has the same name."""
    layers = {file.stem for file in (root / "fla/layers").glob("*.py")}
    tests = sorted((root / "tests/ops").glob("test_*.py"))
    drawn = [file for file in tests if file.stem.removeprefix("test_") in layers][:LAYERS]
    return [Program("fla", file.name, file, True, (root,), root) for file in drawn]


def liger(root):
    """The tests of single operators in Triton."""
    files = sorted((root / "test/transformers").glob("test_*.py"))
    drawn = [file for file in files if _is_operator(file.stem.removeprefix("test_"))]
    return [Program("liger", file.name, file, True, (root / "src",), root) for file in drawn]


def _is_operator(name):
    return name not in NO_OPERATORS and not any(backend in name for backend in OTHER_BACKENDS)


SUITES = {"tutorials": tutorials, "fla": fla, "liger": liger}
