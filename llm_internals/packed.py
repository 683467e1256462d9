"""The weights file: its blocks -> a matrix that stays in 4 bits in memory and is multiplied as it is.

A decode step multiplies one row by every weight, so it has to read them all, and its speed is that of the memory. Kept
in 4 bits they are a sixth of float32. The products are two operators of PyTorch for the CPU that keep for each group of
32 weights of an output one scale and one zero:

    w = (q - 8) * scale + zero,    q in [0, 15]

The blocks of a GGUF file are the same up to algebra. Q4_1 has w = d q + m: scale d, zero m + 8 d. Q4_0 has
w = d (q - 8): scale d, zero 0. A Q8_0 number is two of 4 bits, q = 16 high + low, so its product is the sum of two.
What isn't the same is rounding: the operators take x, scales and zeros in bfloat16, and give their result in it, so
results have two to three digits. `checkpoint` keeps the residual stream in float32 around them.

The operators are private to PyTorch (their names begin with an underscore), so `kernels_usable` asks for them first.
They are fast with AVX-512, slower with AVX2, and on other processors slower than float32.
Leaves out training through packed weights (the operators have no gradient), and the newer kinds with super-blocks.

Chapter: ``11_four_bits``.
Source: PyTorch ``aten/src/ATen/native/LinearAlgebra.cpp``, ``_weight_int4pack_mm_cpu``, and
``aten/src/ATen/native/cpu/int4mm_kernel.cpp``; ggml ``src/ggml-common.h`` for the blocks.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import BFloat16, Float, Float32, Int, UInt8
from torch import Tensor

from llm_internals.dequantize import KINDS, dequantize

KERNELS = ("_convert_weight_to_int4pack_for_cpu", "_weight_int4pack_mm_for_cpu")
"""The operators of PyTorch: one puts q into the order that the other reads it in."""

GROUP = 32
"""Weights that share a scale and a zero; a block of the file."""

ROW_MULTIPLE = 16
"""The operators want the number of outputs to be a multiple of this."""

ROWS_AT_ONCE = 1024
"""Rows packed together, a multiple of the operators' widest tile (64): between, q takes four bytes a weight."""


