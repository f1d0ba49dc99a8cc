"""The problems of a block, tuned before it runs: a training step never waits for a tuning."""

import time


def problems(sizes, linear):
    """What cubind's operators ask for in a forward and a backward pass, in bf16. `linear`: the products
    too."""
    S, H, F = sizes.sequence, sizes.hidden, sizes.mlp
    rows = {"N": S, "D": H}
    heads = {"B": 1, "HQ": sizes.heads, "HKV": sizes.heads, "SQ": S, "SK": S, "D": sizes.head, "CAUSAL": 1}
    listed = [{"kernel": f"rmsnorm_{way}", **rows} for way in ("forward", "backward")]
    listed += [{"kernel": f"flash_attention_{way}", **heads} for way in ("forward", "backward")]
    if linear:
        for N, K in ((H, H), (F, H), (H, F)):
            listed += [_product(S, N, K, 0, 1), _product(S, K, N, 0, 0), _product(N, K, S, 1, 0)]
    return [{**problem, "T": "bf16"} for problem in listed]


def _product(M, N, K, transpose_a, transpose_b):
    flags = {"TRANSPOSE_A": transpose_a, "TRANSPOSE_B": transpose_b, "BIAS": 0}
    return {"kernel": "matmul", "M": M, "N": N, "K": K, **flags}


def tune_missing(connect, listed, seconds):
    """Tunes what no record answers for; begins none after so many seconds. What is served then, for each
    problem."""
    until, tuned_in = time.monotonic() + seconds, {}
    with connect() as client:
        for number, problem in enumerate(listed):
            began = time.monotonic()
            if began < until and _is_unmeasured(_answer(client, problem)):
                client.tune([problem], progress=False)
                tuned_in[number] = round(time.monotonic() - began, 1)
    with connect() as client:  # one that remembers nothing
        return [
            _described(problem, _answer(client, problem), tuned_in.get(number))
            for number, problem in enumerate(listed)
        ]


def _answer(client, problem):
    names = dict(problem)
    return client.get(names.pop("kernel"), names, tune=False)


# Of a neighbour's record the configuration alone is known to be good, of none not even that.
def _is_unmeasured(answer):
    return bool({"default", "nearest_problem"} & set(answer.match.split("+")))


def _described(problem, answer, tuned_in):
    fields = ("match", "evidence", "time_us", "configuration")
    return {**problem, **{name: getattr(answer, name) for name in fields}, "tuned_in_s": tuned_in}
