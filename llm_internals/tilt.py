"""Stage 9: a distribution, a reward for each token and a price of change -> the best distribution there is.

Preference training asks for a high expected reward near the model it starts from. Over single tokens this has an exact
answer: multiply the probability of each token by exp(r / beta) and normalise. In logits that is an addition, so the
best any training could do for one prompt is a logit bias of r / beta.

All functions take log-probabilities in nats over the last axis, any number of distributions at once, and can be
differentiated: training and the closed form that it is compared with share them.

Leaves out distributions over whole answers: the formulas hold, but there are too many answers to sum over.

Chapter: ``09_rlhf``.
Source: Rafailov et al. (2023), "Direct preference optimization", equations 3 and 4 and appendix A.1; Korbak et al.
(2022), "RL with KL penalties is better viewed as Bayesian inference" (the same as inference: the model is the prior,
the reward the evidence); Kullback and Leibler (1951), "On information and sufficiency", section 2.
"""

import math

from jaxtyping import Float
from torch import Tensor

Logprobs = Float[Tensor, "*batch vocab_size"]


def tilt(logprobs: Logprobs, reward: Logprobs, beta: float) -> Logprobs:
    """ln p*(x) = ln p(x) + r(x) / beta - ln Z: the distribution with the largest `objective`.

    A small beta makes change cheap, and p* tends to the tokens of the highest reward; a large one keeps p* near p.
    With r = ln p the tilt is a temperature: p exp(ln p / beta) is p to the power 1 + 1 / beta = 1 / T, so that
    T = beta / (1 + beta), which is below 1.

    Parameters
    ----------
    logprobs : Tensor [..., vocab_size]
        ln p, the log-softmax of the model's logits, in nats.
    reward : Tensor [..., vocab_size]
        r, in units of its own; adding a constant to all of it changes nothing here.
    beta : float
        Above 0: how much reward one nat of KL divergence costs.

    Raises
    ------
    ValueError
        If ``beta`` isn't a finite number above 0, ``reward`` has another shape than ``logprobs``, or an entry of either
        isn't finite.

    Examples
    --------
    >>> import torch
    >>> p = torch.tensor([0.5, 0.25, 0.25])
    >>> tilt(p.log(), reward=torch.tensor([0.0, 1.0, 0.0]), beta=0.5).exp()  # exp(1 / 0.5) is 7.389
    tensor([0.1925, 0.7112, 0.0963])
    >>> tilt(p.log(), reward=p.log(), beta=1.0).exp()  # p squared and normalised: T = 1 / 2
    tensor([0.6667, 0.1667, 0.1667])
    """
    check(logprobs, reward, beta)
    return (logprobs + reward / beta).log_softmax(dim=-1)


def log_partition(logprobs: Logprobs, reward: Logprobs, beta: float) -> Float[Tensor, "*batch"]:
    """ln Z = ln sum_x p(x) exp(r(x) / beta), so that beta ln Z is the largest `objective` any distribution reaches.

    Raises
    ------
    ValueError
        As `tilt`.

    Examples
    --------
    >>> import torch
    >>> log_partition(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.0, 1.0]), beta=1.0)  # ln((1 + e) / 2)
    tensor(0.6201)
    """
    check(logprobs, reward, beta)
    return (logprobs + reward / beta).logsumexp(dim=-1)


def kl_divergence(logprobs: Logprobs, reference: Logprobs) -> Float[Tensor, "*batch"]:
    """KL(p || q) = sum_x p(x) (ln p(x) - ln q(x)), in nats: 0 where p and q agree, positive otherwise.

    It isn't symmetric: a token that p likes and q doesn't is expensive, the other way round it is cheap.

    Examples
    --------
    >>> import torch
    >>> sure, even = torch.tensor([0.99, 0.01]).log(), torch.tensor([0.5, 0.5]).log()
    >>> kl_divergence(sure, even), kl_divergence(even, sure)
    (tensor(0.6371), tensor(1.6145))
    """
    return (logprobs.exp() * (logprobs - reference)).sum(dim=-1)


def objective(logprobs: Logprobs, reference: Logprobs, reward: Logprobs, beta: float) -> Float[Tensor, "*batch"]:
    """J(p) = E_p[r] - beta KL(p || p_ref) = beta ln Z - beta KL(p || p*).

    The second form says why `tilt` is the optimum: only KL(p || p*) depends on p, and it is 0 at p* and nowhere else.

    Parameters
    ----------
    logprobs, reference : Tensor [..., vocab_size]
        ln p and ln p_ref.
    reward, beta
        As in `tilt`.

    Raises
    ------
    ValueError
        As `tilt`.

    Examples
    --------
    >>> import torch
    >>> reference, reward = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.0, 1.0])
    >>> objective(reference, reference, reward, beta=1.0)
    tensor(0.5000)
    >>> objective(tilt(reference, reward, beta=1.0), reference, reward, beta=1.0)
    tensor(0.6201)
    """
    check(reference, reward, beta)
    return (logprobs.exp() * reward).sum(dim=-1) - beta * kl_divergence(logprobs, reference)


def check_beta(beta: float) -> None:
    """Refuse a beta that isn't a finite number above 0: a change that costs nothing has no best size."""
    if not 0 < beta < math.inf:
        raise ValueError(f"beta must be a finite number above 0, but is {beta}")


def check(logprobs: Logprobs, reward: Logprobs, beta: float) -> None:
    """Refuse what has no tilt."""
    check_beta(beta)
    if reward.shape != logprobs.shape:
        raise ValueError(
            f"reward must have the shape of logprobs, {tuple(logprobs.shape)}, but has {tuple(reward.shape)}"
        )
    for name, values in (("logprobs", logprobs), ("reward", reward)):
        if not values.isfinite().all():
            raise ValueError(f"{name} must be finite: a token that is ruled out has no tilt")
