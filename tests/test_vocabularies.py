"""Five real vocabularies: against tiktoken, sentencepiece and the published table."""

import random

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from reference_tokenizers import load_data, random_texts, tiktoken_of, without_type_checks

from llm_internals import vocabularies
from llm_internals.vocabularies import cl100k_base, five_vocabularies, mistral_sentencepiece, o200k_base, tekken

ENCODE_CASES = load_data("tokenizer_encode.json")["encode"]
PUBLISHED = load_data("tokenizer_published.json")


@pytest.fixture(scope="module")
def five(lm):
    with without_type_checks():
        return {vocabulary.name: vocabulary for vocabulary in five_vocabularies(lm.tokenizer)}


@pytest.fixture(scope="module")
def tiktokens(five):
    """tiktoken's own code with the same ranks."""
    with without_type_checks():
        return {name: tiktoken_of(five[name].tokenizer) for name in ("cl100k_base", "o200k_base", "Tekken")}


def test_the_sizes_are_the_published_ones(five):
    sizes = {name: vocabulary.vocab_size for name, vocabulary in five.items()}
    assert sizes == {
        "SmolLM2": 49_152,
        "cl100k_base": 100_277,
        "o200k_base": 200_019,
        "Mistral SentencePiece": 32_000,
        "Tekken": 131_072,
    }


TABLE = {
    "unbelievable": ("un belie vable", "un belie vable", "un bel ievable", "▁un bel iev able", "un bel iev able"),
    " unbelievable": ("Ġunbelie vable", "Ġunbelievable", "Ġunbelievable", "▁ ▁un bel iev able", "Ġunbel iev able"),
    "2024": ("2 0 2 4", "202 4", "202 4", "▁ 2 0 2 4", "2 0 2 4"),
    " 2024": ("Ġ 2 0 2 4", "Ġ 202 4", "Ġ 202 4", "▁▁ 2 0 2 4", "Ġ 2 0 2 4"),
    "strawberry": ("st raw berry", "str aw berry", "st raw berry", "▁straw berry", "st raw berry"),
}


@pytest.mark.parametrize("text", TABLE)
def test_each_cuts_the_words_of_the_book_in_its_own_way(five, text):
    assert tuple(" ".join(vocabulary.spellings(text)) for vocabulary in five.values()) == TABLE[text]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_strings_have_their_published_ids(five, name):
    for case in ENCODE_CASES:
        assert five[name].encode(case["text"]) == case[name], case["id"]


def test_tiktokens_own_test_strings_have_their_ids():
    for text, ids in PUBLISHED["cl100k"]:
        assert cl100k_base().encode(text) == ids, text
    for data, ids in PUBLISHED["cl100k_bytes"]:
        assert cl100k_base().tokenizer.decode_bytes(ids) == bytes.fromhex(data)


def test_contractions_in_capitals_are_exact():
    """tiktoken-go #24: 'RE became [91987, 36]."""
    assert cl100k_base().encode("'RE") == [95253]


def test_two_spaces_are_one_token_as_merges_found_again_from_ranks_should_have_it():
    """tiktoken #60."""
    assert cl100k_base().encode("  ") == [256]


@without_type_checks()
def test_a_million_letters_are_encoded_in_o200k():
    assert len(o200k_base().encode("x" * 1_000_000)) == PUBLISHED["o200k_million_x"]


@without_type_checks()
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "Tekken"])
def test_fuzzed_strings_have_the_ids_of_tiktoken(five, tiktokens, name):
    vocabulary = five[name]
    for text in random_texts(seed=4, count=10_000, encodable=lambda _: True):
        ids = [vocabulary.first_id + id for id in tiktokens[name].encode_ordinary(text)]
        assert vocabulary.encode(text) == ids, text


@without_type_checks()
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "Tekken"])
def test_every_token_is_reached_by_its_own_merges(five, name):
    """Then a piece that is a token would become it without tiktoken's look-up of whole pieces, too."""
    tokenizer = five[name].tokenizer
    assert set(tokenizer.merges.products) == {
        id for id in range(tokenizer.vocab_size) if len(tokenizer.token_bytes(id)) > 1
    }
    for id in random.Random(0).sample(range(tokenizer.vocab_size), 2_000):
        assert list(tokenizer.merges.apply([tokenizer._id_of_byte[b] for b in tokenizer.token_bytes(id)])) == [id]


@given(text=st.text(max_size=40))
def test_pieces_of_byte_level_vocabularies_join_to_the_text_and_sentencepiece_adds_a_space(five, text):
    for name in ("cl100k_base", "o200k_base", "Tekken"):
        assert b"".join(five[name].pieces(text)) == text.encode()
    text = text.replace("▁", "")
    expected = f" {text}".encode() if text else b""
    assert b"".join(five["Mistral SentencePiece"].pieces(text)) == expected


def test_lists_of_a_text_have_one_entry_a_token(five):
    text = "Chemin de fer, 日本語, 🦙 and 1/2\n"
    for vocabulary in five.values():
        assert len(vocabulary.encode(text)) == len(vocabulary.pieces(text)) == len(vocabulary.spellings(text))
        assert all(0 <= id < vocabulary.vocab_size for id in vocabulary.encode(text))


def test_sentencepiece_puts_a_space_in_front_and_byte_level_vocabularies_do_not(five):
    """llama.cpp #167: without the dummy prefix a text began with the wrong token."""
    assert five["Mistral SentencePiece"].spellings("This is 🦙.cpp")[:2] == ["▁This", "▁is"]
    assert five["SmolLM2"].spellings("This is 🦙.cpp")[:2] == ["This", "Ġis"]


def test_sentencepiece_falls_back_to_bytes(five):
    assert five["Mistral SentencePiece"].spellings("🦊")[1:] == ["<0xF0>", "<0x9F>", "<0xA6>", "<0x8A>"]
    assert five["Mistral SentencePiece"].pieces("🦊\n") == [b" ", *(bytes([byte]) for byte in "🦊".encode()), b"\n"]


def test_sentencepiece_is_the_library_itself():
    assert isinstance(mistral_sentencepiece().processor, sentencepiece.SentencePieceProcessor)


def test_tekkens_ids_begin_after_its_1000_special_tokens():
    assert tekken().first_id == 1_000
    assert tekken().encode("A") == [1_000 + ord("A")]


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        ("no_such_package", "x", "data of the package 'its-name': run `pip install its-name`"),
        ("bpe_openai", "no_such_file", "'its-name' has no file data/no_such_file"),
    ],
)
def test_what_is_not_installed_is_named(module, name, error):
    with pytest.raises(FileNotFoundError, match=error):
        vocabularies._data_file(module, "its-name", name)
