"""The exercises of chapter 07: each solution passes its check, and plausible wrong answers are told what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.exercises import generation_loop as exercises
from llm_internals.exercises.generation_loop import EIGHT_BILLION, accepted, crossing, to_compute

CHECKS = [exercises.check_crossing, exercises.check_reuse, exercises.check_accept]
IDS = st.lists(st.integers(0, 2), max_size=6)


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Where attention overtakes


def test_the_crossing_passes_its_check() -> None:
    """By hand: 32 blocks of 218,103,808 numbers, an output matrix of 525,336,576, and 262,144 a position."""
    by_hand = (32 * 218_103_808 + 525_336_576) / 262_144
    assert crossing(EIGHT_BILLION) == pytest.approx(by_hand)
    assert exercises.check_crossing(by_hand).startswith("Right")
    assert exercises.check_crossing(28_600).startswith("Right"), "three digits will do"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (114_508, "every query head"),
        (57_254, "another one with its value"),
        (26_624, "also multiplies with the output matrix"),
        (894.6, "the blocks all attend"),
        (3_891, "attention takes less than everything else"),
        (200_000, "attention takes more than everything else"),
    ],
)
def test_another_number_of_positions_is_told_what_it_is(wrong: float, reason: str) -> None:
    told = exercises.check_crossing(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert "28" not in told


# 2. What a cache spares


def test_the_rule_for_a_kept_cache_passes_its_check() -> None:
    assert exercises.check_reuse(to_compute).startswith("Right")


@given(cached=IDS, prompt=IDS.filter(bool))
def test_what_is_kept_is_in_the_cache_and_something_is_always_computed(cached: list[int], prompt: list[int]) -> None:
    computed = to_compute(cached, prompt)
    kept = prompt[: len(prompt) - len(computed)]
    assert computed
    assert kept == cached[: len(kept)]
    assert kept + computed == prompt


def everything_that_is_new(cached: list[int], prompt: list[int]) -> list[int]:
    """Compares position by position, and computes only those that differ."""
    return [id for index, id in enumerate(prompt) if cached[index : index + 1] != [id]]


def prefix_and_nothing_more(cached: list[int], prompt: list[int]) -> list[int]:
    """The right rule without the last position."""
    return prompt[exercises.common_prefix(cached, prompt) :]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda cached, prompt: prompt, "it returns [1, 2, 3, 4, 5]: the cache holds the beginning"),
        (lambda cached, prompt: prompt[len(cached) :], "another token at the last position"),
        (everything_that_is_new, "depend on everything before them"),
        (prefix_and_nothing_more, "the cache holds more than the prompt"),
        (lambda cached, prompt: [id for id in prompt if id not in cached] or prompt[-1:], "depend on everything"),
    ],
)
def test_another_rule_is_told_where_it_fails(wrong, reason: str) -> None:
    told = exercises.check_reuse(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. What a guess is worth


def test_the_rule_for_guesses_passes_its_check() -> None:
    assert exercises.check_accept(accepted).startswith("Right")


@given(text=st.lists(st.integers(0, 3), min_size=7, max_size=7), draft=IDS)
def test_what_is_written_is_what_the_model_would_have_written_token_by_token(text: list[int], draft: list[int]):
    """The model's choice after a beginning is the next token of `text` while that agrees, and a 9 elsewhere."""
    choices = [text[n] if draft[:n] == text[:n] else 9 for n in range(len(draft) + 1)]
    written = accepted(draft, choices)
    assert written == text[: len(written)]
    assert 1 <= len(written) <= len(draft) + 1


def agreeing_ones(draft: list[int], choices: list[int]) -> list[int]:
    """All guesses that the model agrees with, wherever they stand, and the last choice."""
    return [guess for guess, choice in zip(draft, choices, strict=False) if guess == choice] + choices[-1:]


def up_to_the_first_difference(draft: list[int], choices: list[int]) -> list[int]:
    """Only the guesses."""
    return draft[: exercises.common_prefix(draft, choices)]


def the_last_guess_again(draft: list[int], choices: list[int]) -> list[int]:
    """The right rule, if any guess is wrong."""
    return accepted(draft, choices) if draft != choices[:-1] else draft + draft[-1:]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (up_to_the_first_difference, "has told one more token"),
        (lambda draft, choices: choices, "up to the first one that the model would have written differently"),
        (agreeing_ones, "it returns [5, 6, 8]: a token counts up to the first"),
        (lambda draft, choices: [*draft, choices[-1]], "up to the first one"),
        (the_last_guess_again, "the model has also said what follows the last guess"),
    ],
)
def test_another_rule_for_guesses_is_told_where_it_fails(wrong, reason: str) -> None:
    told = exercises.check_accept(wrong)
    assert told.startswith("Not yet")
    assert reason in told
