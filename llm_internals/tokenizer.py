"""Stage 1, text to ids: str -> list[int] and back, by byte-level byte-pair encoding.

A text is cut into pieces (`pretokenizer`), each piece is written as UTF-8 bytes, each byte becomes the id of its
one-byte token, and neighbouring ids are merged in the order that training found (`bpe`, `bpe_training`). Back, every
id stands for some bytes; joined, they are the text.

Two promises.
Nothing is dropped: text that the vocabulary can't express raises `UnencodableError`.
Byte-level encoding is called lossless, but it is only if all 256 bytes are tokens, and SmolLM2's vocabulary lacks 21.
And no text is a command: a special token such as ``<|im_end|>`` comes out of a string only with ``allow_special=True``.

Leaves out: Unicode normalisation and any clean-up of spaces, which these models don't do; SentencePiece
(`vocabularies`).
Chapter: ``01_tokenization``.
Source: Radford et al. (2019), "Language Models are Unsupervised Multitask Learners", section 2.2; ``openai/gpt-2``,
``src/encoder.py``, ``Encoder``; ``openai/tiktoken``, ``src/lib.rs``, ``CoreBPE``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType

import regex
import tiktoken

from llm_internals.bpe import Merges, Pair, merges_of_ranks
from llm_internals.bpe_training import learn_merges
from llm_internals.byte_alphabet import BYTES_IN_ALPHABET_ORDER, unspell
from llm_internals.pretokenizer import PRETOKENIZERS, Pretokenizer, pretokenizer

# Words repeat, so the ids of short pieces are kept: some ten MB at most.
_CACHED_PIECES = 32_768
_LONGEST_CACHED_PIECE = 32


class UnencodableError(ValueError):
    """A character of the text has no ids in this vocabulary.

    Attributes
    ----------
    character : str
        The first such character.
    bytes : bytes
        Its UTF-8; empty for a lone surrogate, which has none.
    position : int
        Its index in the text.
    """

    def __init__(self, character: str, position: int, reason: str) -> None:
        self.character = character
        self.bytes = character.encode(errors="ignore")
        self.position = position
        spelled_out = f"U+{ord(character):04X}, bytes {self.bytes.hex(' ') or 'none'}"
        super().__init__(f"can't encode {character!r} ({spelled_out}) at position {position}: {reason}")


class Tokenizer:
    """A byte-level byte-pair encoder.

    Parameters
    ----------
    tokens : sequence of bytes
        The bytes of each id.
    merges : iterable of ((left id, right id), merged id)
        Lowest rank first.
    special_tokens : mapping of str -> int
        Strings that become one id, and only when asked for.
    split : Pretokenizer
        How a text is cut into pieces.

    Raises
    ------
    ValueError
        A special token is empty, or its id has other bytes.

    Attributes
    ----------
    vocab_size : int
        Number of ids, special ones included: ids are 0 .. vocab_size - 1.
    special_tokens : read-only mapping of str -> int
    missing_bytes : bytes
        The bytes that are no token; text that contains one can't be encoded.
    merges : Merges
    split : Pretokenizer
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Iterable[tuple[Pair, int]],
        special_tokens: Mapping[str, int],
        split: Pretokenizer,
    ) -> None:
        self._tokens = tuple(tokens)
        _check_special(self._tokens, special_tokens)
        self.vocab_size = len(self._tokens)
        self.special_tokens = MappingProxyType(dict(special_tokens))
        self.merges = Merges(merges)
        self.split = split
        special_ids = set(special_tokens.values())
        self._ids = {token: id for id, token in enumerate(self._tokens) if id not in special_ids}
        self._id_of_byte = [self._ids.get(bytes([byte]), -1) for byte in range(256)]
        self.missing_bytes = bytes(byte for byte in range(256) if self._id_of_byte[byte] < 0)
        longest_first = sorted(special_tokens, key=len, reverse=True)
        self._special_pattern = regex.compile("|".join(map(regex.escape, longest_first)))
        self._cached_ids = lru_cache(_CACHED_PIECES)(self._merged_ids)

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size}, special_tokens={len(self.special_tokens)})"

    @classmethod
    def from_vocabulary(
        cls, tokens: Sequence[str], merges: Sequence[str], special_ids: Collection[int], pre: str
    ) -> "Tokenizer":
        """Make a tokenizer of the lists in a GGUF file or a ``tokenizer.json``.

        Parameters
        ----------
        tokens : sequence of str
            Index = id. Spelt in the printable byte alphabet, special tokens as they are.
        merges : sequence of str
            ``"left right"`` in the same spelling, lowest rank first.
        special_ids : collection of int
            Which ids are special tokens.
        pre : str
            The name of the split, one of `pretokenizer.PRETOKENIZERS`.

        Raises
        ------
        ValueError
            ``pre`` is empty or unknown, or the lists contradict themselves or each other; the entry is named.

        >>> tiny = Tokenizer.from_vocabulary(["a", "b", "ab", "<end>"], ["a b"], {3}, "gpt-2")
        >>> tiny.encode("abba"), tiny.decode([2, 3])
        ([2, 1, 0], 'ab<end>')
        """
        split = pretokenizer(pre)
        ids = _ids_of_spellings(tokens)
        for id in special_ids:
            if not 0 <= id < len(tokens):
                raise ValueError(f"special_ids must be in 0 .. {len(tokens) - 1}, got {id}")
        token_bytes = [
            token.encode() if id in special_ids else _unspelled(id, token) for id, token in enumerate(tokens)
        ]
        pairs = [_pair_of_line(index, line, ids) for index, line in enumerate(merges)]
        return cls(token_bytes, pairs, {tokens[id]: id for id in special_ids}, split)

    @classmethod
    def from_ranks(
        cls, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], split: Pretokenizer
    ) -> "Tokenizer":
        """Make a tokenizer of a list of tokens alone, as tiktoken's vocabularies are published.

        Parameters
        ----------
        ranks : mapping of bytes -> int
            Every token and its id, which is also its rank; ids 0 .. len(ranks) - 1, each once.
        special_tokens : mapping of str -> int
            Ids after those of ``ranks``, without a gap.
        split : Pretokenizer

        Raises
        ------
        ValueError
            Ids have gaps, or a token can't be made of two others of lower rank.
        """
        tokens = sorted(ranks, key=ranks.__getitem__) + [
            token.encode() for token in sorted(special_tokens, key=special_tokens.__getitem__)
        ]
        if sorted([*ranks.values(), *special_tokens.values()]) != list(range(len(tokens))):
            raise ValueError(f"ids of ranks and special_tokens must be 0 .. {len(tokens) - 1}, each once")
        return cls(tokens, merges_of_ranks(ranks), special_tokens, split)

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """Return the ids of a text.

        Parameters
        ----------
        text : str
        allow_special : bool
            If True, the string of a special token becomes that token wherever it stands (where two fit, the longer),
            and the text around it is encoded as it is, spaces included.
            Text from outside should never be encoded so: it could then end its own turn.

        Raises
        ------
        UnencodableError
            A character needs a byte that the vocabulary lacks, or is a lone surrogate.
        TypeError
            ``text`` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        ids, end = [], 0
        for match in self._special_pattern.finditer(text) if allow_special and self.special_tokens else ():
            ids += self._encode_ordinary(text[end : match.start()], offset=end)
            ids.append(self.special_tokens[match.group()])
            end = match.end()
        return ids + self._encode_ordinary(text[end:], offset=end)

    def check_encodable(self, text: str, offset: int = 0) -> None:
        """Raise `UnencodableError` for the first character that has no ids; return None if there is none.

        ``offset`` is where the text begins in a longer one, for the position in the error.
        """
        data = _utf8(text, offset)
        encodable = data.translate(None, delete=self.missing_bytes)
        if len(encodable) == len(data):
            return
        index = next(index for index, byte in enumerate(data) if byte in self.missing_bytes)
        position = len(data[:index].decode(errors="ignore"))  # the number of whole characters before that byte
        raise UnencodableError(text[position], offset + position, f"byte {data[index]:#04x} is not in the vocabulary")

    def merge_steps(self, piece: str) -> Iterator[list[bytes]]:
        """Yield the tokens of one piece from single bytes to the end, one merge at a time.

        The split is not applied: this is what happens inside a piece.

        >>> tiny = Tokenizer.from_vocabulary(["a", "b", "ab", "abab"], ["a b", "ab ab"], (), "gpt-2")
        >>> for tokens in tiny.merge_steps("abab"):
        ...     print(tokens)
        [b'a', b'b', b'a', b'b']
        [b'ab', b'a', b'b']
        [b'ab', b'ab']
        [b'abab']
        """
        self.check_encodable(piece)
        ids = [self._id_of_byte[byte] for byte in piece.encode()]
        for step in chain([ids], self.merges.steps(ids)):
            yield [self._tokens[id] for id in step]

    def token_bytes(self, id: int) -> bytes:
        """Return the bytes that an id stands for, which need not be valid UTF-8 by themselves.

        Raises ValueError for what is not an id.
        """
        return self.decode_bytes([id])

    def decode_bytes(self, ids: Iterable[object]) -> bytes:
        """Return the joined bytes of ids.

        Parameters
        ----------
        ids : iterable of int
            Anything else in it is refused, NumPy's and torch's numbers too.

        Raises
        ------
        ValueError
            One of ``ids`` is not an int in 0 .. vocab_size - 1; its position is named.
        """
        parts = []
        for position, id in enumerate(ids):
            if type(id) is not int or not 0 <= id < self.vocab_size:
                allowed = f"an int in 0 .. {self.vocab_size - 1}"
                raise ValueError(f"ids[{position}] must be {allowed}, got {id!r} of type {type(id).__name__}")
            parts.append(self._tokens[id])
        return b"".join(parts)

    def decode(self, ids: Iterable[object]) -> str:
        """Return the text of ids: their bytes joined and read as UTF-8, and nothing else done to it.

        Bytes that are no valid UTF-8 become U+FFFD, one for each maximal part that could have begun a character.
        Raises as `decode_bytes`.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def to_tiktoken(self) -> tiktoken.Encoding:
        """Return the same vocabulary as a ``tiktoken.Encoding``, which is compiled code and about twice as fast.

        ``encode_ordinary(text)`` gives what ``encode(text)`` gives here, and ``encode(text, allowed_special="all")``
        what ``encode(text, allow_special=True)`` gives. Two things differ: tiktoken panics
        (``pyo3_runtime.PanicException``, which ``except Exception`` doesn't catch) at a byte that the vocabulary
        lacks, and it encodes a lone surrogate as U+FFFD.

        tiktoken has no list of merges: it merges whatever pair of neighbours is a token, the lowest id first. That
        gives the same ids if the merges are those that follow from the tokens in the order of their ids
        (`merges_of_ranks`), as in SmolLM2; it is checked here.

        Raises
        ------
        ValueError
            The order of the ids gives other merges, so tiktoken would give other ids.
        """
        if list(merges_of_ranks(self._ids)) != list(zip(self.merges.ranks, self.merges.products, strict=True)):
            raise ValueError("merges must follow from the order of the ids to be written as ranks; these do not")
        return tiktoken.Encoding(
            "llm_internals",
            pat_str=self.split.pattern,
            mergeable_ranks=self._ids,
            special_tokens=dict(self.special_tokens),
        )

    def _encode_ordinary(self, text: str, offset: int) -> list[int]:
        self.check_encodable(text, offset)
        ids: list[int] = []
        for piece in self.split.split(text):
            ids += self._cached_ids(piece) if len(piece) <= _LONGEST_CACHED_PIECE else self._merged_ids(piece)
        return ids

    def _merged_ids(self, piece: str) -> tuple[int, ...]:
        data = piece.encode()
        if self.split.whole_pieces and data in self._ids:
            return (self._ids[data],)
        return tuple(self.merges.apply([self._id_of_byte[byte] for byte in data]))


