"""The exercises of ``07_generation_loop``: where attention overtakes, what a cache spares, what a guess is worth."""

import math
from collections.abc import Callable, Sequence

from llm_internals.config import LlamaConfig
from llm_internals.cost import attention_slope, block_numbers, output_numbers
from llm_internals.kv_cache import common_prefix

EIGHT_BILLION = LlamaConfig(
    vocab_size=128_256,
    hidden_size=4096,
    intermediate_size=14_336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    rms_norm_eps=1e-5,
    rope_theta=5e5,
    max_position_embeddings=131_072,
    tie_word_embeddings=False,
)
"""Exercise 1: the sizes of Llama 3.1 8B."""

Ids = Sequence[int]
Reuse = Callable[[list[int], list[int]], Ids]
Accept = Callable[[list[int], list[int]], Ids]

CACHES = (
    ([1, 2, 3], [1, 2, 3, 4, 5], "the cache holds the beginning of the prompt"),
    ([], [5, 6], "the cache is empty"),
    ([1, 2, 3, 9], [1, 2, 3, 4], "the cache holds another token at the last position"),
    ([1, 2, 3, 4], [1, 9, 3, 4], "keys and values depend on everything before them"),
    ([1, 2, 3], [2, 3, 4], "the same tokens stand at other positions"),
    ([5, 6, 7, 8], [5, 6], "the cache holds more than the prompt"),
    ([5, 6], [5, 6], "the first token needs the logits of the last position"),
)
"""Exercise 2: what a cache holds, a prompt, and what to think of where they meet."""

GUESSES = (
    ([5, 6, 7], [5, 6, 9, 8], "a token counts up to the first one that the model would have written differently"),
    ([5, 6, 7], [4, 6, 7, 8], "what stands behind a wrong token was computed for a text that won't be written"),
    ([5, 6, 7], [5, 6, 7, 8], "the model has also said what follows the last guess"),
    ([], [3], "with nothing guessed, it is a decode step"),
    ([5, 5, 5], [5, 4, 5, 5], "a text may hold the same token twice"),
)
"""Exercise 3: guessed tokens, what the model itself chooses after each beginning, and a hint."""


def check_crossing(answer: int | float | None) -> str:
    """Exercise 1: whether `answer` positions of context make attention as costly as the rest of a step.

    >>> check_crossing(114_508)
    'Not yet: keys and values are shared by several heads, but every query head multiplies with them.'
    """
    if answer is None:
        return "No answer yet: set answer to a number of positions."
    right = crossing(EIGHT_BILLION)
    mistakes = {
        right * EIGHT_BILLION.queries_per_kv_head: "keys and values are shared by several heads, but every query head "
        "multiplies with them",
        right * 2: "a position costs a product with its key and another one with its value",
        block_numbers(EIGHT_BILLION) / attention_slope(EIGHT_BILLION): "a step also multiplies with the output matrix",
        right / EIGHT_BILLION.num_hidden_layers: "the blocks all attend, and all have projections",
    }
    if math.isclose(answer, right, rel_tol=0.01):
        return "Right: in a wide model, attention overtakes the projections much later."
    for wrong, reason in mistakes.items():
        if math.isclose(answer, wrong, rel_tol=0.01):
            return f"Not yet: {reason}."
    side = "less" if answer < right else "more"
    return f"Not yet: at {answer:,.0f} positions, attention takes {side} than everything else together."


def crossing(config: LlamaConfig) -> float:
    """Everything else is the same at each step; divided by what a position adds, it gives the number of positions."""
    return (block_numbers(config) + output_numbers(config)) / attention_slope(config)


def check_reuse(answer: Reuse | None) -> str:
    """Exercise 2: whether a function of a cache's ids and a prompt's ids returns what has to go through the model.

    >>> check_reuse(lambda cached, prompt: prompt[len(cached):])
    'Not yet: for the cache [1, 2, 3, 9] and the prompt [1, 2, 3, 4] it returns []: the cache holds another \
token at the last position.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of two lists of ids."
    for cached, prompt, hint in CACHES:
        result = list(answer(list(cached), list(prompt)))
        if result != to_compute(cached, prompt):
            return f"Not yet: for the cache {cached} and the prompt {prompt} it returns {result}: {hint}."
    return "Right: nothing is computed twice, and nothing stale is kept."


def to_compute(cached: Ids, prompt: Ids) -> list[int]:
    """Keep what agrees from the start on, but never the last position of the prompt: its logits are needed."""
    kept = min(common_prefix(cached, prompt), len(prompt) - 1)
    return list(prompt[kept:])


def check_accept(answer: Accept | None) -> str:
    """Exercise 3: whether a function of guessed ids and the model's choices returns the ids that may be written.

    >>> check_accept(lambda draft, choices: [d for d, c in zip(draft, choices) if d == c])
    'Not yet: for the guess [5, 6, 7] and the choices [5, 6, 9, 8] it returns [5, 6], which is right as far as it \
goes, but the pass has told one more token.'
    """
    if answer is None:
        return "No answer yet: set answer to a function of two lists of ids."
    for draft, choices, hint in GUESSES:
        result, right = list(answer(list(draft), list(choices))), accepted(draft, choices)
        told = f"Not yet: for the guess {draft} and the choices {choices} it returns {result}"
        if result == right[:-1]:
            return f"{told}, which is right as far as it goes, but the pass has told one more token."
        if result != right:
            return f"{told}: {hint}."
    return "Right: the text is the one that the model would have written token by token."


def accepted(draft: Ids, choices: Ids) -> list[int]:
    """The guesses that agree with the model's own choices, and the choice after the last of them."""
    return list(choices[: common_prefix(draft, choices) + 1])