@dataclass(frozen=True, eq=False, repr=False)
class FourBitMatrix:
    """A matrix [in, out] of 4 bits a weight; a kind of weight (`linear.PackedMatrix`).

    Attributes
    ----------
    nibbles : Tensor of uint8 [out, in / 2]
        q, two a byte, in an order that is the operators' own and differs between processors.
    scales_and_zeros : Tensor of bfloat16 [in / 32, out, 2]

    Examples
    --------
    >>> q = np.zeros((16, 1, 32), dtype=np.uint8)  # 16 outputs, one group of 32 inputs
    >>> q[:, 0, 0] = 8 + np.arange(16) % 8         # all weights are -8 but those of the first input
    >>> matrix = four_bit_matrix(q, scale=np.ones((16, 1), np.float32), zero=np.zeros((16, 1), np.float32))
    >>> x = torch.zeros(1, 32); x[0, 0] = 2.0
    >>> matrix.product(x)[0, :4].tolist()
    [0.0, 2.0, 4.0, 6.0]
    """

    nibbles: UInt8[Tensor, "out_features half_in"]
    scales_and_zeros: BFloat16[Tensor, "groups out_features 2"]

    @property
    def shape(self) -> tuple[int, int]:
        """(in, out)."""
        return 2 * self.nibbles.shape[1], self.nibbles.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory: 5 bits a weight."""
        return self.nibbles.nbytes + self.scales_and_zeros.nbytes

    def product(self, x: Float[Tensor, "*batch in_features"]) -> Float[Tensor, "*batch out_features"]:
        """x W, rounded to bfloat16 and widened to the dtype of x.

        Raises
        ------
        RuntimeError
            If x needs a gradient: the operator has none.
        """
        if x.requires_grad and torch.is_grad_enabled():
            raise RuntimeError('packed weights have no gradient: load the model with weights="float32" to train on it')
        flat = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
        y = torch._weight_int4pack_mm_for_cpu(flat.bfloat16(), self.nibbles, GROUP, self.scales_and_zeros).to(x.dtype)
        return y if x.ndim == 2 else y.view(*x.shape[:-1], -1)

    def rows(self, ids: Int[Tensor, " seq"]) -> Float[Tensor, "seq in_features"]:
        """The columns ``ids``, as rows: what the product gives for each unit vector. Slow, as it computes all."""
        return self.product(torch.eye(self.shape[0]))[:, ids].t()


@dataclass(frozen=True, eq=False, repr=False)
class EightBitMatrix:
    """A matrix of 8 bits a weight, as two of 4: w = d (16 high + low)."""

    high: FourBitMatrix
    low: FourBitMatrix

    @property
    def shape(self) -> tuple[int, int]:
        """(in, out)."""
        return self.high.shape

    @property
    def nbytes(self) -> int:
        """Bytes in memory: 10 bits a weight."""
        return self.high.nbytes + self.low.nbytes

    def product(self, x: Float[Tensor, "*batch in_features"]) -> Float[Tensor, "*batch out_features"]:
        """x W as the sum of two products of 4 bits, each rounded to bfloat16."""
        return self.high.product(x) + self.low.product(x)

    def rows(self, ids: Int[Tensor, " seq"]) -> Float[Tensor, "seq in_features"]:
        """As `FourBitMatrix.rows`."""
        return self.high.rows(ids) + self.low.rows(ids)


@dataclass(frozen=True, eq=False, repr=False)
class TokenMatrix:
    """The matrix of tokens [hidden_size, vocab_size], which is multiplied and looked up.

    The order of the nibbles isn't made for looking up, so the blocks of the file are kept beside it.

    Attributes
    ----------
    packed : FourBitMatrix or EightBitMatrix
        For the product.
    blocks : array of uint8 [vocab_size, row_bytes]
        As they lie in the file, for `rows`, which are exact.
    kind : str
        Of the blocks, a key of `PACKERS`.
    """

    packed: FourBitMatrix | EightBitMatrix
    blocks: UInt8[np.ndarray, "vocab_size row_bytes"]
    kind: str

    @property
    def shape(self) -> tuple[int, int]:
        """(hidden_size, vocab_size)."""
        return self.packed.shape

    @property
    def nbytes(self) -> int:
        """Bytes in memory, of both forms."""
        return self.packed.nbytes + self.blocks.nbytes

    def product(self, x: Float[Tensor, "*batch hidden_size"]) -> Float[Tensor, "*batch vocab_size"]:
        """x W, as `FourBitMatrix.product`."""
        return self.packed.product(x)

    def rows(self, ids: Int[Tensor, " seq"]) -> Float[Tensor, "seq hidden_size"]:
        """The vectors of some tokens, as float32 from their blocks."""
        return torch.from_numpy(dequantize(self.blocks[ids.numpy()], self.kind))


def kernels_usable() -> bool:
    """Whether this PyTorch has the operators; warns if it hasn't, or if they are slow on this processor."""
    if not all(hasattr(torch, name) for name in KERNELS):
        warnings.warn(
            f"PyTorch {torch.__version__} has no products with 4-bit weights (torch.{KERNELS[1]}), so the weights are "
            "held in float32 instead, which takes more memory and time, and rounds less; requirements.txt names a "
            "version that has them",
            stacklevel=3,
        )
        return False
    capability = torch.backends.cpu.get_cpu_capability()
    if capability not in ("AVX2", "AVX512"):
        warnings.warn(
            f"products with 4-bit weights are slow on this processor (PyTorch uses its {capability} code, not AVX2 or "
            'AVX-512): packed weights save memory here, but weights="float32" is faster',
            stacklevel=3,
        )
    return True


