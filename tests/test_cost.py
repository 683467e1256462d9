"""What a pass costs by the formula is what PyTorch counts while it runs, and what the tensors take in memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from llm_internals.checkpoint import LanguageModel
from llm_internals.config import LlamaConfig
from llm_internals.cost import (
    Multiplications,
    attention_slope,
    block_numbers,
    kv_bytes,
    multiplications,
    output_numbers,
    weight_bytes,
)
from llm_internals.gguf import read_gguf
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import PREFILL_CHUNK, Weights, forward, named_weights, prefill
from llm_internals.weights_file import find_weights
from tests.tiny_model import random_weights

BY_HAND = LlamaConfig(
    vocab_size=10,
    hidden_size=4,
    intermediate_size=6,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=2,
    rms_norm_eps=1e-5,
    rope_theta=1e4,
    max_position_embeddings=32,
    tie_word_embeddings=True,
)


def counted(weights: Weights, seq: int, cached: int, scored: int) -> int:
    """The multiplications that PyTorch counts in one pass; it counts each with its addition as two operations."""
    cache = KVCache.empty(weights.config, cached + seq)
    ids = torch.arange(cached + seq) % weights.config.vocab_size
    if cached:
        forward(ids[:cached], weights, cache)
    with FlopCounterMode(display=False) as counter:
        hidden = forward(ids[cached:], weights, cache)
        if scored:
            lm_head(hidden[-scored:], weights)
    return counter.get_total_flops() // 2


def test_a_pass_by_hand() -> None:
    """A block: q and o of 4 x 4, k and v of 4 x 2, three matrices of 4 x 6: 16 + 16 + 8 + 8 + 72 = 120."""
    assert block_numbers(BY_HAND) == 2 * 120
    assert output_numbers(BY_HAND) == 40
    assert attention_slope(BY_HAND) == 2 * (4 + 4)
    assert multiplications(BY_HAND, 3, cached=5) == Multiplications(3 * 240, 3 * 8 * 16, 40)
    assert multiplications(BY_HAND, 3, cached=5).total == 720 + 384 + 40


@given(seq=st.integers(1, 12), cached=st.integers(0, 12), scored=st.integers(0, 12))
def test_the_formula_is_what_pytorch_counts(seq: int, cached: int, scored: int) -> None:
    scored = min(scored, seq)
    expected = multiplications(BY_HAND, seq, cached=cached, scored=scored).total
    assert counted(random_weights(BY_HAND), seq, cached, scored) == expected


@pytest.mark.parametrize("tied", [True, False])
def test_the_formula_holds_for_other_sizes_and_an_output_matrix_of_its_own(tiny_config: LlamaConfig, tied: bool):
    config = replace(tiny_config, tie_word_embeddings=tied)
    assert counted(random_weights(config), 4, 7, 2) == multiplications(config, 4, cached=7, scored=2).total


@pytest.mark.parametrize(("seq", "cached"), [(37, 0), (1, 37), (1, 300), (5, 40)])
def test_the_formula_is_what_pytorch_counts_on_the_real_model(lm: LanguageModel, seq: int, cached: int) -> None:
    assert counted(lm.weights, seq, cached, 1) == multiplications(lm.config, seq, cached=cached).total


def test_a_prompt_in_chunks_is_the_sum_of_its_passes() -> None:
    """Chunks skip what a whole prompt would compute for nothing: scores of positions that the mask hides."""
    config = replace(BY_HAND, max_position_embeddings=2 * PREFILL_CHUNK)
    weights, n = random_weights(config), PREFILL_CHUNK + 100
    with FlopCounterMode(display=False) as counter:
        prefill([id % 10 for id in range(n)], weights, KVCache.empty(config, n))
    first, second = (
        multiplications(config, PREFILL_CHUNK, scored=0),
        multiplications(config, 100, cached=PREFILL_CHUNK, scored=0),
    )
    assert counter.get_total_flops() // 2 == (first + second).total < multiplications(config, n, scored=0).total


@given(cached=st.integers(0, 30))
def test_with_a_cache_a_step_grows_by_one_position_of_attention_and_by_nothing_else(cached: int) -> None:
    here, there = multiplications(BY_HAND, cached=cached), multiplications(BY_HAND, cached=cached + 1)
    assert there.attention - here.attention == attention_slope(BY_HAND)
    assert (there.projections, there.output) == (here.projections, here.output)


def test_weights_take_as_many_bytes_as_the_tensors_of_the_real_model(lm: LanguageModel) -> None:
    assert weight_bytes(lm.config) == sum(weight.nbytes for _, weight in named_weights(lm.weights))


def test_weights_in_four_and_eight_bits_take_as_many_bytes_as_in_the_file_of_the_real_model(lm: LanguageModel) -> None:
    """By hand: 106,168,320 numbers of 5 bits, 28,311,552 of 8.5 bits, 35,136 of 32 bits."""
    expected = 66_355_200 + 30_081_024 + 140_544
    assert weight_bytes(lm.config, block_bits=5, output_bits=8.5) == expected
    assert sum(tensor.nbytes for tensor in read_gguf(find_weights()).tensors.values()) == expected


def test_a_position_takes_as_many_bytes_as_in_the_cache(tiny_config: LlamaConfig) -> None:
    assert kv_bytes(tiny_config) * 12 == KVCache.empty(tiny_config, 12).nbytes
    assert kv_bytes(tiny_config, bits=16) * 12 == KVCache.empty(tiny_config, 12, torch.float16).nbytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seq": 0}, "seq must be at least 1, but is 0"),
        ({"cached": -1}, "cached must be at least 0"),
        ({"seq": 3, "cached": 30}, "at most the context, 32, but cached is 30 and seq is 3"),
        ({"seq": 2, "scored": 3}, r"scored must be in \[0, 2\], the new positions, but is 3"),
        ({"seq": 2, "scored": -1}, "but is -1"),
    ],
)
def test_passes_that_cannot_be_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        multiplications(BY_HAND, **arguments)


def test_numbers_without_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="block_bits must be above 0, but is 0"):
        weight_bytes(BY_HAND, block_bits=0)
    with pytest.raises(ValueError, match="output_bits must be above 0, but is -1"):
        weight_bytes(BY_HAND, output_bits=-1)
    with pytest.raises(ValueError, match="bits must be above 0, but is 0"):
        kv_bytes(BY_HAND, bits=0)
