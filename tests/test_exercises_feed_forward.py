"""The exercises of chapter 03b: each solution passes its check, and plausible wrong answers are told what is wrong."""

import pytest
import torch

from llm_internals.config import LlamaConfig
from llm_internals.cost import multiplications
from llm_internals.exercises import feed_forward as exercises
from llm_internals.feed_forward import FeedForwardWeights, feed_forward

SMOLLM = LlamaConfig(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    head_dim=64,
    rms_norm_eps=1e-5,
    rope_theta=1e5,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)


def check_context(answer):
    return exercises.check_context(answer, SMOLLM)


@pytest.mark.parametrize("check", [check_context, exercises.check_product, exercises.check_split])
def test_no_answer_is_no_mistake(check) -> None:
    assert check(None).startswith("No answer yet:")


# 1. Where the work changes hands


def test_the_context_length_passes_its_check_and_agrees_with_the_cost_of_a_pass() -> None:
    right = exercises.equal_work(SMOLLM)
    assert check_context(right).startswith("Right")
    networks = 30 * 3 * 576 * 1536
    assert multiplications(SMOLLM, cached=right - 1).attention == networks


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (4608, "once by its key and once by its value"),
        (69120, "the number of blocks drops out"),
        (2304 / 30, "the number of blocks drops out"),
        (1000, "1,152,000 multiplications for scores and values, less than"),
        (3900, "4,492,800 multiplications for scores and values, more than"),
    ],
)
def test_another_length_is_told_how_the_two_compare(wrong, reason: str) -> None:
    told = check_context(wrong)
    assert told.startswith("Not yet")
    assert reason in told
    assert "2,304" not in told


# 2. A network that multiplies


def test_two_neurons_multiply_exactly() -> None:
    gate, up, down = (torch.tensor(rows, dtype=torch.float64) for rows in exercises.multiplier())
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5
    result = feed_forward(x, FeedForwardWeights(gate, up, down))
    assert (result[:, 0] - x[:, 0] * x[:, 1]).abs().max() < 1e-12
    assert (result[:, 1] == 0).all()
    assert exercises.check_product(exercises.multiplier()) == "Right: 2 neurons multiply exactly."


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (([[1], [0]], [[0], [1]], [[1, 0]]), "for x = (3, 2) it returns (5.715, 0) instead of (6, 0)"),
        (([[1, -1], [0, 0]], [[0, 0], [1, 1]], [[1, 0], [1, 0]]), "for x = (3, 2) it returns (5.431, 0)"),
        (([[1, -1], [0, 0]], [[0, 0], [1, 1]], [[1, 1], [-1, -1]]), "it returns (6, 6) instead of (6, 0)"),
        (([[1, -1], [0, 0]], [[0, 0], [1, 1]], [[1], [-1]]), "these are [2, 2], [2, 2] and [2, 1]"),
        (([1, 0], [0, 1], [1, 0]), "these are [2], [2] and [2]"),
    ],
)
def test_another_network_is_told_for_which_numbers_it_fails(wrong, reason: str) -> None:
    told = exercises.check_product(wrong)
    assert told.startswith("Not yet")
    assert reason in told


# 3. One network, several machines


def test_the_pieces_add_up_to_the_whole() -> None:
    assert exercises.check_split(exercises.split).startswith("Right")


def by_rows(weights: FeedForwardWeights, parts: int) -> list[FeedForwardWeights]:
    """Cuts the stream instead of the inside."""
    columns = zip(
        weights.gate_proj.chunk(parts, dim=0),
        weights.up_proj.chunk(parts, dim=0),
        weights.down_proj.chunk(parts, dim=1),
        strict=False,
    )
    return [FeedForwardWeights(*piece) for piece in columns]


def mixed_up(weights: FeedForwardWeights, parts: int) -> list[FeedForwardWeights]:
    """Gives the rows of the last matrix to other neurons."""
    pieces = exercises.split(weights, parts)
    return [
        FeedForwardWeights(piece.gate_proj, piece.up_proj, other.down_proj)
        for piece, other in zip(pieces, pieces[1:] + pieces[:1], strict=True)
    ]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda weights, parts: [weights] * parts, "each must hold 6 of 12 neurons, but one holds 12"),
        (lambda weights, parts: exercises.split(weights, 2 * parts), "but there are 4"),
        (by_rows, "it is the inside that is cut"),
        (mixed_up, "must stay together"),
    ],
)
def test_another_cut_is_told_what_is_wrong(wrong, reason: str) -> None:
    told = exercises.check_split(wrong)
    assert told.startswith("Not yet")
    assert reason in told