def train_bpe(
    text: str,
    vocab_size: int,
    *,
    split: Pretokenizer = PRETOKENIZERS["smollm"],
    tie_rule: str = "lowest_ids",
    min_count: int = 1,
    special_tokens: Sequence[str] = (),
) -> Tokenizer:
    """Learn a vocabulary from a text.

    Ids 0 .. 255 are the 256 bytes in the order of the byte alphabet (``!`` is 0, as in GPT-2), so that every text can
    be encoded; then come the merged tokens in the order in which they are found, then the special tokens.

    Parameters
    ----------
    text : str
    vocab_size : int
        Number of ids, at least 256 + len(special_tokens). If the text has no pair left to merge, there are fewer.
    split : Pretokenizer
        Cuts the text for training and for encoding alike: merges across borders that encoding never crosses would be
        wasted.
    tie_rule, min_count
        As in `bpe_training.learn_merges`.
    special_tokens : sequence of str
        All different.

    Raises
    ------
    ValueError
        ``vocab_size`` is too small, a special token stands twice, or a tie rule or count that `learn_merges` refuses.
    UnencodableError
        The text contains a lone surrogate.

    >>> tokenizer = train_bpe("aaabdaaabac", 259)
    >>> [tokenizer.token_bytes(id) for id in tokenizer.encode("aaabdaaabac")]
    [b'aaab', b'd', b'aaab', b'a', b'c']
    """
    smallest = 256 + len(special_tokens)
    if vocab_size < smallest:
        parts = f"256 bytes and {len(special_tokens)} special tokens"
        raise ValueError(f"vocab_size must be at least {smallest} ({parts}), got {vocab_size}")
    _utf8(text)
    tokens = [bytes([byte]) for byte in BYTES_IN_ALPHABET_ORDER]
    merges = []
    for merge in islice(learn_merges(split.split(text), tie_rule, min_count), vocab_size - smallest):
        merges.append((merge.pair, merge.id))
        tokens.append(merge.token)
    special_ids = {token: len(tokens) + index for index, token in enumerate(special_tokens)}
    if len(special_ids) < len(special_tokens):
        raise ValueError(f"special_tokens must all be different, got {list(special_tokens)}")
    return Tokenizer([*tokens, *(token.encode() for token in special_tokens)], merges, special_ids, split)


