"""`llm_internals.choice`: one token, and everything that is reported about how it was chosen."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.choice import choose
from llm_internals.sampling import SamplingParams, distribution, draw
from llm_internals.scores import log_softmax

EXACT = 1e-12
"""Float64: sums over a few dozen probabilities."""

GREEDY = SamplingParams(temperature=0)

logits = st.lists(st.floats(-20, 20), min_size=2, max_size=30)
settings = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.3, 1.0, 2.0]),
        "top_k": st.sampled_from([0, 1, 5]),
        "top_p": st.sampled_from([0.5, 0.9, 1.0]),
        "presence_penalty": st.sampled_from([0.0, 1.5]),
    }
)


def test_greedy_takes_the_largest_logit_and_the_lowest_id_among_equals():
    assert choose([1.0, 3.0, 2.0], GREEDY, random.Random(0)).id == 1
    assert choose([1.0, 3.0, 3.0], GREEDY, random.Random(0)).id == 1


def test_greedy_draws_no_number():
    rng = random.Random(5)
    choice = choose([1.0, 3.0, 2.0], GREEDY, rng)
    assert (choice.u, choice.bin, choice.n_candidates, choice.logprob) == (None, (0.0, 1.0), 1, 0.0)
    assert rng.random() == random.Random(5).random()


def test_greedy_margin_is_the_lead_over_the_next_logit_that_the_other_settings_leave():
    assert choose([1.0, 3.5, 3.0], GREEDY, random.Random(0)).margin == pytest.approx(0.5)
    assert choose([1.0, 3.5, 3.5], GREEDY, random.Random(0)).margin == 0
    without_2 = SamplingParams(temperature=0, banned_ids=(2,))
    assert choose([1.0, 3.5, 3.0], without_2, random.Random(0)).margin == pytest.approx(2.5)
    only_one = SamplingParams(temperature=0, top_k=1)
    assert choose([1.0, 3.5, 3.0], only_one, random.Random(0)).margin == math.inf


@given(logits, settings, st.integers(0, 999), st.lists(st.integers(0, 1), max_size=3))
def test_a_drawn_choice_is_consistent_with_the_distribution_it_was_drawn_from(logits, settings, seed, output_ids):
    params = SamplingParams(**settings)
    choice = choose(logits, params, random.Random(seed), output_ids=output_ids)
    probs = distribution(logits, params, (), output_ids)
    low, high = choice.bin
    assert choice.u == random.Random(seed).random()
    assert choice.id == draw(probs, choice.u)
    assert low <= choice.u < high
    assert high - low == pytest.approx(probs[choice.id], abs=EXACT)
    assert low == pytest.approx(probs[: choice.id].sum(), abs=EXACT)
    assert choice.logprob == pytest.approx(math.log(probs[choice.id]))
    assert choice.n_candidates == np.count_nonzero(probs)
    inner = [abs(choice.u - edge) for edge in choice.bin if 0 < edge < 1]
    assert choice.margin == (min(inner) if inner else 1)


@given(logits, settings)
def test_the_model_s_own_probability_knows_no_settings(logits, settings):
    choice = choose(logits, SamplingParams(**settings), random.Random(0), output_ids=[0, 1])
    assert choice.model_logprob == pytest.approx(float(log_softmax(logits)[choice.id]))


@given(logits, settings, st.integers(0, 9))
def test_the_likeliest_tokens_are_reported_with_the_model_s_own_probabilities(logits, settings, n):
    choice = choose(logits, SamplingParams(**settings), random.Random(0), output_ids=[0, 1], top_logprobs=n)
    logprobs = log_softmax(logits)
    ranked = sorted(range(len(logits)), key=lambda id: (-logits[id], id))[:n]
    assert [id for id, _ in choice.top_logprobs] == ranked
    assert [logprob for _, logprob in choice.top_logprobs] == pytest.approx([logprobs[id] for id in ranked], abs=EXACT)


def test_the_same_seed_gives_the_same_choices_and_another_seed_others():
    def ten_choices(seed):
        rng = random.Random(seed)
        return [choose(np.zeros(1000), SamplingParams(), rng).id for _ in range(10)]

    assert ten_choices(7) == ten_choices(7)
    assert ten_choices(7) != ten_choices(8)


def test_choices_are_as_frequent_as_their_probabilities():
    """2,000 draws from .7, .2, .1: three standard deviations of a frequency are .031."""
    rng, scores = random.Random(0), np.log([0.7, 0.2, 0.1])
    counts = np.bincount([choose(scores, SamplingParams(), rng).id for _ in range(2000)])
    assert counts / 2000 == pytest.approx([0.7, 0.2, 0.1], abs=0.031)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_logit_that_is_no_number_is_refused(bad, temperature):
    with pytest.raises(ValueError, match="logits must be finite"):
        choose([0.0, bad, 1.0], SamplingParams(temperature=temperature), random.Random(0))
