"""The exercises of ``09_rlhf``: a price for a distance, a reward that flattens, a reward read off two models."""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float64
from torch import Tensor

from llm_internals.tilt import kl_divergence, tilt

Logprobs = Float64[Tensor, " vocab_size"]

TARGET = 0.5
"""Exercise 1: how far the best distribution shall be from the model, in nats."""
TEMPERATURE = 1.5
"""Exercise 2: the temperature that a reward shall come to."""
BETA = 0.5
"""Exercise 3: the price at which the model was trained."""
SECRET = {1: -0.5, 4: 1.0, 9: 0.25}
"""Exercise 3: the place of a token in the model's ranking, counted from 0, and its reward; all others have none."""
CLOSE = 5e-3
"""How far off an answer may be: two decimals do."""


def check_price(answer: int | float | None, logprobs: Logprobs, reward: Logprobs) -> str:
    """Exercise 1: whether the best distribution for this reward at the price `answer` is `TARGET` nats away.

    >>> half = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    >>> check_price(1.0, half, torch.tensor([1.0, 0.0], dtype=torch.float64))
    'Not yet: at this price the best distribution is 0.111 nats away; a lower price lets it go further.'
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if not 0 < answer < math.inf:
        return "Not yet: the price of change must be above 0."
    distance = distance_at(answer, logprobs, reward)
    if abs(distance - TARGET) > CLOSE:
        way = "a lower price lets it go further" if distance < TARGET else "a higher price holds it back"
        return f"Not yet: at this price the best distribution is {distance:.3f} nats away; {way}."
    return "Right: at this price the best distribution is half a nat away."


def distance_at(beta: float, logprobs: Logprobs, reward: Logprobs) -> float:
    """KL(p* || p) of the best distribution at a price."""
    return float(kl_divergence(tilt(logprobs, reward, beta), logprobs))


def price_for_distance(logprobs: Logprobs, reward: Logprobs) -> float:
    """The distance falls as the price rises, so halve an interval of prices until its ends agree."""
    low, high = 0.01, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if distance_at(middle, logprobs, reward) > TARGET:
            low = middle
        else:
            high = middle
    return low


def check_surprise(answer: int | float | None) -> str:
    """Exercise 2: whether a reward of -ln p at the price `answer` makes the model's distribution at `TEMPERATURE`.

    >>> check_surprise(2)
    'Not yet: at a price of 2, the best distribution is the model at T = 2.'
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if answer <= 0:
        return "Not yet: the price of change must be above 0. The minus sign is in the reward already."
    if answer <= 1:
        return f"Not yet: at a price of {answer:g} the tilt is so strong that no token is likelier than a rarer one."
    reached = answer / (answer - 1)
    if abs(reached - TEMPERATURE) > CLOSE:
        return f"Not yet: at a price of {answer:g}, the best distribution is the model at T = {reached:.3g}."
    return "Right: paying for surprise is the same as heating."


def price_of_surprise() -> float:
    """p exp(-ln p / beta) is p to the power 1 - 1 / beta, which shall be 1 / T: so beta = T / (T - 1)."""
    return TEMPERATURE / (TEMPERATURE - 1)


def trained_in_secret(logprobs: Logprobs) -> Logprobs:
    """Exercise 3: the best distribution for `SECRET` at the price `BETA`."""
    reward = torch.zeros_like(logprobs)
    for id, value in _secret(logprobs).items():
        reward[id] = value
    return tilt(logprobs, reward, BETA)


def _secret(logprobs: Logprobs) -> dict[int, float]:
    """The ids of the rewarded tokens, and their rewards."""
    ranking = logprobs.argsort(descending=True, stable=True)
    return {int(ranking[place]): value for place, value in SECRET.items()}


def check_secret(answer: Mapping[int, int | float] | None, logprobs: Logprobs) -> str:
    """Exercise 3: whether `answer` holds the tokens that were rewarded, and how much each of them got."""
    if answer is None:
        return "No answer yet: set answer to a dict of ids and rewards."
    secret = _secret(logprobs)
    if len(answer) > len(secret):
        return (
            "Not yet: these are more tokens than were rewarded. What do most tokens have in common? "
            "The two models tell a reward only up to a constant, the same for all tokens."
        )
    if set(answer) != set(secret):
        return f"Not yet: {len(set(answer) & set(secret))} of the {len(secret)} tokens that got a reward are in it."
    if all(abs(answer[id] - value / BETA) < CLOSE for id, value in secret.items()):
        return "Not yet: the tokens are right, but these are differences of log-probabilities, without the price."
    if any(abs(answer[id] - value) > CLOSE for id, value in secret.items()):
        return "Not yet: the tokens are right, and at least one of the rewards isn't."
    return "Right: the two models together are the reward, up to a constant."


def rewards_behind(trained: Logprobs, logprobs: Logprobs, beta: float = BETA) -> dict[int, float]:
    """r = beta (ln p* - ln p) plus a constant, and the constant is what the many tokens without a reward show."""
    implied = beta * (trained - logprobs)
    rewards = implied - implied.median()
    return {int(id): round(float(rewards[id]), 3) for id in rewards.abs().gt(1e-3).nonzero()}
