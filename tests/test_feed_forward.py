"""`llm_internals.feed_forward`: SwiGLU with three matrices, one position at a time."""

import json
import math
import warnings
from pathlib import Path

import pytest
import torch
from transformers.models.llama.modeling_llama import LlamaMLP

from llm_internals.feed_forward import FeedForwardWeights, feed_forward
from llm_internals.tap import Recorder
from tests.reference import transformers_config
from tests.tiny_model import random_weights

VECTORS = json.loads((Path(__file__).parent / "data" / "numerics.json").read_text(encoding="utf-8"))["swiglu"]
STORED = 1e-8
"""The vectors are stored with eight decimals."""
FLOAT32 = 1e-5
"""Two chained products of 24 and 40 terms in float32, in other orders of summation."""


def gate_alone(gate, up):
    """What the gate lets through, unit by unit: matrices that pick ``gate`` and ``up`` out of [gate, up]."""
    size = len(gate)
    identity, zero = torch.eye(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
    weights = FeedForwardWeights(
        torch.cat((identity, zero)), torch.cat((zero, identity)), torch.cat((identity, zero), 1)
    )
    return feed_forward(torch.tensor([gate + up], dtype=torch.float64), weights)[0, :size]


def test_gated_products_are_the_stored_ones():
    product = gate_alone(VECTORS["gate"], VECTORS["up"])
    assert product.tolist() == pytest.approx(VECTORS["expected"], abs=STORED)


@pytest.mark.parametrize("gate", [-1e30, -1e4, -100.0, 100.0, 1e4, 1e30])
def test_a_large_gate_makes_no_nan_and_no_warning(gate):
    """exp(100) alone is no longer a float32, and exp(1000) no float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gate_alone([gate], [1.0]).tolist() == pytest.approx([max(gate, 0.0)])
    weights = FeedForwardWeights(torch.eye(1), torch.eye(1), torch.eye(1))
    assert not feed_forward(torch.tensor([[gate]]), weights).isnan().any()


def test_it_is_the_equation_written_out():
    x, gate, up, down = 0.5, 3.0, -2.0, 7.0
    weights = FeedForwardWeights(torch.tensor([[gate]]), torch.tensor([[up]]), torch.tensor([[down]]))
    expected = (gate * x) / (1 + math.exp(-gate * x)) * (up * x) * down
    assert float(feed_forward(torch.tensor([[x]]), weights)) == pytest.approx(expected)


def test_every_position_is_worked_on_by_itself(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64).layers[0].mlp
    x = torch.randn(5, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    alone = torch.cat([feed_forward(row, weights) for row in x.split(1)])
    torch.testing.assert_close(feed_forward(x, weights), alone)


def test_the_tap_is_shown_the_gate_before_silu_what_it_gates_and_their_product(tiny_config):
    weights = random_weights(tiny_config).layers[0].mlp
    recorder, x = Recorder(), torch.ones(2, 24)
    feed_forward(x, weights, recorder)
    assert list(recorder.tensors) == ["pre", "pre_linear", "post"]
    assert torch.equal(recorder["pre"], x @ weights.gate_proj)
    assert torch.equal(recorder["pre_linear"], x @ weights.up_proj)
    torch.testing.assert_close(recorder["post"], recorder["pre"] * recorder["pre"].sigmoid() * recorder["pre_linear"])


def test_it_is_transformers_mlp(tiny_config):
    weights = random_weights(tiny_config).layers[0].mlp
    theirs = LlamaMLP(transformers_config(tiny_config))
    for name in ("gate_proj", "up_proj", "down_proj"):
        getattr(theirs, name).weight.data = getattr(weights, name).t()
    x = torch.randn(7, 24, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(feed_forward(x, weights), theirs(x).detach(), rtol=0, atol=FLOAT32)
