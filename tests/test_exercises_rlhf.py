"""The exercises of chapter 09: their solutions pass their checks, and wrong answers are told what is wrong."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.exercises import rlhf as exercises
from llm_internals.tilt import kl_divergence, tilt

LOGPROBS = torch.linspace(6, -6, 40, dtype=torch.float64).log_softmax(dim=0)
REWARD = torch.zeros(40, dtype=torch.float64)
REWARD[2] = 1.0

CHECKS = {
    "price": lambda answer: exercises.check_price(answer, LOGPROBS, REWARD),
    "surprise": exercises.check_surprise,
    "secret": lambda answer: exercises.check_secret(answer, LOGPROBS),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_without_an_answer_a_check_says_what_is_asked_for(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Half a nat


def test_the_price_passes_its_check_with_two_decimals_and_is_half_a_nat_away() -> None:
    price = exercises.price_for_distance(LOGPROBS, REWARD)
    assert exercises.check_price(price, LOGPROBS, REWARD).startswith("Right")
    assert exercises.check_price(round(price, 2), LOGPROBS, REWARD).startswith("Right")
    assert float(kl_divergence(tilt(LOGPROBS, REWARD, price), LOGPROBS)) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(0, "must be above 0"), (-0.2, "must be above 0"), (5.0, "a lower price"), (0.02, "a higher price")],
)
def test_another_price_is_told_where_it_leads(wrong: float, reason: str) -> None:
    told = exercises.check_price(wrong, LOGPROBS, REWARD)
    assert told.startswith("Not yet")
    assert reason in told


# 2. Pay for surprise


def test_the_price_of_surprise_passes_its_check_and_heats_the_distribution() -> None:
    price = exercises.price_of_surprise()
    assert exercises.check_surprise(price).startswith("Right")
    heated = tilt(LOGPROBS, -LOGPROBS, price)
    assert torch.allclose(heated, (LOGPROBS / exercises.TEMPERATURE).log_softmax(dim=0))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(-3, "must be above 0"), (0.6, "no token is likelier than a rarer one"), (1.5, "at T = 3."), (2, "at T = 2.")],
)
def test_another_price_of_surprise_is_told_which_temperature_it_gives(wrong: float, reason: str) -> None:
    told = exercises.check_surprise(wrong)
    assert told.startswith("Not yet")
    assert reason in told


@given(st.floats(1.1, 50))
def test_the_temperature_that_a_wrong_price_is_told_is_the_one_that_it_gives(beta: float) -> None:
    reached = beta / (beta - 1)
    assert torch.allclose(tilt(LOGPROBS, -LOGPROBS, beta), (LOGPROBS / reached).log_softmax(dim=0))


# 3. A reward behind two models


def test_the_rewards_behind_two_models_pass_their_check_and_are_those_of_the_secret() -> None:
    found = exercises.rewards_behind(exercises.trained_in_secret(LOGPROBS), LOGPROBS)
    assert exercises.check_secret(found, LOGPROBS).startswith("Right")
    assert found == {1: -0.5, 4: 1.0, 9: 0.25}, "the places in the ranking are the ids here"


def test_the_reward_is_found_whatever_constant_is_added_to_it() -> None:
    reward = torch.full_like(LOGPROBS, 7.0)
    reward[3] += 2.0
    assert exercises.rewards_behind(tilt(LOGPROBS, reward, 0.5), LOGPROBS) == {3: 2.0}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({4: 1.0}, "1 of the 3 tokens"),
        ({5: 1.0, 6: 0.25, 7: -0.5}, "0 of the 3 tokens"),
        ({1: -0.5, 4: 1.0, 9: 0.3}, "at least one of the rewards isn't"),
        ({1: -1.0, 4: 2.0, 9: 0.5}, "without the price"),
        (dict.fromkeys(range(40), 0.1), "only up to a constant"),
    ],
)
def test_other_rewards_are_told_what_they_are(wrong: dict[int, float], reason: str) -> None:
    told = exercises.check_secret(wrong, LOGPROBS)
    assert told.startswith("Not yet")
    assert reason in told


def test_no_check_gives_the_answer_away() -> None:
    assert not any(str(value) in exercises.check_secret({0: math.pi}, LOGPROBS) for value in exercises.SECRET.values())
