"""Measures what README.md shows, and records the table of trials that the demo plays where there is no GPU.

    python3 bench/readme --output DIR [--parts NAME...] [--fla DIR] [--commit COMMIT]

Parts, each a command of its own, in this order; DIR/NAME.json has its results (of models: models_llama.json),
DIR/rmsnorm.json the table:

    replay              all trials of four problems of RMSNorm, with their samples and clocks
    models              ./dev bench models, Llama alone
    tuning_time         ./dev bench tuning_time: cubind, Kernel Tuner and Triton, three rounds
    tuning_time_triton  ./dev bench tuning_time: Triton's autotuner and cubind.triton, five rounds
    first_launch        ./dev bench first_launch
    repeats             ./dev bench repeats
    second_pod          ./dev bench second_pod: needs four GPUs and --fla, so it runs only if it is named

`python3 bench/readme/page.py` then writes README's table from bench/results. Needs a GPU and the package
`cubind` with its programs; all parts but `replay` need torch and Triton, and what each of them says besides.
Exit status 1: a part failed; the others have run.
"""

import pathlib
import subprocess
import sys
import time

from cubind import programs

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(BENCH / "common"))
import command_line  # noqa: E402

# What a part runs besides its --output: {bin} is the folder of the programs, {fla} that of --fla.
PARTS = {
    "replay": ["readme/record.py", "--bin", "{bin}"],
    "models": ["models", "--models", "llama", "--sides", "torch", "cubind", "torch_compiled"],
    "tuning_time": ["tuning_time", "--bin", "{bin}", "--sides", "cubind", "triton", "kernel_tuner"],
    "tuning_time_triton": [
        *("tuning_time", "--bin", "{bin}", "--rounds", "5"),
        *("--sides", "cubind", "triton", "cubind_triton"),
    ],
    "first_launch": ["first_launch"],
    "repeats": ["repeats", "--bin", "{bin}", "--seconds", "435"],
    "second_pod": ["second_pod", "--fla", "{fla}", "--sides", "cubind", "shared", "--parts", "first", "new"],
}
BY_DEFAULT = [name for name in PARTS if name != "second_pod"]
FILES = {"replay": "rmsnorm.json", "models": "models_llama.json"}  # models.json has every model


def run(name, arguments):
    """The exit status of one part."""
    folders = {"bin": str(programs.program("cubind").parent), "fla": str(arguments.fla)}
    script, *options = (word.format(**folders) for word in PARTS[name])
    command = [sys.executable, BENCH / script, *options]
    command += ["--output", arguments.output / FILES.get(name, f"{name}.json")]
    command += ["--commit", arguments.commit] if arguments.commit else []
    began = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    print(f"bench/readme: {name}: exit status {status}, {time.monotonic() - began:.0f} s", flush=True)
    return status


def main():
    parser = command_line.make_parser(__doc__, optional=["commit"])
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for the results")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=BY_DEFAULT)
    parser.add_argument("--fla", type=pathlib.Path, help="for second_pod: the folder of its package `fla`")
    arguments = parser.parse_args()
    if "second_pod" in arguments.parts and arguments.fla is None:
        parser.error("second_pod needs --fla")
    arguments.output.mkdir(parents=True, exist_ok=True)
    failed = [name for name in arguments.parts if run(name, arguments) != 0]
    if failed:
        sys.exit(f"bench/readme: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
