"""`llm_internals.likelihood`: the exact probability of what follows a prompt."""

import math
from dataclasses import replace

import pytest
import torch

from llm_internals.kv_cache import KVCache
from llm_internals.likelihood import answer_logits, answer_logprobs, bits_a_token, next_logprobs
from llm_internals.logits import lm_head
from llm_internals.model import forward
from tests.tiny_model import ID, bigram_language_model, random_weights

EXACT = 1e-12
"""Float64: the same sums in another order."""
FLOAT32 = 1e-3
"""Float32 on the real model: logits differ by up to 5e-4 between one pass and several (bugs G1), and so do two sums."""
ROUNDED = 6e-4
"""Half a unit of the third decimal, and 1e-4 for float32."""


def test_the_next_token_s_logprobs_are_the_log_softmax_of_the_last_position(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    logits = lm_head(forward(torch.tensor([3, 1, 4]), weights), weights)
    logprobs = next_logprobs([3, 1, 4], weights)
    torch.testing.assert_close(logprobs, logits[-1] - logits[-1].logsumexp(0), rtol=0, atol=EXACT)
    assert float(logprobs.exp().sum()) == pytest.approx(1, abs=EXACT)


def test_an_answer_by_hand_in_a_model_that_knows_one_token_back():
    """After a: b has 3/4 of two likely tokens; after b: c has 1/2 of two."""
    table = torch.full((16, 16), -1000.0)
    table[ID["a"], ID["b"]], table[ID["a"], ID["c"]] = math.log(3), 0.0
    table[ID["b"], ID["c"]], table[ID["b"], ID["d"]] = 0.0, 0.0
    weights = bigram_language_model(table).weights
    logprobs = answer_logprobs([ID["d"], ID["a"]], [ID["b"], ID["c"]], weights)
    assert logprobs.exp().tolist() == pytest.approx([0.75, 0.5], abs=1e-6)  # float32 logits


def test_one_pass_gives_what_one_pass_a_token_gives(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    prompt, answer = [3, 1, 4, 1], [5, 9, 2, 6]
    singly = [next_logprobs(prompt + answer[:i], weights)[answer[i]] for i in range(len(answer))]
    torch.testing.assert_close(answer_logprobs(prompt, answer, weights), torch.stack(singly), rtol=0, atol=EXACT)


def test_the_first_row_of_scores_has_seen_nothing_of_the_answer(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    logits = answer_logits([3, 1, 4], [5, 9, 2], weights)
    assert logits.shape == (3, 50)
    torch.testing.assert_close(logits[0].log_softmax(0), next_logprobs([3, 1, 4], weights), rtol=0, atol=EXACT)
    torch.testing.assert_close(logits[2], answer_logits([3, 1, 4, 5, 9], [7], weights)[0], rtol=0, atol=EXACT)


def test_blind_guessing_costs_the_logarithm_of_the_vocabulary_and_certainty_nothing():
    blind = bigram_language_model(torch.zeros(16, 16)).weights
    assert bits_a_token([ID["d"]], [ID["a"], ID["b"]], blind) == pytest.approx(4.0, abs=1e-6)
    table = torch.full((16, 16), -1000.0)
    table[ID["a"], ID["b"]] = 0.0
    assert bits_a_token([ID["a"]], [ID["b"]], bigram_language_model(table).weights) == pytest.approx(0.0, abs=1e-6)


def test_what_a_tap_removes_is_missing_from_the_answer_s_probability(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    shorter = replace(weights, layers=weights.layers[1:])
    silent = {"blocks.0.attn_out", "blocks.0.mlp_out"}
    tapped = answer_logprobs([3, 1], [4, 1, 5], weights, lambda name, x: x * 0 if name in silent else None)
    torch.testing.assert_close(tapped, answer_logprobs([3, 1], [4, 1, 5], shorter), rtol=0, atol=EXACT)
    assert (tapped - answer_logprobs([3, 1], [4, 1, 5], weights)).abs().max() > 0.01


def test_probabilities_of_all_answers_of_a_length_sum_to_one(tiny_config):
    weights = random_weights(replace(tiny_config, vocab_size=10), dtype=torch.float64)
    answers = [[i, j] for i in range(10) for j in range(10)]
    total = sum(float(answer_logprobs([7], answer, weights).sum().exp()) for answer in answers)
    assert total == pytest.approx(1, abs=EXACT)


def test_results_are_float64_whatever_the_weights_are(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float32)
    assert next_logprobs([1], weights).dtype == answer_logprobs([1], [2], weights).dtype == torch.float64


@pytest.mark.parametrize(("prompt", "answer"), [([], [1]), ([1], []), ([], [])])
def test_an_empty_prompt_or_answer_is_refused(tiny_config, prompt, answer):
    with pytest.raises(ValueError, match="prompt_ids and answer_ids must hold at least one token each"):
        answer_logprobs(prompt, answer, random_weights(tiny_config))


@pytest.mark.parametrize(("prompt", "answer"), [([50], [1]), ([1], [50]), ([1], [-1])])
def test_an_id_out_of_range_is_refused_wherever_it_stands(tiny_config, prompt, answer):
    with pytest.raises(ValueError, match=r"must be in \[0, 50\)"):
        answer_logprobs(prompt, answer, random_weights(tiny_config))


def test_prompt_and_answer_may_fill_the_context_and_one_more(tiny_config):
    """The last token of the answer is only asked about, so it needs no position."""
    weights = random_weights(tiny_config)
    assert len(answer_logprobs([1] * 60, [2] * 5, weights)) == 5
    with pytest.raises(ValueError, match="context has 64 positions"):
        answer_logprobs([1] * 60, [2] * 6, weights)


def test_the_real_model_s_answer_is_as_probable_as_its_steps_through_the_cache_say(lm):
    prompt, answer = lm.tokenizer.encode("The capital of Australia is"), lm.tokenizer.encode(" Canberra.")
    cache = KVCache.empty(lm.config, 16)
    hidden, total = forward(torch.tensor(prompt), lm.weights, cache), 0.0
    for id in answer:
        total += float(lm_head(hidden[-1:], lm.weights)[0].double().log_softmax(0)[id])
        hidden = forward(torch.tensor([id]), lm.weights, cache)
    logprobs = answer_logprobs(prompt, answer, lm.weights)
    assert float(logprobs.sum()) == pytest.approx(total, abs=FLOAT32)
    assert float(logprobs[0].exp()) == pytest.approx(0.341, abs=ROUNDED)
