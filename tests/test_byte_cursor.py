"""A place in a file can't move past the end, and says where a claim was false."""

import io
from pathlib import Path

import numpy as np
import pytest

from llm_internals.byte_cursor import Cursor, GGUFError


@pytest.fixture
def cursor_over():
    """A function: bytes -> a cursor at their start."""
    return lambda data: Cursor(io.BytesIO(data), len(data), Path("folder", "bytes"))


def test_numbers_and_strings_follow_one_another(cursor_over):
    cursor = cursor_over(b"\x05\x00" + (2).to_bytes(8, "little") + "é".encode() + b"\x01\x00")
    assert cursor.number("<u2", "a number") == 5
    assert cursor.strings(1, "a text") == ["é"]
    assert cursor.numbers(np.dtype("?"), 2, "flags").tolist() == [True, False]
    assert cursor.position == 14


def test_a_claim_on_more_than_is_left_names_what_is_needed_and_what_is_there(cursor_over):
    cursor = cursor_over(b"abcdef")
    cursor.number("<u2", "a number")
    with pytest.raises(GGUFError, match="a list needs 2305843009213693952 bytes or more, but only 4 are") as caught:
        cursor.numbers(np.dtype("<u8"), 2**58, "a list")
    assert caught.value.offset == 2
    assert caught.value.path.name == "bytes"
    assert str(caught.value).startswith(str(Path("folder", "bytes")))
    assert str(caught.value).endswith("(at byte 2)")


@pytest.mark.parametrize("length", [4, 2**63, 2**64 - 1])
def test_a_string_that_is_longer_than_the_file_is_refused_at_its_length(cursor_over, length):
    cursor = cursor_over((1).to_bytes(8, "little") + b"a" + length.to_bytes(8, "little") + b"abc")
    with pytest.raises(GGUFError, match=f"a text of {length} bytes goes past the end") as caught:
        cursor.strings(2, "a text")
    assert caught.value.offset == 9


def test_a_string_that_is_not_utf_8_is_refused_at_its_bad_byte(cursor_over):
    cursor = cursor_over((3).to_bytes(8, "little") + b"a\xffb")
    with pytest.raises(GGUFError, match="a text must be valid UTF-8") as caught:
        cursor.strings(1, "a text")
    assert caught.value.offset == 9


@pytest.mark.parametrize("data", [b"\x02", b"\x00\x07\x01", b"\x01\xff"])
def test_a_flag_other_than_zero_and_one_is_refused(cursor_over, data):
    with pytest.raises(GGUFError, match="a flag must be 0"):
        cursor_over(data).numbers(np.dtype("?"), len(data), "a flag")


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "shrinking"
    path.write_bytes(bytes(10))
    with open(path, "rb") as file, pytest.raises(GGUFError, match="became shorter"):
        Cursor(file, 20, path).numbers(np.dtype("<u4"), 4, "numbers")


def test_an_error_about_something_missing_has_no_offset():
    error = GGUFError("nothing there", Path("a.gguf"))
    assert error.offset is None
    assert str(error) == "a.gguf: nothing there"
    assert isinstance(error, ValueError)
