"""The data of the interactive part ``temperature_explorer``: a few questions, and what each token's odds are at each T.

A probability at T depends on all 49,152 logits. The slider has few stops, so the probabilities themselves are stored,
for the likeliest tokens and the right one: no arithmetic is left to the page.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from llm_internals.figures.labels import visible

TEMPERATURES = tuple(step / 20 for step in range(41))
"""The stops of the slider: from 0, greedy decoding, to 2."""
DECIMALS = 4
"""One more than the page shows."""


def explorer_question(
    prompt: str, pieces: Sequence[str | bytes], right: int, place: int, probs: Float[np.ndarray, "temperatures tokens"]
) -> dict[str, Any]:
    """One question for the explorer, as plain JSON.

    Parameters
    ----------
    prompt : str
        What the reader chooses it by.
    pieces : sequence of str or bytes
        The tokens that get a row: the likeliest ones, in order, with the right one at its place or at the end.
    right : int
        Which of them is right.
    place : int
        The right token's place among all tokens, 1 for the likeliest; it is the same at every temperature.
    probs : array [temperatures, tokens]
        The probability of each of them at each of `TEMPERATURES`.

    Raises
    ------
    ValueError
        If ``probs`` has another shape.

    Examples
    --------
    >>> entry = explorer_question("1 + 1 =", [" 2"], right=0, place=1, probs=np.ones((41, 1)))
    >>> entry["tokens"], entry["place"], entry["probs"][0][:3]
    (['␣2'], 1, [1.0, 1.0, 1.0])
    """
    if probs.shape != (len(TEMPERATURES), len(pieces)):
        raise ValueError(f"probs must have the shape {(len(TEMPERATURES), len(pieces))}, but has {probs.shape}")
    return {
        "prompt": prompt,
        "tokens": [visible(piece) for piece in pieces],
        "right": right,
        "place": place,
        "probs": np.round(probs.T, DECIMALS).tolist(),
    }


def explorer_data(
    questions: Sequence[dict[str, Any]],
    sampled: Float[np.ndarray, " temperatures"],
    confidence: Float[np.ndarray, " temperatures"],
    greedy: int,
    asked: int,
) -> dict[str, Any]:
    """What the explorer takes: its questions, and for all questions that were asked the means at each temperature.

    Parameters
    ----------
    questions : sequence of dict
        From `explorer_question`; the first is shown first.
    sampled, confidence : array [temperatures]
        The mean probability of the right token, and of the likeliest one.
    greedy, asked : int
        How many questions greedy decoding gets right, of how many.

    Examples
    --------
    >>> data = explorer_data([], np.full(41, 0.5), np.full(41, 0.7), greedy=3, asked=4)
    >>> data["temperatures"][-1], data["all"]["greedy"], data["all"]["sampled"][0]
    (2.0, 3, 0.5)
    """
    return {
        "temperatures": list(TEMPERATURES),
        "questions": list(questions),
        "all": {
            "asked": asked,
            "greedy": greedy,
            "sampled": np.round(sampled, DECIMALS).tolist(),
            "confidence": np.round(confidence, DECIMALS).tolist(),
        },
    }
