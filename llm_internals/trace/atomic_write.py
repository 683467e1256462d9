"""Stage 8: text -> a file that is there whole or not at all.

The text goes to a temporary file in the same folder, which then takes the name in one step: whoever reads at the wrong
moment, a full disk, a crash, none of them leaves half a file, and an older file stays until the new one is complete.

Leaves out locks: of two who write at once, the later one wins.

Chapter: ``00_one_response``.
Source: POSIX.1-2017, ``rename``; Python's ``os.replace``.
"""

import os
from contextlib import suppress
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8.

    What exists and isn't an ordinary file, such as ``/dev/stdout`` or a named pipe, is written to as it is.

    Raises
    ------
    OSError
        The folder is missing or may not be written to, the disk is full, the path is a folder; as the subclass that
        Python has for it, with the path in the message. Nothing is left behind.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            _replace(path.resolve(), text)  # of a link, what it points at
    except OSError as error:
        raise OSError(error.errno, f"can't write the file: {error.strerror}", str(path)) from error


def _replace(path: Path, text: str) -> None:
    """Write to a file that no one else has, then give it the name."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
