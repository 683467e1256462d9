"""Stage 5: the logits of one position -> one token, with everything that there is to know about the choice.

Joins `sampling.distribution` and `drawing.draw_bin`, and keeps what a reader asks for: which number was drawn, into
which bin it fell, how near that was to another token, and how likely the token was.
Greedy decoding draws nothing: with one token left there is nothing to draw.

Chapter: ``05_sampling``, ``07_generation_loop``.
Source: gpt-fast ``generate.py``, ``sample``; the log-probabilities that vLLM reports, ``v1/sample/sampler.py``,
``Sampler``.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from llm_internals.sampling import SamplingParams, distribution, draw_bin, left_logits
from llm_internals.scores import Scores, as_logits, largest, log_sum_exp


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How a token was chosen.

    Attributes
    ----------
    id : int
        The token.
    u : float or None
        The uniform number in [0, 1) that chose it; None for greedy decoding.
    bin : (float, float)
        The part of [0, 1) that belongs to the token, which u lies in; greedy decoding gives it all.
    margin : float
        How near the choice was to another token: the distance of u from the nearest edge that another token shares (1
        where there is no other), or, for greedy decoding, how far the token's logit is above the next one that the
        other settings leave (infinite where they leave none with a probability above 0).
    logprob, model_logprob : float
        Natural logarithm of its probability under the distribution drawn from, and under the model's own (T = 1).
    n_candidates : int
        How many tokens could have been drawn.
    top_logprobs : tuple of (int, float)
        The model's likeliest tokens with their log-probabilities (T = 1), as many as were asked for.
    """

    id: int
    u: float | None
    bin: tuple[float, float]
    margin: float
    logprob: float
    model_logprob: float
    n_candidates: int
    top_logprobs: tuple[tuple[int, float], ...]


def choose(
    logits: Scores,
    params: SamplingParams,
    rng: random.Random,
    prompt_ids: Sequence[int] = (),
    output_ids: Sequence[int] = (),
    top_logprobs: int = 0,
) -> Choice:
    """Choose the next token.

    Parameters
    ----------
    logits : vector [vocab_size]
        The model's scores at the last position.
    rng : random.Random
        Gives one number for each choice that draws; ``random.Random(params.seed)`` makes a run repeatable.
    prompt_ids, output_ids : sequence of int
        What came before; penalties read them.
    top_logprobs : int
        How many of the likeliest tokens to report.

    Raises
    ------
    ValueError
        As `sampling.distribution`.

    Examples
    --------
    >>> choice = choose([0.0, 3.0, 2.0], SamplingParams(temperature=0), random.Random(0), top_logprobs=1)
    >>> choice.id, choice.u, choice.n_candidates, round(choice.margin, 3)
    (1, None, 1, 1.0)
    >>> choose([0.0, 0.0], SamplingParams(), random.Random(0)).u == random.Random(0).random()
    True
    """
    logits = as_logits(logits)
    probs = distribution(logits, params, prompt_ids, output_ids)
    total = log_sum_exp(logits)
    if params.temperature == 0:
        id, u, low, high = int(probs.argmax()), None, 0.0, 1.0
        margin = _lead(left_logits(logits, replace(params, temperature=1.0), prompt_ids, output_ids))
    else:
        drawn = draw_bin(probs, rng.random())
        id, u, low, high = drawn
        margin = drawn.margin
    return Choice(
        id=id,
        u=u,
        bin=(low, high),
        margin=margin,
        logprob=math.log(probs[id]),
        model_logprob=float(logits[id] - total),
        n_candidates=int(np.count_nonzero(probs)),
        top_logprobs=tuple((int(top), float(logits[top] - total)) for top in largest(logits, top_logprobs)),
    )


def _lead(logits: np.ndarray) -> float:
    """How far the largest logit is above the next one; infinite if nothing else is left."""
    first = int(logits.argmax())
    second = max(logits[:first].max(initial=-math.inf), logits[first + 1 :].max(initial=-math.inf))
    return float(logits[first] - second)
