"""The script with the vocabulary: complete, small, and made of the weights file alone."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.token_view import token_view_script, token_view_vocabulary
from tools import token_view_data

BYTES = [*range(256)]


def unpacked(text: str) -> list[tuple[int, int]]:
    """The pairs again, read as the page reads them: four bytes a pair, low byte first."""
    data = base64.b64decode(text)
    numbers = [low + 256 * high for low, high in zip(data[::2], data[1::2], strict=True)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_the_stored_script_is_the_one_that_the_weights_file_gives(lm: LanguageModel) -> None:
    assert token_view_data.PATH.read_text(encoding="utf-8") == token_view_data.script(lm.tokenizer)


def test_it_stays_small_enough_for_a_page() -> None:
    assert token_view_data.PATH.stat().st_size < 300_000


def test_the_pairs_say_all_of_the_vocabulary_but_the_special_tokens(lm: LanguageModel) -> None:
    text = token_view_data.PATH.read_text(encoding="utf-8").partition(".content = ")[2].rstrip().removesuffix(";")
    vocabulary = json.loads(text)
    tokens = {id: bytes([byte]) for byte, id in enumerate(vocabulary["bytes"]) if id >= 0}
    for rank, (left, right) in enumerate(unpacked(vocabulary["pairs"])):
        tokens[vocabulary["first"] + rank] = tokens[left] + tokens[right]
    ordinary = set(range(lm.tokenizer.vocab_size)) - set(lm.tokenizer.special_tokens.values())
    assert tokens == {id: lm.tokenizer.token_bytes(id) for id in ordinary}


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1)), min_size=1, max_size=20))
def test_every_pair_comes_back(pairs: list[tuple[int, int]]) -> None:
    vocabulary = token_view_vocabulary(BYTES, pairs, [*range(300, 300 + len(pairs))], "x")
    assert unpacked(vocabulary["pairs"]) == pairs


def test_the_script_holds_the_vocabulary_and_where_it_comes_from() -> None:
    vocabulary = token_view_vocabulary(BYTES, [(97, 98)], [256], r"[^\s\p{L}]+|\s+(?!\S)")
    first, second = token_view_script(vocabulary, "By hand.").splitlines()
    assert first == "// By hand."
    assert json.loads(second.partition(" = ")[2].removesuffix(";")) == vocabulary
    assert vocabulary["pattern"] == r"[^\p{White_Space}\p{L}]+|\p{White_Space}+(?!\P{White_Space})"


@pytest.mark.parametrize(
    ("bytes_", "products", "message"),
    [
        (BYTES[1:], [256, 257], "byte_ids must have 256 ids"),
        (BYTES, [256, 258], "products must be consecutive"),
        (BYTES, [65_535, 65_536], "ids must be below 65,536"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(bytes_: list[int], products: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        token_view_vocabulary(bytes_, [(97, 98), (99, 100)], products, "x")
