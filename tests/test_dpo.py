"""`llm_internals.dpo`: preferences between whole answers, learnt from pairs."""

import math

import pytest
import torch

from llm_internals.adapters import ADAPTABLE, adapt, adapter_parameters, gradients_of
from llm_internals.dpo import Pair, dpo_loss, pair_logprobs, train_on_pairs
from llm_internals.likelihood import answer_logprobs
from llm_internals.tilt import tilt
from tests.tiny_model import random_weights

EXACT = 1e-12
DIFFERENCES = 1e-7
"""Central differences in float64, step 1e-5: a third derivative times 1e-10, and rounding divided by 1e-5."""

PAIRS = [Pair([3, 1, 4], [1, 5], [9, 2, 6]), Pair([5, 3], [5, 8, 9], [7])]
BETA = 0.1


@pytest.fixture
def weights(tiny_config):
    return random_weights(tiny_config, dtype=torch.float64)


def run(weights, seed=0, steps=30):
    adapted = adapt(weights, rank=2, targets=ADAPTABLE, seed=seed)
    return adapted, list(train_on_pairs(adapted, weights, PAIRS, beta=BETA, steps=steps, learning_rate=0.02))


def test_the_loss_by_hand():
    """sigmoid(ln 3) = 3/4 and sigmoid(0) = 1/2: the mean of ln(4/3) and ln 2."""
    margins = torch.tensor([10 * math.log(3), 0.0], dtype=torch.float64)
    assert float(dpo_loss(margins, beta=0.1)) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)


def test_the_loss_of_huge_margins_stays_finite():
    assert float(dpo_loss(torch.tensor([-1e6, 1e6], dtype=torch.float64), beta=1.0)) == pytest.approx(5e5)


@pytest.mark.parametrize("beta", [0.0, -0.1, math.inf, math.nan])
def test_a_beta_that_is_not_above_zero_is_refused(beta):
    with pytest.raises(ValueError, match="beta must be a finite number above 0, but is"):
        dpo_loss(torch.tensor([0.0]), beta)


def test_the_loss_is_lowest_where_the_model_is_the_tilt_that_the_choices_came_from():
    """Equation 7 against equation 4: choices drawn with probability sigmoid(r_a - r_b) are best explained by p*.

    Over answers of one token everything can be summed: each ordered pair counts as often as people choose so.
    """
    reference = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    reward, beta = torch.tensor([0.0, 1.0, -0.5], dtype=torch.float64), 0.5

    def expected_loss(logprobs):
        gain, terms = logprobs - reference, []
        for chosen in range(3):
            for rejected in range(3):
                share = torch.sigmoid(reward[chosen] - reward[rejected])
                terms.append(share * dpo_loss((gain[chosen] - gain[rejected])[None], beta))
        return torch.stack(terms).sum()

    best = tilt(reference, reward, beta).requires_grad_(True)
    [gradient] = torch.autograd.grad(expected_loss(best), best)
    assert gradient.abs().max() < EXACT
    elsewhere = tilt(reference, reward + torch.tensor([0.1, 0.0, 0.0]), beta)
    assert expected_loss(elsewhere) > expected_loss(best)


def test_both_answers_are_scored_whole(weights):
    chosen, rejected = pair_logprobs(PAIRS, weights)
    assert chosen.tolist() == [float(answer_logprobs(p.prompt_ids, p.chosen_ids, weights).sum()) for p in PAIRS]
    assert rejected.tolist() == [float(answer_logprobs(p.prompt_ids, p.rejected_ids, weights).sum()) for p in PAIRS]


def test_training_widens_every_margin_and_starts_at_ln_2(weights):
    _, records = run(weights)
    assert records[0].loss == pytest.approx(math.log(2), abs=EXACT)
    assert records[0].margins.tolist() == [0, 0]
    assert records[-1].loss < records[0].loss / 2
    assert min(records[-1].margins) > 10


def test_a_record_says_where_the_model_stands(weights):
    adapted, records = run(weights, steps=3)
    last, now, before = records[-1], pair_logprobs(PAIRS, adapted), pair_logprobs(PAIRS, weights)
    assert [record.step for record in records] == [0, 1, 2, 3]
    assert torch.equal(torch.stack([last.chosen, last.rejected]), now)
    assert torch.equal(last.margins, (now - before)[0] - (now - before)[1])
    assert last.loss == float(dpo_loss(last.margins, BETA))


def test_the_gradient_is_that_of_finite_differences(weights):
    generator = torch.Generator().manual_seed(0)
    adapted = adapt(weights, rank=2)
    parameters = adapter_parameters(adapted)
    for parameter in parameters:
        parameter += 0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    before = pair_logprobs(PAIRS, weights)

    def loss():
        gain = pair_logprobs(PAIRS, adapted) - before
        return dpo_loss(gain[0] - gain[1], BETA)

    with gradients_of(parameters):
        gradients = torch.autograd.grad(loss(), parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        start, step, losses = parameter.clone(), 1e-5, []
        for sign in (1, -1):
            parameter.copy_(start + sign * step * direction)
            losses.append(float(loss()))
        parameter.copy_(start)
        slope = float((gradient * direction).sum())
        assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(slope, abs=DIFFERENCES)
        assert slope != 0


def test_the_same_seed_gives_the_same_bits_and_the_reference_stays(weights):
    before = pair_logprobs(PAIRS, weights)
    (_, first), (_, again) = run(weights, steps=3), run(weights, steps=3)
    assert torch.equal(first[-1].margins, again[-1].margins)
    assert torch.equal(pair_logprobs(PAIRS, weights), before)


def test_no_pairs_are_refused(weights):
    with pytest.raises(ValueError, match="pairs must hold at least one Pair, but is empty"):
        train_on_pairs(adapt(weights), weights, [], beta=BETA, steps=1, learning_rate=0.1)


def test_the_real_model_learns_to_prefer_the_short_answer(lm):
    """One pair, three steps: enough to see the margin of a real answer grow."""
    encode, [end] = lm.tokenizer.encode, lm.tokenizer.encode("<|im_end|>", allow_special=True)
    pair = Pair(encode("The capital of Australia is"), [*encode(" Canberra."), end], encode(" Sydney."))
    adapted = adapt(lm.weights)
    records = list(train_on_pairs(adapted, lm.weights, [pair], beta=BETA, steps=3, learning_rate=1e-3))
    assert records[0].loss == pytest.approx(math.log(2), abs=1e-6)
    margins = [float(record.margins[0]) for record in records]
    assert margins == sorted(margins)
    assert margins[-1] > 1
