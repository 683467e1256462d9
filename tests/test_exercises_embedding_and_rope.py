"""The exercises of chapter 02: each solution passes its check, and plausible wrong answers are told what is wrong."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.exercises import embedding_and_rope as exercises
from llm_internals.rope import Rotation, rope_frequencies, rotate, rotation

CHECKS = [exercises.check_move, exercises.check_clock, exercises.check_base]
ROUNDING = 2e-5
"""Two turns of 64 random numbers in float32, against one."""


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check):
    assert check(None).startswith("No answer yet:")


# 1. Move a key


def test_the_turn_back_passes_its_check():
    assert exercises.check_move(exercises.move).startswith("Right")


@given(st.integers(0, 8191), st.data())
def test_a_moved_key_is_the_key_of_the_lower_position(start, data):
    shift = data.draw(st.integers(0, start))
    key = exercises.some_key(start)
    moved = exercises.move(exercises.turned(key, start), shift)
    torch.testing.assert_close(moved, exercises.turned(key, start - shift), rtol=0, atol=ROUNDING)


def interleaved(key, shift):
    """Turns neighbours, number 2i with 2i + 1, back."""
    order = torch.arange(64).view(32, 2).T.reshape(-1)
    return exercises.move(key[order], shift)[order.argsort()]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda key, shift: key, "yours still lies as at position 5"),
        (exercises.turned, "yours lies as at position 7"),
        (lambda key, shift: 2 * exercises.move(key, shift), "a turn keeps the length"),
        (interleaved, "which numbers of a head form a pair?"),
        (lambda key, shift: key[:32], "a tensor of shape (64,)"),
        (lambda key, shift: key.numpy(), "a tensor of shape (64,)"),
    ],
)
def test_another_move_is_told_where_the_key_lies(wrong, reason):
    told = exercises.check_move(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 2. Read the clock


def test_the_search_through_all_positions_passes_its_check():
    assert exercises.check_clock(exercises.read_position).startswith("Right")


@given(st.integers(0, 8191))
def test_a_position_is_read_from_a_float16_key_anywhere_in_the_context(position):
    key = exercises.some_key(position)
    assert exercises.read_position(key, exercises.turned(key, position).half().float()) == position


def one_hand(pair):
    """Reads the position from the angle of one pair, as if it had gone round less than once."""

    def read(key, turned):
        before = torch.atan2(key[pair + 32], key[pair])
        after = torch.atan2(turned[pair + 32], turned[pair])
        angle = float((after - before) % (2 * math.pi))
        return round(angle / float(rope_frequencies(64, exercises.THETA)[pair]))

    return read


def test_the_fastest_hand_alone_forgets_how_often_it_went_round():
    key = exercises.some_key(1)
    assert one_hand(0)(key, exercises.turned(key, 5)) == one_hand(0)(key, exercises.turned(key, 5 + 710)) == 5
    assert exercises.check_clock(one_hand(0)).startswith("Not yet: a key from position")


def test_the_slowest_hand_alone_is_too_coarse_for_float16():
    assert exercises.check_clock(one_hand(31)).startswith("Not yet: a key from position")


# 3. A longer context


def test_the_longer_base_passes_its_check_rounded_or_not():
    base = exercises.longer_base()
    assert exercises.check_base(base).startswith("Right")
    assert exercises.check_base(round(base, -4)).startswith("Right"), "one per cent is near enough"


def test_with_the_longer_base_the_slowest_pair_ends_where_it_ended_before():
    now = exercises.CONTEXT * rope_frequencies(64, exercises.THETA)[-1]
    longer = exercises.LONGER * rope_frequencies(64, exercises.longer_base())[-1]
    assert float(longer) == pytest.approx(float(now), rel=1e-12)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (400_000, "the exponent of the slowest pair isn't quite -1"),
        (100_000, "turns by 0.4696 radians in 32,768 positions"),
        (25_000, "the slowest pair turns by"),
        (1_600_000, "the slowest pair turns by"),
        (-1, "a base is positive"),
    ],
)
def test_another_base_is_told_how_far_the_slowest_pair_turns(wrong, reason):
    told = exercises.check_base(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert "418" not in told


def test_the_exercises_turn_keys_as_the_model_does(lm):
    """The constants are the model's, and a turned key is a row of `rot_k`."""
    config = lm.config
    assert config.head_dim == exercises.HEAD_DIM
    assert config.rope_theta == exercises.THETA
    assert config.max_position_embeddings == exercises.CONTEXT
    key = exercises.some_key(0)
    turns = rotation(torch.arange(9), config.head_dim, config.rope_theta)
    assert torch.equal(rotate(key.expand(1, 9, -1), Rotation(*turns))[0, 8], exercises.turned(key, 8))
