"""The exercises of chapter 11: each solution passes its check, and plausible wrong answers are told what is wrong."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.dequantize import dequantize
from llm_internals.exercises import four_bits as exercises

CHECKS = [exercises.check_block, exercises.check_speed_limit, exercises.check_levels]


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Thirty-two numbers from twenty bytes


def test_the_decoder_passes_its_check() -> None:
    assert exercises.check_block(exercises.decode_q4_1).startswith("Right")


@given(st.floats(-4, 4, width=16), st.floats(-4, 4, width=16), st.binary(min_size=16, max_size=16))
def test_the_decoder_is_the_package_s(d: float, m: float, integers: bytes) -> None:
    block = struct.pack("<ee", d, m) + integers
    by_package = dequantize(np.frombuffer(block, dtype=np.uint8).reshape(1, 20), "Q4_1")[0]
    np.testing.assert_allclose(exercises.decode_q4_1(block), by_package, rtol=1e-6, atol=1e-6)


def parts(block: bytes) -> tuple[float, float, list[int], list[int]]:
    d, m = struct.unpack("<ee", block[:4])
    return d, m, [byte & 15 for byte in block[4:]], [byte >> 4 for byte in block[4:]]


def neighbours(block: bytes) -> list[float]:
    """Takes the two halves of a byte for neighbours."""
    d, m, low, high = parts(block)
    return [d * q + m for pair in zip(low, high, strict=True) for q in pair]


def exchanged(block: bytes) -> list[float]:
    """Puts the high halves first."""
    d, m, low, high = parts(block)
    return [d * q + m for q in high + low]


def without_minimum(block: bytes) -> list[float]:
    d, _, low, high = parts(block)
    return [d * q for q in low + high]


def minimum_first(block: bytes) -> list[float]:
    d, m, low, high = parts(block)
    return [m * q + d for q in low + high]


def as_q4_0(block: bytes) -> list[float]:
    d, _, low, high = parts(block)
    return [d * (q - 8) for q in low + high]


def one_off(block: bytes) -> list[float]:
    """Reads the bytes from the fourth on."""
    d, m, *_ = parts(block)
    return [d * (byte & 15) + m for byte in block[3:19]] + [d * (byte >> 4) + m for byte in block[3:19]]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (neighbours, "the order is wrong"),
        (exchanged, "low and high halves are exchanged"),
        (without_minimum, "the minimum is missing"),
        (minimum_first, "are taken for each other"),
        (as_q4_0, "Q4_0 counts from -8"),
        (one_off, "number 0 of the block"),
        (lambda block: list(block[4:]), "the function returns 16"),
    ],
)
def test_another_decoder_is_told_its_mistake(wrong, reason: str) -> None:
    told = exercises.check_block(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 2. The fastest possible


def test_the_limit_is_bandwidth_by_bytes() -> None:
    assert exercises.speed_limit() == pytest.approx(60 / 4.5)
    for answer in (exercises.speed_limit(), 13.3):
        assert exercises.check_speed_limit(answer).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (7.5, "if each weight took a byte"),
        (60 / 36, "bytes instead of bits"),
        (1.875, "in float32"),
        (3.75, "in bfloat16"),
        (15, "without the scales"),
        (0.075, "as seconds a token"),
        (100, "reading all weights 100 times a second"),
    ],
)
def test_another_speed_is_told_when_it_would_be_right(wrong: float, reason: str) -> None:
    told = exercises.check_speed_limit(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. Better levels


def test_better_levels_cut_the_outlier_off_and_pass_their_check() -> None:
    d, m = exercises.better_levels()
    group, importance = exercises.group_with_importance()
    assert exercises.check_levels((d, m)).startswith("Right")
    assert np.sort(group)[-2] < m + 15 * d < group.max()
    assert importance[group.argmax()] == importance.min()


def test_the_weighed_error_is_worked_out_term_by_term() -> None:
    group, importance = exercises.group_with_importance()
    levels = np.array([-1 + 0.2 * k for k in range(16)])
    nearest = levels[np.abs(group[:, None] - levels).argmin(axis=1)]
    assert exercises.weighed_error(0.2, -1.0) == pytest.approx(np.mean(importance * (nearest - group) ** 2))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ((0, -1), "the step must be above 0"),
        ((-0.1, 1), "the step must be above 0, but is -0.1"),
        ((1.0, -1.0), "times that of minimum and maximum"),
        (exercises.extreme_levels(), "the error falls to 100%"),
        ((0.2, -1.0), "less than 50% is possible"),
    ],
)
def test_other_levels_are_told_what_they_do(wrong: tuple[float, float], reason: str) -> None:
    told = exercises.check_levels(wrong)
    assert told.startswith("Not yet")
    assert reason in told
