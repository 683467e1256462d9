"""The exercises of ``10_temperature_is_not_accuracy``: a peak, an error that the mean hides, a vote that sharpens."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from llm_internals.calibration import calibration_error, expected_logit

VoteAccuracy = Callable[[float, int], float]
Answer = tuple[int | float, bool]

PEAK_WITHIN = 0.02
"""Exercise 1: how near the temperature must be. So near the peak, the curve is flat to three decimals."""
MOST_ANSWERS = 10
"""Exercise 2: more aren't needed."""
HIDDEN_ERROR = 0.4
"""Exercise 2: the calibration error that has to be reached."""
SHARES = ((0.6, 1), (0.6, 3), (0.45, 3), (0.55, 25), (0.45, 25), (0.5, 101), (0.0, 5), (1.0, 5))
"""Exercise 3: a share of right samples and a number of voters."""
TOLERANCE = 1e-9
"""Exercise 3: float64 sums of a few dozen terms agree far better than this."""


def check_peak(answer: int | float | None, logits: Float[np.ndarray, " vocab_size"], id: int) -> str:
    """Exercise 1: whether `answer` is the temperature at which the token `id` is as likely as it ever gets.

    >>> check_peak(2.0, np.log([6.0, 5.0, *[1.0] * 9]), 1)
    'Not yet: at T = 2 its score is 1.03 above the expected score, so it still gains from a lower temperature.'
    """
    if answer is None:
        return "No answer yet: set answer to a temperature."
    if not 0 < answer < math.inf:
        return f"Not yet: {answer:g} is no temperature to divide by."
    if abs(answer - peak_temperature(logits, id)) <= PEAK_WITHIN:
        return "Right: there its score equals the expected score, and a change to either side costs probability."
    gap = float(logits[id] - expected_logit(logits[None], answer)[0])
    side, other = ("above", "lower") if gap > 0 else ("below", "higher")
    return (
        f"Not yet: at T = {answer:g} its score is {abs(gap):.2f} {side} the expected score, "
        f"so it still gains from a {other} temperature."
    )


def peak_temperature(logits: Float[np.ndarray, " vocab_size"], id: int) -> float:
    """Halve an interval of 1/T until the token's score equals the expected score, which rises as T falls."""
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = math.sqrt(low * high)
        gains = logits[id] > expected_logit(logits[None], 1 / middle)[0]
        low, high = (middle, high) if gains else (low, middle)
    return 1 / low


def check_hidden_error(answer: Sequence[Answer] | None) -> str:
    """Exercise 2: whether confidence and accuracy agree on average, and yet nowhere.

    >>> check_hidden_error([(0.75, True), (0.75, True), (0.75, True), (0.75, False)])
    'Not yet: the means agree, but the calibration error is 0.00.'
    """
    if answer is None:
        return "No answer yet: set answer to pairs of a confidence and True or False."
    if not 1 <= len(answer) <= MOST_ANSWERS:
        return f"Not yet: use 1 to {MOST_ANSWERS} answers, and not {len(answer)}."
    confidence = np.array([float(sure) for sure, _ in answer])
    right = np.array([bool(hit) for _, hit in answer])
    if not (confidence.min() > 0 and confidence.max() <= 1):
        return "Not yet: the likeliest token's probability is above 0 and at most 1."
    if abs(confidence.mean() - right.mean()) > 1e-6:
        return f"Not yet: the mean confidence is {confidence.mean():.3f}, and the accuracy {right.mean():.3f}."
    error = calibration_error(confidence, right)
    if error < HIDDEN_ERROR:
        return f"Not yet: the means agree, but the calibration error is {error:.2f}."
    return f"Right: the means agree to the last digit, and the calibration error is {error:.2f}."


def hidden_error() -> list[Answer]:
    """Sure where it is wrong, unsure where it is right: the two mistakes cancel in the mean and add up in the bins."""
    return [(0.9, False), (0.9, False), (0.1, True), (0.1, True)]


def check_vote(answer: VoteAccuracy | None) -> str:
    """Exercise 3: whether a function of p and n returns how often a majority of n samples is right.

    >>> check_vote(lambda p, n: p)
    'Not yet: for p = 0.6 and n = 3 it returns 0.6, not 0.648.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of p and n."
    for p, n in SHARES:
        expected, result = vote_accuracy(p, n), answer(p, n)
        if not math.isclose(result, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            return f"Not yet: for p = {p:g} and n = {n} it returns {result:.4g}, not {expected:.4g}."
    return "Right: it counts every way in which more than half of the samples are right."


def vote_accuracy(p: float, n: int) -> float:
    """Add the binomial probabilities of more than n/2 right samples."""
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n // 2 + 1, n + 1))
