"""The exercises of chapter 06: each solution passes its check, and each way to go wrong is told apart."""

from collections.abc import Callable
from itertools import product

import pytest

from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.exercises import detokenization as exercises
from llm_internals.tokenizer import Tokenizer, train_bpe

TOY = train_bpe(" the the", 260, special_tokens=["<end>"])


# 1. Read a spelling


def test_the_spelling_is_read_as_the_package_reads_it() -> None:
    assert exercises.check_spelling(exercises.read_spelling()).startswith("Right")
    assert exercises.read_spelling() == " —"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "No answer yet"),
        ("ĠâĢĶ", "that is the spelling itself"),
        ("—", "Ġ stands for a byte as well"),
        (" -", "your text has the bytes 20 2d, the token has 20 first and 4 in all"),
        ("\ud800", "your text has the bytes 3f"),
    ],
)
def test_a_wrong_reading_is_told_what_is_wrong(answer: str | None, message: str) -> None:
    assert message in exercises.check_spelling(answer)
    assert "—" not in exercises.check_spelling(answer)


# 2. Hold back


def by_search(text: str, stop: str) -> int:
    """The longest end that begins the stop string, found by trying all."""
    return max(length for length in range(len(stop)) if text[len(text) - length :] == stop[:length])


def restarting(text: str, stop: str) -> int:
    """The usual mistake: letters are counted, and a letter that doesn't fit starts over without looking back."""
    matched = 0
    for letter in text:
        matched = matched + 1 if letter == stop[matched] else int(letter == stop[0])
        matched %= len(stop)
    return matched


def test_the_solution_holds_back_what_has_to_wait() -> None:
    assert exercises.check_held(exercises.held).startswith("Right")
    assert exercises.check_held(by_search).startswith("Right")


def test_no_case_holds_its_stop_string_already() -> None:
    assert [case for case in exercises.CASES if case[1] in case[0]] == []


def test_the_solution_holds_back_what_the_package_holds_back() -> None:
    for text in map("".join, product("ab", repeat=5)):
        for stop in ("aab", "abab", "bb", "b"):
            detokenizer = StreamingDetokenizer(TOY, [stop])
            for letter in text:
                detokenizer.add(TOY.encode(letter)[0])
            if detokenizer.stopped is None:
                assert exercises.held(text, stop) == len(detokenizer.held)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "No answer yet"),
        (restarting, "lets 'aa' go"),
        (lambda text, stop: min(len(text), len(stop) - 1), "holds back 'b', with which the stop string doesn't begin"),
        (lambda text, stop: next(n for n in range(len(stop)) if text.endswith(stop[:n])), "lets 'a' go"),
        (lambda text, stop: stop, "it returns 'aab', no length in it"),
        (lambda text, stop: -1, "no length in it"),
    ],
)
def test_a_wrong_function_is_told_on_which_text_it_fails(answer: Callable | None, message: str) -> None:
    assert message in exercises.check_held(answer)


# 3. Ids without a text


def test_the_letters_of_a_merged_word_are_ids_without_a_text(lm) -> None:
    for tokenizer in (lm.tokenizer, TOY):
        ids = exercises.ids_without_a_text(tokenizer)
        assert exercises.check_ids_without_a_text(ids, tokenizer).startswith("Right: decode gives ' the'")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "No answer yet"),
        ([], "at least one id in 0 .. 259"),
        ([260], "at least one id in 0 .. 259"),
        ([259], "is a special token"),
        (TOY.encode("é")[:1], "aren't text"),
        (TOY.encode(" the"), "encode(' the') gives [258], the same ids"),
    ],
)
def test_ids_that_are_no_answer_are_told_why(answer: list[int] | None, message: str) -> None:
    assert message in exercises.check_ids_without_a_text(answer, TOY)


def test_the_toy_is_as_the_tests_take_it(lm) -> None:
    assert (TOY.vocab_size, TOY.special_tokens["<end>"]) == (260, 259)
    assert isinstance(lm.tokenizer, Tokenizer)
