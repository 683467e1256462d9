"""Scores and probabilities: what a vector may hold, softmax, and the ranking that all of stage 5 shares."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.scores import as_logits, as_probs, as_vector, largest, log_softmax, softmax

ROUNDING = 1e-15
"""One float64 division and one sum of a few terms."""

small_scores = st.lists(st.floats(-50, 50), min_size=1, max_size=30)


def test_softmax_of_three_scores_by_hand():
    e = math.e
    assert softmax([2.0, 1.0, 0.0]) == pytest.approx(
        [e * e / (e * e + e + 1), e / (e * e + e + 1), 1 / (e * e + e + 1)]
    )


@given(small_scores, st.integers(-1000, 1000))
def test_softmax_sums_to_one_and_a_constant_changes_nothing(scores, constant):
    probs = softmax(scores)
    assert probs.sum() == pytest.approx(1, abs=ROUNDING * len(scores))
    shifted = [score + constant for score in scores]
    assert softmax(shifted) == pytest.approx(probs, abs=1e-12)  # the shift itself rounds at 1e-13


@given(small_scores)
def test_softmax_and_its_logarithm_agree_with_torch(scores):
    tensor = torch.tensor(scores, dtype=torch.float64)
    assert softmax(tensor) == pytest.approx(tensor.softmax(0).numpy(), abs=ROUNDING)
    assert log_softmax(scores) == pytest.approx(tensor.log_softmax(0).numpy(), abs=1e-13)


def test_softmax_is_stable_for_scores_that_overflow_exp():
    assert softmax([1e38, -1e38, 0.0]).tolist() == [1, 0, 0]
    assert softmax([3.4028235e38] * 2).tolist() == [0.5, 0.5]
    assert softmax([1.7e308, -1.7e308]).tolist() == [1, 0]
    assert log_softmax([0.0, -5000.0]).tolist() == [0, -5000]


def test_a_score_of_minus_infinity_has_probability_zero():
    assert softmax([0.0, -math.inf, 1.0]).tolist()[1] == 0
    assert log_softmax([0.0, -math.inf])[1] == -math.inf


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=300), st.integers(0, 301))
def test_largest_is_the_beginning_of_the_stable_sort_by_score_then_id(scores, n):
    by_hand = sorted(range(len(scores)), key=lambda token: (-scores[token], token))[:n]
    assert largest(np.array(scores, dtype=np.float64), n).tolist() == by_hand


@pytest.mark.parametrize(
    "values",
    [
        torch.tensor([0.1, 0.2], dtype=torch.float32, requires_grad=True),
        torch.tensor([0.1, 0.2], dtype=torch.bfloat16),
        np.array([0.1, 0.2], dtype=np.float16),
        [1, 2],
    ],
    ids=["float32 with gradient", "bfloat16", "float16", "integers"],
)
def test_every_kind_of_number_is_widened_without_rounding(values):
    exact = [Fraction(float(getattr(value, "detach", lambda v=value: v)())) for value in values]
    assert [Fraction(float(value)) for value in as_vector(values, "logits")] == exact


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"logits must have one dimension .* got shape \(0,\)"),
        ([[1.0, 2.0]], r"logits must have one dimension .* got shape \(1, 2\)"),
        (np.array(1.0), r"logits must have one dimension .* got shape \(\)"),
        (["a"], "logits must hold real numbers .* got dtype <U1"),
        ([True, False], "logits must hold real numbers .* got dtype bool"),
        ([1j], "logits must hold real numbers .* got dtype complex128"),
        ([0.0, math.nan], "logits must be finite or -inf, got nan at id 1"),
        ([0.0, math.inf], "logits must be finite or -inf, got inf at id 1"),
        ([-math.inf] * 2, "logits must leave at least one token above -inf: nothing is left to sample"),
    ],
)
def test_logits_that_cannot_be_sampled_from_raise_and_say_why(values, message):
    with pytest.raises(ValueError, match=message):
        as_logits(values)


@pytest.mark.parametrize("values", [[0.5, -0.1], [math.nan, 1.0], [math.inf, 0.0], [0.0, 0.0]])
def test_weights_that_are_no_probabilities_raise(values):
    with pytest.raises(ValueError, match="probs must"):
        as_probs(values)


def test_the_input_is_never_written_to():
    logits = np.array([1.0, 2.0])
    logits.flags.writeable = False
    softmax(logits), log_softmax(logits), largest(logits, 1)
    assert logits.tolist() == [1, 2]
