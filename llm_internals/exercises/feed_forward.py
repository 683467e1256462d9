"""The exercises of ``03b_feed_forward``: a context length, a network that multiplies, a network on two machines."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from llm_internals.config import LlamaConfig
from llm_internals.feed_forward import FeedForwardWeights, feed_forward

Rows = Sequence[Sequence[int | float] | int | float]
Split = Callable[[FeedForwardWeights, int], Sequence[FeedForwardWeights]]

TOLERANCE = 1e-4
"""Float32 sums of a few terms agree far better than this."""
WIDTHS = (4, 12)
"""Exercise 3: the widths of the stream and of the inside, which 1, 2, 3 and 4 machines can share evenly."""


def check_context(answer: int | float | None, config: LlamaConfig) -> str:
    """Exercise 1: whether at this context length scores and values take as much work as feed-forward networks."""
    if answer is None:
        return "No answer yet: set answer to a number of tokens."
    right = equal_work(config)
    if answer == right:
        return "Right: below this length the feed-forward networks do more, above it the scores and values."
    network = 3 * config.hidden_size * config.intermediate_size
    scores = 2 * config.num_attention_heads * config.head_dim * answer
    if answer == 2 * right:
        return "Not yet: a position is looked at twice, once by its key and once by its value."
    if answer * config.num_hidden_layers == right or answer == config.num_hidden_layers * right:
        return "Not yet: both happen once in each block, so that the number of blocks drops out."
    more = "more" if scores > network else "less"
    return (
        f"Not yet: in one block, {answer:,} tokens take {scores:,} multiplications for scores and values, "
        f"{more} than the {network:,} of the feed-forward network."
    )


def equal_work(config: LlamaConfig) -> int:
    """3 d f multiplications in the network, 2 heads head_dim for each position that is looked at."""
    network = 3 * config.hidden_size * config.intermediate_size
    for_each_position = 2 * config.num_attention_heads * config.head_dim
    return network // for_each_position


def check_product(answer: tuple[Rows, Rows, Rows] | None) -> str:
    """Exercise 2: whether the network with these three matrices returns the product of its two inputs, and 0.

    >>> check_product(([[1], [0]], [[0], [1]], [[1, 0]]))
    'Not yet: for x = (3, 2) it returns (5.715, 0) instead of (6, 0).'
    """
    if answer is None:
        return "No answer yet: set answer to three matrices, each a list of rows."
    gate, up, down = (torch.tensor(rows, dtype=torch.float32) for rows in answer)
    if gate.ndim != 2 or gate.shape[0] != 2 or up.shape != gate.shape or down.shape != (gate.shape[1], 2):
        return (
            "Not yet: with n neurons the shapes are [2, n], [2, n] and [n, 2], "
            f"and these are {list(gate.shape)}, {list(up.shape)} and {list(down.shape)}."
        )
    weights = FeedForwardWeights(gate, up, down)
    for pair in ((3.0, 2.0), (-3.0, 2.0), (1.5, -4.0), (-2.5, -2.0), (0.0, 7.0), (6.0, 5.0)):
        first, second = feed_forward(torch.tensor([pair]), weights)[0].tolist()
        product = pair[0] * pair[1]
        if max(abs(first - product), abs(second)) > TOLERANCE:
            asked = f"x = ({pair[0]:g}, {pair[1]:g})"
            return f"Not yet: for {asked} it returns ({first:.4g}, {second:.4g}) instead of ({product:g}, 0)."
    return f"Right: {gate.shape[1]} neurons multiply exactly."


def multiplier() -> tuple[Rows, Rows, Rows]:
    """SiLU(a) - SiLU(-a) = a, so a neuron and its mirror image let the number from the up matrix through a times."""
    gate = [[1, -1], [0, 0]]
    up = [[0, 0], [1, 1]]
    down = [[1, 0], [-1, 0]]
    return gate, up, down


def check_split(answer: Split | None) -> str:
    """Exercise 3: whether a function cuts a network into parts of equal size whose results add up to the whole's.

    >>> check_split(lambda weights, parts: [weights] * parts)
    'Not yet: with 2 parts, each must hold 6 of 12 neurons, but one holds 12.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of weights and a number of parts."
    generator = torch.Generator().manual_seed(0)
    gate, up = (torch.randn(WIDTHS, generator=generator) for _ in range(2))
    whole = FeedForwardWeights(gate, up, torch.randn(WIDTHS[::-1], generator=generator))
    x = torch.randn(3, WIDTHS[0], generator=generator)
    for parts in (2, 3, 4):
        if complaint := _complaint_about(answer(whole, parts), parts, whole, x):
            return f"Not yet: with {parts} parts, {complaint}."
    return "Right: each machine keeps its neurons to itself, and only the results have to be added."


def _complaint_about(pieces: Sequence[FeedForwardWeights], parts: int, whole: FeedForwardWeights, x: Tensor) -> str:
    """What is wrong with a network in pieces; nothing if it is right."""
    width, inner = WIDTHS
    if len(pieces) != parts:
        return f"there must be as many pieces, but there are {len(pieces)}"
    for piece in pieces:
        if piece.gate_proj.shape[0] != width or piece.down_proj.shape[1] != width:
            return f"each piece must read and write all {width} numbers of the stream; it is the inside that is cut"
        if piece.gate_proj.shape[1] != inner // parts:
            return f"each must hold {inner // parts} of {inner} neurons, but one holds {piece.gate_proj.shape[1]}"
    total = torch.stack([feed_forward(x, piece) for piece in pieces]).sum(dim=0)
    if (total - feed_forward(x, whole)).abs().max() > TOLERANCE:
        return "the results don't add up to that of the whole: a neuron's three parts must stay together"
    return ""


def split(weights: FeedForwardWeights, parts: int) -> list[FeedForwardWeights]:
    """A neuron is a column of the first two matrices and a row of the third; neurons don't need each other."""
    columns = zip(
        weights.gate_proj.chunk(parts, dim=1),
        weights.up_proj.chunk(parts, dim=1),
        weights.down_proj.chunk(parts, dim=0),
        strict=True,
    )
    return [FeedForwardWeights(gate, up, down) for gate, up, down in columns]
