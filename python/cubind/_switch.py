"""CUBIND=0: cubind is not used."""

from __future__ import annotations

import os

IS_OFF = os.environ.get("CUBIND") == "0"
WHY_OFF = "CUBIND=0 turns cubind off"
