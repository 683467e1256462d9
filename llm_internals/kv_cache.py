"""Stage 3: the KV cache, which keeps every layer's keys and values so that no position is computed twice.

What is kept: keys after their rotation, and values, of all positions so far. Queries aren't: position n's query is
used once, by position n.
The cache also keeps the token ids it was filled with, so that a caller can find out how much of a new prompt is
already there.

Leaves out paging, eviction and compression: memory is one block, allocated at the start.

Chapter: ``03c_kv_cache``.
Source: Shazeer (2019), "Fast transformer decoding", section 2.4; Pope et al. (2022), "Efficiently scaling transformer
inference", section 2.1; transformers ``cache_utils.py``, ``StaticCache``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from llm_internals.config import LlamaConfig


@dataclass(frozen=True)
class LayerCache:
    """One layer's part of the cache, as a view: writing to it fills the whole."""

    keys: Float[Tensor, "kv_heads capacity head_dim"]
    values: Float[Tensor, "kv_heads capacity head_dim"]
    start: int

    def append(
        self, keys: Float[Tensor, "kv_heads seq head_dim"], values: Float[Tensor, "kv_heads seq head_dim"]
    ) -> tuple[Float[Tensor, "kv_heads kv_seq head_dim"], Float[Tensor, "kv_heads kv_seq head_dim"]]:
        """Write behind what is there, and return the keys and values of all positions, old and new."""
        end = self.start + keys.shape[1]
        self.keys[:, self.start : end] = keys
        self.values[:, self.start : end] = values
        return self.keys[:, :end], self.values[:, :end]


@dataclass(eq=False)
class KVCache:
    """Keys and values of the positions 0 to ``length``, for every layer.

    Attributes
    ----------
    keys, values : Tensor [layers, kv_heads, capacity, head_dim]
        Rows from ``length`` on are free, and hold whatever the memory held.
    ids : list of int
        The token at each position that is filled.

    Examples
    --------
    >>> config = LlamaConfig(vocab_size=8, hidden_size=4, intermediate_size=8, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, head_dim=2, rms_norm_eps=1e-5, rope_theta=1e4,
    ...     max_position_embeddings=16, tie_word_embeddings=True)
    >>> cache = KVCache.empty(config, capacity=10)
    >>> cache.length, cache.capacity, cache.nbytes
    (0, 10, 320)
    """

    keys: Float[Tensor, "layers kv_heads capacity head_dim"]
    values: Float[Tensor, "layers kv_heads capacity head_dim"]
    ids: list[int] = field(default_factory=list)

    @classmethod
    def empty(cls, config: LlamaConfig, capacity: int, dtype: torch.dtype = torch.float32) -> "KVCache":
        """Room for ``capacity`` positions: 2 x layers x kv heads x head_dim x 4 bytes each in float32.

        Raises
        ------
        ValueError
            If ``capacity`` isn't in [1, max_position_embeddings].
        """
        if not 1 <= capacity <= config.max_position_embeddings:
            raise ValueError(
                f"capacity must be in [1, {config.max_position_embeddings}], the context, but is {capacity}"
            )
        shape = (config.num_hidden_layers, config.num_key_value_heads, capacity, config.head_dim)
        return cls(torch.empty(shape, dtype=dtype), torch.empty(shape, dtype=dtype))

    @property
    def length(self) -> int:
        """Number of positions that are filled."""
        return len(self.ids)

    @property
    def capacity(self) -> int:
        """Number of positions that there is room for."""
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes that keys and values take, filled or not."""
        return self.keys.nbytes + self.values.nbytes

    def layer(self, index: int) -> LayerCache:
        """The part of one layer; it goes on where the cache ends now."""
        return LayerCache(self.keys[index], self.values[index], self.length)

    def advance(self, ids: list[int]) -> None:
        """Count the positions that every layer has written by now: once a forward pass, at its end.

        A pass that fails before leaves the cache with what it held, since what it wrote isn't counted.
        """
        self.ids.extend(ids)

    def truncate(self, length: int) -> None:
        """Forget the positions from ``length`` on.

        Raises
        ------
        ValueError
            If ``length`` isn't in [0, the length now].
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"length must be in [0, {self.length}], what the cache holds, but is {length}")
        del self.ids[length:]


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """At how many positions from the start two sequences hold the same ids.

    Examples
    --------
    >>> common_prefix([5, 6, 7], [5, 6, 8, 9])
    2
    """
    for length, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return length
    return min(len(a), len(b))
