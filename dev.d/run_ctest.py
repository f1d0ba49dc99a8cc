"""Runs CTest and prints, before its closing lines, how many cases of each label ran, which did not, and why.

    python3 dev.d/run_ctest.py BUILD_FOLDER [CTEST ARGUMENTS]

Fails if CTest does, if all tests of a label were skipped, and if every file of Python tests was selected but
those that ran have fewer cases than PYTHON_CASES. With CUBIND_CASES=FILE the counts are added to that file,
and the counts of earlier runs are printed too.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

# How many cases the Python files that run must have in all. Raise it with new cases; lower it only in the
# commit that removes some.
PYTHON_CASES = 660


def run(command):
    """The exit status, and the lines from CTest's verdict on, which are held back."""
    closing = []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **pipes, text=True, errors="replace") as child:
        for line in child.stdout:
            if closing or re.match(r"\d+% tests passed", line):
                closing.append(line)
            else:
                print(line, end="", flush=True)
    return child.returncode, closing


def python_cases(output):
    """How many cases unittest.main() found, and how many of them it skipped."""
    found = re.findall(r"^Ran (\d+) tests? in", output, re.M)
    skipped = re.findall(r"^OK \(.*\bskipped=(\d+)", output, re.M)
    return int(found[-1]) if found else 0, int(skipped[-1]) if skipped else 0


def reason(output):
    """What a skipped test says: by skip_test() of tests/support/skip.hpp, else in its last line."""
    told = re.search(r"test skipped: (.*)", output)
    return told[1] if told else (output.strip().splitlines() or ["it says nothing"])[-1]


def labels_and_python_files(build):
    """The label of every test, and the names of those that are files of the Python package's tests."""
    told = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True
    )
    labels = {}
    for test in json.loads(told.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        labels[test["name"]] = properties.get("LABELS", ["none"])[0]
    return labels, {name for name in labels if re.match(r"service_python_\w+: ", name)}


def with_earlier(lines):
    file = os.environ.get("CUBIND_CASES")
    if not file:
        return lines
    with open(file, "a+") as cases:
        cases.write("".join(f"{line}\n" for line in lines))
        cases.seek(0)
        return cases.read().splitlines()


def tell(build, results, python_floor):
    """Prints the cases by label; returns what is wrong."""
    labels, python_files = labels_and_python_files(build)
    ran, cases, skipped = dict.fromkeys(sorted({labels[name] for name, _, _ in results}), 0), 0, []
    for name, status, output in results:
        if status == "notrun":
            skipped.append(f"{name}: {reason(output)}")
            continue
        ran[labels[name]] += 1
        if name in python_files:
            found, left_out = python_cases(output)
            cases += found
            if left_out:
                skipped.append(f"{name}: {left_out} of its {found} cases")
    lines = [f"{label:<12} {count:>5}" for label, count in ran.items()]
    if cases:
        lines.append(f"{'Python':<12} {cases:>5} in files, each of which counts once in its label")
    lines += [f"not run: {line}" for line in skipped]
    print("\nCases that ran, by label:", *with_earlier(lines), sep="\n")
    faults = [f"no test of label {label} ran" for label, count in ran.items() if count == 0]
    if python_files and python_files <= {name for name, _, _ in results} and cases < python_floor:
        faults.append(
            f"{cases} Python cases ran and there were {python_floor} (PYTHON_CASES in dev.d/run_ctest.py)"
        )
    return faults


def main(build, *arguments, python_floor=PYTHON_CASES):
    file = pathlib.Path(build, "Testing/results.xml").resolve()
    file.unlink(missing_ok=True)
    untruncated = ["--test-output-size-passed", str(1 << 20), "--output-junit", file]
    status, closing = run(["ctest", "--test-dir", build, *untruncated, *arguments])
    faults = []
    if file.exists():
        tests = xml.etree.ElementTree.parse(file).iter("testcase")
        results = [
            (test.get("name"), test.get("status"), test.findtext("system-out") or "") for test in tests
        ]
        faults = tell(build, results, python_floor)
    for fault in faults:
        print(f"dev: {fault}")
    print("".join(["\n", *closing]), end="", flush=True)
    return status or int(bool(faults))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
