"""Stage 0: the hyperparameters of a Llama model, under the names of a Hugging Face ``config.json``.

Leaves out every key that no stage reads (initialisation, dropout, training precision).
Other architectures and scaled rotary embeddings are refused where a weights file is read, in `checkpoint`.

Chapter: ``03_forward_pass``.
Source: Touvron et al. (2023), "LLaMA", section 2.2; transformers ``models/llama/configuration_llama.py``.
"""

import math
from dataclasses import dataclass, fields
from typing import no_type_check


@no_type_check  # it checks itself, with errors that say what is allowed
@dataclass(frozen=True)
class LlamaConfig:
    """Everything that the shape of the computation depends on.

    Parameters
    ----------
    vocab_size : int
        Number of tokens, and so of logits.
    hidden_size : int
        Width of the residual stream (d_model).
    intermediate_size : int
        Width inside the feed-forward network.
    num_hidden_layers : int
        Number of blocks.
    num_attention_heads, num_key_value_heads : int
        Query heads, and the key/value heads that groups of them share.
    head_dim : int
        Width of one head; even, since RoPE rotates pairs.
    rms_norm_eps : float
        Added to the mean square before the root.
    rope_theta : float
        Base of the rotary frequencies.
    max_position_embeddings : int
        The context: positions 0 to this, exclusive.
    tie_word_embeddings : bool
        Whether the output matrix is the embedding matrix.

    Raises
    ------
    ValueError
        If a size isn't a positive integer, ``rms_norm_eps`` or ``rope_theta`` isn't a finite number above 0,
        ``tie_word_embeddings`` isn't a bool, the query heads can't be shared out evenly, or ``head_dim`` is odd.

    Examples
    --------
    >>> config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
    ...     num_attention_heads=9, num_key_value_heads=3, head_dim=64, rms_norm_eps=1e-5, rope_theta=1e5,
    ...     max_position_embeddings=8192, tie_word_embeddings=True)
    >>> config.queries_per_kv_head
    3
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    tie_word_embeddings: bool

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_bool = isinstance(value, bool)
            if field.type is int and (is_bool or not isinstance(value, int) or value < 1):
                raise ValueError(f"{field.name} must be an integer of at least 1, but is {value!r}")
            if field.type is float and (is_bool or not isinstance(value, int | float) or not 0 < value < math.inf):
                raise ValueError(f"{field.name} must be a finite number above 0, but is {value!r}")
            if field.type is bool and not is_bool:
                raise ValueError(f"{field.name} must be True or False, but is {value!r}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of num_key_value_heads "
                f"({self.num_key_value_heads}), since each key/value head serves the same number of query heads"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even, since RoPE rotates pairs of numbers, but is {self.head_dim}")

    @property
    def queries_per_kv_head(self) -> int:
        """How many query heads read the same keys and values."""
        return self.num_attention_heads // self.num_key_value_heads
