"""Stage 0: a weight matrix, with one product and one row look-up.

A float32 matrix is a plain tensor [in, out], so that the product reads ``x @ weight``; PyTorch's ``nn.Linear`` has
[out, in]. For the single row of a decode step the product is fastest if the longer axis is contiguous in memory, as
`checkpoint` lays it.
Any other kind of weight is an object with ``shape``, ``product`` and ``rows``: no stage knows which kind it got.

Chapter: ``03b_feed_forward``; the packed kind, ``11_four_bits``.
Source: Vaswani et al. (2017), "Attention is all you need", section 3.3; PyTorch ``torch/nn/modules/linear.py``.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class PackedMatrix(Protocol):
    """What a weight matrix that isn't a plain tensor has to offer."""

    @property
    def shape(self) -> tuple[int, int]:
        """(in, out)."""

    def product(self, x: Tensor) -> Tensor:
        """What `linear` returns."""

    def rows(self, ids: Tensor) -> Tensor:
        """What `rows` returns."""


Matrix = Tensor | PackedMatrix


def linear(x: Float[Tensor, "*batch in_features"], weight: Matrix) -> Float[Tensor, "*batch out_features"]:
    """y = x W, without a bias: the one kind of matrix product with learned weights in a Llama model.

    Examples
    --------
    >>> import torch
    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]]))
    tensor([[ 1.,  2., 15.]])
    """
    if isinstance(weight, Tensor):
        return x @ weight
    return weight.product(x)


def rows(weight: Matrix, ids: Int[Tensor, " seq"]) -> Float[Tensor, "seq in_features"]:
    """The vectors of some outputs: row ``id`` of the transposed matrix, for each id.

    For the output matrix [hidden_size, vocab_size] these are the vectors of tokens, since the embedding is the same
    matrix (or one stored in the same order).

    Examples
    --------
    >>> import torch
    >>> rows(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([2, 0]))
    tensor([[3., 6.],
            [1., 4.]])
    """
    if isinstance(weight, Tensor):
        return weight.index_select(1, ids).t().contiguous()
    return weight.rows(ids)
