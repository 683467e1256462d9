"""Beam search beside exhaustive search on small chains and transformers' beam search on models; and its one cache."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.beam_search import Beam, PromptTree, beam_search, search
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.sampling import log_softmax
from tests.reference import transformers_model
from tests.tiny_model import EOS_IDS, TOKENS, bigram_language_model, random_language_model

DATA = json.loads((Path(__file__).parent / "data" / "beam.json").read_text(encoding="utf-8"))

PUBLISHED_TOLERANCE = 2e-6
"""The published scores have six digits."""

EXACT = 1e-12
"""The same float64 sums in the same order; only the length power differs in how it is computed."""

FLOAT32 = 2e-5
"""transformers adds float32 log-probabilities of up to -30; ours come from the same logits in float64."""


def chain(probs):
    """The step function of a Markov chain that starts behind token 0: row i of ``probs`` follows token i."""
    with np.errstate(divide="ignore"):
        table = np.log(np.array(probs))
    return lambda beginnings: np.stack([table[ids[-1] if ids else 0] for ids in beginnings])


def exhaustive(next_logprobs, vocab_size, max_tokens, eos_ids, length_penalty):
    """Every text that ends with an end token or at max_tokens, best score first."""
    found, open_texts = [], [((), 0.0)]
    for length in range(1, max_tokens + 1):
        extended = []
        for ids, total in open_texts:
            row = next_logprobs([ids])[0]
            extended += [((*ids, token), total + row[token]) for token in range(vocab_size) if row[token] > -math.inf]
        for ids, total in extended:
            if ids[-1] in eos_ids or length == max_tokens:
                found.append(Beam(ids, float(total), float(total / length**length_penalty), ids[-1] in eos_ids))
        open_texts = [(ids, total) for ids, total in extended if ids[-1] not in eos_ids]
    return sorted(found, key=lambda beam: -beam.score)


DEVIATIONS = {
    "beam-3": "(1, 1) and (1, 2) tie for last place; transformers keeps (1, 2), we the lower id; the best text agrees"
}
"""Published cases that we end otherwise, and why; of those only the best text is compared."""

REAL_LOGITS = 1e-4
"""A log-probability of one token: the logits of the two implementations of the real model differ by up to 1e-4. A sum
over a beam may be as many times further off as the beam has tokens, and its score is that sum over a power of them."""


# Chains


@pytest.mark.parametrize("row", DATA["vectors"], ids=lambda row: row["id"])
def test_a_published_search_gives_the_published_texts_and_scores(row):
    names = ("num_beams", "length_penalty", "early_stopping")
    beams = search(
        chain(DATA["transition_probs"]),
        max_tokens=row["max_new_tokens"],
        eos_ids={4},
        **{name: row[name] for name in names},
    )
    compared = 1 if row["id"] in DEVIATIONS else row["num_beams"]
    for beam, sequence in zip(beams[:compared], row["transformers_sequences"], strict=False):
        padded = [0, *beam.ids, *[4] * (row["max_new_tokens"] - len(beam.ids))]
        assert padded == sequence
    for beam, score in zip(beams[:compared], row["transformers_scores"] or [], strict=False):
        assert beam.score == pytest.approx(score, abs=PUBLISHED_TOLERANCE)
    best = {tuple(text["seq"][1:]): text for text in row["exhaustive_best"]}
    assert beams[0].sum_logprob == pytest.approx(best[beams[0].ids]["sum_logprob"], abs=PUBLISHED_TOLERANCE)


chains = (
    st.integers(2, 4)
    .flatmap(lambda n: st.lists(st.lists(st.floats(0.01, 1), min_size=n, max_size=n), min_size=n, max_size=n))
    .map(lambda rows: [[p / sum(row) for p in row] for row in rows])
)


@given(chains, st.integers(1, 4), st.floats(-1, 2), st.sampled_from([True, False, "never"]))
def test_a_beam_wide_enough_for_every_text_is_exhaustive_search(probs, max_tokens, length_penalty, early_stopping):
    n = len(probs)
    best = exhaustive(chain(probs), n, max_tokens, {n - 1}, length_penalty)
    beams = search(
        chain(probs),
        num_beams=n**max_tokens,
        max_tokens=max_tokens,
        eos_ids={n - 1},
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )
    assert len(beams) == len(best)
    assert [beam.score for beam in beams] == pytest.approx([beam.score for beam in best], abs=EXACT)
    assert {beam.ids for beam in beams} == {beam.ids for beam in best}


@given(chains, st.integers(1, 6), st.integers(1, 3), st.floats(0, 2))
def test_a_narrow_beam_finds_real_texts_and_no_better_than_the_best(probs, max_tokens, num_beams, length_penalty):
    n = len(probs)
    best = {beam.ids: beam for beam in exhaustive(chain(probs), n, max_tokens, {n - 1}, length_penalty)}
    beams = search(
        chain(probs), num_beams=num_beams, max_tokens=max_tokens, eos_ids={n - 1}, length_penalty=length_penalty
    )
    assert 1 <= len(beams) <= num_beams
    assert len({beam.ids for beam in beams}) == len(beams)
    assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)
    for beam in beams:
        assert beam.finished == best[beam.ids].finished
        assert beam.sum_logprob == pytest.approx(best[beam.ids].sum_logprob, abs=EXACT)


@given(chains, st.integers(1, 6))
def test_one_beam_is_greedy_decoding(probs, max_tokens):
    n, step, ids = len(probs), chain(probs), ()
    while len(ids) < max_tokens and (not ids or ids[-1] != n - 1):
        ids = (*ids, int(step([ids])[0].argmax()))
    assert [beam.ids for beam in search(step, num_beams=1, max_tokens=max_tokens, eos_ids={n - 1})] == [ids]


def test_a_wider_beam_finds_what_greedy_misses():
    probs = [[0.0, 0.6, 0.4, 0.0], [0.0, 0.4, 0.3, 0.3], [0.0, 0.05, 0.05, 0.9], [0.25] * 4]
    greedy, wide = (search(chain(probs), num_beams=width, max_tokens=2, eos_ids={3})[0] for width in (1, 2))
    assert (greedy.ids, wide.ids) == ((1, 1), (2, 3))
    assert wide.sum_logprob == pytest.approx(math.log(0.4 * 0.9))
    assert greedy.sum_logprob == pytest.approx(math.log(0.6 * 0.4))


def test_a_token_of_probability_zero_is_never_in_a_beam():
    beams = search(chain([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]), num_beams=9, max_tokens=3, eos_ids={2})
    assert {beam.ids for beam in beams} == {(1, 2), (1, 0, 1)}


# Rules that other implementations got wrong


def test_bug_f1_the_score_divides_by_the_length_of_the_output_alone():
    """transformers #26624: it divided by prompt and output."""
    lm = random_language_model()
    for prompt in ([2], [2, 3, 4, 5, 6]):
        for beam in beam_search(lm, prompt, num_beams=3, max_tokens=4, length_penalty=1.5):
            assert beam.score == pytest.approx(beam.sum_logprob / len(beam.ids) ** 1.5)


