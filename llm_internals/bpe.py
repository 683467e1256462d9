"""Stage 1, text to ids: the ids of one piece's bytes -> fewer ids, by merging pairs.

The rule: among all neighbouring pairs that the vocabulary can merge, merge the one of lowest rank, the leftmost of
equals; repeat until none is left. Rank is the order in which training made the merges, so encoding replays training.

Leaves out: where the merges come from (`bpe_training`) and where a text is cut into pieces (`pretokenizer`).
Chapter: ``01_tokenization``.
Source: Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword Units", section 3.2
and algorithm 1; ``huggingface/tokenizers``, ``models/bpe/word.rs``, ``Word::merge_all`` (the same queue of pairs).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[int, int]

_GONE = -1
"""Stands where the right half of a merged pair was; no id is negative."""


class Merges:
    """The merges of a vocabulary, in order of rank.

    Parameters
    ----------
    merges : iterable of ((left id, right id), merged id)
        Lowest rank first. A pair given twice keeps its first rank.

    Attributes
    ----------
    ranks : dict of pair -> int
        0 is merged first.
    products : list of int
        ``products[rank]`` is the id that the pair becomes.
    """

    def __init__(self, merges: Iterable[tuple[Pair, int]]) -> None:
        self.ranks: dict[Pair, int] = {}
        self.products: list[int] = []
        for pair, product in merges:
            self.add(pair, product)

    def add(self, pair: Pair, product: int) -> None:
        """Append the merge of next rank; a pair that already has a rank keeps it."""
        if pair not in self.ranks:
            self.ranks[pair] = len(self.products)
            self.products.append(product)

    def apply(self, ids: Sequence[int]) -> list[int]:
        """Merge ``ids`` until no neighbours can be merged.

        >>> Merges([((1, 2), 3), ((0, 1), 4)]).apply([0, 1, 2])
        [0, 3]
        """
        symbols = list(ids)
        for _ in self._merge_in_place(symbols):
            pass
        return _living(symbols)

    def steps(self, ids: Sequence[int]) -> Iterator[list[int]]:
        """Yield the ids after each merge, the last being what `apply` returns; nothing if no pair can be merged.

        >>> list(Merges([((0, 0), 1), ((1, 1), 2)]).steps([0, 0, 0, 0]))
        [[1, 0, 0], [1, 1], [2]]
        """
        symbols = list(ids)
        for _ in self._merge_in_place(symbols):
            yield _living(symbols)

    def _merge_in_place(self, symbols: list[int]) -> Iterator[int]:
        """Merge in place, yielding the position of each merge; the right half of a pair becomes `_GONE`.

        A queue holds every mergeable pair as ``rank * n + position``, so that its smallest entry is the lowest rank
        and of equals the leftmost; a linked list over the positions finds the neighbours of what was merged. Each of
        the at most n - 1 merges puts at most two new pairs into the queue: O(n log n) time for every text, where
        looking for the lowest pair anew after each merge takes O(n * n).
        """
        n, ranks = len(symbols), self.ranks
        before, after = list(range(-1, n - 1)), list(range(1, n + 1))
        queue = [ranks[pair] * n + left for left, pair in enumerate(pairwise(symbols)) if pair in ranks]
        heapify(queue)
        while queue:
            rank, left = divmod(heappop(queue), n)
            right = after[left]
            if right == n or ranks.get((symbols[left], symbols[right])) != rank:
                continue  # one of the two was merged with something else meanwhile
            symbols[left], symbols[right] = self.products[rank], _GONE
            after[left] = after[right]
            if after[left] < n:
                before[after[left]] = left
            for first, second in ((before[left], left), (left, after[left])):
                if first >= 0 and second < n and (pair := (symbols[first], symbols[second])) in ranks:
                    heappush(queue, ranks[pair] * n + first)
            yield left


def _living(symbols: list[int]) -> list[int]:
    """Drop the right halves of merged pairs."""
    return [symbol for symbol in symbols if symbol != _GONE]


def merges_of_ranks(ranks: Mapping[bytes, int]) -> Iterator[tuple[Pair, int]]:
    """Yield the merges of a vocabulary that is published as tokens and ranks only, as tiktoken's are.

    Each token was made by one merge; the merges of lower rank, applied to its bytes, leave the two parts of it.
    (tiktoken merges any two neighbours that together are a token. That comes to the same: when rank r is due, a
    stretch of text whose ends no merge has crossed looks as it does by itself.)

    Parameters
    ----------
    ranks : mapping of bytes -> int
        The rank of a token is its id.

    Raises
    ------
    ValueError
        A token is not made of two tokens of lower rank.

    >>> list(merges_of_ranks({b"a": 0, b"b": 1, b"ab": 2, b"aab": 3}))
    [((0, 1), 2), ((0, 2), 3)]
    """
    id_of_byte = {token[0]: rank for token, rank in ranks.items() if len(token) == 1}
    known = Merges(())
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) == 1:
            continue
        parts = known.apply([id_of_byte[byte] for byte in token]) if id_of_byte.keys() >= set(token) else []
        if len(parts) != 2:
            raise ValueError(f"token {token!r} of rank {ranks[token]} is not made of two of lower rank, but of {parts}")
        pair = (parts[0], parts[1])
        known.add(pair, ranks[token])
        yield pair, ranks[token]
