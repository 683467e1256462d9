"""The exercises of ``02_embedding_and_rope``: a key that moves, a position read off a key, a base for a longer text."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from llm_internals.rope import rope_frequencies, rotate, rotation

HEAD_DIM, THETA, CONTEXT = 64, 100_000.0, 8192
"""The head's width, the base and the context of the book's model."""
LONGER = 4 * CONTEXT
"""Exercise 3: the context that is wanted."""

Key = Float[Tensor, " head_dim"]
Move = Callable[[Key, int], Key]
Clock = Callable[[Key, Key], int]

MOVES = ((5, 2), (700, 1), (3000, 2999), (8191, 100))
"""Exercise 1: where a key stood, and by how many positions it moves down."""
POSITIONS = (0, 1, 6, 44, 355, 710, 4097, 8191)
"""Exercise 2: some at which the fastest pair stands nearly where it began, and the last one."""
CLOSE = 1e-3
"""Exercise 1: a turn in float32 is a thousand times better than this."""


def turned(key: Key, position: int) -> Key:
    """A key as it lies in the cache when its token stands at `position`."""
    return rotate(key[None, None], rotation(torch.tensor([position]), len(key), THETA))[0, 0]


def some_key(seed: int) -> Key:
    """A key of random numbers, not turned yet."""
    return torch.randn(HEAD_DIM, generator=torch.Generator().manual_seed(seed))


def check_move(answer: Move | None) -> str:
    """Exercise 1: whether a function moves a turned key to a lower position.

    >>> check_move(lambda key, shift: key)
    'Not yet: a key from position 5, moved down by 2, should lie as at position 3; yours still lies as at position 5.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of a key and a shift."
    for seed, (start, shift) in enumerate(MOVES):
        key = some_key(seed)
        moved = answer(turned(key, start), shift)
        if not isinstance(moved, Tensor) or moved.shape != key.shape:
            return f"Not yet: the function must return a tensor of shape ({HEAD_DIM},)."
        if (moved - turned(key, start - shift)).norm() > CLOSE:
            return (
                f"Not yet: a key from position {start}, moved down by {shift}, should lie as at position "
                f"{start - shift}; {_where(key, moved, start, shift)}."
            )
    return "Right: two turns make one turn, so the key needn't be computed again."


def _where(key: Key, moved: Key, start: int, shift: int) -> str:
    """What a wrong move did, in words."""
    for position, still in ((start, "still "), (start + shift, ""), (shift, ""), (0, "")):
        if (moved - turned(key, position)).norm() < CLOSE:
            return f"yours {still}lies as at position {position}"
    if not math.isclose(float(moved.norm()), float(key.norm()), rel_tol=CLOSE):
        return "yours has another length, and a turn keeps the length"
    return "yours lies as at no position: which numbers of a head form a pair?"


def move(key: Key, shift: int) -> Key:
    """Turn by the angle of -shift positions: angles add up, so start - shift remains."""
    back = rotation(torch.tensor([-shift]), len(key), THETA)
    return rotate(key[None, None], back)[0, 0]


def check_clock(answer: Clock | None) -> str:
    """Exercise 2: whether a function reads the position off a key, given as it was and as it lies in a float16 cache.

    >>> check_clock(lambda key, turned: 0)
    'Not yet: a key from position 1 is read as position 0.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of two keys."
    for seed, position in enumerate(POSITIONS):
        key = some_key(100 + seed)
        read = answer(key, turned(key, position).half().float())
        if read != position:
            return f"Not yet: a key from position {position} is read as position {read}."
    return "Right: the fast pairs tell the small differences, and the slow pairs how often the fast ones went round."


def read_position(key: Key, turned: Key) -> int:
    """Turn the key by every position of the context, and see which result lies nearest."""
    everywhere = rotation(torch.arange(CONTEXT), HEAD_DIM, THETA)
    candidates = rotate(key.expand(1, CONTEXT, HEAD_DIM), everywhere)[0]
    return int((candidates - turned).norm(dim=-1).argmin())


def check_base(answer: int | float | None) -> str:
    """Exercise 3: whether with this base the slowest pair turns as far in the longer context as now in the shorter one.

    >>> check_base(100_000)
    'Not yet: with this base the slowest pair turns by 0.4696 radians in 32,768 positions; in 8,192 now by 0.1174.'
    """
    if answer is None:
        return "No answer yet: set answer to a number."
    if answer <= 0:
        return "Not yet: a base is positive."
    wanted, angle = _slowest(THETA, CONTEXT), _slowest(answer, LONGER)
    if math.isclose(answer, THETA * LONGER / CONTEXT, rel_tol=1e-3):
        return "Not yet, though close: the exponent of the slowest pair isn't quite -1."
    if not math.isclose(angle, wanted, rel_tol=1e-2):
        return (
            f"Not yet: with this base the slowest pair turns by {angle:.4f} radians in {LONGER:,} positions; "
            f"in {CONTEXT:,} now by {wanted:.4f}."
        )
    return "Right: the slowest pair never leaves the angles that it has seen, and the fastest turns as before."


def _slowest(theta: int | float, positions: int) -> float:
    """By how many radians the slowest pair turns in so many positions."""
    return positions * float(rope_frequencies(HEAD_DIM, float(theta))[-1])


def longer_base() -> float:
    """theta ** (-62/64) must become 4 times smaller; so theta is multiplied by 4 to the power of 64/62."""
    return THETA * (LONGER / CONTEXT) ** (HEAD_DIM / (HEAD_DIM - 2))
