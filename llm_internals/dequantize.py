"""The weights file: blocks of small integers with a scale -> float32.

A quantised matrix is cut, row by row, into blocks of 32 numbers. A block keeps its numbers as integers of 4 or 8 bits
and, once for all 32, the scale that turns them back; Q4_1 also keeps the smallest number. That makes 4.5 (Q4_0), 5.0
(Q4_1) or 8.5 (Q8_0) bits a number instead of 32. The unquantised kinds F32, F16 and BF16 are blocks of one number.

Leaves out quantising (only reading is needed) and the newer kinds with super-blocks (Q4_K and its relatives).

Chapter: ``11_four_bits``.
Source: ggml ``src/ggml-common.h``, ``block_q4_0``, ``block_q4_1``, ``block_q8_0``, and ``src/ggml-quants.c``,
``dequantize_row_q4_0`` and the like; the ``gguf`` package, ``quants.py``. The results are equal to theirs bit by bit:
float32(scale) * integer, then + float32(minimum), each rounded on its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Shaped, UInt8

Blocks = Shaped[np.ndarray, "rows blocks"]
BlockValues = Float32[np.ndarray, "rows blocks block_size"]


@dataclass(frozen=True)
class BlockKind:
    """How one kind of block is laid out in the file, and how it is turned into numbers.

    Parameters
    ----------
    size : int
        How many numbers a block holds.
    layout : numpy.dtype
        Its fields as they lie in the file, little-endian; ``layout.itemsize`` is its length in bytes.
    values : callable
        Blocks [rows, blocks] of that dtype -> float32 [rows, blocks, size].
    """

    size: int
    layout: np.dtype
    values: Callable[[np.ndarray], np.ndarray]

    @property
    def nbytes(self) -> int:
        """Length of a block in bytes."""
        return self.layout.itemsize


def float_values(blocks: Blocks) -> BlockValues:
    """F32 and F16: the number itself; every float16 is exactly a float32."""
    return blocks["x"].astype(np.float32)[..., None]


def bf16_values(blocks: Blocks) -> BlockValues:
    """BF16: the upper half of a float32, so the lower half is 16 zeros."""
    return (blocks["x"].astype(np.uint32) << 16).view(np.float32)[..., None]


def q8_0_values(blocks: Blocks) -> BlockValues:
    """x = d * q, with q in [-128, 127]."""
    return _scale(blocks["d"]) * blocks["q"]


def q4_0_values(blocks: Blocks) -> BlockValues:
    """x = d * (q - 8), with q in [0, 15]."""
    return _scale(blocks["d"]) * (_nibbles(blocks["q"]) - 8)


def q4_1_values(blocks: Blocks) -> BlockValues:
    """x = d * q + m, with q in [0, 15]."""
    values = _scale(blocks["d"]) * _nibbles(blocks["q"])
    values += _scale(blocks["m"])
    return values


def _scale(field: Blocks) -> Float32[np.ndarray, "rows blocks 1"]:
    """A float16 field, widened before anything is computed with it."""
    return field.astype(np.float32)[..., None]


def _nibbles(packed: UInt8[np.ndarray, "rows blocks half"]) -> BlockValues:
    """Two 4-bit integers a byte: the low halves are numbers 0 to 15 of the block, the high halves 16 to 31."""
    rows, blocks, half = packed.shape
    values = np.empty((rows, blocks, 2 * half), dtype=np.float32)
    values[..., :half] = packed & 15
    values[..., half:] = packed >> 4
    return values


KINDS: dict[str, BlockKind] = {
    "F32": BlockKind(1, np.dtype([("x", "<f4")]), float_values),
    "F16": BlockKind(1, np.dtype([("x", "<f2")]), float_values),
    "BF16": BlockKind(1, np.dtype([("x", "<u2")]), bf16_values),
    "Q4_0": BlockKind(32, np.dtype([("d", "<f2"), ("q", "u1", 16)]), q4_0_values),
    "Q4_1": BlockKind(32, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), q4_1_values),
    "Q8_0": BlockKind(32, np.dtype([("d", "<f2"), ("q", "i1", 32)]), q8_0_values),
}
"""Every kind that is read, by the name that ggml gives it."""


def dequantize(raw: UInt8[np.ndarray, "rows row_bytes"], kind: str) -> Float32[np.ndarray, "rows columns"]:
    """The numbers that the blocks stand for.

    Parameters
    ----------
    raw : array of uint8 [rows, row_bytes]
        The blocks of whole rows, as they lie in the file.
    kind : str
        A key of `KINDS`.

    Returns
    -------
    array of float32 [rows, columns]
        A block whose scale is NaN or infinite gives NaN or infinity; nothing is checked or repaired here.

    Raises
    ------
    ValueError
        If ``kind`` is unknown or a row isn't a whole number of blocks.

    Examples
    --------
    One Q4_1 block with scale 0.5, minimum -4 and the integers 0 (low halves) and 15 (high halves):

    >>> raw = np.frombuffer(bytes.fromhex("003800c4" + "f0" * 16), dtype=np.uint8).reshape(1, 20)
    >>> dequantize(raw, "Q4_1")[0, [0, 15, 16, 31]]
    array([-4. , -4. ,  3.5,  3.5], dtype=float32)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}")
    block = KINDS[kind]
    rows, row_bytes = raw.shape
    if row_bytes % block.nbytes:
        raise ValueError(f"a row of {kind} must be a multiple of {block.nbytes} bytes long, but has {row_bytes}")
    blocks = np.ascontiguousarray(raw).view(block.layout)
    with np.errstate(invalid="ignore", over="ignore"):
        return block.values(blocks).reshape(rows, -1)
