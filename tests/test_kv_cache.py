"""`llm_internals.kv_cache`: what is kept, what it costs, and that nothing stale is ever read."""

from dataclasses import replace

import pytest
import torch

from llm_internals.kv_cache import KVCache, common_prefix
from llm_internals.model import forward
from tests.tiny_model import random_weights

IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


def rows(*values):
    """Keys or values [2 heads, positions, 8], each position filled with its number."""
    return torch.tensor(values, dtype=torch.float32)[None, :, None].expand(2, -1, 8)


def test_a_position_takes_two_vectors_a_head_and_layer_of_four_bytes_a_number(tiny_config):
    cache = KVCache.empty(tiny_config, capacity=10)
    assert cache.nbytes == 10 * 2 * 3 * 2 * 8 * 4
    assert KVCache.empty(tiny_config, capacity=10, dtype=torch.float64).nbytes == 2 * cache.nbytes


def test_a_position_of_the_real_model_takes_46_080_bytes(lm):
    assert KVCache.empty(lm.config, capacity=1).nbytes == 46_080


def test_an_empty_cache_has_room_and_holds_nothing(tiny_config):
    cache = KVCache.empty(tiny_config, capacity=10)
    assert (cache.length, cache.capacity, cache.ids) == (0, 10, [])


@pytest.mark.parametrize("capacity", [0, -1, 65])
def test_a_capacity_outside_the_context_is_refused(tiny_config, capacity):
    """bugs G15: every integer has its range checked, negative ones included."""
    with pytest.raises(ValueError, match=rf"capacity must be in \[1, 64\], the context, but is {capacity}"):
        KVCache.empty(tiny_config, capacity)


def test_the_whole_context_is_a_capacity(tiny_config):
    assert KVCache.empty(tiny_config, capacity=64).capacity == 64


def test_new_positions_stand_behind_old_ones_and_both_are_returned(tiny_config):
    cache = KVCache.empty(tiny_config, capacity=10)
    cache.layer(1).append(rows(1, 2), rows(-1, -2))
    cache.advance([7, 8])
    keys, values = cache.layer(1).append(rows(3), rows(-3))
    assert keys[0, :, 0].tolist() == [1, 2, 3]
    assert values[1, :, 7].tolist() == [-1, -2, -3]


def test_a_layer_s_part_is_a_view_of_the_whole_and_leaves_the_other_layers_alone(tiny_config):
    cache = KVCache.empty(tiny_config, capacity=10)
    cache.keys.zero_()  # an empty cache holds whatever the memory held
    cache.layer(1).append(rows(1, 2), rows(3, 4))
    assert cache.keys[1, :, :2].eq(rows(1, 2)).all()
    assert cache.values[1, :, :2].eq(rows(3, 4)).all()
    assert not cache.keys[[0, 2]].any()


def test_what_is_appended_is_not_counted_before_the_pass_is_done(tiny_config):
    """Each of the layers appends at the same place; the cache advances once for all of them."""
    cache = KVCache.empty(tiny_config, capacity=10)
    for layer in range(3):
        keys, _ = cache.layer(layer).append(rows(1, 2), rows(3, 4))
        assert (cache.length, keys.shape[1]) == (0, 2)
    cache.advance([7, 8])
    assert (cache.length, cache.ids) == (2, [7, 8])


@pytest.mark.parametrize("length", [-1, 3])
def test_truncating_to_what_it_does_not_hold_is_refused(tiny_config, length):
    """bugs G15: a negative number of positions to keep must not count from the end."""
    cache = KVCache.empty(tiny_config, capacity=10)
    cache.advance([7, 8])
    with pytest.raises(ValueError, match=rf"length must be in \[0, 2\], what the cache holds, but is {length}"):
        cache.truncate(length)
    assert cache.ids == [7, 8]


@pytest.mark.parametrize("length", [0, 1, 4, 8])
def test_a_truncated_cache_continues_as_if_the_rest_had_never_been_there(tiny_config, length):
    """bugs G13: a cache that is used again for another text must be reset, its pointer and its mask alike."""
    weights = random_weights(tiny_config)
    used, fresh = (KVCache.empty(tiny_config, capacity=16) for _ in range(2))
    forward(IDS, weights, used)
    used.truncate(length)
    if length:
        forward(IDS[:length], weights, fresh)
    other = IDS.flip(0) + 10
    torch.testing.assert_close(forward(other, weights, used), forward(other, weights, fresh))
    assert used.ids == fresh.ids == [*IDS[:length].tolist(), *other.tolist()]


def test_what_lies_behind_the_length_is_never_read(tiny_config):
    """bugs G13: rows that no one has written may hold anything."""
    weights = random_weights(tiny_config)
    clean, dirty = (KVCache.empty(tiny_config, capacity=16) for _ in range(2))
    dirty.keys.fill_(float("nan"))
    dirty.values.fill_(float("nan"))
    for part in IDS.split(3):
        assert torch.equal(forward(part, weights, dirty), forward(part, weights, clean))


def test_a_full_cache_refuses_more_and_says_how_much_room_is_needed(tiny_config):
    """bugs G13: overflow raises; nothing wraps around and nothing is dropped."""
    weights, cache = random_weights(tiny_config), KVCache.empty(tiny_config, capacity=9)
    forward(IDS, weights, cache)
    forward(IDS[:1], weights, cache)
    before = cache.keys.clone(), list(cache.ids)
    with pytest.raises(ValueError, match=r"room for 9 positions, but 9 held and 2 new tokens need 11.*capacity=11"):
        forward(IDS[:2], weights, cache)
    assert torch.equal(cache.keys, before[0])
    assert cache.ids == before[1]


def test_two_caches_share_nothing(tiny_config):
    weights = random_weights(replace(tiny_config, num_hidden_layers=1))
    one, other = (KVCache.empty(weights.config, capacity=9) for _ in range(2))
    other.keys.zero_()
    forward(IDS, weights, one)
    assert other.ids == []
    assert not other.keys.any()


@pytest.mark.parametrize(
    ("a", "b", "length"), [([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 9, 3], 1), ([7], [7], 1)]
)
def test_a_common_prefix_ends_at_the_first_difference(a, b, length):
    assert common_prefix(a, b) == common_prefix(b, a) == length
