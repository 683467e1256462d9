"""Where each model cuts a text."""

import unicodedata

import pytest
import regex
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from reference_tokenizers import load_data, random_texts, smollm_split, unicode14, without_type_checks
from tokenizers import pre_tokenizers

from llm_internals.byte_alphabet import unspell
from llm_internals.pretokenizer import PRETOKENIZERS, Pretokenizer, pretokenizer

SMOLLM = PRETOKENIZERS["smollm"]
GPT2 = PRETOKENIZERS["gpt-2"]


def test_gpt2_leaves_the_last_space_of_a_run_to_the_word_after_it():
    for case in load_data("bpe.json")["split_gpt2"]:
        assert GPT2.split(case["text"]) == case["expected"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("2024", ["2", "0", "2", "4"]),
        (" 2024", [" ", "2", "0", "2", "4"]),
        ("a  1", ["a", "  ", "1"]),  # a run of spaces before a digit is not divided ...
        ("a  b", ["a", " ", " b"]),  # ... before a letter it is
        ("½Ⅵ²", ["½", "Ⅵ", "²"]),  # every \p{N}, not only 0-9
        ("x2y", ["x", "2", "y"]),
        ("I'm DON'T", ["I", "'m", " DON", "'", "T"]),  # contractions in small letters only
        ("\n\n  x", ["\n\n ", " x"]),
    ],
)
def test_smollm_isolates_number_characters_and_then_splits_as_gpt2(text, pieces):
    assert SMOLLM.split(text) == pieces


def test_smollm_by_definition_equals_the_one_pattern():
    """Isolate each \\p{N} first, then apply GPT-2's pattern to every stretch between."""
    for text in random_texts(seed=1, count=5_000, encodable=lambda _: True):
        stretches = regex.split(r"(\p{N})", text)
        assert SMOLLM.split(text) == [piece for stretch in stretches for piece in GPT2.split(stretch)]


REFERENCES = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": smollm_split(),
    "llama-bpe": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(PRETOKENIZERS["llama-bpe"].pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
}
"""Each model's pre_tokenizer, as its tokenizer.json says."""


@without_type_checks()
@pytest.mark.parametrize("pre", PRETOKENIZERS)
def test_characters_and_fuzzed_strings_are_cut_as_hugging_face_cuts_them(pre):
    texts = [f"a{character} {character}b{character}1" for character in unicode14()[::19]]
    for text in [*texts, *random_texts(seed=2, count=3_000, encodable=lambda _: True)]:
        pieces = [unspell(spelling).decode() for spelling, _ in REFERENCES[pre].pre_tokenize_str(text)]
        assert PRETOKENIZERS[pre].split(text) == pieces


def test_each_model_has_its_own_pattern():
    """llama.cpp #6920: GPT-2's pattern was applied to every model, and Llama 3's numbers came out wrong."""
    splits = {pre: split.split(" 12345") for pre, split in PRETOKENIZERS.items()}
    assert splits == {
        "gpt-2": [" 12345"],
        "smollm": [" ", "1", "2", "3", "4", "5"],
        "llama-bpe": [" ", "123", "45"],
    }


def test_llama3_takes_contractions_in_capitals_and_signs_before_a_word():
    assert pretokenizer("llama-bpe").split("DON'T (see") == ["DON", "'T", " (", "see"]
    assert pretokenizer("llama-bpe").split("x(see") == ["x", "(see"]


@pytest.mark.parametrize("split", PRETOKENIZERS.values(), ids=PRETOKENIZERS)
@given(text=st.text())
def test_joined_pieces_are_the_text_and_none_is_empty(split, text):
    pieces = split.split(text)
    assert "".join(pieces) == text
    assert all(pieces)


@pytest.mark.parametrize("pre", ["", "default", "llama-spm", "SMOLLM"])
def test_an_unknown_name_is_refused_and_the_known_ones_are_listed(pre):
    """llama.cpp #7476 and ollama #17698: a missing or default name loaded, with wrong ids and no word about it."""
    with pytest.raises(ValueError, match=f"'gpt-2', 'smollm', 'llama-bpe', got {pre!r}"):
        pretokenizer(pre)


def test_a_pattern_that_would_lose_text_is_refused():
    with pytest.raises(ValueError, match="skips a part"):
        Pretokenizer(r"\w+").split("two words")


def test_the_list_of_unicode_14_is_that_of_python_where_python_has_unicode_14_and_older_than_any_later_one():
    listed = set(unicode14())
    known = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")}
    assert listed <= known
    assert listed == known or unicodedata.unidata_version != "14.0.0"