def test_bug_f3_a_larger_length_penalty_favours_longer_texts():
    """transformers #18208: the documentation had it the other way round."""
    probs = [[0.0, 0.5, 0.5], [0.0, 0.9, 0.1], [1.0, 0.0, 0.0]]
    lengths = [
        len(search(chain(probs), num_beams=9, max_tokens=4, eos_ids={2}, length_penalty=penalty)[0].ids)
        for penalty in (-1.0, 0.0, 1.0, 2.0)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] == 1
    assert lengths[-1] == 4


# Likely to end at once, but a text that goes on gets surer with every token.
PATIENCE = [[0.0, 0.4, 0.6], [0.0, 0.99, 0.01], [1.0, 0.0, 0.0]]


def test_bug_f4_a_bound_on_the_length_so_far_ends_early_and_the_bound_on_the_full_length_does_not():
    """transformers #20901: the score that a text may still reach was bounded by its length so far.

    It kept that rule as the default and added "never", whose bound can't be beaten; so do we.
    """
    found = {
        rule: search(chain(PATIENCE), num_beams=1, max_tokens=5, eos_ids={2}, early_stopping=rule)[0].ids
        for rule in (True, False, "never")
    }
    assert found == {True: (2,), False: (2,), "never": (1, 1, 1, 1, 1)}
    best = exhaustive(chain(PATIENCE), 3, 5, {2}, 1.0)[0]
    assert found["never"] == best.ids


@given(chains, st.integers(1, 4), st.floats(0, 2))
def test_the_rule_never_gives_what_a_search_without_early_end_gives(probs, num_beams, length_penalty):
    n = len(probs)
    settings = {"num_beams": num_beams, "max_tokens": 5, "eos_ids": {n - 1}, "length_penalty": length_penalty}
    bounded = search(chain(probs), **settings, early_stopping="never")
    unbounded = search_to_the_end(chain(probs), **settings)
    assert [beam.score for beam in bounded] == pytest.approx(unbounded, abs=EXACT)


