"""Top-k, top-p, min-p and typical: published cases, ties, and properties that hold for every distribution."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation import logits_process as hf

from llm_internals.truncation import FIRST_BLOCK, min_p_mask, top_k_mask, top_p_mask, typical_mask

DATA = json.loads((Path(__file__).parent / "data" / "truncation.json").read_text(encoding="utf-8"))["vectors"]
PUBLISHED = [row for row in DATA if "expected_kept" in row]
TIES = {row["id"]: row for row in DATA if "expected_kept" not in row}

MASKS = {"top_k": top_k_mask, "top_p": top_p_mask, "min_p": min_p_mask, "typical_p": typical_mask}

DEVIATIONS = {
    "trunc-top_k-35": (
        [0, 1],
        "transformers keeps all four equals; we keep exactly k, the lowest ids, as llama.cpp does",
    ),
    "trunc-top_k-36": (
        [1, 2],
        "transformers keeps all three equals; we keep exactly k, the lowest ids, as llama.cpp does",
    ),
    "trunc-top_p-37": (
        [0, 1],
        "equals fall by id: transformers keeps 2 and 3, llama.cpp 1 and 3 (its sort isn't stable)",
    ),
    "trunc-min_p-39": ([0, 1, 2], "no deviation: the threshold itself is kept everywhere"),
    "trunc-top_p-40": ([0], "no deviation: the first token reaches p exactly"),
    "trunc-top_p-41": ([0, 1], "transformers keeps 0 and 2, since it sorts ascending; the lowest id as in llama.cpp"),
}
"""Where the published data leaves the choice open: what we keep, and why."""

PUBLISHED_TOLERANCE = 1e-5
"""The published probabilities have seven digits, and some were made in float32."""


def kept(row):
    return np.flatnonzero(MASKS[row["op"]](row["probs"], row["param"])).tolist()


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["id"])
def test_the_published_set_is_kept(row):
    expected = row["expected_kept"]
    assert [token for token in kept(row) if row["probs"][token] > 0] == [t for t in expected if row["probs"][t] > 0]
    left = np.where(MASKS[row["op"]](row["probs"], row["param"]), row["probs"], 0)
    assert left / left.sum() == pytest.approx(row["expected_probs"], abs=PUBLISHED_TOLERANCE)


@pytest.mark.parametrize("name", DEVIATIONS)
def test_ties_are_settled_by_id_whatever_other_engines_keep(name):
    assert kept(TIES[name]) == DEVIATIONS[name][0]


def test_every_open_case_is_decided():
    assert set(TIES) == set(DEVIATIONS)


def test_bug_e1_top_p_keeps_two_tokens_when_their_sum_is_p_exactly():
    """transformers #18976: one token too many."""
    assert top_p_mask([0.5, 0.3, 0.1, 0.1], 0.8).tolist() == [True, True, False, False]


def test_a_sum_that_equals_p_on_paper_may_miss_it_by_rounding():
    assert 0.7 + 0.2 < 0.9
    assert top_p_mask([0.7, 0.2, 0.1], 0.9).all()


def test_bug_e3_typical_keeps_the_smallest_set_that_reaches_the_mass():
    """transformers #26579: one token short, or an index error where all are needed."""
    probs = [0.4, 0.3, 0.2, 0.1]  # H = 1.28, distances .36, .08, .33, 1.02: ranked 1, 2, 0, 3
    sums = {0.3: [1], 0.31: [1, 2], 0.5: [1, 2], 0.51: [0, 1, 2], 0.91: [0, 1, 2, 3], 0.99999999: [0, 1, 2, 3]}
    assert {p: np.flatnonzero(typical_mask(probs, p)).tolist() for p in sums} == sums


@pytest.mark.parametrize(("scores", "k"), [([1, 2, 2, 2, 3], 3), ([21.375, 21.375], 1)])
def test_bug_e10_top_k_keeps_exactly_k_the_lowest_ids_among_equals(scores, k):
    """vllm #15478: all equals of the k-th survive."""
    assert top_k_mask(scores, k).tolist() == [
        token in {(5, 3): [1, 2, 4], (2, 1): [0]}[len(scores), k] for token in range(len(scores))
    ]


@pytest.mark.parametrize(
    ("name", "off"), [("top_k", 0), ("top_k", None), ("top_k", 5), ("top_p", 1.0), ("min_p", 0.0), ("typical_p", 1.0)]
)
def test_a_rule_that_is_off_keeps_everything_even_what_has_probability_zero(name, off):
    assert MASKS[name]([0.5, 0.3, 0.2, 0.0], off).all()


