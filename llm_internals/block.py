"""Stage 3: one block: attention, then feed-forward, each reading a normed copy of the residual stream and adding to it.

Norm comes before each sub-layer (pre-norm): the stream itself is never normed inside the model, so every layer's
contribution is a term of one sum.

Chapter: ``03_forward_pass``.
Source: Touvron et al. (2023), "LLaMA", section 2.2; Xiong et al. (2020), "On layer normalization in the transformer
architecture", figure 1b; transformers ``modeling_llama.py``, ``LlamaDecoderLayer``.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from llm_internals.attention import AttentionWeights, attention
from llm_internals.config import LlamaConfig
from llm_internals.feed_forward import FeedForwardWeights, feed_forward
from llm_internals.kv_cache import LayerCache
from llm_internals.norm import rms_norm
from llm_internals.rope import Rotation
from llm_internals.tap import Tap, prefixed, report


@dataclass(frozen=True)
class BlockWeights:
    """The weights of one block, under the names of the Hugging Face checkpoint."""

    input_layernorm: Float[Tensor, " hidden_size"]
    self_attn: AttentionWeights
    post_attention_layernorm: Float[Tensor, " hidden_size"]
    mlp: FeedForwardWeights


def block(
    x: Float[Tensor, "seq hidden_size"],
    weights: BlockWeights,
    config: LlamaConfig,
    rotation: Rotation,
    mask: Bool[Tensor, "seq kv_seq"],
    cache: LayerCache | None = None,
    tap: Tap | None = None,
) -> Float[Tensor, "seq hidden_size"]:
    """x += attention(norm(x)); x += feed_forward(norm(x)).

    The tap is shown resid_pre, ln1.normalized, attn.*, attn_out, resid_mid, ln2.normalized, mlp.*, mlp_out and
    resid_post. Arguments are those of `attention`.
    """
    x = report(tap, "resid_pre", x)
    normed = report(tap, "ln1.normalized", rms_norm(x, weights.input_layernorm, config.rms_norm_eps))
    attended = attention(normed, weights.self_attn, config.head_dim, rotation, mask, cache, tap=prefixed(tap, "attn."))
    x = report(tap, "resid_mid", x + report(tap, "attn_out", attended))
    normed = report(tap, "ln2.normalized", rms_norm(x, weights.post_attention_layernorm, config.rms_norm_eps))
    worked_out = feed_forward(normed, weights.mlp, tap=prefixed(tap, "mlp."))
    return report(tap, "resid_post", x + report(tap, "mlp_out", worked_out))
