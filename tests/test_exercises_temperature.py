"""The exercises of chapter 10: each solution passes its check, and plausible wrong answers are told what is wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from llm_internals.calibration import probability_at
from llm_internals.exercises import temperature as exercises

SCORES = np.log([6.0, 5.0, *[1.0] * 9])
"""The second of eleven tokens first gains and then loses as the temperature falls."""


@pytest.mark.parametrize(
    "check",
    [lambda answer: exercises.check_peak(answer, SCORES, 1), exercises.check_hidden_error, exercises.check_vote],
)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. A peak


def curve(temperatures: np.ndarray) -> np.ndarray:
    """The probability of the second token at each temperature."""
    return np.array([probability_at(SCORES[None], np.array([1]), float(t))[0] for t in temperatures])


def test_the_peak_passes_its_check_and_is_where_the_curve_is_highest() -> None:
    found = exercises.peak_temperature(SCORES, 1)
    grid = np.linspace(0.1, 2, 1901)
    assert found == pytest.approx(grid[curve(grid).argmax()], abs=1e-3)
    assert exercises.check_peak(found, SCORES, 1).startswith("Right")
    assert exercises.check_peak(round(found, 2), SCORES, 1).startswith("Right"), "two decimals will do"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (1, "gains from a lower temperature"),
        (0.1, "gains from a higher temperature"),
        (0, "no temperature to divide by"),
        (math.inf, "no temperature to divide by"),
    ],
)
def test_another_temperature_is_told_in_which_direction_the_peak_lies(wrong: float, reason: str) -> None:
    told = exercises.check_peak(wrong, SCORES, 1)
    assert told.startswith("Not yet")
    assert reason in told


# 2. An error that the mean hides


def test_the_hidden_error_passes_its_check() -> None:
    assert exercises.check_hidden_error(exercises.hidden_error()).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ([(0.9, True), (0.9, False)], "the mean confidence is 0.900, and the accuracy 0.500"),
        ([(0.5, True), (0.5, False)], "the calibration error is 0.00"),
        ([(0.7, True), (0.7, False), (0.3, True), (0.3, False)], "the calibration error is 0.20"),
        ([(1.0, False), (0.0, True)], "above 0 and at most 1"),
        ([(0.5, True)] * 11, "and not 11"),
        ([], "and not 0"),
    ],
)
def test_other_answers_are_told_what_is_missing(wrong: list, reason: str) -> None:
    told = exercises.check_hidden_error(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. A vote


def test_the_vote_passes_its_check() -> None:
    assert exercises.check_vote(exercises.vote_accuracy).startswith("Right")


@given(st.floats(0, 1), st.integers(0, 30))
def test_the_vote_is_the_upper_half_of_scipy_s_binomial(p: float, half: int) -> None:
    n = 2 * half + 1
    assert exercises.vote_accuracy(p, n) == pytest.approx(stats.binom.sf(half, n, p), abs=1e-9)


def test_a_vote_moves_away_from_one_half() -> None:
    for p in (0.3, 0.45):
        assert exercises.vote_accuracy(p, 25) < exercises.vote_accuracy(p, 3) < p
        assert exercises.vote_accuracy(1 - p, 25) > exercises.vote_accuracy(1 - p, 3) > 1 - p


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda p, n: p, "for p = 0.6 and n = 3 it returns 0.6, not 0.648"),
        (lambda p, n: p**n, "for p = 0.6 and n = 3 it returns 0.216"),
        (lambda p, n: 1 - (1 - p) ** n, "for p = 0.6 and n = 3 it returns 0.936"),
        (lambda p, n: math.comb(n, n // 2 + 1) * p ** (n // 2 + 1) * (1 - p) ** (n // 2), "it returns 0.432"),
    ],
)
def test_another_vote_is_told_where_it_is_off(wrong, reason: str) -> None:
    told = exercises.check_vote(wrong)
    assert told.startswith("Not yet")
    assert reason in told
