"""What became of a program, of its tests and of its autotuned kernels, and what that says of cubind."""

import re
from xml.etree import ElementTree

LARGEST_SHARE = 0.2
TESTS = ("passed", "failed", "skipped")
_ASKED = re.compile(r"^cubind\.triton: (\S+): asked (\d+), served (\d+), tuning (\d+)$", re.MULTILINE)
_OWN = re.compile(r"^cubind\.triton: (\S+): (\d+) times Triton's own: it (.*)$", re.MULTILINE)
_MESSAGE = 300  # characters


def counted(**counts):
    """Tests by what became of them."""
    return dict.fromkeys(TESTS, 0) | counts


def kernels(output, stem):
    """{name: {"asked", "served", "tuning", "own": {reason: times}}} of a process with CUBIND_REPORT=1; None
    where it printed no report. stem: of the file, for the kernels of __main__."""
    if "cubind.triton: " not in output:
        return None
    found = {}

    def of(name):
        name = re.sub(r"^__main__\.", f"{stem}.", name)
        return found.setdefault(name, {"asked": 0, "served": 0, "tuning": 0, "own": {}})

    for name, *counts in _ASKED.findall(output):
        of(name).update(zip(("asked", "served", "tuning"), map(int, counts), strict=True))
    for name, times, reason in _OWN.findall(output):
        of(name)["own"][reason] = int(times)
    return found


def tests(results, stem):
    """(counts, {test: message of those that failed}) of pytest's JUnit file. The test "" stands for a
    file that could not be collected."""
    counts, failed = counted(), {}
    for case in ElementTree.parse(results).iter("testcase"):
        if case.get("name") is None:  # it was interrupted
            continue
        faults = [*case.findall("failure"), *case.findall("error")]
        if faults:
            failed[_test(case, stem)] = _first_line(faults[0].get("message", ""))
        elif case.find("skipped") is not None:
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts | {"failed": len(failed)}, failed


def _first_line(text):
    return "".join(text.splitlines()[:1])[:_MESSAGE]


def _test(case, stem):
    modules, name = case.get("classname", "").split("."), case.get("name", "")
    return "::".join([*modules[modules.index(stem) + 1 :], name]) if stem in modules else ""


def faults_of(run):
    """What fails under cubind alone. run: of a program, with the key "without" where something failed."""
    without = run.get("without")
    if not run["failed"]:
        return []
    if without is None:
        return [f"{run['program']}: failed, and no time was left to run it without cubind"]
    if "" in without["failed"]:
        return []
    ours = {test: message for test, message in run["failed"].items() if test not in without["failed"]}
    doubt = " (without cubind the program was cut, perhaps before this test)" if without["is_cut"] else ""
    return [f"{run['program']} {test}: {message}{doubt}" for test, message in ours.items()]


def summary(document):
    """The kernels of all programs, and the faults."""
    runs = document["programs"]
    met = {}
    for run in runs:
        for name, counts in (run["kernels"] or {}).items():
            one = met.setdefault(name, {"asked": 0, "served": 0, "own": {}, "programs": []})
            one["asked"] += counts["asked"]
            one["served"] += counts["served"]
            one["programs"].append(run["program"])
            for reason, times in counts["own"].items():
                one["own"][reason] = one["own"].get(reason, 0) + times
    own = {name: one for name, one in met.items() if one["own"]}
    share = len(own) / len(met) if met else 0.0
    faults = [fault for run in runs for fault in faults_of(run)]
    faults += [f"{run['program']}: no report of its kernels" for run in runs if run["kernels"] is None]
    if share > LARGEST_SHARE:
        faults.append(
            f"{len(own)} of {len(met)} autotuned kernels stay Triton's own, at least for some calls: "
            f"{share:.0%}, at most {LARGEST_SHARE:.0%} may"
        )
    if runs and not met:
        faults.append("no autotuned kernel was met")
    return {
        "programs": len(runs),
        "cut": [run["program"] for run in runs if run["is_cut"]],
        **{name: sum(run["tests"][name] for run in runs) for name in TESTS},
        "kernels_met": len(met),
        "kernels_served": sum(one["served"] > 0 and not one["own"] for one in met.values()),
        "kernels_without_answer": sorted(
            name for name, one in met.items() if not one["served"] and not one["own"]
        ),
        "kernels_own": own,
        "share_own": share,
        "faults": faults,
    }


def line(run):
    """Of a program."""
    found = (run["kernels"] or {}).values()
    ending = ", cut" if run["is_cut"] else ""
    counts = ", ".join(f"{run['tests'][name]} {name}" for name in TESTS)
    own = sum(bool(one["own"]) for one in found)
    served = sum(one["served"] > 0 and not one["own"] for one in found)
    return (
        f"{run['suite']} {run['program']}: {counts}{ending}, {run['seconds']:.0f} s; "
        f"{len(found)} autotuned kernels: {served} served, {own} Triton's own"
    )


def table(document):
    """What is printed at the end: the sums, and each kernel that stayed Triton's own."""
    found = document["summary"]
    lines = [
        f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped in {found['programs']} "
        f"programs, {len(found['cut'])} of them cut, {len(document['left_out'])} left out; "
        f"{found['kernels_met']} autotuned kernels met, {found['kernels_served']} served, "
        f"{found['share_own']:.0%} Triton's own"
    ]
    for name, one in found["kernels_own"].items():
        lines += [f"{name}: {times} times Triton's own: it {reason}" for reason, times in one["own"].items()]
    return "\n".join(lines)
