"""Models that tests run in milliseconds: random weights for any config, and models of sixteen tokens.

The sixteen tokens have letters, a space, the three bytes of the euro sign as three tokens, and two end tokens, so that
every path of `generate` can be walked.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from llm_internals.attention import AttentionWeights
from llm_internals.block import BlockWeights
from llm_internals.checkpoint import LanguageModel
from llm_internals.config import LlamaConfig
from llm_internals.feed_forward import FeedForwardWeights
from llm_internals.model import Weights
from llm_internals.tokenizer import Tokenizer

TOKENS = ("<end>", "<start>", "a", "b", "c", "d", "e", "Ġ", "â", "Ĥ", "¬", ".", "1", "2", "ab", "<stop>")
ID = {token: id for id, token in enumerate(TOKENS)}
EOS_IDS = frozenset({ID["<end>"], ID["<stop>"]})


def tiny_tokenizer() -> Tokenizer:
    """A tokenizer of `TOKENS`: one merge, three special tokens."""
    return Tokenizer.from_vocabulary(TOKENS, ["a b"], {ID["<end>"], ID["<start>"], ID["<stop>"]}, "gpt-2")


def random_weights(config: LlamaConfig, seed: int = 0, dtype: torch.dtype = torch.float32) -> Weights:
    """Random weights in the shapes of ``config``; the same numbers, rounded, in every dtype.

    Queries are drawn twice as large as the rest, so that attention isn't nearly flat: in a flat pattern a wrong head or
    a wrong position would go unnoticed.
    """
    generator = torch.Generator().manual_seed(seed)

    def matrix(inputs: int, outputs: int, scale: float = 1.0) -> Tensor:
        numbers = torch.randn(inputs, outputs, generator=generator, dtype=torch.float64)
        return (scale * inputs**-0.5 * numbers).to(dtype)

    def gain() -> Tensor:
        return (1 + 0.1 * torch.randn(config.hidden_size, generator=generator, dtype=torch.float64)).to(dtype)

    width, inner = config.hidden_size, config.intermediate_size
    q_width, kv_width = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    layers = tuple(
        BlockWeights(
            input_layernorm=gain(),
            self_attn=AttentionWeights(
                matrix(width, q_width, scale=2.0),
                matrix(width, kv_width),
                matrix(width, kv_width),
                matrix(q_width, width),
            ),
            post_attention_layernorm=gain(),
            mlp=FeedForwardWeights(matrix(width, inner), matrix(width, inner), matrix(inner, width)),
        )
        for _ in range(config.num_hidden_layers)
    )
    embed_tokens = matrix(width, config.vocab_size)
    lm_head = embed_tokens if config.tie_word_embeddings else matrix(width, config.vocab_size)
    return Weights(config, embed_tokens, layers, norm=gain(), lm_head=lm_head)


def random_language_model(seed: int = 0, context: int = 64) -> LanguageModel:
    """Two layers of random weights over `TOKENS`: whatever it says depends on every token before."""
    config = LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        rms_norm_eps=1e-5,
        rope_theta=1e4,
        max_position_embeddings=context,
        tie_word_embeddings=True,
    )
    return LanguageModel(config, random_weights(config, seed), tiny_tokenizer(), EOS_IDS)


def bigram_language_model(table: Tensor, context: int = 64) -> LanguageModel:
    """A model that knows one token back: the logits after token i are row i of ``table`` [16, 16].

    Each token's vector is one-hot, attention and feed-forward add nothing, and the gain of the final norm undoes the
    norm (the square root of 16 is exact), so that the output matrix is the table.
    """
    size = len(TOKENS)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=1,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=2,
        rms_norm_eps=1e-12,
        rope_theta=1e4,
        max_position_embeddings=context,
        tie_word_embeddings=False,
    )
    silent = BlockWeights(
        input_layernorm=torch.ones(size),
        self_attn=AttentionWeights(torch.ones(size, 2), torch.ones(size, 2), torch.ones(size, 2), torch.zeros(2, size)),
        post_attention_layernorm=torch.ones(size),
        mlp=FeedForwardWeights(torch.ones(size, 1), torch.ones(size, 1), torch.zeros(1, size)),
    )
    weights = Weights(config, torch.eye(size), (silent,), norm=torch.full((size,), size**-0.5), lm_head=table)
    return LanguageModel(config, weights, tiny_tokenizer(), EOS_IDS)


def chain_language_model(tokens: Sequence[str], context: int = 64) -> LanguageModel:
    """A model that says ``tokens`` one after the other: each is followed by the next, the last by the first."""
    table = torch.zeros(len(TOKENS), len(TOKENS))
    for token, following in zip(tokens, [*tokens[1:], tokens[0]], strict=True):
        table[ID[token], ID[following]] = 20.0
    return bigram_language_model(table, context)
