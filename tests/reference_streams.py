"""Random streams of tokens and what they must come to: for the tests and `benchmarks/peers_tokenizer.py`."""

import random
from collections.abc import Sequence

from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.pretokenizer import PRETOKENIZERS
from llm_internals.tokenizer import Tokenizer

# Letters that stop strings are made of, whole characters of every length, parts of them, and bytes that are none.
# fmt: off
PIECES = [
    *map(str.encode, ["a", "b", "ab", "ba", "aab", " ", "\n", "é", "€", "\ufffd", "🦙", "👩‍👧", "🇫🇷"]),
    *map(bytes.fromhex, ["80", "bf", "c3", "a9", "e2", "82", "ac", "e282", "82ac", "f0", "9f", "f09f", "a699"]),
    *map(bytes.fromhex, ["f09fa6", "99", "c0", "c1", "ed", "a0", "eda0", "e0", "f4", "90", "ff"]),
]
STOPS = [
    "a", "b", "ab", "ba", "aba", "aab", "bab", "é", "a€", "€", "🦙", "b🦙", "\ufffd", "a\ufffdb", "\n", "👩‍👧", "🇫🇷"
]
# fmt: on


def random_stream(rng: random.Random) -> tuple[list[bytes], list[str]]:
    """Return up to 12 pieces and up to 3 stop strings."""
    pieces = [rng.choice(PIECES) for _ in range(rng.randint(0, 12))]
    return pieces, rng.sample(STOPS, rng.choice([0, 1, 1, 2, 3]))


def of_pieces(pieces: Sequence[bytes]) -> tuple[Tokenizer, list[int]]:
    """Return a tokenizer whose tokens are the pieces, and the ids of the pieces."""
    tokens = list(dict.fromkeys(pieces))
    return Tokenizer(tokens, [], {}, PRETOKENIZERS["gpt-2"]), [tokens.index(piece) for piece in pieces]


def cut(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """By definition: cut where the stop string begins that completes first, of equals the one listed first."""
    for end in range(1, len(text) + 1):
        for stop in stops:
            if text[:end].endswith(stop):
                return text[: end - len(stop)], stop
    return text, None


def stream(detokenizer: StreamingDetokenizer, ids: Sequence[int]) -> list[str]:
    """Return what is shown after each id and at the end."""
    chunks = [detokenizer.add(id) for id in ids]
    return [*chunks, detokenizer.finish()]


def common_prefix(texts: Sequence[str]) -> str:
    """Return the longest text that all texts begin with."""
    first, last = min(texts), max(texts)  # what these two have in common, all that sort between them have too
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]
