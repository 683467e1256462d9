"""Stage 5: a distribution and a random number -> one token id.

Two exact ways: the inverse of the cumulative distribution, which needs one uniform number and can be replayed from it,
and Gumbel-max, which needs one number a token, no sum and no normalisation.

The uniform numbers come from the caller.
``random.Random(seed).random()`` gives the same stream on every operating system, so a seed, or the number itself,
replays a choice.

Chapter: ``05_sampling``.
Source: inverse CDF: Devroye (1986), *Non-Uniform Random Variate Generation*, section III.2; Gumbel-max: Maddison,
Tarlow and Minka (2014), arXiv:1411.0030, section 2; vLLM ``v1/sample/ops/topk_topp_sampler.py``, ``random_sample``,
draws by the equivalent exponential race.
"""

import random
from typing import NamedTuple

import numpy as np

from llm_internals.scores import Scores, as_probs


class Draw(NamedTuple):
    """A token id, the uniform number that chose it and the bin ``[low, high)`` of [0, 1) that the number fell into."""

    id: int
    u: float
    low: float
    high: float

    @property
    def margin(self) -> float:
        """Distance from u to the nearest edge that another token shares, 1.0 if there is none.

        A stored sample is safe to compare on another CPU when this is larger than what rounding moves an edge by.

        >>> round(draw_bin([0.5, 0.5], 0.3).margin, 3), draw_bin([0.0, 1.0], 0.3).margin
        (0.2, 1.0)
        """
        edges = [edge for edge in (self.low, self.high) if 0.0 < edge < 1.0]
        return min((abs(self.u - edge) for edge in edges), default=1.0)


def draw_bin(probs: Scores, u: float) -> Draw:
    """Lay the probabilities end to end in id order and return the token whose bin holds u.

    The bin of token i is ``[c_(i-1), c_i)`` with ``c_i = sum_(j <= i) p_j``, divided by the total, which rounding moves
    off 1. A token of probability 0 has an empty bin, and is left out before the sum so rounding can't hit it either.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities; a common factor changes nothing.
    u : float
        A uniform number in [0, 1).

    Raises
    ------
    ValueError
        ``u`` is outside [0, 1); ``probs`` holds a negative, infinite or ``NaN`` entry, or only zeros.

    Examples
    --------
    >>> draw_bin([0.25, 0.0, 0.75], 0.25)
    Draw(id=2, u=0.25, low=0.25, high=1.0)
    """
    if not 0 <= u < 1:
        raise ValueError(f"u must be in [0, 1), got {u}")
    probs = as_probs(probs)
    ids = np.flatnonzero(probs > 0)
    edges = np.cumsum(probs[ids])
    edges /= edges[-1]
    hit = int(np.searchsorted(edges, u, side="right"))
    return Draw(int(ids[hit]), u, float(edges[hit - 1]) if hit else 0.0, float(edges[hit]))


def draw(probs: Scores, u: float) -> int:
    """Return the id of `draw_bin`: the first token whose cumulative probability exceeds u.

    Raises
    ------
    ValueError
        As `draw_bin`.

    Examples
    --------
    >>> draw([0.25, 0.0, 0.75], 0.2), draw([0.25, 0.0, 0.75], 0.25)
    (0, 2)
    """
    return draw_bin(probs, u).id


def gumbel_max(probs: Scores, rng: random.Random) -> int:
    """Draw by adding noise and taking the largest: ``argmax_i (log p_i + g_i)``, ``g_i = -log(-log u_i)``.

    Each token gets a uniform number of its own, and token i wins with probability p_i exactly.
    Logits divided by T serve as well as log-probabilities, since a constant added to all doesn't move the argmax.
    Nothing has to be summed over the vocabulary, which suits one that is spread over several devices.

    Parameters
    ----------
    probs : array [vocab_size]
        Probabilities; a common factor changes nothing.
    rng : random.Random
        Gives one number for each token of positive probability, in id order.

    Raises
    ------
    ValueError
        ``probs`` holds a negative, infinite or ``NaN`` entry, or only zeros.

    Examples
    --------
    >>> gumbel_max([0.0, 1.0, 0.0], random.Random(0))
    1
    """
    probs = as_probs(probs)
    ids = np.flatnonzero(probs > 0)
    uniform = np.array([rng.random() for _ in ids])
    with np.errstate(divide="ignore"):
        noise = -np.log(-np.log1p(-uniform))
    return int(ids[np.argmax(np.log(probs[ids]) + noise)])
