"""The exercises of ``08_interventions``: a bias for a probability, all spellings of a word, a min-p to take along."""

import math
from collections.abc import Collection

import numpy as np

from llm_internals.figures.labels import visible
from llm_internals.sampling import ORDERS, SamplingParams, distribution
from llm_internals.scores import Scores
from llm_internals.tokenizer import Tokenizer

WANTED = 0.5
"""Exercise 1: the probability that the token shall have."""
WORD = "cat"
"""Exercise 2: the word that must not come next, in any letter case."""
HOT, MIN_P = 1.5, 0.1
"""Exercise 3: the settings to carry over from an engine that divides by the temperature first."""

Answer = int | float | None


def check_bias(answer: Answer, logits: Scores, token: int) -> str:
    """Exercise 1: whether a logit bias of `answer` gives the token a probability of `WANTED`, to two decimals.

    >>> check_bias(1.0, np.log([0.25, 0.75]), 0)
    'Not yet: with a bias of 1 the token has a probability of 0.475.'
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if not math.isfinite(answer):
        return "Not yet: a bias is a finite number."
    p = distribution(logits, SamplingParams(logit_bias={token: answer}))[token]
    if abs(p - WANTED) < 5e-3:
        return f"Right: with a bias of {answer:g} the token has a probability of {p:.2f}."
    return f"Not yet: with a bias of {answer:g} the token has a probability of {p:.3f}."


def bias_for(p: float, wanted: float = WANTED) -> float:
    """A bias b multiplies the odds p / (1 - p) by exp(b); solved for b."""
    return math.log(wanted / (1 - wanted)) - math.log(p / (1 - p))


def check_spellings(answer: Collection[int] | None, tokenizer: Tokenizer) -> str:
    """Exercise 2: whether the ids are those with which a next word `WORD` can begin, and no others."""
    if answer is None:
        return "No answer yet: set answer to a collection of ids."
    given = {int(id) for id in answer}
    if outside := sorted(id for id in given if not 0 <= id < tokenizer.vocab_size):
        return f"Not yet: {outside[0]} is no id of this vocabulary."
    right = spellings(tokenizer)
    if extra := sorted(given - right):
        return f"Not yet: {_named(extra[0], tokenizer)} can't be the beginning of the word, nor begin with it."
    if missing := sorted(right - given):
        others = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"Not yet: {_named(missing[0], tokenizer)} is still open{others}."
    return f"Right: all {len(right)} of them."


def spellings(tokenizer: Tokenizer, word: str = WORD) -> set[int]:
    """Tokens that begin with the word, and tokens that the word begins with, without their space and in any case."""
    special = set(tokenizer.special_tokens.values())
    found = set()
    for id in set(range(tokenizer.vocab_size)) - special:
        text = tokenizer.token_bytes(id).decode("utf-8", errors="replace").lstrip().lower()
        if text and (text.startswith(word) or word.startswith(text)):
            found.add(id)
    return found


def _named(id: int, tokenizer: Tokenizer) -> str:
    """A token with its id."""
    return f"{visible(tokenizer.token_bytes(id))} (id {id})"


def check_min_p(answer: Answer, logits: Scores) -> str:
    """Exercise 3: whether min-p `answer` in llama.cpp keeps what min-p `MIN_P` keeps in transformers, both at T `HOT`.

    >>> check_min_p(0.5, np.log([0.5, 0.3, 0.15, 0.05]))
    "Not yet: at temperature 1.5 llama.cpp's order keeps 2 tokens with min-p 0.5, transformers' order 4 with min-p 0.1."
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if not 0 <= answer <= 1:
        return "Not yet: min-p is a number in [0, 1]."
    there = _kept(logits, "transformers", MIN_P)
    here = _kept(logits, "llama.cpp", answer)
    if here == there:
        return f"Right: both engines keep the same {len(there)} tokens."
    return (
        f"Not yet: at temperature {HOT:g} llama.cpp's order keeps {len(here)} tokens with min-p {answer:g}, "
        f"transformers' order {len(there)} with min-p {MIN_P:g}."
    )


def _kept(logits: Scores, engine: str, min_p: int | float) -> set[int]:
    """The ids that can be drawn with this min-p at temperature `HOT` in the order of an engine."""
    probs = distribution(logits, SamplingParams(temperature=HOT, min_p=min_p, order=ORDERS[engine]))
    return set(np.flatnonzero(probs).tolist())


def min_p_before_temperature() -> float:
    """After division by T, ``p >= m * p_max`` reads ``exp((z - z_max) / T) >= m``: before it, that is m to the T."""
    return MIN_P**HOT
