"""Stage 2: positions -> rotations of queries and keys.

RoPE turns each pair of numbers of a head by an angle proportional to the position: fast for the first pairs, slowly for
the last. A product of a rotated query and a rotated key then depends on the distance of their positions alone.
The pairing is the half-split one of Hugging Face checkpoints: number i is paired with number i + head_dim / 2.
GGUF files store q and k with their rows permuted for the other pairing (2i with 2i + 1); `checkpoint` undoes that.

Leaves out every scaling of the angles for longer contexts; `checkpoint` refuses files that ask for one.

Chapter: ``02_embedding_and_rope``.
Source: Su et al. (2021), "RoFormer", section 3.2.2, equations 14-16 and 34; transformers ``modeling_llama.py``,
``apply_rotary_pos_emb``.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Rotation(NamedTuple):
    """Cosine and sine of the angle of each position (row) and each pair (column)."""

    cos: Float[Tensor, "seq pairs"]
    sin: Float[Tensor, "seq pairs"]


def rope_frequencies(head_dim: int, theta: float) -> Float[Tensor, " pairs"]:
    """omega_i = theta ** (-2 i / head_dim), in radians a position, for i in [0, head_dim / 2); float64.

    Examples
    --------
    >>> rope_frequencies(4, 100.0)
    tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return theta ** (-2 * pair / head_dim)


def rotation(
    positions: Int[Tensor, " seq"], head_dim: int, theta: float, dtype: torch.dtype = torch.float32
) -> Rotation:
    """cos(m omega_i) and sin(m omega_i) for each position m.

    The angles are computed in float64: bfloat16 can't tell all integers above 256 apart, and would take position 4,095
    for 4,096, a whole radian off in the first pair. Only cosine and sine are rounded to ``dtype``.

    Examples
    --------
    >>> rotation(torch.tensor([0, 1]), 2, 1e4).cos
    tensor([[1.0000],
            [0.5403]])
    """
    angles = torch.outer(positions.to(torch.float64), rope_frequencies(head_dim, theta))
    return Rotation(angles.cos().to(dtype), angles.sin().to(dtype))


def rotate(x: Float[Tensor, "heads seq head_dim"], by: Rotation) -> Float[Tensor, "heads seq head_dim"]:
    """(a, b) -> (a cos - b sin, b cos + a sin) for each pair (x_i, x_{i + head_dim/2}); lengths stay the same.

    Examples
    --------
    >>> quarter_turn = Rotation(cos=torch.tensor([[0.0]]), sin=torch.tensor([[1.0]]))
    >>> rotate(torch.tensor([[[3.0, 4.0]]]), quarter_turn)
    tensor([[[-4.,  3.]]])
    """
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * by.cos - b * by.sin, b * by.cos + a * by.sin), dim=-1)
