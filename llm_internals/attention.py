"""Stage 3: causal self-attention, the only place where positions exchange information.

Each position makes a query, a key and a value. It scores its query against the keys of itself and of earlier
positions, turns the scores into weights that sum to 1, and takes that weighted mean of their values.
Several query heads share one key/value head (grouped-query attention).

Leaves out fused kernels: scores, mask, softmax and sum are written out, so that what a tap sees is what runs.

Chapter: ``03a_attention``.
Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.1, equation 1; Ainslie et al. (2023), "GQA",
section 2.2; transformers ``modeling_llama.py``, ``LlamaAttention`` and ``eager_attention_forward``.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from llm_internals.kv_cache import LayerCache
from llm_internals.linear import Matrix, linear
from llm_internals.rope import Rotation, rotate
from llm_internals.tap import Tap, report


@dataclass(frozen=True)
class AttentionWeights:
    """The four matrices of one layer's attention, each stored [in, out]."""

    q_proj: Matrix  # [hidden_size, heads * head_dim]
    k_proj: Matrix  # [hidden_size, kv_heads * head_dim]
    v_proj: Matrix  # [hidden_size, kv_heads * head_dim]
    o_proj: Matrix  # [heads * head_dim, hidden_size]


def causal_mask(seq: int, kv_seq: int) -> Bool[Tensor, "seq kv_seq"]:
    """True where a query may look: at itself and at everything before.

    The ``seq`` queries are the last of ``kv_seq`` positions, so the diagonal ends in the bottom right corner. Aligned
    at the top left instead, a decode step would see nothing but the first token.

    Examples
    --------
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(seq, kv_seq, dtype=torch.bool).tril(diagonal=kv_seq - seq)


def split_heads(x: Float[Tensor, "seq width"], head_dim: int) -> Float[Tensor, "heads seq head_dim"]:
    """Cut the width into heads, and put the heads first.

    Examples
    --------
    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), head_dim=2).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    return x.unflatten(-1, (-1, head_dim)).transpose(0, 1)


def merge_heads(x: Float[Tensor, "heads seq head_dim"]) -> Float[Tensor, "seq width"]:
    """The inverse of `split_heads`."""
    return x.transpose(0, 1).flatten(start_dim=1)


def attention_scores(
    q: Float[Tensor, "heads seq head_dim"], k: Float[Tensor, "kv_heads kv_seq head_dim"]
) -> Float[Tensor, "heads seq kv_seq"]:
    """q k^T / sqrt(head_dim), query head h against key head h // (heads / kv_heads).

    The query heads of a group stand one after the other, so the group's scores are a single product with its keys.

    Examples
    --------
    >>> q = torch.tensor([[[2.0, 0.0, 0.0, 0.0]], [[0.0, 2.0, 0.0, 0.0]]])  # two heads, one query each
    >>> k = torch.tensor([[[3.0, 1.0, 0.0, 0.0], [5.0, 2.0, 0.0, 0.0]]])    # one shared head, two keys
    >>> attention_scores(q, k)
    tensor([[[3., 5.]],
    <BLANKLINE>
            [[1., 2.]]])
    """
    heads, seq, head_dim = q.shape
    scaled = q / math.sqrt(head_dim)  # the queries rather than the scores, of which there are more
    by_group = scaled.reshape(k.shape[0], -1, head_dim)  # [kv_heads, queries_per_kv_head * seq, head_dim]
    return (by_group @ k.transpose(1, 2)).view(heads, seq, -1)


def weighted_values(
    pattern: Float[Tensor, "heads seq kv_seq"], v: Float[Tensor, "kv_heads kv_seq head_dim"]
) -> Float[Tensor, "heads seq head_dim"]:
    """The mean of the values under each row of the pattern, with the same sharing of heads as the scores.

    Examples
    --------
    >>> weighted_values(torch.tensor([[[0.25, 0.75]]]), torch.tensor([[[0.0], [4.0]]])).tolist()
    [[[3.0]]]
    """
    heads, seq, kv_seq = pattern.shape
    by_group = pattern.reshape(v.shape[0], -1, kv_seq)
    return (by_group @ v).view(heads, seq, -1)


def attention(
    x: Float[Tensor, "seq hidden_size"],
    weights: AttentionWeights,
    head_dim: int,
    rotation: Rotation,
    mask: Bool[Tensor, "seq kv_seq"],
    cache: LayerCache | None = None,
    tap: Tap | None = None,
) -> Float[Tensor, "seq hidden_size"]:
    """softmax(q k^T / sqrt(head_dim) + mask) v, for every head at once, then the output matrix.

    Parameters
    ----------
    x : Tensor [seq, hidden_size]
        The normed residual stream at the new positions.
    rotation : Rotation
        Of the new positions; keys are kept rotated.
    mask : Tensor of bool [seq, kv_seq]
        `causal_mask`; kv_seq counts the cached positions and the new ones.
    cache : LayerCache, optional
        Holds the earlier positions and takes in the new ones; None if there are no earlier ones.
    tap : Tap, optional
        Is shown q, k, v, rot_q, rot_k, attn_scores (masked), pattern and z.
    """
    q = report(tap, "q", split_heads(linear(x, weights.q_proj), head_dim))
    k = report(tap, "k", split_heads(linear(x, weights.k_proj), head_dim))
    v = report(tap, "v", split_heads(linear(x, weights.v_proj), head_dim))
    q = report(tap, "rot_q", rotate(q, rotation))
    k = report(tap, "rot_k", rotate(k, rotation))
    if cache is not None:
        k, v = cache.append(k, v)
    scores = report(tap, "attn_scores", torch.where(mask, attention_scores(q, k), -math.inf))
    pattern = report(tap, "pattern", scores.softmax(dim=-1))
    z = report(tap, "z", weighted_values(pattern, v))
    return linear(merge_heads(z), weights.o_proj)
