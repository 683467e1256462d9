"""Learning merges: against the definition, minbpe and Hugging Face."""

from collections import Counter
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_tokenizers import library_text, load_data, train_with_hugging_face

from llm_internals.bpe_training import learn_merges
from llm_internals.byte_alphabet import BYTES_IN_ALPHABET_ORDER, spell
from llm_internals.pretokenizer import PRETOKENIZERS

TRAIN_CASES = load_data("bpe.json")["train"]


def as_bytes(merges):
    """Return [(left bytes, right bytes, count)] of merges."""
    tokens = {id: bytes([byte]) for id, byte in enumerate(BYTES_IN_ALPHABET_ORDER)}
    found = []
    for merge in merges:
        tokens[merge.id] = merge.token
        found.append((tokens[merge.pair[0]], tokens[merge.pair[1]], merge.count))
    return found


def learn_by_definition(pieces, n_merges):
    """minbpe's training with the rule of first sight: recount every pair after each merge."""
    pieces = [[bytes([byte]) for byte in piece.encode()] for piece in pieces]
    found = []
    for _ in range(n_merges):
        counts = Counter(pair for piece in pieces for pair in pairwise(piece))
        if not counts:
            break
        pair, count = max(counts.items(), key=lambda item: item[1])  # the first of equals
        found.append((*pair, count))
        for piece in pieces:
            at = 0
            while at < len(piece) - 1:
                if (piece[at], piece[at + 1]) == pair:
                    piece[at : at + 2] = [pair[0] + pair[1]]
                at += 1
    return found


@pytest.mark.parametrize("case", TRAIN_CASES, ids=lambda case: case["id"])
def test_the_rule_of_first_sight_gives_the_merges_and_counts_of_minbpe(case):
    expected = case["first_seen_tie_rule"]["merges"]
    tokens = {byte: bytes([byte]) for byte in range(256)}
    for (left, right), id, _ in expected:
        tokens[id] = tokens[left] + tokens[right]
    merges = as_bytes(islice(learn_merges([case["text"]], "first_seen"), case["n_merges"]))
    assert merges == [(tokens[left], tokens[right], count) for (left, right), _, count in expected]


@pytest.mark.parametrize("case", TRAIN_CASES, ids=lambda case: case["id"])
def test_the_rule_of_lowest_ids_gives_the_merges_of_hugging_face(case):
    merges = learn_merges(PRETOKENIZERS["gpt-2"].split(case["text"]))
    assert [spell(merge.token) for merge in islice(merges, case["n_merges"])] == case["hf_trainer_merges"]


def test_a_minimum_count_ends_training():
    """huggingface/tokenizers, models/bpe/trainer.rs."""
    case = load_data("bpe.json")["train_word_counts"]
    pieces = [word for word, count in case["word_counts"].items() for _ in range(count)]
    merges = as_bytes(learn_merges(pieces, min_count=case["min_frequency"]))
    assert [[left.decode(), right.decode()] for left, right, _ in merges] == case["expected_merges"]
    assert all(count >= case["min_frequency"] for _, _, count in merges)


def test_2000_merges_on_a_megabyte_are_those_of_hugging_face():
    text = library_text(1_000_000)
    merges = as_bytes(islice(learn_merges(PRETOKENIZERS["smollm"].split(text)), 2_000))
    assert [(spell(left), spell(right)) for left, right, _ in merges] == train_with_hugging_face(text, 2_000)


def test_300_merges_by_first_sight_are_those_of_the_definition():
    pieces = PRETOKENIZERS["smollm"].split(library_text(20_000))
    assert as_bytes(islice(learn_merges(pieces, "first_seen"), 300)) == learn_by_definition(pieces, 300)


@given(st.lists(st.text(alphabet="abé", max_size=12), max_size=8))
def test_first_sight_equals_the_definition_on_any_pieces(pieces):
    assert as_bytes(islice(learn_merges(pieces, "first_seen"), 6)) == learn_by_definition(pieces, 6)


def test_overlapping_pairs_count_each_time():
    [merge] = islice(learn_merges(["aaa"]), 1)
    assert merge.count == 2
    assert [merge.token for merge in learn_merges(["aaa"])] == [b"aa", b"aaa"]


def test_the_order_of_sentences_matters_only_by_first_sight():
    """minbpe #90."""
    first, second = (["bbb", "aaa", "dddd", "cccc"], ["aaa", "bbb", "cccc", "dddd"])
    assert as_bytes(learn_merges(first)) == as_bytes(learn_merges(second))
    assert as_bytes(learn_merges(first, "first_seen")) != as_bytes(learn_merges(second, "first_seen"))


def test_nothing_is_merged_across_the_border_of_two_pieces():
    """LLMs-from-scratch #558, #975: training merged across borders that encoding never crosses."""
    pieces = ["ab", "ab", "ab"]
    assert as_bytes(learn_merges(pieces)) == [(b"a", b"b", 3)]


@given(st.lists(st.text(alphabet="ab", max_size=20), max_size=12), st.sampled_from(["lowest_ids", "first_seen"]))
def test_no_two_merges_make_the_same_bytes(pieces, tie_rule):
    tokens = [merge.token for merge in learn_merges(pieces, tie_rule)]
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("pieces", [[], [""], ["a", "b"]])
def test_a_text_without_pairs_has_no_merges(pieces):
    assert list(learn_merges(pieces)) == []


def test_an_unknown_tie_rule_is_refused_at_once():
    with pytest.raises(ValueError, match="tie_rule must be one of 'lowest_ids', 'first_seen', got 'random'"):
        learn_merges(["ab"], "random")


def test_a_minimum_count_below_one_is_refused_at_once():
    with pytest.raises(ValueError, match="min_count must be at least 1, got 0"):
        learn_merges(["ab"], min_count=0)
