"""Bias, penalties and bans: published cases, the bugs of other implementations, and parity with transformers."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation import logits_process as hf

from llm_internals import processors
from llm_internals.scores import softmax

DATA = json.loads((Path(__file__).parent / "data" / "penalties.json").read_text(encoding="utf-8"))
PENALTIES = {row["id"]: row for row in DATA["penalties"]}
MASKS = {row["id"]: row for row in DATA["masks"]}

DEVIATIONS = {
    "pen-17": "a part of the prompt that doesn't count isn't a setting here: pass the history that should count",
    "mask-9": "a ban on a sequence of tokens isn't offered; the one-token entries of the case are run as a ban",
    "mask-12": "a bias on a sequence of tokens isn't offered; the one-token entries of the case are run as a bias",
    "mask-17": "a minimum length isn't a setting here: ban the end ids until it is reached",
    "mask-18": "as mask-17",
    "mask-19": "as mask-17",
    "mask-20": "end ids are an argument of the generation loop, which checks them by the same rule as a ban",
}
"""Published cases that ask for what the package doesn't offer, and what we run in their place."""

PUBLISHED_TOLERANCE = 1e-5
"""The published numbers have five digits."""

logits_of_five = st.lists(st.floats(-20, 20), min_size=5, max_size=5).map(np.array)
histories = st.lists(st.integers(0, 4), max_size=12)


def numbers(values):
    return np.array([float(value) for value in values])


def penalised(row, logits):
    """Run the operators that a published case sets, on its history (or its prompt and output)."""
    output = row.get("history", row.get("generated"))
    history = [*row.get("prompt", []), *output]
    settings = {row["op"]: row["param"]} if "param" in row else row
    if "repetition_penalty" in settings:
        logits = processors.repetition_penalty(logits, history, settings["repetition_penalty"])
    if "frequency_penalty" in settings:
        logits = processors.frequency_penalty(logits, output, settings["frequency_penalty"])
    if "presence_penalty" in settings:
        logits = processors.presence_penalty(logits, output, settings["presence_penalty"])
    return logits


@pytest.mark.parametrize("name", [name for name, row in PENALTIES.items() if "expected_probs" in row])
def test_a_published_penalty_gives_the_published_probabilities(name):
    row = PENALTIES[name]
    probs = softmax(penalised(row, np.log(numbers(row["probs"]))))
    assert probs == pytest.approx(row["expected_probs"], abs=PUBLISHED_TOLERANCE)


@pytest.mark.parametrize(
    "name", [name for name, row in PENALTIES.items() if "expected_logits" in row and name not in DEVIATIONS]
)
def test_a_published_penalty_gives_the_published_logits(name):
    row = PENALTIES[name]
    assert penalised(row, numbers(row["logits"])) == pytest.approx(
        numbers(row["expected_logits"]), abs=PUBLISHED_TOLERANCE
    )


def test_a_history_that_leaves_the_prompt_out_penalises_nothing_in_it():
    row = PENALTIES["pen-17"]
    assert (
        processors.repetition_penalty(numbers(row["logits"]), row["generated"], 2.0).tolist() == row["expected_logits"]
    )


@pytest.mark.parametrize(
    "name", [name for name, row in MASKS.items() if row["op"] == "no_repeat_ngram" and row["n"] > 0]
)
def test_a_published_ngram_ban_bans_the_published_ids(name):
    row = MASKS[name]
    banned = processors.ngram_completions(row["history"], row["n"])
    assert sorted(banned) == row["expected_banned"]
    if len(banned) < row["vocab"]:
        left = processors.no_repeat_ngram(np.zeros(row["vocab"]), row["history"], row["n"])
        assert np.flatnonzero(left == -np.inf).tolist() == row["expected_banned"]


def test_one_token_entries_of_published_bans_and_biases():
    bad = [ids[0] for ids in MASKS["mask-9"]["bad"] if len(ids) == 1 and ids[0] != MASKS["mask-9"]["eos"]]
    assert np.flatnonzero(processors.ban(np.zeros(5), bad) == -np.inf).tolist() == [1]
    bias = {ids[0]: value for ids, value in MASKS["mask-12"]["bias"] if len(ids) == 1}
    assert processors.logit_bias(np.zeros(5), bias).tolist() == [0, 100, 0, 0, 100]


