"""Stage 3: ids -> hidden states after the final norm: embedding, all blocks in a row, one last norm.

A call handles any number of new positions at once: a whole prompt (prefill), a part of one, or a single token (a
decode step); the cache carries what came before. Without a cache every position is computed anew, which is slow in a
loop and stays as the reference.

Leaves out the output matrix, which is a stage of its own (`logits`), and batches of several sequences.

Chapter: ``03_forward_pass``.
Source: Touvron et al. (2023), "LLaMA", section 2; transformers ``modeling_llama.py``, ``LlamaModel.forward``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from llm_internals.attention import causal_mask
from llm_internals.block import BlockWeights, block
from llm_internals.config import LlamaConfig
from llm_internals.embedding import embed
from llm_internals.kv_cache import KVCache, common_prefix
from llm_internals.linear import Matrix
from llm_internals.norm import rms_norm
from llm_internals.rope import rotation
from llm_internals.tap import Tap, prefixed, report

PREFILL_CHUNK = 256
"""Positions of a prompt that go through the model at once: it bounds the memory of the attention scores."""


@dataclass(frozen=True)
class Weights:
    """All weights of a model, with the config that says how to use them.

    ``embed_tokens`` and ``lm_head`` are stored [hidden_size, vocab_size]; where the model ties them, they are the same
    object.
    """

    config: LlamaConfig
    embed_tokens: Matrix
    layers: tuple[BlockWeights, ...]
    norm: Float[Tensor, " hidden_size"]
    lm_head: Matrix

    def __repr__(self) -> str:
        return f"Weights({len(self.layers)} layers, {self.config.hidden_size} wide, {self.config.vocab_size} tokens)"


def named_weights(weights: Weights) -> Iterator[tuple[str, Matrix]]:
    """Every weight once, under its name in the Hugging Face checkpoint; matrices are stored [in, out] here.

    A tied output matrix isn't named a second time.
    """
    yield "model.embed_tokens.weight", weights.embed_tokens
    for index, layer in enumerate(weights.layers):
        prefix = f"model.layers.{index}"
        yield f"{prefix}.input_layernorm.weight", layer.input_layernorm
        yield f"{prefix}.post_attention_layernorm.weight", layer.post_attention_layernorm
        for part in ("self_attn", "mlp"):
            matrices = getattr(layer, part)
            for field in fields(matrices):
                yield f"{prefix}.{part}.{field.name}.weight", getattr(matrices, field.name)
    yield "model.norm.weight", weights.norm
    if weights.lm_head is not weights.embed_tokens:
        yield "lm_head.weight", weights.lm_head


def forward(
    ids: Int[Tensor, " seq"], weights: Weights, cache: KVCache | None = None, tap: Tap | None = None
) -> Float[Tensor, "seq hidden_size"]:
    """One pass over the new positions, all at once.

    Parameters
    ----------
    ids : Tensor of int64 [seq]
        The new tokens; they stand at the positions behind those that the cache holds.
    weights : Weights
    cache : KVCache, optional
        Is read and filled; its length grows by seq, once, when all layers are done.
    tap : Tap, optional
        Is shown every intermediate result and may replace it; see `tap`.

    Returns
    -------
    Tensor [seq, hidden_size]
        Hidden states after the final norm, what `logits.lm_head` takes.

    Raises
    ------
    ValueError
        If ``ids`` is empty or holds an id out of range, if the positions exceed the cache or the context, or if the tap
        returns a tensor of another shape or dtype. The cache then holds what it held before.
    """
    config = weights.config
    start = 0 if cache is None else cache.length
    end = start + len(ids)
    check_room(start, end, config, cache)
    x = report(tap, "embed", embed(ids, weights.embed_tokens))
    turn = rotation(torch.arange(start, end), config.head_dim, config.rope_theta, dtype=x.dtype)
    mask = causal_mask(len(ids), end)
    for index, layer in enumerate(weights.layers):
        layer_cache = None if cache is None else cache.layer(index)
        x = block(x, layer, config, turn, mask, layer_cache, tap=prefixed(tap, f"blocks.{index}."))
    hidden = report(tap, "ln_final.normalized", rms_norm(x, weights.norm, config.rms_norm_eps))
    if cache is not None:
        cache.advance(ids.tolist())
    return hidden


def check_room(start: int, end: int, config: LlamaConfig, cache: KVCache | None) -> None:
    """Refuse a pass over positions [start, end) that is empty or that the context or the cache has no room for."""
    if start == end:
        raise ValueError("ids must hold at least one token, but is empty")
    if end > config.max_position_embeddings:
        raise ValueError(
            f"the context has {config.max_position_embeddings} positions, but {start} cached and {end - start} new "
            f"tokens need {end}: shorten the prompt"
        )
    if cache is not None and end > cache.capacity:
        raise ValueError(
            f"the cache has room for {cache.capacity} positions, but {start} held and {end - start} new tokens need "
            f"{end}: make one with KVCache.empty(config, capacity={end}) or more"
        )


@torch.inference_mode()  # the cache keeps no history of weights in training, and each small operation costs less
def prefill(
    prompt_ids: Sequence[int], weights: Weights, cache: KVCache, tap: Tap | None = None
) -> Float[Tensor, "1 hidden_size"]:
    """Bring the cache to hold the whole prompt, and return the hidden state of its last position.

    Positions at which the cache already holds the prompt's tokens are kept; the last one is always computed, since the
    first token of the response comes out of its hidden state. Long prompts go through in chunks, with the same result.
    """
    cache.truncate(min(common_prefix(cache.ids, prompt_ids), len(prompt_ids) - 1))
    for chunk in torch.tensor(prompt_ids[cache.length :]).split(PREFILL_CHUNK):
        hidden = forward(chunk, weights, cache, tap)
    return hidden[-1:]


@torch.inference_mode()
def decode_step(id: int, weights: Weights, cache: KVCache, tap: Tap | None = None) -> Float[Tensor, "1 hidden_size"]:
    """Send one token through the model, at the position behind the cache, and return its hidden state."""
    return forward(torch.tensor([id]), weights, cache, tap)
