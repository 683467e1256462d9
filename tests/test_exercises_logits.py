"""The exercises of chapter 04: each solution passes its check, and plausible wrong answers are told what is wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.exercises import logits as exercises

CHECKS = [exercises.check_bits_a_byte, exercises.check_one_pass, exercises.check_never_first]
NUMBERS = st.floats(-1000, 1000)


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Two models in one unit


def test_the_better_model_passes_its_check_although_its_perplexity_is_higher() -> None:
    name, bits = exercises.better_model()
    assert (name, round(bits, 2)) == ("A", 1.03)
    assert exercises.check_bits_a_byte((name, bits)).startswith("Right")
    assert exercises.check_bits_a_byte((name, round(bits, 2))).startswith("Right"), "two decimals will do"
    assert exercises.MODELS["A"][0] > exercises.MODELS["B"][0]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (("B", 1.156), "the number of model B is right"),
        (("A", 4.32), "what a token of model A costs"),
        (("A", 0.713), "in nats a byte"),
        (("A", 20), "doesn't need 20 bits a byte"),
        (("A", 4.76), "doesn't need 4.76 bits a byte"),
        (("C", 1.0), "none is called 'C'"),
    ],
)
def test_other_models_and_numbers_are_told_what_they_are(wrong: tuple[str, float], reason: str) -> None:
    told = exercises.check_bits_a_byte(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert "1.03" not in told


# 2. A sum in one pass


def test_the_sum_in_one_pass_passes_its_check() -> None:
    assert exercises.check_one_pass(exercises.log_sum_exp_in_one_pass).startswith("Right")


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_the_sum_in_one_pass_is_numpy_s_sum_of_logarithms(scores: list[float]) -> None:
    expected = np.logaddexp.reduce(scores)
    assert exercises.log_sum_exp_in_one_pass(iter(scores)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def two_passes(scores) -> float:
    """The stable sum with the maximum first, which reads an iterator to its end before it adds."""
    top = max(scores)
    return top + math.log(sum(math.exp(score - top) for score in scores))


def first_as_reference(scores) -> float:
    """Subtracts the first score instead of the largest."""
    first = next(scores)
    return first + math.log(1 + sum(math.exp(score - first) for score in scores))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda scores: math.log(sum(math.exp(score) for score in scores)), "[1000.0, 1000.0] it raises OverflowError"),
        (two_passes, "an iterator can be read only once"),
        (first_as_reference, "[5.0, 800.0, 3.0, 801.0] it raises OverflowError"),
        (lambda scores: sum(math.exp(score) for score in scores), "not 3.17552"),
        (lambda scores: max(scores), "returns 3, not 3.17552"),
    ],
)
def test_another_sum_is_told_for_which_scores_it_fails(wrong, reason: str) -> None:
    told = exercises.check_one_pass(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. A token that never comes first


def test_the_token_inside_the_triangle_passes_its_check_and_never_wins() -> None:
    vectors = exercises.never_first()
    assert exercises.check_never_first(vectors).startswith("Right")
    angles = np.linspace(0, 2 * np.pi, 1000)
    scores = np.column_stack([np.cos(angles), np.sin(angles)]) @ np.array(vectors).T
    assert (scores[:, :3].max(axis=1) >= scores[:, 3]).all()


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=4, max_size=4, unique=True))
def test_the_verdict_agrees_with_a_search_of_all_directions(vectors: list[tuple[int, int]]) -> None:
    angles = np.arange(3600) * 2 * np.pi / 3600 + 1e-4
    scores = np.column_stack([np.cos(angles), np.sin(angles)]) @ np.array(vectors).T
    wins = bool((scores[:, 3] > scores[:, :3].max(axis=1) + 1e-9).any())
    assert exercises.check_never_first(vectors).startswith("Not yet" if wins else "Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ([(1, 0), (0, 1), (-1, 0), (0, -1)], "the last token wins with"),
        ([(5, 0), (0, 5), (-5, -5), (3, 3)], "the last token wins with"),
        ([(1, 0), (0, 1), (-1, -1), (1, 0)], "two of the vectors are equal"),
        ([(1, 0), (0, 1), (0, 0)], "these have (3, 2)"),
    ],
)
def test_another_set_of_vectors_is_told_where_the_last_wins(wrong: list[tuple[int, int]], reason: str) -> None:
    told = exercises.check_never_first(wrong)
    assert told.startswith("Not yet")
    assert reason in told