def pack(blocks: UInt8[np.ndarray, "rows row_bytes"], kind: str) -> FourBitMatrix | EightBitMatrix:
    """The matrix [in, out] whose output ``o`` is row ``o`` of the blocks.

    Parameters
    ----------
    blocks : array of uint8 [rows, row_bytes]
        Whole rows as they lie in the file; the number of rows is a multiple of `ROW_MULTIPLE`.
    kind : str
        A key of `PACKERS`.

    Raises
    ------
    ValueError
        If ``kind`` or the number of rows can't be packed, or a scale is NaN or infinite.
    """
    if kind not in PACKERS:
        raise ValueError(f"kind must be one of {', '.join(PACKERS)}, but is {kind!r}")
    if len(blocks) % ROW_MULTIPLE:
        raise ValueError(f"the number of rows must be a multiple of {ROW_MULTIPLE}, but is {len(blocks)}")
    return PACKERS[kind](np.ascontiguousarray(blocks).view(KINDS[kind].layout))


def pack_q4_1(blocks: np.ndarray) -> FourBitMatrix:
    """d q + m = (q - 8) d + (m + 8 d)."""
    d, m = blocks["d"].astype(np.float32), blocks["m"].astype(np.float32)
    return four_bit_matrix(_nibbles(blocks["q"]), d, m + 8 * d)


def pack_q4_0(blocks: np.ndarray) -> FourBitMatrix:
    """d (q - 8)."""
    d = blocks["d"].astype(np.float32)
    return four_bit_matrix(_nibbles(blocks["q"]), d, np.zeros_like(d))


def pack_q8_0(blocks: np.ndarray) -> EightBitMatrix:
    """d q with q = 16 high + low: high in [-8, 7] is kept as high + 8 with scale 16 d, low in [0, 15] with zero 8 d."""
    d, q = blocks["d"].astype(np.float32), blocks["q"]
    high = four_bit_matrix(((q >> 4) + 8).view(np.uint8), 16 * d, np.zeros_like(d))
    return EightBitMatrix(high, four_bit_matrix((q & 15).view(np.uint8), d, 8 * d))


PACKERS: dict[str, Callable[[np.ndarray], FourBitMatrix | EightBitMatrix]] = {
    "Q4_0": pack_q4_0,
    "Q4_1": pack_q4_1,
    "Q8_0": pack_q8_0,
}
"""The kinds of blocks that can stay packed."""


def four_bit_matrix(
    q: UInt8[np.ndarray, "rows groups 32"],
    scale: Float32[np.ndarray, "rows groups"],
    zero: Float32[np.ndarray, "rows groups"],
) -> FourBitMatrix:
    """Bring numbers of 4 bits into the operators' order, some rows at a time, and round scales and zeros to bfloat16.

    Raises
    ------
    ValueError
        If a scale or a zero is NaN or infinite.
    """
    if not (np.isfinite(scale).all() and np.isfinite(zero).all()):
        raise ValueError("a scale is NaN or infinite")
    rows, groups, _ = q.shape
    nibbles = torch.empty(rows, groups * GROUP // 2, dtype=torch.uint8)
    for start in range(0, rows, ROWS_AT_ONCE):
        some = torch.from_numpy(q[start : start + ROWS_AT_ONCE].reshape(-1, groups * GROUP).astype(np.int32))
        nibbles[start : start + ROWS_AT_ONCE] = torch._convert_weight_to_int4pack_for_cpu(some, 1)
    both = torch.from_numpy(np.stack((scale, zero), axis=-1)).bfloat16()
    return FourBitMatrix(nibbles, both.transpose(0, 1).contiguous())


def _nibbles(halves: UInt8[np.ndarray, "rows groups 16"]) -> UInt8[np.ndarray, "rows groups 32"]:
    """Low halves of the bytes are numbers 0 to 15 of a block, high halves 16 to 31."""
    return np.concatenate((halves & 15, halves >> 4), axis=-1)
