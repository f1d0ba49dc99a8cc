"""The entry point of torch's group `torch.backends`: torch calls it in every process that imports it. It lies
outside of cubind, whose import takes longer than processes without the variables should pay for."""

import os
import sys

_MODULES = {"CUBIND_TRITON": "cubind.triton._autoload", "CUBIND_INDUCTOR": "cubind.inductor._install"}


def load() -> None:
    """With CUBIND_TRITON=1 in the environment: cubind.triton.install() once the process imports Triton. With
    CUBIND_INDUCTOR=1: cubind.inductor.install(). It raises nothing, with which torch could not be
    imported."""
    if "compile_worker" in "".join(sys.argv[:1]).split(
        os.sep
    ):  # of torch.compile: it launches and chooses nothing
        return
    for variable, module in _MODULES.items():
        if os.environ.get(variable, "").strip().lower() in ("", "0", "false", "no", "off"):  # as CUBIND
            continue
        try:
            __import__(module, fromlist=["load"]).load()
        except Exception as error:
            print(f"{module.rpartition('.')[0]}: {type(error).__name__}: {error}", file=sys.stderr)