@pytest.mark.parametrize("name", ["mask-17", "mask-18", "mask-19"])
def test_a_minimum_length_is_a_ban_on_the_end_ids_until_it_is_reached(name):
    row = MASKS[name]
    too_short = row["cur_len"] - row["prompt_len"] < row["min_new"]
    left = processors.ban(np.zeros(20), row["eos"] if too_short else [])
    assert np.flatnonzero(left == -np.inf).tolist() == row["expected_banned"]


def test_every_published_case_is_run():
    run = {name for name, row in PENALTIES.items() if "expected_probs" in row or "expected_logits" in row}
    errors = {"pen-11", "mask-14", "mask-15", "mask-8"}  # below, and in the tests of SamplingParams
    ngrams = {name for name, row in MASKS.items() if row["op"] == "no_repeat_ngram"}
    assert run | ngrams | errors | set(DEVIATIONS) == set(PENALTIES) | set(MASKS)


def test_bug_e4_the_repetition_penalty_lowers_a_negative_logit():
    """transformers #2302: dividing a negative logit rewards the repetition."""
    assert processors.repetition_penalty(np.array([-0.1, 0.1]), [0, 1], 2.0).tolist() == [-0.2, 0.05]


def test_bug_e12_presence_and_frequency_count_the_output_only_repetition_both():
    """TensorRT-LLM #5623: prompt tokens were penalised too. Here the caller passes the output alone."""
    row = PENALTIES["pen-15"]
    assert penalised(row, numbers(row["logits"])).tolist() == [0, -2, -2, 0]
    assert "output_ids" in processors.presence_penalty.__annotations__
    assert "output_ids" in processors.frequency_penalty.__annotations__


def test_bug_e16_the_ngram_ban_reads_the_last_ids_of_a_long_text():
    """fairseq #5206: the wrong slice of the text was looked up."""
    text = [7, 8, 9, *range(10, 60), 7, 8]
    assert processors.ngram_completions(text, 3) == {9}
    assert processors.ngram_completions([*text, 9], 3) == {10}


def test_a_bias_multiplies_the_odds_by_its_exponential():
    before, after = (
        softmax([1.0, 2.0, 3.0]),
        softmax(processors.logit_bias(np.array([1.0, 2.0, 3.0]), {0: math.log(4)})),
    )
    assert after[0] / after[1] == pytest.approx(4 * before[0] / before[1])
    assert after[2] / after[1] == pytest.approx(before[2] / before[1])


@given(logits_of_five, histories, st.floats(0.1, 5))
def test_repetition_is_penalised_once_however_often_it_occurs(logits, ids, penalty):
    once = processors.repetition_penalty(logits, ids, penalty)
    assert once.tolist() == processors.repetition_penalty(logits, ids * 3, penalty).tolist()
    unseen = sorted(set(range(5)) - set(ids))
    assert once[unseen].tolist() == logits[unseen].tolist()
    assert ((once <= logits) if penalty >= 1 else (once >= logits)).all()


@given(logits_of_five, histories, st.floats(-2, 2))
def test_frequency_counts_and_presence_does_not(logits, ids, penalty):
    twice = processors.frequency_penalty(processors.frequency_penalty(logits, ids, penalty), ids, penalty)
    assert processors.frequency_penalty(logits, ids * 2, penalty) == pytest.approx(twice, abs=1e-12)
    once = processors.presence_penalty(logits, ids, penalty)
    assert processors.presence_penalty(logits, ids * 2, penalty).tolist() == once.tolist()
    assert processors.frequency_penalty(logits, list(set(ids)), penalty) == pytest.approx(once, abs=1e-12)


@given(st.lists(st.integers(0, 2), max_size=14), st.integers(1, 5))
def test_no_ngram_occurs_twice_when_its_completions_are_banned(ids, size):
    ngrams = [tuple(ids[start : start + size]) for start in range(len(ids) - size + 1)]
    for token in range(3):
        repeats = size <= len(ids) + 1 and (*ids[len(ids) - size + 1 :], token) in ngrams
        assert (token in processors.ngram_completions(ids, size)) == repeats


