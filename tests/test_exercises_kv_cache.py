"""The exercises of chapter 03c: each solution passes its check, and plausible wrong answers are told what is wrong."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.exercises import kv_cache as exercises
from llm_internals.kv_cache import common_prefix
from llm_internals.rope import Rotation, rotate

CHECKS = [exercises.check_chats, exercises.check_best_cache, exercises.check_close_gap]
IDS = st.lists(st.integers(0, 2), max_size=6)


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Chats on a server


def test_seven_chats_fit_and_pass_their_check() -> None:
    assert exercises.chats_that_fit() == 7
    assert exercises.check_chats(exercises.chats_that_fit()).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (1, "if every query head had a key and a value of its own"),
        (14, "if keys alone were kept"),
        (3, "if each number took four bytes"),
        (22, "if the weights took no room"),
        (7.4, "7.4 is no number of chats"),
        (60, "more than fit"),
        (0, "fewer than fit"),
    ],
)
def test_other_numbers_of_chats_are_told_what_they_forgot(wrong: float, reason: str) -> None:
    told = exercises.check_chats(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert " 7 " not in told


# 2. Which cache to go on with


def test_the_cache_with_the_longest_common_prefix_passes_its_check() -> None:
    assert exercises.check_best_cache(exercises.best_cache).startswith("Right")


@given(st.lists(IDS, min_size=1, max_size=4), st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_no_other_choice_leaves_less_to_compute_and_one_position_is_always_left(held, prompt) -> None:
    index, kept = exercises.best_cache(held, prompt)
    assert held[index][:kept] == prompt[:kept]
    assert 0 <= kept < len(prompt)
    assert all(min(common_prefix(ids, prompt), len(prompt) - 1) <= kept for ids in held)


def longest(held, prompt):
    """The cache that holds most, as far as it agrees."""
    index = max(range(len(held)), key=lambda i: len(held[i]))
    return index, min(common_prefix(held[index], prompt), len(prompt) - 1)


def most_equal(held, prompt):
    """The cache with most of the prompt's ids, wherever they stand."""
    counts = [len(set(ids) & set(prompt)) for ids in held]
    index = counts.index(max(counts))
    return index, min(counts[index], len(prompt) - 1)


def whole_prompt(held, prompt):
    """Keeps everything that agrees, the last position of the prompt too."""
    index, _ = exercises.best_cache(held, prompt)
    return index, common_prefix(held[index], prompt)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (longest, "prompt [1, 2, 3, 4, 5, 6], cache 0 with 4 positions kept leaves more to compute"),
        (most_equal, "prompt [1, 2, 3, 4, 5], cache 0 has another id at position 0"),
        (whole_prompt, "prompt [1, 2, 3], no position is left to compute"),
        (lambda held, prompt: (0, 0), "leaves more to compute than need be"),
        (lambda held, prompt: (1, 4), "has another id at position 3"),
        (lambda held, prompt: (2, 0), "there is no cache 2"),
        (lambda held, prompt: (0, -1), "-1 positions can't be kept"),
        (lambda held, prompt: 1, "1 is no pair"),
    ],
)
def test_another_choice_is_told_for_which_request_it_fails(wrong, reason: str) -> None:
    told = exercises.check_best_cache(wrong)
    assert told.startswith("Not yet")
    assert reason in told


def test_a_cache_that_is_used_up_is_told_from_one_that_differs() -> None:
    told = exercises.check_best_cache(lambda held, prompt: (len(held) - 1, len(prompt) - 1))
    assert "cache 1 has another id at position 1" in told
    assert exercises._wrong_choice([[1, 2]], [1, 2, 3, 4], (0, 3)) == "cache 0 ends at position 2"


# 3. A gap that is closed


def test_turning_back_by_the_gap_passes_its_check() -> None:
    assert exercises.check_close_gap(exercises.close_gap).startswith("Right")


@given(st.integers(0, 5), st.integers(0, 6), st.floats(-3, 3))
def test_a_closed_gap_leaves_the_keys_of_a_shorter_text(start: int, length: int, angle: float) -> None:
    end = min(start + length, len(exercises.UNTURNED))
    keys = exercises.turned(exercises.UNTURNED, np.arange(6), angle)
    left = np.delete(exercises.UNTURNED, range(start, end))
    expected = exercises.turned(left, np.arange(len(left)), angle)
    np.testing.assert_allclose(exercises.close_gap(keys, start, end, angle), expected, atol=1e-12)


def test_a_turn_by_a_complex_number_is_the_rotation_of_the_model() -> None:
    angle, place = 0.7, torch.tensor([5])
    by = Rotation(torch.cos(place * angle)[:, None], torch.sin(place * angle)[:, None])
    x = torch.tensor([[[1.5, -0.5]]])
    key = exercises.turned(np.array([1.5 - 0.5j]), np.array([5]), angle)[0]
    assert rotate(x, by)[0, 0].tolist() == pytest.approx([key.real, key.imag])


def forward_turn(keys, start, end, angle):
    """Turns what moves in the wrong direction."""
    return np.concatenate([keys[:start], keys[end:] * np.exp(1j * angle * (end - start))])


def all_turned(keys, start, end, angle):
    """Turns the keys before the gap as well."""
    return np.delete(keys, range(start, end)) * np.exp(-1j * angle * (end - start))


def by_one(keys, start, end, angle):
    """Turns by one position, however wide the gap is."""
    return np.concatenate([keys[:start], keys[end:] * np.exp(-1j * angle)])


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda keys, start, end, angle: np.delete(keys, range(start, end)), "position 2 is turned as for position 3"),
        (forward_turn, "the key that moves to position 2 is turned as for position 4"),
        (all_turned, "the key that stays at position 0 is turned as for position -1"),
        (by_one, "with positions 1 to 3 thrown out, the key that moves to position 1 is turned as for position 3"),
        (lambda keys, start, end, angle: keys, "5 keys stay, but the shape of the result is (6,)"),
        (lambda keys, start, end, angle: 0 * keys[: 6 + start - end], "stays at position 0 is another vector"),
    ],
)
def test_another_way_is_told_which_key_is_wrong(wrong, reason: str) -> None:
    told = exercises.check_close_gap(wrong)
    assert told.startswith("Not yet")
    assert reason in told
