"""The weights file: the bytes of a GGUF file -> metadata and tensors, or one clear error.

A GGUF file is a header, a list of metadata (key, type, value), a list of tensors (name, shape, kind of block, offset),
and then, aligned, the data of the tensors. Every length, count and offset in it is a claim by whoever wrote the file,
so each is compared with the bytes that are there before anything is allocated or skipped.

Reads versions 2 and 3, little-endian, and the kinds of `dequantize.KINDS`. Bytes between and behind the tensors are
ignored. Leaves out writing, files split in parts, and what the metadata mean (`checkpoint`).

Chapter: ``11_four_bits``.
Source: ggml ``docs/gguf.md`` (the specification) and ``src/gguf.cpp``, ``gguf_init_from_file``; the ``gguf`` package,
``gguf_reader.py``, ``GGUFReader``.
"""

import itertools
import math
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped, UInt8

from llm_internals.byte_cursor import Cursor, GGUFError
from llm_internals.dequantize import KINDS, dequantize

VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_KEY_BYTES = 65_535
MAX_NAME_BYTES = 63  # 64 with the final zero that ggml adds
MAX_DIMENSIONS = 4
MAX_ARRAY_DEPTH = 4

NUMBER_TYPES = {
    0: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 10: np.dtype("<u8"),
    1: np.dtype("<i1"), 3: np.dtype("<i2"), 5: np.dtype("<i4"), 11: np.dtype("<i8"),
    6: np.dtype("<f4"), 12: np.dtype("<f8"), 7: np.dtype("?"),
}  # fmt: skip
STRING_TYPE = 8
ARRAY_TYPE = 9

