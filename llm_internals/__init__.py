"""What happens inside an LLM between the prompt string and each output token: one module a stage.

>>> import llm_internals
>>> llm_internals.attention.causal_mask(2, 2).tolist()
[[True, False], [True, True]]
"""

from llm_internals import (
    attention,
    beam_search,
    block,
    chat,
    checkpoint,
    config,
    detokenizer,
    embedding,
    feed_forward,
    generate,
    gguf,
    kv_cache,
    linear,
    logits,
    model,
    norm,
    processors,
    rope,
    sampling,
    tap,
    tokenizer,
    trace,
)
from llm_internals.checkpoint import load_checkpoint

__all__ = [
    "attention",
    "beam_search",
    "block",
    "chat",
    "checkpoint",
    "config",
    "detokenizer",
    "embedding",
    "feed_forward",
    "generate",
    "gguf",
    "kv_cache",
    "linear",
    "load_checkpoint",
    "logits",
    "model",
    "norm",
    "processors",
    "rope",
    "sampling",
    "tap",
    "tokenizer",
    "trace",
]
