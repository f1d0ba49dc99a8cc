"""The entry point of torch's group `torch.backends`: torch calls it in every process that imports it. It lies
outside of cubind, whose import takes longer than processes without CUBIND_TRITON should pay for."""

import os
import sys


def load() -> None:
    """With CUBIND_TRITON=1 in the environment: cubind.triton.install() once the process imports Triton. It
    raises nothing, with which torch could not be imported."""
    if os.environ.get("CUBIND_TRITON", "").strip() in ("", "0"):
        return
    try:
        from cubind.triton import _autoload  # noqa: PLC0415

        _autoload.load()
    except Exception as error:
        print(f"cubind.triton: {type(error).__name__}: {error}", file=sys.stderr)
