"""Stage 6, token to text: ids one at a time -> text as soon as it is certain.

Two things make a piece of text uncertain.
A token may end inside a character (an emoji is four bytes, often over several tokens): decoded by itself it would show as
U+FFFD, so the bytes of an unfinished character wait.
And the text so far may end in the beginning of a stop string: shown now, it could not be taken back, so that tail waits.

The promise: at every moment the joined pieces are the longest text that is a prefix of the final output whatever ids
follow, and at the end they equal ``decode`` of all ids, cut where the first stop string begins.

Leaves out: end-of-sequence ids, which `generate` doesn't pass on; here a special token decodes to its string as in
``Tokenizer.decode``.
Also grapheme clusters: the parts of a family emoji are characters of their own and appear one by one.
Chapter: ``06_detokenization``.
Source: The Unicode Standard, version 16.0, section 3.9, table 3-7 (well-formed UTF-8) and "U+FFFD Substitution of Maximal
Subparts"; ``vllm-project/vllm``, ``v1/engine/detokenizer.py``, ``check_stop_strings`` (the earliest completion wins).
"""

import codecs
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
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
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
        return self._release(self._decoder.decode(self._tokenizer.token_bytes(id)))

    def finish(self) -> str:
        """Return what was held back, now that nothing follows: an unfinished character becomes U+FFFD."""
        if self.stopped is not None:
            return ""
        released = self._release(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            released, self._held = released + self._held, ""
        return released

    def _release(self, characters: str) -> str:
        """Append whole characters to the held text and return the part of it that is certain."""
        text = self._held + characters
        met = [(text.find(stop) + len(stop), order) for order, stop in enumerate(self._stop) if stop in text]
        if met:
            end, order = min(met)
            self.stopped = self._stop[order]
            self._held = ""
            return text[: end - len(self.stopped)]
        certain = len(text) - self._uncertain(text)
        self._held = text[certain:]
        return text[:certain]

    def _uncertain(self, text: str) -> int:
        """Length of the longest tail of ``text`` from which a stop string may still grow."""
        unfinished, _ = self._decoder.getstate()
        longest = max(map(len, self._stop), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            tail = text[-length:]
            if any(stop.startswith(tail) and _may_continue(stop[length:], unfinished) for stop in self._stop):
                return length
        return 0


def _may_continue(rest: str, unfinished: bytes) -> bool:
    """Tell whether text that begins with the bytes of an unfinished character can become ``rest``.

    ``rest`` is empty when the tail is the whole stop string, which `StreamingDetokenizer` has handled before.
    An unfinished character may turn out broken and so become U+FFFD.
    """
    return rest.encode().startswith(unfinished) or rest.startswith("\N{REPLACEMENT CHARACTER}")


def _check(stop: Sequence[str]) -> None:
    """Raise ValueError for what can't be a list of stop strings."""
    if isinstance(stop, str):
        raise ValueError(f"stop must be a sequence of strings, got the string {stop!r}; write [{stop!r}]")
    for index, string in enumerate(stop):
        if not string:
            raise ValueError(f"stop[{index}] must not be empty: an empty string would stop everything at once")
        if any("\ud800" <= character <= "\udfff" for character in string):
            raise ValueError(f"stop[{index}] must be valid Unicode, got a lone surrogate in {string!r}")
