"""How good the choices are when the same problems are tuned again and again, with no trial remembered.

    python3 bench/repeats --bin DIR [--repeats 10] [--seconds 450] [--without-triton] --output FILE

Tunes 24 problems so many times, each time with a daemon of an empty store and the whole space; compiled code
is kept. Then it measures the distinct winners, and every configuration within 5 % of the best, long and
interleaved: by how much more time a choice takes than the best is its regret. Problems below 5 us are
measured by graphs of repeats too. Triton's autotuner also chooses among its own configurations, judged
by the same clock. DIR holds cubind's programs. Needs torch and Triton. A problem that the seconds do not
suffice for is listed as left out.
"""

import json
import os
import pathlib
import sys
import time

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # buffers as far apart as the tuner's

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import choices
import command_line
import triton_choices
from judging import Oracle, summary
from pairs import PAIRS, TRITON


def measure_all(judge_one, every, samples, end, results, left_out, write):
    for one in every:
        where = {"kernel": one.kernel, "problem": one.problem}
        if time.monotonic() > end or not one.winners:
            left_out.append(where)
            continue
        begun = time.monotonic()
        try:
            result = judge_one(one, samples)
        except Exception as error:
            print(f"{where}: FAILED {error}", flush=True)
            result = {"error": str(error)}
        results.append({**where, **result, "seconds": time.monotonic() - begun})
        write()


def read_arguments():
    parser = command_line.make_parser(__doc__, required=["bin", "output"], optional=["commit"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=450, help="for everything; 60 %% of it for tuning")
    parser.add_argument("--samples", type=int, default=24000, help="of a problem, over all configurations")
    parser.add_argument(
        "--slots", type=int, default=32, help="of large buffers, which the samples take in turn"
    )
    parser.add_argument("--without-triton", action="store_true")
    parser.add_argument(
        "--only", nargs="+", metavar="KERNEL", help="of the 24 problems those of these kernels"
    )
    parser.add_argument("--agent", nargs="+", default=[], help="options of the agent, without their dashes")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    begun = time.monotonic()
    end = begun + arguments.seconds
    pairs = [pair for pair in PAIRS if not arguments.only or pair[0] in arguments.only]
    agent = [f"--{arguments.agent[0]}", *arguments.agent[1:]] if arguments.agent else []
    # Before this process has a context, so that the GPU is the agent's alone.
    every, tuned_in, failures = choices.tune_repeatedly(
        arguments.bin, pairs, arguments.repeats, 0.6 * arguments.seconds, agent
    )
    document = {"repeats": len(tuned_in), "tuned_in_s": tuned_in, "failures": failures}
    document |= {"problems": [], "left_out": [], "triton": {"problems": [], "left_out": []}}
    document["chosen"] = [
        {"kernel": one.kernel, "problem": one.problem, "winners": one.winners} for one in every
    ]

    def write():
        document["summary"] = summary(document["problems"])
        document["triton"]["summary"] = summary(document["triton"]["problems"])
        command_line.write(document, arguments.output)

    write()
    judge_all(arguments, document, every, end, write)
    print(json.dumps(document["summary"], indent=1))
    print("Triton:", json.dumps(document["triton"]["summary"], indent=1))
    print(f"{time.monotonic() - begun:.0f} s")
    if failures or document["left_out"] or any("error" in one for one in document["problems"]):
        sys.exit("a tuning or a measurement failed, or a problem was left out")


def judge_all(arguments, document, every, end, write):
    measuring = Oracle(arguments.commit, arguments.slots)
    document["toolchain"] = measuring.toolchain
    begun = time.monotonic()
    count = measuring.compile(every)
    print(f"{count} configurations to measure, compiled in {time.monotonic() - begun:.0f} s", flush=True)
    triton_end = end if not arguments.without_triton else time.monotonic()
    measure_all(
        measuring.judge,
        every,
        arguments.samples,
        end,
        document["problems"],
        document["left_out"],
        write,
    )
    left = triton_end - time.monotonic()
    if left > 10:
        made, seconds = triton_choices.tune_repeatedly(TRITON, arguments.repeats, 0.75 * left)
        document["triton"] |= {"repeats": len(seconds), "tuned_in_s": seconds}
        triton = document["triton"]
        measure_all(
            measuring.judge_triton,
            made,
            arguments.samples,
            end,
            triton["problems"],
            triton["left_out"],
            write,
        )
    measuring.compiler.close()
    write()


if __name__ == "__main__":
    main()
