"""`llm_internals.attention`: who sees whom, through which head, and with what weight."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from llm_internals.attention import (
    AttentionWeights,
    attention,
    attention_scores,
    causal_mask,
    merge_heads,
    split_heads,
    weighted_values,
)
from llm_internals.rope import rotate, rotation
from llm_internals.tap import Recorder
from tests.tiny_model import random_weights

VECTORS = json.loads((Path(__file__).parent / "data" / "numerics.json").read_text(encoding="utf-8"))
STORED = 1e-8
"""The vectors are stored with eight decimals."""
EXACT = 1e-12
"""Float64, sums of a few dozen terms of size 1."""


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attend(x, weights, config, tap=None):
    turn = rotation(torch.arange(len(x)), config.head_dim, config.rope_theta, x.dtype)
    return attention(x, weights, config.head_dim, turn, causal_mask(len(x), len(x)), tap=tap)


@pytest.mark.parametrize("case", VECTORS["causal_mask"])
def test_the_mask_ends_in_the_bottom_right_corner(case):
    """bugs G3: aligned at the top left, a query behind a cache would see nothing but the first key."""
    assert causal_mask(case["q_len"], case["kv_len"]).int().tolist() == case["expected"]


@given(st.integers(1, 12), st.integers(0, 12))
def test_a_query_sees_all_cached_positions_itself_and_earlier_new_ones(seq, cached):
    mask = causal_mask(seq, cached + seq)
    assert mask.sum(dim=1).tolist() == list(range(cached + 1, cached + seq + 1))
    assert not mask[:, 1:].gt(mask[:, :-1]).any()  # once closed, a row stays closed


def test_heads_are_cut_from_the_width_one_after_the_other():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert split_heads(x, head_dim=2).tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
def test_merging_undoes_splitting(heads, seq, head_dim):
    x = numbers(seq, heads * head_dim)
    assert torch.equal(merge_heads(split_heads(x, head_dim)), x)


def test_query_heads_of_a_group_read_the_same_key_value_head():
    """A key head of its own size each: the score of query head h says which one it met, its output which values."""
    gqa = VECTORS["gqa"]
    own = torch.arange(float(gqa["n_kv_heads"]))[:, None, None]  # [kv_heads, 1 position, head_dim 1]
    queries = torch.ones(gqa["n_heads"], 1, 1)
    expected = gqa["expected_kv_head_for_q_head"]
    assert attention_scores(queries, own).flatten().tolist() == expected
    assert weighted_values(queries, own).flatten().tolist() == expected


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(0, 3))
def test_it_is_torch_s_attention_with_the_same_mask(kv_heads, group, seq, cached):
    q, k, v = (
        numbers(n, s, 8) for n, s in ((kv_heads * group, seq), (kv_heads, seq + cached), (kv_heads, seq + cached))
    )
    mask = causal_mask(seq, seq + cached)
    ours = weighted_values(attention_scores(q, k).masked_fill(~mask, -math.inf).softmax(-1), v)
    theirs = scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, enable_gqa=True)[0]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=EXACT)


def test_scores_are_divided_by_the_root_of_the_head_s_width():
    q = k = torch.ones(1, 1, 16)
    assert attention_scores(q, k).item() == 16 / 4


@pytest.mark.parametrize("case", VECTORS["softmax"])
def test_a_row_of_scores_becomes_weights_however_large_they_are(case):
    """The tap puts the stored scores in place of the real ones and sees what attention makes of them."""
    scores = torch.tensor([float(x) for x in case["x"]], dtype=torch.float64)
    seen = {}

    def replace_scores(name, value):
        seen[name] = value
        return value.copy_(scores) if name == "attn_scores" else None

    size = len(scores)
    weights = AttentionWeights(*(torch.zeros(2, 2, dtype=torch.float64) for _ in range(4)))
    turn = rotation(torch.arange(size), 2, 1e4, torch.float64)
    attention(torch.zeros(size, 2, dtype=torch.float64), weights, 2, turn, causal_mask(size, size), tap=replace_scores)
    row = seen["pattern"][0, -1].tolist()
    assert sum(row) == pytest.approx(case.get("expected_sum", 1.0), abs=EXACT)
    assert row == pytest.approx(case.get("expected", row), abs=STORED)


def test_every_row_of_the_pattern_is_a_distribution_over_what_it_may_see(tiny_config):
    recorder, weights = Recorder("pattern"), random_weights(tiny_config, dtype=torch.float64).layers[0].self_attn
    attend(numbers(7, 24), weights, tiny_config, recorder)
    pattern = recorder["pattern"]
    torch.testing.assert_close(pattern.sum(-1), torch.ones(6, 7).double(), rtol=0, atol=EXACT)
    assert torch.equal(pattern > 0, causal_mask(7, 7).expand(6, 7, 7))


def test_the_first_position_attends_to_itself_alone(tiny_config):
    """Its output is its own value through the output matrix, whatever its query and key are."""
    weights = random_weights(tiny_config, dtype=torch.float64).layers[0].self_attn
    x = numbers(1, 24)
    value = split_heads(x @ weights.v_proj, 8).repeat_interleave(3, dim=0)
    torch.testing.assert_close(attend(x, weights, tiny_config), merge_heads(value) @ weights.o_proj, rtol=0, atol=EXACT)


def test_a_later_token_moves_nothing_before_it(tiny_config):
    weights = random_weights(tiny_config).layers[0].self_attn
    x = numbers(7, 24).float()
    changed = x.clone()
    changed[5:] = 100.0
    before, after = attend(x, weights, tiny_config), attend(changed, weights, tiny_config)
    assert torch.equal(before[:5], after[:5])
    assert not torch.isclose(before[5:], after[5:]).all(dim=1).any()


def test_without_positions_the_order_of_earlier_tokens_would_not_matter(tiny_config):
    """A product of keys and a mean of values know no order; it comes from the rotation alone."""
    weights = random_weights(tiny_config, dtype=torch.float64).layers[0].self_attn
    x = numbers(5, 24)
    swapped = x[[2, 0, 1, 3, 4]]
    still = rotation(torch.zeros(5, dtype=torch.long), 8, 1e4, torch.float64)
    mask = causal_mask(5, 5)
    last = [attention(x, weights, 8, still, mask)[-1], attention(swapped, weights, 8, still, mask)[-1]]
    torch.testing.assert_close(*last, rtol=0, atol=EXACT)
    assert not torch.allclose(attend(x, weights, tiny_config)[-1], attend(swapped, weights, tiny_config)[-1])


def test_what_the_tap_sees_is_what_is_computed(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64).layers[0].self_attn
    recorder, x = Recorder(), numbers(4, 24)
    output = attend(x, weights, tiny_config, recorder)
    seen = recorder.tensors
    assert list(seen) == ["q", "k", "v", "rot_q", "rot_k", "attn_scores", "pattern", "z"]
    turn = rotation(torch.arange(4), 8, tiny_config.rope_theta, torch.float64)
    assert torch.equal(seen["rot_q"], rotate(seen["q"], turn))
    assert torch.equal(seen["rot_k"], rotate(seen["k"], turn))
    assert torch.equal(seen["attn_scores"].isinf(), ~causal_mask(4, 4).expand(6, 4, 4))
    assert torch.equal(seen["pattern"], seen["attn_scores"].softmax(-1))
    assert torch.equal(output, merge_heads(seen["z"]) @ weights.o_proj)
