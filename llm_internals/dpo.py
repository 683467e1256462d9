"""Stage 9: pairs of answers, one preferred to the other -> a model that has learnt the preference (DPO).

People find it easier to say which of two answers is better than to give each a reward. DPO trains on such pairs
directly. Solved for the reward, the optimum of the RLHF objective (`tilt`) reads r = beta ln(p* / p_ref) + a constant
of the prompt; so a model is a reward model for the preferences that it is the best answer to. The loss is the usual one
for a comparison, with this reward put in: the constant drops out, and no sum over answers is left.

Leaves out where pairs come from, and everything that keeps long runs stable; the chapter names it.

Chapter: ``09_rlhf``.
Source: Rafailov et al. (2023), "Direct preference optimization", equations 5 and 7;
eric-mitchell/direct-preference-optimization ``trainers.py``, ``dpo_loss``. The comparison: Bradley and Terry (1952),
"Rank analysis of incomplete block designs".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.nn.functional import logsigmoid

from llm_internals.adapters import train
from llm_internals.likelihood import answer_logprobs
from llm_internals.model import Weights
from llm_internals.tilt import check_beta


@dataclass(frozen=True)
class Pair:
    """A prompt and two answers to it, as ids; an answer that should end there ends with the end token."""

    prompt_ids: Sequence[int]
    chosen_ids: Sequence[int]
    rejected_ids: Sequence[int]


@dataclass(frozen=True, eq=False)
class PairStep:
    """Where training stands.

    Attributes
    ----------
    step : int
        Number of updates so far.
    loss : float
        `dpo_loss`; ln 2 for a model that is its own reference.
    chosen, rejected : Tensor [pairs]
        ln p(answer), in nats, of both answers of each pair.
    margins : Tensor [pairs]
        By how many nats the model prefers the chosen answer more than its reference does.
    """

    step: int
    loss: float
    chosen: Float64[Tensor, " pairs"]
    rejected: Float64[Tensor, " pairs"]
    margins: Float64[Tensor, " pairs"]


def dpo_loss(margins: Float[Tensor, " pairs"], beta: float) -> Float[Tensor, ""]:
    """-mean(ln sigmoid(beta * margin)): the surprise at people's choices, if rewards are beta ln(p / p_ref).

    The margin of a pair is (ln p(chosen) - ln p_ref(chosen)) - (ln p(rejected) - ln p_ref(rejected)). Only their
    difference counts: the loss can fall while both answers become less probable.

    Raises
    ------
    ValueError
        If ``beta`` isn't a finite number above 0.

    Examples
    --------
    >>> dpo_loss(torch.tensor([0.0]), beta=0.1), dpo_loss(torch.tensor([20.0]), beta=0.1)
    (tensor(0.6931), tensor(0.1269))
    """
    check_beta(beta)
    return -logsigmoid(beta * margins).mean()


def pair_logprobs(pairs: Sequence[Pair], weights: Weights) -> Float64[Tensor, "2 pairs"]:
    """ln p(chosen) and ln p(rejected) of each pair, in nats."""
    chosen = [answer_logprobs(pair.prompt_ids, pair.chosen_ids, weights).sum() for pair in pairs]
    rejected = [answer_logprobs(pair.prompt_ids, pair.rejected_ids, weights).sum() for pair in pairs]
    return torch.stack([torch.stack(chosen), torch.stack(rejected)])


def train_on_pairs(
    weights: Weights,
    reference: Weights,
    pairs: Sequence[Pair],
    *,
    beta: float,
    steps: int,
    learning_rate: float,
) -> Iterator[PairStep]:
    """Lower the DPO loss on all pairs at once.

    Parameters
    ----------
    weights, reference
        As in `preference.train_on_rewards`.
    pairs : sequence of Pair
        At least one.
    beta : float
        Above 0: a small one lets the model move far for a preference.
    steps, learning_rate
        As in `adapters.train`.

    Yields
    ------
    PairStep
        ``steps + 1`` of them: before the first update, and after each.

    Raises
    ------
    ValueError
        If there are no pairs or the model has no adapters; as `dpo_loss` and `adapters.train`.
    """
    if not pairs:
        raise ValueError("pairs must hold at least one Pair, but is empty")
    check_beta(beta)
    with torch.no_grad():
        before = pair_logprobs(pairs, reference)

    def measure(step: int) -> tuple[Tensor, PairStep]:
        now = pair_logprobs(pairs, weights)
        gain_chosen, gain_rejected = now - before
        margins = gain_chosen - gain_rejected
        loss = dpo_loss(margins, beta)
        chosen, rejected = now.detach()
        return loss, PairStep(step, loss.item(), chosen, rejected, margins.detach())

    return train(weights, measure, steps=steps, learning_rate=learning_rate)
