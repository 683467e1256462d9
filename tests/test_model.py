"""`llm_internals.model`: whole, chunked and token by token are one computation, and a refused pass changes nothing.

Tiny models run in float64 here, where the three ways of running agree to twelve digits, so that even a small mistake of
positions, masks or cache shows. The real model, in float32, is in `test_reference`.
"""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_internals.config import LlamaConfig
from llm_internals.kv_cache import KVCache
from llm_internals.model import forward, prefill
from llm_internals.rope import rotate, rotation
from llm_internals.tap import Recorder
from tests.tiny_model import random_weights

EXACT = 1e-12
"""Float64: products of other shapes sum in another order, through three layers with values of size 1."""

IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
CONFIG = LlamaConfig(50, 24, 40, 3, 6, 2, 8, 1e-5, 1e4, 64, True)
WEIGHTS = random_weights(CONFIG, dtype=torch.float64)


def empty(capacity=20, dtype=torch.float64):
    return KVCache.empty(CONFIG, capacity, dtype)


def in_parts(ids, sizes, weights=WEIGHTS):
    cache = empty()
    return torch.cat([forward(part, weights, cache) for part in ids.split(sizes)])


def test_cached_forward_equals_uncached_at_every_position():
    """bugs G1: a cache changes when a number is computed, and never the number."""
    torch.testing.assert_close(in_parts(IDS, 1), forward(IDS, WEIGHTS), rtol=0, atol=EXACT)


@settings(max_examples=20)  # a pass takes milliseconds
@given(st.lists(st.integers(1, 12), min_size=1).filter(lambda sizes: sum(sizes) == 12) | st.permutations([1, 3, 5, 3]))
def test_any_chunks_give_what_the_whole_gives(sizes):
    torch.testing.assert_close(in_parts(IDS, list(sizes)), forward(IDS, WEIGHTS), rtol=0, atol=EXACT)


def test_positions_go_on_where_the_cache_ends():
    """bugs G2: the third token, alone in its pass, is rotated as position 2."""
    cache, recorder = empty(), Recorder("blocks.0.attn.*")
    forward(IDS[:2], WEIGHTS, cache)
    forward(IDS[2:3], WEIGHTS, cache, tap=recorder)
    turn = rotation(torch.tensor([2]), 8, 1e4, torch.float64)
    assert torch.equal(recorder["blocks.0.attn.rot_q"], rotate(recorder["blocks.0.attn.q"], turn))
    assert torch.equal(recorder["blocks.0.attn.rot_k"], rotate(recorder["blocks.0.attn.k"], turn))


def test_keys_are_kept_rotated_and_values_as_they_are():
    cache, recorder = empty(), Recorder("blocks.*.attn.*")
    forward(IDS, WEIGHTS, cache, tap=recorder)
    for layer in range(3):
        assert torch.equal(cache.keys[layer, :, :12], recorder[f"blocks.{layer}.attn.rot_k"])
        assert torch.equal(cache.values[layer, :, :12], recorder[f"blocks.{layer}.attn.v"])


def test_a_prefix_computes_what_it_computes_in_a_longer_text():
    """Causal through all layers: a later token moves nothing before it."""
    torch.testing.assert_close(forward(IDS[:7], WEIGHTS), forward(IDS, WEIGHTS)[:7], rtol=0, atol=EXACT)


def test_every_earlier_token_moves_the_last_position():
    last = forward(IDS, WEIGHTS)[-1]
    for position in range(len(IDS)):
        other = IDS.clone()
        other[position] += 20
        assert (forward(other, WEIGHTS)[-1] - last).abs().max() > 1e-3


def test_the_order_of_tokens_matters():
    swapped = IDS[[1, 0, *range(2, 12)]]
    assert (forward(swapped, WEIGHTS)[-1] - forward(IDS, WEIGHTS)[-1]).abs().max() > 1e-3


def test_the_cache_grows_by_the_new_positions_once_and_remembers_their_tokens():
    cache = empty()
    forward(IDS[:5], WEIGHTS, cache)
    assert cache.ids == IDS[:5].tolist()
    forward(IDS[5:], WEIGHTS, cache)
    assert cache.ids == IDS.tolist()