@pytest.mark.parametrize("name", ["top_p", "typical_p"])
def test_a_mass_of_zero_keeps_one_token(name):
    assert MASKS[name]([0.2, 0.5, 0.2, 0.1], 0.0).sum() == 1
    assert top_p_mask([0.2, 0.4, 0.4], 0.0).tolist() == [False, True, False]


distributions = st.lists(st.floats(0, 1), min_size=1, max_size=60).filter(sum).map(lambda xs: np.array(xs) / sum(xs))


@given(distributions, st.floats(0, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p(probs, p):
    mask = top_p_mask(probs, p)
    ranked = sorted(range(probs.size), key=lambda token: (-probs[token], token))
    n = int(mask.sum())
    assert np.flatnonzero(mask).tolist() == sorted(ranked[:n])
    if p < 1 and n < probs.size:
        assert np.cumsum(probs[ranked])[n - 1] >= p
    if p < 1 and n > 1:
        assert np.cumsum(probs[ranked])[n - 2] < p


@given(distributions, st.floats(0, 1))
def test_at_least_one_token_survives_every_rule(probs, p):
    assert all(mask(probs, p).any() for mask in (top_p_mask, min_p_mask, typical_mask))
    assert top_k_mask(probs, 1).sum() == 1


@given(distributions, st.floats(0.001, 1), st.floats(0.001, 1))
def test_a_larger_setting_keeps_a_superset(probs, p, q):
    small, large = sorted([p, q])
    assert (top_p_mask(probs, small) <= top_p_mask(probs, large)).all()
    assert (typical_mask(probs, small) <= typical_mask(probs, large)).all()
    assert (min_p_mask(probs, large) <= min_p_mask(probs, small)).all()


@given(distributions, st.integers(1, 60))
def test_top_k_needs_only_the_ranking(probs, k):
    probs = probs[probs > 0]
    assert top_k_mask(np.log(probs), k).tolist() == top_k_mask(probs, k).tolist() == top_k_mask(probs**0.5, k).tolist()


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9, 0.999, 0.999999])
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 4.0])
def test_ranking_in_blocks_gives_what_a_full_sort_gives(p, spread):
    scores = np.random.default_rng(0).normal(0, spread, 40 * FIRST_BLOCK).round(2)  # rounded: with many ties
    probs = np.exp(scores) / np.exp(scores).sum()
    order = np.lexsort([np.arange(probs.size), -probs])
    n = np.searchsorted(np.cumsum(probs[order]), p) + 1
    assert np.flatnonzero(top_p_mask(probs, p)).tolist() == sorted(order[:n].tolist())


WARPERS = {
    "top_k": lambda k: hf.TopKLogitsWarper(int(k)),
    "top_p": hf.TopPLogitsWarper,
    "min_p": hf.MinPLogitsWarper,
    "typical_p": hf.TypicalLogitsWarper,
}


@pytest.mark.parametrize("name", MASKS)
def test_each_rule_keeps_what_the_warper_of_transformers_keeps(name):
    rng = np.random.default_rng(1)
    for _ in range(60):
        logits = rng.normal(0, 3, 100)
        setting = int(rng.integers(1, 100)) if name == "top_k" else rng.uniform(0.01, 0.99)
        probs = np.exp(logits) / np.exp(logits).sum()
        theirs = WARPERS[name](setting)(None, torch.tensor(logits)[None])[0]
        assert MASKS[name](probs, setting).tolist() == (theirs > -torch.inf).tolist()


@pytest.mark.parametrize("name", ["top_p", "min_p", "typical_p"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_outside_zero_to_one_raises_and_is_named(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\], got {value}"):
        MASKS[name]([0.5, 0.5], value)


def test_a_negative_k_or_scores_that_are_nan_raise():
    with pytest.raises(ValueError, match=r"top_k must be an integer >= 0 .* got -1"):
        top_k_mask([0.5, 0.5], -1)
    with pytest.raises(ValueError, match="NaN"):
        top_k_mask([0.5, float("nan")], 1)


@pytest.mark.parametrize("mask", [top_p_mask, min_p_mask, typical_mask])
def test_logits_passed_for_probabilities_raise(mask):
    with pytest.raises(ValueError, match="probs must be probabilities"):
        mask([3.0, -1.0], 0.5)