def search_to_the_end(step, num_beams, max_tokens, eos_ids, length_penalty):
    """The scores of a beam search that always goes on to max_tokens."""
    running, pool = [((), 0.0)], []
    for length in range(1, max_tokens + 1):
        everything = [
            ((*ids, token), total + row[token]) for ids, total in running for token, row in enumerate_row(step, ids)
        ]
        everything = sorted(everything, key=lambda text: -text[1])
        ended = [length == max_tokens or ids[-1] in eos_ids for ids, _ in everything]
        pool += [
            total / length**length_penalty
            for (_, total), end in zip(everything[:num_beams], ended, strict=False)
            if end
        ]
        pool = sorted(pool, reverse=True)[:num_beams]
        running = [text for text, end in zip(everything, ended, strict=True) if not end][:num_beams]
    return pool


def enumerate_row(step, ids):
    row = step([ids])[0]
    return [(token, row) for token in range(row.size)]


def test_bug_f5_the_end_token_counts_once_for_the_length():
    """transformers #23127 and #21993: the length was counted once a batch row, or off by one."""
    beams = search(chain([[0.0, 0.5, 0.5], [0.2, 0.0, 0.8], [1.0, 0.0, 0.0]]), num_beams=4, max_tokens=2, eos_ids={2})
    assert {beam.ids: beam.score for beam in beams} == pytest.approx(
        {(2,): math.log(0.5), (1, 2): math.log(0.5 * 0.8) / 2, (1, 0): math.log(0.5 * 0.2) / 2}
    )


# transformers, on chains that are real models


def hf_beams(model, prompt, eos_ids, num_beams, max_tokens, length_penalty=1.0, early_stopping=False):
    """Texts and scores of transformers' beam search."""
    with torch.no_grad():
        out = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            num_beams=num_beams,
            num_return_sequences=num_beams,
            max_new_tokens=max_tokens,
            length_penalty=length_penalty,
            early_stopping=early_stopping,
            do_sample=False,
            eos_token_id=sorted(eos_ids),
            pad_token_id=min(eos_ids),
            output_scores=True,
            return_dict_in_generate=True,
        )
    texts = []
    for row in out.sequences[:, len(prompt) :].tolist():
        end = next((index + 1 for index, token in enumerate(row) if token in eos_ids), len(row))
        texts.append(tuple(row[:end]))
    return texts, out.sequences_scores.tolist()


@pytest.fixture(scope="module")
def small_models():
    """Chains of 16 tokens, two of which end a text, as models of the package and of transformers."""
    tables = (
        3 * torch.randn(len(TOKENS), len(TOKENS), generator=torch.Generator().manual_seed(seed)) for seed in range(2)
    )
    lms = [bigram_language_model(table + 2 * torch.eye(len(TOKENS))[0]) for table in tables]
    return [(lm, transformers_model(lm.weights)) for lm in lms]


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
@pytest.mark.parametrize("length_penalty", [-0.5, 0.0, 1.0, 2.0])
def test_search_on_a_small_model_is_that_of_transformers(small_models, length_penalty, early_stopping):
    for (lm, hf_model), num_beams in itertools.product(small_models, (2, 5)):
        settings = {
            "num_beams": num_beams,
            "max_tokens": 6,
            "length_penalty": length_penalty,
            "early_stopping": early_stopping,
        }
        ours = beam_search(lm, [2, 3], **settings)
        texts, scores = hf_beams(hf_model, [2, 3], EOS_IDS, **settings)
        assert [beam.ids for beam in ours] == texts
        assert [beam.score for beam in ours] == pytest.approx(scores, abs=FLOAT32)


# The cache


def full_logprobs(lm, prompt):
    """The step function without any cache: every beginning anew."""

    def after(beginnings):
        rows = [lm_head(forward(torch.tensor([*prompt, *ids]), lm.weights)[-1:], lm.weights)[0] for ids in beginnings]
        return np.stack([log_softmax(row) for row in rows])

    return after


def test_the_tree_gives_the_same_beams_as_computing_every_beginning_anew():
    lm, prompt = random_language_model(seed=1), [2, 3, 4]
    cached = beam_search(lm, prompt, num_beams=4, max_tokens=8)
    plain = search(full_logprobs(lm, prompt), num_beams=4, max_tokens=8, eos_ids=lm.eos_ids)
    assert [beam.ids for beam in cached] == [beam.ids for beam in plain]
    assert [beam.score for beam in cached] == pytest.approx([beam.score for beam in plain], abs=1e-5)


