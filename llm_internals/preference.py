"""Stage 9: a model and what is preferred -> a model whose distribution has moved towards it.

This is the objective of RLHF: a high expected reward, minus a price for moving away from the reference model. Here the
reward is a number for each possible next token, so that expectation, KL divergence and gradient are sums over the whole
vocabulary, computed exactly; and the optimum is known in closed form (`tilt`), so that one can see how near training
comes. It stays a little short: hidden_size numbers can't set vocab_size logits one by one (the softmax bottleneck). No
human and no sampling is in this loop.

Real pipelines reward whole answers. There are too many of these to sum over, so they sample some, score them with a
model trained on people's choices, and estimate the gradient (PPO, GRPO). `dpo` needs neither samples nor scores.

Leaves out that estimate, the reward model, and the pretraining term of equation 2 below.

Chapter: ``09_rlhf``.
Source: Ouyang et al. (2022), "Training language models to follow instructions with human feedback", section 3.5,
equation 2; Ziegler et al. (2019), "Fine-tuning language models from human preferences", section 2; the bottleneck:
Yang et al. (2018), "Breaking the softmax bottleneck", section 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from llm_internals.adapters import train
from llm_internals.likelihood import next_logprobs
from llm_internals.model import Weights
from llm_internals.tilt import check, kl_divergence, objective


@dataclass(frozen=True, eq=False)
class RewardedPrompt:
    """A prompt, and the reward of each token that may come next.

    Attributes
    ----------
    prompt_ids : sequence of int
    reward : Tensor [vocab_size]
        Finite, in units of its own; mostly zeros.
    """

    prompt_ids: Sequence[int]
    reward: Float[Tensor, " vocab_size"]


@dataclass(frozen=True, eq=False)
class RewardStep:
    """Where training stands.

    Attributes
    ----------
    step : int
        Number of updates so far.
    objective, reward, kl : float
        J, E_p[r] and KL(p || p_ref) in nats, each the mean over the prompts; J = reward - beta * kl.
    probs : Tensor [prompts, vocab_size]
        The distribution after each prompt.
    """

    step: int
    objective: float
    reward: float
    kl: float
    probs: Float64[Tensor, "prompts vocab_size"]


def train_on_rewards(
    weights: Weights,
    reference: Weights,
    prompts: Sequence[RewardedPrompt],
    *,
    beta: float,
    steps: int,
    learning_rate: float,
) -> Iterator[RewardStep]:
    """Climb J(p) = E_p[r] - beta KL(p || p_ref), the mean over the prompts, by its exact gradient.

    Parameters
    ----------
    weights : Weights
        The model to train, from `adapters.adapt`; its adapters are changed while the iterator runs.
    reference : Weights
        The model to stay near to, mostly what ``adapt`` was given; it is only read.
    prompts : sequence of RewardedPrompt
        At least one.
    beta : float
        Above 0: how much reward one nat of KL divergence costs.
    steps, learning_rate
        As in `adapters.train`.

    Yields
    ------
    RewardStep
        ``steps + 1`` of them: before the first update, and after each.

    Raises
    ------
    ValueError
        If there are no prompts or the model has no adapters; as `tilt.check` and `adapters.train`.
    """
    if not prompts:
        raise ValueError("prompts must hold at least one RewardedPrompt, but is empty")
    reward = torch.stack([prompt.reward.double() for prompt in prompts])
    with torch.no_grad():
        before = torch.stack([next_logprobs(prompt.prompt_ids, reference) for prompt in prompts])
    check(before, reward, beta)

    def measure(step: int) -> tuple[Tensor, RewardStep]:
        logprobs = torch.stack([next_logprobs(prompt.prompt_ids, weights) for prompt in prompts])
        reached = objective(logprobs, before, reward, beta).mean()
        probs = logprobs.detach().exp()
        expected = (probs * reward).sum(dim=-1).mean()
        kl = kl_divergence(logprobs.detach(), before).mean()
        return -reached, RewardStep(step, reached.item(), expected.item(), kl.item(), probs)

    return train(weights, measure, steps=steps, learning_rate=learning_rate)
