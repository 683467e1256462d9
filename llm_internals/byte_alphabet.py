"""Stage 1, text to ids: bytes <-> 256 printable characters.

Vocabulary files and merge lists are text, and bytes such as a space, a line feed or half an emoji have no place in a
text file. GPT-2 gave every byte a printable character instead: the 188 bytes that print in Latin-1 stand for
themselves, and the other 68 take the characters from U+0100 on, in order. That is where the ``Ġ`` (space, byte 32,
the 33rd of the 68) and the ``Ċ`` (line feed) of every listing come from.

Leaves out: what the bytes mean; a token need not be valid UTF-8.
Chapters: ``01_tokenization``, ``06_detokenization``.
Source: Radford et al. (2019), "Language Models are Unsupervised Multitask Learners", section 2.2;
``openai/gpt-2``, ``src/encoder.py``, ``bytes_to_unicode``.
"""

from itertools import chain

_PRINTS_IN_LATIN_1 = frozenset(chain(range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100)))


def _alphabet() -> list[str]:
    """Return the 256 characters, the one for byte ``b`` at index ``b``."""
    replacements = (chr(code) for code in range(0x100, 0x200))
    return [chr(byte) if byte in _PRINTS_IN_LATIN_1 else next(replacements) for byte in range(256)]


CHARACTER_OF_BYTE: tuple[str, ...] = tuple(_alphabet())
"""The printable character of each byte: ``CHARACTER_OF_BYTE[32]`` is ``"Ġ"``."""

BYTES_IN_ALPHABET_ORDER: bytes = bytes(sorted(range(256), key=CHARACTER_OF_BYTE.__getitem__))
"""The 256 bytes sorted by their character, ``!`` first: the order of the byte tokens of GPT-2 and SmolLM2."""

_TO_PRINTABLE = str.maketrans({chr(byte): character for byte, character in enumerate(CHARACTER_OF_BYTE)})
_TO_LATIN_1 = str.maketrans({character: chr(byte) for byte, character in enumerate(CHARACTER_OF_BYTE)})
_ALPHABET = frozenset(CHARACTER_OF_BYTE)


def spell(data: bytes) -> str:
    """Write bytes in the printable alphabet, one character a byte.

    >>> spell(" été\\n".encode())
    'ĠÃ©tÃ©Ċ'
    """
    return data.decode("latin-1").translate(_TO_PRINTABLE)


def unspell(spelling: str) -> bytes:
    """Read bytes back from the printable alphabet; the inverse of `spell`.

    Raises
    ------
    ValueError
        A character is not one of the 256 (a space, for one).

    >>> unspell("ĠÃ©tÃ©Ċ").decode()
    ' été\\n'
    """
    for position, character in enumerate(spelling):
        if character not in _ALPHABET:
            raise ValueError(
                f"spelling must use the 256 characters of the byte alphabet, got {character!r} at position {position} "
                f"of {spelling!r}"
            )
    return spelling.translate(_TO_LATIN_1).encode("latin-1")
