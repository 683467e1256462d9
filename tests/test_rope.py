"""`llm_internals.rope`: frequencies, rotations, and the two pairings."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.rope import Rotation, rope_frequencies, rotate, rotation

VECTORS = json.loads((Path(__file__).parent / "data" / "numerics.json").read_text(encoding="utf-8"))["rope"]
HEAD_DIM, BASE = VECTORS["head_dim"], VECTORS["base"]
POSITIONS = [int(position) for position in VECTORS["positions"]]

STORED = 1e-8
"""The vectors are stored with eight decimals."""
EXACT = 1e-12
"""Float64 angles up to 8,191 radians, reduced to a turn: 8,191 * 2**-53 is 9e-13."""
NORM = 1e-6
"""Float32 has a relative step of 6e-8; cosine, sine, two products and a sum leave a few of them."""
RELATIVE = 1e-5
"""A score in float32, relative to the lengths: products of two rotated vectors of 64 numbers."""

positions = st.integers(0, 8191)
seeds = st.integers(0, 99)


def vector(seed, head_dim=64, dtype=torch.float32):
    return torch.randn(1, 1, head_dim, generator=torch.Generator().manual_seed(seed)).to(dtype)


def rotated(x, position, theta=BASE):
    return rotate(x, rotation(torch.tensor([position]), x.shape[-1], theta, x.dtype))


def interleaved(x, position):
    """The other pairing, number 2i with 2i + 1: what GGUF files expect."""
    cos, sin = rotation(torch.tensor([position]), HEAD_DIM, BASE, torch.float64)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


def test_frequencies_are_the_stored_ones():
    expected = torch.tensor(VECTORS["inv_freq"], dtype=torch.float64)
    torch.testing.assert_close(rope_frequencies(HEAD_DIM, BASE), expected, rtol=0, atol=STORED)


def test_frequencies_of_the_real_model_are_the_stored_ones():
    full = VECTORS["full_head_dim_64_pos_8191"]
    frequencies = rope_frequencies(64, BASE)
    assert frequencies[:3].tolist() == pytest.approx(full["inv_freq_first3"], abs=STORED)
    assert float(frequencies[-1]) == pytest.approx(full["inv_freq_last"], rel=EXACT)
    assert 8191 * float(frequencies[-1]) == pytest.approx(full["angle_last"], rel=EXACT)


def test_nothing_scales_the_positions():
    """bugs G8: without a scaling of the angles, pair 0 turns by exactly one radian a position."""
    cos, sin = rotation(torch.arange(8192), 64, BASE, torch.float64)
    assert cos[:, 0].tolist() == pytest.approx([math.cos(m) for m in range(8192)], abs=EXACT)
    assert sin[:, 0].tolist() == pytest.approx([math.sin(m) for m in range(8192)], abs=EXACT)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_vector_turned_in_half_split_pairs_is_the_stored_one(position):
    x = torch.tensor([[VECTORS["x"]]], dtype=torch.float64)
    expected = VECTORS["positions"][str(position)]["half_layout_hf"]
    assert rotated(x, position)[0, 0].tolist() == pytest.approx(expected, abs=STORED)


@pytest.mark.parametrize("position", POSITIONS)
def test_half_split_on_reordered_rows_is_interleaved_on_rows_as_they_were(position):
    """bugs G6: the pairings are the same rotation of reordered numbers; only a mixture of the two is wrong."""
    order = VECTORS["gguf_row_order_from_hf_within_head"]
    x = torch.tensor([[VECTORS["x"]]], dtype=torch.float64)
    expected = VECTORS["positions"][str(position)]["interleaved_gguf"]
    assert interleaved(x, position)[0, 0].tolist() == pytest.approx(expected, abs=STORED)
    assert torch.equal(interleaved(x[..., order], position), rotated(x, position)[..., order])


def test_the_wrong_pairing_moves_the_scores():
    """bugs G6: at position 0 nothing shows, and then the scores drift away."""
    q, k = vector(1, HEAD_DIM, torch.float64), vector(2, HEAD_DIM, torch.float64)
    assert torch.equal(interleaved(q, 0), rotated(q, 0))
    right, wrong = (turn(q, 20) @ turn(k, 3).transpose(1, 2) for turn in (rotated, interleaved))
    assert abs(float(right - wrong)) > 0.1


@given(seeds, positions)
def test_a_rotation_keeps_the_length(seed, position):
    x = vector(seed)
    assert float(rotated(x, position).norm()) == pytest.approx(float(x.norm()), rel=NORM)


@given(seeds, st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 4191))
def test_a_score_depends_on_the_distance_of_two_positions_alone(seed, m, n, shift):
    q, k = vector(seed), vector(seed + 1)
    here = float((rotated(q, m) * rotated(k, n)).sum())
    there = float((rotated(q, m + shift) * rotated(k, n + shift)).sum())
    assert there == pytest.approx(here, abs=RELATIVE * float(q.norm() * k.norm()))


def test_a_score_does_depend_on_the_distance():
    q = vector(0)
    scores = [float((rotated(q, m) * rotated(q, 0)).sum()) for m in range(50)]
    assert max(scores[1:]) < 0.99 * scores[0]


def test_position_0_turns_nothing():
    assert torch.equal(rotated(vector(0), 0), vector(0))


@given(seeds, st.integers(0, 4095), st.integers(0, 4095))
def test_two_turns_are_one_turn_by_the_sum(seed, m, n):
    x = vector(seed, dtype=torch.float64)
    torch.testing.assert_close(rotated(rotated(x, m), n), rotated(x, m + n), rtol=0, atol=1e3 * EXACT)


def test_turning_back_is_turning_by_the_opposite_sine():
    x = vector(3, dtype=torch.float64)
    cos, sin = rotation(torch.tensor([100]), 64, BASE, torch.float64)
    torch.testing.assert_close(rotate(rotate(x, Rotation(cos, sin)), Rotation(cos, -sin)), x, rtol=0, atol=EXACT)


def test_every_head_and_every_position_gets_its_own_row_of_angles():
    x = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = rotate(x, rotation(torch.arange(10, 15), 8, BASE, torch.float64))
    for head in range(3):
        for row in range(5):
            assert torch.equal(whole[head, row], rotated(x[head : head + 1, row : row + 1], 10 + row)[0, 0])


def test_angles_are_computed_in_float64_and_rounded_once():
    """bugs G7: only cosine and sine are rounded, so that float32 is as good as it can be at every position."""
    exact = rotation(torch.arange(8192), 64, BASE, torch.float64)
    rounded = rotation(torch.arange(8192), 64, BASE, torch.float32)
    assert torch.equal(rounded.cos, exact.cos.float())
    assert torch.equal(rounded.sin, exact.sin.float())


def test_bfloat16_positions_would_be_a_radian_off():
    """bugs G7: the trap itself; position 4,095 becomes 4,096, and the first pair's cosine is off by .87."""
    position = torch.tensor([4095.0]).bfloat16()
    assert float(position) == 4096
    cos = rotation(torch.tensor([4095]), 64, BASE).cos[0, 0]
    assert abs(math.cos(float(position)) - float(cos)) == pytest.approx(0.87, abs=0.005)
