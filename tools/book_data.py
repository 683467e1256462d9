"""Bring the data of interactive figures up to date: what a page stores of the model, so that its output stays stable.

    python -m tools.book_data

Each file in ``book/data`` that is named in `FILES` is computed anew, and written only if the stored one no longer
agrees with it. So a CPU that rounds the last digit in another way changes no byte, and a change of the model does.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from llm_internals import chat, logits, model
from llm_internals.checkpoint import LanguageModel, load_checkpoint
from llm_internals.figures.sampling_explorer import STEP, explorer_entry, explorer_logits
from llm_internals.scores import largest
from tools import attention_map_data, temperature_explorer_data

FOLDER = Path(__file__).resolve().parent.parent / "book" / "data"
ROWS = 10
"""Tokens that have a row of their own in the explorer."""
NOISE = 2e-4
"""How far a stored logit may be off: its rounding, and the difference between two CPUs."""

EXPLORER_PROMPTS = {
    "Once upon a time, there was a": "Once upon a time, there was a",
    "def fibonacci(n): if n <=": "def fibonacci(n):\n    if n <=",
    "The capital of Australia is": "The capital of Australia is",
    "In a chat: What is the capital of Australia?": [{"role": "user", "content": "What is the capital of Australia?"}],
}
"""What the reader of ``05_sampling`` can choose: a label, and the text or the chat behind it."""
TILT_PROMPTS = {
    "The capital of Australia is": "The capital of Australia is",
    "Once upon a time, there was a": "Once upon a time, there was a",
    "In a chat: What is 3 + 4?": [{"role": "user", "content": "What is 3 + 4?"}],
}
"""The same for ``09_rlhf``."""

Prompts = Mapping[str, str | list[dict[str, str]]]


class DataFile(NamedTuple):
    """How a file is made, and whether a stored one still agrees with what the model says now."""

    build: Callable[[LanguageModel], Any]
    agrees: Callable[[Any, Any], bool]


def explorer_scores(lm: LanguageModel, prompts: Prompts = EXPLORER_PROMPTS) -> Iterator[np.ndarray]:
    """The logits after each prompt of an explorer, in the order of ids."""
    for prompt in prompts.values():
        ids = lm.tokenizer.encode(prompt) if isinstance(prompt, str) else chat.encode_chat(lm.tokenizer, prompt)
        hidden = model.forward(torch.tensor(ids), lm.weights)
        yield logits.lm_head(hidden[-1:], lm.weights)[0].double().numpy()


def explorer_entries(lm: LanguageModel, prompts: Prompts = EXPLORER_PROMPTS) -> list[dict[str, Any]]:
    """What an explorer needs of each prompt."""
    return [
        explorer_entry(name, scores, [lm.tokenizer.token_bytes(int(id)) for id in largest(scores, ROWS)])
        for name, scores in zip(prompts, explorer_scores(lm, prompts), strict=True)
    ]


def same_logits(stored: list[dict[str, Any]], computed: list[dict[str, Any]]) -> bool:
    """Whether two lists of entries have the same prompts and tokens, and logits that differ by rounding alone."""
    if [(entry["name"], entry["tokens"]) for entry in stored] != [
        (entry["name"], entry["tokens"]) for entry in computed
    ]:
        return False
    for old, new in zip(stored, computed, strict=True):
        one, other, head = explorer_logits(old), explorer_logits(new), len(old["head"])
        if one.size != other.size or head != len(new["head"]):
            return False
        off = np.abs(one - other)
        if off[:head].max() > NOISE or off[head:].max() > STEP + NOISE:
            return False
    return True


FILES = {
    "sampling_explorer.json": DataFile(explorer_entries, same_logits),
    "tilt_explorer.json": DataFile(lambda lm: explorer_entries(lm, TILT_PROMPTS), same_logits),
    "attention_map.json": DataFile(attention_map_data.attention_map, attention_map_data.same_weights),
    "temperature_explorer.json": DataFile(
        temperature_explorer_data.temperature_explorer, temperature_explorer_data.same_probabilities
    ),
}
"""The files, by name."""


def main() -> None:
    """Compute every file, and write what has changed."""
    lm = load_checkpoint()
    FOLDER.mkdir(exist_ok=True)
    for name, file in FILES.items():
        path = FOLDER / name
        computed = file.build(lm)
        if path.exists() and file.agrees(json.loads(path.read_text(encoding="utf-8")), computed):
            print(f"{name}: unchanged")
            continue
        text = json.dumps(computed, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8", newline="\n")
        print(f"{name}: written")


if __name__ == "__main__":
    main()
