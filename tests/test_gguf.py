"""Every good GGUF file is read as its writer meant it; every bad one gives `GGUFError`, soon, and nothing else."""

import hashlib
import json
import os
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import gguf as reference
import numpy as np
import pytest
from gguf_models import finish
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_internals.dequantize import KINDS
from llm_internals.gguf import KIND_OF_NUMBER, UNREAD_KINDS, GGUFError, read_gguf
from llm_internals.weights_file import find_weights

DATA = Path(__file__).with_name("data")
MALFORMED = json.loads(DATA.joinpath("gguf_malformed.json").read_text(encoding="utf-8"))["files"]
TENSORS = json.loads(DATA.joinpath("quant_tensors.json").read_text(encoding="utf-8"))

LOADS = {"ok minimal", "trailing garbage"}
SECONDS = 1.0
"""What a malformed file may cost at most; they take about a millisecond."""
ALLOCATED_BYTES = 1_000_000
"""What a malformed file may allocate at most: the largest has 120 kB, and some claim 2^63 bytes."""
FUZZED_FILES = 1000

U32, U64, F32, BOOL, STRING, ARRAY = 4, 10, 6, 7, 8, 9


def text(value: str | bytes) -> bytes:
    """A string of the file."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, value_type: int, value: bytes) -> bytes:
    """A metadata key with its value."""
    return text(key) + struct.pack("<I", value_type) + value


def described(name: str, dimensions: list[int], kind: int, offset: int) -> bytes:
    """A tensor description."""
    return text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)


def file_bytes(pairs: list[bytes], tensors: list[bytes], data: bytes, version: int = 3, alignment: int = 32) -> bytes:
    """A whole file; its data ends where the last tensor ends."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs + tensors)
    return head + bytes(-len(head) % alignment) + data


def small_file(version: int = 3) -> bytes:
    """A file with something of everything: numbers, texts, arrays, nested arrays, two tensors."""
    nested = struct.pack("<IQ", ARRAY, 2) + 2 * (struct.pack("<IQ", U32, 1) + struct.pack("<I", 7))
    pairs = [
        pair("general.architecture", STRING, text("llama")),
        pair("general.alignment", U32, struct.pack("<I", 32)),
        pair("a.flag", BOOL, b"\x01"),
        pair("a.number", F32, struct.pack("<f", 0.5)),
        pair("texts", ARRAY, struct.pack("<IQ", STRING, 3) + text("a") + text("") + text("é")),
        pair("numbers", ARRAY, struct.pack("<IQ3Q", U64, 3, 1, 2, 2**64 - 1)),
        pair("nested", ARRAY, nested),
    ]
    tensors = [described("m", [32, 2], 8, 0), described("v", [3], 0, 96)]
    data = 2 * (struct.pack("<e", 0.5) + bytes(range(32))) + bytes(28) + struct.pack("<3f", 1, 2, 3)
    return file_bytes(pairs, tensors, data, version)


@pytest.fixture
def written(tmp_path):
    """A function: bytes -> the path of a file that has them."""

    def write(data: bytes) -> Path:
        path = tmp_path / "written.gguf"
        path.write_bytes(data)
        return path

    return write


@pytest.fixture(scope="module")
def scratch_file(tmp_path_factory) -> Path:
    """A file that is written over again and again."""
    return tmp_path_factory.mktemp("fuzz") / "fuzzed.gguf"


@pytest.fixture(scope="module")
def timed_reference() -> tuple[reference.GGUFReader, float]:
    """The real file, read by the gguf package, and the seconds that it took."""
    start = time.perf_counter()
    return reference.GGUFReader(find_weights()), time.perf_counter() - start


@pytest.fixture(scope="module")
def smollm2_by_reference(timed_reference) -> reference.GGUFReader:
    """The real file, read by the gguf package."""
    return timed_reference[0]


