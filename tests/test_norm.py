"""`llm_internals.norm`: the size of a vector is taken out, its direction stays."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from llm_internals.norm import rms_norm

VECTORS = json.loads((Path(__file__).parent / "data" / "numerics.json").read_text(encoding="utf-8"))["rmsnorm"]
STORED = 1e-8
"""The vectors are stored with eight decimals."""
FLOAT32 = 1e-6
"""Relative: a mean of some dozens of squares, a root and two products in float32."""


@pytest.mark.parametrize("case", VECTORS)
def test_epsilon_stands_inside_the_root(case):
    x, weight = (torch.tensor(case[name], dtype=torch.float64) for name in ("x", "w"))
    assert rms_norm(x, weight, case["eps"]).tolist() == pytest.approx(case["expected"], abs=STORED)


def test_a_norm_by_hand():
    """The mean square of 1, 1, 5, 3 is 9, its root 3."""
    x, weight = torch.tensor([1.0, -1.0, 5.0, 3.0]), torch.tensor([3.0, 3.0, 6.0, 0.0])
    torch.testing.assert_close(rms_norm(x, weight, eps=1e-12), torch.tensor([1.0, -1.0, 10.0, 0.0]))


def test_the_mean_is_not_subtracted():
    x = torch.full((4,), 7.0)
    torch.testing.assert_close(rms_norm(x, torch.ones(4), eps=1e-12), torch.ones(4))


@given(st.integers(0, 99), st.floats(0.1, 1e4))
def test_the_size_of_a_vector_does_not_matter(seed, factor):
    x = torch.randn(32, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    one, other = (rms_norm(vector, torch.ones(32).double(), eps=1e-12) for vector in (x, factor * x))
    torch.testing.assert_close(one, other)
    assert float(one.square().mean()) == pytest.approx(1)


def test_a_vector_of_zeros_stays_zero():
    assert rms_norm(torch.zeros(4), torch.ones(4), eps=1e-5).tolist() == [0, 0, 0, 0]


def test_every_position_is_normed_by_itself():
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
    whole = rms_norm(x, torch.ones(8), eps=1e-5)
    assert torch.equal(whole[1, 2], rms_norm(x[1, 2], torch.ones(8), eps=1e-5))


@given(st.integers(0, 99), st.sampled_from([1e-3, 1.0, 1e3]))
def test_it_is_transformers_norm(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    x, weight = scale * torch.randn(5, 24, generator=generator), torch.randn(24, generator=generator)
    theirs = LlamaRMSNorm(24, eps=1e-5)
    theirs.weight.data = weight
    torch.testing.assert_close(rms_norm(x, weight, eps=1e-5), theirs(x).detach(), rtol=FLOAT32, atol=0)
