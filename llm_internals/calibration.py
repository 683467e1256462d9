"""Stage 4: the logits of many questions, and the right token of each -> how often a sample is right, how sure it is.

A question is a row of logits, and its right answer is one token. At temperature T that token is drawn with probability
p_T(x), so that the mean of p_T(x) over the questions is the accuracy that sampling has on average, with no sampling.
Confidence is the probability of the likeliest token; it is calibrated if it agrees with how often that token is right.

Leaves out answers of several tokens (`likelihood` has their probability, and each token is a row here), and answers
that may be worded in several ways.

Chapter: ``10_temperature_is_not_accuracy``.
Source: Guo et al. (2017), "On calibration of modern neural networks", sections 2 (reliability, calibration error) and
4.2 (temperature scaling); Wilson (1927), "Probable inference, the law of succession, and statistical inference".
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

Logits = Float[np.ndarray, "questions vocab_size"]
Ids = Int[np.ndarray, " ids"]
PerQuestion = Float64[np.ndarray, " questions"]
"""A number a question."""

NORMAL_95 = 1.959964
"""Standard deviations to either side that hold 95 % of a normal distribution."""
PRECISION = 1e-6
"""Relative width at which the search for a temperature ends."""


class Bin(NamedTuple):
    """The answers with a confidence in [low, high): how many, their mean confidence, and the share that is right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def probability_at(logits: Logits, ids: Ids, t: int | float) -> PerQuestion:
    """p_T(x) = exp(z_x / T) / sum_j exp(z_j / T) of one token x for each question.

    At T = 0 it is 1 for the likeliest token (the lowest id among equals) and 0 for others, as greedy decoding has it.

    Parameters
    ----------
    logits : array [questions, vocab_size]
    ids : array of int [questions]
        The token of each question.
    t : number
        The temperature, finite and at least 0.

    Raises
    ------
    ValueError
        If ``t`` is negative or not finite, or there isn't one id within the vocabulary for each question.

    Examples
    --------
    >>> z = np.log([[6.0, 5.0, 9.0]])
    >>> probability_at(z, np.array([1]), 1.0), probability_at(z, np.array([1]), 0.0)
    (array([0.25]), array([0.]))
    """
    _check_ids(logits, ids)
    _check_temperature(t)
    if t == 0:
        return (logits.argmax(axis=1) == ids).astype(np.float64)
    p = np.empty(len(ids))
    for n, (row, id) in enumerate(zip(logits, ids, strict=True)):
        p[n] = 1 / _weights(row, t, float(row[id])).sum()
    return p


def expected_logit(logits: Logits, t: int | float) -> PerQuestion:
    """E_T[z] = sum_j p_T(j) z_j for each question: the level that a token's score is measured against.

    Since d ln p_T(x) / d(1/T) = z_x - E_T[z], a token gains from a lower temperature while its score is above this
    level, and loses once it is below. The level itself rises as T falls, from the mean of all scores to the largest.

    Raises
    ------
    ValueError
        If ``t`` is negative or not finite.

    Examples
    --------
    >>> z = np.array([[2.0, 0.0]])
    >>> expected_logit(z, 0.0), expected_logit(z, 1.0).round(3), expected_logit(z, 1e9).round(3)
    (array([2.]), array([1.762]), array([1.]))
    """
    _check_temperature(t)
    if t == 0:
        return logits.max(axis=1).astype(np.float64)
    level = np.empty(len(logits))
    for n, row in enumerate(logits):
        weights = _weights(row, t, float(row.max()))
        level[n] = weights @ row / weights.sum()
    return level


def best_temperature(logits: Logits, ids: Ids) -> float:
    """The temperature at which the right tokens are likeliest together: the largest sum of ln p_T(x).

    This is temperature scaling: there the right tokens' scores are, on average, equal to `expected_logit`. The sum has
    one peak, since its derivative by 1/T falls wherever 1/T grows, so halving an interval finds it.

    Returns
    -------
    float
        0.0 if every right token is the likeliest, so that sharper is always better, and infinity if they score no
        better than the average token, so that flatter is.

    Raises
    ------
    ValueError
        If there isn't one id within the vocabulary for each question.

    Examples
    --------
    >>> sure = np.log([[0.9, 0.1]]).repeat(4, axis=0)
    >>> t = best_temperature(sure, np.array([0, 0, 0, 1]))  # right three times in four, and .9 sure
    >>> round(t, 3), round(float(probability_at(sure, np.zeros(4, dtype=int), t)[0]), 3)
    (2.0, 0.75)
    """
    _check_ids(logits, ids)
    right = logits[np.arange(len(ids)), ids].astype(np.float64)
    if (right == logits.max(axis=1)).all():
        return 0.0
    if (right - logits.mean(axis=1, dtype=np.float64)).mean() <= 0:
        return math.inf
    low, high = 0.0, 1.0  # bounds of 1 / T
    while (right - expected_logit(logits, 1 / high)).mean() > 0:
        low, high = high, 2 * high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        above = (right - expected_logit(logits, 1 / middle)).mean() > 0
        low, high = (middle, high) if above else (low, middle)
    return 2 / (low + high)


