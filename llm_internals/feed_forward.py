"""Stage 3: the feed-forward network, which works on each position by itself.

Two matrices widen the vector; one of the results, through SiLU, gates the other; a third matrix brings the product
back to the width of the stream. This is SwiGLU: three matrices, where the older form has two.

Chapter: ``03b_feed_forward``.
Source: Shazeer (2020), "GLU variants improve transformer", equation 6; transformers ``modeling_llama.py``,
``LlamaMLP``.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from llm_internals.linear import Matrix, linear
from llm_internals.tap import Tap, report


@dataclass(frozen=True)
class FeedForwardWeights:
    """The three matrices of one layer's feed-forward network, each stored [in, out]."""

    gate_proj: Matrix  # [hidden_size, intermediate_size]
    up_proj: Matrix  # [hidden_size, intermediate_size]
    down_proj: Matrix  # [intermediate_size, hidden_size]


def feed_forward(
    x: Float[Tensor, "seq hidden_size"], weights: FeedForwardWeights, tap: Tap | None = None
) -> Float[Tensor, "seq hidden_size"]:
    """(silu(x W_gate) * (x W_up)) W_down, with silu(a) = a / (1 + exp(-a)).

    The tap is shown pre (the gate before SiLU), pre_linear (what it gates) and post (their product).

    Examples
    --------
    >>> import torch
    >>> weights = FeedForwardWeights(gate_proj=torch.eye(1), up_proj=torch.eye(1) * 2, down_proj=torch.eye(1))
    >>> feed_forward(torch.tensor([[1.0]]), weights)
    tensor([[1.4621]])
    """
    gate = report(tap, "pre", linear(x, weights.gate_proj))
    up = report(tap, "pre_linear", linear(x, weights.up_proj))
    return linear(report(tap, "post", silu(gate) * up), weights.down_proj)
