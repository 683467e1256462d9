"""Ask the questions of chapter 10, and keep what its explorer shows; `tools.book_data` writes the file.

Each question follows the two examples of its kind. It takes about half a minute.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int

from llm_internals import model
from llm_internals.calibration import probability_at
from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.temperature_explorer import TEMPERATURES, explorer_data, explorer_question
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.scores import largest

FOLDER = Path(__file__).resolve().parent.parent / "book" / "data"
ROWS = 5
"""Tokens that have a row of their own, besides the right one."""
NOISE = 2.5e-4
"""How far a stored probability may be off: its rounding, and the difference between two CPUs at the lowest T."""
CHOSEN = (
    "The capital of Turkey is",
    "The capital of Nigeria is",
    "The capital of Australia is",
    "The capital of Canada is",
    "The capital of India is",
    "The capital of Peru is",
    "The opposite of empty is",
    "The chemical symbol for gold is",
    "Great Expectations was written by Charles",
    "A young goose is called a",
    "The chemical symbol for carbon is",
    "The letter after H is",
    "The day after Monday is",
    "The month after March is",
    "2 + 7 = ",
    "The third planet from the Sun is",
    "The color of a ripe lemon is",
)
"""The questions that the reader can choose: some whose right answer is the likeliest, second, and further down."""


def first_token_logits(
    lm: LanguageModel, file: dict[str, Any]
) -> tuple[Float32[np.ndarray, "questions vocab_size"], Int[np.ndarray, " questions"]]:
    """The logits after each question with its examples, and the first token of each right answer."""
    cache, rows, ids = KVCache.empty(lm.config, 128), [], []
    for question in file["questions"]:
        prompt = file["kinds"][question["kind"]]["examples"] + question["prompt"]
        prompt_ids = lm.tokenizer.encode(prompt)
        rows.append(lm_head(model.prefill(prompt_ids, lm.weights, cache), lm.weights)[0].numpy())
        ids.append(lm.tokenizer.encode(prompt + question["answer"])[len(prompt_ids)])
    return np.array(rows), np.array(ids)


def temperature_explorer(lm: LanguageModel) -> dict[str, Any]:
    """What the explorer shows."""
    file = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    logits, ids = first_token_logits(lm, file)
    prompts = [question["prompt"] for question in file["questions"]]
    top = logits.argmax(axis=1)
    return explorer_data(
        [question(lm, prompt, logits[prompts.index(prompt)], int(ids[prompts.index(prompt)])) for prompt in CHOSEN],
        np.array([probability_at(logits, ids, t).mean() for t in TEMPERATURES]),
        np.array([probability_at(logits, top, t).mean() for t in TEMPERATURES]),
        int((top == ids).sum()),
        len(ids),
    )


def question(lm: LanguageModel, prompt: str, scores: Float32[np.ndarray, " vocab_size"], right: int) -> dict[str, Any]:
    """One question of the explorer."""
    shown = largest(scores.astype(np.float64), ROWS).tolist()
    shown += [right] if right not in shown else []
    rows = scores[None].repeat(len(shown), axis=0)
    probs = np.array([probability_at(rows, np.array(shown), t) for t in TEMPERATURES])
    place = int((scores > scores[right]).sum()) + 1
    return explorer_question(prompt, [lm.tokenizer.token_bytes(id) for id in shown], shown.index(right), place, probs)


def same_probabilities(stored: dict[str, Any], computed: dict[str, Any]) -> bool:
    """Whether two files ask the same, name the same tokens, and differ by rounding alone."""
    if without_probabilities(stored) != without_probabilities(computed):
        return False
    pairs = zip(probabilities(stored), probabilities(computed), strict=True)
    return all(len(one) == len(other) and np.abs(np.subtract(one, other)).max() <= NOISE for one, other in pairs)


def without_probabilities(data: dict[str, Any]) -> list[Any]:
    """All that must agree to the letter."""
    asked = [[one["prompt"], one["tokens"], one["right"], one["place"]] for one in data["questions"]]
    return [data["temperatures"], data["all"]["asked"], data["all"]["greedy"], *asked]


def probabilities(data: dict[str, Any]) -> list[list[float]]:
    """All curves."""
    return [
        data["all"]["sampled"],
        data["all"]["confidence"],
        *(row for one in data["questions"] for row in one["probs"]),
    ]
