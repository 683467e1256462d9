"""What llama.cpp says on the same file: the next token of one prompt, and the answers to three questions.

``python -m benchmarks.peers_next_token`` takes seconds and writes ``benchmarks/results/peers_next_token.json``, which
chapter ``07_generation_loop`` reads. It needs llama.cpp's Python package, which ``benchmarks/requirements.txt`` adds.

llama.cpp multiplies 4-bit weights with activations that it rounds to 8 bits, so its numbers are other numbers.
"""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from llama_cpp import Llama

from llm_internals.chat import encode_chat
from llm_internals.gguf import read_gguf
from llm_internals.model_metadata import read_eos_ids, read_tokenizer
from llm_internals.scores import largest, softmax
from llm_internals.weights_file import find_weights

RESULTS = Path(__file__).parent / "results" / "peers_next_token.json"
PROMPT = "The capital of Australia is"
QUESTIONS = tuple(f"What is the capital of {country}?" for country in ("Australia", "France", "Peru"))
MAX_TOKENS = 24
THREADS = 1


def main() -> None:
    """Ask, and write what was said."""
    path = find_weights()
    file = read_gguf(path)
    tokenizer = read_tokenizer(file)
    eos_ids = read_eos_ids(file, tokenizer)
    engine = Llama(str(path), n_ctx=128, n_threads=THREADS, n_threads_batch=THREADS, logits_all=True, verbose=False)

    probs = softmax(scores_after(engine, tokenizer.encode(PROMPT)))
    answers = {}
    for question in QUESTIONS:
        ids = encode_chat(tokenizer, [{"role": "user", "content": question}])
        answers[question] = tokenizer.decode(greedy_answer(engine, ids, eos_ids))
    report = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"llama-cpp-python": version("llama-cpp-python")},
        "prompt": PROMPT,
        "probabilities": {tokenizer.decode([int(id)]): round(float(probs[id]), 4) for id in largest(probs, 5)},
        "answers": answers,
    }
    RESULTS.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    json.dump(report, sys.stdout, indent=2, ensure_ascii=False)


def scores_after(engine: Llama, ids: Sequence[int]) -> np.ndarray:
    """The logits behind these tokens, with nothing else in the cache."""
    engine.reset()
    engine.eval(ids)
    return np.array(engine.scores[engine.n_tokens - 1], dtype=np.float64)


def greedy_answer(engine: Llama, ids: Sequence[int], eos_ids: frozenset[int]) -> list[int]:
    """The likeliest token again and again, until an end token or `MAX_TOKENS`."""
    output: list[int] = []
    scores = scores_after(engine, ids)
    while len(output) < MAX_TOKENS and int(scores.argmax()) not in eos_ids:
        output.append(int(scores.argmax()))
        engine.eval(output[-1:])
        scores = engine.scores[engine.n_tokens - 1]
    return output


if __name__ == "__main__":
    main()
