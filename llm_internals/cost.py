"""Stage 3: a config -> what a pass through the model costs, in multiplications and in bytes, before anything runs.

Both are exact. A matrix product of [n, in] by [in, out] takes n * in * out multiplications, each with one addition, so
that the number of floating-point operations is twice as large. Bytes are those of the weights, which every pass reads
once, and of the keys and values, which it reads up to its last position.

Leaves out what is no matrix product (norms, rotations, softmax, sums), some per mille of the whole; and what the clock
depends on besides, which is the machine.

Chapter: ``07_generation_loop``, ``11_four_bits``.
Source: Kaplan et al. (2020), "Scaling laws for neural language models", section 2.1, table 1; Pope et al. (2022),
"Efficiently scaling transformer inference", section 2; PyTorch ``torch/utils/flop_counter.py``, which counts the same
products while they run.
"""

from dataclasses import dataclass

from llm_internals.config import LlamaConfig

FLOAT32_BITS = 32


@dataclass(frozen=True)
class Multiplications:
    """How many multiplications a pass takes, by part.

    Attributes
    ----------
    projections : int
        Products with the weights of the blocks: as many for each new position, wherever it stands.
    attention : int
        Queries with keys, and patterns with values: they grow with the positions that are looked at.
    output : int
        Hidden states with the output matrix, for the positions that are scored.
    """

    projections: int
    attention: int
    output: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.projections + self.attention + self.output

    def __add__(self, other: "Multiplications") -> "Multiplications":
        """Of two passes together."""
        return Multiplications(
            self.projections + other.projections, self.attention + other.attention, self.output + other.output
        )


def multiplications(config: LlamaConfig, seq: int = 1, *, cached: int = 0, scored: int = 1) -> Multiplications:
    """What `model.forward` and `logits.lm_head` multiply in one pass; without arguments, at the first position.

    Attention compares every new position with every position, the masked ones included, as the code does:
    2 * layers * heads * head_dim * seq * (cached + seq).

    Parameters
    ----------
    config : LlamaConfig
    seq : int
        New positions, at least 1.
    cached : int
        Positions whose keys and values are in the cache.
    scored : int
        Of how many positions the logits are computed; generation needs the last one alone.

    Raises
    ------
    ValueError
        If ``seq`` is below 1, ``cached`` or ``scored`` is below 0, ``scored`` is above ``seq``, or the positions exceed
        the context.

    Examples
    --------
    >>> config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
    ...     num_attention_heads=9, num_key_value_heads=3, head_dim=64, rms_norm_eps=1e-5, rope_theta=1e5,
    ...     max_position_embeddings=8192, tie_word_embeddings=True)
    >>> multiplications(config, cached=999)
    Multiplications(projections=106168320, attention=34560000, output=28311552)
    """
    _check_pass(config, seq, cached, scored)
    return Multiplications(
        projections=seq * block_numbers(config),
        attention=seq * (cached + seq) * attention_slope(config),
        output=scored * output_numbers(config),
    )


def _check_pass(config: LlamaConfig, seq: int, cached: int, scored: int) -> None:
    """Refuse a pass that can't be."""
    if seq < 1:
        raise ValueError(f"seq must be at least 1, but is {seq}")
    if cached < 0 or cached + seq > config.max_position_embeddings:
        raise ValueError(
            f"cached must be at least 0, and cached + seq at most the context, {config.max_position_embeddings}, "
            f"but cached is {cached} and seq is {seq}"
        )
    if not 0 <= scored <= seq:
        raise ValueError(f"scored must be in [0, {seq}], the new positions, but is {scored}")


def block_numbers(config: LlamaConfig) -> int:
    """How many numbers the matrices of all blocks hold: each is multiplied once for each position."""
    q_width, kv_width = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    attention = 2 * config.hidden_size * (q_width + kv_width)  # q and o, k and v
    feed_forward = 3 * config.hidden_size * config.intermediate_size
    return config.num_hidden_layers * (attention + feed_forward)


def output_numbers(config: LlamaConfig) -> int:
    """How many numbers the output matrix holds."""
    return config.hidden_size * config.vocab_size


def attention_slope(config: LlamaConfig) -> int:
    """Multiplications that one position of context adds to a decode step: its key and its value, in every head."""
    return 2 * config.num_hidden_layers * config.num_attention_heads * config.head_dim


def weight_bytes(
    config: LlamaConfig, *, block_bits: int | float = FLOAT32_BITS, output_bits: int | float = FLOAT32_BITS
) -> int:
    """Bytes of all weights that a pass reads: the matrices of the blocks, the output matrix, and the norms in float32.

    A decode step reads each of them once. So does the pass over a prompt, however long, and that is why a prompt costs
    less for each token. A table of embeddings that isn't tied to the output isn't counted: a step reads one row of it.

    Parameters
    ----------
    config : LlamaConfig
    block_bits, output_bits : float
        Bits a number in the matrices of the blocks and in the output matrix: 32 in float32; 5 in Q4_1 and 8.5 in Q8_0,
        as in the file of this model.

    Raises
    ------
    ValueError
        If a number of bits isn't above 0.
    """
    for name, bits in (("block_bits", block_bits), ("output_bits", output_bits)):
        if not bits > 0:
            raise ValueError(f"{name} must be above 0, but is {bits}")
    norms = (2 * config.num_hidden_layers + 1) * config.hidden_size
    bits = block_numbers(config) * block_bits + output_numbers(config) * output_bits + norms * FLOAT32_BITS
    return round(bits / 8)


def kv_bytes(config: LlamaConfig, *, bits: int | float = FLOAT32_BITS) -> int:
    """Bytes that one position of context adds to the cache, and to what every later step reads.

    Raises
    ------
    ValueError
        If ``bits`` isn't above 0.

    Examples
    --------
    >>> config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
    ...     num_attention_heads=9, num_key_value_heads=3, head_dim=64, rms_norm_eps=1e-5, rope_theta=1e5,
    ...     max_position_embeddings=8192, tie_word_embeddings=True)
    >>> kv_bytes(config)
    46080
    """
    if not bits > 0:
        raise ValueError(f"bits must be above 0, but is {bits}")
    return round(2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * bits / 8)
