"""Merging by lowest rank: the queue against the definition."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizers import load_data

from llm_internals.bpe import Merges, merges_of_ranks
from llm_internals.pretokenizer import PRETOKENIZERS
from llm_internals.tokenizer import Tokenizer


def merge_by_definition(ids, merges):
    """Look at all pairs, merge the leftmost one of lowest rank, start again."""
    ids = list(ids)
    while candidates := [(merges.ranks[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in merges.ranks]:
        rank, at = min(candidates)
        ids[at : at + 2] = [merges.products[rank]]
    return ids


def test_the_lowest_rank_is_merged_first_wherever_it_stands():
    a, b, c, bc, ab = range(5)
    assert Merges([((b, c), bc), ((a, b), ab)]).apply([a, b, c]) == [a, bc]
    assert Merges([((a, b), ab), ((b, c), bc)]).apply([a, b, c]) == [ab, c]


def test_of_equal_pairs_the_leftmost_is_merged_first():
    assert Merges([((0, 0), 1)]).apply([0, 0, 0]) == [1, 0]


def test_a_merged_symbol_can_be_merged_again_with_either_neighbour():
    assert Merges([((0, 0), 1), ((1, 0), 2), ((3, 2), 4)]).apply([3, 0, 0, 0]) == [4]


def test_a_pair_that_was_queued_and_is_gone_is_not_merged():
    a, b, c, bc, ab, abc = range(6)
    assert Merges([((b, c), bc), ((a, b), ab), ((a, bc), abc)]).apply([a, b, c]) == [abc]


def test_a_merge_may_need_a_symbol_of_a_later_rank():
    """Odd, but files may hold it: rank 0 needs what rank 1 makes, and wins as soon as it is there."""
    a, b, c, ab, abc, ca = range(6)
    merges = Merges([((ab, c), abc), ((a, b), ab), ((c, a), ca)])
    assert merges.apply([a, b, c, a, b, c]) == [abc, abc]


def test_a_pair_listed_twice_keeps_its_first_rank():
    merges = Merges([((0, 1), 2), ((1, 0), 3), ((0, 1), 4)])
    assert merges.ranks == {(0, 1): 0, (1, 0): 1}
    assert merges.apply([0, 1, 0]) == [2, 0]


@pytest.mark.parametrize("ids", [[], [5], [5, 6]])
def test_what_can_not_be_merged_stays(ids):
    assert Merges([((0, 0), 1)]).apply(ids) == ids
    assert list(Merges([((0, 0), 1)]).steps(ids)) == []


@settings(max_examples=500)
@given(
    merges=st.lists(st.tuples(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 3)), max_size=12),
    ids=st.lists(st.integers(0, 3), max_size=20),
)
def test_the_queue_gives_what_the_definition_gives_for_any_table(merges, ids):
    merges = Merges(merges)
    assert merges.apply(ids) == merge_by_definition(ids, merges)
    assert [ids, *merges.steps(ids)][-1] == merges.apply(ids)


def test_every_step_is_one_merge():
    steps = list(Merges([((0, 0), 1), ((1, 1), 2)]).steps([0] * 7))
    assert [len(step) for step in steps] == [6, 5, 4, 3]


def test_published_toys_encode_as_published():
    """huggingface/tokenizers, models/bpe/model.rs and the flag ignore_merges; the last is one of our own."""
    for case in load_data("bpe.json")["encode_toy"]:
        tokens = [f"unused{id}" for id in range(max(case["vocab"].values()) + 1)]
        for token, id in case["vocab"].items():
            tokens[id] = token
        word = case.get("word", "abc")
        assert Tokenizer.from_vocabulary(tokens, case["merges"], (), "gpt-2").encode(word) == case["expected"]
        if "no_merges_expected" in case:
            assert Tokenizer.from_vocabulary(tokens, [], (), "gpt-2").encode(word) == case["no_merges_expected"]
        if "ignore_merges_expected" in case:
            whole = Tokenizer.from_vocabulary(tokens, case["merges"], (), "llama-bpe")
            assert whole.encode(word) == case["ignore_merges_expected"]


def test_a_whole_word_that_merges_do_not_reach_is_one_token_only_where_the_model_says_so():
    """llama.cpp #7193: Llama 3's " Việt" is one token, though its merges stop at three."""
    tokens = ["x", "y", "z", "xy", "xyz"]
    assert PRETOKENIZERS["llama-bpe"].whole_pieces
    assert Tokenizer.from_vocabulary(tokens, ["x y"], (), "llama-bpe").encode("xyz") == [4]
    assert Tokenizer.from_vocabulary(tokens, ["x y"], (), "gpt-2").encode("xyz") == [3, 2]


def test_merges_are_found_again_from_ranks_alone():
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"bc": 4, b"abc": 5, b"abab": 6}
    assert list(merges_of_ranks(ranks)) == [((0, 1), 3), ((1, 2), 4), ((3, 2), 5), ((3, 3), 6)]


@pytest.mark.parametrize("ranks", [{b"a": 0, b"b": 1, b"c": 2, b"abc": 3}, {b"b": 0, b"c": 1, b"abc": 2}])
def test_a_token_that_no_two_others_make_is_refused(ranks):
    with pytest.raises(ValueError, match=r"token b'abc' of rank . is not made of two of lower rank"):
        list(merges_of_ranks(ranks))
