"""The exercises of ``05_sampling``: a temperature for given odds, a draw from the top, two orders that disagree."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from llm_internals.sampling import softmax, top_k_mask, top_p_mask

GAP, ODDS = 2.0, 10.0
"""Exercise 1: the difference of two logits, and how many times likelier the larger one shall be."""

Draw = Callable[[np.ndarray, float], int]
Counterexample = tuple[Sequence[float], int, float]

CASES = ((0.1, 0.6, 0.3), (0.0, 0.25, 0.0, 0.75), (0.05, 0.15, 0.8, 0.0))
"""Exercise 2: distributions whose likeliest token is not the first, some with a token that can't be drawn."""
POINTS = 1000
"""Numbers u that stand for all of [0, 1)."""


def check_temperature(answer: int | float | None) -> str:
    """Exercise 1: whether `answer` makes a token `ODDS` times likelier than one whose logit is `GAP` lower.

    >>> check_temperature(1.0)
    'Not yet: at T = 1 the first token is 7.39 times likelier than the second, not 10 times.'
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if not answer > 0:
        return "Not yet: a temperature that leaves odds at all is greater than 0."
    odds = math.exp(min(GAP / answer, 700.0))
    if math.isclose(odds, ODDS, rel_tol=5e-3):
        return "Right: the odds come out as asked."
    return (
        f"Not yet: at T = {answer:g} the first token is {odds:.3g} times likelier than the second, not {ODDS:g} times."
    )


def temperature_for_odds() -> float:
    """At temperature T the odds are ``exp(gap / T)``; solved for T."""
    return GAP / math.log(ODDS)


def check_draw_from_the_top(answer: Draw | None) -> str:
    """Exercise 2: whether a function of (probs, u) lays the bins out from the likeliest token to the least likely one.

    >>> check_draw_from_the_top(lambda probs, u: int(probs.argmax()))
    'Not yet: for probs [0.1, 0.6, 0.3], a share of 1.00 of all u draws token 1, whose probability is 0.6.'
    """
    if answer is None:
        return "No answer yet: set answer to a function that takes probs and u and returns an id."
    for case in CASES:
        drawn = [answer(np.array(case), (point + 0.5) / POINTS) for point in range(POINTS)]
        if complaint := _wrong_shares(case, drawn) or _wrong_place(case, drawn):
            return f"Not yet: for probs {list(case)}, {complaint}"
    return "Right: every token gets its share of u, the likeliest the first."


def _wrong_shares(probs: Sequence[float], drawn: Sequence[int]) -> str | None:
    """What is wrong with how often each token is drawn."""
    if strange := [id for id in drawn if id not in range(len(probs))]:
        return f"some u draws {strange[0]!r}, which is no id."
    excess = [drawn.count(id) / POINTS - p for id, p in enumerate(probs)]
    most = int(np.argmax(excess))
    if excess[most] > 2 / POINTS:
        share = drawn.count(most) / POINTS
        return f"a share of {share:.2f} of all u draws token {most}, whose probability is {probs[most]:g}."
    return None


def _wrong_place(probs: Sequence[float], drawn: Sequence[int]) -> str | None:
    """What is wrong with where the bins lie, if their lengths are right."""
    seen = list(dict.fromkeys(drawn))
    if seen != sorted(seen, key=lambda id: -probs[id]):
        return f"the bins are as long as they should be, but come in the order {seen} of ids."
    return None


def draw_from_the_top(probs: np.ndarray, u: float) -> int:
    """Walk down from the likeliest token, and take each one's probability off u until u is used up.

    The bins are as long as ever and only lie elsewhere, so that the distribution is the same.
    """
    ranked = np.argsort(-probs, kind="stable")
    for id in ranked:
        if u < probs[id]:
            return int(id)
        u -= probs[id]
    return int(ranked[0])  # rounding can leave a little of u over: give it to a token that can be drawn


def check_counterexample(answer: Counterexample | None) -> str:
    """Exercise 3: whether top-k, then top-p keeps other tokens than top-p, then top-k, for (probs, k, p).

    >>> check_counterexample(([0.5, 0.25, 0.25], 1, 0.5))
    'Not yet: both orders keep the tokens [0].'
    """
    if answer is None:
        return "No answer yet: set answer to probs, k and p."
    probs, k, p = answer
    if not math.isclose(sum(probs), 1.0, abs_tol=1e-9) or min(probs) <= 0:
        return "Not yet: probs must be positive and sum to 1."
    one, other = _k_then_p(np.array(probs), k, p), _p_then_k(np.array(probs), k, p)
    if one == other:
        return f"Not yet: both orders keep the tokens {one}."
    return f"Right: top-k, then top-p keeps {one}, and top-p, then top-k keeps {other}."


def _k_then_p(probs: np.ndarray, k: int, p: float) -> list[int]:
    """The ids that are left when top-p sees the renormalised survivors of top-k."""
    first = np.flatnonzero(top_k_mask(probs, k))
    return first[top_p_mask(softmax(np.log(probs[first])), p)].tolist()


def _p_then_k(probs: np.ndarray, k: int, p: float) -> list[int]:
    """The ids that are left when top-k comes second."""
    first = np.flatnonzero(top_p_mask(probs, p))
    return first[top_k_mask(probs[first], k)].tolist()


def counterexample() -> Counterexample:
    """Top-k 3 leaves .4, .3, .2 of .9: renormalised, the first two reach .75. Without it, they stop at .7."""
    return [0.4, 0.3, 0.2, 0.1], 3, 0.75
