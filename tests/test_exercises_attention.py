"""The exercises of chapter 03a: each solution passes its check, and plausible wrong answers are told what is wrong."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.attention import causal_mask
from llm_internals.checkpoint import LanguageModel
from llm_internals.exercises import attention as exercises
from tools.attention_map_data import patterns


@pytest.mark.parametrize("check", [exercises.check_window, exercises.check_cache_size])
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. A mask with a horizon


def test_the_window_passes_its_check() -> None:
    assert exercises.check_window(exercises.window_mask).startswith("Right")


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 30))
def test_a_position_sees_itself_and_as_many_before_it_as_the_window_holds(seq: int, cached: int, window: int) -> None:
    mask = exercises.window_mask(seq, cached + seq, window)
    for row, position in enumerate(range(cached, cached + seq)):
        assert mask[row].nonzero().flatten().tolist() == list(range(max(0, position - window + 1), position + 1))


def top_left(seq: int, kv_seq: int, window: int) -> torch.Tensor:
    """Right without a cache, and wrong with one."""
    square = torch.ones(seq, kv_seq, dtype=torch.bool)
    return square.tril() & ~square.tril(diagonal=-window)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda seq, kv_seq, window: causal_mask(seq, kv_seq), "position 2 should see 1 to 2, but sees 0 to 2"),
        (
            lambda seq, kv_seq, window: exercises.window_mask(seq, kv_seq, window + 1),
            "window 2, position 2 should see 1 to 2, but sees 0 to 2",
        ),
        (top_left, "with seq 1, kv_seq 6 and window 3, position 5 should see 3 to 5, but sees 0 alone"),
        (
            lambda seq, kv_seq, window: ~exercises.window_mask(seq, kv_seq, window),
            "position 0 should see 0 alone, but sees 1 to 3",
        ),
        (
            lambda seq, kv_seq, window: exercises.window_mask(seq, kv_seq, window) & causal_mask(seq, kv_seq).fliplr(),
            "position 0 should see 0 alone, but sees nothing",
        ),
        (lambda seq, kv_seq, window: exercises.window_mask(seq, kv_seq, window).int(), "the mask must be bool [4, 4]"),
        (lambda seq, kv_seq, window: exercises.window_mask(seq, seq, window), "bool [1, 6], but is torch.bool [1, 1]"),
    ],
)
def test_another_mask_is_told_which_position_sees_what(wrong, reason: str) -> None:
    told = exercises.check_window(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 2. What a token costs to remember


def test_the_size_of_the_cache_passes_its_check() -> None:
    assert exercises.cache_size() == (131_072, 4)
    assert exercises.check_cache_size((131_072, 4)).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ((65_536, 4), "are half of it"),
        ((524_288, 4), "if every query head had a key and a value of its own"),
        ((4_096, 4), "are one layer's"),
        ((262_144, 4), "too many by a factor of two"),
        ((1_000, 2), "are not what the sizes multiply to"),
        ((131_072, 8), "sharing doesn't save a factor of 8"),
    ],
)
def test_other_sizes_are_told_what_they_are(wrong: tuple[int, int], reason: str) -> None:
    told = exercises.check_cache_size(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert "131,072" not in told


# 3. The head that finds the same word


@pytest.fixture(scope="module")
def found(lm: LanguageModel) -> np.ndarray:
    """All patterns of the model on the twelve words, twice."""
    return patterns(lm, exercises.TWELVE_WORDS * 2)


def test_each_of_the_twelve_words_is_one_token(lm: LanguageModel) -> None:
    ids = lm.tokenizer.encode(exercises.TWELVE_WORDS * 2)
    assert len(set(ids)) == 12
    assert ids[:12] == ids[12:]


def test_the_head_that_finds_the_same_word_passes_its_check_with_room_to_spare(found: np.ndarray) -> None:
    answer = exercises.same_token_head(found, period=12)
    assert exercises.check_same_token_head(answer, found, 12).startswith("Right")
    shares = np.sort(found.diagonal(-12, axis1=-2, axis2=-1).mean(axis=-1), axis=None)
    assert shares[-1] - shares[-2] > 0.02


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (None, "No answer yet"),
        ((18, 6), "to the token after the earlier copy"),
        ((16, 0), "to the token before"),
        ((9, 2), "and another head gives more"),
        ((30, 0), "there are blocks 0 to 29 and heads 0 to 8"),
        ((3, 14), "there are blocks 0 to 29 and heads 0 to 8"),
    ],
)
def test_another_head_is_told_where_it_looks(wrong: tuple[int, int] | None, reason: str, found: np.ndarray) -> None:
    told = exercises.check_same_token_head(wrong, found, 12)
    assert not told.startswith("Right")
    assert reason in told
    assert "14" not in told or wrong == (3, 14)
