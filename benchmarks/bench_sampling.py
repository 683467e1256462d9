"""What choosing a token costs: the package beside transformers' processors, and beside the decode step that it follows.

``python -m benchmarks.bench_sampling`` prints, for the 49,152 logits of a real prompt, medians over interleaved rounds.
Read the ratios: milliseconds are those of this machine at this moment.
transformers works in float32 with torch, the package in float64 with NumPy; both on one thread.
"""

import random
from collections.abc import Callable

import torch
from transformers.generation import logits_process as hf

from benchmarks.timing import interleaved
from llm_internals import load_checkpoint
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.sampling import SamplingParams, distribution, draw_bin

ROUNDS = 60
PROMPT = "Once upon a time, there was a"

SETTINGS = {
    "T .7, top-k 50, top-p .9": {"temperature": 0.7, "top_k": 50, "top_p": 0.9},
    "the same, repetition 1.1": {"temperature": 0.7, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.1},
    "T .7, top-p .9": {"temperature": 0.7, "top_p": 0.9},
    "T 1, top-p .9": {"top_p": 0.9},
    "T .7, min-p .05": {"temperature": 0.7, "min_p": 0.05},
    "typical .9": {"typical_p": 0.9},
    "T 1": {},
    "greedy": {"temperature": 0.0},
}


def ours(logits: torch.Tensor, params: SamplingParams, prompt_ids: list[int]) -> Callable[[], object]:
    """Choose a token as the package does."""
    rng = random.Random(0)
    return lambda: draw_bin(distribution(logits, params, prompt_ids), rng.random())


def theirs(logits: torch.Tensor, params: SamplingParams, prompt_ids: list[int]) -> Callable[[], object]:
    """Choose a token as transformers does: its processors on a batch of one, softmax and multinomial, or argmax."""
    make = {
        "repetition_penalty": hf.RepetitionPenaltyLogitsProcessor,
        "temperature": hf.TemperatureLogitsWarper,
        "top_k": hf.TopKLogitsWarper,
        "top_p": hf.TopPLogitsWarper,
        "min_p": hf.MinPLogitsWarper,
        "typical_p": hf.TypicalLogitsWarper,
    }
    ids, scores = torch.tensor([prompt_ids]), logits[None]
    if params.temperature == 0:
        return lambda: scores.argmax(-1)
    chain = [make[name](getattr(params, name)) for name in params.order if params.is_active(name)]

    def choose() -> torch.Tensor:
        left = scores
        for processor in chain:
            left = processor(ids, left)
        return torch.multinomial(left.softmax(-1), 1)

    return choose


def main() -> None:
    """Print one row for each setting."""
    torch.set_num_threads(1)
    lm = load_checkpoint()
    prompt_ids = lm.tokenizer.encode(PROMPT)
    cache = KVCache.empty(lm.config, capacity=len(prompt_ids) + 1)
    logits = lm_head(forward(torch.tensor(prompt_ids), lm.weights, cache)[-1:], lm.weights)[0]

    def decode_step() -> torch.Tensor:
        cache.truncate(len(prompt_ids))
        return lm_head(forward(torch.tensor([prompt_ids[-1]]), lm.weights, cache), lm.weights)

    print(f"{'setting':26}{'ms':>7}{'transformers':>14}{'ratio':>7}{'of a decode step':>18}{'candidates':>12}")
    for name, settings in SETTINGS.items():
        params = SamplingParams(**settings)
        ways = {"a": ours(logits, params, prompt_ids), "b": theirs(logits, params, prompt_ids), "step": decode_step}
        a, b, step = (1000 * taken.median for taken in interleaved(ways, ROUNDS).values())
        candidates = int((distribution(logits, params, prompt_ids) > 0).sum())
        print(f"{name:26}{a:7.2f}{b:14.2f}{a / b:7.2f}{a / step:18.1%}{candidates:12,}")


if __name__ == "__main__":
    main()