def malformed_bytes(vector: dict) -> bytes:
    """The bytes of a published malformed file."""
    if "hex" in vector:
        return bytes.fromhex(vector["hex"])
    build = vector["build"]
    return bytes.fromhex(build["prefix_hex"]) + build["times"] * bytes.fromhex(build["repeat_hex"])


@pytest.mark.parametrize("vector", MALFORMED, ids=[vector["case"] for vector in MALFORMED])
def test_published_files_load_or_raise_gguf_error_at_once_and_without_much_memory(vector, written):
    path = written(malformed_bytes(vector))
    tracemalloc.start()
    start = time.perf_counter()
    try:
        if vector["case"] in LOADS:
            assert read_gguf(path).tensors["t"].dequantize().tolist() == [1, 2, 3, 4]
        else:
            with pytest.raises(GGUFError, match=r"\(at byte \d+\)$") as caught:
                read_gguf(path)
            assert 0 <= caught.value.offset <= path.stat().st_size
    finally:
        seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert seconds < SECONDS
    assert peak < ALLOCATED_BYTES


def test_a_small_file_is_read_to_the_last_number(written):
    file = read_gguf(written(small_file()))
    assert file.version == 3
    assert file.metadata["general.architecture"] == "llama"
    assert file.metadata["a.flag"] is True
    assert file.metadata["a.number"] == 0.5
    assert file.metadata["texts"] == ["a", "", "é"]
    assert file.metadata["numbers"].tolist() == [1, 2, 2**64 - 1]
    assert [numbers.tolist() for numbers in file.metadata["nested"]] == [[7], [7]]
    assert file.tensors["m"].shape == (2, 32)
    assert file.tensors["m"].read().shape == (2, 34)
    assert file.tensors["m"].dequantize().tolist() == 2 * [[n / 2 for n in range(32)]]
    assert file.tensors["v"].dequantize().tolist() == [1, 2, 3]


def test_version_2_is_laid_out_as_version_3(written):
    assert read_gguf(written(small_file(version=2))).tensors["v"].dequantize().tolist() == [1, 2, 3]


@pytest.mark.parametrize(("version", "named"), [(0, "is 0:"), (1, "is 1:"), (4, "is 4:"), (2**32 - 1, "is 4294967295")])
def test_an_unread_version_is_named(written, version, named):
    with pytest.raises(GGUFError, match=named):
        read_gguf(written(small_file(version=version)))


def test_big_endian_byte_order_is_named(written):
    data = b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    with pytest.raises(GGUFError, match="is 3 in big-endian byte order"):
        read_gguf(written(data))


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_cut_at_any_byte_raises_gguf_error(scratch_file, version):
    whole = small_file(version)
    for length in range(len(whole)):
        scratch_file.write_bytes(whole[:length])
        with pytest.raises(GGUFError):
            read_gguf(scratch_file)


def read_everything(path: Path) -> bool:
    """Whether a file loads, to its last tensor. Any other exception than GGUFError goes through."""
    try:
        for tensor in read_gguf(path).tensors.values():
            tensor.dequantize()
    except GGUFError:
        return False
    return True


def test_the_lowest_or_highest_bit_of_any_byte_flipped_loads_or_raises_gguf_error(scratch_file):
    whole, loaded = small_file(), 0
    for position in range(len(whole)):
        for bit in (1, 128):
            flipped = bytearray(whole)
            flipped[position] ^= bit
            scratch_file.write_bytes(flipped)
            loaded += read_everything(scratch_file)
    assert 0 < loaded < 2 * len(whole)  # some bits are mere numbers, others are not


