"""The exercises of ``04_logits``: two models in one unit, a sum in one pass, a token that never comes first."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

MODELS = {"A": (20.0, 4.2), "B": (12.0, 3.1)}
"""Exercise 1: each model's perplexity on one text, and how many bytes of the text a token of its vocabulary spells."""

LogSumExp = Callable[[Iterator[float]], float]
Vector = Sequence[int | float]

STREAMS = (
    (3.0, 1.0, 0.0, -2.0),
    (7.0,),
    (1000.0, 1000.0),
    (-1000.0, -1001.0, -1003.0),
    (5.0, 800.0, 3.0, 801.0),
    (2.0, -math.inf, 2.5),
)
"""Exercise 2: scores that arrive one at a time; some overflow, some underflow, one is ruled out."""
TOLERANCE = 1e-9
"""Exercise 2: float64 sums of a few terms agree far better than this."""


def check_bits_a_byte(answer: tuple[str, int | float] | None) -> str:
    """Exercise 1: whether `answer` names the better model and its bits a byte.

    >>> check_bits_a_byte(("A", 4.32))
    'Not yet: 4.32 bits are what a token of model A costs, and a token spells several bytes.'
    """
    if answer is None:
        return "No answer yet: set answer to a name and a number."
    name, bits = answer
    if name not in MODELS:
        return f"Not yet: the models are called {' and '.join(MODELS)}, and none is called {name!r}."
    perplexity, size = MODELS[name]
    if math.isclose(bits, math.log2(perplexity), rel_tol=5e-3):
        return f"Not yet: {bits:g} bits are what a token of model {name} costs, and a token spells several bytes."
    if math.isclose(bits, math.log(perplexity) / size, rel_tol=1e-2):
        return f"Not yet: {bits:g} is in nats a byte, with the natural logarithm."
    if not math.isclose(bits, math.log2(perplexity) / size, rel_tol=1e-2):
        return f"Not yet: model {name} doesn't need {bits:g} bits a byte."
    if name != better_model()[0]:
        return f"Not yet: the number of model {name} is right. Compare it with the other model's."
    return "Right: per byte of text, this model needs fewer bits."


def better_model() -> tuple[str, float]:
    """A token costs log2(perplexity) bits; divided by the bytes that it spells, both models have one unit."""
    bits = {name: math.log2(perplexity) / size for name, (perplexity, size) in MODELS.items()}
    best = min(bits, key=bits.__getitem__)
    return best, bits[best]


def check_one_pass(answer: LogSumExp | None) -> str:
    """Exercise 2: whether a function of an iterator of scores returns their log-sum-exp.

    >>> check_one_pass(lambda scores: max(scores))
    'Not yet: for the scores [3.0, 1.0, 0.0, -2.0] it returns 3, not 3.17552.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of an iterator of scores."
    for stream in STREAMS:
        if complaint := _complaint_about(answer, stream):
            return f"Not yet: for the scores {list(stream)} it {complaint}."
    return "Right: one look at each score, and no exponential above 1."


def _complaint_about(answer: LogSumExp, stream: Sequence[float]) -> str | None:
    """What is wrong with the function's result for one stream of scores."""
    expected = float(np.logaddexp.reduce(stream))
    try:
        result = answer(iter(stream))
    except (ArithmeticError, ValueError) as error:
        return f"raises {type(error).__name__} ({error}); an iterator can be read only once"
    if not math.isclose(result, expected, rel_tol=TOLERANCE):
        return f"returns {result:g}, not {expected:g}"
    return None


def log_sum_exp_in_one_pass(scores: Iterable[float]) -> float:
    """Keep the largest score so far and the sum relative to it; a new largest score rescales the sum."""
    top, total = -math.inf, 0.0
    for score in scores:
        if score > top:
            total = total * math.exp(top - score) + 1.0
            top = score
        elif score > -math.inf:
            total += math.exp(score - top)
    return top + math.log(total)


def check_never_first(answer: Sequence[Vector] | None) -> str:
    """Exercise 3: whether, of four vectors with two numbers each, the last never has the highest score alone.

    >>> check_never_first([(1, 0), (0, 1), (-1, 0), (0, -1)])
    'Not yet: for h = (0.00, -1.00) the last token wins with 1.00; the best of the others has 0.00.'
    """
    if answer is None:
        return "No answer yet: set answer to four vectors of two numbers each."
    vectors = np.array(answer, dtype=np.float64)
    if vectors.shape != (4, 2):
        return f"Not yet: four vectors of two numbers each have the shape (4, 2), and these have {vectors.shape}."
    if len(np.unique(vectors, axis=0)) < 4:
        return "Not yet: two of the vectors are equal, and equal vectors always get equal scores."
    for hidden in _directions(vectors):
        *others, last = vectors @ hidden
        if last > max(others) + 1e-12:
            direction = ", ".join(f"{number + 0.0:.2f}" for number in hidden.round(2))
            return (
                f"Not yet: for h = ({direction}) the last token wins with {last:.2f}; "
                f"the best of the others has {max(others):.2f}."
            )
    return "Right: whatever the hidden state is, another token's score is at least as high."


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Hidden states of which one lets the last vector win, if any does.

    Where it wins is a sector, bounded by directions in which it ties with another vector. So the middle between each
    tie and the next is enough.
    """
    gaps = vectors[-1] - vectors[:-1]
    normals = np.arctan2(gaps[:, 0], -gaps[:, 1])
    ties = np.unique(np.concatenate([normals, normals + np.pi]) % (2 * np.pi))
    middles = ties + (np.append(ties[1:], ties[0] + 2 * np.pi) - ties) / 2
    return np.column_stack([np.cos(middles), np.sin(middles)])


def never_first() -> list[tuple[float, float]]:
    """A triangle, and a token inside it: its score is a weighted mean of the others', so one of them is as high."""
    return [(1.0, 0.0), (-1.0, 1.0), (-1.0, -1.0), (0.0, 0.0)]
