"""The weights file: a place in its bytes that can't move past the end.

Whoever writes a file chooses every length in it. The functions of `gguf` read through a `Cursor`, which compares each
claim with the bytes that are left before it reads or allocates anything, and says at which byte a claim was false.

Leaves out seeking: the header of a GGUF file is read once, from front to back.

Chapter: ``11_four_bits``.
Source: ggml ``src/gguf.cpp``, ``gguf_reader``; what happens without such checks: CVE-2024-21802, CVE-2025-53630.
"""

from io import BufferedIOBase
from pathlib import Path

import numpy as np
from jaxtyping import Shaped


class GGUFError(ValueError):
    """The file isn't a GGUF file that can be used; the message says why.

    Parameters
    ----------
    message : str
        What is wrong, what is allowed and what was found.
    path : Path
        The file.
    offset : int, optional
        The byte at which it goes wrong; None for something that is missing.
    """

    def __init__(self, message: str, path: Path, offset: int | None = None) -> None:
        place = "" if offset is None else f" (at byte {offset})"
        super().__init__(f"{path}: {message}{place}")
        self.path = path
        self.offset = offset


class Cursor:
    """A position in the file that can't move past its end.

    Parameters
    ----------
    file : binary file
        Open at its start.
    size : int
        Its length in bytes.
    path : Path
        Its name, for error messages.
    """

    def __init__(self, file: BufferedIOBase, size: int, path: Path) -> None:
        self.file = file
        self.size = size
        self.path = path
        self.position = 0

    def error(self, message: str, offset: int | None = None) -> GGUFError:
        """An error here, or at ``offset``."""
        return GGUFError(message, self.path, self.position if offset is None else offset)

    def claim(self, nbytes: int, what: str) -> None:
        """Refuse a claim on more bytes than are left."""
        left = self.size - self.position
        if nbytes > left:
            raise self.error(f"{what} needs {nbytes} bytes or more, but only {left} are left")

    def numbers(self, dtype: np.dtype, count: int, what: str) -> Shaped[np.ndarray, " count"]:
        """The next ``count`` numbers, without a copy of the bytes."""
        self.claim(count * dtype.itemsize, what)
        data = self.file.read(count * dtype.itemsize)
        if dtype.kind == "b" and data.strip(b"\0\1"):
            raise self.error(f"{what} must be 0 (false) or 1 (true)")
        self._advance(count * dtype.itemsize)
        return np.frombuffer(data, dtype=dtype)

    def number(self, dtype: str, what: str) -> int:
        """The next number."""
        return self.numbers(np.dtype(dtype), 1, what)[0].item()

    def strings(self, count: int, what: str) -> list[str]:
        """The next ``count`` strings: a length of 8 bytes, then UTF-8. Written as one loop, for tens of thousands."""
        self.claim(8 * count, what)
        texts, at, read = [], self.position, self.file.read
        try:
            for _ in range(count):
                length = int.from_bytes(read(8), "little")
                at += 8
                if length > self.size - at:
                    raise self.error(f"{what} of {length} bytes goes past the end of the file", at - 8)
                texts.append(read(length).decode("utf-8"))
                at += length
        except UnicodeDecodeError as error:
            raise self.error(f"{what} must be valid UTF-8: {error.reason}", at + error.start) from error
        self._advance(at - self.position)
        return texts

    def _advance(self, nbytes: int) -> None:
        self.position += nbytes
        if self.file.tell() != self.position:
            raise self.error("the file became shorter while it was read")
