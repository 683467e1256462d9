"""Stage 1, text to ids: pieces of text -> the merges of a vocabulary, most frequent pair first.

Training repeats one step: count every pair of neighbouring ids inside the pieces, give the most frequent pair an id
of its own, and put that id wherever the pair stands. The order in which the pairs are found is the rank that encoding
goes by (`bpe`).

Counting all pairs anew for each merge is the definition; it is also almost all wasted work, since one merge changes few
counts.
Here a distinct piece is kept once with its number of occurrences, and a merge recounts only the pieces that contain its
pair.

Leaves out: training in parallel, limits on the length of a token, and speed where a piece is very long (a merge goes
through the whole of each piece that it changes).
Chapter: ``01_tokenization``.
Source: Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword Units", section 3.2
(the counts kept up to date are in the authors' ``subword-nmt``, ``learn_bpe.py``, ``update_pair_statistics``);
``huggingface/tokenizers``, ``models/bpe/trainer.rs``; ``karpathy/minbpe``, ``minbpe/base.py``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from llm_internals.bpe import Pair
from llm_internals.byte_alphabet import BYTES_IN_ALPHABET_ORDER

_ID_OF_BYTE = {byte: id for id, byte in enumerate(BYTES_IN_ALPHABET_ORDER)}


class Merge(NamedTuple):
    """One step of training.

    Attributes
    ----------
    pair : (int, int)
        The most frequent pair of ids, 0 .. 255 being the bytes in alphabet order.
    id : int
        What it becomes: 256 for the first merge, 257 for the second and so on.
    token : bytes
        The bytes of ``id``. No two merges make the same: a stretch of text whose ends no merge has crossed is cut the
        same way wherever it stands.
    count : int
        How often the pair stood in the text at this moment. Overlapping ones count: in ``aaa`` the pair ``aa`` twice,
        though only one of them can be merged.
    """

    pair: Pair
    id: int
    token: bytes
    count: int


def learn_merges(pieces: Iterable[str], tie_rule: str = "lowest_ids", min_count: int = 1) -> Iterator[Merge]:
    """Yield the merges of a text, until no pair is left or the consumer stops asking.

    Parameters
    ----------
    pieces : iterable of str
        The text as its pretokenizer cuts it; nothing is merged across their borders.
    tie_rule : "lowest_ids" or "first_seen"
        Which of several most frequent pairs is merged.
        ``"lowest_ids"``: the smallest (left id, right id), as in Hugging Face's trainer; the order of the text plays no
        part.
        ``"first_seen"``: the one that stands first in the text as merged so far, as in minbpe and in tiktoken's
        educational encoder; the same sentences in another order can give another vocabulary.
    min_count : int
        Pairs that stand less often are not merged.

    Raises
    ------
    ValueError
        An unknown tie rule, or ``min_count`` below 1.

    >>> [(merge.token, merge.count) for merge in learn_merges(["low", " low", " lower", " newer"], min_count=2)]
    [(b'lo', 3), (b'low', 3), (b'er', 2), (b' low', 2)]
    """
    if tie_rule not in _TIE_RULES:
        raise ValueError(f"tie_rule must be one of {', '.join(map(repr, _TIE_RULES))}, got {tie_rule!r}")
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}")
    return _learn(_Corpus(pieces), _TIE_RULES[tie_rule], min_count)


def _learn(corpus: "_Corpus", tie_rule: "_TieRule", min_count: int) -> Iterator[Merge]:
    """Yield merges; apart from `learn_merges`, so that wrong arguments raise at the call and not at the first merge."""
    tokens = [bytes([byte]) for byte in BYTES_IN_ALPHABET_ORDER]
    while (best := corpus.most_frequent_pair(tie_rule)) and best[1] >= min_count:
        pair, count = best
        merge = Merge(pair, len(tokens), tokens[pair[0]] + tokens[pair[1]], count)
        tokens.append(merge.token)
        corpus.merge(merge.pair, merge.id)
        yield merge


class _Corpus:
    """The distinct pieces of a text as lists of ids, and the count of every pair in them.

    Attributes
    ----------
    words : list of list of int
        In the order in which the text first has them.
    occurrences : list of int
        How often each word stands in the text.
    counts : Counter of pair -> int
    pairs_with : dict of count -> set of pairs
        The same the other way round, without empty sets, so that the highest count is the highest key.
    words_with : dict of pair -> set of int
        The indices of the words that contain the pair.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        pieces_counted = Counter(pieces)
        self.words = [[_ID_OF_BYTE[byte] for byte in piece.encode()] for piece in pieces_counted]
        self.occurrences = list(pieces_counted.values())
        self.counts: Counter[Pair] = Counter()
        self.pairs_with: defaultdict[int, set[Pair]] = defaultdict(set)
        self.words_with: defaultdict[Pair, set[int]] = defaultdict(set)
        self._replace((index, [], word) for index, word in enumerate(self.words))

    def most_frequent_pair(self, tie_rule: "_TieRule") -> tuple[Pair, int] | None:
        """Return the pair of highest count and its count, or None if no word has two symbols."""
        if not self.pairs_with:
            return None
        count = max(self.pairs_with)
        return min(self.pairs_with[count], key=lambda pair: tie_rule(self, pair)), count

    def first_position(self, pair: Pair) -> tuple[int, int]:
        """Return where the pair stands first: (index of the word, index in the word)."""
        index = min(self.words_with[pair])
        return index, list(pairwise(self.words[index])).index(pair)

    def merge(self, pair: Pair, id: int) -> None:
        """Put ``id`` wherever ``pair`` stands, from left to right."""
        changes = [(index, word := self.words[index], _merged(word, pair, id)) for index in self.words_with[pair]]
        self._replace(changes)

    def _replace(self, changes: Iterable[tuple[int, list[int], list[int]]]) -> None:
        """Put new words, given as (index, old, new), in the place of old ones and bring all counts up to date."""
        change_of: Counter[Pair] = Counter()
        for index, old, new in changes:
            self.words[index] = new
            for pair in pairwise(old):
                change_of[pair] -= self.occurrences[index]
                self.words_with[pair].discard(index)
            for pair in pairwise(new):
                change_of[pair] += self.occurrences[index]
                self.words_with[pair].add(index)
        for pair, change in change_of.items():
            if change:
                self._move(pair, self.counts[pair], self.counts[pair] + change)

    def _move(self, pair: Pair, old: int, new: int) -> None:
        """Change the count of a pair; what has count 0 is forgotten."""
        if old:
            self.pairs_with[old].remove(pair)
            if not self.pairs_with[old]:
                del self.pairs_with[old]
        if new:
            self.counts[pair] = new
            self.pairs_with[new].add(pair)
        else:
            del self.counts[pair], self.words_with[pair]


def _merged(word: list[int], pair: Pair, id: int) -> list[int]:
    """Return the word with ``id`` in place of each ``pair``, the leftmost first.

    >>> _merged([7, 7, 7, 8], (7, 7), 9)
    [9, 7, 8]
    """
    merged = []
    for symbol in word:
        # The left symbol of a pair may itself just have been merged: it is then id, and differs from pair[0].
        if merged and (merged[-1], symbol) == pair:
            merged[-1] = id
        else:
            merged.append(symbol)
    return merged


_TieRule = Callable[[_Corpus, Pair], tuple[int, int]]
_TIE_RULES: dict[str, _TieRule] = {
    "lowest_ids": lambda corpus, pair: pair,
    "first_seen": _Corpus.first_position,
}
