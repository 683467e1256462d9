"""`llm_internals.block`: two sub-layers that read a normed copy of the stream and add to it."""

from dataclasses import replace

import pytest
import torch

from llm_internals.attention import causal_mask
from llm_internals.block import block
from llm_internals.norm import rms_norm
from llm_internals.rope import rotation
from llm_internals.tap import Recorder
from tests.tiny_model import random_weights


@pytest.fixture
def weights(tiny_config):
    return random_weights(tiny_config, dtype=torch.float64).layers[0]


@pytest.fixture
def x():
    return torch.randn(5, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def run(x, weights, config, tap=None):
    turn = rotation(torch.arange(len(x)), config.head_dim, config.rope_theta, x.dtype)
    return block(x, weights, config, turn, causal_mask(len(x), len(x)), tap=tap)


def test_a_block_whose_output_matrices_are_zero_leaves_the_stream_alone(tiny_config, weights, x):
    silent = replace(
        weights,
        self_attn=replace(weights.self_attn, o_proj=torch.zeros_like(weights.self_attn.o_proj)),
        mlp=replace(weights.mlp, down_proj=torch.zeros_like(weights.mlp.down_proj)),
    )
    assert torch.equal(run(x, silent, tiny_config), x)


def test_the_stream_is_a_sum_of_what_came_in_and_what_each_sub_layer_added(tiny_config, weights, x):
    recorder = Recorder()
    output = run(x, weights, tiny_config, recorder)
    assert torch.equal(recorder["resid_pre"], x)
    assert torch.equal(recorder["resid_mid"], x + recorder["attn_out"])
    assert torch.equal(recorder["resid_post"], recorder["resid_mid"] + recorder["mlp_out"])
    assert torch.equal(output, recorder["resid_post"])


def test_each_sub_layer_reads_a_normed_copy_of_the_stream_as_it_is_then(tiny_config, weights, x):
    recorder = Recorder()
    run(x, weights, tiny_config, recorder)
    eps = tiny_config.rms_norm_eps
    assert torch.equal(recorder["ln1.normalized"], rms_norm(x, weights.input_layernorm, eps))
    assert torch.equal(
        recorder["ln2.normalized"], rms_norm(recorder["resid_mid"], weights.post_attention_layernorm, eps)
    )


def test_the_input_is_not_written_to(tiny_config, weights, x):
    before = x.clone()
    run(x, weights, tiny_config)
    assert torch.equal(x, before)


def test_what_a_block_adds_does_not_grow_with_the_stream(tiny_config, weights, x):
    """Pre-norm: ten times the input gives the same attention output."""
    one, ten = Recorder("attn_out"), Recorder("attn_out")
    config = replace(tiny_config, rms_norm_eps=1e-12)
    run(x, weights, config, one)
    run(10 * x, weights, config, ten)
    torch.testing.assert_close(one["attn_out"], ten["attn_out"])
