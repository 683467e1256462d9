"""The exercises of chapter 05: each solution passes its check, and plausible wrong answers are told what is wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals import sampling
from llm_internals.exercises import sampling as exercises
from llm_internals.sampling import SamplingParams

CHECKS = [exercises.check_temperature, exercises.check_draw_from_the_top, exercises.check_counterexample]


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. A temperature for given odds


def test_the_temperature_passes_its_check_and_gives_the_odds_in_the_package() -> None:
    answer = exercises.temperature_for_odds()
    assert exercises.check_temperature(answer).startswith("Right")
    assert exercises.check_temperature(round(answer, 2)).startswith("Right"), "two decimals will do"
    first, second = sampling.distribution([exercises.GAP, 0.0], SamplingParams(temperature=answer))
    assert first / second == pytest.approx(exercises.ODDS)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (math.log(10) / 2, "5.68 times likelier"),
        (0.2, "2.2e+04 times likelier"),
        (0, "greater than 0"),
        (-1.0, "greater than 0"),
        (1e-9, "times likelier"),
        (math.nan, "greater than 0"),
    ],
)
def test_another_temperature_is_told_its_odds(wrong: float, reason: str) -> None:
    told = exercises.check_temperature(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert f"{exercises.temperature_for_odds():.2f}" not in told


# 2. A draw from the top


def test_the_draw_passes_its_check() -> None:
    assert exercises.check_draw_from_the_top(exercises.draw_from_the_top).startswith("Right")


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_the_draw_hits_the_bin_of_the_sorted_distribution(weights: list[float], u: float) -> None:
    probs = np.array(weights) / sum(weights)
    ranked = np.argsort(-probs, kind="stable")
    expected = sampling.draw_bin(probs[ranked], u)
    if expected.margin > 1e-9:
        assert exercises.draw_from_the_top(probs, u) == ranked[expected.id]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (sampling.draw, "come in the order [0, 1, 2] of ids"),
        (lambda probs, u: int(probs.argmax()), "a share of 1.00 of all u draws token 1"),
        (lambda probs, u: int(np.argsort(-probs)[int(u * len(probs))]), "whose probability is"),
        (lambda probs, u: sampling.draw(np.sort(probs)[::-1], u), "draws token 0, whose probability is 0.1"),
        (lambda probs, u: sampling.draw(probs, u) if u < 0.999 else -1, "draws -1, which is no id"),
    ],
)
def test_another_draw_is_told_where_it_fails(wrong, reason: str) -> None:
    told = exercises.check_draw_from_the_top(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. A counterexample


def test_the_counterexample_passes_its_check_and_is_one_in_the_package() -> None:
    probs, k, p = exercises.counterexample()
    told = exercises.check_counterexample((probs, k, p))
    neither = [name for name in sampling.ORDERS["transformers"] if name not in ("top_k", "top_p")]
    for first, second in (("top_k", "top_p"), ("top_p", "top_k")):
        params = SamplingParams(top_k=k, top_p=p, order=(first, second, *neither))
        kept = sampling.distribution(np.log(probs), params).nonzero()[0].tolist()
        assert f"{kept}" in told
    assert told.startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (([0.5, 0.3, 0.2], 1, 0.9), "both orders keep the tokens [0]"),
        (([0.5, 0.3, 0.2], 3, 0.9), "both orders keep the tokens [0, 1, 2]"),
        (([0.5, 0.3], 1, 0.9), "sum to 1"),
        (([1.0, 0.0], 1, 0.9), "positive"),
    ],
)
def test_another_case_is_told_what_both_orders_keep(wrong: exercises.Counterexample, reason: str) -> None:
    told = exercises.check_counterexample(wrong)
    assert told.startswith("Not yet")
    assert reason in told
