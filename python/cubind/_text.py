"""Text that others wrote, on its way to a terminal."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """The text with control and format characters but line ends and tabs as JSON writes them ("\\u001b",
    "\\u202e"), so that it moves no cursor and reads in the order in which it was written."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSEEN and c not in "\n\t" else c for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
