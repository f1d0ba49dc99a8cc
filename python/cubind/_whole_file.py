"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import pathlib
import tempfile


def write(path: str | os.PathLike[str], text: str) -> None:
    """Replaces the file, or the one that a link leads to, by the text in UTF-8. A device or a pipe gets the
    text. Raises OSError; the file is then as it was."""
    named = pathlib.Path(path)
    if named.exists() and not named.is_file():
        named.write_text(text, encoding="utf-8")
        return
    target = pathlib.Path(os.path.realpath(named))
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