KIND_OF_NUMBER = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 30: "BF16"}
UNREAD_KINDS = {
    6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
"""Block types that ggml has and that aren't read here: named, so that an error says more than a number."""


@dataclass(frozen=True)
class GGUFTensor:
    """Where one tensor lies, and how to get at it; nothing is read until it is asked for.

    Parameters
    ----------
    name : str
        As in the file, for example ``"blk.0.attn_q.weight"``.
    kind : str
        The kind of its blocks, a key of `dequantize.KINDS`.
    shape : tuple of int
        In NumPy's order, the innermost last: a matrix is (out, in). The file has it the other way round.
    offset, nbytes : int
        Where its data starts, counted from the start of the file, and how long it is.
    path : Path
        The file.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    path: Path = field(repr=False)

    def read(self) -> UInt8[np.ndarray, "rows row_bytes"]:
        """Its blocks as they lie in the file, one line a row of the matrix.

        Raises
        ------
        GGUFError
            If the file has become shorter since `read_gguf`.
        """
        rows = math.prod(self.shape[:-1])
        raw = np.empty((rows, self.nbytes // rows), dtype=np.uint8)
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            if file.readinto(raw) != self.nbytes:
                raise GGUFError(f"the file ends inside tensor {self.name!r}: it was cut", self.path, self.offset)
        return raw

    def dequantize(self) -> Float32[np.ndarray, "..."]:
        """Its numbers as float32, in its shape."""
        return dequantize(self.read(), self.kind).reshape(self.shape)


@dataclass(frozen=True)
class GGUFFile:
    """What a GGUF file says about itself.

    Parameters
    ----------
    version : int
        2 or 3.
    metadata : dict
        Values are int, float, bool, str, a list of str, a NumPy array of numbers, or a list of such arrays.
    tensors : dict
        `GGUFTensor` by name, in the order of the file.
    path : Path
        The file.
    key_offsets : dict
        The byte at which each metadata key stands, for error messages.
    """

    version: int
    metadata: dict[str, Any] = field(repr=False)
    tensors: dict[str, GGUFTensor] = field(repr=False)
    path: Path
    key_offsets: dict[str, int] = field(repr=False)

    def error(self, message: str, key: str | None = None) -> GGUFError:
        """An error about the value of a metadata key, or about the file as a whole."""
        return GGUFError(message, self.path, self.key_offsets.get(key))


def read_gguf(path: str | os.PathLike[str]) -> GGUFFile:
    """Read and check everything but the numbers themselves.

    Parameters
    ----------
    path : str or path-like
        A GGUF file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    GGUFError
        If it isn't a regular file, or anything in it is malformed, out of range, or of a version, byte order or kind
        of block that isn't read.

    Examples
    --------
    >>> import pathlib, struct, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "empty.gguf")
    ...     _ = path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    ...     read_gguf(path).metadata
    {}
    """
    path = Path(path)
    if not stat.S_ISREG(path.stat().st_mode):
        raise GGUFError("must be a regular file, but is a folder or a device", path, 0)
    with open(path, "rb") as file:
        cursor = Cursor(file, os.fstat(file.fileno()).st_size, path)
        version, tensor_count, key_count = read_header(cursor)
        metadata, key_offsets = read_metadata(cursor, key_count)
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        tensors = read_tensors(cursor, tensor_count, alignment)
    return GGUFFile(version, metadata, tensors, path, key_offsets)


def read_header(cursor: Cursor) -> tuple[int, int, int]:
    """Magic number, version, number of tensors, number of metadata keys -> the last three."""
    magic = cursor.numbers(np.dtype("u1"), 4, "the magic number").tobytes()
    if magic != b"GGUF":
        raise cursor.error(f"a GGUF file starts with the bytes b'GGUF', but this one with {magic!r}", 0)
    version = cursor.number("<u4", "the version")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
        found = f"{swapped} in big-endian byte order" if 1 <= swapped <= max(VERSIONS) else str(version)
        raise cursor.error(f"version must be 2 or 3, little-endian, but is {found}: convert the file again", 4)
    return version, cursor.number("<u8", "the number of tensors"), cursor.number("<u8", "the number of metadata keys")


def read_metadata(cursor: Cursor, count: int) -> tuple[dict[str, Any], dict[str, int]]:
    """``count`` keys with their values, and where each key stands; a key may occur only once."""
    cursor.claim(count * 14, f"{count} metadata keys")  # the shortest: 1 letter and a value of 1 byte
    metadata: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    for _ in range(count):
        at = cursor.position
        key = cursor.strings(1, "a metadata key")[0]
        if not (1 <= len(key) <= MAX_KEY_BYTES and key.isascii()):
            raise cursor.error(f"a metadata key must be 1 to {MAX_KEY_BYTES} ASCII characters, but is {key[:80]!r}", at)
        if key in metadata:
            raise cursor.error(f"metadata key {key!r} occurs twice", at)
        value_type = cursor.number("<u4", f"the type of {key!r}")
        metadata[key] = read_value(cursor, value_type, key)
        offsets[key] = at
        if key == "general.alignment":
            check_alignment(cursor, value_type, metadata[key], at)
    return metadata, offsets


def check_alignment(cursor: Cursor, value_type: int, value: Any, offset: int) -> None:
    """The data of every tensor starts at a multiple of it: a power of two, at least 8, stored as uint32."""
    if NUMBER_TYPES.get(value_type) != np.uint32 or value < 8 or value & (value - 1):
        raise cursor.error(f"general.alignment must be a uint32 power of two of 8 or more, but is {value!r}", offset)


def read_value(cursor: Cursor, value_type: int, key: str) -> Any:
    """One value of a metadata key."""
    if value_type == STRING_TYPE:
        return cursor.strings(1, f"the text of {key!r}")[0]
    if value_type == ARRAY_TYPE:
        return read_array(cursor, key, depth=1)
    return cursor.numbers(number_type(cursor, value_type, key), 1, f"the value of {key!r}")[0].item()


def read_array(cursor: Cursor, key: str, depth: int) -> list[Any] | Shaped[np.ndarray, " count"]:
    """An array of strings, of numbers, or of arrays down to `MAX_ARRAY_DEPTH`."""
    if depth > MAX_ARRAY_DEPTH:
        raise cursor.error(f"the arrays of {key!r} are nested more than {MAX_ARRAY_DEPTH} deep")
    element_type = cursor.number("<u4", f"the element type of {key!r}")
    count = cursor.number("<u8", f"the length of {key!r}")
    if element_type == STRING_TYPE:
        return cursor.strings(count, f"an element of {key!r}")
    if element_type == ARRAY_TYPE:
        cursor.claim(12 * count, f"{key!r}, {count} arrays,")
        return [read_array(cursor, key, depth + 1) for _ in range(count)]
    return cursor.numbers(number_type(cursor, element_type, key), count, f"{key!r}, {count} numbers,")


def number_type(cursor: Cursor, value_type: int, key: str) -> np.dtype:
    """The dtype of a number type in the file."""
    if value_type not in NUMBER_TYPES:
        raise cursor.error(f"the type of {key!r} must be a number from 0 to 12, but is {value_type}")
    return NUMBER_TYPES[value_type]


def read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, GGUFTensor]:
    """``count`` tensor descriptions, each checked against the data section, which starts behind them, aligned."""
    cursor.claim(count * 33, f"{count} tensor descriptions")  # the shortest: a name of 1 letter and 1 dimension
    described: dict[str, tuple[GGUFTensor, int]] = {}
    for _ in range(count):
        at = cursor.position
        tensor = read_tensor(cursor, alignment)
        if tensor.name in described:
            raise cursor.error(f"tensor {tensor.name!r} occurs twice", at)
        described[tensor.name] = tensor, at
    data_start = cursor.position + -cursor.position % alignment
    tensors = {name: place_tensor(cursor, *of_name, data_start) for name, of_name in described.items()}
    check_overlaps(cursor, tensors)
    return tensors


def read_tensor(cursor: Cursor, alignment: int) -> GGUFTensor:
    """One description: name, dimensions from the innermost, kind of block, offset from the start of the data."""
    at = cursor.position
    name = cursor.strings(1, "a tensor name")[0]
    if not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
        raise cursor.error(f"a tensor name must be 1 to {MAX_NAME_BYTES} bytes long, but is {name[:80]!r}", at)
    dimensions = read_dimensions(cursor, name)
    kind = read_kind(cursor, name)
    offset = cursor.number("<u8", f"the offset of tensor {name!r}")
    if offset % alignment:
        raise cursor.error(f"the offset of tensor {name!r} must be a multiple of {alignment}, but is {offset}", at)
    block = KINDS[kind]
    if dimensions[0] % block.size:
        raise cursor.error(f"a {kind} row of tensor {name!r} must be a multiple of {block.size} long: {dimensions}", at)
    nbytes = math.prod(dimensions) // block.size * block.nbytes
    return GGUFTensor(name, kind, tuple(reversed(dimensions)), offset, nbytes, cursor.path)


def read_dimensions(cursor: Cursor, name: str) -> list[int]:
    """How many, then each of them; a scalar is written as one dimension of 1."""
    at = cursor.position
    count = cursor.number("<u4", f"the number of dimensions of tensor {name!r}")
    if not 1 <= count <= MAX_DIMENSIONS:
        raise cursor.error(f"tensor {name!r} must have 1 to {MAX_DIMENSIONS} dimensions, but has {count}", at)
    dimensions = cursor.numbers(np.dtype("<u8"), count, f"the dimensions of tensor {name!r}").tolist()
    if min(dimensions) < 1:
        raise cursor.error(f"the dimensions of tensor {name!r} must be at least 1, but are {dimensions}", at)
    return dimensions


def read_kind(cursor: Cursor, name: str) -> str:
    """The kind of a tensor's blocks, by its number in the file."""
    at = cursor.position
    number = cursor.number("<u4", f"the block type of tensor {name!r}")
    if number not in KIND_OF_NUMBER:
        kind = UNREAD_KINDS.get(number, "unknown")
        raise cursor.error(f"tensor {name!r} has block type {number} ({kind}); read are {', '.join(KINDS)}", at)
    return KIND_OF_NUMBER[number]


def place_tensor(cursor: Cursor, tensor: GGUFTensor, described_at: int, data_start: int) -> GGUFTensor:
    """The tensor with its offset counted from the start of the file, if its data is there."""
    start = data_start + tensor.offset
    if start + tensor.nbytes > cursor.size:
        raise cursor.error(
            f"tensor {tensor.name!r} of shape {tensor.shape} should end at byte {start + tensor.nbytes}, but the file "
            f"ends at {cursor.size}",
            described_at,
        )
    return replace(tensor, offset=start)


def check_overlaps(cursor: Cursor, tensors: dict[str, GGUFTensor]) -> None:
    """No byte belongs to two tensors."""
    in_order = sorted(tensors.values(), key=lambda tensor: tensor.offset)
    for before, after in itertools.pairwise(in_order):
        if before.offset + before.nbytes > after.offset:
            raise cursor.error(f"tensors {before.name!r} and {after.name!r} overlap", after.offset)
