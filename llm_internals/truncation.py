"""Stage 5: probabilities -> which tokens may be drawn: top-k, top-p, min-p and typical.

Each function returns a mask, ``True`` for a token that is kept, and always keeps at least one token.
Which distribution a rule sees (before or after temperature, before or after another rule) is decided by ``sampling``;
the caller renormalises what is left.

Equal probabilities are told apart by id, the lowest first, so that a rule keeps exactly what it promises.
Left out: XTC, top-n-sigma, top-h, epsilon and eta cutoffs.

Chapter: ``05_sampling`` (top-k, top-p), ``08_interventions`` (min-p, typical).
Source: top-k: Fan, Lewis and Dauphin (2018), arXiv:1805.04833, section 5; top-p: Holtzman et al. (2019),
arXiv:1904.09751, section 3; min-p: Nguyen et al. (2024), arXiv:2407.01082, section 3; typical: Meister et al. (2022),
arXiv:2202.00666, section 4; transformers ``generation/logits_process.py``, ``TopKLogitsWarper``, ``TopPLogitsWarper``,
``MinPLogitsWarper``, ``TypicalLogitsWarper``.
"""

import numpy as np
from jaxtyping import Bool, Float64

from llm_internals.scores import Scores, as_probs, as_vector, largest

Mask = Bool[np.ndarray, " vocab_size"]

FIRST_BLOCK = 128
"""Tokens ranked before the sum is looked at; the usual top-p keeps fewer, so that one partition is enough."""


def top_k_mask(probs: Scores, k: int | None) -> Mask:
    """Keep the k likeliest tokens: the first k of the stable sort by ``(-p, id)``.

    Only the ranking counts, so logits may stand in for probabilities: temperature changes nothing here.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities, or any scores that rank the tokens in the same way.
    k : int or None
        How many to keep; 0 or ``None`` is off, and so is k beyond the vocabulary.

    Raises
    ------
    ValueError
        ``k`` is negative; ``probs`` is not a vector of numbers, or holds ``NaN``.

    Examples
    --------
    >>> top_k_mask([0.1, 0.3, 0.3, 0.3], 2)
    array([False,  True,  True, False])
    """
    if k is not None and k < 0:
        raise ValueError(f"top_k must be an integer >= 0 (0 or None is off), got {k}")
    scores = as_vector(probs, "probs")
    if np.isnan(scores.max()):
        raise ValueError("probs must not hold NaN, got NaN")
    return _only(largest(scores, k), scores.size) if k else np.ones(scores.size, dtype=bool)


def top_p_mask(probs: Scores, p: float) -> Mask:
    """Keep the smallest set of likeliest tokens whose probability reaches p (the nucleus).

    In the stable sort by ``(-p, id)``, keep up to and including the first token at which the running sum is ``>= p``.
    Sums are float64 as they come: one that equals p on paper may fall a rounding error short of it, and keep one more.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities that sum to 1.
    p : float
        In [0, 1]; 1 keeps everything exactly as it is, 0 keeps the likeliest token.

    Raises
    ------
    ValueError
        ``p`` is outside [0, 1]; ``probs`` holds a negative, infinite or ``NaN`` entry, or only zeros.

    Examples
    --------
    >>> top_p_mask([0.5, 0.3, 0.1, 0.1], 0.8)
    array([ True,  True, False, False])
    """
    probs = as_probs(probs)
    return _reaching(_fraction("top_p", p), probs, by=probs)


def min_p_mask(probs: Scores, p: float) -> Mask:
    """Keep tokens at least p times as likely as the likeliest: ``p_i >= p * max p``.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities; a common factor changes nothing.
    p : float
        In [0, 1]; 0 keeps everything, 1 keeps the likeliest token and its equals.

    Raises
    ------
    ValueError
        ``p`` is outside [0, 1]; ``probs`` holds a negative, infinite or ``NaN`` entry, or only zeros.

    Examples
    --------
    >>> min_p_mask([0.6, 0.3, 0.1], 0.5)
    array([ True,  True, False])
    """
    probs = as_probs(probs)
    return probs >= _fraction("min_p", p) * probs.max()


def typical_mask(probs: Scores, p: float) -> Mask:
    """Keep the tokens whose surprisal is nearest to the entropy, until their probability reaches p.

    With ``H = -sum_j p_j log p_j``, tokens are sorted by ``(|-log p_i - H|, id)`` and kept up to and including the
    first at which the running sum of probabilities is ``>= p``.
    The likeliest token may be removed: it can be too unsurprising.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities that sum to 1.
    p : float
        In [0, 1]; 1 keeps everything exactly as it is, 0 keeps the one most typical token.

    Raises
    ------
    ValueError
        ``p`` is outside [0, 1]; ``probs`` holds a negative, infinite or ``NaN`` entry, or only zeros.

    Examples
    --------
    >>> typical_mask([0.4, 0.2, 0.2, 0.2], 0.5)
    array([False,  True,  True,  True])
    """
    probs = as_probs(probs)
    with np.errstate(divide="ignore"):
        surprisal = -np.log(probs)
    possible = probs > 0
    entropy = np.sum(probs[possible] * surprisal[possible])
    return _reaching(_fraction("typical_p", p), probs, by=-np.abs(surprisal - entropy))


def _reaching(mass: float, probs: Float64[np.ndarray, " n"], by: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Keep the shortest prefix of the tokens ranked by ``by`` whose probabilities sum to ``mass`` or more.

    Ranking 49,152 tokens to keep a few would cost a full sort, so ever larger blocks of the ranking are tried.
    """
    if mass == 1:
        return np.ones(probs.size, dtype=bool)
    block = FIRST_BLOCK
    while True:
        ranked = largest(by, block)
        reached = np.cumsum(probs[ranked])
        if reached[-1] >= mass or block >= probs.size:
            return _only(ranked[: np.searchsorted(reached, mass) + 1], probs.size)
        block *= 8


def _only(ids: np.ndarray, vocab_size: int) -> Mask:
    mask = np.zeros(vocab_size, dtype=bool)
    mask[ids] = True
    return mask


def _fraction(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return value
