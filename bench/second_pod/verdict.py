"""The figures of the raw results, and what is not as it must be.

A document has "sides": {side: {part: [run]}}, where a run is the results of its ranks, and "judged": what
regret.py found.
"""

import statistics

SIDES = ("triton", "shared", "cubind")
PARTS = ("first", "new", "warm", "lost")
SAME_SHARE = 0.10  # by which the first step on a new node may come later than after a warm restart
BEYOND = 0.01  # regret of a choice that counts
LEAST_CHOICES = 20
ALLOWED_MS = 50  # what a step may take longer once the daemon is killed
WARM_UP = 10  # steps that are not compared with those after the kill
LOSS_SHARE = 0.02  # between the mean losses of two sides


def first_step_s(run):
    """Seconds from the start of the first process until the slowest rank has finished its first step."""
    return max(rank["marks_s"]["first_step"] for rank in run)


def of_step_s(run):
    """The same, without the start of Python, imports and the model: of the slowest rank."""
    return max(rank["marks_s"]["first_step"] - rank["marks_s"]["model"] for rank in run)


def disagreements(run):
    """[(kernel, key, the configurations)] for which ranks run different ones."""
    found = {}
    for rank in run:
        for one in rank["choices"]:
            found.setdefault((one["kernel"], one["key"]), set()).add(one["configuration"])
    return [
        (*kernel_and_key, sorted(chosen))
        for kernel_and_key, chosen in sorted(found.items())
        if len(chosen) > 1
    ]


def regrets_of(judged):
    """{(kernel, key, configuration): regret}"""
    return {
        (one["kernel"], one["key"], choice): regret
        for one in judged
        for choice, regret in zip(one.get("choices", []), one.get("regrets", []))
    }


def choices_of(run, regrets):
    """The regrets of all ranks' choices, of how many kernels and keys, and how many choices have none."""
    every = [(one["kernel"], one["key"], one["configuration"]) for rank in run for one in rank["choices"]]
    known = [regrets[one] for one in every if one in regrets]
    return {
        "choices": len(every),
        "keys": len({one[:2] for one in every}),
        "not_judged": len(every) - len(known),
        "beyond_1_percent": sum(regret > BEYOND for regret in known),
        "keys_beyond_1_percent": len({one[:2] for one in every if regrets.get(one, 0) > BEYOND}),
        "worst": max(known, default=None),
    }


def slower_by_ms(run, at):
    """By how much the slowest step from `at` on exceeds the slowest one before, at worst of the ranks."""
    return max(max(rank["steps_ms"][at:]) - max(rank["steps_ms"][WARM_UP:at]) for rank in run)


def figures_of(parts, regrets, killed_at):
    """The figures of a side, by part. Counts are sums over the ranks, of the run that had most."""
    found = {}
    for part, runs in parts.items():
        found[part] = {
            "first_step_s": statistics.median(first_step_s(run) for run in runs),
            "first_step_s_of_each": [first_step_s(run) for run in runs],
            "of_the_step_s": statistics.median(of_step_s(run) for run in runs),
            "compiles": max(sum(len(rank["compiles"]) for rank in run) for run in runs),
            "tunings": max(sum(len(rank["tunings"]) for rank in run) for run in runs),
            "launcher_builds": max(sum(len(rank["launcher_builds_s"]) for rank in run) for run in runs),
            "disagreements": max(len(disagreements(run)) for run in runs),
            "median_step_ms": statistics.median(
                step for run in runs for rank in run for step in rank["steps_ms"][1:]
            ),
        }
        if regrets and part != "lost":
            found[part] |= choices_of(runs[-1], regrets)
    if "lost" in found:
        found["lost"]["slower_by_ms"] = max(slower_by_ms(run, killed_at) for run in parts["lost"])
    return found


def mean_loss(run):
    return statistics.fmean(statistics.fmean(rank["losses"][:10]) for rank in run)


def summary(document):
    """{"sides", "faults", "shared_is_as_good"}"""
    regrets, sides = regrets_of(document.get("judged", [])), document["sides"]
    figures = {side: figures_of(parts, regrets, document["killed_at"]) for side, parts in sides.items()}
    losses = {side: mean_loss(parts["first"][0]) for side, parts in sides.items() if "first" in parts}
    found = faults(figures.get("cubind", {})) + loss_faults(losses)
    return {
        "sides": figures,
        "mean_loss": losses,
        "faults": found,
        "shared_is_as_good": shared_is_as_good(figures),
    }


def faults(cubind):
    """What must not be, in words, of the parts that were measured."""
    found, new = [], cubind.get("new", {})
    found += [f"new node: {new[name]} {name}" for name in ("compiles", "tunings") if new.get(name)]
    if new.get("disagreements"):
        found.append(f"new node: ranks disagree on {new['disagreements']} kernels and keys")
    if new and "warm" in cubind:
        share = new["first_step_s"] / cubind["warm"]["first_step_s"] - 1
        if share > SAME_SHARE:
            found.append(
                f"new node: the first step comes {100 * share:.0f} % later than after a warm restart"
            )
    if "choices" in new:
        if new["keys"] < LEAST_CHOICES:
            found.append(f"new node: {new['keys']} kernels and keys, at least {LEAST_CHOICES} are needed")
        if new["not_judged"]:
            found.append(f"new node: {new['not_judged']} choices were not judged")
        if new["beyond_1_percent"]:
            found.append(f"new node: {new['beyond_1_percent']} choices are more than 1 % from the best")
    if cubind.get("lost", {}).get("slower_by_ms", 0) > ALLOWED_MS:
        found.append(f"killed daemon: a step took {cubind['lost']['slower_by_ms']:.1f} ms more than before")
    return found


def loss_faults(losses):
    base = losses.get("triton") or losses.get("shared")
    return [
        f"{side}: the mean loss is {loss:.4f}, and {base:.4f} without cubind"
        for side, loss in losses.items()
        if base is not None and not abs(loss / base - 1) <= LOSS_SHARE  # NaN is none
    ]


def shared_is_as_good(figures):
    """The figures of the new node in which the shared folder is at least as good as cubind."""
    shared, cubind = figures.get("shared", {}).get("new"), figures.get("cubind", {}).get("new")
    if shared is None or cubind is None:
        return []
    names = (
        "first_step_s",
        "of_the_step_s",
        "compiles",
        "tunings",
        "launcher_builds",
        "disagreements",
        "beyond_1_percent",
    )
    return [name for name in names if name in shared and shared[name] <= cubind.get(name, shared[name])]


def table(figures):
    """The figures as lines."""
    return "\n".join(line(side, part, one) for side, parts in figures.items() for part, one in parts.items())


def line(side, part, one):
    """The figures of one part of a side."""
    text = (
        f"{side:7} {part:6} first step {one['first_step_s']:6.1f} s ({one['of_the_step_s']:.1f} s its own)"
        f"  compiles {one['compiles']:4}  tunings {one['tunings']:3}  launchers {one['launcher_builds']:3}"
        f"  disagreements {one['disagreements']:2}  step {one['median_step_ms']:.1f} ms"
    )
    if "choices" in one:
        worst = f", worst {100 * one['worst']:.1f} %" if one["worst"] is not None else ""
        text += f"  beyond 1 %: {one['beyond_1_percent']} of {one['choices']}{worst}"
    if "slower_by_ms" in one:
        text += f"  after the kill {one['slower_by_ms']:+.1f} ms"
    return text
