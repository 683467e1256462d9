"""`llm_internals.preference`: the objective of RLHF, climbed by its exact gradient."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from llm_internals.adapters import ADAPTABLE, adapt, adapter_parameters, gradients_of
from llm_internals.likelihood import next_logprobs
from llm_internals.preference import RewardedPrompt, train_on_rewards
from llm_internals.tilt import kl_divergence, log_partition, objective, tilt
from tests.tiny_model import random_weights

NEAR = 1e-5
"""Nats of KL divergence between a tiny model and the closed form: 100 steps of `run` leave less than 1e-6."""
ROUNDING = 1e-12
"""Float64 sums over ten tokens."""
DIFFERENCES = 1e-7
"""Central differences in float64, step 1e-5: a third derivative times 1e-10, and rounding divided by 1e-5."""

PROMPT, OTHER = [3, 1, 4, 1, 5], [9, 2, 6]
BETA = 0.5


def rewarded(ids, vocab_size=50, **values):
    reward = torch.zeros(vocab_size)
    for name, value in values.items():
        reward[int(name.removeprefix("id"))] = value
    return RewardedPrompt(ids, reward)


def run(weights, prompts, *, seed=0, steps=3, beta=BETA, learning_rate=0.03, rank=4):
    adapted = adapt(weights, rank=rank, targets=ADAPTABLE, seed=seed)
    return adapted, list(
        train_on_rewards(adapted, weights, prompts, beta=beta, steps=steps, learning_rate=learning_rate)
    )


@pytest.fixture
def weights(tiny_config):
    return random_weights(tiny_config, dtype=torch.float64)


@pytest.fixture
def few_tokens(tiny_config):
    """A model whose hidden states, 24 wide, can set the logits of its 10 tokens one by one."""
    return random_weights(replace(tiny_config, vocab_size=10), dtype=torch.float64)


def test_training_arrives_at_the_closed_form(few_tokens):
    prompt = rewarded(PROMPT, 10, id7=1.0, id8=0.5)
    _, records = run(few_tokens, [prompt], steps=100)
    before, reward = next_logprobs(PROMPT, few_tokens), prompt.reward.double()
    assert float(kl_divergence(records[-1].probs[0].log(), tilt(before, reward, BETA))) < NEAR
    optimum = BETA * float(log_partition(before, reward, BETA))
    assert optimum - BETA * NEAR < records[-1].objective <= optimum + ROUNDING
    assert records[0].objective < optimum - 0.01


def test_several_prompts_are_learnt_at_once_each_with_its_own_reward(few_tokens):
    _, records = run(few_tokens, [rewarded(PROMPT, 10, id7=1.0), rewarded(OTHER, 10, id8=1.0)], steps=100)
    for row, (ids, id) in enumerate([(PROMPT, 7), (OTHER, 8)]):
        best = tilt(next_logprobs(ids, few_tokens), rewarded(ids, 10, **{f"id{id}": 1.0}).reward.double(), BETA)
        assert float(kl_divergence(records[-1].probs[row].log(), best)) < NEAR


def test_a_vocabulary_larger_than_the_hidden_state_keeps_training_short_of_the_closed_form(weights):
    """The softmax bottleneck: 50 logits can't be set one by one with 24 numbers."""
    prompt = rewarded(PROMPT, id7=1.0, id8=0.5)
    _, records = run(weights, [prompt], steps=100)
    best = tilt(next_logprobs(PROMPT, weights), prompt.reward.double(), BETA)
    assert float(kl_divergence(records[-1].probs[0].log(), best)) > 1000 * NEAR


def test_a_record_says_where_the_model_stands(weights):
    prompts = [rewarded(PROMPT, id7=1.0, id8=-2.0), rewarded(OTHER, id9=1.0)]
    adapted, records = run(weights, prompts)
    last = records[-1]
    now, before = ([next_logprobs(p.prompt_ids, model) for p in prompts] for model in (adapted, weights))
    assert [record.step for record in records] == [0, 1, 2, 3]
    assert torch.equal(last.probs, torch.stack(now).exp())
    assert last.kl == pytest.approx(sum(float(kl_divergence(*pair)) for pair in zip(now, before, strict=True)) / 2)
    expected = float(last.probs[0, 7] - 2 * last.probs[0, 8] + last.probs[1, 9]) / 2
    assert last.reward == pytest.approx(expected)
    assert last.objective == pytest.approx(last.reward - BETA * last.kl)
    assert last.kl > 0


def test_training_starts_at_the_reference(weights):
    _, records = run(weights, [rewarded(PROMPT, id7=1.0)])
    assert records[0].kl == 0
    assert torch.equal(records[0].probs[0], next_logprobs(PROMPT, weights).exp())


