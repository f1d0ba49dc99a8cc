"""The fewest configurations of a kernel that serve many problems, besides its default.

    python3 bench/few_variants --bin DIR --shapes FILE [--variants 4] [--max-regret 2] KERNEL

Tunes the problems of the shape list from an empty store. Then measures each of the configurations that are
fastest at some of them wherever it comes near the winner, in turn with the default there
(`cubindctl table check --measure`). A problem's regret is how much more time it takes than with the fastest
configuration. Prints the set with the least worst regret for each number of variants; `variants` is the
smallest number with which no problem loses more than --max-regret percent. Exit status 1: there is none.
"""

import collections
import itertools
import json
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon

FASTEST = 8  # of each problem, that may serve others
CANDIDATES = 24
NEAR = 0.05  # what the tuning's few samples may be wrong by
NO_BOUND = "100"  # of today's time over the recorded one
DEFAULT = ""


def key_of(value):
    return json.dumps(value)


def times_of(table):
    """Of each problem the trials by configuration, the fastest first."""
    found = collections.defaultdict(dict)
    timed = [
        one for one in table["trials"] if one.get("time_us") and one["outcome"] in ("correct", "unverified")
    ]
    for trial in sorted(timed, key=lambda one: one["time_us"]):
        found[key_of(trial["problem"])].setdefault(key_of(trial["configuration"]), trial)
    return found


def candidates_of(table, times):
    """Those among the fastest of most problems, the winners first."""
    votes = collections.Counter()
    for record in table["records"]:
        votes[key_of(record["configuration"])] += len(times)
    for trials in times.values():
        votes.update(itertools.islice(trials, FASTEST))
    return [name for name, _ in votes.most_common(CANDIDATES)]


def near_records(table, times, name, slack):
    """The configuration as the winner of each problem where its trial comes near the fastest."""
    for record in table["records"]:
        trials = times[key_of(record["problem"])]
        fastest = next(iter(trials.values()))["time_us"]
        if name in trials and trials[name]["time_us"] <= (1 + slack) * fastest:
            trial = trials[name]
            yield {**record, **{part: trial[part] for part in ("configuration", "trial", "artifact")}}


def gains_of(daemon, table, times, slack, kernels):
    """Of each problem, by configuration: the default's time over its own. The default's is 1."""
    gains = {key_of(record["problem"]): {DEFAULT: 1.0} for record in table["records"]}
    file = pathlib.Path(daemon.folder.name) / "candidate.json"
    for name in candidates_of(table, times):
        records = list(near_records(table, times, name, slack))
        if not records:
            continue
        file.write_text(json.dumps({**table, "records": records, "trials": []}))
        options = ["--measure", "--warn", NO_BOUND, "--fail", NO_BOUND, "--json", *kernels]
        checked = json.loads(daemon.call("table", "check", str(file), *options, seconds=3600))
        measured = checked["files"][0]["measured"]["records"]
        for record, one in zip(records, measured, strict=True):
            gain = one["default_ratio"]
            gains[key_of(record["problem"])][name] = 1.0 if gain is None else gain  # it is the default
    return gains


def regrets_of(gains):
    return {
        problem: {name: max(of.values()) / gain - 1 for name, gain in of.items()}
        for problem, of in gains.items()
    }


def served(regrets, chosen):
    """Of each problem (regret, name): what serves it best of the chosen and its default."""
    return [min((of.get(name, math.inf), name) for name in (DEFAULT, *chosen)) for of in regrets.values()]


def best_sets(regrets, most):
    """(names, worst regret, mean regret) of the best set of each size from 0 to `most`, up to the first
    without regret."""
    names = sorted({name for of in regrets.values() for name in of} - {DEFAULT})

    def loss(chosen):
        shares = [regret for regret, _ in served(regrets, chosen)]
        return max(shares), sum(shares) / len(shares)

    sets = []
    for size in range(min(most, len(names)) + 1):
        sets.append(min(itertools.combinations(names, size), key=loss))
        if loss(sets[-1])[0] == 0:
            break
    return [(chosen, *loss(chosen)) for chosen in sets]


def report(kernel, regrets, sets, most_regret):
    """What is printed."""
    fitting = [len(chosen) for chosen, worst, _ in sets if worst <= most_regret]
    described = [
        {
            "configurations": [json.loads(name) for name in chosen],
            "worst_regret": worst,
            "mean_regret": mean,
            "problems": [
                {
                    "problem": json.loads(problem),
                    "configuration": json.loads(name or "null"),
                    "regret": regret,
                }
                for problem, (regret, name) in zip(regrets, served(regrets, chosen), strict=True)
            ],
        }
        for chosen, worst, mean in sets
    ]
    return {"kernel": kernel, "variants": fitting[0] if fitting else None, "sets": described}


def main():
    parser = command_line.make_parser(__doc__, required=["bin"])
    parser.add_argument("kernel", metavar="KERNEL")
    parser.add_argument("--shapes", required=True, metavar="FILE", help="shape list of the problems")
    parser.add_argument("--variants", type=int, default=4, help="the most, besides the default")
    parser.add_argument("--max-regret", type=float, default=2, metavar="PERCENT")
    parser.add_argument("--kernels", metavar="DIR", help="folder of the kernel's spec, if it was not shipped")
    parser.add_argument("--replay", metavar="TABLE", help="recorded trials, for a machine without a GPU")
    arguments = parser.parse_args()
    kernels = ["--kernels", arguments.kernels] if arguments.kernels else []
    replay = ["--replay", arguments.replay] if arguments.replay else []
    most_regret = arguments.max_regret / 100
    with Daemon(arguments.bin, [*kernels, *replay]) as daemon:
        daemon.call("tune", arguments.kernel, "--shapes", arguments.shapes, seconds=3600)
        table = json.loads(daemon.call("export", "--all-trials", "--replayed"))
        times = times_of(table)
        regrets = regrets_of(gains_of(daemon, table, times, most_regret + NEAR, kernels))
    result = report(arguments.kernel, regrets, best_sets(regrets, arguments.variants), most_regret)
    print(json.dumps(result, indent=1))
    return 0 if result["variants"] is not None else 1


if __name__ == "__main__":
    sys.exit(main())
