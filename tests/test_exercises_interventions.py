"""The exercises of chapter 08: each solution passes its check, and plausible wrong answers are told what is wrong."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.checkpoint import LanguageModel
from llm_internals.exercises import interventions as exercises
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.processors import ban
from llm_internals.sampling import ORDERS, SamplingParams, distribution, softmax


@pytest.fixture(scope="module")
def pet(lm: LanguageModel) -> np.ndarray:
    """The logits after "My favorite pet is a"."""
    ids = torch.tensor(lm.tokenizer.encode("My favorite pet is a"))
    return lm_head(forward(ids, lm.weights)[-1:], lm.weights)[0].detach().double().numpy()


@pytest.fixture(scope="module")
def dog(lm: LanguageModel) -> int:
    """The id of the token " dog"."""
    return lm.tokenizer.encode(" dog")[0]


def test_no_answer_is_no_mistake(lm: LanguageModel, pet: np.ndarray, dog: int) -> None:
    assert exercises.check_bias(None, pet, dog).startswith("No answer yet:")
    assert exercises.check_spellings(None, lm.tokenizer).startswith("No answer yet:")
    assert exercises.check_min_p(None, pet).startswith("No answer yet:")


# 1. A bias for a probability


def test_the_bias_passes_its_check_also_when_it_is_rounded(pet: np.ndarray, dog: int) -> None:
    answer = exercises.bias_for(softmax(pet)[dog])
    for given_answer in (answer, round(answer, 2)):
        assert exercises.check_bias(given_answer, pet, dog).startswith("Right")


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0.01, 0.99))
def test_the_bias_gives_the_wanted_probability(p: float, wanted: float) -> None:
    bias = exercises.bias_for(p, wanted)
    probs = distribution(np.log([p, 1 - p]), SamplingParams(logit_bias={0: bias}))
    assert probs[0] == pytest.approx(wanted)


def test_another_bias_is_told_its_probability(pet: np.ndarray, dog: int) -> None:
    overtakes = math.log(softmax(pet).max() / softmax(pet)[dog])
    missing = 0.5 - softmax(pet)[dog]
    right = exercises.bias_for(softmax(pet)[dog])
    for wrong in (overtakes, missing, 0, 100, -right):
        told = exercises.check_bias(wrong, pet, dog)
        p = distribution(pet, SamplingParams(logit_bias={dog: wrong}))[dog]
        assert told.startswith("Not yet")
        assert f"{p:.3f}" in told
        assert f"{right:.2f}" not in told
    assert "finite" in exercises.check_bias(math.inf, pet, dog)


# 2. All spellings of a word


def test_the_spellings_pass_their_check_and_leave_no_way_to_the_word(lm: LanguageModel, pet: np.ndarray) -> None:
    found = exercises.spellings(lm.tokenizer)
    assert exercises.check_spellings(found, lm.tokenizer) == f"Right: all {len(found)} of them."
    left = np.flatnonzero(ban(pet, found) > -np.inf)
    texts = [lm.tokenizer.token_bytes(int(id)).decode("utf-8", errors="replace") for id in left]
    assert not any(text.strip().lower().startswith("cat") for text in texts)
    assert not {"c", "C", " c", " ca", " CA"} & set(texts)
    assert {" ", " dog", " act"} <= set(texts), "what can't begin the word stays open"


def test_every_way_to_cut_the_word_into_tokens_is_blocked_at_its_first_one(lm: LanguageModel) -> None:
    found = exercises.spellings(lm.tokenizer)
    id_of = {lm.tokenizer.token_bytes(id): id for id in range(lm.tokenizer.vocab_size)}
    for text in (b" cat", b"cat", b" Cat", b"CAT", b" cats", b" caterpillar"):
        beginnings = [text[:end] for end in range(1, len(text) + 1) if text[:end].strip()]
        assert {id_of[beginning] for beginning in beginnings if beginning in id_of} <= found


def test_other_sets_are_told_one_token_that_is_wrong(lm: LanguageModel) -> None:
    tokenizer = lm.tokenizer
    found = exercises.spellings(tokenizer)
    one = tokenizer.encode(" cat")
    assert "is still open, and" in exercises.check_spellings(one, tokenizer)
    whole_words = {id for id in found if len(tokenizer.token_bytes(id).strip()) >= len("cat")}
    assert "c (id 83) is still open" in exercises.check_spellings(whole_words | {51}, tokenizer)
    assert exercises.check_spellings(found - set(one), tokenizer) == "Not yet: ␣cat (id 2644) is still open."
    everything = range(tokenizer.vocab_size)
    assert "can't be the beginning" in exercises.check_spellings(everything, tokenizer)
    assert "␣dog" in exercises.check_spellings(found | set(tokenizer.encode(" dog")), tokenizer)
    assert "no id" in exercises.check_spellings({tokenizer.vocab_size}, tokenizer)


# 3. A min-p to take along


def test_the_min_p_passes_its_check(pet: np.ndarray) -> None:
    assert exercises.check_min_p(exercises.min_p_before_temperature(), pet).startswith("Right")


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=30))
def test_the_min_p_keeps_the_same_tokens_in_both_orders(logits: list[float]) -> None:
    shares = np.exp(np.array(logits) - max(logits)) / exercises.min_p_before_temperature()
    if np.abs(shares - 1).min() > 1e-9:
        assert exercises.check_min_p(exercises.min_p_before_temperature(), logits).startswith("Right")


@pytest.mark.parametrize("wrong", [exercises.MIN_P, exercises.MIN_P / exercises.HOT, exercises.MIN_P ** (1 / 1.5), 1])
def test_another_min_p_is_told_what_it_keeps(pet: np.ndarray, wrong: float) -> None:
    told = exercises.check_min_p(wrong, pet)
    params = SamplingParams(temperature=exercises.HOT, min_p=wrong, order=ORDERS["llama.cpp"])
    assert told.startswith("Not yet")
    assert f"keeps {np.count_nonzero(distribution(pet, params))} tokens" in told
    assert f"{exercises.min_p_before_temperature():.3f}" not in told


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan])
def test_what_is_no_share_is_refused(pet: np.ndarray, wrong: float) -> None:
    assert exercises.check_min_p(wrong, pet) == "Not yet: min-p is a number in [0, 1]."
