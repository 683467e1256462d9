"""The exercises of ``03c_kv_cache``: how many chats fit a server, which cache to go on with, a gap that is closed."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Complex

from llm_internals.kv_cache import common_prefix

Number = int | float

MEMORY = 24_000_000_000
"""Exercise 1: bytes of the server's accelerator."""
PARAMETERS = 8_030_000_000
"""Exercise 1: of the model, two bytes each."""
LAYERS, HEADS, KV_HEADS, HEAD_DIM = 32, 32, 8, 128
"""Exercise 1: the model's shape, that of Llama 3 8B."""
CONTEXT = 8192
"""Exercise 1: tokens of each chat."""

Ids = Sequence[int]
ChooseCache = Callable[[list[list[int]], list[int]], tuple[int, int]]
CloseGap = Callable[[np.ndarray, int, int, float], np.ndarray]

REQUESTS: tuple[tuple[list[list[int]], list[int]], ...] = (
    ([[5, 6, 7], [5, 6, 8, 9]], [5, 6, 8, 1]),
    ([[1, 2, 3, 4, 9, 9, 9, 9], [1, 2, 3, 4, 5]], [1, 2, 3, 4, 5, 6]),
    ([[4, 3, 2, 1, 5], [1, 9]], [1, 2, 3, 4, 5]),
    ([[7, 7], [1, 2, 3]], [1, 2, 3]),
    ([[1, 2, 3, 4, 5, 6], [2]], [1, 2, 3]),
    ([[8], [9, 9]], [1, 2]),
)
"""Exercise 2: what several caches hold, and a prompt. The longest isn't the best, nor the one with most equal ids."""

UNTURNED = np.array([1.0 + 0.5j, -0.3 + 1.1j, 0.8 - 0.9j, -1.2 - 0.4j, 0.6 + 0.7j, 0.2 - 1.3j])
"""Exercise 3: keys of two numbers each, written as complex numbers, before any turn."""
GAPS = ((2, 3, 0.5), (1, 4, 0.7), (0, 2, 0.3), (4, 6, 0.9))
"""Exercise 3: the first position that is thrown out, the first behind it that stays, and the angle of one position."""
TOLERANCE = 1e-9
"""Exercise 3: far above the error of a few products in float64, far below the length of a key."""


def check_chats(answer: Number | None) -> str:
    """Exercise 1: whether `answer` is the number of chats whose caches fit beside the weights.

    >>> check_chats(3)
    'Not yet: 3 chats would fit if each number took four bytes; in bfloat16 it takes two.'
    """
    if answer is None:
        return "No answer yet: set answer to a number of chats."
    if answer != int(answer):
        return f"Not yet: {answer:g} is no number of chats: a chat fits or it doesn't."
    mistakes = {
        _fitting(heads=HEADS): "if every query head had a key and a value of its own; here several heads share them",
        _fitting(parts=1): "if keys alone were kept; values are kept as well",
        _fitting(width=4): "if each number took four bytes; in bfloat16 it takes two",
        _fitting(weights=0): "if the weights took no room",
    }
    if answer == _fitting():
        return "Right: the weights take two thirds of the memory, and each chat about a gigabyte of the rest."
    if answer in mistakes:
        return f"Not yet: {int(answer)} chats would fit {mistakes[int(answer)]}."
    word = "more" if answer > _fitting() else "fewer"
    return f"Not yet: {int(answer)} chats are {word} than fit; begin with the bytes of one token."


def _fitting(heads: int = KV_HEADS, parts: int = 2, width: int = 2, weights: int = 2 * PARAMETERS) -> int:
    """How many caches fit, under assumptions of which some are wrong."""
    return (MEMORY - weights) // (parts * LAYERS * heads * HEAD_DIM * width * CONTEXT)


def chats_that_fit() -> int:
    """Keys and values of all layers for one token, times the tokens of a chat; the weights come first."""
    bytes_a_token = 2 * LAYERS * KV_HEADS * HEAD_DIM * 2
    room = MEMORY - 2 * PARAMETERS
    return room // (bytes_a_token * CONTEXT)


