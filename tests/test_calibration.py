"""`llm_internals.calibration`: how often a sample is right, how sure the model is, and whether the two agree."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from llm_internals.calibration import (
    best_temperature,
    calibration_error,
    expected_logit,
    probability_at,
    reliability,
    wilson_interval,
)
from llm_internals.sampling import SamplingParams, distribution

EXACT = 1e-12
"""Float64: the same sums in another order."""
STEP = 1e-5
"""Of 1/T, for a derivative by differences: its own error is about 1e-9 here."""
FOUND = 1e-5
"""Relative: the search for a temperature ends at 1e-6."""
TEMPERATURES = [0.05, 0.3, 1.0, 2.5]


def questions(n: int = 6, vocab_size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a few questions, and a token of each; the likeliest one, the least likely one and others."""
    rng = np.random.default_rng(3)
    logits = 3 * rng.standard_normal((n, vocab_size))
    ids = rng.integers(0, vocab_size, n)
    ids[0], ids[1] = logits[0].argmax(), logits[1].argmin()
    return logits, ids


LOGITS, IDS = questions()

# p at a temperature


@pytest.mark.parametrize("t", [0.0, *TEMPERATURES])
def test_a_probability_is_the_one_that_sampling_gives(t: float) -> None:
    expected = [distribution(row, SamplingParams(temperature=t))[id] for row, id in zip(LOGITS, IDS, strict=True)]
    assert probability_at(LOGITS, IDS, t) == pytest.approx(expected, abs=EXACT)


def test_weights_of_6_5_and_nine_times_1_by_hand() -> None:
    """Sums: 20, then 36 + 25 + 9 = 70, then 1296 + 625 + 9 = 1930."""
    logits = np.log([[6.0, 5.0, *[1.0] * 9]])
    second = [float(probability_at(logits, np.array([1]), t)[0]) for t in (1, 1 / 2, 1 / 4)]
    assert second == pytest.approx([5 / 20, 25 / 70, 625 / 1930], abs=EXACT)


def test_a_probability_far_below_the_smallest_number_is_zero_and_not_an_error() -> None:
    logits = np.array([[2000.0, 0.0]])
    assert probability_at(logits, np.array([1]), 0.01).tolist() == [0.0]
    assert probability_at(logits, np.array([0]), 0.01).tolist() == [1.0]


def test_at_temperature_0_the_lowest_of_equals_has_everything() -> None:
    logits = np.array([[1.0, 2.0, 2.0]])
    assert [probability_at(logits, np.array([id]), 0.0)[0] for id in range(3)] == [0.0, 1.0, 0.0]


def test_float32_logits_are_widened_before_anything_is_computed() -> None:
    narrow = LOGITS.astype(np.float32)
    assert probability_at(narrow, IDS, 0.3) == pytest.approx(probability_at(narrow.astype(np.float64), IDS, 0.3))
    assert probability_at(narrow, IDS, 0.3).dtype == expected_logit(narrow, 0.3).dtype == np.float64


# The derivative


@pytest.mark.parametrize("t", TEMPERATURES)
def test_the_derivative_by_the_inverse_temperature_is_the_score_minus_the_expected_score(t: float) -> None:
    up, down = (np.log(probability_at(LOGITS, IDS, 1 / (1 / t + step))) for step in (STEP, -STEP))
    score = LOGITS[range(len(IDS)), IDS]
    assert (up - down) / (2 * STEP) == pytest.approx(score - expected_logit(LOGITS, t), abs=1e-6)


def test_the_expected_score_rises_from_the_mean_to_the_largest_as_the_temperature_falls() -> None:
    levels = np.array([expected_logit(LOGITS, t) for t in (1e9, 3.0, 1.0, 0.3, 0.1, 0.0)])
    assert (np.diff(levels, axis=0) >= 0).all()
    assert levels[0] == pytest.approx(LOGITS.mean(axis=1), abs=1e-6)
    assert levels[-1].tolist() == LOGITS.max(axis=1).tolist()


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.integers(0, 7))
def test_a_probability_has_at_most_one_peak(scores: list[float], place: int) -> None:
    logits, ids = np.array([scores]), np.array([place % len(scores)])
    curve = np.array([probability_at(logits, ids, 1 / b)[0] for b in np.linspace(0.05, 8, 80)])
    steps = np.sign(np.round(np.diff(curve), 12))
    assert (np.diff(steps[steps != 0]) <= 0).all()


# The best temperature


