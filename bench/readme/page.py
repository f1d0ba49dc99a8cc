"""README.md's figures and the picture below them, from the newest results of each benchmark.

    python3 bench/readme/page.py [--check]
    python -m cubind.demo --replay | python3 bench/readme/page.py --demo

Each row says which GPU it was measured on. Results are in bench/results/GPU/NAME.json, where `./dev bench
readme --output bench/results/GPU` writes them. --check: writes nothing, exit status 1 if README.md or the
picture differs from the results. --demo: also writes what the demo prints of its answers. Needs neither torch
nor a GPU.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "repeats"))
import picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "choices.svg"
BEGIN, END = "<!-- begin figures: made by bench/readme/page.py -->\n", "<!-- end figures -->\n"


def toolchain_of(document):
    """When, on what and by which tools a result was measured."""
    document = document[0] if isinstance(document, list) else document
    return document.get("toolchain", document)


def newest(name):
    found = [json.loads(file.read_text()) for file in ROOT.glob(f"bench/results/*/{name}.json")]
    found = [document for document in found if "date" in toolchain_of(document)]
    return max(found, key=lambda document: toolchain_of(document)["date"])


def gpu_of(document, count=1):
    """NVIDIA H100 80GB HBM3: an H100."""
    name = toolchain_of(document)["device"]
    short = re.search(r"\b[A-Z]+\d{2,4}\b", name)
    short = short[0] if short else name
    if count > 1:
        return f"on {count} x {short}"
    return f"on {'an' if short[0] in 'AEFHILMNORSX' else 'a'} {short}"


def seconds(value):
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 20 else f"{value:.0f} s"


# ---- The rows: what was measured, cubind, others ----


def median_s(runs):
    return seconds(statistics.median(run["seconds"] for run in runs))


def tuning_time():
    result = newest("tuning_time")
    runs = result["runs"]
    return (
        "48 configurations of RMSNorm, 16384 x 4096 bf16, from empty caches to the winner (`./dev bench "
        f"tuning_time`, {gpu_of(result)})",
        f"**{median_s(runs['cubind'])}**, verification included",
        f"Kernel Tuner {median_s(runs['kernel_tuner'])} (same CUDA source, no reference given); Triton's "
        f"autotuner {median_s(runs['triton'])} (an equivalent Triton kernel, also 48 configurations)",
    )


def tuning_time_triton():
    result = newest("tuning_time_triton")
    runs = result["runs"]
    return (
        f"48 configurations of an RMSNorm in Triton, unedited, from empty caches (same command, {gpu_of(result)})",
        f"**{median_s(runs['cubind_triton'])}** under `python -m cubind.triton`, verification included",
        f"Triton's autotuner {median_s(runs['triton'])}",
    )


def share(choices):
    return f"{choices['within_1_percent']} of {choices['choices']}"


def repeats():
    result = newest("repeats")
    ours, theirs = result["summary"], result["triton"]["summary"]
    return (
        "repeated tuning: choices within 1 % of the fastest configuration, by a longer measurement afterwards "
        f"(`./dev bench repeats`, {gpu_of(result)})",
        f"**{share(ours['all'])}** ({ours['problems']} problems, {result['repeats']} times); at worst "
        f"{100 * ours['all']['worst']:.1f} % slower",
        f"Triton's autotuner {share(theirs['all'])} ({theirs['problems']} of these problems, "
        f"{result['triton']['repeats']} times); at worst {100 * theirs['all']['worst']:.1f} % slower than its own "
        "fastest",
    )


def first_launch():
    result = newest("first_launch")
    times = {name: seconds(statistics.median(of) / 1000) for name, of in result["milliseconds"].items()}
    return (
        "a tuned kernel in a fresh process: first result after `import torch`, inputs on the GPU (`./dev bench "
        f"first_launch`, {gpu_of(result)})",
        f"**{times['cubind_private']}** including the start of a private daemon; {times['cubind_daemon']} if a "
        "daemon runs",
        f"Triton {times['triton_cached_results']} with its choice cached on disk (`TRITON_CACHE_AUTOTUNING=1`), "
        f"{times['triton_compiled']} with only its code cached",
    )


def models():
    result = newest("models*")
    sides = next(one["sides"] for one in result if one["model"] == "llama")
    step = {name: f"{side['median_ms']:.1f} ms, {side['peak_gib']:.1f} GiB" for name, side in sides.items()}
    return (
        "a training step of Llama of transformers (8 layers of 2048, vocabulary 128,256, 2 x 2048 tokens, bf16) "
        f"after `cubind.torch.replace(model)`, and its memory (`./dev bench models`, {gpu_of(result)})",
        f"**{step['cubind']}**",
        f"torch {step['torch']}; torch.compile {step['torch_compiled']}",
    )


def second_pod():
    result = newest("second_pod")

    def first_steps(side):
        parts = result["summary"]["sides"][side]
        return "; ".join(seconds(parts[part]["first_step_s"]) for part in ("first", "new"))

    return (
        f"{result['processes']} ranks train {result['model']} of flash-linear-attention, whose kernels are "
        "Triton's: first step on the first node; on a new node with empty caches (`./dev bench second_pod`, "
        f"{gpu_of(result, result['gpus'])})",
        f"**{first_steps('cubind')}**",
        f"Triton with its caches on a shared folder {first_steps('shared')}",
    )


ROWS = (tuning_time, tuning_time_triton, repeats, first_launch, models, second_pod)


def figures():
    """The table, and the picture's line."""
    choices = newest("repeats")
    ours, theirs = (100 * side["summary"]["all"]["worst"] for side in (choices, choices["triton"]))
    lines = ["| medians; all sides of a row were measured in one run | cubind | others |", "|---|---|---|"]
    lines += [f"| {' | '.join(row())} |" for row in ROWS]
    alt = (
        f"Strip plot: each choice of cubind is at most {ours:.1f} % slower than the fastest configuration, "
        f"Triton's up to {theirs:.1f} %"
    )
    return "\n".join([*lines, "", f"![{alt}]({PICTURE.relative_to(ROOT)})"]) + "\n"


def page(text):
    """README.md with today's figures."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{figures()}{END}{rest.split(END)[1]}"


def with_demo(text, printed):
    """README.md with the answers that a demo has printed."""
    answers = re.search(
        r"^replayed: What the daemon serves now.*\n(?:replayed:   .*\n)+", printed, re.MULTILINE
    )
    return re.sub(r"(?<=```\n)(?:replayed: .*\n)+(?=```)", lambda _: answers[0], text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--demo", action="store_true", help="standard input is what the demo prints")
    arguments = parser.parse_args()
    text = README.read_text()
    text = with_demo(text, sys.stdin.read()) if arguments.demo else text
    wanted = {README: page(text), PICTURE: picture.draw(newest("repeats"))}
    old = [file for file, text in wanted.items() if file.read_text() != text]
    for file in old:
        if arguments.check:
            print(f"{file.relative_to(ROOT)}: not of bench/results: run `python3 bench/readme/page.py`")
        else:
            file.write_text(wanted[file])
    return 1 if old and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
