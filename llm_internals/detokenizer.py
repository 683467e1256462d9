"""Stage 6, token to text: ids one at a time -> text as soon as it is certain.

Two things make a piece of text uncertain. A token may end inside a character (an emoji is four bytes, often over
several tokens): decoded by itself it would show as U+FFFD, so the bytes of an unfinished character wait. And the text
so far may end in the beginning of a stop string: shown now, it could not be taken back, so that tail waits.

The promise: nothing else waits, nothing shown is ever taken back, and at the end the joined pieces equal ``decode``
of all ids, cut where the stop string begins that completes first.

Leaves out: end-of-sequence ids, which `generate` doesn't pass on; here a special token decodes to its string as in
``Tokenizer.decode``.
Also grapheme clusters: the parts of a family emoji are characters of their own and appear one by one.
Chapter: ``06_detokenization``.
Source: The Unicode Standard, version 16.0, section 3.9, table 3-7 (well-formed UTF-8) and "U+FFFD Substitution of
Maximal Subparts"; ``vllm-project/vllm``, ``v1/engine/detokenizer.py``, ``check_stop_strings`` (the earliest
completion wins).
"""

from collections.abc import Sequence

from llm_internals.tokenizer import Tokenizer


class StreamingDetokenizer:
    """Text from a stream of ids.

    Parameters
    ----------
    tokenizer : Tokenizer
    stop : sequence of str
        Text ends before the one that completes first; of two that complete at the same character the one listed first
        decides.

    Attributes
    ----------
    unfinished : bytes
        What waits: the beginning of a character ...
    held : str
        ... and the whole characters before it that may be the beginning of a stop string.
    stopped : str or None
        The stop string that was met.

    Raises
    ------
    ValueError
        ``stop`` is one string instead of a sequence of them, or one of them is empty or holds a lone surrogate.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        _check(stop)
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self.unfinished = b""
        self.held = ""
        self.stopped: str | None = None

    def add(self, id: int) -> str:
        """Take one id and return the text that became certain by it, often a word, sometimes nothing.

        After a stop string was met it returns "" for every id.

        Raises
        ------
        ValueError
            ``id`` is not an id of the vocabulary.
        """
        if self.stopped is not None:
            return ""
        data = self.unfinished + self._tokenizer.token_bytes(id)
        whole = len(data) - unfinished_length(data)
        self.unfinished = data[whole:]
        return self._release(data[:whole].decode(errors="replace"))

    def finish(self) -> str:
        """Return what was held back, now that nothing follows: an unfinished character becomes U+FFFD."""
        if self.stopped is not None:
            return ""
        rest, self.unfinished = self.unfinished, b""
        released = self._release(rest.decode(errors="replace"))
        held, self.held = self.held, ""
        return released + held

    def _release(self, characters: str) -> str:
        """Append whole characters to the held text and return the part of it that is certain."""
        text = self.held + characters
        if met := first_met(text, self._stop):
            end, order = met
            self.stopped = self._stop[order]
            self.held = ""
            return text[: end - len(self.stopped)]
        certain = len(text) - self._uncertain(text)
        self.held = text[certain:]
        return text[:certain]

    def _uncertain(self, text: str) -> int:
        """Length of the longest tail of ``text`` from which a stop string may still grow."""
        longest = max(map(len, self._stop), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            rests = (stop[length:] for stop in self._stop if stop.startswith(text[-length:]))
            if any(self._may_become(rest) for rest in rests):
                return length
        return 0

    def _may_become(self, rest: str) -> bool:
        """Tell whether what follows can be ``rest``, given the bytes of an unfinished character that begin it.

        That character may still turn out broken and become U+FFFD.
        """
        return rest.encode().startswith(self.unfinished) or rest.startswith("\N{REPLACEMENT CHARACTER}")


def first_met(text: str, stop: Sequence[str]) -> tuple[int, int] | None:
    """Return where the first stop string to complete ends in a text, and its index in ``stop``; None if none is there.

    >>> first_met("The user is", ["user is", "is", "s"])
    (6, 2)
    """
    met = [(text.index(string) + len(string), order) for order, string in enumerate(stop) if string in text]
    return min(met, default=None)


_CONTINUES = (0x80, 0xBF)
_LONGER_CHARACTERS = (
    ((0xC2, 0xDF), _CONTINUES),
    ((0xE0, 0xE0), (0xA0, 0xBF), _CONTINUES),
    ((0xE1, 0xEC), _CONTINUES, _CONTINUES),
    ((0xED, 0xED), (0x80, 0x9F), _CONTINUES),
    ((0xEE, 0xEF), _CONTINUES, _CONTINUES),
    ((0xF0, 0xF0), (0x90, 0xBF), _CONTINUES, _CONTINUES),
    ((0xF1, 0xF3), _CONTINUES, _CONTINUES, _CONTINUES),
    ((0xF4, 0xF4), (0x80, 0x8F), _CONTINUES, _CONTINUES),
)
"""Characters of two to four bytes in UTF-8, as (lowest, highest) of each byte: The Unicode Standard, table 3-7."""


def unfinished_length(data: bytes) -> int:
    """Return how many bytes at the end of ``data`` may still become a character: 0 to 3.

    A tail that no further byte can make valid doesn't count, since it is broken already.
    (Python's incremental decoder waits for a third byte after ``ed a0``, the first half of a surrogate, for instance.)

    >>> [unfinished_length(bytes.fromhex(data)) for data in ("61", "f0", "f09f", "f09fa6", "f09fa699", "eda0")]
    [0, 1, 2, 3, 0, 0]
    """
    return next((length for length in (3, 2, 1) if len(data) >= length and _begins_character(data[-length:])), 0)


def _begins_character(tail: bytes) -> bool:
    """Tell whether these are the first bytes of a character, but not all of it."""
    return any(
        len(tail) < len(ranges) and all(low <= byte <= high for byte, (low, high) in zip(tail, ranges, strict=False))
        for ranges in _LONGER_CHARACTERS
    )


def _check(stop: Sequence[str]) -> None:
    """Raise ValueError for what can't be a list of stop strings."""
    if isinstance(stop, str):
        raise ValueError(f"stop must be a sequence of strings, got the string {stop!r}; write [{stop!r}]")
    for index, string in enumerate(stop):
        if not string:
            raise ValueError(f"stop[{index}] must not be empty: an empty string would stop everything at once")
        if any("\ud800" <= character <= "\udfff" for character in string):
            raise ValueError(f"stop[{index}] must be valid Unicode, got a lone surrogate in {string!r}")