def reliability(confidence: PerQuestion, right: Bool[np.ndarray, " questions"], bins: int = 10) -> list[Bin]:
    """Sort answers by confidence into bins of equal width, and compare, in each, confidence with accuracy.

    Parameters
    ----------
    confidence : array [questions]
        Between 0 and 1; 1 belongs to the last bin.
    right : array of bool [questions]
        Whether each answer is right.
    bins : int
        At least 1. Bins without answers are left out.

    Raises
    ------
    ValueError
        If there are no answers, a confidence is outside [0, 1], or ``bins`` is below 1.

    Examples
    --------
    >>> reliability(np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, False, True, True]), bins=2)
    [Bin(low=0.5, high=1.0, count=4, confidence=0.75, accuracy=0.75)]
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, but is {bins}")
    if confidence.size == 0 or not (confidence.min() >= 0 and confidence.max() <= 1):
        raise ValueError("confidence must hold at least one number, each in [0, 1]")
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        Bin(
            k / bins,
            (k + 1) / bins,
            int(np.count_nonzero(place == k)),
            float(confidence[place == k].mean()),
            float(right[place == k].mean()),
        )
        for k in np.unique(place).tolist()
    ]


def calibration_error(confidence: PerQuestion, right: Bool[np.ndarray, " questions"], bins: int = 10) -> float:
    """ECE = sum_k (n_k / n) |accuracy_k - confidence_k|: how far confidence is off, bin by bin.

    It isn't the difference of the two means: what is too sure in one bin and not sure enough in another doesn't cancel.

    Raises
    ------
    ValueError
        As `reliability`.

    Examples
    --------
    >>> confidence, right = np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, False, True, True])
    >>> round(calibration_error(confidence, right, bins=2), 3), round(calibration_error(confidence, right), 3)
    (0.0, 0.4)
    """
    found = reliability(confidence, right, bins)
    return sum(one.count * abs(one.accuracy - one.confidence) for one in found) / confidence.size


def wilson_interval(hits: int, n: int, z: int | float = NORMAL_95) -> tuple[float, float]:
    """The shares that ``hits`` in ``n`` independent draws are compatible with: Wilson's score interval.

    (h + z^2/2 +- z sqrt(h (n - h) / n + z^2/4)) / (n + z^2)

    Unlike the interval of one standard error to either side, it stays within [0, 1] and isn't empty for 0 or n hits.

    Raises
    ------
    ValueError
        If ``n`` is below 1 or ``hits`` isn't in [0, n].

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(19, 24)], [round(end, 3) for end in wilson_interval(0, 10)]
    ([0.595, 0.908], [0.0, 0.278])
    """
    if n < 1 or not 0 <= hits <= n:
        raise ValueError(f"hits must be in [0, n] and n at least 1, but they are {hits} and {n}")
    middle, half = hits + z**2 / 2, z * math.sqrt(hits * (n - hits) / n + z**2 / 4)
    return max(0.0, (middle - half) / (n + z**2)), min(1.0, (middle + half) / (n + z**2))


def _weights(row: Float[np.ndarray, " vocab_size"], t: int | float, level: float) -> Float64[np.ndarray, " vocab_size"]:
    """exp((z - level) / T) in float64: a level near the maximum keeps it from overflowing."""
    with np.errstate(over="ignore"):
        return np.exp((row.astype(np.float64) - level) / t)


def _check_temperature(t: int | float) -> None:
    if not 0 <= t < math.inf:
        raise ValueError(f"t must be a finite temperature of at least 0, but is {t}")


def _check_ids(logits: Logits, ids: Ids) -> None:
    if len(ids) != len(logits) or (len(ids) and not (ids.min() >= 0 and ids.max() < logits.shape[1])):
        raise ValueError(f"ids must hold one id in [0, {logits.shape[1]}) for each of the {len(logits)} questions")