def test_the_gradient_is_that_of_finite_differences(weights):
    """Along a random direction in each tensor, with adapters that are no longer at their start."""
    generator = torch.Generator().manual_seed(0)
    adapted = adapt(weights, rank=2, targets=ADAPTABLE)
    parameters = adapter_parameters(adapted)
    for parameter in parameters:
        parameter += 0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    before, reward = next_logprobs(PROMPT, weights), rewarded(PROMPT, id7=1.0, id8=0.5).reward.double()

    def value():
        return objective(next_logprobs(PROMPT, adapted), before, reward, BETA)

    with gradients_of(parameters):
        gradients = torch.autograd.grad(value(), parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        start, step = parameter.clone(), 1e-5
        above, below = (
            value_at(value, parameter, start + step * direction),
            value_at(value, parameter, start - step * direction),
        )
        parameter.copy_(start)
        slope = float((gradient * direction).sum())
        assert (above - below) / (2 * step) == pytest.approx(slope, abs=DIFFERENCES)
        assert slope != 0


def value_at(value, parameter, numbers):
    parameter.copy_(numbers)
    return float(value())


def test_the_reference_model_is_never_changed(weights):
    tensors = all_tensors(weights)
    before = [tensor.clone() for tensor in tensors]
    logprobs = next_logprobs(PROMPT, weights)
    run(weights, [rewarded(PROMPT, id7=1.0)])
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, before, strict=True))
    assert torch.equal(next_logprobs(PROMPT, weights), logprobs)
    assert not any(tensor.requires_grad or tensor.grad is not None for tensor in tensors)


def all_tensors(weights):
    tensors = [weights.embed_tokens, weights.norm]
    for layer in weights.layers:
        for part in (layer, layer.self_attn, layer.mlp):
            tensors += [getattr(part, field.name) for field in fields(part)]
    return [tensor for tensor in tensors if isinstance(tensor, Tensor)]


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_ones(weights):
    prompts = [rewarded(PROMPT, id7=1.0)]
    (_, first), (_, again), (_, other) = (run(weights, prompts, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a.probs, b.probs) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[-1].probs, other[-1].probs)


def test_a_prompt_without_reward_holds_the_model_back_there(weights):
    """A reward of zero leaves the price of change: the divergence on that prompt is what the term costs."""
    free, _ = run(weights, [rewarded(PROMPT, id7=1.0)], steps=60)
    held, _ = run(weights, [rewarded(PROMPT, id7=1.0), rewarded(OTHER)], steps=60)
    moved = [float(kl_divergence(next_logprobs(OTHER, model), next_logprobs(OTHER, weights))) for model in (free, held)]
    assert moved[1] < moved[0] / 10


def test_no_prompts_a_model_without_adapters_and_a_price_of_zero_are_refused_at_once(weights):
    settings = {"steps": 1, "learning_rate": 0.1}
    with pytest.raises(ValueError, match="prompts must hold at least one RewardedPrompt"):
        train_on_rewards(adapt(weights), weights, [], beta=1.0, **settings)
    with pytest.raises(ValueError, match="weights must have adapters to train"):
        train_on_rewards(weights, weights, [rewarded(PROMPT)], beta=1.0, **settings)
    with pytest.raises(ValueError, match=r"beta must be a finite number above 0, but is 0\.0"):
        train_on_rewards(adapt(weights), weights, [rewarded(PROMPT)], beta=0.0, **settings)


def test_the_real_model_turns_to_canberra_and_gains_nearly_all_there_is_to_gain(lm):
    """Chapter 09, in 12 steps instead of 40: from J = .341 to within .005 of the optimum, .7399."""
    [canberra], [sydney] = lm.tokenizer.encode(" Canberra"), lm.tokenizer.encode(" Sydney")
    reward = torch.zeros(lm.config.vocab_size)
    reward[canberra] = 1
    prompt = RewardedPrompt(lm.tokenizer.encode("The capital of Australia is"), reward)
    adapted = adapt(lm.weights)
    records = list(train_on_rewards(adapted, lm.weights, [prompt], beta=0.25, steps=12, learning_rate=1e-3))
    first, last = records[0], records[-1]
    assert first.probs[0, sydney] > first.probs[0, canberra]
    assert last.probs[0, canberra] > 0.94
    assert first.objective == pytest.approx(0.341, abs=6e-4)  # half a unit of the third decimal, and 1e-4 for float32
    assert 0.735 < last.objective < 0.7399
    assert next_logprobs(prompt.prompt_ids, lm.weights)[sydney].exp() == pytest.approx(first.probs[0, sydney])
