"""The data of the interactive attention map of chapter 03a: all weights of all heads on three short texts.

``tools.book_data`` writes them; ``tests/test_attention_map.py`` computes them anew and compares.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from llm_internals import model
from llm_internals.checkpoint import LanguageModel
from llm_internals.exercises.attention import TWELVE_WORDS
from llm_internals.figures.labels import visible
from llm_internals.tap import Recorder
from llm_internals.trace.attention_map import AttentionMap
from llm_internals.trace.checked_json import Value

PROMPTS = {
    "The capital of Australia is": "The capital of Australia is",
    "When Mary and John went to the store, John gave a drink to": (
        "When Mary and John went to the store, John gave a drink to"
    ),
    "twelve words, twice": TWELVE_WORDS * 2,
}
"""What the reader can choose: a label, and the text behind it."""
PLACES = [
    ("the look that finds Australia", "The capital of Australia is", 23, 4, 4),
    ("one token back", "twelve words, twice", 16, 0, 20),
    ("after the last time", "twelve words, twice", 18, 6, 20),
    ("the same word before", "twelve words, twice", 14, 3, 20),
    ("the first token", "twelve words, twice", 18, 8, 20),
    ("who isn't John", "When Mary and John went to the store, John gave a drink to", 24, 4, 13),
]
"""Where buttons lead to: a name, a label of a text, block, head, and the position that looks."""
ONE_LEVEL = 1
"""How far a stored level may be off: a weight on the edge between two goes to either, by the CPU."""


def patterns(lm: LanguageModel, text: str) -> Float[np.ndarray, "layers heads seq seq"]:
    """The attention pattern of every head on a text."""
    recorder = Recorder("*.attn.pattern")
    model.forward(torch.tensor(lm.tokenizer.encode(text)), lm.weights, tap=recorder)
    return torch.stack(list(recorder.tensors.values())).numpy()


def lower_triangles(weights: Float[np.ndarray, "layers heads seq seq"]) -> Float[np.ndarray, "layers heads links"]:
    """What the mask leaves of each pattern, row by row: position i's weights of 0 to i."""
    readers, seen = np.tril_indices(weights.shape[-1])
    return weights[:, :, readers, seen]


def attention_map(lm: LanguageModel) -> dict[str, Any]:
    """What the component ``attention_map`` needs, as plain JSON."""
    prompts = [
        {
            "name": name,
            "tokens": [visible(lm.tokenizer.token_bytes(id)) for id in lm.tokenizer.encode(text)],
            "weights": AttentionMap.of(lower_triangles(patterns(lm, text))).to_json(),
        }
        for name, text in PROMPTS.items()
    ]
    keys = ("name", "prompt", "layer", "head", "token")
    return {
        "layers": lm.config.num_hidden_layers,
        "heads": lm.config.num_attention_heads,
        "kv_heads": lm.config.num_key_value_heads,
        "prompts": prompts,
        "places": [dict(zip(keys, place, strict=True)) for place in PLACES],
    }


def levels(stored: dict[str, Any], index: int) -> Float[np.ndarray, "layers heads links"]:
    """The weights of one of the stored texts, in levels from 0 to 255."""
    prompt = stored["prompts"][index]
    size = len(prompt["tokens"])
    packed = Value(f"prompts[{index}].weights", prompt["weights"])
    shape = stored["layers"], stored["heads"], size * (size + 1) // 2
    return AttentionMap.from_json(packed, *shape).levels().astype(np.float32)


def without_weights(data: dict[str, Any]) -> dict[str, Any]:
    """Everything but the weights."""
    return data | {"prompts": [(prompt["name"], prompt["tokens"]) for prompt in data["prompts"]]}


def same_weights(stored: dict[str, Any], computed: dict[str, Any]) -> bool:
    """Whether two sets of data say the same, up to one level of a weight."""
    if without_weights(stored) != without_weights(computed):
        return False
    apart = [np.abs(levels(stored, index) - levels(computed, index)).max() for index in range(len(stored["prompts"]))]
    return max(apart) <= ONE_LEVEL
