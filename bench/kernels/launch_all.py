"""Each kernel that the daemon lists: tuned at an odd problem, fetched, launched, and compared with float64 on
every element.

    python3 bench/kernels/launch_all.py --bin DIR [--seconds N] --output FILE

Starts a daemon from DIR (the package's bin folder) with an empty store. A kernel without a problem here is a
failure. About a minute on an H200. Needs torch and Triton. Exit status 1: a result is wrong, or a kernel has
none.
"""

import pathlib
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon, kernels_of
from driver import bind_plan
from served import tuned
from shapes import ONE_OF_EACH, problem
from spec import Spec
from subjects import subject

ROOT = pathlib.Path(__file__).parents[2]


def launch(spec, problem, served):
    """The largest departures from float64 by output, above 1 is wrong."""
    here = subject(spec, problem)
    here.clear()
    bind_plan(served.cubin, served.plan, here.tensors, here.scalars)()
    torch.cuda.synchronize()
    return here.worst(list(here.outputs.values()))


def outcome(spec, problem, served):
    line = {"problem": problem, "tuned_in_s": served.seconds, "error": served.error}
    line["configuration"] = served.plan.get("configuration")
    if not served.error:
        try:
            line["worst_excess"] = launch(spec, problem, served)
        except Exception as error:
            line["error"] = str(error)[-2000:]
    line["right"] = not line["error"] and max(line["worst_excess"].values()) <= 1
    return line


def main():
    parser = command_line.make_parser(__doc__, required=["bin", "output"])
    parser.add_argument("--variants", type=pathlib.Path, default=ROOT / "variants", help="the kernel specs")
    parser.add_argument("--seconds", type=float, default=240, help="no kernel is tuned after so long")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    results, served = {}, {}
    with Daemon(arguments.bin, kernels_of(arguments.variants)) as daemon:
        for kernel in daemon.kernels():
            if kernel not in ONE_OF_EACH:
                results[kernel] = {"right": False, "error": "no problem of it is listed in shapes.py"}
            elif time.monotonic() < end:
                served[kernel] = tuned(daemon, kernel, problem(kernel, ONE_OF_EACH[kernel]))
            else:
                results[kernel] = {"right": False, "error": "the time is up"}
    for kernel, one in served.items():
        spec = Spec.read(next(arguments.variants.glob(f"*/{kernel}.json")))
        results[kernel] = outcome(spec, problem(kernel, ONE_OF_EACH[kernel]), one)
    for kernel, line in results.items():
        print(f"{kernel}: {'right' if line['right'] else 'WRONG'} {line.get('worst_excess', line['error'])}")
    command_line.write(results, arguments.output)
    sys.exit(0 if results and all(line["right"] for line in results.values()) else 1)


if __name__ == "__main__":
    main()