def _utf8(text: str, offset: int = 0) -> bytes:
    """Return the UTF-8 of a text, or raise for the first lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        reason = "a lone surrogate is half of a UTF-16 pair and no character"
        raise UnencodableError(text[error.start], offset + error.start, reason) from None


def _check_special(tokens: Sequence[bytes], special_tokens: Mapping[str, int]) -> None:
    """Raise ValueError if a special token is empty or is not the token of its id."""
    for token, id in special_tokens.items():
        if not token or not 0 <= id < len(tokens) or tokens[id] != token.encode():
            raise ValueError(
                f"special_tokens must map non-empty strings to their ids in 0 .. {len(tokens) - 1}, got {token!r}: {id}"
            )


def _ids_of_spellings(tokens: Sequence[str]) -> dict[str, int]:
    """Return the id of each token, or raise ValueError for one that stands twice."""
    ids: dict[str, int] = {}
    for id, token in enumerate(tokens):
        if token in ids:
            raise ValueError(f"tokens must all be different, got {token!r} at {ids[token]} and at {id}")
        ids[token] = id
    return ids


def _unspelled(id: int, token: str) -> bytes:
    """Return the bytes of an ordinary token, naming its id if it is not spelt in the byte alphabet."""
    try:
        return unspell(token)
    except ValueError as error:
        raise ValueError(f"tokens[{id}]: {error}") from None


def _pair_of_line(index: int, line: str, ids: Mapping[str, int]) -> tuple[Pair, int]:
    """Return ((left id, right id), merged id) of a merge ``"left right"``."""
    left, _, right = line.partition(" ")
    for token in (left, right, left + right):
        if token not in ids:
            raise ValueError(f"merges[{index}] is {line!r}, but {token!r} is not in tokens")
    return (ids[left], ids[right]), ids[left + right]
