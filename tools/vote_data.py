"""Ask the model sums, once greedily and many times at random, and store what it says: the vote of chapter 10.

    python -m tools.vote_data      # takes about six minutes, so `make execute` leaves it out

The answers are whole sentences, as a chat gives them. ``tests/test_vote_data.py`` asks a part of them again.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_internals.chat import encode_chat
from llm_internals.checkpoint import LanguageModel, load_checkpoint
from llm_internals.generate import generate
from llm_internals.kv_cache import KVCache
from llm_internals.sampling import SamplingParams

PATH = Path(__file__).resolve().parent.parent / "book" / "data" / "vote.json"
QUESTION = "What is {a} + {b}? Answer with a number."
TEMPERATURE = 0.7
SAMPLES = 24
"""Answers to each sum; the seed of each is its place in the list."""
MAX_TOKENS = 24
STOP = ("\n", ".")
"""The first line or sentence is the answer: what follows mostly wanders off."""
SUMS = tuple((a, b) for a in (2, 4, 6, 8) for b in (3, 4, 5, 7, 8, 9))


def number_in(text: str, a: int, b: int) -> int | None:
    """The number that an answer gives: the first one outside the sum, if that is said again; None if there is none.

    Examples
    --------
    >>> number_in("4 + 4 = 10", 4, 4), number_in("The answer is 8", 4, 4), number_in("That's a puzzle", 4, 4)
    (10, 8, None)
    """
    rest = re.sub(rf"\b{a}\s*(\+|plus|and)\s*{b}\b", "", text)
    found = re.search(r"\d+", rest)
    return int(found.group()) if found else None


def ask(lm: LanguageModel, a: int, b: int, params: SamplingParams, cache: KVCache) -> dict[str, Any]:
    """One answer: its text, the number in it, and how near any draw was to another token (as `choice.Choice`)."""
    ids = encode_chat(lm.tokenizer, [{"role": "user", "content": QUESTION.format(a=a, b=b)}])
    steps = list(generate(lm, ids, params, max_tokens=MAX_TOKENS, stop=STOP, cache=cache))
    text = "".join(step.piece for step in steps)
    return {"text": text, "number": number_in(text, a, b), "margin": round(min(step.margin for step in steps), 6)}


def answers(lm: LanguageModel, a: int, b: int, samples: int) -> Iterator[dict[str, Any]]:
    """The greedy answer, and then so many sampled ones, which share one cache for the prompt."""
    cache = KVCache.empty(lm.config, 128)
    yield ask(lm, a, b, SamplingParams(temperature=0), cache)
    for seed in range(samples):
        yield ask(lm, a, b, SamplingParams(temperature=TEMPERATURE, seed=seed), cache)


def main() -> None:
    """Ask all sums, and write the file."""
    lm = load_checkpoint()
    sums = []
    for a, b in SUMS:
        greedy, *sampled = answers(lm, a, b, SAMPLES)
        sums.append({"a": a, "b": b, "greedy": greedy, "sampled": sampled})
        print(f"{a} + {b}: {greedy['text']!r}")
    lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in sums)
    head = json.dumps({"question": QUESTION, "temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, "stop": STOP})
    PATH.write_text(f'{head[:-1]}, "sums": [\n{lines}\n]}}\n', encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
