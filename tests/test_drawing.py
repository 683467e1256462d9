"""The draw: bins in id order, no token of probability zero, and counts that follow the distribution."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.drawing import draw, draw_bin, gumbel_max
from llm_internals.sampling import SamplingParams, distribution
from tests.plain_sampling import CHI_SQUARE_ALPHA, DISTRIBUTIONS, DRAWS, chi_square

LAST = 1 - 2**-53
"""The largest float below 1, and the largest number that ``random.Random.random`` gives."""

EDGE = 1e-15
"""Rounding of a sum of at most 40 terms and one division."""

weights = st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda ws: sum(ws) > 1e-300)
uniform = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("u", "token"), [(0.0, 0), (0.0999, 0), (0.1, 1), (0.3999, 1), (0.4, 3), (0.9999, 3), (LAST, 3)]
)
def test_the_bins_of_three_tokens_by_hand(u, token):
    assert draw([0.1, 0.3, 0.0, 0.6], u) == token


@given(weights, uniform)
def test_the_number_lies_in_the_bin_and_the_bin_is_as_wide_as_the_probability(ws, u):
    drawn = draw_bin(ws, u)
    assert drawn.low <= u < drawn.high
    assert drawn.high - drawn.low == pytest.approx(ws[drawn.id] / sum(ws), abs=EDGE * len(ws))
    assert drawn.low == pytest.approx(sum(ws[: drawn.id]) / sum(ws), abs=EDGE * len(ws))


@given(weights, uniform)
def test_a_token_of_probability_zero_is_never_drawn(ws, u):
    padded = [0.0, *itertools.chain(*((w, 0.0) for w in ws))]
    assert padded[draw(padded, u)] > 0
    assert draw(padded, u) == 2 * [i for i, w in enumerate(ws) if w > 0].index(draw(ws, u)) + 1 or 0.0 in ws


@pytest.mark.parametrize("u", [0.0, 2**-1074, 0.5, LAST])
@pytest.mark.parametrize(
    "ws", [[0.33, 0.34, 0.0, 0.33], [0.0, 1.0], [1.0, 0.0], [0.0, 1e-320, 0.0], [0.1] * 10 + [0.0]]
)
def test_bug_e14_the_ends_of_the_interval_never_reach_a_zero_weight(ws, u):
    """pytorch #50034 and #13867: multinomial drew an id of probability 0 after 9.9 million draws."""
    assert ws[draw(ws, u)] > 0


def test_bug_e14_a_million_numbers_never_hit_the_zero_weight():
    ws = [0.33, 0.34, 0.0, 0.33]
    bins = [draw_bin(ws, u) for u in (0.0, 0.33, 0.67, LAST)]
    assert {drawn.id for drawn in bins} == {0, 1, 3}
    numbers = np.random.default_rng(0).random(1_000_000)
    hit = sum(((numbers >= drawn.low) & (numbers < drawn.high)).sum() for drawn in {d.id: d for d in bins}.values())
    assert hit == 1_000_000  # the bins of the three other ids leave no gap for id 2


def test_the_total_may_be_off_one_since_rounding_moves_it():
    assert [draw([0.2, 0.2], u) for u in (0.0, 0.49, 0.5, LAST)] == [0, 0, 1, 1]
    assert draw([1e-300, 1e-300], LAST) == 1


def counts_of(probs, seed):
    """How often DRAWS uniform numbers draw each token: `draw_bin` is asked once for each bin that is hit."""
    rng = random.Random(seed)
    numbers = np.sort([rng.random() for _ in range(DRAWS)])
    counts, done = np.zeros(probs.size, dtype=int), 0
    while done < DRAWS:
        drawn = draw_bin(probs, float(numbers[done]))
        end = int(np.searchsorted(numbers, drawn.high))
        counts[drawn.id] += end - done
        done = end
    return counts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("config", DISTRIBUTIONS, ids=str)
def test_fifty_thousand_draws_follow_the_distribution(config, seed):
    probs = distribution(np.random.default_rng(seed).normal(0, 2, 32), SamplingParams(**config))
    assert chi_square(counts_of(probs, seed), probs) > CHI_SQUARE_ALPHA


def test_draws_one_by_one_give_the_counts_of_their_bins():
    probs = distribution(np.random.default_rng(0).normal(0, 2, 32), SamplingParams(top_p=0.9))
    rng = random.Random(5)
    numbers = [rng.random() for _ in range(3000)]
    drawn = [draw_bin(probs, u) for u in numbers]
    assert all(d.low <= u < d.high and draw(probs, u) == d.id for d, u in zip(drawn, numbers, strict=True))
    assert len({(d.id, d.low, d.high) for d in drawn}) == len({d.id for d in drawn}), "a token has one bin"


def test_the_chi_square_test_can_fail():
    probs = np.full(32, 1 / 32)
    wrong = np.linspace(0.9, 1.1, 32) / 32
    assert chi_square(counts_of(wrong, 0), probs) < CHI_SQUARE_ALPHA


@pytest.mark.parametrize("seed", range(2))
def test_gumbel_max_draws_from_the_same_distribution(seed):
    probs = distribution(np.random.default_rng(seed).normal(0, 2, 32), SamplingParams(top_k=8))
    rng = random.Random(seed)
    counts = np.bincount([gumbel_max(probs, rng) for _ in range(8000)], minlength=32)
    assert chi_square(counts, probs) > CHI_SQUARE_ALPHA


class Fixed(random.Random):
    """A stream of zeros."""

    def random(self):
        return 0.0


def test_gumbel_max_of_one_token_needs_no_luck_even_with_the_number_zero():
    assert gumbel_max([0.0, 2.0, 0.0], Fixed()) == 1
    assert gumbel_max([0.0, 0.5, 0.5], Fixed()) == 1


def test_bug_e15_the_same_seed_gives_the_same_tokens():
    """llama.cpp #7381: a seed that was ignored."""
    probs = np.full(1000, 0.001)
    runs = [
        [draw(probs, rng.random()) for _ in range(20)] for rng in (random.Random(7), random.Random(7), random.Random(8))
    ]
    assert runs[0] == runs[1] != runs[2]
    assert runs[0][:5] == [323, 150, 650, 72, 535]  # Python documents this stream as stable: the same on every system


def test_the_margin_is_the_distance_to_an_edge_that_another_token_shares():
    assert draw_bin([0.25, 0.75], 0.2).margin == pytest.approx(0.05)
    assert draw_bin([0.25, 0.75], 0.0).margin == 0.25, "0 is no edge between two tokens"
    assert draw_bin([0.25, 0.25, 0.5], 0.45).margin == pytest.approx(0.05)
    assert draw_bin([0.0, 1.0], 0.5).margin == 1.0


@pytest.mark.parametrize("u", [-0.1, 1.0, float("nan"), float("inf")])
def test_a_number_outside_zero_to_one_raises(u):
    with pytest.raises(ValueError, match=rf"u must be in \[0, 1\), got {u}"):
        draw([0.5, 0.5], u)


@pytest.mark.parametrize("choose", [lambda ws: draw(ws, 0.5), lambda ws: gumbel_max(ws, random.Random(0))])
@pytest.mark.parametrize("ws", [[], [0.0], [-0.5, 1.5], [float("nan")]])
def test_weights_that_are_no_distribution_raise(choose, ws):
    with pytest.raises(ValueError, match="probs must"):
        choose(ws)
