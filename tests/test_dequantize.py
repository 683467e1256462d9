"""Blocks of small integers become the numbers that ggml's own code makes of them, bit by bit."""

import json
from pathlib import Path

import gguf as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.dequantize import KINDS, dequantize

BLOCKS = json.loads(Path(__file__).with_name("data").joinpath("quant_blocks.json").read_bytes())["blocks"]
VECTOR_TOLERANCE = 1e-9
"""The vectors are written with nine decimals at most; the smallest number in them, 5.96e-8, as 6e-08."""


def reference_values(raw: np.ndarray, kind: str) -> np.ndarray:
    """What the gguf package makes of the same bytes."""
    with np.errstate(all="ignore"):
        return reference.quants.dequantize(raw, reference.GGMLQuantizationType[kind])


def assert_bit_equal(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal bits, but for the payload of NaN, which no arithmetic defines."""
    assert ours.dtype == theirs.dtype == np.float32
    assert ours.shape == theirs.shape
    nan = np.isnan(theirs)
    assert np.array_equal(np.isnan(ours), nan)
    assert np.array_equal(ours[~nan].view(np.uint32), theirs[~nan].view(np.uint32))


@pytest.mark.parametrize("vector", BLOCKS, ids=[vector["case"] for vector in BLOCKS])
def test_published_blocks_give_the_published_numbers(vector):
    raw = np.frombuffer(bytes.fromhex(vector["block_hex"]), dtype=np.uint8).reshape(1, -1)
    expected = np.array([vector["expected"]], dtype=np.float32)  # "nan" becomes NaN
    np.testing.assert_allclose(dequantize(raw, vector["type"]), expected, rtol=0, atol=VECTOR_TOLERANCE)


def test_a_q4_0_block_counts_from_minus_eight():
    """Worked by hand: d = 2.0, low halves 0, high halves 15: 2 * (0 - 8) and 2 * (15 - 8)."""
    raw = np.frombuffer(bytes.fromhex("0040" + "f0" * 16), dtype=np.uint8).reshape(1, 18)
    assert dequantize(raw, "Q4_0").tolist() == [[-16.0] * 16 + [14.0] * 16]


@pytest.mark.parametrize("kind", KINDS)
def test_block_sizes_are_those_of_ggml(kind):
    size, nbytes = reference.GGML_QUANT_SIZES[reference.GGMLQuantizationType[kind]]
    assert (KINDS[kind].size, KINDS[kind].nbytes) == (size, nbytes)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5), blocks=st.integers(1, 7))
def test_random_bytes_are_dequantised_bit_equal_to_the_gguf_package(kind, seed, rows, blocks):
    raw = np.random.default_rng(seed).integers(0, 256, (rows, blocks * KINDS[kind].nbytes), dtype=np.uint8)
    assert_bit_equal(dequantize(raw, kind), reference_values(raw, kind))


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_every_sixteen_bit_pattern_is_widened_bit_equal_to_the_gguf_package(kind):
    raw = np.arange(2**16, dtype="<u2").view(np.uint8).reshape(256, 512)
    assert_bit_equal(dequantize(raw, kind), reference_values(raw, kind))


def test_some_rows_of_a_matrix_give_the_same_numbers_as_all_of_them():
    raw = np.random.default_rng(0).integers(0, 120, (8, 3 * KINDS["Q4_1"].nbytes), dtype=np.uint8)
    assert np.array_equal(dequantize(raw[2:5], "Q4_1"), dequantize(raw, "Q4_1")[2:5])
    assert np.array_equal(dequantize(raw[[6, 1]], "Q4_1"), dequantize(raw, "Q4_1")[[6, 1]])


def test_an_unknown_kind_is_named_with_those_that_are_read():
    with pytest.raises(ValueError, match=r"kind must be one of F32, F16, BF16, Q4_0, Q4_1, Q8_0, but is 'Q4_K'"):
        dequantize(np.zeros((1, 144), dtype=np.uint8), "Q4_K")


def test_a_row_that_ends_inside_a_block_is_refused():
    with pytest.raises(ValueError, match="multiple of 34 bytes long, but has 35"):
        dequantize(np.zeros((2, 35), dtype=np.uint8), "Q8_0")