def test_the_best_temperature_is_where_the_loss_is_lowest() -> None:
    logits, ids = questions(n=12)
    ids[2:9] = logits[2:9].argmax(axis=1)
    found = optimize.minimize_scalar(
        lambda t: -np.log(probability_at(logits, ids, t)).sum(), bounds=(0.05, 20), method="bounded"
    )
    assert best_temperature(logits, ids) == pytest.approx(found.x, rel=1e-4)
    right = logits[range(12), ids]
    assert (right - expected_logit(logits, best_temperature(logits, ids))).mean() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_scaled_logits_have_a_scaled_best_temperature(factor: float) -> None:
    logits, ids = questions()
    ids[1] = logits[1].argmax()
    assert best_temperature(factor * logits, ids) == pytest.approx(factor * best_temperature(logits, ids), rel=FOUND)


def test_without_a_mistake_sharper_is_always_better_and_without_a_clue_flatter_is() -> None:
    assert best_temperature(LOGITS, LOGITS.argmax(axis=1)) == 0.0
    assert best_temperature(LOGITS, LOGITS.argmin(axis=1)) == math.inf


# Calibration


def test_a_loss_of_torch_agrees() -> None:
    loss = torch.nn.functional.cross_entropy(torch.tensor(LOGITS) / 0.7, torch.tensor(IDS))
    assert -np.log(probability_at(LOGITS, IDS, 0.7)).mean() == pytest.approx(float(loss), abs=EXACT)


def test_eight_answers_by_hand_whose_means_agree_and_whose_bins_do_not() -> None:
    confidence = np.array([0.95] * 4 + [0.55] * 4)
    right = np.array([True, True, True, False] * 2)
    assert [one[2:] for one in reliability(confidence, right)] == [
        (4, pytest.approx(0.55), 0.75),
        (4, pytest.approx(0.95), 0.75),
    ]
    assert confidence.mean() == pytest.approx(right.mean())
    assert calibration_error(confidence, right) == pytest.approx(0.2)
    assert calibration_error(confidence, right, bins=1) == pytest.approx(0)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), st.integers(1, 12))
def test_every_answer_is_in_one_bin_and_the_error_is_at_least_the_difference_of_the_means(answers, bins: int) -> None:
    confidence, right = np.array([c for c, _ in answers]), np.array([r for _, r in answers])
    found = reliability(confidence, right, bins)
    assert sum(one.count for one in found) == len(answers)
    # A confidence on an edge may fall on either side of it by its rounding.
    assert all(one.low - EXACT <= one.confidence <= one.high + EXACT for one in found)
    error = calibration_error(confidence, right, bins)
    assert abs(confidence.mean() - right.mean()) - EXACT <= error <= 1


# Wilson's interval


@given(st.integers(1, 60), st.integers(0, 60))
def test_the_interval_is_scipy_s(n: int, hits: int) -> None:
    hits = min(hits, n)
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson_interval(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_the_interval_holds_the_true_share_nineteen_times_in_twenty() -> None:
    hits = np.arange(101)
    held = [low <= 0.6 <= high for low, high in (wilson_interval(int(h), 100) for h in hits)]
    assert stats.binom.pmf(hits, 100, 0.6)[held].sum() == pytest.approx(0.95, abs=0.01)


# What is refused


@pytest.mark.parametrize("t", [-0.1, math.nan, math.inf])
def test_a_temperature_that_is_negative_or_no_number_is_refused(t: float) -> None:
    for call in (lambda: probability_at(LOGITS, IDS, t), lambda: expected_logit(LOGITS, t)):
        with pytest.raises(ValueError, match="t must be a finite temperature of at least 0"):
            call()


@pytest.mark.parametrize("ids", [[0], [0] * 7, [0, 0, 0, 0, 0, 40], [-1, 0, 0, 0, 0, 0]])
def test_ids_that_do_not_fit_the_questions_are_refused(ids: list[int]) -> None:
    for call in (lambda: probability_at(LOGITS, np.array(ids), 1.0), lambda: best_temperature(LOGITS, np.array(ids))):
        with pytest.raises(ValueError, match=r"one id in \[0, 40\) for each of the 6 questions"):
            call()


@pytest.mark.parametrize(
    ("confidence", "bins", "message"),
    [
        ([], 10, "at least one number"),
        ([1.1], 10, r"in \[0, 1\]"),
        ([math.nan], 10, r"in \[0, 1\]"),
        ([0.5], 0, "bins"),
    ],
)
def test_answers_that_cannot_be_sorted_are_refused(confidence: list[float], bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reliability(np.array(confidence, dtype=np.float64), np.ones(len(confidence), dtype=bool), bins)


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_counts_that_are_none_have_no_interval(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="hits must be in"):
        wilson_interval(hits, n)
