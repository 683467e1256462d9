"""Stage 5: a score per token -> a probability per token, in float64.

Everything in stage 5 works on one vector over the vocabulary.
This module says what such a vector may hold and turns scores into probabilities.

A score of ``-inf`` is a token that can't be drawn any more; ``NaN`` and ``+inf`` are mistakes made earlier, and raise.
Left out: batches of several rows, and gradients (stage 4 has torch for those).

Chapter: ``04_logits`` (softmax), ``05_sampling`` (what is done with it).
Source: Goodfellow, Bengio and Courville (2016), *Deep Learning*, sections 4.1 (stable softmax) and 6.2.2.3 (softmax
units); the reference is ``torch.nn.functional``, ``softmax`` and ``log_softmax``.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from torch import Tensor, float64, from_numpy

Scores = np.ndarray | Tensor | Sequence
"""What callers may pass: an array, a tensor or a list of numbers, one per token; `as_vector` checks it."""


def as_vector(values: Scores, name: str) -> Float64[np.ndarray, " vocab_size"]:
    """Return ``values`` as a float64 vector, or say what is wrong with it.

    Parameters
    ----------
    values : array, tensor or sequence of numbers
        One number per token; float32, bfloat16 and integers are widened, which is exact.
    name : str
        The caller's name for the argument, for the message.

    Raises
    ------
    ValueError
        Not one-dimensional, empty, or not made of real numbers.

    Examples
    --------
    >>> as_vector([3, 2, 1], "logits")
    array([3., 2., 1.])
    """
    array = values.detach().to("cpu", float64).numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have one dimension [vocab_size] and at least one entry, got shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers (float or int), got dtype {array.dtype}")
    return array.astype(np.float64, copy=False)


def as_logits(values: Scores, name: str = "logits") -> Float64[np.ndarray, " vocab_size"]:
    """Return ``values`` as float64 logits from which at least one token can be drawn.

    One maximum finds all three mistakes: it is ``NaN`` or ``+inf`` if any entry is, and ``-inf`` only if all are.

    Raises
    ------
    ValueError
        As `as_vector`; an entry is ``NaN`` or ``+inf``; every entry is ``-inf``: nothing is left to sample.

    Examples
    --------
    >>> as_logits([0.0, float("-inf"), 1.0])
    array([  0., -inf,   1.])
    """
    logits = as_vector(values, name)
    top = logits.max()
    if np.isnan(top) or top == np.inf:
        raise ValueError(f"{name} must be finite or -inf, got {top} at id {int(logits.argmax())}")
    if top == -np.inf:
        raise ValueError(f"{name} must leave at least one token above -inf: nothing is left to sample")
    return logits


def as_probs(values: Scores, name: str = "probs") -> Float64[np.ndarray, " vocab_size"]:
    """Return ``values`` as float64 weights: none negative, infinite or ``NaN``, and not all zero.

    Their sum is not checked: rounding moves it, and what uses the weights divides by it or compares within it.

    Raises
    ------
    ValueError
        As `as_vector`; an entry is negative, infinite or ``NaN``; every entry is 0.

    Examples
    --------
    >>> as_probs([0.5, 0.5])
    array([0.5, 0.5])
    """
    probs = as_vector(values, name)
    low, high = probs.min(), probs.max()
    if not (low >= 0 and high < np.inf):
        raise ValueError(f"{name} must be probabilities, finite and >= 0, got values in [{low}, {high}]")
    if high == 0:
        raise ValueError(f"{name} must hold at least one positive probability, got only zeros")
    return probs


def softmax(logits: Scores) -> Float64[np.ndarray, " vocab_size"]:
    """Turn scores into probabilities: ``p_i = exp(z_i - max z) / sum_j exp(z_j - max z)``.

    Subtracting the maximum changes no probability, since the factor ``exp(-max z)`` cancels, and keeps ``exp`` below 1.

    Raises
    ------
    ValueError
        As `as_logits`.

    Examples
    --------
    >>> softmax([3.0, 2.0, 1.0]).round(3)
    array([0.665, 0.245, 0.09 ])
    """
    logits = as_logits(logits)
    with np.errstate(over="ignore"):
        weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def log_softmax(logits: Scores) -> Float64[np.ndarray, " vocab_size"]:
    """Return the logarithm of `softmax`: ``z_i - max z - log sum_j exp(z_j - max z)``, in nats.

    It stays finite where the probability itself is too small for a float.

    Raises
    ------
    ValueError
        As `as_logits`.

    Examples
    --------
    >>> log_softmax([0.0, -1000.0])
    array([    0., -1000.])
    """
    logits = as_logits(logits)
    with np.errstate(over="ignore"):
        shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def log_sum_exp(logits: Scores) -> float:
    """Return ``log sum_j exp(z_j)``, what `log_softmax` subtracts from every score.

    For one token's log-probability this number is enough. PyTorch computes it, since its exponential of float64 is
    vectorised on every processor.

    Raises
    ------
    ValueError
        As `as_logits`.

    Examples
    --------
    >>> round(log_sum_exp([1000.0, 1000.0]) - 1000, 6)
    0.693147
    """
    return float(from_numpy(as_logits(logits)).logsumexp(dim=0))


def largest(scores: Float64[np.ndarray, " vocab_size"], n: int) -> np.ndarray:
    """Return the ids of the ``n`` largest scores: the first ``n`` of the stable sort by ``(-score, id)``.

    A partition finds the n-th largest score in linear time, so only what reaches it is sorted.

    Examples
    --------
    >>> largest(np.array([1.0, 2.0, 2.0, 3.0]), 2)
    array([3, 1])
    """
    if n >= scores.size:
        return np.argsort(-scores, kind="stable")
    if n == 0:
        return np.empty(0, dtype=np.int64)
    nth = np.partition(scores, scores.size - n)[scores.size - n]
    reach = np.flatnonzero(scores >= nth)
    return reach[np.argsort(-scores[reach], kind="stable")[:n]]