def test_moving_between_beginnings_restores_the_keys_and_values_that_were_computed():
    lm, prompt = random_language_model(seed=2), [2, 3, 4]
    tree = PromptTree(lm, prompt, capacity=8)
    for beginnings in ([()], [(5,), (6,)], [(5, 7), (5, 8), (6, 7)], [(6, 7, 1), (5, 8, 1)]):
        tree.next_logprobs(beginnings)
    for ids in ((5, 8, 1), (6, 7), (6, 7, 1), (), (5,)):
        tree.move_to(ids)
        fresh = KVCache.empty(lm.config, 8)
        forward(torch.tensor([*prompt, *ids]), lm.weights, fresh)
        assert tree.cache.ids == fresh.ids == [*prompt, *ids]
        for ours, theirs in ((tree.cache.keys, fresh.keys), (tree.cache.values, fresh.values)):
            assert torch.allclose(ours[:, :, : fresh.length], theirs[:, :, : fresh.length], atol=1e-5)


def test_the_tree_keeps_only_the_positions_of_living_beams():
    tree = PromptTree(random_language_model(), [2, 3], capacity=8)
    for beginnings in ([()], [(5,), (6,)], [(5, 7), (5, 8)]):
        tree.next_logprobs(beginnings)
    assert set(tree.nodes) == {(5,), (5, 7), (5, 8)}


def test_a_position_is_computed_once_however_many_beams_share_it(monkeypatch):
    lm, passed = random_language_model(), []

    def counting(ids, weights, cache, tap):
        passed.extend(ids.tolist())
        return forward(ids, weights, cache, tap)

    monkeypatch.setattr("llm_internals.model.forward", counting)
    beam_search(lm, [2, 3, 4], num_beams=3, max_tokens=5, early_stopping="never")
    assert len(passed) == 3 + 4 * 3, "the prompt once, then one token a beam and step; the last tokens go nowhere"


# Errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_beams": 0}, "num_beams must be an integer >= 1, got 0"),
        ({"max_tokens": 0}, "max_tokens must be an integer >= 1, got 0"),
        ({"length_penalty": math.nan}, "length_penalty must be a finite number, got nan"),
        ({"early_stopping": "soon"}, "early_stopping must be True, False or \"never\", got 'soon'"),
    ],
)
def test_a_setting_out_of_range_raises(settings, message):
    with pytest.raises(ValueError, match=message):
        search(chain([[0.5, 0.5]] * 2), **{"num_beams": 2, "max_tokens": 2} | settings)


@pytest.mark.parametrize("prompt", [[], [2] * 61])
def test_a_prompt_that_is_empty_or_leaves_no_room_raises(prompt):
    with pytest.raises(ValueError, match=rf"prompt_ids must hold at least one token .* but has {len(prompt)}"):
        beam_search(random_language_model(context=64), prompt, num_beams=2, max_tokens=5)


def test_a_prompt_that_fits_exactly_is_searched():
    assert beam_search(random_language_model(context=64), [2] * 60, num_beams=2, max_tokens=5)


# The real model


@pytest.fixture(scope="module")
def hf_model(lm):
    return transformers_model(lm.weights)


CHAT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"

REAL = [
    ("I went to the bank to", {"num_beams": 4, "max_tokens": 5}),
    ("She opened the door and", {"num_beams": 2, "max_tokens": 8, "length_penalty": 0.0}),
    (CHAT, {"num_beams": 2, "max_tokens": 8, "length_penalty": 2.0}),
    (CHAT, {"num_beams": 3, "max_tokens": 8}),
]


@pytest.mark.parametrize(("text", "settings"), REAL)
def test_beams_of_the_real_model_are_those_of_transformers(lm, hf_model, text, settings):
    prompt = lm.tokenizer.encode(text, allow_special=True)
    ours = beam_search(lm, prompt, **settings)
    texts, scores = hf_beams(hf_model, prompt, lm.eos_ids, **settings)
    assert [beam.ids for beam in ours] == texts
    for beam, score in zip(ours, scores, strict=True):
        length = len(beam.ids)
        assert beam.score == pytest.approx(
            score, abs=REAL_LOGITS * length / length ** settings.get("length_penalty", 1.0)
        )


def test_beam_search_can_end_less_likely_than_greedy_decoding(lm):
    prompt = lm.tokenizer.encode("I went to the bank to")
    greedy, wide = (beam_search(lm, prompt, num_beams=width, max_tokens=5)[0] for width in (1, 4))
    assert (greedy.sum_logprob, wide.sum_logprob) == pytest.approx((-6.244, -6.605), abs=0.001)
    assert lm.tokenizer.decode(list(wide.ids)) == " pay off my debt."


def test_weights_in_training_leave_no_history_in_the_cache(monkeypatch):
    lm, trees = random_language_model(), []
    lm.weights.layers[0].self_attn.k_proj.requires_grad_()
    monkeypatch.setattr(
        "llm_internals.beam_search.PromptTree", lambda *args: trees.append(PromptTree(*args)) or trees[-1]
    )
    assert beam_search(lm, [2, 3], num_beams=2, max_tokens=3)
    assert not trees[0].cache.keys.requires_grad
