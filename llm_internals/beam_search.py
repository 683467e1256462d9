"""Stage 5: beam search, which looks for a likely whole text instead of drawing one token after another.

The `num_beams` likeliest beginnings are kept. Each step extends every one of them by every token, and keeps the best of
all extensions; a beginning that ends with an end token is finished and waits in a pool for the others.
It finds texts that greedy decoding misses, and it isn't exact: a beginning that is dropped early may have had the best
continuation, so a beam may end less likely than greedy, and likelier text isn't better text.

Two parts: `search`, which asks for the log-probabilities that follow a beginning and knows no model, and `PromptTree`,
which answers with the model. All beams share one cache: of each token the keys and values are computed once and kept
once, and when the model turns from one beam to another, only the positions at which they differ are written back.

Leaves out batching the beams into one pass, sampling within the beams, and diverse beam search.

Chapter: ``08_interventions``.
Source: Graves (2012), arXiv:1211.3711, section 2.5 (the search); Wu et al. (2016), arXiv:1609.08144, section 7 (why
scores are normalised by length); transformers ``generation/utils.py``, ``_beam_search``.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from llm_internals.checkpoint import LanguageModel
from llm_internals.kv_cache import KVCache, common_prefix
from llm_internals.logits import lm_head
from llm_internals.model import decode_step, prefill
from llm_internals.scores import largest, log_softmax

Ids = tuple[int, ...]
Position = Float[Tensor, "layers kv_heads head_dim"]
NextLogprobs = Callable[[list[Ids]], Float64[np.ndarray, "beams vocab_size"]]
"""Beginnings (without the prompt) -> for each, the log-probability of every next token, in nats."""


@dataclass(frozen=True)
class Beam:
    """A finished text.

    Attributes
    ----------
    ids : tuple of int
        The generated tokens, without the prompt; the end token is the last of them, if there is one.
    sum_logprob : float
        The natural logarithm of the probability of ``ids`` after the prompt.
    score : float
        ``sum_logprob / len(ids) ** length_penalty``, by which beams are ranked.
    finished : bool
        Whether it ended with an end token; False if ``max_tokens`` cut it.
    """

    ids: Ids
    sum_logprob: float
    score: float
    finished: bool


class _Beginning(NamedTuple):
    ids: Ids
    sum_logprob: float


@torch.no_grad()  # weights that are in training would otherwise leave their history in the cache
def beam_search(
    lm: LanguageModel,
    prompt_ids: Sequence[int],
    *,
    num_beams: int,
    max_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
) -> list[Beam]:
    """Continue a prompt by the likeliest texts that a search of this width finds.

    Parameters
    ----------
    lm : LanguageModel
        Its ``eos_ids`` end a beam.
    prompt_ids : sequence of int
        At least one token; it counts neither for the length nor for the probability.
    num_beams, max_tokens, length_penalty, early_stopping
        As in `search`. Names and meanings are those of transformers.

    Returns
    -------
    list of Beam
        At most ``num_beams``, the best score first.

    Raises
    ------
    ValueError
        As `search`; if the prompt is empty, or it and ``max_tokens`` don't fit the context.
    """
    room = len(prompt_ids) + max_tokens - 1
    if not prompt_ids or room > lm.config.max_position_embeddings:
        raise ValueError(
            f"prompt_ids must hold at least one token and, with max_tokens={max_tokens}, fit the context of "
            f"{lm.config.max_position_embeddings} tokens, but has {len(prompt_ids)}"
        )
    return search(
        PromptTree(lm, prompt_ids, room).next_logprobs,
        num_beams=num_beams,
        max_tokens=max_tokens,
        eos_ids=lm.eos_ids,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )


def search(
    next_logprobs: NextLogprobs,
    *,
    num_beams: int,
    max_tokens: int,
    eos_ids: Collection[int] = (),
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
) -> list[Beam]:
    """Search for the texts of the best ``sum_logprob / length ** length_penalty``; the length counts the end token.

    Parameters
    ----------
    next_logprobs : callable
        Beginnings, as tuples of ids -> array [beams, vocab_size] of log-probabilities; the first call asks for ``()``.
    num_beams : int
        Width, at least 1, which is greedy decoding.
    max_tokens : int
        Length at which a text is cut, at least 1.
    eos_ids : collection of int
        Tokens that end a text.
    length_penalty : float
        Larger favours longer texts, since log-probabilities are negative; 0 ranks by the probability alone.
    early_stopping : True, False or "never"
        When to stop with ``num_beams`` finished texts in the pool: at once; when the best beginning would not make the
        pool if it ended now (which may miss a text that gets better as it gets longer); or when it can't make the pool
        at any length up to ``max_tokens``.

    Returns
    -------
    list of Beam
        At most ``num_beams``, the best score first.

    Raises
    ------
    ValueError
        If a setting is out of range.

    Examples
    --------
    >>> chain = np.log([[0.1, 0.6, 0.3], [0.4, 0.4, 0.2], [1.0, 1e-9, 1e-9]])  # row: the token before; 0 ends
    >>> def after(beginnings):
    ...     return np.stack([chain[ids[-1] if ids else 0] for ids in beginnings])
    >>> [search(after, num_beams=width, max_tokens=2, eos_ids={0})[0].ids for width in (1, 2)]
    [(1, 0), (2, 0)]
    """
    _check(num_beams, max_tokens, length_penalty, early_stopping)
    running, pool = [_Beginning((), 0.0)], []
    for length in range(1, max_tokens + 1):
        # Enough candidates for num_beams to go on even if every beam proposes all end tokens first.
        candidates = _extensions(running, next_logprobs, num_beams * max(2, 1 + len(eos_ids)))
        ends = [length == max_tokens or candidate.ids[-1] in eos_ids for candidate in candidates]
        running = [candidate for candidate, end in zip(candidates, ends, strict=True) if not end][:num_beams]
        for candidate, end in zip(candidates[:num_beams], ends, strict=False):
            if end:
                score = candidate.sum_logprob / length**length_penalty
                pool.append(Beam(*candidate, score, finished=candidate.ids[-1] in eos_ids))
        pool = sorted(pool, key=lambda beam: -beam.score)[:num_beams]
        if not running or (
            len(pool) == num_beams
            and _reachable(running[0], max_tokens, length_penalty, early_stopping) <= pool[-1].score
        ):
            break
    return pool


def _reachable(best: _Beginning, max_tokens: int, length_penalty: float, early_stopping: bool | str) -> float:
    """The score that the best beginning is trusted to reach; its log-probability can only fall, its length grow."""
    if early_stopping is True:
        return -math.inf
    length = max_tokens if early_stopping == "never" and length_penalty > 0 else len(best.ids)
    return best.sum_logprob / length**length_penalty


def _extensions(beginnings: list[_Beginning], next_logprobs: NextLogprobs, n: int) -> list[_Beginning]:
    """The n likeliest of all beginnings with one more token, best first; a token of probability 0 extends nothing."""
    logprobs = next_logprobs([beginning.ids for beginning in beginnings])
    totals = np.array([[beginning.sum_logprob] for beginning in beginnings]) + logprobs
    best = largest(totals.ravel(), n)
    vocab_size = totals.shape[1]
    return [
        _Beginning((*beginnings[index // vocab_size].ids, int(index % vocab_size)), float(totals.flat[index]))
        for index in best
        if totals.flat[index] > -np.inf
    ]


class PromptTree:
    """The beginnings that were asked for, as a tree; a node holds the keys and values of one position.

    Parameters
    ----------
    lm : LanguageModel
    prompt_ids : sequence of int
        What all beginnings follow; goes through the model once.
    capacity : int
        Positions of the prompt and of the longest beginning together.
    """

    def __init__(self, lm: LanguageModel, prompt_ids: Sequence[int], capacity: int) -> None:
        self.weights = lm.weights
        self.cache = KVCache.empty(lm.config, capacity)
        self.n_prompt = len(prompt_ids)
        self.nodes: dict[Ids, tuple[Position, Position]] = {}
        self.prompt_hidden = prefill(prompt_ids, self.weights, self.cache)

    def next_logprobs(self, beginnings: list[Ids]) -> Float64[np.ndarray, "beams vocab_size"]:
        """Log-probabilities after each beginning, which must extend one of the last call by one token, or be ``()``."""
        hidden = torch.cat([self._hidden(ids) for ids in beginnings])
        alive = {ids[:end] for ids in beginnings for end in range(1, len(ids) + 1)}
        self.nodes = {ids: node for ids, node in self.nodes.items() if ids in alive}
        return np.stack([log_softmax(logits) for logits in lm_head(hidden, self.weights)])

    def _hidden(self, ids: Ids) -> Float[Tensor, "1 hidden_size"]:
        """Hidden state of the last token: one decode step behind the others."""
        if not ids:
            return self.prompt_hidden
        self.move_to(ids[:-1])
        hidden = decode_step(ids[-1], self.weights, self.cache)
        last = self.cache.length - 1
        self.nodes[ids] = self.cache.keys[:, :, last].clone(), self.cache.values[:, :, last].clone()
        return hidden

    def move_to(self, ids: Ids) -> None:
        """Bring the cache to hold the prompt and ``ids``; only positions behind their common prefix are written."""
        shared = common_prefix(self.cache.ids[self.n_prompt :], ids)
        self.cache.truncate(self.n_prompt + shared)
        for end in range(shared + 1, len(ids) + 1):
            position = self.cache.length
            self.cache.keys[:, :, position], self.cache.values[:, :, position] = self.nodes[ids[:end]]
            self.cache.advance([ids[end - 1]])


def _check(num_beams: int, max_tokens: int, length_penalty: float, early_stopping: bool | str) -> None:
    for name, number in (("num_beams", num_beams), ("max_tokens", max_tokens)):
        if number < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {number}")
    if not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be a finite number, got {length_penalty}")
    if early_stopping not in (True, False, "never"):
        raise ValueError(f'early_stopping must be True, False or "never", got {early_stopping!r}')
