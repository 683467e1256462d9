"""Stage 5: the logits of one position -> the distribution that the next token is drawn from -> one id.

The settings of `SamplingParams` act one after another, each on the logits that the one before it left.
A removed token has logit ``-inf``, so each truncation sees the renormalised survivors of the one before.
The default order (``params.order`` changes it):

    logits -> bias, penalties, bans -> temperature -> top-k -> top-p -> min-p -> typical -> softmax -> draw

All of it is NumPy in float64, so that the same logits and the same random number give the same token everywhere.
Left out: batches (one position at a time), and sampling on a GPU, where engines use float32 and unstable sorts.

Chapter: ``05_sampling``, ``08_interventions``.
Source: temperature: Ackley, Hinton and Sejnowski (1985), "A learning algorithm for Boltzmann machines", section 2; the
chain: transformers ``generation/utils.py``, ``_get_logits_processor`` and ``_sample``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from llm_internals import processors
from llm_internals.drawing import Draw, draw, draw_bin, gumbel_max
from llm_internals.sampling_params import ORDERS, SamplingParams
from llm_internals.scores import Scores, as_logits, log_softmax, softmax
from llm_internals.truncation import Mask, min_p_mask, top_k_mask, top_p_mask, typical_mask

__all__ = [
    "ORDERS",
    "Draw",
    "OperatorRecord",
    "SamplingParams",
    "account",
    "distribution",
    "draw",
    "draw_bin",
    "gumbel_max",
    "left_logits",
    "log_softmax",
    "min_p_mask",
    "softmax",
    "temperature",
    "top_k_mask",
    "top_p_mask",
    "typical_mask",
]

Logits = Float64[np.ndarray, " vocab_size"]


def distribution(
    logits: Scores, params: SamplingParams, prompt_ids: Sequence[int] = (), output_ids: Sequence[int] = ()
) -> Float64[np.ndarray, " vocab_size"]:
    """Return the probability of each token under ``params``: softmax of what the operators leave.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of the last position, float32 as the model gives them or wider; ``-inf`` is a token that can't be drawn.
    params : SamplingParams
        The settings and their order.
    prompt_ids, output_ids : sequence of int
        The tokens before this one: repetition penalty and n-gram bans read both, the other penalties the output.

    Returns
    -------
    float64 probabilities that sum to 1; 0 for what was removed.

    Raises
    ------
    ValueError
        Logits that aren't a vector of numbers, or hold ``NaN`` or ``+inf``; an id outside the vocabulary; nothing left
        to sample.

    Examples
    --------
    >>> distribution([3.0, 2.0, 1.0], SamplingParams(temperature=0.5, top_p=0.9)).round(3)
    array([0.881, 0.119, 0.   ])
    """
    return _probabilities(left_logits(logits, params, prompt_ids, output_ids))


def left_logits(
    logits: Scores, params: SamplingParams, prompt_ids: Sequence[int] = (), output_ids: Sequence[int] = ()
) -> Logits:
    """Return what the operators leave of the logits, before softmax; ``-inf`` for what was removed.

    Parameters and errors are those of :func:`distribution`.

    >>> left_logits([3.0, 2.0, 1.0], SamplingParams(temperature=0.5, top_k=2))
    array([  6.,   4., -inf])
    """
    left = as_logits(logits)
    for operator in _applied(left, params, prompt_ids, output_ids):
        left = operator.logits
    return left


@dataclass(frozen=True, eq=False)
class OperatorRecord:
    """What one operator got, kept and removed.

    Attributes
    ----------
    name, setting
        The operator and the value of its setting.
    active
        Whether it could change anything; an inactive operator passes on what it got.
    candidates, kept
        Ids that could be drawn before and after it, ascending.
    before, after
        The distribution over the vocabulary before and after it, renormalised.
    """

    name: str
    setting: object
    active: bool
    candidates: Int[np.ndarray, " n_candidates"]
    kept: Int[np.ndarray, " n_kept"]
    before: Float64[np.ndarray, " vocab_size"]
    after: Float64[np.ndarray, " vocab_size"]

    @property
    def removed(self) -> Int[np.ndarray, " n_removed"]:
        """The ids that it removed, ascending."""
        return np.setdiff1d(self.candidates, self.kept, assume_unique=True)

    @property
    def removed_mass(self) -> float:
        """The probability, before it, of what it removed."""
        return float(self.before[self.removed].sum())


def account(
    logits: Scores, params: SamplingParams, prompt_ids: Sequence[int] = (), output_ids: Sequence[int] = ()
) -> list[OperatorRecord]:
    """Return how `distribution` came about: a record for each operator, in the order in which they acted.

    The last record's ``after`` is the distribution. Parameters and errors are those of `distribution`.

    Examples
    --------
    >>> for record in account([3.0, 2.0, 1.0], SamplingParams(temperature=0.5, top_p=0.8)):
    ...     if record.active:
    ...         print(record.name, record.setting, record.kept, round(record.removed_mass, 3))
    temperature 0.5 [0 1 2] 0.0
    top_p 0.8 [0] 0.133
    """
    logits = as_logits(logits)
    candidates, before = _alive(logits), _probabilities(logits)
    records = []
    for name, active, left in _applied(logits, params, prompt_ids, output_ids):
        kept, after = (_alive(left), _probabilities(left)) if active else (candidates, before)
        records.append(OperatorRecord(name, getattr(params, name), active, candidates, kept, before, after))
        candidates, before = kept, after
    return records


def temperature(logits: Logits, t: float) -> Logits:
    """Divide the logits by T: ``z_i / T``, so that odds are raised to the power 1/T.

    T = 1 is the model's own distribution, T < 1 sharpens it, T > 1 flattens it; the ranking never changes.
    T = 0 has no quotient: it keeps the largest logit alone, the lowest id among equals. But for ties that is the limit.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    t : float
        At least 0.

    Raises
    ------
    ValueError
        ``t`` is negative or ``NaN``.

    Examples
    --------
    >>> temperature(np.array([3.0, 2.0, 1.0]), 0.5)
    array([6., 4., 2.])
    >>> temperature(np.array([2.0, 3.0, 3.0]), 0.0)
    array([-inf,   3., -inf])
    """
    if not t >= 0:
        raise ValueError(f"temperature must be >= 0, got {t}")
    if t == 0:
        return processors.allow_only(logits, [int(logits.argmax())])
    with np.errstate(over="ignore"):
        scaled = logits / t
        # A quotient beyond float64 is taken from the maximum instead: a constant for all tokens changes no probability.
        return scaled if np.isfinite(scaled.max()) else (logits - logits.max()) / t


class _Applied(NamedTuple):
    name: str
    active: bool
    logits: Logits


def _applied(
    logits: Logits, params: SamplingParams, prompt_ids: Sequence[int], output_ids: Sequence[int]
) -> Iterator[_Applied]:
    """Run the operators one by one. Temperature 0 acts last wherever it stands: the argmax of what the others leave."""
    order = params.order
    if params.temperature == 0:
        order = (*(name for name in order if name != "temperature"), "temperature")
    for name in order:
        active = params.is_active(name)
        if active:
            changed = _apply(name, getattr(params, name), logits, prompt_ids, output_ids)
            logits = as_logits(changed, f"logits after {name}")
        yield _Applied(name, active, logits)


def _apply(name: str, setting, logits: Logits, prompt_ids: Sequence[int], output_ids: Sequence[int]) -> Logits:
    """Apply one operator: which parameter of an API is which line of code."""
    match name:
        case "logit_bias":
            return processors.logit_bias(logits, setting)
        case "repetition_penalty":
            return processors.repetition_penalty(logits, [*prompt_ids, *output_ids], setting)
        case "frequency_penalty":
            return processors.frequency_penalty(logits, output_ids, setting)
        case "presence_penalty":
            return processors.presence_penalty(logits, output_ids, setting)
        case "no_repeat_ngram_size":
            return processors.no_repeat_ngram(logits, [*prompt_ids, *output_ids], setting)
        case "banned_ids":
            return processors.ban(logits, setting)
        case "temperature":
            return temperature(logits, setting)
        case "top_k":
            return _truncate(logits, lambda left: top_k_mask(left, setting))
        case "top_p":
            return _truncate(logits, lambda left: top_p_mask(softmax(left), setting))
        case "min_p":
            return _truncate(logits, lambda left: min_p_mask(softmax(left), setting))
        case "typical_p":
            return _truncate(logits, lambda left: typical_mask(softmax(left), setting))


def _truncate(logits: Logits, keep: Callable[[np.ndarray], Mask]) -> Logits:
    """Let a rule see only the tokens that are left, in id order, and remove what it doesn't keep."""
    if logits.min() > -np.inf:
        return np.where(keep(logits), logits, -np.inf)
    alive = _alive(logits)
    kept = alive[keep(logits[alive])]
    truncated = np.full(logits.size, -np.inf)
    truncated[kept] = logits[kept]
    return truncated


def _alive(logits: Logits) -> Int[np.ndarray, " n"]:
    return np.flatnonzero(logits > -np.inf)


def _probabilities(logits: Logits) -> Float64[np.ndarray, " vocab_size"]:
    """Softmax over the tokens that are left, 0 for the others: a few survivors cost a few exponentials, not 49,152."""
    if logits.min() > -np.inf:
        return softmax(logits)
    alive = _alive(logits)
    probs = np.zeros(logits.size)
    probs[alive] = softmax(logits[alive])
    return probs
