"""Stage 5: logits -> logits: bias, penalties and bans, before anything becomes a probability.

Every function takes the scores of one position and returns new ones; the input is never changed.
An entry of ``-inf`` (a token already removed) stays ``-inf`` under all of them.
All act on token ids: a ban on `` cat`` leaves ``cat``, `` Cat`` and `` c`` + ``at`` open.

| function | history it reads | effect on a token that was seen c times |
|---|---|---|
| `logit_bias` | none | adds a chosen number |
| `repetition_penalty` | prompt and output | divides a positive logit, multiplies a negative one, once |
| `frequency_penalty` | output | subtracts c times the penalty |
| `presence_penalty` | output | subtracts the penalty once |
| `no_repeat_ngram` | prompt and output | removes what would complete an n-gram again |
| `ban`, `allow_only` | none | removes chosen ids, or all others |

Left out: biases and bans on sequences of tokens, and windows on the history (llama.cpp penalises the last 64 tokens,
mlx-lm the last 20; pass the part of the history that should count).

Chapter: ``08_interventions``.
Source: repetition penalty: Keskar et al. (2019), arXiv:1909.05858, section 4.1, with the rule for negative logits from
transformers ``generation/logits_process.py``, ``RepetitionPenaltyLogitsProcessor``; presence and frequency: vLLM
``model_executor/layers/utils.py``, ``apply_penalties``; n-grams: Paulus et al. (2017), arXiv:1705.04304, section 2.5,
and transformers ``NoRepeatNGramLogitsProcessor``.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Float64, Int

Logits = Float[np.ndarray, " vocab_size"]
NewLogits = Float64[np.ndarray, " vocab_size"]


def check_ids(ids: Iterable[int], vocab_size: int, name: str) -> Int[np.ndarray, " n"]:
    """Return ``ids`` as an array, each in ``[0, vocab_size)``: NumPy would let -1 mean the last token.

    Raises
    ------
    ValueError
        An id is negative or not below ``vocab_size``.

    Examples
    --------
    >>> check_ids([0, 2], 3, "banned_ids")
    array([0, 2])
    """
    array = np.fromiter(ids, dtype=np.int64)
    wrong = array[(array < 0) | (array >= vocab_size)]
    if wrong.size:
        raise ValueError(f"{name} must hold ids in [0, {vocab_size}), got {int(wrong[0])}")
    return array


def logit_bias(logits: Logits, bias: Mapping[int, float]) -> NewLogits:
    """Add a number to chosen logits: ``z_i + b_i``.

    Adding b multiplies the odds of the token by ``exp(b)``, whatever the other tokens are.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    bias : mapping
        Token id -> number to add, in logits.

    Raises
    ------
    ValueError
        An id outside the vocabulary.

    Examples
    --------
    >>> logit_bias(np.array([1.0, 2.0, 3.0]), {0: 5.0})
    array([6., 2., 3.])
    """
    biased = np.array(logits, dtype=np.float64)
    biased[check_ids(bias, biased.size, "logit_bias")] += np.fromiter(bias.values(), dtype=np.float64)
    return biased


def repetition_penalty(logits: Logits, ids: Sequence[int], penalty: float) -> NewLogits:
    """Lower every token that was seen, once however often: ``z / penalty`` if ``z > 0``, else ``z * penalty``.

    Dividing a negative logit would raise it, and reward the repetition.
    The rule depends on where zero is, which softmax doesn't: a constant added to all logits changes what it does.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    ids : sequence of int
        Prompt and output so far.
    penalty : float
        Greater than 0; 1 changes nothing, below 1 rewards repetition.

    Raises
    ------
    ValueError
        ``penalty`` is not greater than 0; an id outside the vocabulary.

    Examples
    --------
    >>> repetition_penalty(np.array([3.0, -1.0, 2.0]), [0, 1, 1], 2.0)
    array([ 1.5, -2. ,  2. ])
    """
    if not penalty > 0:
        raise ValueError(f"repetition_penalty must be > 0, got {penalty}")
    penalised = np.array(logits, dtype=np.float64)
    seen = np.unique(check_ids(ids, penalised.size, "ids"))
    score = penalised[seen]
    penalised[seen] = np.where(score > 0, score / penalty, score * penalty)
    return penalised


def frequency_penalty(logits: Logits, output_ids: Sequence[int], penalty: float) -> NewLogits:
    """Lower each token by how often it was generated: ``z_i - penalty * count_i``.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    output_ids : sequence of int
        The tokens generated so far, without the prompt.
    penalty : float
        In logits an occurrence; negative rewards repetition.

    Raises
    ------
    ValueError
        An id outside the vocabulary.

    Examples
    --------
    >>> frequency_penalty(np.zeros(3), [0, 0, 2], 0.5)
    array([-1. ,  0. , -0.5])
    """
    penalised = np.array(logits, dtype=np.float64)
    seen, count = np.unique(check_ids(output_ids, penalised.size, "output_ids"), return_counts=True)
    penalised[seen] -= penalty * count
    return penalised


def presence_penalty(logits: Logits, output_ids: Sequence[int], penalty: float) -> NewLogits:
    """Lower each token that was generated at all: ``z_i - penalty * [count_i > 0]``.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    output_ids : sequence of int
        The tokens generated so far, without the prompt.
    penalty : float
        In logits; negative rewards repetition.

    Raises
    ------
    ValueError
        An id outside the vocabulary.

    Examples
    --------
    >>> presence_penalty(np.zeros(3), [0, 0, 2], 0.5)
    array([-0.5,  0. , -0.5])
    """
    penalised = np.array(logits, dtype=np.float64)
    penalised[np.unique(check_ids(output_ids, penalised.size, "output_ids"))] -= penalty
    return penalised


def ngram_completions(ids: Sequence[int], size: int) -> set[int]:
    """Return the ids that would complete an n-gram that ``ids`` already holds.

    The last ``size - 1`` ids are the beginning of the next n-gram; every earlier place where they stand together
    was followed by an id that would repeat it.

    Parameters
    ----------
    ids : sequence of int
        Prompt and output so far.
    size : int
        n, at least 1; n = 1 gives every id seen.

    Raises
    ------
    ValueError
        ``size`` is below 1.

    Examples
    --------
    >>> ngram_completions([0, 1, 0, 1], 2)
    {0}
    """
    if size < 1:
        raise ValueError(f"size must be >= 1, got {size}")
    ids = list(ids)
    starts = range(len(ids) - size + 1)
    beginning = ids[len(ids) - size + 1 :]
    return {ids[start + size - 1] for start in starts if ids[start : start + size - 1] == beginning}


def no_repeat_ngram(logits: Logits, ids: Sequence[int], size: int) -> NewLogits:
    """Remove every token that would make the text repeat an n-gram: ``z_i = -inf`` for `ngram_completions`.

    Parameters
    ----------
    logits : array [vocab_size]
        Scores of one position.
    ids : sequence of int
        Prompt and output so far.
    size : int
        n, at least 1.

    Raises
    ------
    ValueError
        ``size`` is below 1; an id outside the vocabulary.

    Examples
    --------
    >>> no_repeat_ngram(np.zeros(3), [0, 1, 0, 1], 2)
    array([-inf,   0.,   0.])
    """
    return ban(logits, check_ids(ngram_completions(ids, size), logits.size, "ids").tolist())


def ban(logits: Logits, ids: Iterable[int]) -> NewLogits:
    """Remove chosen tokens: ``z_i = -inf``, which no later operator can undo.

    Raises
    ------
    ValueError
        An id outside the vocabulary.

    Examples
    --------
    >>> ban(np.zeros(3), [1])
    array([  0., -inf,   0.])
    """
    left = np.array(logits, dtype=np.float64)
    left[check_ids(ids, left.size, "banned_ids")] = -np.inf
    return left


def allow_only(logits: Logits, ids: Iterable[int]) -> NewLogits:
    """Remove all tokens but the chosen ones: the idea behind structured output.

    A grammar, a schema or a list of words comes down to this at each step: the set of ids that may come next.

    Raises
    ------
    ValueError
        An id outside the vocabulary.

    Examples
    --------
    >>> allow_only(np.zeros(3), [1])
    array([-inf,   0., -inf])
    """
    left = np.full(logits.size, -np.inf)
    allowed = check_ids(ids, left.size, "ids")
    left[allowed] = logits[allowed]
    return left