@given(logits_of_five, histories, st.floats(1, 3), st.integers(1, 4))
def test_repetition_penalty_and_ngram_ban_agree_with_transformers(logits, ids, penalty, size):
    scores, history = torch.tensor(logits)[None], torch.tensor([ids], dtype=torch.long)
    if ids:
        theirs = hf.RepetitionPenaltyLogitsProcessor(penalty)(history, scores.clone())[0].tolist()
        assert processors.repetition_penalty(logits, ids, penalty).tolist() == theirs
    theirs = hf.NoRepeatNGramLogitsProcessor(size)(history, scores.clone())[0].tolist()
    assert processors.no_repeat_ngram(logits, ids, size).tolist() == theirs


@given(logits_of_five, st.dictionaries(st.integers(0, 4), st.floats(-9, 9), min_size=1))
def test_bias_and_ban_agree_with_transformers(logits, bias):
    scores, history = torch.tensor(logits, dtype=torch.float32)[None], torch.zeros(1, 1, dtype=torch.long)
    theirs = hf.SequenceBiasLogitsProcessor({(token,): value for token, value in bias.items()})(history, scores)[
        0
    ].numpy()
    assert processors.logit_bias(logits, bias) == pytest.approx(theirs, abs=1e-5)  # theirs computes in float32
    theirs = hf.SuppressTokensLogitsProcessor(list(bias))(history, torch.tensor(logits)[None])[0].tolist()
    assert processors.ban(logits, bias).tolist() == theirs


def test_a_choice_constrained_to_some_ids_leaves_their_odds_as_they_were():
    logits = np.array([1.0, 2.0, 3.0, 4.0])
    probs = softmax(processors.allow_only(logits, [0, 2]))
    assert probs[[1, 3]].tolist() == [0, 0]
    assert probs[2] / probs[0] == pytest.approx(math.exp(2))


OPERATORS = {
    "logit_bias": lambda logits: processors.logit_bias(logits, {0: 1.0}),
    "repetition_penalty": lambda logits: processors.repetition_penalty(logits, [0, 1], 1.5),
    "frequency_penalty": lambda logits: processors.frequency_penalty(logits, [0, 1], 0.5),
    "presence_penalty": lambda logits: processors.presence_penalty(logits, [0, 1], 0.5),
    "no_repeat_ngram": lambda logits: processors.no_repeat_ngram(logits, [0, 1, 0], 2),
    "ban": lambda logits: processors.ban(logits, [0]),
    "allow_only": lambda logits: processors.allow_only(logits, [0, 1]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_returns_new_float64_logits_and_never_writes_to_the_old(name):
    logits = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    logits.flags.writeable = False
    changed = OPERATORS[name](logits)
    assert changed.dtype == np.float64
    assert changed.tolist() != logits.tolist()
    assert logits.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_removed_token_stays_removed_under_every_operator(name):
    assert OPERATORS[name](np.array([-np.inf, 2.0, -np.inf]))[[0, 2]].tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("ids", [[-1], [5], [0, 49152]])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("logit_bias", lambda ids: processors.logit_bias(np.zeros(5), dict.fromkeys(ids, 1.0))),
        ("ids", lambda ids: processors.repetition_penalty(np.zeros(5), ids, 1.5)),
        ("output_ids", lambda ids: processors.frequency_penalty(np.zeros(5), ids, 1.5)),
        ("output_ids", lambda ids: processors.presence_penalty(np.zeros(5), ids, 1.5)),
        ("ids", lambda ids: processors.no_repeat_ngram(np.zeros(5), ids, 1)),
        ("banned_ids", lambda ids: processors.ban(np.zeros(5), ids)),
        ("ids", lambda ids: processors.allow_only(np.zeros(5), ids)),
    ],
)
def test_an_id_outside_the_vocabulary_raises_and_never_wraps_round(name, call, ids):
    with pytest.raises(ValueError, match=rf"{name} must hold ids in \[0, 5\), got {ids[-1]}"):
        call(ids)


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.nan])
def test_a_repetition_penalty_that_is_not_positive_raises(penalty):
    with pytest.raises(ValueError, match=f"repetition_penalty must be > 0, got {penalty}"):
        processors.repetition_penalty(np.zeros(2), [0], penalty)


def test_an_ngram_of_no_tokens_raises():
    with pytest.raises(ValueError, match="size must be >= 1, got 0"):
        processors.ngram_completions([0, 1], 0)
