"""Stage 3: RMSNorm, which brings each vector to the same size before a sub-layer reads it.

It divides by the root of the mean square and multiplies by a learned gain a dimension.
LayerNorm would also subtract the mean and add a bias; Llama models do neither.

Chapter: ``03_forward_pass``.
Source: Zhang and Sennrich (2019), "Root mean square layer normalization", equation 4; transformers
``modeling_llama.py``, ``LlamaRMSNorm``.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def rms_norm(
    x: Float[Tensor, "*batch hidden_size"], weight: Float[Tensor, " hidden_size"], eps: float
) -> Float[Tensor, "*batch hidden_size"]:
    """y = x / sqrt(mean(x**2) + eps) * weight, over the last axis; eps stands inside the root.

    Examples
    --------
    >>> rms_norm(torch.tensor([3.0, 4.0]), torch.ones(2), eps=0.0)
    tensor([0.8485, 1.1314])
    """
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return x * torch.rsqrt(mean_square + eps) * weight
