"""The exercises of chapter 01: each solution passes its check, and plausible wrong answers are told what is wrong."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_tokenizers import random_texts, without_type_checks

from llm_internals.exercises import tokenization as exercises
from llm_internals.pretokenizer import PRETOKENIZERS, Pretokenizer
from llm_internals.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(lm) -> Tokenizer:
    return lm.tokenizer


def test_no_answer_is_no_mistake(tokenizer: Tokenizer) -> None:
    told = [
        exercises.check_three_merges(None),
        exercises.check_space_word(None, tokenizer),
        exercises.check_safe_chunks(None, tokenizer),
    ]
    assert all(line.startswith("No answer yet:") for line in told)


# 1. Three merges


def test_the_three_merges_pass_their_check_and_are_those_of_a_count_on_paper() -> None:
    assert exercises.three_merges() == ["ub", "bub", "bl"]
    assert exercises.check_three_merges(exercises.three_merges()).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (["bb", "ub", "le"], "for merge 1, 'bb' stands 3 times"),
        (
            ["ub", "ubb", "bl"],
            "for merge 2, 'ubb' stands 3 times in the text as merged so far, and another pair as often",
        ),
        (["ub", "bu", "bl"], "for merge 2, no two neighbours make 'bu'"),
        (
            ["ub", "bub", "le"],
            "for merge 3, 'le' stands 2 times in the text as merged so far, and another pair as often",
        ),
        (["ub", "bub"], "a list of 3 strings"),
        ("ubb", "a list of 3 strings"),
    ],
)
def test_other_merges_are_told_what_the_counts_say(wrong: list[str] | str, reason: str) -> None:
    told = exercises.check_three_merges(wrong)
    assert told.startswith("Not yet")
    assert reason in told


def test_a_complaint_does_not_name_the_right_token() -> None:
    assert "'ub'" not in exercises.check_three_merges(["bb", "x", "y"])


# 2. A word that its space decides


def test_the_word_passes_its_check(tokenizer: Tokenizer) -> None:
    with without_type_checks():
        word = exercises.space_word(tokenizer)
    told = exercises.check_space_word(word, tokenizer)
    assert told == "Right: the number of tokens is 1 after a space and 5 without one."


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("strawberry", "1 after a space and 3 without one"),
        ("unbelievable", "2 after a space and 3 without one"),
        ("the", "1 after a space and 1 without one"),
        (" themselves", "letters alone"),
        ("2024", "letters alone"),
        ("", "letters alone"),
    ],
)
def test_another_word_is_told_its_counts(tokenizer: Tokenizer, wrong: str, reason: str) -> None:
    told = exercises.check_space_word(wrong, tokenizer)
    assert told.startswith("Not yet")
    assert reason in told


# 3. Cuts that change nothing


def test_the_chunks_pass_their_check(tokenizer: Tokenizer) -> None:
    assert exercises.check_safe_chunks(exercises.safe_chunks, tokenizer).startswith("Right")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda text, size, split: [text[at : at + size] for at in range(0, len(text), size)], "the ids of"),
        (lambda text, size, split: [word + " " for word in text.split()], "joined, the chunks of"),
        (lambda text, size, split: [text], "more than 20 characters"),
        (lambda text, size, split: re.findall(r"\S+\s*|\s+", text), "the ids of"),
        (lambda text, size, split: re.findall(r"\s*\S{1,2}|\s+$", text), "the ids of"),
        (lambda text, size, split: re.findall(r"\s*[^\s']+(?:'\w+)?[,.!:]*|\s+$", text), "chunks are more than"),
    ],
)
def test_other_chunks_are_told_where_they_fail(tokenizer: Tokenizer, wrong: exercises.Chunker, reason: str) -> None:
    told = exercises.check_safe_chunks(wrong, tokenizer)
    assert told.startswith("Not yet")
    assert reason in told


def packed(text: str, size: int, split: Pretokenizer) -> list[str]:
    """The answer that is almost right: it cuts at every border of pieces."""
    chunks = [""]
    for piece in split.split(text):
        if len(chunks[-1]) + len(piece) > size:
            chunks.append("")
        chunks[-1] += piece
    return chunks


def test_a_cut_between_pieces_behind_white_space_is_told_to_change_ids(tokenizer: Tokenizer) -> None:
    assert "the ids of" in exercises.check_safe_chunks(packed, tokenizer)


@without_type_checks()
def test_the_cuts_change_no_id(tokenizer: Tokenizer) -> None:
    missing = set(tokenizer.missing_bytes)
    for text in random_texts(seed=6, count=3000, encodable=lambda text: not set(text.encode()) & missing):
        chunks = exercises.safe_chunks(text, 5, tokenizer.split)
        assert [id for chunk in chunks for id in tokenizer.encode(chunk)] == tokenizer.encode(text), text


@given(st.text(alphabet="ab 1\n.", max_size=40), st.integers(1, 12))
def test_chunks_are_whole_and_each_could_not_hold_the_next(text: str, size: int) -> None:
    split = PRETOKENIZERS["smollm"]
    chunks = exercises.safe_chunks(text, size, split)
    assert "".join(chunks) == text
    for chunk, following in pairwise(chunks):
        first_unit = exercises.safe_chunks(following, 1, split)[0]
        assert len(chunk) + len(first_unit) > size
