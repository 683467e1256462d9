"""The exercises of ``03a_attention``: a mask with a horizon, a cache by arithmetic, a head found by measurement."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from llm_internals.attention import causal_mask

TWELVE_WORDS = " window apple river seven cold music stone paper green horse night bread"
"""Exercise 3 and the atlas: words of one token each, with nothing in common."""

Mask = Callable[[int, int, int], Tensor]

SHAPES = ((4, 4, 2), (4, 4, 1), (1, 6, 3), (3, 7, 2), (5, 5, 9))
"""Exercise 1: new positions, all positions, window: whole prompts, a decode step, a chunk, a window too wide."""
LAYERS, HEADS, KV_HEADS, HEAD_DIM, NUMBER_BYTES = 32, 32, 8, 128, 2
"""Exercise 2: the sizes of Llama 3 8B, with 16-bit numbers."""


def check_window(answer: Mask | None) -> str:
    """Exercise 1: whether a function of seq, kv_seq and window returns the mask of a sliding window.

    >>> check_window(lambda seq, kv_seq, window: causal_mask(seq, kv_seq))
    'Not yet: with seq 4, kv_seq 4 and window 2, position 2 should see 1 to 2, but sees 0 to 2.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of seq, kv_seq and window."
    for seq, kv_seq, window in SHAPES:
        case = f"with seq {seq}, kv_seq {kv_seq} and window {window}"
        mask = torch.as_tensor(answer(seq, kv_seq, window))
        if mask.shape != (seq, kv_seq) or mask.dtype != torch.bool:
            return f"Not yet: {case} the mask must be bool {[seq, kv_seq]}, but is {mask.dtype} {list(mask.shape)}."
        for row in range(seq):
            position = kv_seq - seq + row
            wanted = list(range(max(0, position - window + 1), position + 1))
            seen = mask[row].nonzero().flatten().tolist()
            if seen != wanted:
                return f"Not yet: {case}, position {position} should see {_span(wanted)}, but sees {_span(seen)}."
    return "Right: every position sees itself and the ones before it, up to the window, with a cache and without."


def _span(positions: list[int]) -> str:
    """Some positions in words."""
    if not positions:
        return "nothing"
    if len(positions) == 1:
        return f"{positions[0]} alone"
    if positions == list(range(positions[0], positions[-1] + 1)):
        return f"{positions[0]} to {positions[-1]}"
    return ", ".join(map(str, positions))


def window_mask(seq: int, kv_seq: int, window: int) -> Bool[Tensor, "seq kv_seq"]:
    """The causal mask, minus what it would allow a window further back."""
    too_far = torch.ones(seq, kv_seq, dtype=torch.bool).tril(diagonal=kv_seq - seq - window)
    return causal_mask(seq, kv_seq) & ~too_far


def check_cache_size(answer: tuple[int | float, int | float] | None) -> str:
    """Exercise 2: whether `answer` is the bytes of a token in the cache, and how many times more without sharing.

    >>> check_cache_size((65_536, 4))
    'Not yet: 65,536 bytes are half of it: keys and values count, and each number takes two bytes.'
    """
    if answer is None:
        return "No answer yet: set answer to two numbers."
    size, ratio = answer
    right_size, right_ratio = cache_size()
    told = {
        right_size / 2: "are half of it: keys and values count, and each number takes two bytes",
        right_size * right_ratio: "would be right if every query head had a key and a value of its own",
        right_size / LAYERS: "are one layer's",
        right_size * 2: "are too many by a factor of two: a 16-bit number takes two bytes",
    }
    if size != right_size:
        return f"Not yet: {size:,} bytes {told.get(size, 'are not what the sizes multiply to')}."
    if ratio != right_ratio:
        return f"Not yet: the bytes are right, but sharing doesn't save a factor of {ratio:g}."
    return "Right: that many bytes for every token of every conversation that is open."


def cache_size() -> tuple[int, int]:
    """A key and a value, in every layer, for every head that has its own; without sharing, for every query head."""
    return 2 * LAYERS * KV_HEADS * HEAD_DIM * NUMBER_BYTES, HEADS // KV_HEADS


def check_same_token_head(
    answer: tuple[int, int] | None, patterns: Float[np.ndarray, "layers heads seq seq"], period: int
) -> str:
    """Exercise 3: whether `answer` (block, head) is the head that looks hardest at the token's own earlier copy."""
    if answer is None:
        return "No answer yet: set answer to a block and a head."
    layers, heads, _, _ = patterns.shape
    layer, head = answer
    if not (0 <= layer < layers and 0 <= head < heads):
        return f"Not yet: there are blocks 0 to {layers - 1} and heads 0 to {heads - 1}, but no {tuple(answer)}."
    if (layer, head) == same_token_head(patterns, period):
        return "Right: of all heads, this one gives the most to the earlier copy of the very same token."
    names = {"earlier copy": period, "token after the earlier copy": period - 1, "token before": 1, "token itself": 0}
    shares = {name: float(_share_at(patterns, back)[layer, head]) for name, back in names.items()}
    most = max(shares, key=shares.__getitem__)
    said = f"gives {shares['earlier copy']:.2f} of its attention to the earlier copy"
    rest = "and another head gives more" if most == "earlier copy" else f"and {shares[most]:.2f} to the {most}"
    return f"Not yet: in the second half, block {layer}, head {head} {said}, {rest}."


def _share_at(patterns: Float[np.ndarray, "layers heads seq seq"], back: int) -> Float[np.ndarray, "layers heads"]:
    """The mean attention of the second half to the position that lies `back` positions before."""
    half = patterns.shape[-1] // 2
    readers = np.arange(half, 2 * half)
    return patterns[:, :, readers, readers - back].mean(axis=-1)


def same_token_head(patterns: Float[np.ndarray, "layers heads seq seq"], period: int) -> tuple[int, int]:
    """The diagonal one period below the main one holds the looks at the earlier copy: take its largest mean."""
    shares = patterns.diagonal(-period, axis1=-2, axis2=-1).mean(axis=-1)
    layer, head = np.unravel_index(shares.argmax(), shares.shape)
    return int(layer), int(head)
