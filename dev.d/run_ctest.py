"""Runs CTest and prints, before its closing lines, how many cases of each label ran, which did not, and why.

    python3 dev.d/run_ctest.py BUILD_FOLDER [CTEST ARGUMENTS]

Fails if CTest does, if all tests of a label were skipped, and if more than MOST_SKIPPED cases were. With
CUBIND_CASES=FILE the counts are added to that file, and the counts of earlier runs are printed too.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

MOST_SKIPPED = 5


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


def reason(output):
    """What a skipped test says: by skip_test() of tests/support/skip.hpp, else in its last line."""
    told = re.search(r"test skipped: (.*)", output)
    return told[1] if told else (output.strip().splitlines() or ["it says nothing"])[-1]


def skipped_methods(output):
    """Name and reason of each method of a Python case that was skipped."""
    return re.findall(r"^(\w+) \(.*(?:\n.*)?\.\.\. skipped ['\"](.*)['\"]$", output, re.M)


def labels_of_tests(build):
    command = ["ctest", "--test-dir", build, "--show-only=json-v1"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    labels = {}
    for test in json.loads(told.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        labels[test["name"]] = properties.get("LABELS", ["none"])[0]
    return labels


def with_earlier(lines):
    file = os.environ.get("CUBIND_CASES")
    if not file:
        return lines
    with open(file, "a+") as cases:
        cases.write("".join(f"{line}\n" for line in lines))
        cases.seek(0)
        return cases.read().splitlines()


def tell(build, results):
    """Prints the cases by label; returns what is wrong."""
    labels = labels_of_tests(build)
    ran, skipped = dict.fromkeys(sorted({labels[name] for name, _, _ in results}), 0), []
    for name, status, output in results:
        if status == "notrun":
            skipped.append(f"{name}: {reason(output)}")
            continue
        ran[labels[name]] += 1
        skipped += [f"{name}: {method}: {why}" for method, why in skipped_methods(output)]
    lines = [f"{label:<12} {count:>5}" for label, count in ran.items()]
    lines += [f"not run: {line}" for line in skipped]
    print("\nCases that ran, by label:", *with_earlier(lines), sep="\n")
    faults = [f"no test of label {label} ran" for label, count in ran.items() if count == 0]
    if len(skipped) > MOST_SKIPPED:
        faults.append(f"{len(skipped)} cases were skipped; at most {MOST_SKIPPED} may be")
    return faults


def main(build, *arguments):
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
        faults = tell(build, results)
    for fault in faults:
        print(f"dev: {fault}")
    print("".join(["\n", *closing]), end="", flush=True)
    return status or int(bool(faults))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