def test_files_with_several_random_bytes_load_or_raise_gguf_error(scratch_file):
    whole, random = small_file(), np.random.default_rng(0)
    for _ in range(FUZZED_FILES):
        fuzzed = bytearray(whole)
        for position in random.integers(4, len(whole), random.integers(1, 5)):
            fuzzed[position] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.integers(256)])
        scratch_file.write_bytes(fuzzed)
        read_everything(scratch_file)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([described("a", [4], 12, 0)], "block type 12 (Q4_K); read are F32, F16, BF16, Q4_0, Q4_1, Q8_0"),
        ([described("a", [4], 99, 0)], "block type 99 (unknown)"),
        ([described("a", [4], 0, 0), described("a", [4], 0, 32)], "'a' occurs twice"),
        ([described("", [4], 0, 0)], "a tensor name must be 1 to 63 bytes long"),
        ([described("é" * 32, [4], 0, 0)], "a tensor name must be 1 to 63 bytes long"),
        ([described("a", [1] * 5, 0, 0)], "must have 1 to 4 dimensions, but has 5"),
        ([described("a", [4, 0], 0, 0)], "must be at least 1, but are [4, 0]"),
        ([described("a", [2**62, 4], 0, 0)], "should end at byte"),
        ([described("a", [33], 3, 0)], "must be a multiple of 32 long: [33]"),
        ([described("a", [4], 0, 8)], "must be a multiple of 32, but is 8"),
        ([described("a", [9], 0, 0), described("b", [4], 0, 32)], "'a' and 'b' overlap"),
        ([described("b", [4], 0, 32), described("a", [4], 0, 32)], "'b' and 'a' overlap"),
        ([described("a", [4], 0, 2**63)], "should end at byte"),
    ],
)
def test_a_bad_tensor_description_is_refused_by_name(written, tensors, message):
    with pytest.raises(GGUFError) as caught:
        read_gguf(written(file_bytes([], tensors, bytes(64))))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([pair("", U32, bytes(4)), pair("pad", U32, bytes(4))], "1 to 65535 ASCII characters, but is ''"),
        ([pair("é", U32, bytes(4)), pair("pad", U32, bytes(4))], "1 to 65535 ASCII characters, but is 'é'"),
        ([pair("k" * 65_536, U32, bytes(4))], "1 to 65535 ASCII characters"),
        ([pair("k", 13, bytes(4))], "the type of 'k' must be a number from 0 to 12, but is 13"),
        ([pair("k", ARRAY, struct.pack("<IQ", 13, 0))], "the type of 'k' must be a number from 0 to 12, but is 13"),
        ([pair("k", ARRAY, struct.pack("<IQ", U32, 2**62))], "bytes or more, but only"),
        ([pair("k", ARRAY, struct.pack("<IQ", STRING, 2**62))], "bytes or more, but only"),
        ([pair("k", ARRAY, struct.pack("<IQ", ARRAY, 2**62))], "bytes or more, but only"),
        ([pair("k", ARRAY, 5 * struct.pack("<IQ", ARRAY, 1) + bytes(12))], "nested more than 4 deep"),
        ([pair("general.alignment", U32, struct.pack("<I", 4))], "power of two of 8 or more, but is 4"),
        ([pair("general.alignment", STRING, text("32"))], "power of two of 8 or more, but is '32'"),
        ([pair("general.alignment", BOOL, b"\x01")], "power of two of 8 or more, but is True"),
    ],
)
def test_bad_metadata_are_refused_by_name(written, pairs, message):
    with pytest.raises(GGUFError) as caught:
        read_gguf(written(file_bytes(pairs, [], b"")))
    assert message in str(caught.value)


def test_a_large_alignment_moves_the_data_and_is_kept_to(written):
    pairs = [pair("general.alignment", U32, struct.pack("<I", 4096))]
    data = struct.pack("<f", 9.0) + bytes(4092) + struct.pack("<f", 8.0)
    tensors = [described("a", [1], 0, 0), described("b", [1], 0, 4096)]
    file = read_gguf(written(file_bytes(pairs, tensors, data, alignment=4096)))
    assert (file.tensors["a"].offset, file.tensors["b"].offset) == (4096, 8192)
    assert file.tensors["b"].dequantize().tolist() == [8.0]


