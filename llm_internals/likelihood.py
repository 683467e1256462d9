"""Stage 4: a prompt and what follows it -> how probable that is, exactly and without any sampling.

The probability of a whole answer is the product of the probabilities of its tokens, each after the prompt and the
tokens before it. All of them come out of one pass over prompt and answer, since a position's hidden state depends on
nothing to its right. Feeding the given tokens instead of the model's own choices is called teacher forcing.

Everything from the logits on is in float64, and torch can differentiate it: training (`preference`) reads the same
numbers as the pages do.

Chapter: ``04_logits``, ``10_temperature_is_not_accuracy``.
Source: Bengio et al. (2003), "A neural probabilistic language model", section 1 (the product); Williams and Zipser
(1989), "A learning algorithm for continually running fully recurrent neural networks" (teacher forcing).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from llm_internals.logits import lm_head
from llm_internals.model import Weights, forward
from llm_internals.tap import Tap


def next_logprobs(ids: Sequence[int], weights: Weights) -> Float64[Tensor, " vocab_size"]:
    """ln p(x | ids) for every token x: the log-softmax of the last position's logits, in nats.

    Raises
    ------
    ValueError
        As `model.forward`.
    """
    hidden = forward(torch.tensor(list(ids), dtype=torch.int64), weights)
    return lm_head(hidden[-1:], weights)[0].double().log_softmax(dim=-1)


def answer_logits(
    prompt_ids: Sequence[int], answer_ids: Sequence[int], weights: Weights, tap: Tap | None = None
) -> Float[Tensor, "answer vocab_size"]:
    """The scores from which each token of the answer would be chosen, given the prompt and the answer before it.

    Row 0 is what the model says after the prompt alone, before it has seen any of the answer. The tap is that of
    `model.forward`: a page that removes a part of the model asks here what the removal costs.

    Raises
    ------
    ValueError
        If the prompt or the answer is empty, an id is out of range, or both together don't fit the context.
    """
    if not prompt_ids or not answer_ids:
        raise ValueError(
            f"prompt_ids and answer_ids must hold at least one token each, but have {len(prompt_ids)} and "
            f"{len(answer_ids)}"
        )
    if not 0 <= answer_ids[-1] < weights.config.vocab_size:  # the only id that doesn't go through the model
        raise ValueError(f"answer_ids must be in [0, {weights.config.vocab_size}), but ends with {answer_ids[-1]}")
    hidden = forward(torch.tensor([*prompt_ids, *answer_ids[:-1]], dtype=torch.int64), weights, tap=tap)
    # A position's logits are about the token behind it, so those of the answer begin one position before it.
    return lm_head(hidden[-len(answer_ids) :], weights)


def answer_logprobs(
    prompt_ids: Sequence[int], answer_ids: Sequence[int], weights: Weights, tap: Tap | None = None
) -> Float64[Tensor, " answer"]:
    """ln p(answer_i | prompt, answer_0 ... answer_(i-1)) for each token of the answer, in nats.

    The sum is the log-probability of the answer as the beginning of the response. With the end token as the last token
    of ``answer_ids`` it is that of the whole response.

    Raises
    ------
    ValueError
        As `answer_logits`.
    """
    targets = torch.tensor(list(answer_ids), dtype=torch.int64)[:, None]
    logits = answer_logits(prompt_ids, answer_ids, weights, tap)
    return logits.double().log_softmax(dim=-1).gather(1, targets)[:, 0]


def bits_a_token(
    prompt_ids: Sequence[int], answer_ids: Sequence[int], weights: Weights, tap: Tap | None = None
) -> float:
    """The mean surprisal of the answer's tokens in bits, -log2 p: what the text costs, and so how well it is predicted.

    Blind guessing costs log2(vocab_size).

    Raises
    ------
    ValueError
        As `answer_logits`.
    """
    return -float(answer_logprobs(prompt_ids, answer_ids, weights, tap).mean()) / math.log(2)