def test_a_cache_that_is_full_to_the_last_place_is_fine():
    cache = empty(capacity=12)
    hidden = torch.cat([forward(IDS[:11], WEIGHTS, cache), forward(IDS[11:], WEIGHTS, cache)])
    torch.testing.assert_close(hidden, forward(IDS, WEIGHTS), rtol=0, atol=EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hidden_states_have_the_dtype_of_the_weights_and_a_row_a_token(dtype):
    hidden = forward(IDS, random_weights(CONFIG, dtype=dtype))
    assert (hidden.shape, hidden.dtype) == ((12, 24), dtype)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "ids must hold at least one token, but is empty"),
        ([1, 50], r"ids must be in \[0, 50\), but the id at index 1 is 50"),
        ([-1], r"ids must be in \[0, 50\), but the id at index 0 is -1"),
        ([1] * 9, "room for 20 positions, but 12 held and 9 new tokens need 21"),
    ],
)
def test_a_refused_pass_says_why_and_leaves_the_cache_as_it_was(ids, message):
    cache = empty()
    forward(IDS, WEIGHTS, cache)
    keys, values = cache.keys.clone(), cache.values.clone()
    with pytest.raises(ValueError, match=message):
        forward(torch.tensor(ids, dtype=torch.long), WEIGHTS, cache)
    assert cache.ids == IDS.tolist()
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.values, values)


def test_a_text_longer_than_the_context_is_refused_with_a_cache_and_without():
    """bugs G13: position 64 of a context of 64 doesn't exist, and nothing is dropped to make room for it."""
    ids, cache = torch.ones(64, dtype=torch.long), KVCache.empty(CONFIG, 64, torch.float64)
    assert len(forward(ids, WEIGHTS, cache)) == 64
    for new, held in ((torch.ones(65, dtype=torch.long), None), (ids[:1], cache)):
        with pytest.raises(ValueError, match=r"the context has 64 positions, but .* need 65: shorten the prompt"):
            forward(new, WEIGHTS, held)


@pytest.mark.parametrize(
    "name", ["embed", "blocks.0.attn.v", "blocks.1.resid_mid", "blocks.2.mlp.post", "ln_final.normalized"]
)
def test_a_pass_that_fails_halfway_leaves_the_cache_with_what_it_held(name):
    class Stop(Exception):
        pass

    def fail(reported, value):
        if reported == name:
            raise Stop

    cache = empty()
    forward(IDS[:5], WEIGHTS, cache)
    with pytest.raises(Stop):
        forward(IDS[5:9] + 10, WEIGHTS, cache, tap=fail)
    assert cache.ids == IDS[:5].tolist()
    torch.testing.assert_close(forward(IDS[5:], WEIGHTS, cache), forward(IDS, WEIGHTS)[5:], rtol=0, atol=EXACT)


def test_a_pass_leaves_its_ids_and_the_weights_alone():
    weights, ids = random_weights(CONFIG), IDS.clone()
    forward(ids, weights, KVCache.empty(CONFIG, 12))
    assert torch.equal(ids, IDS)
    for used, fresh in zip(weights.layers, random_weights(CONFIG).layers, strict=True):
        assert torch.equal(used.self_attn.k_proj, fresh.self_attn.k_proj)
        assert torch.equal(used.input_layernorm, fresh.input_layernorm)


def test_the_final_norm_is_the_last_thing_that_happens():
    weights = replace(WEIGHTS, norm=torch.full((24,), 2.0, dtype=torch.float64))
    hidden = forward(IDS, weights)
    torch.testing.assert_close(hidden.square().mean(-1), torch.full((12,), 4.0, dtype=torch.float64), rtol=1e-3, atol=0)


def test_weights_are_shown_by_their_sizes_and_not_number_by_number():
    assert repr(WEIGHTS) == "Weights(3 layers, 24 wide, 50 tokens)"


def test_prefill_returns_the_hidden_state_of_the_last_position_alone():
    cache = empty()
    hidden = prefill(IDS.tolist(), WEIGHTS, cache)
    assert cache.ids == IDS.tolist()
    torch.testing.assert_close(hidden, forward(IDS, WEIGHTS)[-1:], rtol=0, atol=EXACT)