def test_a_missing_file_is_file_not_found_and_a_folder_is_gguf_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_gguf(tmp_path / "missing.gguf")
    with pytest.raises(GGUFError, match="must be a regular file"):
        read_gguf(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(GGUFError, match="must be a regular file"):
        read_gguf(tmp_path / "pipe.gguf")


def test_a_file_that_is_cut_after_it_was_read_raises_gguf_error(written):
    path = written(small_file())
    tensor = read_gguf(path).tensors["v"]
    path.write_bytes(small_file()[:-1])
    with pytest.raises(GGUFError, match="the file ends inside tensor 'v'"):
        tensor.read()


metadata_values = st.one_of(
    st.booleans(),
    st.text(min_size=1, max_size=20),  # the package leaves out a key with an empty text
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32, allow_nan=False),
    st.lists(st.text(max_size=5), min_size=1, max_size=5),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5),
)


@settings(max_examples=25)
@given(
    values=st.dictionaries(st.text("abc._", min_size=1, max_size=12).map("x.".__add__), metadata_values, max_size=8),
    shapes=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), max_size=4),
    alignment=st.sampled_from([8, 32, 256]),
)
def test_whatever_the_gguf_package_writes_is_read_back(scratch_file, values, shapes, alignment):
    writer = reference.GGUFWriter(scratch_file, "llama")
    writer.add_custom_alignment(alignment)
    adders = {bool: writer.add_bool, str: writer.add_string, int: writer.add_int32, float: writer.add_float32}
    for key, value in values.items():
        adders.get(type(value), writer.add_array)(key, value)
    arrays = [np.random.default_rng(i).standard_normal(shape, dtype=np.float32) for i, shape in enumerate(shapes)]
    for i, array in enumerate(arrays):
        writer.add_tensor(f"tensor.{i}", array)
    finish(writer)
    file = read_gguf(scratch_file)
    read_back = {key: file.metadata[key] for key in values}
    assert {key: list(value) if isinstance(value, np.ndarray) else value for key, value in read_back.items()} == values
    assert list(file.tensors) == [f"tensor.{i}" for i in range(len(arrays))]
    for tensor, array in zip(file.tensors.values(), arrays, strict=True):
        assert np.array_equal(tensor.dequantize(), array)


def test_kind_numbers_are_those_of_ggml():
    theirs = {kind.value: kind.name for kind in reference.GGMLQuantizationType}
    assert set(KIND_OF_NUMBER.values()) == set(KINDS)
    assert (KIND_OF_NUMBER | UNREAD_KINDS).items() <= theirs.items()


def test_all_metadata_of_smollm2_are_those_that_the_gguf_package_reads(smollm2_by_reference):
    ours = read_gguf(find_weights()).metadata
    theirs = {key: field for key, field in smollm2_by_reference.fields.items() if not key.startswith("GGUF.")}
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        assert (value.tolist() if isinstance(value, np.ndarray) else value) == theirs[key].contents(), key


def test_all_272_tensors_of_smollm2_are_dequantised_bit_equal_to_the_gguf_package(smollm2_by_reference):
    file = read_gguf(find_weights())
    assert list(file.tensors) == [tensor.name for tensor in smollm2_by_reference.tensors]
    assert len(file.tensors) == 272
    for theirs in smollm2_by_reference.tensors:
        ours = file.tensors[theirs.name]
        expected = reference.quants.dequantize(theirs.data, theirs.tensor_type)
        values = ours.dequantize()
        assert values.shape == expected.shape
        assert np.array_equal(values.view(np.uint32), expected.view(np.uint32))
        kind, shape, sha256 = TENSORS[ours.name]
        assert (ours.kind, list(ours.shape)) == (kind, shape)
        assert hashlib.sha256(values.tobytes()).hexdigest() == sha256


def test_the_metadata_of_smollm2_are_read_in_a_quarter_of_the_time_of_the_gguf_package(timed_reference):
    """It takes about a thirtieth; the bound leaves room for a busy machine."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        read_gguf(find_weights())
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < timed_reference[1] / 4
