"""The data of the interactive part ``sampling_explorer``: the logits of a whole vocabulary in a few kilobytes.

What can be drawn at a high temperature depends on all 49,152 logits, so none may be left out; written one by one they
would be larger than the rest of the page. So the largest keep four decimals, and of the others, rounded to
`STEP`, it is counted how many have each value.

That moves a probability by less than 0.001 at every temperature from 0.05 to 2, an entropy by less than 0.01 nats, and
the number of tokens that top-p keeps by less than one in a thousand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from llm_internals.figures.labels import visible

NEUTRAL = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}
"""What has a slider, and where it changes nothing."""
HEAD = 1000
"""How many of the largest logits are written one by one."""
DECIMALS = 4
"""Their digits after the point: their own rounding is no coarser than the difference between two CPUs."""
STEP = 0.01
"""To what the other logits are rounded."""


def explorer_entry(
    name: str, logits: Float[np.ndarray, " vocab_size"], pieces: Sequence[str | bytes]
) -> dict[str, Any]:
    """One prompt for the explorer, as plain JSON.

    Parameters
    ----------
    name : str
        What the reader chooses it by.
    logits : array [vocab_size]
        The scores of the next token, all finite.
    pieces : sequence of str or bytes
        The text of the likeliest tokens, in the order of their logits: those that get a row of their own.

    Returns
    -------
    dict
        ``head``, the largest logits, in descending order; ``counts``, how many of the others are
        ``level * step``, ``(level - 1) * step``, and so on.

    Raises
    ------
    ValueError
        If a logit is not finite.

    Examples
    --------
    >>> entry = explorer_entry("three", np.array([1.0, 3.0, 2.0]), [" b", " c", " a"])
    >>> entry["head"], entry["counts"], entry["tokens"]
    ([3.0, 2.0, 1.0], [], ['␣b', '␣c', '␣a'])
    """
    if not np.isfinite(logits).all():
        raise ValueError("logits must be finite")
    ranked = np.sort(np.asarray(logits, dtype=np.float64))[::-1]
    head = np.round(ranked[:HEAD], DECIMALS)
    # Rounded up, the first of the tail would stand above the last of the head.
    levels = np.minimum(np.rint(ranked[HEAD:] / STEP), np.floor(head[-1] / STEP)).astype(int)
    level = int(levels[0]) if levels.size else 0
    return {
        "name": name,
        "tokens": [visible(piece) for piece in pieces],
        "head": head.tolist(),
        "step": STEP,
        "level": level,
        "counts": np.bincount(level - levels).tolist(),
    }


def explorer_logits(entry: dict[str, Any]) -> Float64[np.ndarray, " vocab_size"]:
    """The logits that the explorer computes with, in descending order: the id of a token here is its rank.

    Examples
    --------
    >>> explorer_logits({"head": [3.0], "step": 0.5, "level": 4, "counts": [1, 0, 2]})
    array([3., 2., 1., 1.])
    """
    levels = entry["level"] - np.arange(len(entry["counts"]))
    return np.concatenate([entry["head"], np.repeat(levels * entry["step"], entry["counts"])])


def explorer_data(
    entries: Sequence[Mapping[str, Any]], orders: Mapping[str, Sequence[str]], **start: int | float
) -> dict[str, Any]:
    """What the explorer takes: the prompts, the orders without the operators that it lacks, and where to begin.

    Parameters
    ----------
    entries : sequence of mappings
        From `explorer_entry`; the first is shown first.
    orders : mapping
        Engine -> its operators, first to last, as in ``sampling.ORDERS``; the first is shown first.
    **start : number
        ``temperature``, ``top_k``, ``top_p`` or ``min_p``, where they begin; off by default.

    Examples
    --------
    >>> explorer_data([{"name": "x"}], {"e": ("logit_bias", "top_p", "temperature")}, top_p=0.9)["orders"]
    {'e': ['top_p', 'temperature']}
    """
    return {
        "prompts": list(entries),
        "orders": {engine: [name for name in order if name in NEUTRAL] for engine, order in orders.items()},
        "start": {"prompt": entries[0]["name"], "order": next(iter(orders)), **NEUTRAL, **start},
    }
