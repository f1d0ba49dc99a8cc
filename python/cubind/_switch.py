"""CUBIND=0, false, no or off: cubind is not used."""

from __future__ import annotations

import os


def is_off(variable: str) -> bool:
    """Whether a variable of the environment says 0, false, no or off."""
    return os.environ.get(variable, "").strip().lower() in ("0", "false", "no", "off")


IS_OFF = is_off("CUBIND")
WHY_OFF = f"CUBIND={os.environ.get('CUBIND', '')} turns cubind off"
