"""Bytes as printable characters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.convert_slow_tokenizer import bytes_to_unicode

from llm_internals.byte_alphabet import BYTES_IN_ALPHABET_ORDER, CHARACTER_OF_BYTE, spell, unspell


def test_space_and_line_feed_have_the_characters_that_every_listing_shows():
    assert spell(b" a\n") == "ĠaĊ"


def test_the_alphabet_has_256_different_printable_characters():
    assert len(set(CHARACTER_OF_BYTE)) == 256
    assert all(character.isprintable() and not character.isspace() for character in CHARACTER_OF_BYTE)


def test_the_alphabet_is_that_of_gpt2():
    assert dict(enumerate(CHARACTER_OF_BYTE)) == bytes_to_unicode()


def test_printing_ascii_stands_for_itself():
    assert all(CHARACTER_OF_BYTE[byte] == chr(byte) for byte in range(0x21, 0x7F))


def test_the_order_of_the_alphabet_is_that_of_its_characters():
    assert sorted(BYTES_IN_ALPHABET_ORDER) == list(range(256))
    assert spell(BYTES_IN_ALPHABET_ORDER) == "".join(sorted(CHARACTER_OF_BYTE))
    assert BYTES_IN_ALPHABET_ORDER[0] == ord("!")


@given(st.binary())
def test_unspell_undoes_spell(data):
    assert unspell(spell(data)) == data


@pytest.mark.parametrize(("spelling", "position"), [("a b", 1), ("\n", 0), ("ab\u0144", 2), ("日", 0)])
def test_a_character_outside_the_alphabet_is_named_with_its_position(spelling, position):
    with pytest.raises(ValueError, match=re.escape(f"got {spelling[position]!r} at position {position}")):
        unspell(spelling)
