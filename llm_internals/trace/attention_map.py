"""Stage 8: the attention of one position, every layer and head -> a few kilobytes.

A response of 10 tokens after a prompt of 40 has 30 x 9 x 45 weights a step, a million digits as text. But most are next
to nothing, and nobody sees a difference of a thousandth. So a weight becomes one of 256 levels, and the levels are
compressed, which takes care of the zeros.

The rounding is at most half a level, `WEIGHT_ERROR`. In a long sequence many weights below it become 0, and then a
row's levels add up to less than 1: what a head spreads evenly over hundreds of tokens is lost, what it looks at is
kept.

Leaves out the attention of earlier positions, which earlier steps have recorded or which belongs to the prompt.

Chapter: ``00_one_response``, ``03a_attention``.
Source: RFC 1950, "ZLIB compressed data format specification"; the page unpacks it with the browser's
``DecompressionStream("deflate")``.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from llm_internals.trace.checked_json import TraceError, Value

LEVELS = 255
"""A weight of 1; a weight of 0 is level 0."""
WEIGHT_ERROR = 0.5 / LEVELS
"""How far a recorded weight may be from the one that was computed: half a level, 0.002."""
MAX_WEIGHTS = 2**27
"""Weights of one step that a file may hold: a small file may unpack to a large one, so there has to be a limit."""


@dataclass(frozen=True)
class AttentionMap:
    """How much the last position looks at each position, itself included.

    Parameters
    ----------
    layers, heads, kv_seq : int
        The shape.
    packed : bytes
        The levels, row by row, compressed.

    Examples
    --------
    >>> seen = AttentionMap.of(np.array([[[0.75, 0.25], [0.001, 0.999]]], dtype=np.float32))
    >>> seen.weights().round(2).tolist()
    [[[0.75, 0.25], [0.0, 1.0]]]
    """

    layers: int
    heads: int
    kv_seq: int
    packed: bytes

    @classmethod
    def of(cls, weights: Float[np.ndarray, "layers heads kv_seq"]) -> "AttentionMap":
        """Round and compress weights in [0, 1]."""
        levels = np.rint(weights * LEVELS).astype(np.uint8)
        return cls(*weights.shape, packed=zlib.compress(levels.tobytes(), level=9))

    def levels(self) -> UInt8[np.ndarray, "layers heads kv_seq"]:
        """The weights as whole numbers from 0 to `LEVELS`."""
        flat = np.frombuffer(zlib.decompress(self.packed), dtype=np.uint8)
        return flat.reshape(self.layers, self.heads, self.kv_seq)

    def weights(self) -> Float[np.ndarray, "layers heads kv_seq"]:
        """The weights, each within `WEIGHT_ERROR` of the computed one."""
        return self.levels().astype(np.float32) / LEVELS

    def to_json(self) -> str:
        """The compressed levels in base64. The shape isn't repeated: it follows from the config and the position."""
        return base64.b64encode(self.packed).decode("ascii")

    @classmethod
    def from_json(cls, value: Value, layers: int, heads: int, kv_seq: int) -> "AttentionMap":
        """Check that the text unpacks to the right number of levels, and to no more."""
        expected = layers * heads * kv_seq
        if expected > MAX_WEIGHTS:
            raise TraceError(f"{value.key} must hold at most {MAX_WEIGHTS} weights, but has {expected}")
        try:
            packed = base64.b64decode(value.text(), validate=True)
            stream = zlib.decompressobj()
            levels = stream.decompress(packed, expected + 1)
        except (ValueError, zlib.error) as error:
            raise TraceError(f"{value.key} must be zlib data in base64, but can't be read: {error}") from error
        if len(levels) != expected or not stream.eof or stream.unused_data:
            raise TraceError(f"{value.key} must unpack to {expected} bytes (layers x heads x positions), but does not")
        return cls(layers, heads, kv_seq, packed)
