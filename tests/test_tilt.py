"""`llm_internals.tilt`: the best distribution for a reward and a price of change."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.likelihood import next_logprobs
from llm_internals.sampling import SamplingParams, distribution, softmax
from llm_internals.tilt import kl_divergence, log_partition, objective, tilt

EXACT = 1e-9
"""Float64 with logits up to 20, rewards up to 5 and beta at least 0.05: some thousand units in the last place."""
ROUNDED = 6e-4
"""Half a unit of the third decimal, and 1e-4 for float32."""

SIZE = 6
vectors = st.lists(st.floats(-20, 20), min_size=SIZE, max_size=SIZE).map(lambda v: torch.tensor(v, dtype=torch.float64))
logprobs = vectors.map(lambda v: v.log_softmax(0))
rewards = st.lists(st.floats(-5, 5), min_size=SIZE, max_size=SIZE).map(lambda v: torch.tensor(v, dtype=torch.float64))
betas = st.floats(0.05, 10)


def float64(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_tilt_by_hand():
    """exp(r / beta) = 4 for the second token: weights 1/2, 1, 1/4 of a sum of 7/4."""
    p, reward = float64(0.5, 0.25, 0.25).log(), float64(0, math.log(4), 0)
    assert tilt(p, reward, beta=1.0).exp().tolist() == pytest.approx([2 / 7, 4 / 7, 1 / 7])
    assert float(log_partition(p, reward, beta=1.0)) == pytest.approx(math.log(7 / 4))


def test_a_kl_divergence_by_hand():
    """1/2 ln 2 + 1/2 ln(2/3), in nats."""
    assert float(kl_divergence(float64(0.5, 0.5).log(), float64(0.25, 0.75).log())) == pytest.approx(
        0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    )


@given(logprobs, rewards, betas)
def test_the_tilt_reaches_beta_ln_z(reference, reward, beta):
    best = objective(tilt(reference, reward, beta), reference, reward, beta)
    assert float(best) == pytest.approx(float(beta * log_partition(reference, reward, beta)), abs=EXACT)


@given(logprobs, logprobs, rewards, betas)
def test_any_other_distribution_falls_short_by_beta_times_its_divergence_from_the_tilt(p, reference, reward, beta):
    best = beta * log_partition(reference, reward, beta)
    shortfall = beta * kl_divergence(p, tilt(reference, reward, beta))
    assert float(objective(p, reference, reward, beta)) == pytest.approx(float(best - shortfall), abs=EXACT)
    assert float(shortfall) >= -EXACT


@given(logprobs, logprobs)
def test_a_divergence_is_zero_from_itself_and_positive_otherwise(p, q):
    assert float(kl_divergence(p, p)) == 0
    apart = float((p.exp() - q.exp()).abs().max())
    assert float(kl_divergence(p, q)) >= 2 * apart**2 - EXACT  # Pinsker's inequality


@given(logprobs, rewards, betas, st.floats(-5, 5))
def test_a_constant_reward_changes_the_objective_and_not_the_tilt(p, reward, beta, constant):
    torch.testing.assert_close(tilt(p, reward + constant, beta), tilt(p, reward, beta), rtol=0, atol=EXACT)
    more = objective(p, p, reward + constant, beta) - objective(p, p, reward, beta)
    assert float(more) == pytest.approx(constant, abs=EXACT)


@given(logprobs, rewards, rewards, betas)
def test_tilts_add_up_in_any_order(p, first, second, beta):
    torch.testing.assert_close(
        tilt(tilt(p, first, beta), second, beta), tilt(p, first + second, beta), rtol=0, atol=EXACT
    )


@given(vectors, st.floats(0.05, 0.95))
def test_a_temperature_below_1_is_the_tilt_by_the_model_s_own_opinion(logits, temperature):
    """r = ln p and beta = T / (1 - T), that is T = beta / (1 + beta)."""
    p = logits.log_softmax(0)
    beta = temperature / (1 - temperature)
    expected = distribution(logits, SamplingParams(temperature=temperature))
    assert tilt(p, reward=p, beta=beta).exp().tolist() == pytest.approx(expected.tolist(), abs=EXACT)


@given(vectors, rewards, betas)
def test_a_tilt_is_a_logit_bias_of_reward_over_beta(logits, reward, beta):
    bias = {id: float(value) for id, value in enumerate(reward / beta)}
    expected = distribution(logits, SamplingParams(logit_bias=bias))
    assert tilt(logits.log_softmax(0), reward, beta).exp().tolist() == pytest.approx(expected.tolist(), abs=EXACT)


def test_a_high_price_leaves_the_model_and_a_low_one_leaves_the_best_token():
    p, reward = float64(0.9, 0.05, 0.05).log(), float64(0.0, 1.0, 0.5)
    assert tilt(p, reward, beta=1e6).exp().tolist() == pytest.approx(p.exp().tolist(), abs=1e-5)
    assert tilt(p, reward, beta=0.01).exp().tolist() == pytest.approx([0, 1, 0], abs=1e-9)


def test_several_distributions_at_once_are_those_one_by_one():
    generator = torch.Generator().manual_seed(0)
    p, q, reward = torch.randn(3, 4, SIZE, generator=generator, dtype=torch.float64).log_softmax(-1).unbind()
    torch.testing.assert_close(tilt(p, reward, 0.5)[2], tilt(p[2], reward[2], 0.5))
    torch.testing.assert_close(objective(q, p, reward, 0.5)[2], objective(q[2], p[2], reward[2], 0.5))


def test_the_gradient_of_the_objective_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    logits, reference, reward = torch.randn(3, SIZE, generator=generator, dtype=torch.float64).unbind()
    logits.requires_grad_(True)
    assert torch.autograd.gradcheck(
        lambda z: objective(z.log_softmax(0), reference.log_softmax(0), reward, 0.3), (logits,)
    )


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("function", [tilt, log_partition])
def test_a_price_that_is_not_above_zero_is_refused(function, beta):
    with pytest.raises(ValueError, match="beta must be a finite number above 0, but is"):
        function(float64(0.5, 0.5).log(), float64(0, 1), beta)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_refused_by_name(value):
    with pytest.raises(ValueError, match="reward must be finite"):
        tilt(float64(0.5, 0.5).log(), float64(0, value), 1.0)
    with pytest.raises(ValueError, match="logprobs must be finite"):
        tilt(float64(0, value), float64(0, 1), 1.0)


def test_the_closed_form_on_the_real_model(lm):
    """The numbers of chapter 09: beta .25 takes Canberra from .341 to .966, and J can't pass .7399."""
    p = next_logprobs(lm.tokenizer.encode("The capital of Australia is"), lm.weights)
    [canberra] = lm.tokenizer.encode(" Canberra")
    reward = torch.zeros_like(p)
    reward[canberra] = 1
    assert float(p[canberra].exp()) == pytest.approx(0.341, abs=ROUNDED)
    assert float(tilt(p, reward, 0.25)[canberra].exp()) == pytest.approx(0.966, abs=ROUNDED)
    assert float(tilt(p, reward, 1.0)[canberra].exp()) == pytest.approx(0.585, abs=ROUNDED)
    assert 0.25 * float(log_partition(p, reward, 0.25)) == pytest.approx(0.7399, abs=1e-4)
    assert softmax(p)[canberra] == pytest.approx(float(p[canberra].exp()))