def check_best_cache(answer: ChooseCache | None) -> str:
    """Exercise 2: whether a function of what the caches hold and of a prompt picks one and says how much of it to keep.

    >>> check_best_cache(lambda held, prompt: (0, len(prompt) - 1))
    'Not yet: for caches [[5, 6, 7], [5, 6, 8, 9]] and prompt [5, 6, 8, 1], cache 0 has another id at position 2.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of the caches' ids and the prompt."
    for held, prompt in REQUESTS:
        choice = answer([list(ids) for ids in held], list(prompt))
        if complaint := _wrong_choice(held, prompt, choice):
            return f"Not yet: for caches {held} and prompt {prompt}, {complaint}."
    return "Right: as little as possible is computed, and always at least one position."


def _wrong_choice(held: Sequence[Ids], prompt: Ids, choice: Any) -> str | None:
    """What is wrong with a choice of cache and of how many of its positions to keep."""
    try:
        index, kept = choice
    except (TypeError, ValueError):
        return f"{choice!r} is no pair of an index and a number of positions"
    if index not in range(len(held)):
        return f"there is no cache {index}"
    shared = common_prefix(held[index], prompt)
    if not 0 <= kept <= len(prompt):
        return f"{kept} positions can't be kept"
    if kept > shared:
        ended = shared == len(held[index])
        return f"cache {index} {'ends' if ended else 'has another id'} at position {shared}"
    if kept == len(prompt):
        return "no position is left to compute, and so no hidden state to take the next token from"
    if kept < min(max(common_prefix(ids, prompt) for ids in held), len(prompt) - 1):
        return f"cache {index} with {kept} positions kept leaves more to compute than need be"
    return None


def best_cache(held: Sequence[Ids], prompt: Ids) -> tuple[int, int]:
    """The cache that agrees with the prompt longest; the last position of the prompt is computed in any case."""
    shared = [common_prefix(ids, prompt) for ids in held]
    best = shared.index(max(shared))
    return best, min(shared[best], len(prompt) - 1)


def check_close_gap(answer: CloseGap | None) -> str:
    """Exercise 3: whether a function of turned keys, start, end and angle throws out a gap and closes it.

    >>> check_close_gap(lambda keys, start, end, angle: np.delete(keys, range(start, end)))
    'Not yet: with positions 2 to 2 thrown out, the key that moves to position 2 is turned as for position 3.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of keys, start, end and angle."
    for start, end, angle in GAPS:
        keys = turned(UNTURNED, np.arange(len(UNTURNED)), angle)
        closed = np.asarray(answer(keys.copy(), start, end, angle))
        if complaint := _wrong_keys(closed, start, end, angle):
            return f"Not yet: with positions {start} to {end - 1} thrown out, {complaint}."
    return "Right: each key that moves is turned back by as many positions as it moves, and no other key is touched."


def turned(keys: Complex[np.ndarray, " kv_seq"], positions: np.ndarray, angle: float) -> Complex[np.ndarray, " kv_seq"]:
    """Each key turned for its position: a product with a complex number of length 1."""
    return keys * np.exp(1j * angle * positions)


def _wrong_keys(closed: np.ndarray, start: int, end: int, angle: float) -> str | None:
    """The first key that isn't the one of its new position, and for which position it is turned, if for any."""
    left = np.delete(UNTURNED, range(start, end))
    if closed.shape != left.shape:
        return f"{len(left)} keys stay, but the shape of the result is {closed.shape}"
    expected = turned(left, np.arange(len(left)), angle)
    for place, key in enumerate(closed):
        if abs(key - expected[place]) > TOLERANCE:
            moved = "moves to" if place >= start else "stays at"
            turns = np.arange(-9, 15)
            fits = np.abs(key - turned(left[place].repeat(len(turns)), turns, angle)) < TOLERANCE
            as_for = f"turned as for position {turns[fits][0]}" if fits.any() else "another vector"
            return f"the key that {moved} position {place} is {as_for}"
    return None


def close_gap(keys: Complex[np.ndarray, " kv_seq"], start: int, end: int, angle: float) -> Complex[np.ndarray, " left"]:
    """Turns add up: a key turned for position m, and back by the length of the gap, is turned for its new position."""
    back = np.exp(-1j * angle * (end - start))
    return np.concatenate([keys[:start], keys[end:] * back])
