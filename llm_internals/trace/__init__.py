"""Stage 8: a whole response recorded: every token, every stage, every layer, to look at without the model.

`trace` generates a response and keeps what is worth seeing; the `Trace` can be saved as a small JSON file, loaded where
there is no model, and turned into one page that opens from disk.

    recorded = trace(lm, "The capital of Australia is", SamplingParams(temperature=0.7, seed=7), max_tokens=5)
    recorded.save("australia.json")
    Trace.load("australia.json").to_html()

`recording` watches the loop, `steps` and `response` say what is kept, `attention_map` makes the largest part small,
`checked_json` reads files that nobody vouches for, `atomic_write` writes them whole, `page` makes the page.

Chapter: ``00_one_response``.
Source: TransformerLens ``ActivationCache.py``, which keeps the activations of one pass.
"""

from llm_internals.trace.attention_map import WEIGHT_ERROR, AttentionMap
from llm_internals.trace.checked_json import TraceError
from llm_internals.trace.recording import trace
from llm_internals.trace.response import VERSION, Trace
from llm_internals.trace.steps import LensLayer, OperatorStep, TracedStep

__all__ = [
    "VERSION",
    "WEIGHT_ERROR",
    "AttentionMap",
    "LensLayer",
    "OperatorStep",
    "Trace",
    "TraceError",
    "TracedStep",
    "trace",
]
