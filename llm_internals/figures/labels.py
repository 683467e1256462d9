"""How a token is spelt where a reader must see every character of it."""

VISIBLE = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽"}
"""White space and the mark that stands for it."""


def visible(piece: str | bytes) -> str:
    r"""Spell a token's text so that spaces, line ends, control characters and broken bytes can be seen.

    Bytes that are UTF-8 are read as text. Bytes that aren't (a token may be a part of a character) are spelt in
    hexadecimal, as are characters with no shape of their own.

    Examples
    --------
    >>> visible(" Canberra"), visible("\n"), visible(b"\xf0\x9f"), visible("<|im_end|>")
    ('␣Canberra', '↵', '\\xf0\\x9f', '<|im_end|>')
    """
    if isinstance(piece, bytes):
        try:
            piece = piece.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in piece)
    return "".join(VISIBLE.get(character) or _shape_of(character) for character in piece)


def _shape_of(character: str) -> str:
    """The character itself, or its code point where printing it would show nothing."""
    return character if character.isprintable() else f"\\u{ord(character):04x}"
