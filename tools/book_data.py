"""Bring the data of interactive figures up to date: what a page stores of the model, so that its output stays stable.

    python -m tools.book_data

Each file in ``book/data`` that is named in `FILES` is computed anew, and written only if the stored one no longer
agrees with it. So a CPU that rounds the last digit in another way changes no byte, and a change of the model does.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from llm_internals import chat, logits, model
from llm_internals.checkpoint import LanguageModel, load_checkpoint
from llm_internals.figures.sampling_explorer import STEP, explorer_entry, explorer_logits
from llm_internals.scores import largest

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


class DataFile(NamedTuple):
    """How a file is made, and whether a stored one still agrees with what the model says now."""

    build: Callable[[LanguageModel], Any]
    agrees: Callable[[Any, Any], bool]


def explorer_scores(lm: LanguageModel) -> Iterator[np.ndarray]:
    """The logits after each prompt of the explorer, in the order of ids."""
    for prompt in EXPLORER_PROMPTS.values():
        ids = lm.tokenizer.encode(prompt) if isinstance(prompt, str) else chat.encode_chat(lm.tokenizer, prompt)
        hidden = model.forward(torch.tensor(ids), lm.weights)
        yield logits.lm_head(hidden[-1:], lm.weights)[0].double().numpy()


def sampling_explorer(lm: LanguageModel) -> list[dict[str, Any]]:
    """What the explorer needs of each prompt."""
    return [
        explorer_entry(name, scores, [lm.tokenizer.token_bytes(int(id)) for id in largest(scores, ROWS)])
        for name, scores in zip(EXPLORER_PROMPTS, explorer_scores(lm), strict=True)
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


FILES = {"sampling_explorer.json": DataFile(sampling_explorer, same_logits)}
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
