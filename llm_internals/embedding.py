"""Stage 2: ids -> vectors, by looking up a row of the embedding matrix for each id.

Leaves out positions: in a Llama model they enter inside attention, as rotations (`rope`).
In SmolLM2 the matrix is tied: the same numbers turn the last hidden state into logits (`logits`).

Chapter: ``02_embedding_and_rope``.
Source: Bengio et al. (2003), "A neural probabilistic language model", section 2; Press and Wolf (2017), "Using the
output embedding to improve language models"; transformers ``modeling_llama.py``, ``LlamaModel.embed_tokens``.
"""

from jaxtyping import Float, Int
from torch import Tensor

from llm_internals.linear import Matrix, rows


def embed(ids: Int[Tensor, " seq"], embed_tokens: Matrix) -> Float[Tensor, "seq hidden_size"]:
    """x_i = E[id_i]: one vector a token, whatever stands around it.

    Parameters
    ----------
    ids : Tensor of int
        Token ids, each in [0, vocab_size).
    embed_tokens : Matrix
        Stored [hidden_size, vocab_size], so a token's vector is a column.

    Raises
    ------
    ValueError
        If an id is out of range; its position is named.

    Examples
    --------
    >>> import torch
    >>> embed(torch.tensor([1, 1]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [2., 4.]])
    """
    vocab_size = embed_tokens.shape[1]
    if ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < vocab_size):
        position = next(i for i, id in enumerate(ids.tolist()) if not 0 <= id < vocab_size)
        raise ValueError(f"ids must be in [0, {vocab_size}), but the id at index {position} is {int(ids[position])}")
    return rows(embed_tokens, ids)
