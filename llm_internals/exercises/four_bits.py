"""The exercises of ``11_four_bits``: a block decoded, a limit on speed, and a better choice of levels."""

import math
import struct
from collections.abc import Callable, Sequence

import numpy as np

BLOCKS = (
    bytes.fromhex("003800c4" + "f0" * 16),
    bytes.fromhex("0034" + "00bc" + "0123456789abcdeffedcba9876543210"),
    bytes.fromhex("004200c8" + "1032547698badcfe00112233445566f7"),
)
"""Exercise 1: Q4_1 blocks."""

PARAMETERS, BITS, BYTES_A_SECOND = 8e9, 4.5, 60e9
"""Exercise 2: a model, the bits of a weight in it, and the memory that it is read from."""

HALF = 16
"""Bytes of integers in a block; the first and the second half of its numbers are as many."""
LEVELS = 16
OUTLIER = 9
MIN_GAIN = 0.5
"""Exercise 3: by how much the weighed error has to fall, as a share of what minimum and maximum give."""

Decode = Callable[[bytes], Sequence[float]]


def group_with_importance() -> tuple[np.ndarray, np.ndarray]:
    """Exercise 3: 32 weights of which one is far out, and how much the square of each one's error counts."""
    group, importance = np.sin(np.arange(1.0, 33.0) * 1.7), np.ones(32)
    group[OUTLIER], importance[OUTLIER] = 2.4, 0.01
    return group, importance


def decode_q4_1(block: bytes) -> list[float]:
    """Two numbers of 16 bits, then the low halves of 16 bytes, and after all of them the high halves."""
    d, m = struct.unpack("<ee", block[:4])
    integers = [byte % 16 for byte in block[4:]] + [byte // 16 for byte in block[4:]]
    return [d * q + m for q in integers]


def check_block(answer: Decode | None) -> str:
    """Exercise 1: whether a function turns the 20 bytes of a Q4_1 block into its 32 numbers.

    >>> check_block(lambda block: [0.0] * 16)
    'Not yet: a block holds 32 numbers, and the function returns 16.'
    """
    if answer is None:
        return "No answer yet: set answer_1 to a function of 20 bytes."
    for block in BLOCKS:
        result = np.array(list(answer(block)), dtype=np.float64)
        if result.shape != (2 * HALF,):
            return f"Not yet: a block holds 32 numbers, and the function returns {result.size}."
        if complaint := _complaint_about(result, block):
            return f"Not yet: {complaint}."
    return "Right: scale, minimum and all 32 integers are where they belong."


def _complaint_about(result: np.ndarray, block: bytes) -> str | None:
    """What is wrong with the numbers of one block, by comparing them with what known mistakes give."""
    right = np.array(decode_q4_1(block))
    if np.allclose(result, right, rtol=1e-6):
        return None
    d, m = struct.unpack("<ee", block[:4])
    low, high = right[:HALF], right[HALF:]
    mistakes = {
        "the order is wrong: first come the low halves of all bytes, then the high halves": (
            np.column_stack([low, high]).ravel(),
            np.column_stack([high, low]).ravel(),
        ),
        "low and high halves are exchanged": (np.concatenate([high, low]),),
        "the minimum is missing": (right - m,),
        "the first two numbers of the block are taken for each other": ((right - m) / d * m + d,),
        "Q4_0 counts from -8, Q4_1 doesn't: it has a minimum of its own": (right - m - 8 * d, right - 8 * d),
    }
    for text, wrong in mistakes.items():
        if any(np.allclose(result, numbers, rtol=1e-6) for numbers in wrong):
            return text
    place = int(np.argmax(~np.isclose(result, right, rtol=1e-6)))
    return f"number {place} of the block {block.hex()} is {right[place]:g}, and the function says {result[place]:g}"


def check_speed_limit(answer: int | float | None) -> str:
    """Exercise 2: whether `answer` is the most tokens a second that the memory allows.

    >>> check_speed_limit(60 / 8)
    'Not yet: 7.5 would be right if each weight took a byte.'
    """
    if answer is None:
        return "No answer yet: set answer_2 to a number of tokens a second."
    mistakes = {
        BYTES_A_SECOND / PARAMETERS: "if each weight took a byte",
        BYTES_A_SECOND / (PARAMETERS * BITS): f"if each weight took {BITS:g} bytes instead of bits",
        BYTES_A_SECOND / (PARAMETERS * 4): "in float32",
        BYTES_A_SECOND / (PARAMETERS * 2): "in bfloat16",
        BYTES_A_SECOND / (PARAMETERS / 2): "without the scales, with 4 bits a weight",
        1 / speed_limit(): "as seconds a token",
    }
    if math.isclose(answer, speed_limit(), rel_tol=0.01):
        return "Right: no engine is faster on this memory, one token after the other."
    for wrong, reason in mistakes.items():
        if math.isclose(answer, wrong, rel_tol=0.01):
            return f"Not yet: {answer:g} would be right {reason}."
    return f"Not yet: reading all weights {answer:g} times a second isn't what this memory can do at most."


def speed_limit() -> float:
    """Bytes a second, divided by the bytes of all weights: each token needs all of them."""
    return BYTES_A_SECOND / (PARAMETERS * BITS / 8)


def weighed_error(d: float, m: float) -> float:
    """The squared errors of the group on the levels m, m + d, ..., m + 15 d, weighed by importance, as a mean."""
    group, importance = group_with_importance()
    k = np.clip(np.rint((group - m) / d), 0, LEVELS - 1)
    return float(np.mean(importance * (k * d + m - group) ** 2))


def extreme_levels() -> tuple[float, float]:
    """Step and minimum that the smallest and the largest weight give."""
    group, _ = group_with_importance()
    return float(np.ptp(group)) / (LEVELS - 1), float(group.min())


def check_levels(answer: Sequence[int | float] | None) -> str:
    """Exercise 3: whether a step and a minimum give a much smaller weighed error than the extremes of the group.

    >>> check_levels((0.0, 1.0))
    'Not yet: the step must be above 0, but is 0.'
    """
    if answer is None:
        return "No answer yet: set answer_3 to a step and a minimum."
    d, m = (float(number) for number in answer)
    if not d > 0:
        return f"Not yet: the step must be above 0, but is {d:g}."
    ratio = weighed_error(d, m) / weighed_error(*extreme_levels())
    if ratio > 1:
        return f"Not yet: the error is {ratio:.2f} times that of minimum and maximum."
    if ratio > 1 - MIN_GAIN:
        return f"Not yet: the error falls to {ratio:.0%}, and less than {1 - MIN_GAIN:.0%} is possible."
    return f"Right: the error falls to {ratio:.0%} of what minimum and maximum give."


def better_levels() -> tuple[float, float]:
    """Try ranges that end inside the group: weights beyond them are cut off, and all others get finer levels."""
    group, _ = group_with_importance()
    tops = np.linspace(group.max() / 4, group.max(), 100)
    bottoms = np.linspace(group.min(), group.min() / 4, 20)
    tried = [((top - bottom) / (LEVELS - 1), bottom) for top in tops for bottom in bottoms]
    return min(tried, key=lambda levels: weighed_error(*levels))
